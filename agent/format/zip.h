#ifndef FORMAT_ZIP_H
#define FORMAT_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/zip_end.h"

struct error;
struct source;

/* A member of a zip. */
struct zip_member {
	char *name;		/* as in the zip; of an unpacked one as libarchive has it */
	uint64_t offset;	/* of its bytes in the file, when `stored` */
	uint64_t length;	/* of its content */
	bool stored;		/* its content lies in the file as it is */
};

struct zip {
	struct zip_end end;
	struct zip_member *members;	/* in the order of the file */
	size_t count;
	bool failed;			/* the source could not be read */
};

/**
 * zip_list(source, zip, error):
 * List the members of ${source} into ${zip} (free it with zip_free, also after
 * an error).  Return 0 when the end records are there and every member that
 * they promise lies inside the file, before the central directory and not over
 * another.  Return -1: ERROR_DAMAGED when not so, CAUSE_LIMIT over the limits
 * of zip_end.h or names over 4 KiB, CAUSE_UNSUPPORTED when the zip is appended
 * to something else.  A symbolic link counts as not stored.
 */
int zip_list(const struct source *source, struct zip *zip,
    struct error *error);

/**
 * zip_free(zip):
 * Free what ${zip} holds, not itself.
 */
void zip_free(struct zip *zip);

#endif
