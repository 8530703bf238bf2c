#ifndef STORE_WRITER_H
#define STORE_WRITER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/key.h"
#include "store/manifest.h"
#include "store/retention.h"

struct backend;
struct error;

/*
 * The writer of a node: takes over, commits and deletes as DESIGN 5 says.
 * It has a lock of its own; every function may be called from any thread,
 * but only one thread commits at a time.  No lock is held while a request is
 * on its way.
 */
struct writer;

struct writer_options {
	uint32_t node;
	uint32_t nodes;		/* of the run; 1 for a one-machine run */
	struct retention_rules rules;
	uint64_t delete_delay;	/* ns; default 15 minutes (DESIGN 5) */
	json_t *identity;	/* host, cloud, machine type, pid, versions: goes
				 * into open.json; borrowed during the call */
};

/**
 * writer_take_over(backend, options, deadline, error):
 * Steps T1 to T6.  ${deadline} (clock_monotonic, CLOCK_NEVER) bounds the
 * retries for other starters, not those for an unreachable store:
 * CAUSE_UNREACHABLE comes back at once and may be tried again.
 * NULL with ERROR_SUPERSEDED when somebody newer took over meanwhile.  From
 * its return on, all that was adopted is durable.
 */
struct writer *writer_take_over(struct backend *backend,
    const struct writer_options *options, uint64_t deadline,
    struct error *error);

/**
 * writer_term(writer): the term.
 */
struct term writer_term(struct writer *writer);

/**
 * writer_target(writer):
 * The target size of chunks that this run chose before; 0: none yet.
 */
uint64_t writer_target(struct writer *writer);

/**
 * writer_valid(writer, visit, context):
 * Visit the valid checkpoints, oldest commit first; ${resume} marks the
 * resume point.  Stops when ${visit} returns -1.  ${visit} must not call the
 * writer.  A manifest that the writer gave out stays alive while it is valid
 * and for the next four that are dropped after it (memory must not grow with
 * the number of commits): who needs it for longer copies what it needs.
 */
void writer_valid(struct writer *writer, int (*visit)(void *context,
    const struct manifest *manifest, bool adopted, bool resume),
    void *context);

/**
 * writer_begin(writer):
 * The number of a new attempt: growing, never used again.
 */
uint64_t writer_begin(struct writer *writer);

/* Where bytes are already. */
struct writer_place {
	char key[KEY_SIZE];
	uint64_t size;			/* of the chunk */
	uint8_t digest[SHA256_SIZE];	/* of the chunk */
	uint64_t offset;		/* of the bytes in it */
	bool whole;			/* they are the whole chunk */
};

/**
 * writer_find(writer, attempt, digest, length, place):
 * Whether ${length} bytes with SHA-256 ${digest} are stored where rule G2
 * lets ${attempt} use them: as a chunk, or as a part of one (an extent that a
 * valid manifest gives a digest).  Marks the chunk as in use by ${attempt}
 * until writer_commit or writer_end, so that it is not deleted meanwhile.
 */
bool writer_find(struct writer *writer, uint64_t attempt,
    const uint8_t digest[SHA256_SIZE], uint64_t length,
    struct writer_place *place);

/**
 * writer_chunk_key(writer, attempt, digest, key):
 * The key under which ${attempt} stores a new chunk.
 */
char *writer_chunk_key(struct writer *writer, uint64_t attempt,
    const uint8_t digest[SHA256_SIZE], char key[KEY_SIZE]);

/**
 * writer_stored(writer, attempt, digest, size):
 * That chunk's PUT was acknowledged.  Return 0, or -1 when out of memory.
 */
int writer_stored(struct writer *writer, uint64_t attempt,
    const uint8_t digest[SHA256_SIZE], uint64_t size);

/**
 * writer_end(writer, attempt):
 * ${attempt} is given up.  Its chunks stay known for the next one.  When its
 * manifest was sent already, they stay until a later one is durable: it may be
 * what readers see.
 */
void writer_end(struct writer *writer, uint64_t attempt);

/* What the directory looks like now, for retention and the resume point. */
struct writer_directory {
	const char *const *present;	/* names of checkpoints that lie there */
	size_t present_count;
	const char *const *pointed;	/* names that a pointer names */
	size_t pointed_count;
};

/**
 * writer_commit(writer, attempt, manifest, directory, deadline, error):
 * Steps C2 and C3: decides retention, fills in term, attempt, keeps, resume,
 * committed, nodes; PUTs the manifest; asks whether this term still counts.
 * Every chunk of ${manifest} must have come from writer_find or writer_stored.
 * The manifest's attempt is ${attempt}, or a newer number when another attempt
 * was committed meanwhile.
 * Return 0: durable, and ${manifest} is the writer's.  -1: ${manifest} is the
 * caller's; ERROR_SUPERSEDED (message says by whom); ERROR_NOT_DURABLE with
 * CAUSE_UNREACHABLE (the store did not answer: try again with the same
 * attempt and manifest) or "committed, takeover pending" at ${deadline}
 * (clock_monotonic; CLOCK_NEVER: none - then a dead starter is waited for 60 s
 * and the term is taken over anew and the commit made again).
 * A store that is weak never gives more than "committed, not provably
 * durable": still 0, see writer_is_weak.
 */
int writer_commit(struct writer *writer, uint64_t attempt,
    struct manifest *manifest, const struct writer_directory *directory,
    uint64_t deadline, struct error *error);

/**
 * writer_hurry(writer, when):
 * A deadline has begun (clock_monotonic; 0: there is none after all): a commit
 * that waits for another agent's start, and every later one, waits until then
 * at most and takes over nothing.  Any thread; takes effect within a second.
 */
void writer_hurry(struct writer *writer, uint64_t when);

/**
 * writer_known(writer, manifest):
 * The newest valid checkpoint of that name when its content is the same as
 * ${manifest}'s: it is durable already.  NULL otherwise.
 */
const struct manifest *writer_known(struct writer *writer,
    const struct manifest *manifest);

/**
 * writer_check(writer, error):
 * Ask again whether a newer open term exists (C3 alone).  0: still in charge;
 * -1: ERROR_SUPERSEDED, or CAUSE_UNREACHABLE.
 */
int writer_check(struct writer *writer, struct error *error);

/**
 * writer_is_weak(writer): whether the store is weak (nothing is ever deleted).
 */
bool writer_is_weak(struct writer *writer);

/**
 * writer_delete_due(writer, error):
 * Send the deletes whose delay is over (at most 1,000), planned by rules G1
 * and G4 right after the last durable commit.  Waits; a thread that may wait
 * calls it every few seconds.  Return how many were deleted, or -1.
 */
int writer_delete_due(struct writer *writer, struct error *error);

/**
 * writer_next_delete(writer):
 * When the next delete is due (clock_monotonic), CLOCK_NEVER: none.
 */
uint64_t writer_next_delete(struct writer *writer);

/**
 * writer_close(writer, facts, deadline, error):
 * Write close.json with how the term ended: ${facts} is an object of the
 * caller (outcome: "finished", "preempted", "superseded", ...), borrowed.
 * Return 0 or -1.
 */
int writer_close(struct writer *writer, json_t *facts, uint64_t deadline,
    struct error *error);

/**
 * writer_free(writer):
 * Behave consistently with free(NULL).  Sends nothing.
 */
void writer_free(struct writer *writer);

#endif
