#ifndef S3_ORIGIN_H
#define S3_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>

struct error;
struct keys;
struct profile;
struct s3_config;

/*
 * Where keys come from: the order is told in credentials.h.
 */
struct origin;

/**
 * origin_find(config, profile, region, ca_bundle, error):
 * Find the source without asking it.  NULL with ERROR_USAGE.  ${profile} must
 * outlive it.
 */
struct origin *origin_find(const struct s3_config *config,
    const struct profile *profile, const char *region, const char *ca_bundle,
    struct error *error);

/**
 * origin_is_fixed(origin):
 * Whether asking again can never give other keys (the environment).
 */
bool origin_is_fixed(const struct origin *origin);

/**
 * origin_fetch(origin, keys, error):
 * Ask the source.  May take seconds.  One thread at a time.  Return 0, or -1:
 * CAUSE_UNREACHABLE when asking later may help.
 */
int origin_fetch(struct origin *origin, struct keys *keys,
    struct error *error);

/**
 * origin_stop(origin):
 * Make a running origin_fetch end soon.  Any thread.
 */
void origin_stop(struct origin *origin);

/**
 * origin_text(origin):
 * The source, for people.
 */
const char *origin_text(const struct origin *origin);

/**
 * origin_free(origin):
 * Behave consistently with free(NULL).
 */
void origin_free(struct origin *origin);

#endif
