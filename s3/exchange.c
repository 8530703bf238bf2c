#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rate.h"
#include "s3/exchange.h"
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

struct exchange *
exchange_new(struct service *service, struct sockets *sockets,
    struct error *error)
{
	struct exchange *exchange = calloc(1, sizeof(*exchange));

	if (exchange == NULL || (exchange->easy = curl_easy_init()) == NULL) {
		free(exchange);
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	exchange->service = service;
	exchange->sockets = sockets;
	buffer_init(&exchange->url, URL_LIMIT);
	buffer_init(&exchange->canonical, CANONICAL_LIMIT);
	buffer_init(&exchange->answer, CALL_ERROR_LIMIT);
	return exchange;
}

void
exchange_free(struct exchange *exchange)
{
	if (exchange == NULL)
		return;
	curl_easy_cleanup(exchange->easy);
	curl_slist_free_all(exchange->headers);
	buffer_free(&exchange->url);
	buffer_free(&exchange->canonical);
	buffer_free(&exchange->answer);
	free(exchange);
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
headers_collect(struct exchange *exchange, const struct keys *keys,
    struct headers *headers)
{
	const struct call *call = exchange->call;
	const struct s3_request *request = call->request;
	uint8_t nothing[SHA256_SIZE];

	endpoint_host(&exchange->service->endpoint, exchange->region,
	    headers->host);
	sign_stamp(exchange->signed_at, headers->stamp);
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
list_add(struct exchange *exchange, const char *line, struct error *error)
{
	struct curl_slist *longer = curl_slist_append(exchange->headers, line);

	if (longer == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	exchange->headers = longer;
	return 0;
}

/* Hand the headers to libcurl, which makes `Host` itself. */
static int
headers_list(struct exchange *exchange, const struct headers *headers,
    const char *authorization, struct error *error)
{
	char line[KEYS_TOKEN_SIZE + 64];

	for (size_t i = 1; i < headers->count; i++) {
		snprintf(line, sizeof(line), "%s: %s", headers->fields[i].name,
		    headers->fields[i].value);
		if (list_add(exchange, line, error) != 0)
			return -1;
	}
	/* No waiting for "100 Continue" before a body. */
	if (list_add(exchange, "Expect:", error) != 0)
		return -1;
	return list_add(exchange, authorization, error);
}

static int
authorization_make(struct exchange *exchange, const struct keys *keys,
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
	buffer_clear(&exchange->canonical);
	if (sign_canonical(request, &exchange->canonical, &names, error) != 0 ||
	    sign_string(&exchange->canonical, headers->stamp, exchange->region,
	    "s3", &string, error) != 0)
		goto out;
	service_signing_key(exchange->service, keys, headers->stamp,
	    exchange->region, key);
	sign_signature(key, &string, signature);
	explicit_bzero(key, sizeof(key));
	result = buffer_format(authorization, error,
	    "Authorization: AWS4-HMAC-SHA256 Credential=%s/%.8s/%s/s3/"
	    "aws4_request, SignedHeaders=%s, Signature=%s", keys->access_key,
	    headers->stamp, exchange->region, buffer_text(&names), signature);
out:
	buffer_free(&names);
	buffer_free(&string);
	return result;
}

/* Address, headers and signature. */
static int
request_build(struct exchange *exchange, const struct keys *keys,
    struct error *error)
{
	const struct call *call = exchange->call;
	const struct endpoint *endpoint = &exchange->service->endpoint;
	struct headers headers = { .count = 0 };
	struct buffer path;
	struct buffer query;
	struct buffer authorization;
	int result = -1;

	buffer_init(&path, URL_LIMIT);
	buffer_init(&query, URL_LIMIT);
	buffer_init(&authorization, 4096);
	headers_collect(exchange, keys, &headers);
	if (endpoint_path(endpoint, call->request->key, &path, error) != 0 ||
	    sign_query(call->parameters, call->parameter_count, &query,
	    error) != 0)
		goto out;

	struct sign_request request = { .method = call_method(call),
	    .path = buffer_text(&path), .query = buffer_text(&query),
	    .headers = headers.fields, .header_count = headers.count,
	    .payload = headers.payload };

	if (authorization_make(exchange, keys, &headers, &request,
	    &authorization, error) != 0 ||
	    headers_list(exchange, &headers, buffer_text(&authorization),
	    error) != 0)
		goto out;
	buffer_clear(&exchange->url);
	result = buffer_format(&exchange->url, error, "%s://%s%s%s%s",
	    endpoint_scheme(endpoint), headers.host, buffer_text(&path),
	    query.length > 0 ? "?" : "", buffer_text(&query));
out:
	buffer_free(&path);
	buffer_free(&query);
	buffer_free(&authorization);
	return result;
}

static void
pause_for_pace(struct exchange *exchange, struct rate *rate)
{
	uint64_t wait = rate_wait(rate);

	if (wait < PAUSE_SHORTEST)
		wait = PAUSE_SHORTEST;
	exchange->paused = true;
	exchange->resume_at = clock_monotonic() + wait;
}

static size_t
on_read(char *data, size_t size, size_t count, void *context)
{
	struct exchange *exchange = context;
	const struct s3_request *request = exchange->call->request;
	uint64_t wanted = request->length - exchange->position;

	if (wanted > size * count)
		wanted = size * count;
	if (wanted > 0 && request->rate != NULL) {
		wanted = rate_allow(request->rate, wanted);
		if (wanted == 0) {
			pause_for_pace(exchange, request->rate);
			return CURL_READFUNC_PAUSE;
		}
	}
	if (wanted > 0 && source_read(request->body, request->offset +
	    exchange->position, data, wanted, &exchange->local) != 0)
		return CURL_READFUNC_ABORT;
	exchange->position += wanted;
	return wanted;
}

/* libcurl sends the body again when a kept connection proved to be dead. */
static int
on_seek(void *context, curl_off_t offset, int origin)
{
	struct exchange *exchange = context;

	if (origin != SEEK_SET || offset < 0 ||
	    (uint64_t)offset > exchange->call->request->length)
		return CURL_SEEKFUNC_FAIL;
	exchange->position = (uint64_t)offset;
	return CURL_SEEKFUNC_OK;
}

static size_t
on_header(char *data, size_t size, size_t count, void *context)
{
	struct exchange *exchange = context;

	head_read_line(&exchange->head, data, size * count);
	/* A server in trouble gets no more requests on this connection. */
	if (exchange->head.status >= 500)
		curl_easy_setopt(exchange->easy, CURLOPT_FORBID_REUSE, 1L);
	return size * count;
}

static size_t
on_write(char *data, size_t size, size_t count, void *context)
{
	struct exchange *exchange = context;
	struct rate *rate = exchange->call->request->rate;
	size_t length = size * count;

	if (rate != NULL && receive_is_paced(exchange)) {
		if (exchange->owed > 0)
			exchange->owed -= rate_allow(rate, exchange->owed);
		if (exchange->owed > 0) {
			pause_for_pace(exchange, rate);
			return CURL_WRITEFUNC_PAUSE;
		}
		/* All of it must be taken now: pay for it before the next. */
		exchange->owed = length - rate_allow(rate, length);
	}
	return receive_bytes(exchange, data, length) == 0 ? length : 0;
}

/* Connected: the request goes out now. */
static int
on_begin(void *context, char *remote, char *local, int remote_port,
    int local_port)
{
	struct exchange *exchange = context;

	(void)remote;
	(void)local;
	(void)remote_port;
	exchange->begun = clock_monotonic();
	exchange->mark_time = exchange->begun;
	exchange->mark_moved = 0;
	exchange->sent_at = 0;
	exchange->fd = sockets_find(exchange->sockets, local_port);
	return CURL_PREREQFUNC_OK;
}

static void
options_connection(struct exchange *exchange)
{
	struct service *service = exchange->service;
	CURL *easy = exchange->easy;
	bool fresh = exchange->call->fresh ||
	    clock_monotonic() < atomic_load(&service->fresh_until);

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
	sockets_watch(exchange->sockets, easy);
}

static void
options_request(struct exchange *exchange)
{
	const struct call *call = exchange->call;
	const char *method = call_method(call);
	CURL *easy = exchange->easy;

	curl_easy_setopt(easy, CURLOPT_URL, buffer_text(&exchange->url));
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, exchange->headers);
	curl_easy_setopt(easy, CURLOPT_USERAGENT,
	    "ckptsync-s3/" CKPTSYNC_VERSION);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->curl_text);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange);
	if (call->request->operation == S3_PUT) {
		curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE,
		    (curl_off_t)call->request->length);
		curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE,
		    exchange->service->upload_buffer);
		if (call->is_post)
			curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
	} else if (strcmp(method, "HEAD") == 0) {
		curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	} else if (call->request->operation == S3_DELETE) {
		curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
	} else if (call->request->operation == S3_GET) {
		curl_easy_setopt(easy, CURLOPT_BUFFERSIZE,
		    exchange->service->download_buffer);
	}
	curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
	curl_easy_setopt(easy, CURLOPT_READDATA, exchange);
	curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
	curl_easy_setopt(easy, CURLOPT_SEEKDATA, exchange);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
	curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_begin);
	curl_easy_setopt(easy, CURLOPT_PREREQDATA, exchange);
}

static void
forget_last(struct exchange *exchange)
{
	curl_easy_reset(exchange->easy);
	curl_slist_free_all(exchange->headers);
	exchange->headers = NULL;
	exchange->curl_text[0] = '\0';
	memset(&exchange->head, 0, sizeof(exchange->head));
	buffer_free(&exchange->answer);
	error_clear(&exchange->local);
	exchange->silence = NULL;
	exchange->position = 0;
	exchange->owed = 0;
	exchange->paused = false;
	exchange->begun = 0;
	exchange->sent_at = 0;
	exchange->fd = -1;
}

int
exchange_prepare(struct exchange *exchange, struct call *call,
    const struct keys *keys, struct error *error)
{
	forget_last(exchange);
	exchange->call = call;
	exchange->started = clock_monotonic();
	exchange->answer.limit = call->accept != NULL ? CALL_ANSWER_LIMIT :
	    CALL_ERROR_LIMIT;
	service_get_region(exchange->service, exchange->region);
	exchange->signed_at = service_now(exchange->service);
	exchange->keys_number = keys->number;
	call->delivered_before = call->delivered;
	call->request->attempts++;
	if (request_build(exchange, keys, error) != 0)
		return -1;
	options_connection(exchange);
	options_request(exchange);
	return 0;
}

uint64_t
exchange_sent(const struct exchange *exchange)
{
	curl_off_t bytes = 0;

	curl_easy_getinfo(exchange->easy, CURLINFO_SIZE_UPLOAD_T, &bytes);
	return (uint64_t)bytes;
}

uint64_t
exchange_received(const struct exchange *exchange)
{
	curl_off_t bytes = 0;

	curl_easy_getinfo(exchange->easy, CURLINFO_SIZE_DOWNLOAD_T, &bytes);
	return (uint64_t)bytes;
}

static bool
all_is_sent(const struct exchange *exchange, uint64_t sent, uint64_t unsent)
{
	const struct s3_request *request = exchange->call->request;

	if (unsent > 0)
		return false;
	return request->operation != S3_PUT || sent == request->length;
}

bool
exchange_is_silent(struct exchange *exchange, uint64_t now)
{
	const struct service *service = exchange->service;
	uint64_t sent = exchange_sent(exchange);
	uint64_t unsent = sockets_unsent(exchange->fd);
	uint64_t moved = sent + exchange_received(exchange);

	/* libcurl limits the time to connect itself. */
	if (exchange->begun == 0)
		return false;
	/* What the kernel still holds has not gone anywhere yet. */
	moved -= unsent < moved ? unsent : moved;
	if (exchange->head.status == 0 && all_is_sent(exchange, sent, unsent)) {
		if (exchange->sent_at == 0)
			exchange->sent_at = now;
		if (now - exchange->sent_at > service->first_byte_timeout)
			exchange->silence = "the server did not answer in time";
		return exchange->silence != NULL;
	}
	if (exchange->paused || moved < exchange->mark_moved ||
	    (moved - exchange->mark_moved > 0 && moved - exchange->mark_moved >=
	    (now - exchange->mark_time) / CLOCK_SECOND)) {
		exchange->mark_moved = moved;
		exchange->mark_time = now;
	}
	if (now - exchange->mark_time > service->stall_timeout)
		exchange->silence = "the transfer stalled";
	return exchange->silence != NULL;
}

void
exchange_resume(struct exchange *exchange)
{
	exchange->paused = false;
	/* Its failure would end the transfer, which is seen then. */
	curl_easy_pause(exchange->easy, CURLPAUSE_CONT);
}
