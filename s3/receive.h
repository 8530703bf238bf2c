#ifndef S3_RECEIVE_H
#define S3_RECEIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exchange;
struct error;

/*
 * The body of an answer: an object's bytes go to the sink, checked against
 * what was asked for; everything else is kept for later.
 */

/**
 * receive_is_paced(attempt):
 * Whether the body is an object's, which the request's rate holds back.
 */
bool receive_is_paced(const struct exchange *exchange);

/**
 * receive_bytes(attempt, data, length):
 * Take in the next bytes.  -1: end the transfer (exchange->local says why, if
 * it is not the server's fault).
 */
int receive_bytes(struct exchange *exchange, const void *data, size_t length);

/**
 * receive_end(attempt, error):
 * After the last byte of a GET that succeeded: whether all came that was
 * asked for; fills the request's size.  Return 0, or -1.
 */
int receive_end(struct exchange *exchange, struct error *error);

#endif
