#ifndef CMD_WEIGHTS_PRIVATE_H
#define CMD_WEIGHTS_PRIVATE_H

#include "cmd/subject.h"
#include "format/model.h"

struct error;
struct options;

/* One call of `weights`, and what is said of it at the end. */
struct weights_work {
	const struct options *options;
	struct subject subject;
	struct model model;
	bool whole;		/* files as they are, not tensors */

	/* The outcome. */
	char *target;		/* the file or directory that is made */
	const char *format;	/* "safetensors", "pt", "files" */
	size_t converted;	/* tensors that get another type */
	char dropped[160];	/* keys, when the pickle is kept */
	uint64_t out_bytes;
	uint64_t fetch_bytes;	/* what it takes besides what was read */
	uint64_t fetched;
	uint64_t took;
	char **files;		/* of a directory: what is taken, inside it */
	size_t file_count;
};

/**
 * weights_target(work, name, target, error):
 * The path of a file called ${name} in OUT, or OUT itself when that is the
 * name of a file; fresh memory in *${target}.  -1: CAUSE_EXISTS when it is
 * there and may not be replaced.
 */
int weights_target(const struct weights_work *work, const char *name,
    char **target, struct error *error);

/**
 * weights_is_file(options):
 * Whether OUT is meant as a file.
 */
bool weights_is_file(const struct options *options);

/**
 * weights_folder(work, error):
 * Bring the files of a directory that are its weights, as they are, to the
 * directory OUT; with --dry-run only say which.  Return 0 or -1.
 */
int weights_folder(struct weights_work *work, struct error *error);

#endif
