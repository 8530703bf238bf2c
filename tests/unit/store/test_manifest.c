#include "kit/kit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json.h"
#include "store/manifest.h"

#define FOLDER TEST_DATA "/manifests/"
#define TERM "node-0000/term-00000003-9f2c5d1e0a7b4c68/"

static char *
copy(const char *text)
{
	char *fresh = strdup(text);

	assert_non_null(fresh);
	return fresh;
}

/* The key of a manifest with these bytes, attempt 17 of the term above. */
static char *
key_of(const void *data, size_t length, char key[KEY_SIZE])
{
	const struct term term = { 0, 3, UINT64_C(0x9f2c5d1e0a7b4c68) };
	uint8_t digest[SHA256_SIZE];

	sha256_of(data, length, digest);
	return key_manifest(&term, 17, digest, key);
}

/* --- what must be read for ever --- */

static struct manifest *
read_golden(const char *name)
{
	char path[512], key[KEY_SIZE], stored[KEY_SIZE + 1];
	struct manifest *manifest;
	struct error error;
	size_t length, ignored;
	char *data, *text;

	snprintf(path, sizeof(path), FOLDER "%s.json", name);
	data = kit_read_file(path, &length);
	snprintf(path, sizeof(path), FOLDER "%s.key", name);
	text = kit_read_file(path, &ignored);
	snprintf(stored, sizeof(stored), "%.*s", (int)strcspn(text, "\n"),
	    text);
	free(text);
	assert_string_equal(key_of(data, length, key), stored);
	manifest = manifest_read(key, data, length, &error);
	free(data);
	if (manifest == NULL)
		fail_msg("%s: %s", name, error.message);
	return manifest;
}

static void
test_golden_small(void **state)
{
	struct manifest *manifest = read_golden("small");
	char id[MANIFEST_ID_SIZE];

	(void)state;
	assert_string_equal(manifest->name, "last.pt");
	assert_int_equal(manifest->role, ROLE_RESUME);
	assert_false(manifest->has_step);
	assert_null(manifest->resume);
	assert_int_equal(manifest->entry_count, 1);
	assert_int_equal(manifest->entries[0].size, 0);
	assert_int_equal(manifest->chunk_count, 0);
	assert_null(manifest->environment);
	assert_string_equal(manifest_id(manifest, id), "3-17");
	manifest_free(manifest);
}

static void
test_golden_full(void **state)
{
	struct manifest *manifest = read_golden("full");
	const struct manifest_entry *entries = manifest->entries;

	(void)state;
	assert_string_equal(manifest->name, "checkpoint-500");
	assert_string_equal(manifest->series, "checkpoint-*");
	assert_string_equal(manifest->layout, "hf-trainer");
	assert_int_equal(manifest->role, ROLE_BEST);
	assert_true(manifest->has_step);
	assert_int_equal(manifest->step, 500);
	assert_true(manifest->proven);
	assert_int_equal(manifest->completed.tv_sec, 1796060000);
	assert_int_equal(manifest->completed.tv_nsec, 5);
	assert_int_equal(manifest->nodes, 2);
	assert_int_equal(manifest->save_attempt, 1796050000);
	assert_int_equal(manifest->target, 8 << 20);
	assert_int_equal(manifest->size, 1500);
	assert_int_equal(manifest->new_size, 1000);
	assert_int_equal(manifest->entry_count, 6);
	assert_int_equal(entries[0].kind, MANIFEST_FOLDER);
	assert_int_equal(entries[0].mode, 02775);
	assert_int_equal(entries[1].kind, MANIFEST_FILE);
	assert_int_equal(entries[1].extent_count, 2);
	assert_int_equal(entries[1].extents[1].chunk, 1);
	assert_int_equal(entries[1].extents[1].offset, 100);
	assert_true(entries[1].extents[1].has_digest);
	assert_int_equal(entries[2].kind, MANIFEST_HARD_LINK);
	assert_string_equal(entries[2].target, entries[1].path);
	assert_int_equal(entries[3].kind, MANIFEST_LINK);
	assert_string_equal(entries[3].target, "../last.pt");
	assert_string_equal(entries[4].path, "checkpoint-500/\xff\xfe.bin");
	assert_int_equal(entries[5].modified.tv_sec, -1);
	assert_int_equal(manifest->record_count, 2);
	assert_string_equal(manifest->records[1].name, "model.weight");
	assert_int_equal(manifest->records[1].offset, 64);
	assert_int_equal(manifest->companion_count, 1);
	assert_int_equal(manifest->pointer_count, 1);
	assert_int_equal(manifest->keep_count, 2);
	assert_string_equal(manifest->keeps[0].name, "last.pt");
	assert_string_equal(manifest->resume, manifest->keeps[1].key);
	assert_string_equal(json_get_text(manifest->environment, "host"),
	    "gpu-7");
	manifest_free(manifest);
}

/* Fields that we do not know yet are passed over. */
static void
test_golden_unknown_fields(void **state)
{
	struct manifest *manifest = read_golden("unknown-fields");

	(void)state;
	assert_string_equal(manifest->resume, "");
	assert_string_equal(manifest->needs_writer, "erasure");
	assert_int_equal(manifest->chunk_count, 1);
	manifest_free(manifest);
}

/* --- writing --- */

static void
write_manifest(const struct manifest *manifest, struct buffer *buffer)
{
	struct error error;

	buffer_init(buffer, MANIFEST_SIZE_MAXIMUM);
	assert_ok(manifest_write(manifest, buffer, &error), error);
}

static void
test_write_gives_the_same_bytes(void **state)
{
	struct manifest *manifest = read_golden("full"), *again;
	struct buffer buffer;
	struct error error;
	char key[KEY_SIZE];

	(void)state;
	write_manifest(manifest, &buffer);
	assert_string_equal(key_of(buffer.data, buffer.length, key),
	    manifest->key);
	again = manifest_read(key, buffer.data, buffer.length, &error);
	assert_non_null(again);
	assert_true(manifest_same_content(manifest, again));
	manifest_free(again);
	manifest_free(manifest);
	buffer_free(&buffer);
}

static void
test_write_refuses_what_no_reader_takes(void **state)
{
	struct manifest *manifest = read_golden("full");
	struct buffer buffer;
	struct error error;

	(void)state;
	buffer_init(&buffer, MANIFEST_SIZE_MAXIMUM);
	manifest->entries[1].extents[0].length--;
	assert_int_equal(manifest_write(manifest, &buffer, &error), -1);
	assert_int_equal(error.class, ERROR_DAMAGED);
	assert_int_equal(buffer.length, 0);
	manifest->entries[1].extents[0].length++;
	manifest->step = UINT64_MAX;
	assert_int_equal(manifest_write(manifest, &buffer, &error), -1);
	assert_int_equal(error.cause, CAUSE_LIMIT);
	manifest_free(manifest);
	buffer_free(&buffer);
}

static void
test_write_stops_at_the_limit(void **state)
{
	struct manifest *manifest = read_golden("small");
	struct buffer buffer;
	struct error error;
	size_t i, count = 600000;

	(void)state;
	free(manifest->records);
	manifest->records = calloc(count, sizeof(*manifest->records));
	assert_non_null(manifest->records);
	for (i = 0; i < count; i++) {
		manifest->records[i].name = malloc(128);
		assert_non_null(manifest->records[i].name);
		snprintf(manifest->records[i].name, 128, "%0120zu", i);
	}
	manifest->record_count = count;
	buffer_init(&buffer, SIZE_MAX / 2);
	assert_int_equal(manifest_write(manifest, &buffer, &error), -1);
	assert_int_equal(error.cause, CAUSE_LIMIT);
	assert_non_null(strstr(error.message, "larger than 64 MiB"));
	assert_true(buffer.length <= MANIFEST_SIZE_MAXIMUM);
	buffer_free(&buffer);
	manifest_free(manifest);
}

static void
test_same_content(void **state)
{
	struct manifest *a = read_golden("full"), *b = read_golden("full");

	(void)state;
	assert_true(manifest_same_content(a, b));
	b->entries[1].modified.tv_sec++;
	b->step++;
	assert_true(manifest_same_content(a, b));
	/* The same bytes, stored elsewhere: told by their own digest. */
	b->entries[1].extents[1].offset--;
	assert_true(manifest_same_content(a, b));
	b->entries[1].extents[1].digest[0] ^= 1;
	assert_false(manifest_same_content(a, b));
	b->entries[1].extents[1].digest[0] ^= 1;
	b->entries[1].mode ^= 0100;
	assert_false(manifest_same_content(a, b));
	b->entries[1].mode ^= 0100;
	b->entries[3].target[0] = 'x';
	assert_false(manifest_same_content(a, b));
	b->entries[3].target[0] = '.';
	free(b->name);
	b->name = copy("checkpoint-501");
	assert_false(manifest_same_content(a, b));
	manifest_free(a);
	manifest_free(b);
}

/* --- hostile manifests: the full one with one thing changed --- */

static json_t *
load_full(void)
{
	size_t length;
	char *data = kit_read_file(FOLDER "full.json", &length);
	json_t *object = json_loadb(data, length, 0, NULL);

	free(data);
	assert_non_null(object);
	return object;
}

/* Set the value at "entries/0/path" to the JSON ${text}; NULL: remove it. */
static void
edit(json_t *object, const char *path, const char *text)
{
	json_t *value = text == NULL ? NULL : json_loads(text,
	    JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	size_t length;
	char step[64];

	assert_true(text == NULL || value != NULL);
	for (;; path += length + 1) {
		length = strcspn(path, "/");
		snprintf(step, sizeof(step), "%.*s", (int)length, path);
		if (path[length] == '\0')
			break;
		object = json_is_array(object) ?
		    json_array_get(object, strtoul(step, NULL, 10)) :
		    json_object_get(object, step);
		assert_non_null(object);
	}
	if (json_is_array(object) && strcmp(step, "+") == 0)
		assert_int_equal(json_array_append_new(object, value), 0);
	else if (json_is_array(object))
		assert_int_equal(json_array_set_new(object,
		    strtoul(step, NULL, 10), value), 0);
	else if (value == NULL)
		assert_int_equal(json_object_del(object, step), 0);
	else
		assert_int_equal(json_object_set_new(object, step, value), 0);
}

static struct manifest *
read_text(const char *text, size_t length, struct error *error)
{
	char key[KEY_SIZE];

	error_clear(error);
	return manifest_read(key_of(text, length, key), text, length, error);
}

struct change {
	const char *path, *value;
	const char *message;	/* a part of it */
};

#define FILE_0 "{\"kind\":\"file\",\"mode\":420,\"modified\":{\"s\":0,\"ns\":0}," \
    "\"size_bytes\":0,\"extents\":[],\"path\":"
#define LINK_TO(path, target) "{\"kind\":\"link\",\"path\":\"" path \
    "\",\"target\":\"" target "\"}"

static const struct change changes[] = {
	/* Paths. */
	{ "entries/1/path", "\"../evil\"", "not a harmless path" },
	{ "entries/1/path", "\"/etc/passwd\"", "not a harmless path" },
	{ "entries/1/path", "\"a/../../b\"", "not a harmless path" },
	{ "entries/1/path", "\"\"", "not a harmless path" },
	{ "entries/1/path", "\"a//b\"", "not a harmless path" },
	{ "entries/1/path", "\".ckptsync-restore-1/x\"", "one of our own" },
	{ "entries/1/path", "\"a\\u0000b\"", "\\u0000 is not allowed" },
	{ "entries/1/path", "7", "path" },
	{ "entries/1/path", NULL, "path" },
	{ "entries/4/path_b64", "\"Li4vLi4vZXZpbA==\"", "not a harmless" },
	{ "entries/4/path_b64", "\"????\"", "path" },
	{ "companions/0/path", "\"../evil\"", "not a harmless path" },
	{ "pointers/0/path", "\"..\"", "not a harmless path" },
	{ "name", "\"../x\"", "not a harmless path" },
	{ "entries/5/path", "\"checkpoint-500/model.bin\"", "there twice" },
	{ "companions/0/path", "\"checkpoint-500/model.bin\"", "there twice" },
	{ "entries/+", FILE_0 "\"checkpoint-500/link/x\"}",
	    "lies beneath a link" },
	{ "pointers/+", FILE_0 "\"checkpoint-500/link/x\"}",
	    "lies beneath a link" },
	{ "entries/+", FILE_0 "\"checkpoint-500/model.bin/x\"}",
	    "lies beneath a file" },
	/* Links. */
	{ "entries/3/target", "\"/etc/passwd\"", "points out of" },
	{ "entries/3/target", "\"../../x\"", "points out of" },
	{ "entries/3/target", "\"..\\/..\"", "points out of" },
	{ "entries/3/target", "\"\"", "points out of" },
	{ "entries/3/target", "\"x/../../../y\"", "points out of" },
	{ "entries/+", LINK_TO("out", "checkpoint-500/link/../.."),
	    "points out of" },
	{ "entries/3/target", NULL, "target" },
	{ "entries/2/target", "\"checkpoint-500/none\"", "no earlier file" },
	{ "entries/2/target", "\"checkpoint-500/last\"", "no earlier file" },
	{ "entries/2/target", "\"checkpoint-500\"", "no earlier file" },
	{ "entries/2/target", "\"train.log\"", "no earlier file" },
	/* Extents. */
	{ "entries/1/extents/0/2", "999", "extents give 1499 of 1500" },
	{ "entries/1/extents/0/2", "1001", "does not lie in its chunk" },
	{ "entries/1/extents/1/1", "501", "does not lie in its chunk" },
	{ "entries/1/extents/1/2", "0", "does not lie in its chunk" },
	{ "entries/1/extents/+", "[0,0,1]", "more than the 1500 bytes" },
	{ "entries/1/extents/0/0", "2", "names chunk 2 of 2" },
	{ "entries/1/extents/0/0", "4294967296", "extents" },
	{ "entries/1/extents/0/0", "-1", "extents" },
	{ "entries/1/extents/0/1", "9223372036854775807", "does not lie" },
	{ "entries/1/extents/0/2", "9223372036854775807", "does not lie" },
	{ "entries/1/extents/0/2", "1e3", "extents" },
	{ "entries/1/extents/1/3", "\"abc\"", "extents" },
	{ "entries/1/extents/1/3", "true", "extents" },
	{ "entries/1/extents/0", "[]", "extents" },
	{ "entries/1/extents/0", "{}", "extents" },
	{ "entries/1/extents", "5", "extents" },
	{ "entries/1/size_bytes", "9223372036854775807", "extents give" },
	{ "entries/1/size_bytes", "-1", "size_bytes" },
	{ "entries/1/mode", "32768", "mode" },
	{ "entries/1/modified", "{\"s\":1,\"ns\":1000000000}", "modified" },
	{ "entries/1/kind", "\"device\"", "kind" },
	{ "entries/1", "null", "kind" },
	{ "entries", "{}", "entries" },
	/* Chunks. */
	{ "chunks/0/key", "\"ckptsync.json\"", "not a chunk of this node" },
	{ "chunks/0/key", "\"../../chunk\"", "not a chunk of this node" },
	{ "chunks/1/size_bytes", "0", "has the size 0" },
	{ "chunks/1/size_bytes", NULL, "size_bytes" },
	{ "chunks/0/codec", "\"zstd\"", "\"zstd\"" },
	{ "chunks/0/codec", NULL, "codec" },
	/* The head. */
	{ "size_bytes", "1499", "says 1499 bytes" },
	{ "attempt", "18", "belongs to another key" },
	{ "node", "1", "belongs to another key" },
	{ "term_random", "\"9f2c5d1e0a7b4c69\"", "belongs to another key" },
	{ "nodes", "0", "number of nodes" },
	{ "role", "\"king\"", "role" },
	{ "proven", "1", "proven" },
	{ "step", "-5", "step" },
	{ "resume", "\"x\"", "resume point \"x\" is not kept" },
	{ "resume", "\"\"", "resume" },
	{ "resume", "7", "resume" },
	{ "keeps/0/key", "\"ckptsync.json\"", "no earlier manifest" },
	{ "environment", "[]", "environment" },
	{ "records/0/entry", "9", "names no file" },
	{ "records/0/entry", "0", "does not lie in" },
	{ "records/1/offset", "1501", "does not lie in" },
	{ "records/1/length", "9223372036854775807", "does not lie in" },
	{ "format", "2", "format 2" },
	{ "format", NULL, "format" },
	{ "needs_reader", "[\"holes\"]", "\"holes\"" },
	{ "needs_reader", "7", "\"?\"" },
};

static void
test_one_thing_changed(void **state)
{
	struct manifest *manifest;
	struct error error;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		const struct change *change = &changes[i];
		json_t *object = load_full();
		char *text;

		edit(object, change->path, change->value);
		text = json_dumps(object, JSON_COMPACT);
		assert_non_null(text);
		manifest = read_text(text, strlen(text), &error);
		if (manifest != NULL)
			fail_msg("%s = %s was taken", change->path,
			    change->value);
		if (error.class != ERROR_DAMAGED &&
		    error.cause != CAUSE_FEATURE)
			fail_msg("%s = %s: class %d", change->path,
			    change->value, error.class);
		if (strstr(error.message, change->message) == NULL)
			fail_msg("%s = %s: %s", change->path, change->value,
			    error.message);
		free(text);
		json_decref(object);
	}
}

static void
test_harmless_changes(void **state)
{
	static const struct change fine[] = {
		{ "entries/3/target", "\"./../checkpoint-500/./model.bin\"",
		    "" },
		{ "entries/3/target", "\"..\"", "" },
		{ "entries/3/target", "\"sub/../model.bin\"", "" },
		{ "entries/+", LINK_TO("in", "checkpoint-500/link"), "" },
		{ "entries/+", FILE_0 "\"checkpoint-500/model.bin-x\"}", "" },
		{ "entries/0/something", "[1,2,3]", "" },
	};
	struct manifest *manifest;
	struct error error;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(fine) / sizeof(*fine); i++) {
		json_t *object = load_full();
		char *text;

		edit(object, fine[i].path, fine[i].value);
		text = json_dumps(object, JSON_COMPACT);
		manifest = read_text(text, strlen(text), &error);
		if (manifest == NULL)
			fail_msg("%s = %s: %s", fine[i].path, fine[i].value,
			    error.message);
		manifest_free(manifest);
		free(text);
		json_decref(object);
	}
}

static void
test_keys_of_others(void **state)
{
	static const struct change bad[] = {
		/* Another node, a later term, its own term's later attempt. */
		{ "node-0000/term-00000001", "node-0001/term-00000001",
		    "not a chunk of this node" },
		{ "node-0000/term-00000001", "node-0000/term-00000004",
		    "not a chunk of this node" },
	};
	struct error error;
	size_t i, length;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char *data = kit_read_file(FOLDER "full.json", &length), *at;

		while ((at = strstr(data, bad[i].path)) != NULL)
			memcpy(at, bad[i].value, strlen(bad[i].value));
		assert_null(read_text(data, length, &error));
		assert_int_equal(error.class, ERROR_DAMAGED);
		assert_non_null(strstr(error.message, bad[i].message));
		free(data);
	}
}

static void
test_wrong_digest_and_cuts(void **state)
{
	struct manifest *manifest;
	struct error error;
	size_t length, cut;
	char key[KEY_SIZE], *data = kit_read_file(FOLDER "full.json", &length);

	(void)state;
	key_of(data, length, key);
	data[length / 2] ^= 1;
	assert_null(manifest_read(key, data, length, &error));
	assert_int_equal(error.class, ERROR_DAMAGED);
	assert_non_null(strstr(error.message, "do not fit the hash"));
	assert_string_equal(error.object, key);
	data[length / 2] ^= 1;
	assert_null(manifest_read("node-0000/x", data, length, &error));
	assert_int_equal(error.class, ERROR_DAMAGED);
	/* The last byte is the end of the line. */
	for (cut = 0; cut < length - 1; cut += 7) {
		manifest = read_text(data, cut, &error);
		assert_null(manifest);
		assert_int_equal(error.class, ERROR_DAMAGED);
	}
	free(data);
}

static void
test_deep_and_large(void **state)
{
	struct error error;
	size_t i, depth = 100000;
	char *text = malloc(depth * 2 + 64);
	size_t length = 0;

	(void)state;
	assert_non_null(text);
	length += (size_t)sprintf(text, "{\"entries\":");
	for (i = 0; i < depth; i++)
		text[length++] = '[';
	for (i = 0; i < depth; i++)
		text[length++] = ']';
	text[length++] = '}';
	assert_null(read_text(text, length, &error));
	assert_int_equal(error.class, ERROR_DAMAGED);
	free(text);
	text = calloc(1, MANIFEST_SIZE_MAXIMUM + 2);
	assert_non_null(text);
	memset(text, ' ', MANIFEST_SIZE_MAXIMUM + 1);
	assert_null(read_text(text, MANIFEST_SIZE_MAXIMUM + 1, &error));
	assert_int_equal(error.class, ERROR_DAMAGED);
	assert_int_equal(error.cause, CAUSE_LIMIT);
	free(text);
}

/* Many links that climb must not take for ever. */
static void
test_many_climbing_links(void **state)
{
	json_t *object = load_full(), *entries, *entry;
	struct manifest *manifest;
	struct error error;
	char path[64], *text;
	size_t i;

	(void)state;
	entries = json_object_get(object, "entries");
	for (i = 0; i < 50000; i++) {
		snprintf(path, sizeof(path), "checkpoint-500/l%zu", i);
		entry = json_pack("{s:s,s:s,s:s}", "kind", "link", "path",
		    path, "target", "a/b/c/d/e/f/../../../../../../x");
		assert_int_equal(json_array_append_new(entries, entry), 0);
	}
	text = json_dumps(object, JSON_COMPACT);
	manifest = read_text(text, strlen(text), &error);
	assert_null(manifest);
	assert_non_null(strstr(error.message, "points out of"));
	free(text);
	json_decref(object);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden_small),
		cmocka_unit_test(test_golden_full),
		cmocka_unit_test(test_golden_unknown_fields),
		cmocka_unit_test(test_write_gives_the_same_bytes),
		cmocka_unit_test(test_write_refuses_what_no_reader_takes),
		cmocka_unit_test(test_write_stops_at_the_limit),
		cmocka_unit_test(test_same_content),
		cmocka_unit_test(test_one_thing_changed),
		cmocka_unit_test(test_harmless_changes),
		cmocka_unit_test(test_keys_of_others),
		cmocka_unit_test(test_wrong_digest_and_cuts),
		cmocka_unit_test(test_deep_and_large),
		cmocka_unit_test(test_many_climbing_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
