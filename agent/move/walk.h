#ifndef MOVE_WALK_H
#define MOVE_WALK_H

#include <sys/stat.h>

struct error;

/*
 * Every name beneath a directory, folders before what is in them, following
 * no link.
 */

/* 1: do not go into this folder; -1 stops with ${error}. */
typedef int (*walk_visit)(void *context, const char *path,
    const struct stat *status, struct error *error);

/**
 * walk_beneath(folder, path, visit, context, error):
 * Visit all beneath ${path}, itself beneath the directory ${folder}; "" for
 * ${folder} itself.  Paths given to ${visit} are relative to ${folder}.  What
 * goes away meanwhile is left out.  Return 0 or -1.
 */
int walk_beneath(int folder, const char *path, walk_visit visit,
    void *context, struct error *error);

#endif
