#ifndef S3_URL_H
#define S3_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer;
struct error;

/*
 * Percent-encoding as S3 wants it, and the parts of an address.
 */

/**
 * url_encode(text, keep_slashes, buffer, error):
 * Add ${text} to ${buffer}: A-Z a-z 0-9 - _ . ~ as they are, every other byte
 * as %XX with upper-case digits (some servers refuse lower case in a query);
 * "/" stays when ${keep_slashes}.  Return 0, or -1 as buffer_append.
 */
int url_encode(const char *text, bool keep_slashes, struct buffer *buffer,
    struct error *error);

#define URL_HOST_SIZE 256

/* An http or https address, taken apart. */
struct url {
	bool tls;
	char host[URL_HOST_SIZE];	/* lower case; IPv6 in brackets */
	uint16_t port;			/* never 0 */
	bool default_port;		/* the scheme's own */
	bool bare;			/* no path but "/", no query, no fragment */
};

/**
 * url_parse(text, url, error):
 * Take apart ${text}, which must begin with http:// or https:// and hold no
 * user name.  Return 0, or -1 with ERROR_USAGE.
 */
int url_parse(const char *text, struct url *url, struct error *error);

/**
 * url_host_is_address(host):
 * Whether ${host} is an IPv4 address, or an IPv6 address in brackets.
 */
bool url_host_is_address(const char *host);

#endif
