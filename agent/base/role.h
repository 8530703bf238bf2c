#ifndef BASE_ROLE_H
#define BASE_ROLE_H

/* What a checkpoint is for. */
enum role {
	ROLE_RESUME,	/* a trainer goes on from it */
	ROLE_BEST,	/* the best so far by some measure */
	ROLE_FINAL	/* the end of a training */
};

/**
 * role_text(role):
 * "resume", "best" or "final".
 */
const char *role_text(enum role role);

/**
 * role_parse(text, role):
 * The other way round.  Return 0, or -1 for another word.
 */
int role_parse(const char *text, enum role *role);

#endif
