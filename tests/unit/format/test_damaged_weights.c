#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "format/splice.h"
#include "kit/kit.h"
#include "weigh.h"

/* Fixtures of every parser, small ones. */
static const char *const names[] = { "state.pt", "state-4.pt",
	"state-legacy.pt", "refused.pt", "module.pt", "torch-2.8-types.pt",
	"model.nemo", "model.keras", "new.weights.h5", "plain.weights.h5",
	"hf", "fsdp", "torchtitan" };

#define COUNT (sizeof(names) / sizeof(names[0]))

/* Read whatever it is; what is taken lies within the files. */
static int
read_any(const struct weigh_files *files, struct error *error)
{
	struct model_options options = { .key = NULL };
	struct model model;
	int result = model_read(files->files, files->count, &options, &model,
	    error);

	if (result != 0) {
		assert_int_not_equal(error->class, ERROR_NONE);
		assert_true(error->message[0] != '\0');
		assert_int_not_equal(error->cause, CAUSE_MEMORY);
	}
	for (size_t i = 0; result == 0 && i < model.count; i++)
		if (model.tensors[i].bytes < 1 << 16)
			free(weigh_gather(files, &model.tensors[i]));
	for (size_t i = 0; result == 0 && i < model.part_count; i++) {
		const struct model_part *part = &model.parts[i];

		assert_true(part->offset <= files->sources[part->file].size &&
		    part->length <= files->sources[part->file].size -
		    part->offset);
	}
	model_free(&model);
	return result;
}

/* Every byte of every file wrong in turn, or every few of a large one. */
static void
test_every_byte_damaged(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		struct weigh_files *files = weigh_open(names[i]);

		for (size_t f = 0; f < files->count; f++) {
			char *bytes = (char *)files->memories[f].data;
			size_t length = files->memories[f].length;

			for (size_t at = 0; at < length;
			    at += 1 + length / 2000) {
				struct error error = ERROR_INIT;
				char before = bytes[at];

				bytes[at] ^= (char)(0x81 << (at % 3));
				read_any(files, &error);
				bytes[at] = before;
			}
		}
		weigh_close(files);
	}
}

/* Cut anywhere: never taken for whole, but where only padding is cut. */
static void
test_every_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		struct weigh_files *whole = weigh_open(names[i]);
		size_t length = whole->memories[0].length;

		for (size_t cut = 0; cut < length && whole->count == 1;
		    cut += 1 + length / 500) {
			struct error error = ERROR_INIT;
			struct weigh_files *files = weigh_one(names[i],
			    whole->memories[0].data, cut);

			if (read_any(files, &error) == 0 &&
			    strstr(names[i], ".h5") == NULL &&
			    strstr(names[i], ".nemo") == NULL)
				fail_msg("%s cut at %zu was taken", names[i],
				    cut);
			weigh_close(files);
		}
		weigh_close(whole);
	}
}

/* The same for cutting out an optimizer, and for the tree of keys. */
static void
test_splice_and_tree(void **state)
{
	static const char *const spliced[] = { "yolo-2.pt", "yolo-4.pt" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct weigh_files *files = weigh_open(spliced[i]);
		char *bytes = (char *)files->memories[0].data;

		for (size_t at = 0; at < files->memories[0].length; at += 3) {
			struct error error = ERROR_INIT;
			struct buffer text;
			struct splice splice;
			char before = bytes[at];

			bytes[at] ^= (char)(0x81 << (at % 3));
			buffer_init(&text, 1 << 20);
			if (model_tree(files->files, 1, &text, &error) != 0)
				assert_true(error.message[0] != '\0');
			buffer_free(&text);
			if (splice_make(&files->sources[0], &splice,
			    &error) != 0)
				assert_true(error.message[0] != '\0');
			for (size_t j = 0; j < splice.count; j++)
				assert_true(splice.copies[j].from +
				    splice.copies[j].length <=
				    files->memories[0].length);
			splice_free(&splice);
			bytes[at] = before;
		}
		weigh_close(files);
	}
}

/* A source that fails at one read, and counts. */
struct failing {
	const struct source *source;
	unsigned *reads;
	unsigned fails_at;
};

static int
read_failing(void *context, uint64_t offset, void *data, size_t length,
    struct error *error)
{
	struct failing *failing = context;

	if (++*failing->reads == failing->fails_at)
		return error_set(error, ERROR_FAILED, CAUSE_UNREACHABLE,
		    "here", "no answer");
	return source_read(failing->source, offset, data, length, error);
}

#define FILES_MAXIMUM 8

/* Whichever read fails, that is said and nothing else. */
static void
test_every_read_fails(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		struct weigh_files *files = weigh_open(names[i]);
		struct source sources[FILES_MAXIMUM];
		struct failing failing[FILES_MAXIMUM];
		struct error error = ERROR_INIT;
		unsigned reads = 0, all;

		assert_true(files->count <= FILES_MAXIMUM);
		for (size_t f = 0; f < files->count; f++) {
			failing[f] = (struct failing){ &files->sources[f],
				&reads, 0 };
			sources[f] = (struct source){
				.size = files->sources[f].size,
				.read_at = read_failing,
				.context = &failing[f],
				.name = files->files[f].path };
			files->files[f].source = &sources[f];
		}
		assert_ok(read_any(files, &error), error);
		all = reads;
		assert_true(all > 0);
		for (unsigned at = 1; at <= all; at++) {
			reads = 0;
			for (size_t f = 0; f < files->count; f++)
				failing[f].fails_at = at;
			error_clear(&error);
			if (read_any(files, &error) == 0)
				fail_msg("%s: read %u of %u failed", names[i],
				    at, all);
			assert_int_equal(error.class, ERROR_FAILED);
			assert_int_equal(error.cause, CAUSE_UNREACHABLE);
		}
		weigh_close(files);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_byte_damaged),
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_splice_and_tree),
		cmocka_unit_test(test_every_read_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
