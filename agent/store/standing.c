#include "store/standing.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/opening.h"
#include "store/terms.h"

#define ASK_EVERY CLOCK_SECOND

enum standing
standing_look(struct backend *backend, const struct term *term,
    struct term *claim, struct opening **newer, struct error *error)
{
	enum standing standing = STANDING_CLEAR;
	struct terms terms;
	size_t i;

	*newer = NULL;
	if (terms_list(backend, term->node, &terms, error) != 0)
		return STANDING_FAILED;
	for (i = terms.count; i > 0 && standing != STANDING_SUPERSEDED; i--) {
		const struct term *other = &terms.items[i - 1];

		if (other->number <= term->number)
			break;
		*newer = opening_get(backend, other, error);
		if (*newer != NULL || error->class == ERROR_DAMAGED ||
		    error->cause == CAUSE_FEATURE) {
			standing = STANDING_SUPERSEDED;
		} else if (error->cause != CAUSE_NOT_FOUND) {
			standing = STANDING_FAILED;
			break;
		} else if (standing == STANDING_CLEAR) {
			standing = STANDING_CLAIMED;
			*claim = *other;
		}
	}
	terms_free(&terms);
	return standing;
}

enum standing
standing_wait(struct backend *backend, const struct term *term,
    uint64_t deadline, const _Atomic uint64_t *hurry, uint64_t dead_after,
    struct opening **newer, struct error *error)
{
	struct term claim, known = { 0 };
	uint64_t since = 0, now, pause, sooner;
	enum standing standing;

	for (;;) {
		standing = standing_look(backend, term, &claim, newer, error);
		if (standing != STANDING_CLAIMED)
			return standing;
		now = clock_monotonic();
		if (!term_same(&claim, &known)) {
			known = claim;
			since = now;
		}
		sooner = hurry == NULL ? 0 : atomic_load(hurry);
		if (sooner != 0 && sooner < deadline)
			deadline = sooner;
		if (sooner == 0 && dead_after != CLOCK_NEVER && now - since >= dead_after)
			return STANDING_DEAD;
		if (now >= deadline)
			return STANDING_CLAIMED;
		pause = deadline - now;
		clock_sleep(pause < ASK_EVERY ? pause : ASK_EVERY);
	}
}

int
standing_say(const struct opening *newer, struct error *error)
{
	if (newer == NULL)
		return error_set(error, ERROR_SUPERSEDED, CAUSE_OTHER, NULL,
		    "a newer agent, whose open.json cannot be read, took over");
	error_set(error, ERROR_SUPERSEDED, CAUSE_OTHER, NULL,
	    "a newer agent took over: %s (term %" PRIu32 ")", newer->agent,
	    newer->term.number);
	return error_cure(error, "one agent per run and node: stop the other "
	    "one, then start this one again");
}
