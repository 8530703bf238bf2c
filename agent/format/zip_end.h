#ifndef FORMAT_ZIP_END_H
#define FORMAT_ZIP_END_H

#include <stdbool.h>
#include <stdint.h>

struct error;
struct source;

/*
 * The end records of a zip (APPNOTE.TXT 6.3.10, 4.3.14 to 4.3.16).
 *
 * Read by hand, since libarchive does not tell what is needed here: it takes
 * a zip with other bytes behind its end, hides how many members were
 * promised, and keeps all of them in memory without a limit.
 */
struct zip_end {
	uint64_t members;	/* as many as were promised */
	uint64_t directory;	/* offset of the central directory */
	uint64_t length;	/* of the central directory, bytes */
	uint64_t behind;	/* bytes before the zip: it was appended to them */
};

/* What is larger is not looked at (CAUSE_LIMIT): libarchive needs some 200
 * bytes for each 46 of the central directory. */
#define ZIP_MEMBERS_MAXIMUM 1000000
#define ZIP_DIRECTORY_MAXIMUM (UINT64_C(64) << 20)

/**
 * zip_end_read(source, end, failed, error):
 * Find the end records of ${source}.  Return 0, or -1: ERROR_DAMAGED when
 * they are missing or do not fit the file; *${failed} set when it could not
 * be read.
 */
int zip_end_read(const struct source *source, struct zip_end *end,
    bool *failed, struct error *error);

#endif
