#ifndef STORE_MANIFEST_H
#define STORE_MANIFEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/role.h"
#include "base/sha256.h"
#include "store/key.h"

struct buffer;
struct error;

/*
 * One JSON object that describes a checkpoint whole; writing it is the commit
 * (DESIGN 4).  It is self-contained.  man 5 ckptsync-format documents it.
 */

#define MANIFEST_SIZE_MAXIMUM (UINT64_C(64) << 20)
#define MANIFEST_FORMAT 1

enum manifest_kind { MANIFEST_FILE, MANIFEST_FOLDER, MANIFEST_LINK,
    MANIFEST_HARD_LINK };

/* Bytes of a file that lie in one chunk. */
struct manifest_extent {
	uint32_t chunk;		/* index into chunks */
	uint64_t offset;	/* in the chunk's raw bytes */
	uint64_t length;
	bool has_digest;	/* digest is the SHA-256 of these bytes alone: */
	uint8_t digest[SHA256_SIZE];	/* set when they are not the whole chunk */
};

struct manifest_entry {
	enum manifest_kind kind;
	char *path;		/* relative to the directory, harmless */
	mode_t mode;		/* permission bits, FILE and FOLDER */
	struct timespec modified;
	char *target;		/* LINK: what it says; HARD_LINK: path of an
				 * earlier FILE entry of the same list */
	uint64_t size;		/* FILE */
	struct manifest_extent *extents;	/* they tile [0, size) in order */
	size_t extent_count;
};

struct manifest_chunk {
	char *key;		/* whole key; may lie in an older term */
	uint64_t size;		/* stored */
	uint8_t digest[SHA256_SIZE];	/* of the stored bytes; also in the key */
	/* codec is reserved: only "none" is written and read by format 1. */
};

struct manifest_record {
	uint32_t entry;		/* index into entries */
	char *name;
	uint64_t offset;	/* in the file */
	uint64_t length;
};

/* A checkpoint that stays valid beside this one. */
struct manifest_keep {
	char *key;		/* of its manifest */
	char *name;		/* its checkpoint's name, for people */
};

struct manifest {
	/* What and from whom. */
	char *name;
	char *series;
	char *layout;
	enum role role;
	bool has_step;
	uint64_t step;
	bool proven;
	char *reason;		/* why it was held complete */
	struct timespec completed;	/* last change, by its machine's clock */
	struct timespec committed;	/* when this was written, same clock */
	struct term term;	/* the node too */
	uint64_t attempt;
	uint32_t nodes;
	uint64_t save_attempt;	/* the save it belongs to: start of the job */
	uint64_t target;	/* target size of chunks, kept for the run */

	/* What is in it. */
	struct manifest_entry *entries;
	size_t entry_count;
	struct manifest_chunk *chunks;	/* all that is named below, once each */
	size_t chunk_count;
	struct manifest_record *records;
	size_t record_count;
	uint64_t size;		/* bytes in files, hard links once */
	uint64_t new_size;	/* bytes stored for it */

	/* As they were when it was committed. */
	struct manifest_entry *companions;
	size_t companion_count;
	struct manifest_entry *pointers;
	size_t pointer_count;

	/* The truth (DESIGN 5). */
	struct manifest_keep *keeps;	/* never names itself */
	size_t keep_count;
	char *resume;		/* key of the resume point's manifest; NULL: none;
				 * "" : this one */

	json_t *environment;	/* object, or NULL */

	char *needs_writer;	/* a feature that a writer must know and that we
				 * do not: no claim, no delete; NULL: none */

	/* Not in the JSON: where it was read from or written to. */
	char *key;
	uint8_t digest[SHA256_SIZE];
};

/**
 * manifest_new():
 * An empty manifest, or NULL when out of memory.
 */
struct manifest *manifest_new(void);

/**
 * manifest_write(manifest, buffer, error):
 * Its JSON into ${buffer} (compact, keys in a fixed order).  ERROR_FAILED with
 * CAUSE_LIMIT when it is over MANIFEST_SIZE_MAXIMUM; ERROR_DAMAGED when
 * manifest_read would refuse it.  Return 0 or -1.
 */
int manifest_write(const struct manifest *manifest, struct buffer *buffer,
    struct error *error);

/**
 * manifest_read(key, data, length, error):
 * The manifest in ${data}, which came from ${key}: checks the digest in the
 * key, every length, that extents tile each file exactly and lie in their
 * chunks, that paths are harmless, distinct and never beneath a link or a
 * file of the same manifest, link targets stay inside the directory, keys are
 * ours, and features.  NULL with ERROR_DAMAGED (or CAUSE_FEATURE, naming it).
 */
struct manifest *manifest_read(const char *key, const void *data,
    size_t length, struct error *error);

/**
 * manifest_same_content(a, b):
 * Whether both describe the same name with the same files, bytes, links and
 * modes (not times): then committing b after a says nothing new.
 */
bool manifest_same_content(const struct manifest *a, const struct manifest *b);

/**
 * manifest_id(manifest, text):
 * The id that people see in `list`: node, term number and attempt, "3-17" or
 * "n2-3-17" for another node than 0.  Return ${text}.
 */
#define MANIFEST_ID_SIZE 48
char *manifest_id(const struct manifest *manifest, char text[MANIFEST_ID_SIZE]);

/**
 * manifest_free(manifest):
 * Behave consistently with free(NULL).
 */
void manifest_free(struct manifest *manifest);

#endif
