#ifndef S3_IDENTITY_H
#define S3_IDENTITY_H

#include <stdatomic.h>
#include <stdbool.h>

struct error;
struct keys;
struct profile;

/*
 * Web identity (EKS service accounts and others): a token in a file is
 * exchanged for keys by STS AssumeRoleWithWebIdentity, a request that is not
 * signed.  AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN, AWS_ROLE_SESSION_NAME,
 * else the profile's web_identity_token_file, role_arn, role_session_name.
 * STS's address: AWS_ENDPOINT_URL_STS and what follows it, else the region's.
 */
struct identity;

/**
 * identity_configured(profile):
 * Whether environment (${profile} NULL) or profile name token file and role.
 */
bool identity_configured(const struct profile *profile);

/**
 * identity_new(from, profile, region, ca_bundle, stop, error):
 * ${from} NULL: from the environment, else from that profile; ${profile}
 * gives STS's address in both cases.  All is copied.  NULL with ERROR_USAGE.
 */
struct identity *identity_new(const struct profile *from,
    const struct profile *profile, const char *region, const char *ca_bundle,
    const atomic_bool *stop, struct error *error);

/**
 * identity_fetch(identity, keys, error):
 * Read the token file and ask STS: one try of at most 10 s.
 */
int identity_fetch(struct identity *identity, struct keys *keys,
    struct error *error);

/**
 * identity_free(identity):
 * Behave consistently with free(NULL).
 */
void identity_free(struct identity *identity);

#endif
