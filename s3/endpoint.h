#ifndef S3_ENDPOINT_H
#define S3_ENDPOINT_H

#include <stdbool.h>

#include "s3/client.h"
#include "s3/url.h"

struct buffer;
struct error;
struct profile;

/*
 * Which server, which region, and where the bucket's name goes.
 *
 * The address, first found counts: config.endpoint_url, AWS_ENDPOINT_URL_S3,
 * AWS_ENDPOINT_URL, `endpoint_url` below `s3 =` in the profile's services
 * section, the profile's `endpoint_url`; then Amazon's own for the region
 * (with AWS_USE_DUALSTACK_ENDPOINT, AWS_USE_FIPS_ENDPOINT or the profile's
 * use_dualstack_endpoint, use_fips_endpoint).  All but the first are passed
 * over when AWS_IGNORE_CONFIGURED_ENDPOINT_URLS (or the profile's
 * ignore_configured_endpoint_urls) is true.
 *
 * The region: config.region, AWS_REGION, AWS_DEFAULT_REGION, the profile's
 * `region`; else "auto" for Cloudflare R2, the host's first label on
 * aliyuncs.com, "us-east-1" elsewhere (S3 says when it is another one).
 *
 * The addressing: config.addressing, the profile's `addressing_style` below
 * `s3 =`, else `auto`: BUCKET.HOST at Amazon's own address and at hosts that
 * are known to refuse the other style (aliyuncs.com, cwobject.com,
 * cwlota.com); HOST/BUCKET at every other address; and always HOST/BUCKET
 * when the bucket's name cannot be a host's, or has a dot and the connection
 * uses TLS (a certificate's wildcard stands for one label).
 */

#define ENDPOINT_REGION_SIZE 64
#define ENDPOINT_HOST_SIZE 600

struct endpoint {
	bool custom;		/* not one of Amazon's for the region */
	struct url url;		/* when custom */
	bool dualstack;
	bool fips;
	bool virtual_host;
	char bucket[256];
	char region[ENDPOINT_REGION_SIZE];	/* to begin with */
};

/**
 * endpoint_resolve(config, profile, endpoint, error):
 * Find all that out.  Return 0, or -1 with ERROR_USAGE.
 */
int endpoint_resolve(const struct s3_config *config,
    const struct profile *profile, struct endpoint *endpoint,
    struct error *error);

/**
 * endpoint_host(endpoint, region, host):
 * Write the `Host` header's value, with the port if it is not the usual one,
 * and return ${host}.
 */
char *endpoint_host(const struct endpoint *endpoint, const char *region,
    char host[ENDPOINT_HOST_SIZE]);

/**
 * endpoint_path(endpoint, key, buffer, error):
 * Add the encoded path of ${key} ("": of the bucket) to ${buffer}.
 */
int endpoint_path(const struct endpoint *endpoint, const char *key,
    struct buffer *buffer, struct error *error);

/**
 * endpoint_scheme(endpoint):
 * "http" or "https".
 */
const char *endpoint_scheme(const struct endpoint *endpoint);

/**
 * endpoint_region_is_plain(region):
 * Whether ${region} may become a part of a host name and a signature.
 */
bool endpoint_region_is_plain(const char *region);

/**
 * endpoint_suffix(region):
 * "amazonaws.com", or China's.
 */
const char *endpoint_suffix(const char *region);

/**
 * endpoint_flag(variable, profile, key):
 * Whether the environment (first) or the profile says "true".
 */
bool endpoint_flag(const char *variable, const struct profile *profile,
    const char *key);

/**
 * endpoint_configured(profile, service, variable):
 * The address set for a service ("s3", "sts") by ${variable} or what follows
 * it in the order above; NULL when none is.
 */
const char *endpoint_configured(const struct profile *profile,
    const char *service, const char *variable);

#endif
