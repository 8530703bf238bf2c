#include "kit/kit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/source.h"
#include "life/trial.h"
#include "store/backend.h"

#define S CLOCK_SECOND

/* Objects in memory; what goes wrong is said before. */
struct shelf {
	struct backend backend;
	pthread_mutex_t lock;
	struct object {
		char *key;
		void *data;
		uint64_t length;
	} objects[TRIAL_OBJECTS];
	size_t count;
	size_t puts;			/* so far */
	uint64_t bytes;			/* put so far */

	enum backend_operation deny;	/* fails with CAUSE_DENIED */
	bool denies;
	bool no_list;
	bool forgets;			/* listings show nothing */
	bool remembers;			/* listings show what was deleted */
	bool damages;			/* reads bring other bytes */
	bool late;			/* PUTs end at their deadline, undone */
	atomic_bool *stop_at_put;	/* set at the first PUT */
};

static struct object *
find(struct shelf *shelf, const char *key)
{
	for (size_t i = 0; i < shelf->count; i++)
		if (strcmp(shelf->objects[i].key, key) == 0 &&
		    shelf->objects[i].data != NULL)
			return &shelf->objects[i];
	return NULL;
}

static void
put(struct shelf *shelf, struct backend_request *request)
{
	struct object *object = &shelf->objects[shelf->count];
	struct error error = ERROR_INIT;

	shelf->puts++;
	if (shelf->stop_at_put != NULL)
		atomic_store(shelf->stop_at_put, true);
	if (shelf->late) {
		while (clock_monotonic() < request->deadline)
			clock_sleep(S / 1000);
		error_set(&request->error, ERROR_FAILED, CAUSE_UNREACHABLE,
		    request->key, "not finished at its deadline");
		return;
	}
	assert_null(find(shelf, request->key));
	assert_true(shelf->count < TRIAL_OBJECTS);
	object->key = strdup(request->key);
	object->data = malloc(request->length);
	object->length = request->length;
	assert_ok(source_read(request->body, request->offset, object->data,
	    request->length, &error), error);
	shelf->count++;
	shelf->bytes += request->length;
}

static void
get(struct shelf *shelf, struct backend_request *request)
{
	struct object *object = find(shelf, request->key);
	unsigned char *data;

	if (object == NULL) {
		error_set(&request->error, ERROR_FAILED, CAUSE_NOT_FOUND,
		    request->key, "is not there");
		return;
	}
	data = object->data;
	if (shelf->damages)
		data[17] ^= 1;
	request->sink(request->context, object->data, object->length,
	    &request->error);
}

static void
on_submit(struct backend *backend, struct backend_request *request)
{
	struct shelf *shelf = (struct shelf *)backend;
	struct object *object;

	error_clear(&request->error);
	pthread_mutex_lock(&shelf->lock);
	if (shelf->denies && shelf->deny == request->operation) {
		error_set(&request->error, ERROR_FAILED, CAUSE_DENIED,
		    request->key, "403 AccessDenied");
	} else if (request->operation == BACKEND_PUT) {
		put(shelf, request);
	} else if (request->operation == BACKEND_GET) {
		get(shelf, request);
	} else if ((object = find(shelf, request->key)) != NULL) {
		free(object->data);
		object->data = NULL;
	}
	pthread_mutex_unlock(&shelf->lock);
	request->done(request);
}

static void
on_cancel(struct backend *backend, struct backend_request *request)
{
	(void)backend;
	(void)request;
}

static int
on_list(struct backend *backend, const char *prefix, bool fold,
    backend_visit visit, void *context, struct error *error)
{
	struct shelf *shelf = (struct shelf *)backend;

	(void)fold;
	if (shelf->no_list)
		return error_set(error, ERROR_FAILED, CAUSE_DENIED, prefix,
		    "403 AccessDenied");
	for (size_t i = 0; i < shelf->count && !shelf->forgets; i++) {
		struct backend_entry entry = {
		    .key = shelf->objects[i].key,
		    .size = shelf->objects[i].length };

		if (strncmp(entry.key, prefix, strlen(prefix)) == 0 &&
		    (shelf->objects[i].data != NULL || shelf->remembers) &&
		    visit(context, &entry, error) != 0)
			return -1;
	}
	return 0;
}

static const struct backend_operations operations = {
	.submit = on_submit, .cancel = on_cancel, .list = on_list,
};

struct scene {
	struct shelf shelf;
	struct trial trial;
	atomic_bool stop;
	struct trial_outcome outcome;
	struct error error;
};

static int
setup(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	scene->shelf.backend.operations = &operations;
	pthread_mutex_init(&scene->shelf.lock, NULL);
	atomic_init(&scene->stop, false);
	trial_init(&scene->trial, &scene->shelf.backend, &scene->stop);
	*state = scene;
	return 0;
}

static int
teardown(void **state)
{
	struct scene *scene = *state;

	for (size_t i = 0; i < scene->shelf.count; i++) {
		free(scene->shelf.objects[i].key);
		free(scene->shelf.objects[i].data);
	}
	free(scene);
	return 0;
}

static int
run(struct scene *scene)
{
	return trial_run(&scene->trial, clock_monotonic() + 60 * S,
	    &scene->outcome, &scene->error);
}

static size_t
objects_left(const struct scene *scene)
{
	size_t left = 0;

	for (size_t i = 0; i < scene->shelf.count; i++)
		left += scene->shelf.objects[i].data != NULL;
	return left;
}

static void
a_good_store_passes_and_is_left_empty(void **state)
{
	struct scene *scene = *state;

	assert_ok(run(scene), scene->error);
	assert_false(scene->outcome.lags);
	assert_null(scene->outcome.failed);
	assert_int_equal(scene->shelf.puts, 3);
	assert_int_equal(objects_left(scene), 0);
	assert_int_equal(strncmp(scene->shelf.objects[0].key,
	    "doctor-", 7), 0);
}

/* Format 1 has no such key, so no reader or sweeper ever looks at it. */
static void
its_keys_are_nobody_elses(void **state)
{
	struct scene *scene = *state;
	struct key_parts parts;
	char key[KEY_SIZE];

	assert_true(trial_key(&scene->trial, key));
	assert_int_equal(strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789-"),
	    strlen(key));
	assert_string_not_equal(key, KEY_FORMAT);
	key_parse(key, &parts);
	assert_int_equal(parts.kind, KEY_OTHER);
	for (size_t i = 1; i < TRIAL_OBJECTS; i++)
		assert_true(trial_key(&scene->trial, key));
	assert_false(trial_key(&scene->trial, key));
}

static void
each_step_that_is_denied_is_named(void **state)
{
	static const struct {
		enum backend_operation operation;
		const char *step;
	} cases[] = { { BACKEND_PUT, "write" }, { BACKEND_GET, "read" },
	    { BACKEND_DELETE, "delete" } };
	struct scene *scene = *state;

	scene->shelf.denies = true;
	for (size_t i = 0; i < 3; i++) {
		scene->shelf.deny = cases[i].operation;
		assert_int_equal(run(scene), -1);
		assert_string_equal(scene->outcome.failed, cases[i].step);
		assert_int_equal(scene->error.cause, CAUSE_DENIED);
	}
	assert_true(objects_left(scene) > 0);
	assert_int_equal(trial_clear(&scene->trial, clock_monotonic() + S,
	    &scene->error), -1);
	scene->shelf.denies = false;
	scene->shelf.no_list = true;
	assert_int_equal(run(scene), -1);
	assert_string_equal(scene->outcome.failed, "list");
	scene->shelf.no_list = false;
	assert_ok(trial_clear(&scene->trial, clock_monotonic() + S,
	    &scene->error), scene->error);
	assert_int_equal(objects_left(scene), 0);
}

static void
listings_from_the_past_are_noticed(void **state)
{
	struct scene *scene = *state;

	scene->shelf.forgets = true;
	assert_ok(run(scene), scene->error);
	assert_true(scene->outcome.lags);
	scene->shelf.forgets = false;
	scene->shelf.remembers = true;
	assert_ok(run(scene), scene->error);
	assert_true(scene->outcome.lags);
	assert_int_equal(trial_clear(&scene->trial, clock_monotonic() + S / 20,
	    &scene->error), -1);
	assert_non_null(strstr(scene->error.message, "still listed"));
}

static void
damaged_bytes_are_noticed(void **state)
{
	struct scene *scene = *state;

	scene->shelf.damages = true;
	assert_int_equal(run(scene), -1);
	assert_true(scene->outcome.wrong_bytes);
	assert_int_equal(scene->error.class, ERROR_DAMAGED);
}

static void
speed_is_measured_within_bounds(void **state)
{
	struct scene *scene = *state;
	struct trial_speed speed;

	assert_ok(trial_speed(&scene->trial, 60 * S, &speed, &scene->error),
	    scene->error);
	assert_true(scene->shelf.bytes <= 33 * (UINT64_C(1) << 20));
	assert_true(speed.bytes > 0 && speed.per_second > 0);
	assert_true(speed.bytes <= scene->shelf.bytes);
	assert_ok(trial_clear(&scene->trial, clock_monotonic() + 60 * S,
	    &scene->error), scene->error);
	assert_int_equal(objects_left(scene), 0);
}

static void
nothing_in_time_is_no_speed(void **state)
{
	struct scene *scene = *state;
	struct trial_speed speed;

	scene->shelf.late = true;
	assert_ok(trial_speed(&scene->trial, S / 5, &speed, &scene->error),
	    scene->error);
	assert_int_equal(speed.bytes, 0);
	assert_int_equal(speed.per_second, 0);
}

static void
a_fault_during_the_measurement_is_told(void **state)
{
	struct scene *scene = *state;
	struct trial_speed speed;

	scene->shelf.denies = true;
	scene->shelf.deny = BACKEND_PUT;
	assert_int_equal(trial_speed(&scene->trial, 60 * S, &speed,
	    &scene->error), -1);
	assert_int_equal(scene->error.cause, CAUSE_DENIED);
}

static void
a_stop_ends_it_and_leaves_nothing(void **state)
{
	struct scene *scene = *state;

	scene->shelf.stop_at_put = &scene->stop;
	assert_ok(run(scene), scene->error);
	assert_int_equal(scene->shelf.puts, 1);
	assert_ok(trial_clear(&scene->trial, clock_monotonic() + 60 * S,
	    &scene->error), scene->error);
	assert_int_equal(objects_left(scene), 0);
}

#define TEST(function) \
	cmocka_unit_test_setup_teardown(function, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_good_store_passes_and_is_left_empty),
		TEST(its_keys_are_nobody_elses),
		TEST(each_step_that_is_denied_is_named),
		TEST(listings_from_the_past_are_noticed),
		TEST(damaged_bytes_are_noticed),
		TEST(speed_is_measured_within_bounds),
		TEST(nothing_in_time_is_no_speed),
		TEST(a_fault_during_the_measurement_is_told),
		TEST(a_stop_ends_it_and_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
