#include <stdlib.h>
#include <string.h>

#include "s3/call.h"

/* Amazon's limits: "Object key naming guidelines", "Uploading objects". */
#define KEY_LIMIT 1024

static int
request_check(const struct s3_request *request, struct error *error)
{
	if (request->key == NULL || request->key[0] == '\0' ||
	    strlen(request->key) > KEY_LIMIT)
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, request->key,
		    "a key has 1 to %d bytes", KEY_LIMIT);
	if (request->offset > INT64_MAX || request->length > INT64_MAX ||
	    request->offset + request->length > INT64_MAX)
		return error_set(error, ERROR_USAGE, CAUSE_LIMIT, request->key,
		    "the range is too large");
	if (request->operation == S3_PUT && (request->body == NULL ||
	    request->offset + request->length > request->body->size))
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, request->key,
		    "the body is smaller than what shall be sent");
	if (request->operation == S3_GET && request->sink == NULL)
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, request->key,
		    "nobody takes the bytes");
	return 0;
}

struct call *
call_new(struct s3_request *request)
{
	struct call *call = calloc(1, sizeof(*call));

	error_clear(&request->error);
	request->size = 0;
	request->attempts = 0;
	request->status = 0;
	memset(&request->server_time, 0, sizeof(request->server_time));
	if (call == NULL)
		return NULL;
	call->request = request;
	atomic_init(&call->cancelled, false);
	return call;
}

void
call_check(struct call *call)
{
	call->wrong = request_check(call->request,
	    &call->request->error) != 0;
}

const char *
call_method(const struct call *call)
{
	switch (call->request->operation) {
	case S3_PUT:
		return call->is_post ? "POST" : "PUT";
	case S3_GET:
		return "GET";
	case S3_HEAD:
		return call->probing ? "GET" : "HEAD";
	case S3_DELETE:
		break;
	}
	return "DELETE";
}
