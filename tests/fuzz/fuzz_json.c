/* room: base */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(int holds)
{
	if (!holds)
		abort();
}

/* A name that is read must be the same when it is written and read again. */
static void
check_name(const json_t *object, const char *field)
{
	char *name = json_get_name(object, field), *again;
	json_t *other;

	if (name == NULL)
		return;
	other = json_object();
	require(json_set_name(other, "name", name) == 0);
	again = json_get_name(other, "name");
	require(again != NULL && strcmp(again, name) == 0);
	free(again);
	free(name);
	json_decref(other);
}

/* What is read of one field must be what can be written to it. */
static void
check_field(json_t *object, const char *field)
{
	struct timespec when, when_again;
	uint64_t number, number_again;
	json_t *other = json_object();

	if (json_get_u64(object, field, &number) == 0) {
		require(json_set_u64(other, "n", number) == 0);
		require(json_get_u64(other, "n", &number_again) == 0 &&
		    number == number_again);
	}
	if (json_get_time(object, field, &when) == 0) {
		require(json_set_time(other, "t", when) == 0);
		require(json_get_time(other, "t", &when_again) == 0 &&
		    when.tv_sec == when_again.tv_sec &&
		    when.tv_nsec == when_again.tv_nsec);
	}
	json_decref(other);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error error = ERROR_INIT;
	json_t *object = json_read(data, size, "fuzz", &error), *value;
	const char *field;

	if (object == NULL) {
		require(error.class == ERROR_DAMAGED);
		return 0;
	}
	require(json_is_object(object));
	json_object_foreach(object, field, value) {
		/* Our own fields are short words. */
		if (strlen(field) < 100)
			check_name(object, field);
		check_field(object, field);
		(void)json_get_text(object, field);
	}
	check_name(object, "name");
	json_decref(object);
	return 0;
}
