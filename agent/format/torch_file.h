#ifndef FORMAT_TORCH_FILE_H
#define FORMAT_TORCH_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/legacy.h"
#include "format/zip_directory.h"

struct error;
struct pickle;
struct source;
struct storage;

/*
 * A file of torch.save, zip or legacy, opened: its object as a graph, and
 * where the bytes of each storage lie.  One thread at a time.
 */
struct torch_file {
	const struct source *source;
	bool zipped;
	struct zip_directory directory;	/* zipped */
	const struct zip_record *data;	/* zipped: data.pkl */
	size_t prefix;			/* zipped: bytes of "archive/" */
	struct pickle *pickle;		/* zipped; else in `legacy` */
	struct legacy legacy;
};

/**
 * torch_file_claimed(start, length):
 * Whether a file that begins with these bytes (16 do) may be one.
 */
bool torch_file_claimed(const uint8_t *start, size_t length);

/**
 * torch_file_open(source, file, error):
 * Open ${source} into ${file} (close it with torch_file_close, also after an
 * error).  Return 0, or -1: CAUSE_NOT_FOUND for a zip without data.pkl,
 * CAUSE_UNSUPPORTED, CAUSE_LIMIT, ERROR_DAMAGED.
 */
int torch_file_open(const struct source *source, struct torch_file *file,
    struct error *error);

/**
 * torch_file_object(file):
 * The pickle of the object.
 */
const struct pickle *torch_file_object(const struct torch_file *file);

/**
 * torch_file_storage(file, storage, offset, length, error):
 * Where the bytes of ${storage} lie in the source, and how many they are: at
 * least as many as its elements need.  Return 0, or -1: ERROR_DAMAGED when
 * they are not there or too few.
 */
int torch_file_storage(struct torch_file *file, const struct storage *storage,
    uint64_t *offset, uint64_t *length, struct error *error);

/**
 * torch_file_record(file, storage):
 * The record of the zip that holds ${storage}, or NULL.
 */
const struct zip_record *torch_file_record(const struct torch_file *file,
    const struct storage *storage);

/**
 * torch_file_close(file): free what it holds, not itself.
 */
void torch_file_close(struct torch_file *file);

#endif
