#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "s3/endpoint.h"
#include "s3/profile.h"

/* Hosts that answer path style with an error (their own documentation;
 * CoreWeave's AI Object Storage and LOTA, Alibaba's OSS). */
static const char *const virtual_only[] = {
	"aliyuncs.com", "cwobject.com", "cwlota.com",
};

static const char *
environment(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

bool
endpoint_flag(const char *variable, const struct profile *profile,
    const char *key)
{
	const char *value = environment(variable);

	if (value == NULL)
		value = profile_get(profile, key);
	return value != NULL && strcasecmp(value, "true") == 0;
}

static bool
host_is_under(const char *host, const char *domain)
{
	size_t length = strlen(host);
	size_t end = strlen(domain);

	if (length < end || strcmp(host + length - end, domain) != 0)
		return false;
	return length == end || host[length - end - 1] == '.';
}

bool
endpoint_region_is_plain(const char *region)
{
	size_t length = strlen(region);

	if (length == 0 || length >= ENDPOINT_REGION_SIZE || region[0] == '-')
		return false;
	for (; *region != '\0'; region++)
		if (!isalnum((unsigned char)*region) && *region != '-' &&
		    *region != '_')
			return false;
	return true;
}

const char *
endpoint_suffix(const char *region)
{
	return strncmp(region, "cn-", 3) == 0 ? "amazonaws.com.cn" :
	    "amazonaws.com";
}

const char *
endpoint_configured(const struct profile *profile, const char *service,
    const char *variable)
{
	const char *address;
	char key[64];

	if (endpoint_flag("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", profile,
	    "ignore_configured_endpoint_urls"))
		return NULL;
	address = environment(variable);
	if (address == NULL)
		address = environment("AWS_ENDPOINT_URL");
	if (address == NULL) {
		snprintf(key, sizeof(key), "services.%s.endpoint_url",
		    service);
		address = profile_get(profile, key);
	}
	if (address == NULL)
		address = profile_get(profile, "endpoint_url");
	return address;
}

static int
bucket_copy(const char *bucket, struct endpoint *endpoint,
    struct error *error)
{
	size_t length = bucket != NULL ? strlen(bucket) : 0;

	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)bucket[i]) && bucket[i] != '.' &&
		    bucket[i] != '-' && bucket[i] != '_')
			length = 0;
	if (length == 0 || length >= sizeof(endpoint->bucket) ||
	    strcmp(bucket, ".") == 0 || strcmp(bucket, "..") == 0)
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, bucket,
		    "not the name of a bucket");
	memcpy(endpoint->bucket, bucket, length + 1);
	return 0;
}

/* Amazon's "Bucket naming rules", as far as a host name demands them. */
static bool
bucket_fits_host(const char *bucket)
{
	size_t length = strlen(bucket);

	if (length < 3 || length > 63 || strstr(bucket, "..") != NULL ||
	    !isalnum((unsigned char)bucket[0]) ||
	    !isalnum((unsigned char)bucket[length - 1]))
		return false;
	for (; *bucket != '\0'; bucket++)
		if (isupper((unsigned char)*bucket) || *bucket == '_')
			return false;
	return true;
}

static int
address_resolve(const struct s3_config *config, const struct profile *profile,
    struct endpoint *endpoint, struct error *error)
{
	const char *address = config->endpoint_url;

	if (address == NULL || address[0] == '\0')
		address = endpoint_configured(profile, "s3",
		    "AWS_ENDPOINT_URL_S3");
	endpoint->dualstack = endpoint_flag("AWS_USE_DUALSTACK_ENDPOINT",
	    profile, "use_dualstack_endpoint");
	endpoint->fips = endpoint_flag("AWS_USE_FIPS_ENDPOINT", profile,
	    "use_fips_endpoint");
	if (address == NULL)
		return 0;
	endpoint->custom = true;
	if (url_parse(address, &endpoint->url, error) != 0)
		return -1;
	if (!endpoint->url.bare) {
		error_set(error, ERROR_USAGE, CAUSE_OTHER, address,
		    "the endpoint has a path or a query");
		return error_cure(error, "give scheme, host and port only; "
		    "the bucket is named in the remote");
	}
	return 0;
}

static int
region_resolve(const struct s3_config *config, const struct profile *profile,
    struct endpoint *endpoint, struct error *error)
{
	const char *region = config->region;
	const char *host = endpoint->url.host;

	if (region == NULL || region[0] == '\0')
		region = environment("AWS_REGION");
	if (region == NULL)
		region = environment("AWS_DEFAULT_REGION");
	if (region == NULL)
		region = profile_get(profile, "region");
	if (region == NULL && host_is_under(host, "r2.cloudflarestorage.com"))
		region = "auto";
	if (region == NULL && host_is_under(host, "aliyuncs.com")) {
		/* oss-cn-hangzhou.aliyuncs.com, as OpenDAL reads it */
		snprintf(endpoint->region, sizeof(endpoint->region), "%.*s",
		    (int)strcspn(host, "."), host);
		region = endpoint->region;
	}
	if (region == NULL)
		region = "us-east-1";
	if (!endpoint_region_is_plain(region))
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, region,
		    "not the name of a region");
	if (region != endpoint->region)
		memcpy(endpoint->region, region, strlen(region) + 1);
	return 0;
}

static enum s3_addressing
addressing_wanted(const struct s3_config *config,
    const struct profile *profile)
{
	const char *style = profile_get(profile, "s3.addressing_style");

	if (config->addressing != S3_ADDRESSING_AUTO || style == NULL)
		return config->addressing;
	if (strcasecmp(style, "path") == 0)
		return S3_ADDRESSING_PATH;
	if (strcasecmp(style, "virtual") == 0)
		return S3_ADDRESSING_VIRTUAL;
	return S3_ADDRESSING_AUTO;
}

static bool
host_wants_virtual(const struct endpoint *endpoint)
{
	if (!endpoint->custom)
		return true;
	for (size_t i = 0; i < sizeof(virtual_only) / sizeof(virtual_only[0]);
	    i++)
		if (host_is_under(endpoint->url.host, virtual_only[i]))
			return true;
	return false;
}

static int
addressing_resolve(const struct s3_config *config,
    const struct profile *profile, struct endpoint *endpoint,
    struct error *error)
{
	enum s3_addressing wanted = addressing_wanted(config, profile);
	bool tls = !endpoint->custom || endpoint->url.tls;
	bool fits = bucket_fits_host(endpoint->bucket) &&
	    !(endpoint->custom && url_host_is_address(endpoint->url.host));

	if (wanted == S3_ADDRESSING_VIRTUAL && !fits) {
		error_set(error, ERROR_USAGE, CAUSE_OTHER, endpoint->bucket,
		    "virtual addressing needs a host name and a bucket whose "
		    "name can be part of one");
		return error_cure(error, "use path addressing");
	}
	if (wanted == S3_ADDRESSING_AUTO)
		endpoint->virtual_host = fits && host_wants_virtual(endpoint) &&
		    !(tls && strchr(endpoint->bucket, '.') != NULL);
	else
		endpoint->virtual_host = wanted == S3_ADDRESSING_VIRTUAL;
	return 0;
}

int
endpoint_resolve(const struct s3_config *config,
    const struct profile *profile, struct endpoint *endpoint,
    struct error *error)
{
	memset(endpoint, 0, sizeof(*endpoint));
	if (bucket_copy(config->bucket, endpoint, error) != 0 ||
	    address_resolve(config, profile, endpoint, error) != 0 ||
	    region_resolve(config, profile, endpoint, error) != 0)
		return -1;
	return addressing_resolve(config, profile, endpoint, error);
}

char *
endpoint_host(const struct endpoint *endpoint, const char *region,
    char host[ENDPOINT_HOST_SIZE])
{
	const char *bucket = endpoint->virtual_host ? endpoint->bucket : "";
	const char *dot = endpoint->virtual_host ? "." : "";

	if (!endpoint->custom)
		snprintf(host, ENDPOINT_HOST_SIZE, "%s%ss3%s%s.%s.%s", bucket,
		    dot, endpoint->fips ? "-fips" : "",
		    endpoint->dualstack ? ".dualstack" : "", region,
		    endpoint_suffix(region));
	else if (endpoint->url.default_port)
		snprintf(host, ENDPOINT_HOST_SIZE, "%s%s%s", bucket, dot,
		    endpoint->url.host);
	else
		snprintf(host, ENDPOINT_HOST_SIZE, "%s%s%s:%u", bucket, dot,
		    endpoint->url.host, endpoint->url.port);
	return host;
}

int
endpoint_path(const struct endpoint *endpoint, const char *key,
    struct buffer *buffer, struct error *error)
{
	if (!endpoint->virtual_host) {
		if (buffer_format(buffer, error, "/%s", endpoint->bucket) != 0)
			return -1;
		if (key[0] == '\0')
			return 0;
	}
	if (buffer_append(buffer, "/", 1, error) != 0)
		return -1;
	return url_encode(key, true, buffer, error);
}

const char *
endpoint_scheme(const struct endpoint *endpoint)
{
	return endpoint->custom && !endpoint->url.tls ? "http" : "https";
}
