#ifndef STORE_REMOTE_H
#define STORE_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "s3/client.h"

struct backend;
struct error;

/*
 * The place of one training run: `s3://bucket/prefix` or `file:///path`.
 */

enum remote_strength { REMOTE_STRENGTH_AUTO, REMOTE_WEAK, REMOTE_STRONG };

/* How to reach it; NULL or 0: the default. */
struct remote_options {
	const char *endpoint_url;
	const char *region;
	const char *profile;
	const char *ca_bundle;
	enum s3_addressing addressing;
	enum remote_strength strength;	/* --store weak|strong */
	unsigned connections;
	uint64_t give_up_after;		/* one request, all attempts; ns */
	uint64_t answer_within;		/* s3/client.h */
	bool trace;
};

/**
 * remote_is_url(text):
 * Whether ${text} is meant as a remote: it holds "://".
 */
bool remote_is_url(const char *text);

/**
 * remote_open(url, options, create, error):
 * The backend behind ${url}, or NULL with ERROR_USAGE for a wrong one.  With
 * ${create} a file:// directory that is missing is made; without, it is
 * ERROR_NOTHING with CAUSE_NOT_FOUND.  FUSE object mounts under file:// are refused, NFS with
 * `nocto` or attribute caching over 3 s is weak.  Nothing is sent yet.
 */
struct backend *remote_open(const char *url,
    const struct remote_options *options, bool create, struct error *error);

/**
 * remote_mark(backend, error):
 * Make sure that ckptsync.json is there, writing it when it is missing, and
 * that its format is ours: ERROR_FAILED with CAUSE_FEATURE otherwise.
 * Writers call it before anything else.
 */
int remote_mark(struct backend *backend, struct error *error);

/**
 * remote_check(backend, error):
 * The same for readers: missing is fine (nothing there yet).
 */
int remote_check(struct backend *backend, struct error *error);

#endif
