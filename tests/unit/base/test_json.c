#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "kit/kit.h"

/* Read ${text} from memory of exactly its size, so that reading on shows. */
static json_t *
read_text(const char *text, size_t length, struct error *error)
{
	char *data = malloc(length > 0 ? length : 1);
	json_t *value;

	assert_non_null(data);
	memcpy(data, text, length);
	value = json_read(data, length, "a.json", error);
	free(data);
	return value;
}

static json_t *
read_good(const char *text)
{
	struct error error = ERROR_INIT;
	json_t *value = read_text(text, strlen(text), &error);
	char shown[ERROR_TEXT_SIZE];

	if (value == NULL)
		fail_msg("%s: %s", text, error_text(&error, shown));
	return value;
}

static void
reads_objects(void **state)
{
	static const char *const cases[] = { "{}", " {\"a\": [1, {}]}\n",
	    "{\"a\":{\"a\":1}}", "{\"\\u00e9\":\"\\\\\\\"[[[\"}" };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		json_decref(read_good(cases[i]));
}

static void
refuses_what_is_not_an_object(void **state)
{
	static const char *const cases[] = {
		"", " ", "[]", "\"a\"", "1", "null", "{", "}", "{}{}", "{} x",
		"{\"a\":}", "{\"a\":1,}", "{'a':1}", "{\"a\":1,\"a\":2}",
		"{\"a\":\"\\u0000\"}", "{\"a\\u0000b\":1}", "{\"a\":01}",
		"{\"a\":9223372036854775808}", "{\"a\":1e999}",
		"{\"a\":\"\xff\"}", "{\"\xc3\":1}", "{\"a\":\"\n\"}",
		"{\"a\":NaN}", "\xef\xbb\xbf{}", "{\"a\":\"\\ud800\"}",
		"{\"a\":\"", "{\"a\":\"\\", "{\"a\":\"\\u12",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error = ERROR_INIT;

		if (read_text(cases[i], strlen(cases[i]), &error) != NULL)
			fail_msg("must be refused: %s", cases[i]);
		assert_int_equal(error.class, ERROR_DAMAGED);
		assert_string_equal(error.object, "a.json");
		assert_non_null(strstr(error.message, "JSON"));
	}
}

static void
refuses_a_nul_inside(void **state)
{
	struct error error = ERROR_INIT;

	(void)state;
	assert_null(read_text("{}\0", 3, &error));
	assert_int_equal(error.class, ERROR_DAMAGED);
	assert_null(read_text("{\"a\":\"x\0y\"}", 11, &error));
	assert_null(read_text("{\"a\0\":1}", 8, &error));
}

static void
every_cut_is_refused(void **state)
{
	static const char text[] = "{\"a\": [1, 2.5, true, null, "
	    "\"\\u00e9\\n\"], \"b\": {\"s\": -1}}";

	(void)state;
	json_decref(read_good(text));
	for (size_t length = 0; length < sizeof(text) - 1; length++) {
		struct error error = ERROR_INIT;

		assert_null(read_text(text, length, &error));
		assert_int_equal(error.class, ERROR_DAMAGED);
	}
}

/* An object, and ${depth} - 1 arrays in it. */
static char *
nested(size_t depth, const char *inside)
{
	size_t length = depth + 4 + strlen(inside) + depth + 1;
	char *text = malloc(length);
	char *at = text;

	assert_non_null(text);
	at = stpcpy(at, "{\"a\":");
	for (size_t i = 1; i < depth; i++)
		*at++ = '[';
	at = stpcpy(at, inside);
	for (size_t i = 1; i < depth; i++)
		*at++ = ']';
	strcpy(at, "}");
	return text;
}

static void
refuses_deep_nesting(void **state)
{
	struct error error = ERROR_INIT;
	char *text = nested(64, "1");

	(void)state;
	json_decref(read_good(text));
	free(text);

	/* Brackets in a string don't nest. */
	text = nested(64, "\"[[\\\"[[{{\"");
	json_decref(read_good(text));
	free(text);

	text = nested(65, "1");
	assert_null(read_text(text, strlen(text), &error));
	assert_int_equal(error.class, ERROR_DAMAGED);
	assert_int_equal(error.cause, CAUSE_LIMIT);
	assert_non_null(strstr(error.message, "64"));
	free(text);

	text = nested(1000000, "1");
	assert_null(read_text(text, strlen(text), &error));
	assert_int_equal(error.cause, CAUSE_LIMIT);
	free(text);
}

static void
names_come_back_as_they_were(void **state)
{
	static const struct {
		const char *name;
		const char *field;
		const char *written;
	} cases[] = {
		{ "last.pt", "name", "last.pt" },
		{ "", "name", "" },
		{ "\xc3\xa9\n\"", "name", "\xc3\xa9\n\"" },
		{ "\xff", "name_b64", "/w==" },
		{ "a\xff", "name_b64", "Yf8=" },
		{ "ab\xff", "name_b64", "YWL/" },
		{ "abc\xfe\xed", "name_b64", "YWJj/u0=" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *object = json_object();
		char *name;

		assert_int_equal(json_set_name(object, "name",
		    cases[i].name), 0);
		assert_string_equal(json_get_text(object, cases[i].field),
		    cases[i].written);
		assert_int_equal(json_object_size(object), 1);
		name = json_get_name(object, "name");
		assert_non_null(name);
		assert_string_equal(name, cases[i].name);
		free(name);
		json_decref(object);
	}
}

static void
a_name_replaces_its_other_form(void **state)
{
	json_t *object = json_object();
	char *name;

	(void)state;
	json_set_name(object, "name", "plain");
	json_set_name(object, "name", "\xff");
	assert_int_equal(json_object_size(object), 1);
	name = json_get_name(object, "name");
	assert_string_equal(name, "\xff");
	free(name);
	json_set_name(object, "name", "plain");
	assert_int_equal(json_object_size(object), 1);
	name = json_get_name(object, "name");
	assert_string_equal(name, "plain");
	free(name);
	json_decref(object);
}

static void
refuses_other_names(void **state)
{
	static const char *const cases[] = {
		"{}", "{\"name\":1}", "{\"name\":null}",
		"{\"name_b64\":1}", "{\"name_b64\":[]}",
		"{\"name\":1,\"name_b64\":\"/w==\"}",
		"{\"name_b64\":\"/w=\"}", "{\"name_b64\":\"/w\"}",
		"{\"name_b64\":\"/\"}", "{\"name_b64\":\"====\"}",
		"{\"name_b64\":\"/===\"}", "{\"name_b64\":\"=w==\"}",
		"{\"name_b64\":\"/x==\"}", "{\"name_b64\":\"/w==/w==\"}",
		"{\"name_b64\":\" /w==\"}", "{\"name_b64\":\"/w==\\n\"}",
		"{\"name_b64\":\"_w==\"}", "{\"name_b64\":\"    /w==\"}",
		"{\"name_b64\":\"AA==\"}", "{\"name_b64\":\"YQBi\"}",
		"{\"name_b64\":\"\xc3\xa9\xc3\xa9\"}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *object = read_good(cases[i]);

		if (json_get_name(object, "name") != NULL)
			fail_msg("must be refused: %s", cases[i]);
		json_decref(object);
	}
	assert_null(json_get_name(NULL, "name"));
}

static void
numbers(void **state)
{
	static const char *const wrong[] = { "{}", "{\"n\":-1}",
	    "{\"n\":1.0}", "{\"n\":\"1\"}", "{\"n\":null}", "{\"n\":true}" };
	json_t *object = json_object();
	uint64_t number = 7;

	(void)state;
	assert_int_equal(json_set_u64(object, "n", INT64_MAX), 0);
	assert_int_equal(json_get_u64(object, "n", &number), 0);
	assert_true(number == INT64_MAX);
	assert_int_equal(json_set_u64(object, "n", 0), 0);
	assert_int_equal(json_get_u64(object, "n", &number), 0);
	assert_true(number == 0);
	json_decref(object);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		object = read_good(wrong[i]);
		assert_int_equal(json_get_u64(object, "n", &number), -1);
		json_decref(object);
	}
	assert_int_equal(json_get_u64(NULL, "n", &number), -1);
	assert_true(number == 0);
}

static void
times(void **state)
{
	static const struct timespec good[] = { { 0, 0 }, { -5, 999999999 },
	    { INT64_MAX, 1 }, { INT64_MIN, 0 } };
	static const char *const wrong[] = { "{}", "{\"t\":1}",
	    "{\"t\":{}}", "{\"t\":{\"s\":1}}", "{\"t\":{\"ns\":1}}",
	    "{\"t\":{\"s\":1,\"ns\":-1}}",
	    "{\"t\":{\"s\":1,\"ns\":1000000000}}",
	    "{\"t\":{\"s\":1.5,\"ns\":0}}", "{\"t\":{\"s\":\"1\",\"ns\":0}}",
	    "{\"t\":[1,2]}" };
	struct timespec when = { 7, 7 };

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		json_t *object = json_object();

		assert_int_equal(json_set_time(object, "t", good[i]), 0);
		assert_int_equal(json_get_time(object, "t", &when), 0);
		assert_int_equal(when.tv_sec, good[i].tv_sec);
		assert_int_equal(when.tv_nsec, good[i].tv_nsec);
		json_decref(object);
	}
	when = (struct timespec){ 7, 7 };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		json_t *object = read_good(wrong[i]);

		assert_int_equal(json_get_time(object, "t", &when), -1);
		json_decref(object);
	}
	assert_int_equal(when.tv_sec, 7);
}

static void
texts(void **state)
{
	json_t *object = read_good("{\"a\":\"x\",\"b\":1}");

	(void)state;
	assert_string_equal(json_get_text(object, "a"), "x");
	assert_null(json_get_text(object, "b"));
	assert_null(json_get_text(object, "c"));
	assert_null(json_get_text(NULL, "a"));
	json_object_set_new(object, "n", json_stringn("x\0y", 3));
	assert_null(json_get_text(object, "n"));
	assert_null(json_get_name(object, "n"));
	json_decref(object);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_objects),
		cmocka_unit_test(refuses_what_is_not_an_object),
		cmocka_unit_test(refuses_a_nul_inside),
		cmocka_unit_test(every_cut_is_refused),
		cmocka_unit_test(refuses_deep_nesting),
		cmocka_unit_test(names_come_back_as_they_were),
		cmocka_unit_test(a_name_replaces_its_other_form),
		cmocka_unit_test(refuses_other_names),
		cmocka_unit_test(numbers),
		cmocka_unit_test(times),
		cmocka_unit_test(texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
