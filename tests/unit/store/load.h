#ifndef UNIT_STORE_LOAD_H
#define UNIT_STORE_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/role.h"
#include "store/writer.h"

struct backend;

/*
 * A checkpoint made up for a test and the way it is uploaded: one file of
 * equal chunks whose bytes depend on `seed` and their number alone.
 */
struct load {
	const char *name;
	const char *series;	/* NULL: the name */
	enum role role;
	bool has_step;
	uint64_t step;
	bool unproven;
	uint64_t seed;
	size_t chunks;
	size_t new_chunks;	/* so many of them (the last ones) depend on the
				 * step too; 0: all depend on the seed alone */
	time_t completed;
};

#define LOAD_CHUNK 512		/* bytes of a chunk */

/**
 * load_bytes(load, number, data):
 * The bytes of chunk ${number}.
 */
void load_bytes(const struct load *load, size_t number,
    char data[LOAD_CHUNK]);

/**
 * load_send(backend, writer, attempt, load, limit, sent, error):
 * Upload its first ${limit} chunks, those that are not there yet; *${sent}
 * counts the PUTs.  Return 0 or -1.
 */
int load_send(struct backend *backend, struct writer *writer,
    uint64_t attempt, const struct load *load, size_t limit, size_t *sent,
    struct error *error);

/**
 * load_manifest(writer, attempt, load):
 * Its manifest; all its chunks are stored.
 */
struct manifest *load_manifest(struct writer *writer, uint64_t attempt,
    const struct load *load);

/**
 * load_commit(backend, writer, load, directory, deadline, sent, error):
 * All of it: begin, send, commit, and give it up when it fails.
 */
int load_commit(struct backend *backend, struct writer *writer,
    const struct load *load, const struct writer_directory *directory,
    uint64_t deadline, size_t *sent, struct error *error);

/**
 * load_take_over(backend, keep, delay, host, error):
 * A writer of node 0 that calls itself ${host}.
 */
struct writer *load_take_over(struct backend *backend, uint64_t keep,
    uint64_t delay, const char *host, struct error *error);

#endif
