#include "kit/kit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "life/link.h"

/* A letter of a disk whose names are in Latin-1. */
#define NAME "/run/mod\xe8le.safetensors"

static void
a_name_that_is_not_utf8_arrives(void **state)
{
	struct error error = ERROR_INIT;
	json_t *object = json_pack("{s:s}", "say", "ready");
	int ends[2], closed;
	char *name;

	(void)state;
	assert_ok(link_pair(ends, &error), error);
	assert_int_equal(json_set_name(object, "restored", NAME), 0);
	assert_int_equal(link_send(ends[0], object), 0);
	object = link_hear(ends[1], &closed);
	assert_non_null(object);
	name = json_get_name(object, "restored");
	assert_string_equal(name, NAME);
	free(name);
	json_decref(object);
	close(ends[0]);
	close(ends[1]);
}

static void
what_is_not_said_is_an_error(void **state)
{
	struct error error = ERROR_INIT;
	char *text = malloc(70000);
	int ends[2], closed;

	(void)state;
	assert_ok(link_pair(ends, &error), error);
	assert_int_equal(link_say(ends[0], "{s:s}", "say", NAME), -1);
	assert_int_equal(link_send(ends[0], NULL), -1);
	memset(text, 'x', 69999);
	text[69999] = '\0';
	assert_int_equal(link_say(ends[0], "{s:s}", "say", text), -1);
	assert_null(link_hear(ends[1], &closed));
	assert_int_equal(closed, 0);
	assert_int_equal(link_say(ends[0], "{s:s}", "say", "stop"), 0);
	json_decref(link_hear(ends[1], &closed));
	close(ends[0]);
	assert_null(link_hear(ends[1], &closed));
	assert_int_equal(closed, 1);
	assert_int_equal(link_say(ends[1], "{s:s}", "say", "stop"), -1);
	close(ends[1]);
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_that_is_not_utf8_arrives),
		cmocka_unit_test(what_is_not_said_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
