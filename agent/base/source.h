#ifndef BASE_SOURCE_H
#define BASE_SOURCE_H

#include <stddef.h>
#include <stdint.h>

struct error;

/*
 * Bytes that can be read at any place: a local file, or a file in the remote
 * that is read by range.  One parser serves both.
 *
 * A source is plain data with a function; who made it frees what is behind
 * `context`.  read_at may be called from one thread at a time.
 */
struct source {
	uint64_t size;

	/*
	 * Read exactly ${length} bytes at ${offset} into ${data}; the caller
	 * stays within the size.  Return 0, or -1: CAUSE_CHANGED when the
	 * file has become shorter.
	 */
	int (*read_at)(void *context, uint64_t offset, void *data,
	    size_t length, struct error *error);

	/*
	 * Which bytes were never written: set *${start} to the first one at
	 * or behind ${offset} and *${end} to the first one behind it that was
	 * (the size when there is none).  Return 0, or -1 when that is not
	 * known: bytes that somebody may have written as zeros are never
	 * named.  NULL: never known.
	 */
	int (*find_hole)(void *context, uint64_t offset, uint64_t *start,
	    uint64_t *end);

	/*
	 * Behind which byte it costs more to read on from ${offset}: what lies
	 * before comes together from a remote, what lies behind is another,
	 * perhaps large, piece.  NULL: nowhere.
	 */
	uint64_t (*find_edge)(void *context, uint64_t offset);
	void *context;
	const char *name;	/* for messages */
};

/**
 * source_read(source, offset, data, length, error):
 * Read exactly ${length} bytes at ${offset}.  Return 0, or -1; reading past
 * the end is ERROR_DAMAGED.
 */
int source_read(const struct source *source, uint64_t offset, void *data,
    size_t length, struct error *error);

/**
 * source_step(source, offset, length):
 * How many of the ${length} (> 0) bytes at ${offset} to read first when it is
 * not sure that all are needed; at least 1.
 */
size_t source_step(const struct source *source, uint64_t offset,
    size_t length);

/* An open file as a source: `context` is a pointer to this. */
struct source_file {
	int fd;		/* the caller's */
	const char *name;
};

/**
 * source_from_file(file, size):
 * ${file}, of which ${size} bytes are there, as a source.  ${file} must
 * outlive it.  Its find_hole asks lseek(SEEK_HOLE) on ext4, XFS,
 * btrfs, f2fs and tmpfs (fstatfs), where a hole is a place that nobody wrote,
 * and says "not known" elsewhere (ZFS makes holes out of written zeros; others
 * pass on what they do not know).  The descriptor's own position may move.
 */
struct source source_from_file(struct source_file *file, uint64_t size);

/* Bytes in memory as a source (tests, fuzzers, small members). */
struct source_memory {
	const void *data;
	size_t length;
};

/**
 * source_from_memory(memory):
 * ${memory} as a source.  ${memory} must outlive it.
 */
struct source source_from_memory(struct source_memory *memory);

#endif
