#ifndef STORE_TERMS_H
#define STORE_TERMS_H

#include <stddef.h>
#include <stdint.h>

#include "store/key.h"

struct backend;
struct error;

/* The terms of a node that a LIST shows, lowest number first. */
struct terms {
	struct term *items;
	size_t count;
};

/**
 * terms_list(backend, node, terms, error):
 * Ask the store.  Return 0 and fill ${terms} (terms_free), or -1.
 */
int terms_list(struct backend *backend, uint32_t node, struct terms *terms,
    struct error *error);

/**
 * terms_free(terms):
 * Free what ${terms} holds, not itself; it may be freed twice.
 */
void terms_free(struct terms *terms);

#endif
