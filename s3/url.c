#include <arpa/inet.h>
#include <ctype.h>
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "s3/url.h"

static bool
is_unreserved(unsigned char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	    (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' ||
	    byte == '.' || byte == '~';
}

int
url_encode(const char *text, bool keep_slashes, struct buffer *buffer,
    struct error *error)
{
	static const char digits[] = "0123456789ABCDEF";

	while (*text != '\0') {
		size_t plain = 0;

		while (is_unreserved((unsigned char)text[plain]) ||
		    (keep_slashes && text[plain] == '/'))
			plain++;
		if (plain > 0 && buffer_append(buffer, text, plain, error) != 0)
			return -1;
		text += plain;
		if (*text == '\0')
			break;

		unsigned char byte = (unsigned char)*text++;
		char code[3] = { '%', digits[byte >> 4], digits[byte & 15] };

		if (buffer_append(buffer, code, sizeof(code), error) != 0)
			return -1;
	}
	return 0;
}

/* Copy one part of the address; -1 when there is none or it is too long. */
static int
part_copy(CURLU *parts, CURLUPart which, unsigned flags, char *text,
    size_t size)
{
	char *value = NULL;
	int result = -1;

	if (curl_url_get(parts, which, &value, flags) == CURLUE_OK &&
	    strlen(value) < size) {
		memcpy(text, value, strlen(value) + 1);
		result = 0;
	}
	curl_free(value);
	return result;
}

static bool
part_exists(CURLU *parts, CURLUPart which)
{
	char *value = NULL;
	bool exists = curl_url_get(parts, which, &value, 0) == CURLUE_OK;

	curl_free(value);
	return exists;
}

static int
parts_read(CURLU *parts, const char *text, struct url *url)
{
	char scheme[8];
	char port[8];
	char path[2];

	if (curl_url_set(parts, CURLUPART_URL, text, 0) != CURLUE_OK)
		return -1;
	if (part_copy(parts, CURLUPART_SCHEME, 0, scheme, sizeof(scheme)) != 0 ||
	    part_copy(parts, CURLUPART_HOST, 0, url->host,
	    sizeof(url->host)) != 0 ||
	    part_copy(parts, CURLUPART_PORT, CURLU_DEFAULT_PORT, port,
	    sizeof(port)) != 0)
		return -1;
	if (part_exists(parts, CURLUPART_USER) ||
	    part_exists(parts, CURLUPART_PASSWORD) || url->host[0] == '\0')
		return -1;
	url->tls = strcmp(scheme, "https") == 0;
	if (!url->tls && strcmp(scheme, "http") != 0)
		return -1;

	unsigned long number = strtoul(port, NULL, 10);

	if (number == 0 || number > 65535)
		return -1;
	url->port = (uint16_t)number;
	url->default_port = number == (url->tls ? 443 : 80);
	for (char *byte = url->host; *byte != '\0'; byte++)
		*byte = (char)tolower((unsigned char)*byte);
	url->bare = part_copy(parts, CURLUPART_PATH, 0, path,
	    sizeof(path)) == 0 && strcmp(path, "/") == 0 &&
	    !part_exists(parts, CURLUPART_QUERY) &&
	    !part_exists(parts, CURLUPART_FRAGMENT);
	return 0;
}

int
url_parse(const char *text, struct url *url, struct error *error)
{
	memset(url, 0, sizeof(*url));

	CURLU *parts = curl_url();

	if (parts == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, text,
		    "out of memory");

	int result = parts_read(parts, text, url);

	curl_url_cleanup(parts);
	if (result != 0) {
		error_set(error, ERROR_USAGE, CAUSE_OTHER, text,
		    "not a usable address");
		error_cure(error, "write it as http://HOST[:PORT] or "
		    "https://HOST[:PORT], without a user name");
	}
	return result;
}

bool
url_host_is_address(const char *host)
{
	struct in_addr address;

	return host[0] == '[' || inet_pton(AF_INET, host, &address) == 1;
}
