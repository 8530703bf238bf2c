#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/source.h"
#include "base/text.h"
#include "s3/answer.h"
#include "s3/call.h"
#include "s3/client.h"
#include "s3/perform.h"
#include "s3/service.h"

/* DeleteObjects takes 1,000 keys of 1,024 bytes; each byte may become "&amp;"
 * or another six. */
#define BATCH_LIMIT 1000
#define DOCUMENT_LIMIT (8 * 1024 * 1024)
/* Single DELETEs under way at once. */
#define WINDOW 64

/* base64 of an MD5, and the NUL */
#define MD5_TEXT_SIZE 25

struct batch {
	const char *const *keys;
	size_t count;
	bool single[BATCH_LIMIT];	/* to be deleted by a DELETE of its own */
};

/* Whether XML 1.0 can say it. */
static bool
key_fits_xml(const char *key)
{
	for (const char *byte = key; *byte != '\0'; byte++)
		if ((unsigned char)*byte < 0x20 || *byte == 0x7f)
			return false;
	return text_is_utf8(key);
}

static int
append_escaped(const char *text, struct buffer *buffer, struct error *error)
{
	for (;;) {
		size_t plain = strcspn(text, "&<>\"'");
		const char *entity;

		if (buffer_append(buffer, text, plain, error) != 0)
			return -1;
		text += plain;
		switch (*text++) {
		case '&':
			entity = "&amp;";
			break;
		case '<':
			entity = "&lt;";
			break;
		case '>':
			entity = "&gt;";
			break;
		case '"':
			entity = "&quot;";
			break;
		case '\'':
			entity = "&apos;";
			break;
		default:
			return 0;
		}
		if (buffer_append(buffer, entity, strlen(entity), error) != 0)
			return -1;
	}
}

/* The document, of the keys that fit into it; the others stay single. */
static int
document_make(struct batch *batch, struct buffer *document, size_t *named,
    struct error *error)
{
	*named = 0;
	if (buffer_format(document, error, "<?xml version=\"1.0\" "
	    "encoding=\"UTF-8\"?><Delete xmlns=\"http://s3.amazonaws.com/doc/"
	    "2006-03-01/\"><Quiet>true</Quiet>") != 0)
		return -1;
	for (size_t i = 0; i < batch->count; i++) {
		batch->single[i] = !key_fits_xml(batch->keys[i]);
		if (batch->single[i])
			continue;
		if (buffer_format(document, error, "<Object><Key>") != 0 ||
		    append_escaped(batch->keys[i], document, error) != 0 ||
		    buffer_format(document, error, "</Key></Object>") != 0)
			return -1;
		++*named;
	}
	return buffer_format(document, error, "</Delete>");
}

/* Content-MD5; many servers demand it here.  Return NULL where this OpenSSL
 * has no MD5 (FIPS). */
static const char *
md5_text(const struct buffer *document, char text[MD5_TEXT_SIZE])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned length = 0;

	if (EVP_Digest(document->data, document->length, digest, &length,
	    EVP_md5(), NULL) != 1 || length != 16)
		return NULL;
	EVP_EncodeBlock((unsigned char *)text, digest, 16);
	return text;
}

/* A key that the server did not delete gets a DELETE of its own, which tries
 * again what is worth it, and says why when it is not. */
static int
on_refused_key(void *context, const char *key,
    const struct answer_error *failure, struct error *error)
{
	struct batch *batch = context;

	if (strcmp(failure->code, "NoSuchKey") == 0)
		return 0;
	for (size_t i = 0; i < batch->count; i++)
		if (strcmp(batch->keys[i], key) == 0) {
			batch->single[i] = true;
			return 0;
		}
	return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, key,
	    "the server did not delete something that was not named: %s %s",
	    failure->code, failure->message);
}

static int
accept_result(void *context, const void *data, size_t length,
    struct error *error)
{
	return answer_read_deletes(data, length, on_refused_key, context,
	    error);
}

static int
batch_send(struct s3_client *client, struct batch *batch,
    const struct buffer *document, struct error *error)
{
	static const struct sign_field parameter = { "delete", "" };
	struct source_memory memory = { document->data, document->length };
	struct source body = source_from_memory(&memory);
	struct s3_request request = { .operation = S3_PUT, .key = "",
	    .body = &body, .length = document->length };
	struct call *call = call_new(&request);
	char md5[MD5_TEXT_SIZE];

	if (call == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	sha256_of(document->data, document->length, request.sha256);
	call->is_post = true;
	call->parameters = &parameter;
	call->parameter_count = 1;
	call->content_md5 = md5_text(document, md5);
	call->accept = accept_result;
	call->accept_context = batch;
	if (client_perform_call(client, call) == 0)
		return 0;
	if (request.error.cause == CAUSE_UNSUPPORTED) {
		atomic_store(&client_service(client)->no_batch_delete, true);
		memset(batch->single, true, sizeof(batch->single));
		return 0;
	}
	*error = request.error;
	return error_prefix(error, "deleting %zu keys of bucket %s",
	    batch->count, client_service(client)->endpoint.bucket);
}

/* DELETEs that run side by side. */
struct window {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	size_t running;
};

static void
on_deleted(struct s3_request *request)
{
	struct window *window = request->context;

	pthread_mutex_lock(&window->lock);
	window->running--;
	pthread_cond_signal(&window->changed);
	pthread_mutex_unlock(&window->lock);
}

/* Submit up to WINDOW deletes from ${first} on and wait for them; return
 * where to go on. */
static size_t
window_run(struct s3_client *client, const struct batch *batch, size_t first,
    struct s3_request *requests, struct error *error)
{
	struct window window = { .lock = PTHREAD_MUTEX_INITIALIZER,
	    .changed = PTHREAD_COND_INITIALIZER };
	size_t count = 0;

	for (; first < batch->count && count < WINDOW; first++) {
		struct s3_request *request = &requests[count];

		if (!batch->single[first])
			continue;
		memset(request, 0, sizeof(*request));
		request->operation = S3_DELETE;
		request->key = batch->keys[first];
		request->done = on_deleted;
		request->context = &window;
		count++;
		pthread_mutex_lock(&window.lock);
		window.running++;
		pthread_mutex_unlock(&window.lock);
		s3_client_submit(client, request);
	}
	pthread_mutex_lock(&window.lock);
	while (window.running > 0)
		pthread_cond_wait(&window.changed, &window.lock);
	pthread_mutex_unlock(&window.lock);
	pthread_cond_destroy(&window.changed);
	pthread_mutex_destroy(&window.lock);
	for (size_t i = 0; i < count && error->class == ERROR_NONE; i++)
		if (requests[i].error.class != ERROR_NONE)
			*error = requests[i].error;
	return first;
}

static int
singles_run(struct s3_client *client, const struct batch *batch,
    struct error *error)
{
	struct s3_request *requests = malloc(WINDOW * sizeof(*requests));
	size_t next = 0;

	if (requests == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	error_clear(error);
	while (next < batch->count && error->class == ERROR_NONE)
		next = window_run(client, batch, next, requests, error);
	free(requests);
	return error->class == ERROR_NONE ? 0 : -1;
}

static int
batch_run(struct s3_client *client, struct batch *batch, struct error *error)
{
	struct buffer document;
	size_t named;
	int result = -1;

	memset(batch->single, true, sizeof(batch->single));
	if (batch->count == 1 ||
	    atomic_load(&client_service(client)->no_batch_delete))
		return singles_run(client, batch, error);
	buffer_init(&document, DOCUMENT_LIMIT);
	if (document_make(batch, &document, &named, error) != 0)
		goto out;
	if (named > 0 && batch_send(client, batch, &document, error) != 0)
		goto out;
	result = singles_run(client, batch, error);
out:
	buffer_free(&document);
	return result;
}

int
s3_client_delete_many(struct s3_client *client, const char *const *keys,
    size_t count, struct error *error)
{
	struct batch batch;

	while (count > 0) {
		batch.keys = keys;
		batch.count = count < BATCH_LIMIT ? count : BATCH_LIMIT;
		if (batch_run(client, &batch, error) != 0)
			return -1;
		keys += batch.count;
		count -= batch.count;
	}
	return 0;
}
