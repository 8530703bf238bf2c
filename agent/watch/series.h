#ifndef WATCH_SERIES_H
#define WATCH_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/role.h"

/*
 * What a checkpoint's name says: which others it replaces, at which step it
 * was saved, and what it is for (DESIGN 2).
 *
 *	last.pt					last.pt
 *	checkpoint-500				checkpoint-*			500
 *	epoch=3-step=400.ckpt			epoch=*-step=*.ckpt		400
 *	epoch=3-step=400-v1.ckpt		epoch=*-step=*.ckpt		400
 *	best_acc_epoch_7.pth			best_acc_epoch_*.pth		7, best
 *	resnet50_epoch_3.pth			resnet50_epoch_*.pth		3
 */
struct series {
	char *name;		/* relative path with the numbers replaced */
	enum role role;
	bool has_step;
	uint64_t step;
};

/**
 * series_of(path, series):
 * Read ${path}, the relative path of a checkpoint; only its last component
 * counts.  series->name is the caller's.  Return 0, or -1 when out of memory.
 */
int series_of(const char *path, struct series *series);

#endif
