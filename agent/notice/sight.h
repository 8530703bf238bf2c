#ifndef NOTICE_SIGHT_H
#define NOTICE_SIGHT_H

#include <stdbool.h>
#include <stdint.h>

struct error;
struct outbox;

/*
 * Whether notices can be seen from here: said when it changes, a cause of
 * blindness not again within ten minutes.  One thread.
 */
struct sight;

struct sight *sight_new(struct outbox *outbox, struct error *error);

/**
 * sight_name(sight, source, patience):
 * Who is asked from now on ("aws"; ${source} must stay), and how long failures
 * of somebody who has answered before must last until they are told.
 */
void sight_name(struct sight *sight, const char *source, uint64_t patience);

/**
 * sight_works(sight):
 * An answer came that a notice would stand in.
 */
void sight_works(struct sight *sight);

/**
 * sight_fails(sight, cause, certain, error):
 * None came, for ${cause}: one fixed word.  Where nothing was ever seen it is
 * told after 3 s of failures, or at once when ${certain}: not a thing that
 * passes by itself.
 */
void sight_fails(struct sight *sight, const char *cause, bool certain,
    const struct error *error);

/**
 * sight_ever(sight):
 * Whether it ever worked.
 */
bool sight_ever(const struct sight *sight);

/**
 * sight_free(sight):
 * Behave consistently with free(NULL).
 */
void sight_free(struct sight *sight);

#endif
