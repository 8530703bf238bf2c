#ifndef LIFE_LINK_H
#define LIFE_LINK_H

#include <jansson.h>

struct error;

/*
 * What the supervisor and the agent tell each other: one JSON object a
 * packet, over a pair of sockets that keep packets whole.
 *
 * Agent to supervisor:
 *	{"say": "term", "term": n, "random": hex, "opened": time}
 *	{"say": "ready", "restored": "/path" or ""}	start the trainer now
 *						(or "restored_b64", json.h)
 *	{"say": "notice", "left_ms": n}			a deadline has begun
 *	{"say": "withdrawn"}				there is none after all
 *	{"say": "signal", "signal": n}			to the trainer's process
 *	{"say": "stop"}					the stop signal now
 *	{"say": "end", "class": n}			before it ends by itself
 * Supervisor to agent:
 *	{"say": "trainer", "pid": n}			it was started
 *	{"say": "ended"}				it has ended: flush
 *	{"say": "notice", "left_ms": n}
 *	{"say": "give_up"}				end at once
 */

/**
 * link_pair(ends, error):
 * Make both ends, close-on-exec, non-blocking.  Return 0 or -1.
 */
int link_pair(int ends[2], struct error *error);

/**
 * link_send(fd, object):
 * Send ${object}; the reference is taken.  Return 0 or -1: when the other side
 * is gone, which its descriptor tells as well, or, with an error in the log,
 * when it could not be made (${object} may be NULL then) or sent.
 */
int link_send(int fd, json_t *object);

/**
 * link_say(fd, format, ...):
 * The same with what json_pack makes of the arguments, for words and numbers
 * of our own: what may not be UTF-8 needs json_set_name.
 */
int link_say(int fd, const char *format, ...);

/**
 * link_hear(fd, closed):
 * The next object (the caller json_decref()s it), or NULL: none now, or
 * *${closed} is set to 1 when the other side is gone.
 */
json_t *link_hear(int fd, int *closed);

#endif
