/*
 * Readers: what they find, and what they say when it is damaged or when
 * somebody takes over under them.
 */
#include "kit/kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/backend.h"
#include "store/truth.h"
#include "unit/store/delaying.h"
#include "unit/store/load.h"

static struct backend *store;

/* What happens before a request whose key holds `part`. */
static struct {
	enum delaying_operation operation;
	const char *part;
	enum delaying_fate fate;
	void (*meanwhile)(void);
	unsigned times;		/* so often */
} plan;

static enum delaying_fate
decide(void *context, enum delaying_operation operation, const char *key)
{
	void (*meanwhile)(void) = plan.meanwhile;
	unsigned times = plan.times;

	(void)context;
	if (times == 0 || operation != plan.operation ||
	    strstr(key, plan.part) == NULL)
		return DELAYING_ANSWERED;
	plan.times = 0;		/* not for what happens meanwhile */
	if (meanwhile != NULL)
		meanwhile();
	plan.times = times - 1;
	return plan.fate;
}

static void
before(enum delaying_operation operation, const char *part,
    void (*meanwhile)(void), unsigned times)
{
	plan.operation = operation;
	plan.part = part;
	plan.fate = DELAYING_ANSWERED;
	plan.meanwhile = meanwhile;
	plan.times = times;
}

static int
set_up(void **state)
{
	(void)state;
	memset(&plan, 0, sizeof(plan));
	store = delaying_new(decide, NULL);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	backend_free(store);
	return 0;
}

static struct writer *
take_over(uint64_t keep)
{
	struct error error;
	struct writer *writer = load_take_over(store, keep, 0, "gpu-1",
	    &error);

	if (writer == NULL)
		fail_msg("%s", error.message);
	return writer;
}

static void
commit(struct writer *writer, const char *name, enum role role, uint64_t step)
{
	const struct load load = { .name = name, .role = role,
		.has_step = true, .step = step, .seed = step + 1000 * role,
		.chunks = 1, .completed = (time_t)step };
	struct error error;

	assert_ok(load_commit(store, writer, &load, NULL, CLOCK_NEVER, NULL,
	    &error), error);
}

static void
delete_all(struct writer *writer)
{
	struct error error;

	while (writer_next_delete(writer) != CLOCK_NEVER)
		assert_true(writer_delete_due(writer, &error) >= 0);
}

/* Three of last.pt, a best and a final one between them. */
static void
fill(void)
{
	struct writer *writer = take_over(3);

	commit(writer, "last.pt", ROLE_RESUME, 1);
	commit(writer, "best.pt", ROLE_BEST, 2);
	commit(writer, "last.pt", ROLE_RESUME, 3);
	commit(writer, "final.pt", ROLE_FINAL, 4);
	commit(writer, "last.pt", ROLE_RESUME, 5);
	writer_free(writer);
}

static struct truth *
read_truth(void)
{
	struct error error;
	struct truth *truth = truth_read(store, 0, &error);

	if (truth == NULL)
		fail_msg("%s: %s", error.object, error.message);
	return truth;
}

static void
assert_steps(const struct truth *truth, const char *expected)
{
	char text[256] = "";
	size_t i;

	for (i = 0; i < truth->count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
		    "%s%u", i > 0 ? " " : "", (unsigned)truth->valid[i]->step);
	assert_string_equal(text, expected);
}

/* The key of the manifest of ${step}. */
static char *
key_of_step(uint64_t step)
{
	struct truth *truth = read_truth();
	char *key = NULL;
	size_t i;

	for (i = 0; i < truth->count; i++)
		if (truth->valid[i]->step == step)
			key = strdup(truth->valid[i]->key);
	assert_non_null(key);
	truth_free(truth);
	return key;
}

static void
damage(const char *key)
{
	delaying_set(store, key, "{}", 2);
}

static void
test_find(void **state)
{
	const struct manifest *found;
	struct truth *truth;
	struct error error;

	(void)state;
	fill();
	truth = read_truth();
	assert_steps(truth, "5 4 3 2 1");
	assert_int_equal(truth->resume, 0);
	found = truth_find(truth, "last.pt", &error);
	assert_non_null(found);
	assert_int_equal(found->step, 5);
	found = truth_find(truth, "1-3", &error);
	assert_non_null(found);
	assert_int_equal(found->step, 3);
	assert_null(truth_find(truth, "last", &error));
	assert_int_equal(error.class, ERROR_NOTHING);
	assert_string_equal(error.object, "last");
	assert_non_null(strstr(error.message, "there is last.pt"));
	assert_null(truth_find(truth, "xyz", &error));
	assert_non_null(strstr(error.message,
	    "there is last.pt, final.pt, best.pt"));
	assert_int_equal(truth_best(truth)->step, 2);
	assert_int_equal(truth_final(truth)->step, 4);
	truth_free(truth);
	truth_free(NULL);
}

static void
test_no_best(void **state)
{
	struct writer *writer = take_over(1);
	struct truth *truth;

	(void)state;
	commit(writer, "last.pt", ROLE_RESUME, 1);
	truth = read_truth();
	assert_null(truth_best(truth));
	assert_null(truth_final(truth));
	truth_free(truth);
	writer_free(writer);
}

static struct writer *second;

static void
take_over_and_commit(void)
{
	if (second == NULL)
		second = take_over(1);
	commit(second, "last.pt", ROLE_RESUME, 6);
	delete_all(second);
}

/* Everything that the reader found is replaced and deleted under it. */
static void
test_taken_over_while_reading(void **state)
{
	static const struct {
		enum delaying_operation operation;
		const char *part;
	} places[] = {
		{ DELAYING_GET, "open.json" }, { DELAYING_LIST, "checkpoints/" },
		{ DELAYING_GET, "/checkpoints/" }, { DELAYING_LIST, "node-0000/" },
	};
	struct truth *truth;
	size_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		tear_down(NULL);
		set_up(NULL);
		fill();
		second = NULL;
		before(places[i].operation, places[i].part,
		    take_over_and_commit, 1);
		truth = read_truth();
		assert_int_equal(truth->term.number, 2);
		assert_int_equal(truth->valid[0]->step, 6);
		truth_free(truth);
		writer_free(second);
	}
}

/* The only open term is swept between the LIST and the look into it. */
static void
test_never_says_nothing_there(void **state)
{
	struct writer *writer = take_over(1);
	struct truth *truth;

	(void)state;
	commit(writer, "last.pt", ROLE_RESUME, 1);
	writer_free(writer);
	second = NULL;
	before(DELAYING_GET, "term-00000001", take_over_and_commit, 1);
	truth = read_truth();
	assert_steps(truth, "6");
	assert_int_equal(truth->term.number, 2);
	truth_free(truth);
	writer_free(second);
}

static void
take_over_again(void)
{
	struct writer *writer = take_over(3);

	writer_free(writer);
}

static void
test_gives_up_after_three_changes(void **state)
{
	struct error error;

	(void)state;
	fill();
	before(DELAYING_LIST, "checkpoints/", take_over_again, 100);
	assert_null(truth_read(store, 0, &error));
	assert_int_equal(error.class, ERROR_FAILED);
	assert_int_equal(error.cause, CAUSE_UNREACHABLE);
	assert_int_equal(plan.times, 97);
}

static void
test_unreachable(void **state)
{
	static const struct {
		enum delaying_operation operation;
		const char *part;
	} places[] = {
		{ DELAYING_LIST, "node-0000/" }, { DELAYING_GET, "open.json" },
		{ DELAYING_LIST, "checkpoints/" },
		{ DELAYING_GET, "/checkpoints/" },
	};
	struct error error, damaged;
	size_t i;

	(void)state;
	fill();
	for (i = 0; i < 4; i++) {
		before(places[i].operation, places[i].part, NULL, 1);
		plan.fate = DELAYING_NEVER;
		assert_null(truth_read(store, 0, &error));
		assert_int_equal(error.cause, CAUSE_UNREACHABLE);
		before(places[i].operation, places[i].part, NULL, 1);
		plan.fate = DELAYING_DENIED;
		assert_null(truth_read_surviving(store, 0, &damaged, &error));
		assert_int_equal(error.cause, CAUSE_DENIED);
	}
}

static void
test_damaged_keep(void **state)
{
	struct error error, damaged;
	struct truth *truth;
	char *key;

	(void)state;
	fill();
	key = key_of_step(3);
	damage(key);
	/* Only itself is lost, and no older one of its name stands in. */
	truth = read_truth();
	assert_steps(truth, "5 4 2 1");
	assert_int_equal(truth->lost.count, 1);
	assert_string_equal(truth->lost.items[0].key, key);
	assert_non_null(truth_find(truth, "last.pt", &error));
	assert_non_null(truth_find(truth, "1-1", &error));
	assert_null(truth_find(truth, "1-3", &error));
	assert_int_equal(error.class, ERROR_DAMAGED);
	assert_string_equal(error.object, key);
	truth_free(truth);
	truth = truth_read_surviving(store, 0, &damaged, &error);
	assert_non_null(truth);
	assert_steps(truth, "5 4 2 1");
	assert_int_equal(truth->resume, 0);
	assert_int_equal(damaged.class, ERROR_DAMAGED);
	assert_string_equal(damaged.object, key);
	truth_free(truth);
	free(key);
}

static void
test_damaged_newest(void **state)
{
	struct error error, damaged;
	struct truth *truth;
	char *key;

	(void)state;
	fill();
	key = key_of_step(5);
	damage(key);
	assert_null(truth_read(store, 0, &error));
	assert_string_equal(error.object, key);
	/* The manifest before it says what was valid then. */
	truth = truth_read_surviving(store, 0, &damaged, &error);
	assert_non_null(truth);
	assert_steps(truth, "4 3 2 1");
	assert_int_equal(truth->valid[truth->resume]->step, 3);
	truth_free(truth);
	free(key);
}

static void
test_damaged_resume_point(void **state)
{
	struct writer *writer;
	struct error error, damaged;
	struct truth *truth;
	char *key;

	(void)state;
	fill();
	writer = take_over(3);
	commit(writer, "best.pt", ROLE_BEST, 7);
	writer_free(writer);
	truth = read_truth();
	assert_int_equal(truth->valid[truth->resume]->step, 5);
	truth_free(truth);
	key = key_of_step(5);
	damage(key);
	assert_null(truth_read(store, 0, &error));
	assert_int_equal(error.class, ERROR_DAMAGED);
	assert_string_equal(error.object, key);
	assert_non_null(strstr(error.cure, "--fallback"));
	truth = truth_read_any(store, 0, &error);
	assert_non_null(truth);
	assert_true(truth->resume_lost);
	assert_null(truth_resume(truth, &error));
	assert_null(truth_find(truth, "last.pt", &error));
	assert_int_equal(error.class, ERROR_DAMAGED);
	assert_non_null(truth_find(truth, "best.pt", &error));
	truth_free(truth);
	truth = truth_read_surviving(store, 0, &damaged, &error);
	assert_non_null(truth);
	assert_int_equal(truth->valid[truth->resume]->step, 3);
	assert_string_equal(damaged.object, key);
	truth_free(truth);
	free(key);
}

static void
test_missing_for_good(void **state)
{
	struct error error, damaged;
	struct truth *truth;
	char *key;

	(void)state;
	fill();
	key = key_of_step(3);
	delaying_set(store, key, NULL, 0);
	truth = read_truth();
	assert_steps(truth, "5 4 2 1");
	assert_int_equal(truth->lost.count, 1);
	assert_int_equal(truth->lost.items[0].error.class, ERROR_DAMAGED);
	assert_string_equal(truth->lost.items[0].error.object, key);
	truth_free(truth);
	truth = truth_read_surviving(store, 0, &damaged, &error);
	assert_non_null(truth);
	assert_steps(truth, "5 4 2 1");
	assert_int_equal(damaged.class, ERROR_DAMAGED);
	truth_free(truth);
	free(key);
}

static void
test_all_damaged(void **state)
{
	struct error error, damaged;
	struct writer *writer = take_over(1);
	char *key;

	(void)state;
	commit(writer, "last.pt", ROLE_RESUME, 1);
	writer_free(writer);
	key = key_of_step(1);
	damage(key);
	assert_null(truth_read_surviving(store, 0, &damaged, &error));
	assert_int_equal(error.class, ERROR_DAMAGED);
	free(key);
}

static void
test_damaged_open(void **state)
{
	const struct term term = { 0, 7, 1 };
	static const char *const texts[] = { "", "{}", "[1]",
		"{\"format\":1,\"node\":0,\"nodes\":1,\"term\":8,\"adopted\":[]}",
		"{\"format\":1,\"node\":0,\"nodes\":1,\"term\":7,"
		"\"adopted\":[{\"key\":\"x\",\"name\":\"y\"}]}",
		"{\"format\":1,\"node\":0,\"nodes\":1,\"term\":7,"
		"\"adopted\":[],\"resume\":\"x\"}" };
	struct error error;
	char key[KEY_SIZE];
	size_t i;

	(void)state;
	key_term_object(&term, "open.json", key);
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		delaying_set(store, key, texts[i], strlen(texts[i]));
		assert_null(truth_read(store, 0, &error));
		assert_int_equal(error.class, ERROR_DAMAGED);
		assert_string_equal(error.object, key);
	}
	delaying_set(store, key, "{\"format\":9}", 12);
	assert_null(truth_read(store, 0, &error));
	assert_int_equal(error.cause, CAUSE_FEATURE);
}

/* Many are fetched at a time, and all arrive. */
static void
test_hundreds_of_valid(void **state)
{
	struct writer *writer = take_over(0);
	struct truth *truth;
	size_t i;

	(void)state;
	for (i = 1; i <= 300; i++)
		commit(writer, "last.pt", ROLE_RESUME, i);
	writer_free(writer);
	truth = read_truth();
	assert_int_equal(truth->count, 300);
	for (i = 0; i < 300; i++)
		assert_int_equal(truth->valid[i]->step, 300 - i);
	truth_free(truth);
}

#define TRUTH_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TRUTH_TEST(test_find),
		TRUTH_TEST(test_no_best),
		TRUTH_TEST(test_taken_over_while_reading),
		TRUTH_TEST(test_never_says_nothing_there),
		TRUTH_TEST(test_gives_up_after_three_changes),
		TRUTH_TEST(test_unreachable),
		TRUTH_TEST(test_damaged_keep),
		TRUTH_TEST(test_damaged_newest),
		TRUTH_TEST(test_damaged_resume_point),
		TRUTH_TEST(test_missing_for_good),
		TRUTH_TEST(test_all_damaged),
		TRUTH_TEST(test_damaged_open),
		TRUTH_TEST(test_hundreds_of_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
