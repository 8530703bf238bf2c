#include "play.h"

#include <stdio.h>
#include <string.h>

/*
 * Listings over pages, and deletes of many keys.
 */
#define PAGE(token, keys) "<ListBucketResult><IsTruncated>" token \
    keys "</ListBucketResult>"
#define NEXT(token) "true</IsTruncated><NextContinuationToken>" token \
    "</NextContinuationToken>"
#define LAST "false</IsTruncated>"
#define KEY(key) "<Contents><Key>" key "</Key><Size>3</Size></Contents>"

static int
visit(void *context, const struct s3_entry *entry, struct error *error)
{
	char *text = context;

	snprintf(text + strlen(text), 200 - strlen(text), "%s%s ", entry->key,
	    entry->is_prefix ? "*" : "");
	if (strcmp(entry->key, "p/stop") == 0)
		return error_set(error, ERROR_FAILED, CAUSE_OTHER, NULL,
		    "stopped");
	return 0;
}

static void
test_list(void **state)
{
	const struct step steps[] = {
	    { .body = PAGE(NEXT("a/+="), KEY("p/1") "<CommonPrefixes><Prefix>"
	    "p/0/</Prefix></CommonPrefixes>") },
	    { .status = 503 },
	    { .body = "<ListBucketResult><IsTr" },
	    { .body = ERROR_XML("InternalError") },
	    { .body = PAGE(LAST, KEY("p/2")) } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = play_client(server);
	struct error error = ERROR_INIT;
	char text[200] = "";

	(void)state;
	assert_ok(s3_client_list(client, "p/", "/", visit, text, &error),
	    error);
	assert_string_equal(text, "p/0/* p/1 p/2 ");
	assert_string_equal(server_seen(server, 0)->target,
	    "/bucket?delimiter=%2F&list-type=2&prefix=p%2F");
	for (size_t i = 1; i < COUNT(steps); i++)
		assert_string_equal(server_seen(server, i)->target,
		    "/bucket?continuation-token=a%2F%2B%3D&delimiter=%2F&"
		    "list-type=2&prefix=p%2F");
	s3_client_free(client);
	server_stop(server);
}

static void
test_bad_lists(void **state)
{
	const struct {
		struct step steps[2];
		enum error_class class;
		const char *message;
	} cases[] = {
		{ { { .body = PAGE(LAST, KEY("q/1")) } }, ERROR_DAMAGED,
		    "do not begin with" },
		{ { { .body = PAGE(NEXT("t"), KEY("p/1")) },
		    { .body = PAGE(NEXT("t"), KEY("p/2")) } }, ERROR_DAMAGED,
		    "same page again" },
		{ { { .body = PAGE(LAST, KEY("p/stop") KEY("p/t")) } },
		    ERROR_FAILED, "stopped" },
		{ { { .status = 403, .body = ERROR_XML("AccessDenied") } },
		    ERROR_FAILED, "listing bucket bucket: GET failed: 403" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct server *server = server_start(cases[i].steps, 2);
		struct s3_client *client = play_client(server);
		struct error error = ERROR_INIT;
		char text[200] = "";

		assert_int_equal(s3_client_list(client, "p/", NULL, visit,
		    text, &error), -1);
		assert_int_equal(error.class, cases[i].class);
		if (strstr(error.message, cases[i].message) == NULL)
			fail_msg("%s", error.message);
		s3_client_free(client);
		server_stop(server);
	}
}

static void
test_delete_many(void **state)
{
	const struct step steps[] = {
	    { .body = "<DeleteResult><Error><Key>b</Key><Code>InternalError"
	    "</Code></Error><Error><Key>d</Key><Code>NoSuchKey</Code></Error>"
	    "</DeleteResult>" },
	    { .status = 204 },	/* b by itself */
	    { .status = 204 } };	/* the key with a control character */
	const char *const keys[] = { "a<&>", "b", "c\x01", "d" };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = play_client(server);
	struct error error = ERROR_INIT;
	const struct seen *seen;
	char md5[64];

	(void)state;
	assert_ok(s3_client_delete_many(client, keys, COUNT(keys), &error),
	    error);
	assert_int_equal(server_count(server), 3);
	seen = server_seen(server, 0);
	assert_string_equal(seen->method, "POST");
	assert_string_equal(seen->target, "/bucket?delete=");
	assert_non_null(strstr(seen->body, "<Object><Key>a&lt;&amp;&gt;</Key>"
	    "</Object><Object><Key>b</Key></Object><Object><Key>d</Key>"
	    "</Object></Delete>"));
	assert_int_equal(strlen(seen_header(seen, "content-md5", md5,
	    sizeof(md5))), 24);
	s3_client_free(client);
	server_stop(server);
}

static void
test_delete_many_without_batches(void **state)
{
	struct step steps[] = {
	    { .status = 501, .body = ERROR_XML("NotImplemented") },
	    { .status = 204 }, { .status = 204 }, { .status = 204 },
	    { .status = 204 }, { .status = 204 },
	    { .status = 403, .body = ERROR_XML("AccessDenied") } };
	const char *const keys[] = { "a", "b", "c", "d" };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = play_client(server);
	struct error error = ERROR_INIT;

	(void)state;
	assert_ok(s3_client_delete_many(client, keys, 3, &error), error);
	assert_int_equal(server_count(server), 4);
	/* It is not asked again for what it does not have. */
	assert_int_equal(s3_client_delete_many(client, keys + 1, 3, &error),
	    -1);
	assert_int_equal(error.cause, CAUSE_DENIED);
	for (size_t i = 1; i < server_count(server); i++)
		assert_string_equal(server_seen(server, i)->method, "DELETE");
	s3_client_free(client);
	server_stop(server);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		PLAY(test_list),
		PLAY(test_bad_lists),
		PLAY(test_delete_many),
		PLAY(test_delete_many_without_batches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
