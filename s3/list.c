#include <string.h>

#include "base/error.h"
#include "s3/answer.h"
#include "s3/call.h"
#include "s3/client.h"
#include "s3/perform.h"
#include "s3/service.h"

#define PARAMETERS_LIMIT 4

/* What one listing is made of; a page at a time. */
struct listing {
	const char *prefix;
	const char *delimiter;
	char token[ANSWER_TOKEN_SIZE];	/* "" for the first page */
	struct answer_page page;
	int (*visit)(void *context, const struct s3_entry *entry,
	    struct error *error);
	void *context;
};

static int
accept_page(void *context, const void *data, size_t length,
    struct error *error)
{
	struct listing *listing = context;

	return answer_read_page(data, length, &listing->page, error);
}

static int
page_fetch(struct s3_client *client, struct listing *listing,
    struct error *error)
{
	struct sign_field parameters[PARAMETERS_LIMIT];
	struct s3_request request = { .operation = S3_GET, .key = "" };
	struct call *call = call_new(&request);
	size_t count = 0;

	if (call == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	parameters[count++] = (struct sign_field){ "list-type", "2" };
	parameters[count++] = (struct sign_field){ "prefix",
	    listing->prefix };
	if (listing->delimiter != NULL)
		parameters[count++] = (struct sign_field){ "delimiter",
		    listing->delimiter };
	if (listing->token[0] != '\0')
		parameters[count++] = (struct sign_field){
		    "continuation-token", listing->token };
	call->parameters = parameters;
	call->parameter_count = count;
	call->accept = accept_page;
	call->accept_context = listing;
	if (client_perform_call(client, call) == 0)
		return 0;
	*error = request.error;
	return error_prefix(error, "listing bucket %s",
	    client_service(client)->endpoint.bucket);
}

static int
page_visit(const struct listing *listing, struct error *error)
{
	const struct answer_page *page = &listing->page;
	size_t length = strlen(listing->prefix);

	for (size_t i = 0; i < page->count; i++) {
		struct s3_entry entry = { .key = answer_page_key(page, i),
		    .is_prefix = page->entries[i].is_prefix,
		    .size = page->entries[i].size };

		if (strncmp(entry.key, listing->prefix, length) != 0)
			return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
			    listing->prefix, "the server lists keys that do "
			    "not begin with what was asked for");
		if (listing->visit(listing->context, &entry, error) != 0)
			return -1;
	}
	return 0;
}

/* Take the token of the next page; it must be another one. */
static int
page_turn(struct listing *listing, struct error *error)
{
	if (strcmp(listing->page.next, listing->token) == 0)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
		    listing->prefix, "the server lists the same page again");
	memcpy(listing->token, listing->page.next, sizeof(listing->token));
	return 0;
}

int
s3_client_list(struct s3_client *client, const char *prefix,
    const char *delimiter, int (*visit)(void *context,
    const struct s3_entry *entry, struct error *error), void *context,
    struct error *error)
{
	struct listing listing = { .prefix = prefix, .delimiter = delimiter,
	    .visit = visit, .context = context };
	int result;

	answer_page_init(&listing.page);
	do {
		result = page_fetch(client, &listing, error);
		if (result == 0)
			result = page_visit(&listing, error);
	} while (result == 0 && listing.page.truncated &&
	    (result = page_turn(&listing, error)) == 0);
	answer_page_free(&listing.page);
	return result;
}
