#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/unit.h"
#include "s3/answer.h"
#include "s3/xml.h"

/* S3's <Error>; also <Error> within <DeleteResult>. */
struct error_reading {
	struct answer_error *failure;
	bool is_error;
};

static void
text_copy(char *target, size_t size, const char *text)
{
	snprintf(target, size, "%s", text);
}

static void
error_field(struct answer_error *failure, const char *name, const char *text)
{
	if (strcmp(name, "Code") == 0)
		text_copy(failure->code, sizeof(failure->code), text);
	else if (strcmp(name, "Message") == 0)
		text_copy(failure->message, sizeof(failure->message), text);
	else if (strcmp(name, "RequestId") == 0)
		text_copy(failure->request_id, sizeof(failure->request_id),
		    text);
	else if (strcmp(name, "Region") == 0)
		text_copy(failure->region, sizeof(failure->region), text);
}

/* What follows ${prefix} in ${path}, or NULL. */
static const char *
path_below(const char *path, const char *prefix)
{
	size_t length = strlen(prefix);

	return strncmp(path, prefix, length) == 0 ? path + length : NULL;
}

static int
error_end(void *context, const char *path, const char *text,
    struct error *error)
{
	struct error_reading *reading = context;
	const char *name = path_below(path, "Error/");

	(void)error;
	if (name == NULL)
		name = path_below(path, "ErrorResponse/Error/");
	if (name == NULL)
		name = path_below(path, "ErrorResponse/");
	if (name != NULL)
		error_field(reading->failure, name, text);
	return 0;
}

int
answer_read_error(const void *data, size_t length,
    struct answer_error *failure)
{
	struct error_reading reading = { .failure = failure };
	struct xml_visitor visitor = { .end = error_end, .context = &reading,
	    .cut_texts = true };
	struct error error = ERROR_INIT;

	memset(failure, 0, sizeof(*failure));
	if (length == 0)
		return -1;

	/* What was read before a cut-off end is still worth telling. */
	xml_walk(data, length, &visitor, &error);
	return failure->code[0] != '\0' ? 0 : -1;
}

void
answer_page_init(struct answer_page *page)
{
	memset(page, 0, sizeof(*page));
	/* As many bytes as the answers that client.h lets in. */
	buffer_init(&page->texts, 32 * 1024 * 1024);
}

void
answer_page_free(struct answer_page *page)
{
	free(page->entries);
	buffer_free(&page->texts);
	answer_page_init(page);
}

const char *
answer_page_key(const struct answer_page *page, size_t index)
{
	return page->texts.data + page->entries[index].key;
}

struct page_reading {
	struct answer_page *page;
	bool root;		/* it is a ListBucketResult */
	bool has_key;		/* in this entry */
	bool has_size;
	struct answer_entry entry;
};

static int
damaged(struct error *error, const char *what)
{
	return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
	    "the server's answer is damaged: %s", what);
}

static int
page_grow(struct answer_page *page, struct error *error)
{
	size_t capacity = page->capacity > 0 ? 2 * page->capacity : 256;
	struct answer_entry *entries;

	if (page->count == ANSWER_ENTRIES_LIMIT)
		return error_set(error, ERROR_DAMAGED, CAUSE_LIMIT, NULL,
		    "the server listed too many keys at once");
	entries = realloc(page->entries, capacity * sizeof(*entries));
	if (entries == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	page->entries = entries;
	page->capacity = capacity;
	return 0;
}

static int
page_key(struct page_reading *reading, const char *text, struct error *error)
{
	struct answer_page *page = reading->page;

	if (reading->has_key || *text == '\0')
		return damaged(error, "an entry with no or two keys");
	reading->has_key = true;
	reading->entry.key = page->texts.length;
	return buffer_append(&page->texts, text, strlen(text) + 1, error);
}

static int
page_entry_end(struct page_reading *reading, bool is_prefix,
    struct error *error)
{
	struct answer_page *page = reading->page;

	if (!reading->has_key || (!is_prefix && !reading->has_size))
		return damaged(error, "an entry without key or size");
	if ((page->count == page->capacity ||
	    page->count == ANSWER_ENTRIES_LIMIT) && page_grow(page, error) != 0)
		return -1;
	reading->entry.is_prefix = is_prefix;
	page->entries[page->count++] = reading->entry;
	memset(&reading->entry, 0, sizeof(reading->entry));
	reading->has_key = false;
	reading->has_size = false;
	return 0;
}

static int
page_begin(void *context, const char *path, struct error *error)
{
	struct page_reading *reading = context;

	if (!reading->root && strcmp(path, "ListBucketResult") != 0)
		return damaged(error, "it is not a listing");
	reading->root = true;
	return 0;
}

static int
page_end(void *context, const char *path, const char *text,
    struct error *error)
{
	struct page_reading *reading = context;
	const char *name = path_below(path, "ListBucketResult/");

	if (name == NULL)
		return 0;
	if (strcmp(name, "Contents/Key") == 0 ||
	    strcmp(name, "CommonPrefixes/Prefix") == 0)
		return page_key(reading, text, error);
	if (strcmp(name, "Contents/Size") == 0) {
		reading->has_size = true;
		if (unit_parse_number(text, 0, INT64_MAX,
		    &reading->entry.size, error) != 0)
			return damaged(error, "a size is not a number");
	} else if (strcmp(name, "Contents") == 0) {
		return page_entry_end(reading, false, error);
	} else if (strcmp(name, "CommonPrefixes") == 0) {
		return page_entry_end(reading, true, error);
	} else if (strcmp(name, "IsTruncated") == 0) {
		reading->page->truncated = strcmp(text, "true") == 0;
	} else if (strcmp(name, "NextContinuationToken") == 0) {
		if (strlen(text) >= sizeof(reading->page->next))
			return damaged(error, "too long a token");
		text_copy(reading->page->next, sizeof(reading->page->next),
		    text);
	}
	return 0;
}

static int
entry_compare(const void *one, const void *other, void *texts)
{
	const struct answer_entry *a = one;
	const struct answer_entry *b = other;

	return strcmp((const char *)texts + a->key,
	    (const char *)texts + b->key);
}

int
answer_read_page(const void *data, size_t length, struct answer_page *page,
    struct error *error)
{
	struct page_reading reading = { .page = page };
	struct xml_visitor visitor = { .begin = page_begin, .end = page_end,
	    .context = &reading };

	answer_page_free(page);
	if (xml_walk(data, length, &visitor, error) != 0)
		return -1;
	if (page->truncated && page->next[0] == '\0')
		return damaged(error, "a cut listing without a token");
	/* Keys and prefixes come one after the other, each kind in order. */
	if (page->count > 1)
		qsort_r(page->entries, page->count, sizeof(page->entries[0]),
		    entry_compare, page->texts.data);
	return 0;
}

struct deletes_reading {
	int (*visit)(void *context, const char *key,
	    const struct answer_error *failure, struct error *error);
	void *context;
	bool root;
	char key[XML_TEXT_LIMIT + 1];
	struct answer_error failure;
};

static int
deletes_begin(void *context, const char *path, struct error *error)
{
	struct deletes_reading *reading = context;

	if (!reading->root && strcmp(path, "DeleteResult") != 0)
		return damaged(error, "it is not the result of a delete");
	reading->root = true;
	if (strcmp(path, "DeleteResult/Error") == 0) {
		reading->key[0] = '\0';
		memset(&reading->failure, 0, sizeof(reading->failure));
	}
	return 0;
}

static int
deletes_end(void *context, const char *path, const char *text,
    struct error *error)
{
	struct deletes_reading *reading = context;
	const char *name = path_below(path, "DeleteResult/Error");

	if (name == NULL)
		return 0;
	if (name[0] == '\0')
		return reading->visit(reading->context, reading->key,
		    &reading->failure, error);
	if (strcmp(name, "/Key") == 0)
		text_copy(reading->key, sizeof(reading->key), text);
	else if (name[0] == '/')
		error_field(&reading->failure, name + 1, text);
	return 0;
}

int
answer_read_deletes(const void *data, size_t length,
    int (*visit)(void *context, const char *key,
    const struct answer_error *failure, struct error *error), void *context,
    struct error *error)
{
	struct deletes_reading reading = { .visit = visit,
	    .context = context };
	struct xml_visitor visitor = { .begin = deletes_begin,
	    .end = deletes_end, .context = &reading };

	return xml_walk(data, length, &visitor, error);
}

static int
role_end(void *context, const char *path, const char *text,
    struct error *error)
{
	struct answer_role *role = context;
	const char *name = path_below(path, "AssumeRoleWithWebIdentityResponse/"
	    "AssumeRoleWithWebIdentityResult/Credentials/");
	struct { const char *name; char *target; size_t size; } fields[] = {
		{ "AccessKeyId", role->access_key, sizeof(role->access_key) },
		{ "SecretAccessKey", role->secret, sizeof(role->secret) },
		{ "SessionToken", role->token, sizeof(role->token) },
		{ "Expiration", role->expiration, sizeof(role->expiration) },
	};

	for (size_t i = 0; name != NULL &&
	    i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (strcmp(name, fields[i].name) != 0)
			continue;
		if (strlen(text) >= fields[i].size)
			return damaged(error, "a text is too long");
		text_copy(fields[i].target, fields[i].size, text);
	}
	return 0;
}

int
answer_read_role(const void *data, size_t length, struct answer_role *role,
    struct error *error)
{
	struct xml_visitor visitor = { .end = role_end, .context = role };

	memset(role, 0, sizeof(*role));
	if (xml_walk(data, length, &visitor, error) != 0)
		return -1;
	if (role->access_key[0] == '\0' || role->secret[0] == '\0' ||
	    role->token[0] == '\0')
		return damaged(error, "no credentials in it");
	return 0;
}
