#ifndef TESTS_UNIT_FORMAT_WEIGH_H
#define TESTS_UNIT_FORMAT_WEIGH_H

#include <stddef.h>

#include "base/source.h"
#include "format/model.h"

/*
 * What the tests of weights share: files of the fixtures in memory, the bytes
 * of tensors, and files that outlines describe.  A test fails when something
 * cannot be done.
 */
struct weigh_files {
	struct model_file *files;
	struct source *sources;
	struct source_memory *memories;
	size_t count;
};

/**
 * weigh_open(name):
 * The fixture ${name} of tests/data/format/weights: a file, or all files of a
 * folder.
 */
struct weigh_files *weigh_open(const char *name);

/**
 * weigh_one(path, data, length):
 * One file of a copy of these bytes, of just that size.
 */
struct weigh_files *weigh_one(const char *path, const void *data,
    size_t length);

/**
 * weigh_close(files): free it.
 */
void weigh_close(struct weigh_files *files);

/**
 * weigh_gather(files, tensor):
 * The bytes of ${tensor} in C order, in fresh memory.
 */
char *weigh_gather(const struct weigh_files *files,
    const struct tensor *tensor);

/**
 * weigh_write(files, model, output, convert, length):
 * The file that the outline describes, in fresh memory; every byte of it is
 * written exactly once.
 */
char *weigh_write(const struct weigh_files *files, const struct model *model,
    enum model_output output, const enum tensor_type *convert,
    size_t *length);

/**
 * weigh_seal(outline, contents, lengths, count):
 * As weigh_write, from the contents at the outline's places.
 */
char *weigh_seal(struct model_outline *outline, char *const *contents,
    const size_t *lengths, size_t count);

#endif
