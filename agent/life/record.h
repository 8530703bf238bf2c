#ifndef LIFE_RECORD_H
#define LIFE_RECORD_H

#include <jansson.h>
#include <stdint.h>

struct error;
struct settings;

/*
 * The environment record, gathered once on a thread of its own: its commands
 * may take long (`pip freeze`, nvidia-smi).
 */
struct record;

/**
 * record_start(settings, error): begin; ${settings} must outlive it.
 */
struct record *record_start(const struct settings *settings,
    struct error *error);

/**
 * record_get(record):
 * The record (a new reference), waiting for it unless record_hurry was called;
 * NULL when there is none.  Any thread.
 */
json_t *record_get(struct record *record);

/**
 * record_hurry(record): let nobody wait for it any more.  Any thread.
 */
void record_hurry(struct record *record);

/**
 * record_stop(record, until):
 * Free all, waiting until ${until}.  Return 0, or -1 when its thread still
 * runs.  NULL is fine.
 */
int record_stop(struct record *record, uint64_t until);

#endif
