#ifndef FORMAT_LEGACY_H
#define FORMAT_LEGACY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/storage.h"

struct error;
struct format_report;
struct pickle;
struct source;

/*
 * What torch.save wrote before its zips, and still does when it is asked to
 * (torch/serialization.py, _legacy_save): five pickles (magic number,
 * protocol, system, the object, the keys of its storages), then for each key
 * the number of elements (8 bytes, little-endian) and the elements, up to
 * exactly the end of the file.
 */

/* A storage with its place. */
struct legacy_storage {
	struct storage storage;	/* its key is that of the object's pickle */
	uint64_t offset;
	uint64_t length;
};

struct legacy {
	struct pickle *object;
	struct pickle *keys;
	struct legacy_storage *storages;	/* in the order of the file */
	size_t count;
	bool big_endian;	/* written on such a machine */
	bool failed;		/* the source could not be read */
};

/**
 * legacy_claimed(start, length):
 * Whether a file that begins with these bytes is one.
 */
bool legacy_claimed(const uint8_t *start, size_t length);

/**
 * legacy_read(source, look, legacy, error):
 * Read its structure into ${legacy} (free it with legacy_free, also after an
 * error): the pickles, and, if ${look}, also the number before each storage,
 * which else follows from the object: in the remote each would be a request.
 * Return 0; -1 when it is not whole (ERROR_DAMAGED), or as pickle_read.
 */
int legacy_read(const struct source *source, bool look,
    struct legacy *legacy, struct error *error);

/**
 * legacy_free(legacy): free what it holds, not itself.
 */
void legacy_free(struct legacy *legacy);

/**
 * legacy_inspect(source, report, error):
 * As format_inspect, for a file that begins like one.  The records are named
 * by their keys.
 */
int legacy_inspect(const struct source *source, struct format_report *report,
    struct error *error);

#endif
