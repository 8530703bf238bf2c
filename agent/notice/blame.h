#ifndef NOTICE_BLAME_H
#define NOTICE_BLAME_H

struct request;
struct sight;

/*
 * What it means that a metadata server did not answer as it should, and what
 * to do about it.
 */

/**
 * blame_request(sight, request):
 * Tell ${sight} why ${request}, which is done, brought no notice: no answer,
 * a blocked route, a status that says no, an answer of somebody else.
 */
void blame_request(struct sight *sight, const struct request *request);

/**
 * blame_garbled(sight, address):
 * Tell ${sight} that what ${address} answers is not what it should be.
 */
void blame_garbled(struct sight *sight, const char *address);

#endif
