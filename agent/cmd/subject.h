#ifndef CMD_SUBJECT_H
#define CMD_SUBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/model.h"
#include "move/weights.h"

struct error;
struct options;

/*
 * The one checkpoint that `weights` and `show --tensors` look into, in the
 * remote or on this machine, its files as sources.
 */
enum subject_choice {
	SUBJECT_GIVEN,		/* there was nothing to choose */
	SUBJECT_ASKED,		/* by its name */
	SUBJECT_FINAL,
	SUBJECT_BEST,
	SUBJECT_RESUME
};

struct subject {
	char *name;		/* "last.pt", "checkpoint-500" */
	enum subject_choice choice;
	bool folder;		/* several files, not one */
	uint64_t size;		/* bytes in files */
	struct model_file *files;
	size_t count;
	size_t *entries;	/* of each file: in the manifest, or local list */

	/* In the remote; NULL: on this machine. */
	struct backend *backend;
	struct truth *truth;
	const struct manifest *manifest;
	struct remote_file_set *set;
	_Atomic bool cancel;
	_Atomic uint64_t fetched;	/* by reading the sources */

	/* On this machine. */
	struct checkpoint *local;	/* its entries, beneath `at` */
	int at;
	struct files *open;
};

/**
 * subject_open(subject, options, error):
 * Find it: what options->input names, or in options->settings.url the final
 * checkpoint, before the best, before the resume point, unless the options
 * choose.  Free it with subject_close, also after an error.  Return 0, or -1:
 * ERROR_NOTHING, ERROR_DAMAGED...
 */
int subject_open(struct subject *subject, const struct options *options,
    struct error *error);

/**
 * subject_open_local(subject, options, error):
 * subject_open for a file or directory of this machine.
 */
int subject_open_local(struct subject *subject, const struct options *options,
    struct error *error);

/**
 * subject_check(context, error):
 * Whether local files are still what they were when they were opened;
 * ${context} is a subject.  Return 0, or -1 with CAUSE_CHANGED.
 */
int subject_check(const void *context, struct error *error);

/**
 * subject_path(name, folder, path):
 * ${path}, an entry of the checkpoint ${name}, as it is inside of it: without
 * its folder, or without the folder that it lies in.
 */
const char *subject_path(const char *name, bool folder, const char *path);

/**
 * subject_weights(subject, weights):
 * Fill the part of ${weights} that says where the bytes are.
 */
void subject_weights(const struct subject *subject, struct weights *weights);

/**
 * subject_close(subject): give back what it holds.
 */
void subject_close(struct subject *subject);

#endif
