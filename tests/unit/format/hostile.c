#include "hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
expect_refused(const struct model *model, const char *message)
{
	for (size_t i = 0; i < model->refused_count; i++)
		if (strstr(model->refused[i], message) != NULL)
			return;
	fail_msg("no tensor was refused with: %s (%zu taken)", message,
	    model->count);
}

void
hostile_expect(struct weigh_files *files, const char *message)
{
	struct model_options options = { .key = "." };
	struct model model;
	struct error error = ERROR_INIT;
	int result = model_read(files->files, files->count, &options, &model,
	    &error);

	if (strcmp(message, "fine") == 0 ||
	    strncmp(message, "refused ", 8) == 0) {
		if (result != 0)
			fail_msg("failed with: %s; expected %s", error.message,
			    message);
		if (message[0] == 'r')
			expect_refused(&model, message + 8);
	} else {
		if (result == 0)
			fail_msg("%zu tensors were taken; expected: %s",
			    model.count, message);
		if (strstr(error.message, message) == NULL)
			fail_msg("failed with: %s; expected: %s",
			    error.message, message);
		assert_int_equal(error.class, ERROR_DAMAGED);
	}
	model_free(&model);
	weigh_close(files);
}

struct weigh_files *
hostile_zip(struct zipper *zipper, bool wide)
{
	struct weigh_files *files;

	finish(zipper, wide);
	files = weigh_one("hostile.pt", zipper->bytes, zipper->length);
	free(zipper);
	return files;
}

struct weigh_files *
hostile_pickle(const void *bytes, size_t length)
{
	static const char zeros[64];
	struct zipper *zipper = new_zipper();

	add(zipper, (struct member){ .name = "a/data.pkl", .data = bytes,
	    .length = length, .extra = 24 });
	add(zipper, (struct member){ .name = "a/data/0", .data = zeros,
	    .length = 64, .extra = 26 });
	add(zipper, (struct member){ .name = "a/data/1", .data = zeros,
	    .length = 16, .extra = 26 });
	add_text(zipper, "a/version", "3\n");
	return hostile_zip(zipper, true);
}
