#ifndef STORE_OPENING_H
#define STORE_OPENING_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "store/key.h"
#include "store/manifest.h"

struct backend;
struct buffer;
struct error;

/* What an open.json says: a term exists, who opened it, what it adopted. */
struct opening {
	struct term term;
	uint32_t nodes;
	struct manifest_keep *adopted;	/* newest commit first */
	size_t adopted_count;
	char *resume;		/* key of the resume point; NULL: none */
	char *agent;		/* "host, time", for people */
	char *needs_writer;	/* as in struct manifest */
};

/**
 * opening_write(opening, identity, buffer, error):
 * The JSON of ${opening} (agent and needs_writer are not looked at) with
 * ${identity} (NULL: none) as the agent.  Return 0 or -1.
 */
int opening_write(const struct opening *opening, json_t *identity,
    struct buffer *buffer, struct error *error);

/**
 * opening_read(term, data, length, error):
 * The opening of ${term} in ${data}; NULL with ERROR_DAMAGED or
 * CAUSE_FEATURE.
 */
struct opening *opening_read(const struct term *term, const void *data,
    size_t length, struct error *error);

/**
 * opening_get(backend, term, error):
 * The same from the store; CAUSE_NOT_FOUND when ${term} is not open.
 */
struct opening *opening_get(struct backend *backend, const struct term *term,
    struct error *error);

/**
 * opening_free(opening):
 * Behave consistently with free(NULL).
 */
void opening_free(struct opening *opening);

#endif
