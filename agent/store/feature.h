#ifndef STORE_FEATURE_H
#define STORE_FEATURE_H

#include <jansson.h>

struct error;

/*
 * What a reader or a writer must know to use an object (DESIGN 4): the lists
 * `needs_reader` and `needs_writer`.  Format 1 knows no feature yet.
 */

/**
 * feature_write(object):
 * Set both lists, empty.  Return 0 or -1 when out of memory.
 */
int feature_write(json_t *object);

/**
 * feature_unknown(object, field):
 * The first feature in the list ${field} ("needs_reader", "needs_writer") that
 * this ckptsync does not know, still the object's; NULL: none.  A list that is
 * missing is empty; one that is none counts as the unknown feature "?".
 */
const char *feature_unknown(const json_t *object, const char *field);

/**
 * feature_refuse(name, feature, error):
 * Fill ${error}: the object ${name} needs ${feature}, CAUSE_FEATURE.
 * Return -1.
 */
int feature_refuse(const char *name, const char *feature,
    struct error *error);

#endif
