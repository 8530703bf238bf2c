#ifndef MOVE_RANGES_H
#define MOVE_RANGES_H

#include <stddef.h>
#include <stdint.h>

struct error;
struct manifest;
struct manifest_chunk;

/*
 * Which GETs bring parts of a checkpoint's files, so that every byte that is
 * used is checked: a run of bytes is fetched together with all others that
 * share its hash, an extent's own where the manifest says it, else the whole
 * chunk's.  Chunks are cut where tensors begin, so that is little more.
 */

/* Bytes of a file that are wanted. */
struct ranges_wish {
	size_t entry;		/* index into the manifest's entries: a file */
	uint64_t offset;	/* in the file; it lies within */
	uint64_t length;
};

/* Bytes of a chunk with a hash of their own. */
struct ranges_proof {
	uint32_t chunk;		/* index into the manifest's chunks */
	uint64_t offset;	/* in the chunk */
	uint64_t length;
	const uint8_t *digest;
};

/* Bytes of a chunk that belong to a wish. */
struct ranges_portion {
	uint32_t chunk;
	uint64_t offset;	/* in the chunk */
	uint64_t length;
	size_t wish;
	uint64_t at;		/* in the wish */
};

/* One GET. */
struct range {
	const struct manifest_chunk *chunk;
	uint64_t offset;
	uint64_t length;
	const struct ranges_proof *proofs;	/* by offset, at least one */
	size_t proof_count;
	const struct ranges_portion *portions;	/* by offset */
	size_t portion_count;
};

struct ranges {
	const struct manifest *manifest;
	struct ranges_proof *proofs;
	size_t proof_count;
	struct ranges_portion *portions;
	size_t portion_count;
	struct range *all;
	size_t count;
	uint64_t bytes;		/* of all GETs */
};

/**
 * ranges_make(manifest, wishes, count, slack, ranges, error):
 * Fill ${ranges} (free it with ranges_free, also after an error), which
 * points into ${manifest}.  Near ones become one GET as long as that costs at
 * most ${slack} bytes more in all, the smallest gaps first.  Wishes in the
 * order of entries and offsets take the least time.  Return 0, or -1 when out
 * of memory.
 */
int ranges_make(const struct manifest *manifest,
    const struct ranges_wish *wishes, size_t count, uint64_t slack,
    struct ranges *ranges, struct error *error);

/**
 * ranges_free(ranges): free what it holds, not itself.
 */
void ranges_free(struct ranges *ranges);

#endif
