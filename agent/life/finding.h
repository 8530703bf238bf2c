#ifndef LIFE_FINDING_H
#define LIFE_FINDING_H

#include <jansson.h>

struct error;

/*
 * What one check of `doctor` found.
 */
enum finding_state {
	FINDING_OK,
	FINDING_HINT,		/* works, but a user should know it */
	FINDING_WRONG,		/* a promise of ours will not hold here, and
				 * something can be done about it */
	FINDING_LEFT_OUT	/* could not be checked; the message says why */
};

struct finding {
	enum finding_state state;
	const char *check;	/* a fixed word: "clock" */
	char message[704];
	char cure[384];		/* what to do; may be empty */
	json_t *facts;		/* the numbers behind it, or NULL */
};

#define FINDING_INIT { .state = FINDING_OK }

/**
 * finding_set(finding, state, check, format, ...):
 * Fill ${finding} (initialised) anew, without cure and facts.  Control
 * characters are replaced.
 */
void finding_set(struct finding *finding, enum finding_state state,
    const char *check, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/**
 * finding_add(finding, format, ...): more of the message.
 * finding_cure(finding, format, ...): what to do.
 */
void finding_add(struct finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void finding_cure(struct finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/**
 * finding_fail(finding, state, check, error):
 * Fill it with what ${error} says and its cure.
 */
void finding_fail(struct finding *finding, enum finding_state state,
    const char *check, const struct error *error);

/**
 * finding_fact(finding, name, value):
 * Add a fact; ${value} is taken.  What does not fit into memory is missing.
 */
void finding_fact(struct finding *finding, const char *name, json_t *value);

/**
 * finding_state_text(state): "ok", "hint", "wrong", "left out".
 */
const char *finding_state_text(enum finding_state state);

/**
 * finding_free(finding): give back its facts.
 */
void finding_free(struct finding *finding);

#endif
