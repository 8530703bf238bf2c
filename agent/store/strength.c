#include "store/strength.h"

#include <string.h>
#include <strings.h>

/*
 * Hosts whose LIST is only eventually consistent, as domains.  OpenStack
 * Swift lists containers from replicas that are brought up to date later
 * ("Eventual consistency" in its administrator's guide); Tigris is strong
 * only within one region, and its default bucket is global (its page
 * "Consistency").  A StorageGRID or a Swift of one's own has any name: it
 * needs --store weak.
 */
static const char *const weak_domains[] = {
	"cloud.ovh.net", "cloud.ovh.us",	/* Swift; io.cloud.ovh.net is not */
	"infomaniak.cloud",			/* Swift */
	"tigris.dev", "storage.dev",		/* Tigris */
};

/* Strong ones beneath a weak domain. */
static const char *const strong_domains[] = {
	"io.cloud.ovh.net", "perf.cloud.ovh.net", "io.cloud.ovh.us",
};

static bool
lies_in(const char *host, size_t length, const char *domain)
{
	size_t suffix = strlen(domain);

	return length >= suffix &&
	    strncasecmp(host + length - suffix, domain, suffix) == 0 &&
	    (length == suffix || host[length - suffix - 1] == '.');
}

/* "s3.gra.io.cloud.ovh.net" lies in "io.cloud.ovh.net". */
static bool
lies_in_any(const char *host, size_t length, const char *const *domains,
    size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (lies_in(host, length, domains[i]))
			return true;
	}
	return false;
}

bool
strength_is_weak(const char *endpoint)
{
	const char *host;
	size_t length;

	if (endpoint == NULL || *endpoint == '\0')
		return false;
	host = strstr(endpoint, "://");
	host = host == NULL ? endpoint : host + 3;
	length = strcspn(host, ":/");
	return lies_in_any(host, length, weak_domains,
	    sizeof(weak_domains) / sizeof(*weak_domains)) &&
	    !lies_in_any(host, length, strong_domains,
	    sizeof(strong_domains) / sizeof(*strong_domains));
}
