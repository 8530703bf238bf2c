#ifndef LIFE_CONTROL_H
#define LIFE_CONTROL_H

#include <jansson.h>

struct error;
struct loop;

/*
 * The control socket: how other commands of the same user talk to the agent
 * of a directory.  One JSON object a line.  A request is {"request": word,
 * ...}; the answer is any number of objects with an "event", the last of which
 * is
 *
 *	{"event": "end", "class": exit code, "message": text}
 *
 * after which the agent closes the connection.  Requests of this version:
 * "hello" (its end has "pid", "mode", "remote" and "phase"), "push" (with
 * "remote", which must be the agent's; events as report.h says), "flush" (the
 * same; "timeout_ms" may bound it), "notice" ("left_ms", "reason") and
 * "status" (its end has what agent_status.c says).
 */

#define CONTROL_LINE_MAXIMUM 65536

struct control;
struct control_client;

struct control_handler {
	/* A request came from ${client}; it is answered now or later. */
	void (*request)(void *context, struct control_client *client,
	    const char *word, const json_t *request);
	/* ${client} is gone or ended: forget it. */
	void (*gone)(void *context, struct control_client *client);
	void *context;
};

/**
 * control_check(path, error):
 * Whether the socket may be made at ${path}, for one who holds the directory's
 * lock: nothing lies there, or a socket of this user on which nobody listens.
 * Return 0, or -1 with ERROR_USAGE.
 */
int control_check(const char *path, struct error *error);

/**
 * control_new(loop, path, handler, error):
 * Listen on ${path}, replacing what a dead agent left there; the caller holds
 * the directory's lock.  Only the same user (and root) is heard.  Runs in
 * ${loop}.  NULL on failure, also when control_check refuses ${path}.
 */
struct control *control_new(struct loop *loop, const char *path,
    const struct control_handler *handler, struct error *error);

/**
 * control_send(client, object):
 * Send one event; the reference to ${object} is taken.  A client that does not
 * read loses events, never the end.
 */
void control_send(struct control_client *client, json_t *object);

/**
 * control_end(client, class, message, more):
 * Send the end, with the fields of ${more} (a reference that is taken; may be
 * NULL), and close.
 */
void control_end(struct control_client *client, int class,
    const char *message, json_t *more);

/**
 * control_free(control): close all.  Behave consistently with free(NULL).
 */
void control_free(struct control *control);

/**
 * control_ask(path, request, visit, context, error):
 * The other side: send ${request} to the agent that listens on ${path}, call
 * ${visit} (may be NULL) with each event, and return the end's object (the
 * caller json_decref()s it).  Waits; an agent says something every second.
 * NULL with ERROR_NO_AGENT when nobody listens or the agent ended before it
 * had answered, else ERROR_FAILED.
 */
json_t *control_ask(const char *path, const json_t *request,
    void (*visit)(void *context, const json_t *event), void *context,
    struct error *error);

#endif
