#ifndef TESTS_S3_SERVER_H
#define TESTS_S3_SERVER_H

#include <stddef.h>

/*
 * An HTTP server on a loopback port that plays a script: each request, on
 * whatever connection, takes the next step.  A request beyond the script
 * gets 418.  Every request is written down.
 */
struct server;

enum step_kind {
	STEP_ANSWER,	/* read all, answer, keep the connection */
	STEP_CLOSE,	/* answer, then close the connection */
	STEP_CUT,	/* send `cut` bytes of the body, then close */
	STEP_RESET,	/* send `cut` bytes of the body, then reset */
	STEP_STALL,	/* send `cut` bytes of the body, then nothing */
	STEP_DRIP,	/* send the body byte by byte, 15 ms apart */
	STEP_SILENT,	/* read all, never answer */
	STEP_DEAF,	/* read the head only, never answer */
	STEP_SLOW_READ	/* read the body 64 KiB each 20 ms, then answer */
};

struct step {
	enum step_kind kind;
	int status;		/* 0: 200 */
	const char *headers;	/* "Name: value\r\n"..., or NULL */
	const char *body;	/* NULL: "" */
	size_t cut;
};

/* What a client sent. */
struct seen {
	char method[16];
	char target[2048];
	char head[12288];	/* the whole head, lines ended by "\r\n" */
	char *body;		/* up to 1 MiB, NUL added */
	size_t body_length;
	unsigned connection;	/* numbered from 1 on */
};

/**
 * server_start(steps, count):
 * Listen and play; the steps are not copied.
 */
struct server *server_start(const struct step *steps, size_t count);

/**
 * server_stop(server):
 * Close all and free it.
 */
void server_stop(struct server *server);

/**
 * server_url(server):
 * "http://127.0.0.1:PORT", the server's.
 */
const char *server_url(const struct server *server);
int server_port(const struct server *server);

/**
 * server_count(server) / server_seen(server, index):
 * How many requests came; what one was (the test fails when it did not come).
 */
size_t server_count(struct server *server);
const struct seen *server_seen(struct server *server, size_t index);

/**
 * seen_header(seen, name, value, size):
 * Copy a header's value; "" when it was not sent.  Return ${value}.
 */
char *seen_header(const struct seen *seen, const char *name, char *value,
    size_t size);

/**
 * server_clean_environment():
 * No AWS variable, no proxy, no home: only what a test sets counts.
 */
void server_clean_environment(void);

#endif
