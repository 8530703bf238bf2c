#ifndef FORMAT_ZIP_DIRECTORY_H
#define FORMAT_ZIP_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/zip_end.h"

struct error;
struct source;

/*
 * The central directory of a zip (APPNOTE.TXT 6.3.10, 4.3.12).
 *
 * Read by hand: libarchive gives a member only after it has read its local
 * header, which is a request of its own to the remote for each tensor, and
 * the windows that it reads are more bytes than 2 % of the tensors of a file
 * with many.  Here the directory is read in one run, and where a member's
 * bytes begin follows from where the next member's header begins.
 */
struct zip_record {
	const char *name;	/* in the directory's own memory, no NUL in it */
	size_t name_length;
	uint64_t header;	/* offset of the local header */
	uint64_t behind;	/* where what follows it begins: it ends before */
	uint64_t length;	/* of the content */
	uint32_t checksum;
	bool stored;		/* the content lies in the file as it is */
	bool described;		/* a data descriptor follows */
	bool dateless;		/* time and date are 0, as torch has them */
};

struct zip_directory {
	const struct source *source;
	struct zip_end end;
	char *bytes;
	struct zip_record *records;	/* in the order of the file */
	const struct zip_record **by_name;
	size_t count;
	bool failed;		/* the source could not be read */
};

/**
 * zip_directory_read(source, directory, error):
 * Fill ${directory} (free it with zip_directory_free, also after an error).
 * Return 0, or -1: ERROR_DAMAGED when it is not there, members lie over each
 * other or past it, or two have one name; CAUSE_LIMIT over the limits of
 * zip_end.h; CAUSE_UNSUPPORTED for zips behind other bytes.
 */
int zip_directory_read(const struct source *source,
    struct zip_directory *directory, struct error *error);

/**
 * zip_directory_find(directory, name, length):
 * The record of that name, or NULL.
 */
const struct zip_record *zip_directory_find(
    const struct zip_directory *directory, const char *name, size_t length);

/**
 * zip_directory_place(directory, record, offset, error):
 * Where the content of ${record}, which is stored, begins.  Reads its local
 * header only when the place does not follow from the directory.  Return 0,
 * or -1: ERROR_DAMAGED when no header is there or it does not fit.
 */
int zip_directory_place(struct zip_directory *directory,
    const struct zip_record *record, uint64_t *offset, struct error *error);

/**
 * zip_directory_free(directory):
 * Free what it holds, not itself.
 */
void zip_directory_free(struct zip_directory *directory);

#endif
