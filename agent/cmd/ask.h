#ifndef CMD_ASK_H
#define CMD_ASK_H

#include <jansson.h>

struct error;
struct options;

/*
 * Ask the agents that the user means: the one of DIR or --socket
 * (CKPTSYNC_DIR, CKPTSYNC_SOCKET), else all of this user.
 */

/* What one agent answered. */
struct ask_answer {
	const char *socket;
	const json_t *end;	/* as in life/control.h */
	int class;		/* enum error_class */
	const char *message;
};

/**
 * ask_agents(options, request, heard, context, failure):
 * Send ${request} to each and call ${heard} (may be NULL) with its answer.
 * What cannot be asked is said on standard error.  Return the exit code: 0, or
 * the highest class that an agent answered; ERROR_NO_AGENT when there is none.
 * ${failure} (cleared first) is the last thing that was said.
 */
int ask_agents(const struct options *options, const json_t *request,
    void (*heard)(void *context, const struct ask_answer *answer),
    void *context, struct error *failure);

/**
 * ask_report(options, request):
 * The same, saying on standard error what failed and, with --json, printing
 * {"class": exit code, "agents": [{"socket", "class"}, ...]}.  Takes the
 * reference to ${request}; NULL is ERROR_FAILED.
 */
int ask_report(const struct options *options, json_t *request);

#endif
