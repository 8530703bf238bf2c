#include "store/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json.h"
#include "store/backend.h"
#include "store/backend_file.h"
#include "store/backend_s3.h"
#include "store/feature.h"
#include "store/key.h"
#include "store/manifest.h"

/* The same bytes whoever writes it. */
static const char mark[] = "{\"format\":1}\n";

/* A mark is tiny; what is longer is not ours. */
#define MARK_MAXIMUM 4096

bool
remote_is_url(const char *text)
{
	return strstr(text, "://") != NULL;
}

/* The folder in a file:// URL: everything behind the host, as it stands. */
static struct backend *
open_file(const char *url, const char *rest, bool create, struct error *error)
{
	struct backend *backend;
	size_t length;
	char *path;

	if (strncmp(rest, "localhost/", 10) == 0)
		rest += 9;
	if (*rest != '/') {
		error_set(error, ERROR_USAGE, CAUSE_OTHER, url,
		    "a file:// remote needs an absolute path");
		error_cure(error, "write file:///path");
		return NULL;
	}
	path = strdup(rest);
	if (path == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, url,
		    "out of memory");
		return NULL;
	}
	for (length = strlen(path); length > 1 && path[length - 1] == '/';)
		path[--length] = '\0';
	backend = backend_file_open(path, create, error);
	free(path);
	return backend;
}

struct backend *
remote_open(const char *url, const struct remote_options *options, bool create,
    struct error *error)
{
	struct backend *backend = NULL;

	if (strncmp(url, "file://", 7) == 0)
		backend = open_file(url, url + 7, create, error);
	else if (strncmp(url, "s3://", 5) == 0)
		backend = backend_s3_open(url, options, error);
	else {
		error_set(error, ERROR_USAGE, CAUSE_OTHER, url,
		    "is not a remote that ckptsync knows");
		error_cure(error, "use s3://bucket/prefix or file:///path");
	}
	if (backend != NULL && options->strength != REMOTE_STRENGTH_AUTO)
		backend->weak = options->strength == REMOTE_WEAK;
	return backend;
}

/* Whether the mark in ${buffer} is of our format. */
static int
check(const struct buffer *buffer, bool writes, struct error *error)
{
	const char *feature;
	uint64_t format;
	int result = 0;
	json_t *object;

	object = json_read(buffer_text(buffer), buffer->length, KEY_FORMAT,
	    error);
	if (object == NULL)
		return -1;
	feature = feature_unknown(object, "needs_reader");
	if (feature == NULL && writes)
		feature = feature_unknown(object, "needs_writer");
	if (json_get_u64(object, "format", &format) != 0) {
		result = error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
		    KEY_FORMAT, "does not say a format");
	} else if (format != MANIFEST_FORMAT) {
		error_set(error, ERROR_FAILED, CAUSE_FEATURE, KEY_FORMAT,
		    "the remote is written in format %" PRIu64
		    ", this ckptsync knows format %d", format,
		    MANIFEST_FORMAT);
		result = error_cure(error, "use a newer ckptsync");
	} else if (feature != NULL) {
		result = feature_refuse(KEY_FORMAT, feature, error);
	}
	json_decref(object);
	return result;
}

/* Read the mark and check it.  Return 1: fine, 0: not there, -1: error. */
static int
look(struct backend *backend, bool writes, struct error *error)
{
	struct buffer buffer;
	int result = 1;

	buffer_init(&buffer, MARK_MAXIMUM);
	if (backend_get(backend, KEY_FORMAT, &buffer, 0, error) != 0)
		result = error->cause == CAUSE_NOT_FOUND ? 0 : -1;
	else if (check(&buffer, writes, error) != 0)
		result = -1;
	buffer_free(&buffer);
	return result;
}

int
remote_mark(struct backend *backend, struct error *error)
{
	int found = look(backend, true, error);

	if (found != 0)
		return found < 0 ? -1 : 0;
	return backend_put(backend, KEY_FORMAT, mark, strlen(mark), 0, error);
}

int
remote_check(struct backend *backend, struct error *error)
{
	return look(backend, false, error) < 0 ? -1 : 0;
}
