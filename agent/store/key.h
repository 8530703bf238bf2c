#ifndef STORE_KEY_H
#define STORE_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"

/*
 * The keys of format 1 (DESIGN 4), relative to the remote.  They use only
 * [a-z0-9/.-].
 *
 *	ckptsync.json
 *	node-0000/term-00000003-9f2c5d1e0a7b4c68/claim
 *	node-0000/term-00000003-9f2c5d1e0a7b4c68/open.json
 *	node-0000/term-.../chunks/<attempt, 10 digits>/<sha256>
 *	node-0000/term-.../checkpoints/<attempt>-<sha256 of the manifest>.json
 *	node-0000/term-.../close.json
 */

#define KEY_SIZE 256		/* room for every key and its NUL */
#define KEY_FORMAT "ckptsync.json"
#define KEY_NODE_MAXIMUM 9999
#define KEY_TERM_MAXIMUM 99999999
#define KEY_ATTEMPT_MAXIMUM UINT64_C(9999999999)

/* One agent's time as the writer of a node. */
struct term {
	uint32_t node;
	uint32_t number;	/* from 1 */
	uint64_t random;
};

/**
 * term_same(a, b): whether both are the same term.
 */
bool term_same(const struct term *a, const struct term *b);

/**
 * key_node(node, key): "node-0000/".
 * key_term(term, key): "node-0000/term-00000003-9f2c5d1e0a7b4c68/".
 * key_term_object(term, name, key): the same and ${name} ("claim").
 * key_chunk(term, attempt, digest, key): a chunk.
 * key_manifest(term, attempt, digest, key): a manifest.
 * Each writes ${key} and returns it.
 */
char *key_node(uint32_t node, char key[KEY_SIZE]);
char *key_term(const struct term *term, char key[KEY_SIZE]);
char *key_term_object(const struct term *term, const char *name,
    char key[KEY_SIZE]);
char *key_chunk(const struct term *term, uint64_t attempt,
    const uint8_t digest[SHA256_SIZE], char key[KEY_SIZE]);
char *key_manifest(const struct term *term, uint64_t attempt,
    const uint8_t digest[SHA256_SIZE], char key[KEY_SIZE]);

enum key_kind {
	KEY_OTHER,	/* not one of ours: left alone, always */
	KEY_TERM,	/* "node-0000/term-.../", a folded listing's line */
	KEY_CLAIM, KEY_OPEN, KEY_CHUNK, KEY_MANIFEST, KEY_CLOSE
};

struct key_parts {
	enum key_kind kind;
	struct term term;
	uint64_t attempt;		/* KEY_CHUNK, KEY_MANIFEST */
	uint8_t digest[SHA256_SIZE];	/* KEY_CHUNK, KEY_MANIFEST */
};

/**
 * key_parse(key, parts):
 * Take ${key} apart; anything that is not written exactly as above is
 * KEY_OTHER.
 */
void key_parse(const char *key, struct key_parts *parts);

#endif
