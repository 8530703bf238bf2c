#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rate.h"
#include "s3/attempt.h"
#include "s3/call.h"
#include "s3/receive.h"
#include "s3/service.h"
#include "s3/sockets.h"

/* A paced transfer is woken no more often than this. */
#define PAUSE_SHORTEST (10 * CLOCK_MILLISECOND)
#define CANONICAL_LIMIT (64 * 1024)
#define URL_LIMIT (16 * 1024)
/* S3 closes a connection that is idle for about 5 s (aws-c-s3); a PUT sent
 * on one that is just being closed is lost work. */
#define IDLE_SECONDS 4L

#define HEADERS_LIMIT 12

/* The headers of one attempt, and the texts that some of them need. */
struct headers {
	struct sign_field fields[HEADERS_LIMIT];
	size_t count;
	char host[ENDPOINT_HOST_SIZE];
	char payload[SHA256_HEX_SIZE];
	char stamp[SIGN_STAMP_SIZE];
	char range[64];
};

struct attempt *
attempt_new(struct service *service, struct sockets *sockets,
    struct error *error)
{
	struct attempt *attempt = calloc(1, sizeof(*attempt));

	if (attempt == NULL || (attempt->easy = curl_easy_init()) == NULL) {
		free(attempt);
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	attempt->service = service;
	attempt->sockets = sockets;
	buffer_init(&attempt->url, URL_LIMIT);
	buffer_init(&attempt->canonical, CANONICAL_LIMIT);
	buffer_init(&attempt->answer, CALL_ERROR_LIMIT);
	return attempt;
}

void
attempt_free(struct attempt *attempt)
{
	if (attempt == NULL)
		return;
	curl_easy_cleanup(attempt->easy);
	curl_slist_free_all(attempt->headers);
	buffer_free(&attempt->url);
	buffer_free(&attempt->canonical);
	buffer_free(&attempt->answer);
	free(attempt);
}

static void
header_add(struct headers *headers, const char *name, const char *value)
{
	assert(headers->count < HEADERS_LIMIT);
	headers->fields[headers->count++] = (struct sign_field){ name, value };
}

static void
range_add(const struct call *call, struct headers *headers)
{
	const struct s3_request *request = call->request;
	uint64_t first = request->offset + call->delivered;

	if (call->probing)
		snprintf(headers->range, sizeof(headers->range), "bytes=0-0");
	else if (request->operation != S3_GET ||
	    (first == 0 && request->length == 0))
		return;
	else if (request->length > 0)
		snprintf(headers->range, sizeof(headers->range),
		    "bytes=%" PRIu64 "-%" PRIu64, first,
		    request->offset + request->length - 1);
	else
		snprintf(headers->range, sizeof(headers->range),
		    "bytes=%" PRIu64 "-", first);
	header_add(headers, "range", headers->range);
}

static void
headers_collect(struct attempt *attempt, const struct keys *keys,
    struct headers *headers)
{
	const struct call *call = attempt->call;
	const struct s3_request *request = call->request;
	uint8_t nothing[SHA256_SIZE];

	endpoint_host(&attempt->service->endpoint, attempt->region,
	    headers->host);
	sign_stamp(attempt->signed_at, headers->stamp);
	if (request->operation == S3_PUT) {
		sha256_hex(request->sha256, headers->payload);
	} else {
		sha256_of("", 0, nothing);
		sha256_hex(nothing, headers->payload);
	}
	header_add(headers, "host", headers->host);
	header_add(headers, "x-amz-content-sha256", headers->payload);
	header_add(headers, "x-amz-date", headers->stamp);
	if (keys->token[0] != '\0')
		header_add(headers, "x-amz-security-token", keys->token);
	range_add(call, headers);
	if (request->operation == S3_PUT && request->if_absent)
		header_add(headers, "if-none-match", "*");
	if (request->operation == S3_PUT)
		header_add(headers, "content-type", call->is_post ?
		    "application/xml" : "application/octet-stream");
	if (call->content_md5 != NULL)
		header_add(headers, "content-md5", call->content_md5);
}

static int
list_add(struct attempt *attempt, const char *line, struct error *error)
{
	struct curl_slist *longer = curl_slist_append(attempt->headers, line);

	if (longer == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	attempt->headers = longer;
	return 0;
}

/* Hand the headers to libcurl, which makes `Host` itself. */
static int
headers_list(struct attempt *attempt, const struct headers *headers,
    const char *authorization, struct error *error)
{
	char line[KEYS_TOKEN_SIZE + 64];

	for (size_t i = 1; i < headers->count; i++) {
		snprintf(line, sizeof(line), "%s: %s", headers->fields[i].name,
		    headers->fields[i].value);
		if (list_add(attempt, line, error) != 0)
			return -1;
	}
	/* No waiting for "100 Continue" before a body. */
	if (list_add(attempt, "Expect:", error) != 0)
		return -1;
	return list_add(attempt, authorization, error);
}

static int
authorization_make(struct attempt *attempt, const struct keys *keys,
    const struct headers *headers, const struct sign_request *request,
    struct buffer *authorization, struct error *error)
{
	uint8_t key[SHA256_SIZE];
	char signature[SHA256_HEX_SIZE];
	struct buffer names;
	struct buffer string;
	int result = -1;

	buffer_init(&names, 1024);
	buffer_init(&string, 1024);
	buffer_clear(&attempt->canonical);
	if (sign_canonical(request, &attempt->canonical, &names, error) != 0 ||
	    sign_string(&attempt->canonical, headers->stamp, attempt->region,
	    "s3", &string, error) != 0)
		goto out;
	service_signing_key(attempt->service, keys, headers->stamp,
	    attempt->region, key);
	sign_signature(key, &string, signature);
	explicit_bzero(key, sizeof(key));
	result = buffer_format(authorization, error,
	    "Authorization: AWS4-HMAC-SHA256 Credential=%s/%.8s/%s/s3/"
	    "aws4_request, SignedHeaders=%s, Signature=%s", keys->access_key,
	    headers->stamp, attempt->region, buffer_text(&names), signature);
out:
	buffer_free(&names);
	buffer_free(&string);
	return result;
}

/* Address, headers and signature. */
static int
request_build(struct attempt *attempt, const struct keys *keys,
    struct error *error)
{
	const struct call *call = attempt->call;
	const struct endpoint *endpoint = &attempt->service->endpoint;
	struct headers headers = { .count = 0 };
	struct buffer path;
	struct buffer query;
	struct buffer authorization;
	int result = -1;

	buffer_init(&path, URL_LIMIT);
	buffer_init(&query, URL_LIMIT);
	buffer_init(&authorization, 4096);
	headers_collect(attempt, keys, &headers);
	if (endpoint_path(endpoint, call->request->key, &path, error) != 0 ||
	    sign_query(call->parameters, call->parameter_count, &query,
	    error) != 0)
		goto out;

	struct sign_request request = { .method = call_method(call),
	    .path = buffer_text(&path), .query = buffer_text(&query),
	    .headers = headers.fields, .header_count = headers.count,
	    .payload = headers.payload };

	if (authorization_make(attempt, keys, &headers, &request,
	    &authorization, error) != 0 ||
	    headers_list(attempt, &headers, buffer_text(&authorization),
	    error) != 0)
		goto out;
	buffer_clear(&attempt->url);
	result = buffer_format(&attempt->url, error, "%s://%s%s%s%s",
	    endpoint_scheme(endpoint), headers.host, buffer_text(&path),
	    query.length > 0 ? "?" : "", buffer_text(&query));
out:
	buffer_free(&path);
	buffer_free(&query);
	buffer_free(&authorization);
	return result;
}

static void
pause_for_pace(struct attempt *attempt, struct rate *rate)
{
	uint64_t wait = rate_wait(rate);

	if (wait < PAUSE_SHORTEST)
		wait = PAUSE_SHORTEST;
	attempt->paused = true;
	attempt->resume_at = clock_monotonic() + wait;
}

static size_t
on_read(char *data, size_t size, size_t count, void *context)
{
	struct attempt *attempt = context;
	const struct s3_request *request = attempt->call->request;
	uint64_t wanted = request->length - attempt->position;

	if (wanted > size * count)
		wanted = size * count;
	if (wanted > 0 && request->rate != NULL) {
		wanted = rate_allow(request->rate, wanted);
		if (wanted == 0) {
			pause_for_pace(attempt, request->rate);
			return CURL_READFUNC_PAUSE;
		}
	}
	if (wanted > 0 && source_read(request->body, request->offset +
	    attempt->position, data, wanted, &attempt->local) != 0)
		return CURL_READFUNC_ABORT;
	attempt->position += wanted;
	return wanted;
}

/* libcurl sends the body again when a kept connection proved to be dead. */
static int
on_seek(void *context, curl_off_t offset, int origin)
{
	struct attempt *attempt = context;

	if (origin != SEEK_SET || offset < 0 ||
	    (uint64_t)offset > attempt->call->request->length)
		return CURL_SEEKFUNC_FAIL;
	attempt->position = (uint64_t)offset;
	return CURL_SEEKFUNC_OK;
}

static size_t
on_header(char *data, size_t size, size_t count, void *context)
{
	struct attempt *attempt = context;

	head_read_line(&attempt->head, data, size * count);
	/* A server in trouble gets no more requests on this connection. */
	if (attempt->head.status >= 500)
		curl_easy_setopt(attempt->easy, CURLOPT_FORBID_REUSE, 1L);
	return size * count;
}

static size_t
on_write(char *data, size_t size, size_t count, void *context)
{
	struct attempt *attempt = context;
	struct rate *rate = attempt->call->request->rate;
	size_t length = size * count;

	if (rate != NULL && receive_is_paced(attempt)) {
		if (attempt->owed > 0)
			attempt->owed -= rate_allow(rate, attempt->owed);
		if (attempt->owed > 0) {
			pause_for_pace(attempt, rate);
			return CURL_WRITEFUNC_PAUSE;
		}
		/* All of it must be taken now: pay for it before the next. */
		attempt->owed = length - rate_allow(rate, length);
	}
	return receive_bytes(attempt, data, length) == 0 ? length : 0;
}

/* Connected: the request goes out now. */
static int
on_begin(void *context, char *remote, char *local, int remote_port,
    int local_port)
{
	struct attempt *attempt = context;

	(void)remote;
	(void)local;
	(void)remote_port;
	attempt->begun = clock_monotonic();
	attempt->mark_time = attempt->begun;
	attempt->mark_moved = 0;
	attempt->fd = sockets_find(attempt->sockets, local_port);
	return CURL_PREREQFUNC_OK;
}

static void
options_connection(struct attempt *attempt)
{
	struct service *service = attempt->service;
	CURL *easy = attempt->easy;
	bool fresh = attempt->call->fresh;

	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
	    (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
	    (long)(service->connect_timeout / CLOCK_MILLISECOND));
	curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, IDLE_SECONDS);
	/* A retry looks up the name again, and connects anew: this server, or
	 * what is in between, may be what is wrong. */
	curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, fresh ? 1L : 0L);
	curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, fresh ? 0L : 60L);
	curl_easy_setopt(easy, CURLOPT_DNS_SHUFFLE_ADDRESSES, 1L);
	if (service->ca_bundle != NULL)
		curl_easy_setopt(easy, CURLOPT_CAINFO, service->ca_bundle);
	sockets_watch(attempt->sockets, easy);
}

static void
options_request(struct attempt *attempt)
{
	const struct call *call = attempt->call;
	const char *method = call_method(call);
	CURL *easy = attempt->easy;

	curl_easy_setopt(easy, CURLOPT_URL, buffer_text(&attempt->url));
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, attempt->headers);
	curl_easy_setopt(easy, CURLOPT_USERAGENT,
	    "ckptsync-s3/" CKPTSYNC_VERSION);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, attempt->curl_text);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, attempt);
	if (call->request->operation == S3_PUT) {
		curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE,
		    (curl_off_t)call->request->length);
		curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE,
		    attempt->service->upload_buffer);
		if (call->is_post)
			curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
	} else if (strcmp(method, "HEAD") == 0) {
		curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	} else if (call->request->operation == S3_DELETE) {
		curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
	} else if (call->request->operation == S3_GET) {
		curl_easy_setopt(easy, CURLOPT_BUFFERSIZE,
		    attempt->service->download_buffer);
	}
	curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
	curl_easy_setopt(easy, CURLOPT_READDATA, attempt);
	curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
	curl_easy_setopt(easy, CURLOPT_SEEKDATA, attempt);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, attempt);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, attempt);
	curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_begin);
	curl_easy_setopt(easy, CURLOPT_PREREQDATA, attempt);
}

static void
forget_last(struct attempt *attempt)
{
	curl_easy_reset(attempt->easy);
	curl_slist_free_all(attempt->headers);
	attempt->headers = NULL;
	attempt->curl_text[0] = '\0';
	memset(&attempt->head, 0, sizeof(attempt->head));
	buffer_free(&attempt->answer);
	error_clear(&attempt->local);
	attempt->silence = NULL;
	attempt->position = 0;
	attempt->owed = 0;
	attempt->paused = false;
	attempt->begun = 0;
	attempt->sent_at = 0;
	attempt->fd = -1;
}

int
attempt_prepare(struct attempt *attempt, struct call *call,
    const struct keys *keys, struct error *error)
{
	forget_last(attempt);
	attempt->call = call;
	attempt->started = clock_monotonic();
	attempt->answer.limit = call->accept != NULL ? CALL_ANSWER_LIMIT :
	    CALL_ERROR_LIMIT;
	service_get_region(attempt->service, attempt->region);
	attempt->signed_at = service_now(attempt->service);
	attempt->keys_number = keys->number;
	call->delivered_before = call->delivered;
	call->request->attempts++;
	if (request_build(attempt, keys, error) != 0)
		return -1;
	options_connection(attempt);
	options_request(attempt);
	return 0;
}

uint64_t
attempt_sent(const struct attempt *attempt)
{
	curl_off_t bytes = 0;

	curl_easy_getinfo(attempt->easy, CURLINFO_SIZE_UPLOAD_T, &bytes);
	return (uint64_t)bytes;
}

uint64_t
attempt_received(const struct attempt *attempt)
{
	curl_off_t bytes = 0;

	curl_easy_getinfo(attempt->easy, CURLINFO_SIZE_DOWNLOAD_T, &bytes);
	return (uint64_t)bytes;
}

static bool
all_is_sent(const struct attempt *attempt, uint64_t sent, uint64_t unsent)
{
	const struct s3_request *request = attempt->call->request;

	if (unsent > 0)
		return false;
	return request->operation != S3_PUT || sent == request->length;
}

bool
attempt_is_silent(struct attempt *attempt, uint64_t now)
{
	const struct service *service = attempt->service;
	uint64_t sent = attempt_sent(attempt);
	uint64_t unsent = sockets_unsent(attempt->fd);
	uint64_t moved = sent + attempt_received(attempt);

	/* libcurl limits the time to connect itself. */
	if (attempt->begun == 0)
		return false;
	/* What the kernel still holds has not gone anywhere yet. */
	moved -= unsent < moved ? unsent : moved;
	if (attempt->head.status == 0 && all_is_sent(attempt, sent, unsent)) {
		if (attempt->sent_at == 0)
			attempt->sent_at = now;
		if (now - attempt->sent_at > service->first_byte_timeout)
			attempt->silence = "the server did not answer in time";
		return attempt->silence != NULL;
	}
	if (attempt->paused || moved < attempt->mark_moved ||
	    (moved - attempt->mark_moved > 0 && moved - attempt->mark_moved >=
	    (now - attempt->mark_time) / CLOCK_SECOND)) {
		attempt->mark_moved = moved;
		attempt->mark_time = now;
	}
	if (now - attempt->mark_time > service->stall_timeout)
		attempt->silence = "the transfer stalled";
	return attempt->silence != NULL;
}

void
attempt_resume(struct attempt *attempt)
{
	attempt->paused = false;
	/* Its failure would end the transfer, which is seen then. */
	curl_easy_pause(attempt->easy, CURLPAUSE_CONT);
}
