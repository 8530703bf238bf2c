#ifndef TESTS_NOTICE_MOCK_H
#define TESTS_NOTICE_MOCK_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A metadata server on a loopback port: what it answers to each path is set,
 * and changed while it runs, by the test.  (The S3 client's test server plays
 * one list of steps; here several paths are polled in an order that nobody
 * promises.)  A path that was not set is not found.
 *
 * A key is a method and a path without its query: "GET /latest/meta-data/".
 */
struct mock;

enum mock_kind {
	MOCK_ANSWER,
	MOCK_HOLD,	/* read the request, answer when the path is set anew */
	MOCK_RESET,	/* reset the connection instead of an answer */
	MOCK_CUT,	/* half of the body, then close */
	MOCK_DRIP	/* the head, then the body byte by byte, 20 ms apart */
};

struct mock_reply {
	enum mock_kind kind;
	int status;		/* 0: 200 */
	const char *headers;	/* "Name: value\r\n"..., or NULL */
	const char *body;	/* NULL: "" */
	const char *etag;	/* with it: a request that waits for a change
				 * from it is held until the path is set */
	const char *token;	/* a request without this is answered 401 */
};

struct mock_seen {
	char query[512];
	char head[4096];
	char body[1024];
	unsigned connection;	/* numbered from 1 on */
};

struct mock *mock_start(void);
void mock_stop(struct mock *mock);
const char *mock_url(const struct mock *mock);

/* The reply is copied, its strings are not. */
void mock_set(struct mock *mock, const char *key, struct mock_reply reply);

/* How many requests came; how many are answered to their end. */
size_t mock_count(struct mock *mock, const char *key);
size_t mock_answered(struct mock *mock, const char *key);
size_t mock_total(struct mock *mock);
unsigned mock_connections(struct mock *mock);

/* Wait, in real time, for a number of requests; the test fails after 30 s. */
void mock_wait(struct mock *mock, const char *key, size_t count);
void mock_wait_answered(struct mock *mock, const char *key, size_t count);

/* Wait until every request that came is answered, or held; at most 30 s. */
void mock_wait_idle(struct mock *mock);

/* The newest request of ${key}; the test fails when there was none. */
struct mock_seen mock_seen(struct mock *mock, const char *key);

#endif
