#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "s3/exchange.h"
#include "s3/call.h"
#include "s3/receive.h"

static bool
is_object(const struct exchange *exchange)
{
	const struct call *call = exchange->call;

	return call->request->operation == S3_GET && call->accept == NULL &&
	    exchange->head.status / 100 == 2;
}

bool
receive_is_paced(const struct exchange *exchange)
{
	return is_object(exchange);
}

/* Where in the object the next byte for the sink lies. */
static uint64_t
place(const struct call *call)
{
	return call->request->offset + call->delivered;
}

/* Whether the head fits what was asked for; before the first byte. */
static int
head_check(struct exchange *exchange, struct error *error)
{
	struct call *call = exchange->call;
	const struct head *head = &exchange->head;
	const char *key = call->request->key;
	bool ranged = call->request->length > 0 || place(call) > 0;

	if (ranged && (head->status != 206 || !head->has_range)) {
		error_set(error, ERROR_FAILED, CAUSE_UNSUPPORTED, key,
		    "the server does not answer ranges");
		return error_cure(error, "a proxy in between may swallow the "
		    "Range header");
	}
	if (ranged && head->range_first != place(call))
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, key,
		    "asked for bytes from %" PRIu64 " on, got them from %"
		    PRIu64, place(call), head->range_first);
	if (call->delivered > 0 && strcmp(call->etag, head->etag) != 0)
		return error_set(error, ERROR_DAMAGED, CAUSE_CHANGED, key,
		    "the object was replaced while it was read");
	snprintf(call->etag, sizeof(call->etag), "%s", head->etag);
	return 0;
}

static int
object_bytes(struct exchange *exchange, const void *data, size_t length)
{
	struct call *call = exchange->call;
	struct s3_request *request = call->request;

	if (call->delivered == call->delivered_before &&
	    head_check(exchange, &exchange->local) != 0)
		return -1;
	if (request->length > 0 &&
	    length > request->length - call->delivered)
		return error_set(&exchange->local, ERROR_DAMAGED, CAUSE_OTHER,
		    request->key, "the server sent more than was asked for");
	if (request->sink(request->context, data, length,
	    &exchange->local) != 0) {
		if (exchange->local.class == ERROR_NONE)
			error_set(&exchange->local, ERROR_FAILED, CAUSE_OTHER,
			    request->key, "the bytes were not taken");
		return -1;
	}
	call->delivered += length;
	return 0;
}

int
receive_bytes(struct exchange *exchange, const void *data, size_t length)
{
	struct buffer *answer = &exchange->answer;
	bool kept = exchange->call->accept != NULL &&
	    exchange->head.status / 100 == 2;

	if (is_object(exchange))
		return object_bytes(exchange, data, length);
	if (kept)
		return buffer_append(answer, data, length, &exchange->local);

	/* Of an error only the beginning is wanted; the status tells what it
	 * means also when the transfer ends here. */
	size_t room = CALL_ERROR_LIMIT - answer->length;

	if (room == 0)
		return -1;
	return buffer_append(answer, data, length < room ? length : room,
	    &exchange->local);
}

int
receive_end(struct exchange *exchange, struct error *error)
{
	struct call *call = exchange->call;
	struct s3_request *request = call->request;
	const struct head *head = &exchange->head;

	/* An empty object: no byte came to check the head with. */
	if (call->delivered == call->delivered_before &&
	    head_check(exchange, error) != 0)
		return -1;
	if (head->has_total)
		request->size = head->range_total;
	else if (head->status == 206)
		request->size = place(call);
	else
		request->size = call->delivered;
	if (request->length > 0 && call->delivered < request->length)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
		    request->key, "the object ends at %" PRIu64 ", before "
		    "byte %" PRIu64, place(call),
		    request->offset + request->length);
	return 0;
}
