#include "notice/asker.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "s3/fetch.h"

#define ANSWER_LIMIT (256 * 1024)

struct asker {
	CURLM *multi;
	int wake;			/* eventfd */
	struct request *running;
};

void
request_init(struct request *request)
{
	*request = (struct request){ .method = "GET" };
	buffer_init(&request->answer, ANSWER_LIMIT);
}

static CURLM *
multi_new(struct error *error)
{
	CURLM *multi = curl_multi_init();

	if (multi == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	/* HTTP/1.1 is all that these servers speak. */
	curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
	curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 8L);
	return multi;
}

struct asker *
asker_new(struct error *error)
{
	struct asker *asker = calloc(1, sizeof(*asker));

	if (asker == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	fetch_start_curl();
	asker->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (asker->wake < 0) {
		error_set_errno(error, errno, NULL,
		    "could not make an event descriptor");
		goto fail;
	}
	asker->multi = multi_new(error);
	if (asker->multi == NULL)
		goto fail;
	return asker;
fail:
	asker_free(asker);
	return NULL;
}

void
asker_free(struct asker *asker)
{
	if (asker == NULL)
		return;
	assert(asker->running == NULL);
	curl_multi_cleanup(asker->multi);
	if (asker->wake >= 0)
		close(asker->wake);
	free(asker);
}

static size_t
on_data(char *data, size_t size, size_t count, void *context)
{
	struct request *request = context;

	if (buffer_append(&request->answer, data, size * count,
	    &request->error) != 0)
		return 0;
	return size * count;
}

/* The value of the header line "${name}: value", NULL for another header. */
static const char *
header_value(const char *line, size_t length, const char *name,
    size_t *value_length)
{
	size_t name_length = strlen(name);

	if (length <= name_length || line[name_length] != ':' ||
	    strncasecmp(line, name, name_length) != 0)
		return NULL;
	line += name_length + 1;
	length -= name_length + 1;
	while (length > 0 && (*line == ' ' || *line == '\t')) {
		line++;
		length--;
	}
	while (length > 0 && strchr("\r\n \t", line[length - 1]) != NULL)
		length--;
	*value_length = length;
	return line;
}

static size_t
on_header(char *line, size_t size, size_t count, void *context)
{
	struct request *request = context;
	size_t length = size * count, value_length;
	const char *value;

	value = header_value(line, length, "ETag", &value_length);
	if (value != NULL && value_length < REQUEST_ETAG_SIZE) {
		memcpy(request->etag, value, value_length);
		request->etag[value_length] = '\0';
	}
	value = header_value(line, length, "Metadata-Flavor", &value_length);
	if (value != NULL && value_length == 6 &&
	    strncasecmp(value, "Google", 6) == 0)
		request->google = true;
	return length;
}

static void
forget_outcome(struct request *request)
{
	request->status = 0;
	buffer_clear(&request->answer);
	request->etag[0] = '\0';
	request->google = false;
	request->timed_out = false;
	request->system_error = 0;
	error_clear(&request->error);
}

static void
set_options(struct request *request)
{
	CURL *easy = request->easy;

	curl_easy_reset(easy);
	curl_easy_setopt(easy, CURLOPT_URL, request->url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
	    (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->list);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, request);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	/* A name server that does not answer must not hold up our end. */
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, request);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, request);
	if (request->body != NULL)
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
	else if (strcmp(request->method, "GET") != 0)
		curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST,
		    request->method);
}

static int
make_list(struct request *request)
{
	size_t count = sizeof(request->headers) / sizeof(request->headers[0]);

	for (size_t i = 0; i < count && request->headers[i] != NULL; i++) {
		struct curl_slist *longer = curl_slist_append(request->list,
		    request->headers[i]);

		if (longer == NULL)
			return -1;
		request->list = longer;
	}
	return 0;
}

static void
unlink_running(struct asker *asker, struct request *request)
{
	struct request **at = &asker->running;

	while (*at != request)
		at = &(*at)->next;
	*at = request->next;
	request->next = NULL;
	curl_multi_remove_handle(asker->multi, request->easy);
	curl_slist_free_all(request->list);
	request->list = NULL;
}

void
asker_start(struct asker *asker, struct request *request)
{
	assert(request->state == REQUEST_IDLE);
	forget_outcome(request);
	request->started = clock_monotonic();
	if (request->easy == NULL)
		request->easy = curl_easy_init();
	if (request->easy == NULL || make_list(request) != 0)
		goto fail;
	set_options(request);
	if (curl_multi_add_handle(asker->multi, request->easy) != CURLM_OK)
		goto fail;
	request->next = asker->running;
	asker->running = request;
	request->state = REQUEST_RUNNING;
	return;
fail:
	curl_slist_free_all(request->list);
	request->list = NULL;
	request->state = REQUEST_DONE;
	error_set(&request->error, ERROR_FAILED, CAUSE_MEMORY, request->url,
	    "out of memory");
}

static void
note_outcome(struct request *request, CURLcode code)
{
	long status = 0, number = 0;

	request->state = REQUEST_DONE;
	if (code == CURLE_OK) {
		curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE,
		    &status);
		request->status = (int)status;
		return;
	}
	if (code == CURLE_COULDNT_CONNECT) {
		curl_easy_getinfo(request->easy, CURLINFO_OS_ERRNO, &number);
		request->system_error = (int)number;
	}
	if (request->error.class != ERROR_NONE)
		return;			/* on_data has said why */
	if (number != 0)
		error_set_errno(&request->error, (int)number, request->url,
		    "could not connect");
	else
		error_set(&request->error, ERROR_FAILED, CAUSE_UNREACHABLE,
		    request->url, "%s", curl_easy_strerror(code));
}

static bool
collect(struct asker *asker)
{
	struct CURLMsg *message;
	bool any = false;
	int left;

	while ((message = curl_multi_info_read(asker->multi, &left)) != NULL) {
		CURLcode code = message->data.result;
		struct request *request;
		char *private;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE,
		    &private);
		request = (struct request *)(void *)private;
		note_outcome(request, code);
		unlink_running(asker, request);
		any = true;
	}
	return any;
}

/* End what took too long; set ${until} to when the next one will have. */
static bool
expire(struct asker *asker, uint64_t now, uint64_t *until)
{
	struct request *request, *next;
	bool any = false;

	for (request = asker->running; request != NULL; request = next) {
		uint64_t end = request->started + request->timeout;

		next = request->next;
		if (end > now) {
			if (end < *until)
				*until = end;
			continue;
		}
		unlink_running(asker, request);
		request->state = REQUEST_DONE;
		request->timed_out = true;
		error_set(&request->error, ERROR_FAILED, CAUSE_UNREACHABLE,
		    request->url, "no answer within %.0f s",
		    (double)request->timeout / (double)CLOCK_SECOND);
		any = true;
	}
	return any;
}

static bool
was_woken(struct asker *asker)
{
	uint64_t count;

	return read(asker->wake, &count, sizeof(count)) > 0;
}

void
asker_wait(struct asker *asker, uint64_t until)
{
	struct curl_waitfd wake = { .fd = asker->wake,
	    .events = CURL_WAIT_POLLIN };

	for (;;) {
		uint64_t now, left, end = until;
		int running;
		bool any;

		curl_multi_perform(asker->multi, &running);
		any = collect(asker);
		now = clock_monotonic();
		any = expire(asker, now, &end) || any;
		if (was_woken(asker) || any || now >= until)
			return;
		left = clock_slice(end - now, asker->running != NULL) /
		    CLOCK_MILLISECOND + 1;
		curl_multi_poll(asker->multi, &wake, 1,
		    left > INT_MAX ? INT_MAX : (int)left, NULL);
	}
}

void
asker_cancel(struct asker *asker, struct request *request)
{
	if (request->state == REQUEST_RUNNING)
		unlink_running(asker, request);
	request->state = REQUEST_IDLE;
	curl_easy_cleanup(request->easy);
	request->easy = NULL;
	buffer_free(&request->answer);
}

void
asker_wake(struct asker *asker)
{
	uint64_t one = 1;
	ssize_t ignored = write(asker->wake, &one, sizeof(one));

	/* It fails only when the counter is full: it is awake then. */
	(void)ignored;
}

int
asker_drop_connections(struct asker *asker, struct error *error)
{
	CURLM *multi;

	assert(asker->running == NULL);
	multi = multi_new(error);
	if (multi == NULL)
		return -1;
	curl_multi_cleanup(asker->multi);
	asker->multi = multi;
	return 0;
}
