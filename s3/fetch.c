#include <pthread.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "s3/fetch.h"

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void
curl_set_up(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

void
fetch_start_curl(void)
{
	pthread_once(&curl_once, curl_set_up);
}

CURL *
fetch_new(struct error *error)
{
	fetch_start_curl();

	CURL *easy = curl_easy_init();

	if (easy == NULL)
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	return easy;
}

static size_t
on_data(char *data, size_t size, size_t count, void *context)
{
	struct fetch *fetch = context;
	struct error ignored = ERROR_INIT;

	if (buffer_append(fetch->answer, data, size * count, &ignored) != 0)
		return 0;
	return size * count;
}

static int
on_progress(void *context, curl_off_t total, curl_off_t now,
    curl_off_t upload_total, curl_off_t upload_now)
{
	const struct fetch *fetch = context;

	(void)total;
	(void)now;
	(void)upload_total;
	(void)upload_now;
	return fetch->stop != NULL && atomic_load(fetch->stop);
}

static void
set_options(CURL *easy, struct fetch *fetch, struct curl_slist *headers,
    char *text)
{
	curl_easy_reset(easy);
	curl_easy_setopt(easy, CURLOPT_URL, fetch->url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
	    (long)(fetch->timeout / 1000000));
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, fetch);
	curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(easy, CURLOPT_XFERINFODATA, fetch);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, text);
	if (fetch->direct)
		curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	if (fetch->ca_bundle != NULL)
		curl_easy_setopt(easy, CURLOPT_CAINFO, fetch->ca_bundle);
	if (fetch->body != NULL)
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, fetch->body);
	else if (strcmp(fetch->method, "GET") != 0)
		curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, fetch->method);
}

static int
run(CURL *easy, struct fetch *fetch, struct curl_slist *headers,
    struct error *error)
{
	char text[CURL_ERROR_SIZE] = "";
	size_t before = fetch->answer->length;
	long status = 0;
	CURLcode code;

	set_options(easy, fetch, headers, text);
	code = curl_easy_perform(easy);
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_reset(easy);
	fetch->status = (int)status;
	if (code == CURLE_OK)
		return 0;
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return error_set(error, ERROR_FAILED, CAUSE_CANCELLED,
		    fetch->url, "stopped");
	if (code == CURLE_WRITE_ERROR && fetch->answer->length > before)
		return error_set(error, ERROR_FAILED, CAUSE_LIMIT, fetch->url,
		    "the answer is too large");
	return error_set(error, ERROR_FAILED, CAUSE_UNREACHABLE, fetch->url,
	    "%s", text[0] != '\0' ? text : curl_easy_strerror(code));
}

int
fetch_run(CURL *easy, struct fetch *fetch, struct error *error)
{
	struct curl_slist *headers = NULL;
	int result = -1;

	for (size_t i = 0; i < fetch->header_count; i++) {
		struct curl_slist *longer;

		if (strpbrk(fetch->headers[i], "\r\n") != NULL) {
			error_set(error, ERROR_USAGE, CAUSE_OTHER, fetch->url,
			    "a header would hold a line break");
			goto out;
		}
		longer = curl_slist_append(headers, fetch->headers[i]);
		if (longer == NULL) {
			error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
			    "out of memory");
			goto out;
		}
		headers = longer;
	}
	result = run(easy, fetch, headers, error);
out:
	curl_slist_free_all(headers);
	return result;
}
