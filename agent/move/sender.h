#ifndef MOVE_SENDER_H
#define MOVE_SENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"
#include "base/source.h"
#include "store/manifest.h"

struct error;
struct upload;

/*
 * The sending half of an upload: takes pieces with their hashes, finds what
 * is stored already or was seen before in this upload, and stores the rest.
 * A large piece is a chunk; small ones share chunks.  One thread.
 */
struct sender;

/* Small pieces gather in two lanes, so that a companion that changes while it
 * is read spoils no chunk of the checkpoint. */
enum sender_lane { SENDER_CHECKPOINT, SENDER_COMPANIONS };
#define SENDER_LANES 2

struct sender_piece {
	enum sender_lane lane;
	const struct source *source;	/* where to read it again; outlives the sender */
	uint64_t offset;		/* in the source */
	uint64_t length;		/* > 0 */
	const void *data;		/* small: its bytes; NULL: it is large */
	uint8_t digest[SHA256_SIZE];
	bool counts;			/* in upload->progress */
};

/* Where the bytes of one file lie; `chunk` is a number of the sender's until
 * sender_chunks. */
struct sender_extents {
	struct manifest_extent *all;
	size_t count;
	size_t capacity;
};

/**
 * sender_new(upload, attempt, target, error):
 * For chunks of ${target} bytes.  ${upload} must outlive it.  NULL on errors.
 */
struct sender *sender_new(struct upload *upload, uint64_t attempt,
    uint64_t target, struct error *error);

/**
 * sender_check(sender, error):
 * -1 when it should go no further: a request failed, cancel, deadline.
 */
int sender_check(struct sender *sender, struct error *error);

/**
 * sender_add(sender, piece, extents, error):
 * Take the next piece of a file and add its place to ${extents}; waits while
 * too many requests are on their way.  Return 0 or -1.
 */
int sender_add(struct sender *sender, const struct sender_piece *piece,
    struct sender_extents *extents, struct error *error);

/**
 * sender_flush(sender, lane, error):
 * Store the small pieces of ${lane} that still wait for company.
 */
int sender_flush(struct sender *sender, enum sender_lane lane,
    struct error *error);

/**
 * sender_wait(sender, error):
 * Wait until everything is stored.  -1: CAUSE_CHANGED when the store refused
 * bytes because they changed on the way, ...
 */
int sender_wait(struct sender *sender, struct error *error);

/**
 * sender_is_fresh(sender):
 * Whether anything of the checkpoint had to be stored.
 */
bool sender_is_fresh(const struct sender *sender);

/**
 * sender_lost(sender, extents):
 * Whether these bytes are not stored after all (companions only).
 */
bool sender_lost(const struct sender *sender,
    const struct sender_extents *extents);

/**
 * sender_totals(sender, stored, reused):
 * Bytes stored, and bytes of the checkpoint that were there already.
 */
void sender_totals(const struct sender *sender, uint64_t *stored,
    uint64_t *reused);

/**
 * sender_chunks(sender, manifest, error):
 * Give ${manifest}, whose extents have the sender's numbers, its chunk table:
 * every chunk that is named, once, numbered anew.  Return 0 or -1.
 */
int sender_chunks(const struct sender *sender, struct manifest *manifest,
    struct error *error);

/**
 * sender_end(sender, cancel):
 * Wait until all requests have ended, having cancelled them when ${cancel}.
 */
void sender_end(struct sender *sender, bool cancel);

/**
 * sender_free(sender):
 * Nothing may be on its way.  Behave consistently with free(NULL).
 */
void sender_free(struct sender *sender);

#endif
