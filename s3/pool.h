#ifndef S3_POOL_H
#define S3_POOL_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

struct call;
struct error;
struct s3_request;

/*
 * How calls come to the transfer threads: each thread has a seat with a
 * capacity; a call goes to the seat with the least work, and waits in line
 * when all are full.  Any thread may call these functions.
 */
struct pool;

/**
 * pool_new(seats, connections, error):
 * ${connections} spread evenly over ${seats} (each gets at least one).
 */
struct pool *pool_new(unsigned seats, unsigned connections,
    struct error *error);

/**
 * pool_free(pool):
 * After pool_close and the end of the threads.  Behave consistently with
 * free(NULL).
 */
void pool_free(struct pool *pool);

/**
 * pool_seat(pool, seat, multi):
 * Who sits there is woken by curl_multi_wakeup(${multi}).  Before any submit.
 */
void pool_seat(struct pool *pool, unsigned seat, CURLM *multi);

/**
 * pool_capacity(pool, seat):
 * How many calls the seat has at once.
 */
unsigned pool_capacity(const struct pool *pool, unsigned seat);

/**
 * pool_submit(pool, call):
 * Hand a call over.  It is finished with CAUSE_CANCELLED at once when the
 * pool is closed.
 */
void pool_submit(struct pool *pool, struct call *call);

/**
 * pool_take(pool, seat):
 * The next call for a seat, or NULL.
 */
struct call *pool_take(struct pool *pool, unsigned seat);

/**
 * pool_finish(pool, call, seated):
 * The call is over: call the request's `done`, free the call, and, when it
 * was ${seated}, give its place to another.
 */
void pool_finish(struct pool *pool, struct call *call, bool seated);

/**
 * pool_take_overdue(pool, now):
 * A call that waits in line beyond its deadline, taken out of it; or NULL.
 */
struct call *pool_take_overdue(struct pool *pool, uint64_t now);

/**
 * pool_cancel(pool, request):
 * Cancel the call of ${request}, if it still has one.
 */
void pool_cancel(struct pool *pool, struct s3_request *request);

/**
 * pool_wake(pool):
 * Wake every seat.
 */
void pool_wake(struct pool *pool);

/**
 * pool_close(pool) / pool_is_closed(pool):
 * Take nothing more and let the threads cancel what they have.
 */
void pool_close(struct pool *pool);
bool pool_is_closed(struct pool *pool);

/**
 * pool_drain(pool):
 * Cancel all that still waits; when the threads have ended.
 */
void pool_drain(struct pool *pool);

#endif
