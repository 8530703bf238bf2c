/* room: s3 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "s3/answer.h"

/*
 * Every XML answer of a server: an error, a page of a listing, the result of
 * a batch delete, credentials of STS.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
on_key(void *context, const char *key, const struct answer_error *failure,
    struct error *error)
{
	size_t *sum = context;

	(void)error;
	*sum += strlen(key) + strlen(failure->code) +
	    strlen(failure->message);
	return 0;
}

/* What a page promises: keys in order, and a token when it is cut. */
static void
check_page(const struct answer_page *page)
{
	for (size_t i = 0; i < page->count; i++) {
		const char *key = answer_page_key(page, i);

		if (key[0] == '\0' || (i > 0 && strcmp(answer_page_key(page,
		    i - 1), key) > 0))
			abort();
	}
	if (page->truncated && page->next[0] == '\0')
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct answer_role role;
	struct error error = ERROR_INIT;
	struct answer_error failure;
	struct answer_page page;
	size_t sum = 0;

	if (answer_read_error(data, size, &failure) == 0 &&
	    failure.code[0] == '\0')
		abort();
	answer_page_init(&page);
	if (answer_read_page(data, size, &page, &error) == 0)
		check_page(&page);
	answer_page_free(&page);
	answer_read_deletes(data, size, on_key, &sum, &error);
	if (answer_read_role(data, size, &role, &error) == 0 &&
	    role.secret[0] == '\0')
		abort();
	return 0;
}
