#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "format/pickle.h"
#include "format/splice.h"
#include "format/torch_file.h"
#include "format/zip.h"
#include "kit/kit.h"
#include "weigh.h"

#define DEPTH_MAXIMUM 40

/* A graph as text; what is deep or refers to itself is cut the same way. */
static void
print(const struct pickle_node *node, unsigned depth, struct buffer *text)
{
	const struct pickle_node *parts[5];
	struct error error;

	if (node == NULL || depth == 0) {
		buffer_format(text, &error, "-");
		return;
	}
	buffer_format(text, &error, "%d", node->kind);
	switch (node->kind) {
	case PICKLE_NONE:
		break;
	case PICKLE_BOOLEAN: case PICKLE_INTEGER: case PICKLE_REAL:
		buffer_format(text, &error, ":%lld",
		    (long long)node->integer);
		break;
	case PICKLE_BIG: case PICKLE_TEXT: case PICKLE_BYTES:
		buffer_append(text, node->text, node->count, &error);
		break;
	case PICKLE_CALL:
		parts[0] = node->call->callee;
		parts[1] = node->call->arguments;
		parts[2] = node->call->state;
		parts[3] = node->call->list;
		parts[4] = node->call->dict;
		for (int i = 0; i < 5; i++)
			print(parts[i], depth - 1, text);
		break;
	default:
		buffer_format(text, &error, "(");
		for (uint32_t i = 0; i < node->count; i++)
			print(node->items[i], depth - 1, text);
		buffer_format(text, &error, ")");
	}
}

static char *
print_value(const struct pickle_node *node)
{
	struct buffer text;

	buffer_init(&text, 64 << 20);
	print(node, DEPTH_MAXIMUM, &text);
	return text.data;
}

/* The spliced file in memory. */
static struct weigh_files *
splice_one(const struct weigh_files *files, const char *dropped)
{
	struct splice splice;
	struct error error = ERROR_INIT;
	struct weigh_files *made;
	char **contents, *file;
	size_t *lengths;

	assert_ok(splice_make(&files->sources[0], &splice, &error), error);
	assert_string_equal(splice.dropped, dropped);
	contents = calloc(splice.count + 1, sizeof(*contents));
	lengths = calloc(splice.count + 1, sizeof(*lengths));
	for (size_t i = 0; i < splice.count; i++) {
		lengths[i] = (size_t)splice.copies[i].length;
		contents[i] = malloc(lengths[i] + 1);
		assert_ok(source_read(&files->sources[0],
		    splice.copies[i].from, contents[i], lengths[i], &error),
		    error);
	}
	file = weigh_seal(&splice.outline, contents, lengths, splice.count);
	made = weigh_one("spliced.pt", file, (size_t)splice.outline.size);
	assert_true(splice.outline.size < files->sources[0].size);
	for (size_t i = 0; i < splice.count; i++)
		free(contents[i]);
	free(contents);
	free(lengths);
	free(file);
	splice_free(&splice);
	return made;
}

static void
compare_keys(const struct pickle_node *before, const struct pickle_node *after)
{
	assert_int_equal(before->kind, PICKLE_DICT);
	assert_int_equal(after->kind, PICKLE_DICT);
	assert_int_equal(before->count, after->count);
	for (uint32_t i = 0; i < before->count; i += 2) {
		char *old = print_value(before->items[i + 1]);
		char *new = print_value(after->items[i + 1]);

		assert_string_equal(before->items[i]->text,
		    after->items[i]->text);
		if (strstr(before->items[i]->text, "optim") != NULL)
			assert_int_equal(after->items[i + 1]->kind,
			    PICKLE_NONE);
		else
			assert_string_equal(old, new);
		free(old);
		free(new);
	}
}

/* The weights are as they were, and only storages in use are there. */
static void
compare_weights(const struct weigh_files *before,
    const struct weigh_files *after)
{
	struct model_options options = { .key = NULL };
	struct model old, new;
	struct error error = ERROR_INIT;

	assert_ok(model_read(before->files, 1, &options, &old, &error), error);
	assert_ok(model_read(after->files, 1, &options, &new, &error), error);
	assert_int_equal(old.count, new.count);
	for (size_t i = 0; i < old.count; i++) {
		char *left = weigh_gather(before, &old.tensors[i]);
		char *right = weigh_gather(after, &new.tensors[i]);

		assert_string_equal(old.tensors[i].name, new.tensors[i].name);
		assert_memory_equal(left, right, old.tensors[i].bytes);
		free(left);
		free(right);
	}
	model_free(&old);
	model_free(&new);
}

static void
check_splice(const char *name, const char *dropped)
{
	struct weigh_files *before = weigh_open(name);
	struct weigh_files *after = splice_one(before, dropped);
	struct torch_file old, new;
	struct error error = ERROR_INIT;
	struct zip zip;

	assert_ok(torch_file_open(&before->sources[0], &old, &error), error);
	assert_ok(torch_file_open(&after->sources[0], &new, &error), error);
	compare_keys(pickle_root(old.pickle), pickle_root(new.pickle));
	compare_weights(before, after);
	for (size_t i = 0; i < pickle_persistent_count(new.pickle); i++) {
		struct storage storage;

		assert_int_equal(storage_read(pickle_persistent(new.pickle,
		    i), &storage), 0);
		assert_non_null(torch_file_record(&new, &storage));
	}
	torch_file_close(&old);
	torch_file_close(&new);
	/* libarchive reads it as well. */
	assert_ok(zip_list(&after->sources[0], &zip, &error), error);
	assert_true(zip.count > 4);
	zip_free(&zip);
	weigh_close(before);
	weigh_close(after);
}

static void
test_real_files(void **state)
{
	(void)state;
	check_splice("yolo-2.pt", "optimizer");
	check_splice("yolo-4.pt", "optimizer");
	check_splice("training.pt", "optimizer");
	check_splice("training-4.pt", "optimizer");
	check_splice("lightning.ckpt", "optimizer_states");
	check_splice("megatron.pt", "optimizer");
	check_splice("../current/training.pt", "optimizer");
	check_splice("../current/training-5.pt", "optimizer");
	check_splice("../current/module.pt", "optimizer");
}

static void
expect_refusal(const char *name, enum error_class class,
    enum error_cause cause, const char *message)
{
	struct weigh_files *files = weigh_open(name);
	struct splice splice;
	struct error error = ERROR_INIT;

	assert_int_equal(splice_make(&files->sources[0], &splice, &error), -1);
	splice_free(&splice);
	weigh_close(files);
	assert_int_equal(error.class, class);
	assert_int_equal(error.cause, cause);
	assert_non_null(strstr(error.message, message));
}

static void
test_refusals(void **state)
{
	(void)state;
	expect_refusal("training-legacy.pt", ERROR_DAMAGED, CAUSE_UNSUPPORTED,
	    "only the zip format");
	expect_refusal("state.pt", ERROR_USAGE, CAUSE_NOT_FOUND,
	    "no optimizer's state lies at its top");
	expect_refusal("lone.pt", ERROR_DAMAGED, CAUSE_UNSUPPORTED,
	    "what it holds is no dict");
	/* It is None already. */
	expect_refusal("deepspeed.pt", ERROR_USAGE, CAUSE_NOT_FOUND,
	    "no optimizer's state");
	expect_refusal("plain.weights.h5", ERROR_DAMAGED, CAUSE_OTHER,
	    "no zip end record");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_files),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
