#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "s3/keys.h"

/* Printable ASCII without a blank: it goes into a header. */
static int
part_copy(char *target, size_t size, const char *text, const char *what,
    struct error *error)
{
	size_t length = text != NULL ? strlen(text) : 0;

	if (length >= size)
		return error_set(error, ERROR_USAGE, CAUSE_LIMIT, NULL,
		    "the %s is too long", what);
	for (size_t i = 0; i < length; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
			    "the %s holds a blank or a byte that is not "
			    "ASCII", what);
	if (length > 0)
		memcpy(target, text, length);
	target[length] = '\0';
	return 0;
}

int
keys_set(struct keys *keys, const char *access_key, const char *secret,
    const char *token, const char *expires, struct error *error)
{
	struct timespec when = { 0 };

	memset(keys, 0, sizeof(*keys));
	if (part_copy(keys->access_key, sizeof(keys->access_key), access_key,
	    "access key", error) != 0 ||
	    part_copy(keys->secret, sizeof(keys->secret), secret,
	    "secret key", error) != 0 ||
	    part_copy(keys->token, sizeof(keys->token), token,
	    "session token", error) != 0)
		return -1;
	if (keys->access_key[0] == '\0' || keys->secret[0] == '\0')
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "the %s is missing", keys->access_key[0] == '\0' ?
		    "access key" : "secret key");
	if (expires != NULL && expires[0] != '\0') {
		if (clock_parse(expires, &when) != 0)
			return error_set(error, ERROR_USAGE, CAUSE_OTHER,
			    NULL, "the expiration is not a time");
		keys->expires = when.tv_sec;
	}
	return 0;
}

int
keys_read_json(const struct buffer *text, const char *name,
    const char *token_field, struct keys *keys, struct error *error)
{
	json_t *object = json_read(buffer_text(text), text->length, name,
	    error);
	int result;

	if (object == NULL)
		return -1;
	result = keys_set(keys, json_get_text(object, "AccessKeyId"),
	    json_get_text(object, "SecretAccessKey"),
	    json_get_text(object, token_field),
	    json_get_text(object, "Expiration"), error);
	if (result != 0)
		error_prefix(error, "%s", name);
	json_decref(object);
	return result;
}
