#include "unit/store/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/backend.h"
#include "store/remote.h"
#include "store/truth.h"
#include "unit/store/load.h"

struct backend *(*suite_open)(void);

/* The keys of a store. */
struct listing {
	char *keys[4096];
	size_t count;
};

static int
add_key(void *context, const struct backend_entry *entry, struct error *error)
{
	struct listing *listing = context;

	(void)error;
	assert_true(listing->count < 4096);
	listing->keys[listing->count] = strdup(entry->key);
	assert_non_null(listing->keys[listing->count++]);
	return 0;
}

static void
list_all(struct backend *backend, struct listing *listing)
{
	struct error error;

	listing->count = 0;
	assert_ok(backend_list(backend, "", false, add_key, listing, &error),
	    error);
}

static void
listing_clear(struct listing *listing)
{
	while (listing->count > 0)
		free(listing->keys[--listing->count]);
}

static bool
listing_holds(const struct listing *listing, const char *key)
{
	size_t i;

	for (i = 0; i < listing->count; i++) {
		if (strcmp(listing->keys[i], key) == 0)
			return true;
	}
	return false;
}

/* A writer of ${backend} that deletes without delay. */
static struct writer *
take_over(struct backend *backend, uint64_t keep, const char *host)
{
	struct error error;
	struct writer *writer = load_take_over(backend, keep, 0, host, &error);

	if (writer == NULL)
		fail_msg("%s: %s", host, error.message);
	return writer;
}

static void
commit(struct backend *backend, struct writer *writer, const struct load *load)
{
	struct error error;

	assert_ok(load_commit(backend, writer, load, NULL, CLOCK_NEVER, NULL,
	    &error), error);
}

/* Send every DELETE that is planned, also those that sweeps plan. */
static void
delete_all(struct writer *writer)
{
	struct error error;
	unsigned rounds = 0;

	while (writer_next_delete(writer) != CLOCK_NEVER) {
		if (writer_delete_due(writer, &error) < 0)
			fail_msg("delete: %s", error.message);
		assert_true(++rounds < 1000);
	}
}

static struct truth *
read_truth(struct backend *backend)
{
	struct error error;
	struct truth *truth = truth_read(backend, 0, &error);

	if (truth == NULL)
		fail_msg("truth: %s", error.message);
	return truth;
}

/* Add ${key} to what is expected, once. */
static void
expect(struct listing *expected, const char *key)
{
	struct error error;
	const struct backend_entry entry = { .key = key };

	if (!listing_holds(expected, key))
		add_key(expected, &entry, &error);
}

/* A term stays as long as something of it is named. */
static void
expect_term(struct listing *expected, const struct term *term)
{
	char key[KEY_SIZE];

	expect(expected, key_term_object(term, "claim", key));
	expect(expected, key_term_object(term, "open.json", key));
}

/* Exactly these objects: what the truth names, and the terms they lie in. */
static void
assert_exactly_valid(struct backend *backend, struct truth *truth)
{
	struct listing listing, expected = { .count = 0 };
	struct key_parts parts;
	size_t i, j;

	expect(&expected, KEY_FORMAT);
	expect_term(&expected, &truth->term);
	for (i = 0; i < truth->count; i++) {
		const struct manifest *manifest = truth->valid[i];

		expect(&expected, manifest->key);
		expect_term(&expected, &manifest->term);
		for (j = 0; j < manifest->chunk_count; j++) {
			expect(&expected, manifest->chunks[j].key);
			key_parse(manifest->chunks[j].key, &parts);
			expect_term(&expected, &parts.term);
		}
	}
	list_all(backend, &listing);
	for (i = 0; i < expected.count; i++) {
		if (!listing_holds(&listing, expected.keys[i]))
			fail_msg("is missing: %s", expected.keys[i]);
	}
	for (i = 0; i < listing.count; i++) {
		if (!listing_holds(&expected, listing.keys[i]))
			fail_msg("is left: %s", listing.keys[i]);
	}
	listing_clear(&listing);
	listing_clear(&expected);
}

static struct backend *
open_marked(void)
{
	struct backend *backend = suite_open();
	struct error error;

	assert_non_null(backend);
	assert_ok(remote_mark(backend, &error), error);
	assert_ok(remote_mark(backend, &error), error);
	assert_ok(remote_check(backend, &error), error);
	return backend;
}

static void
test_first_commit(void **state)
{
	const struct load load = { .name = "last.pt", .seed = 1, .chunks = 3,
		.has_step = true, .step = 10 };
	struct backend *backend = open_marked();
	struct writer *writer;
	struct truth *truth;
	struct error error;

	(void)state;
	assert_null(truth_read(backend, 0, &error));
	assert_int_equal(error.class, ERROR_NOTHING);
	writer = take_over(backend, 3, "first");
	assert_int_equal(writer_term(writer).number, 1);
	assert_null(truth_read(backend, 0, &error));
	assert_int_equal(error.class, ERROR_NOTHING);
	commit(backend, writer, &load);
	truth = read_truth(backend);
	assert_int_equal(truth->count, 1);
	assert_int_equal(truth->resume, 0);
	assert_string_equal(truth->valid[0]->name, "last.pt");
	assert_int_equal(truth->valid[0]->step, 10);
	assert_int_equal(truth->valid[0]->chunk_count, 3);
	assert_non_null(strstr(truth->agent, "first, "));
	assert_exactly_valid(backend, truth);
	truth_free(truth);
	writer_free(writer);
	backend_free(backend);
}

static void
test_newer_agent_supersedes(void **state)
{
	struct load load = { .name = "last.pt", .seed = 1, .chunks = 2 };
	struct backend *backend = open_marked();
	struct writer *old, *new;
	struct truth *truth;
	struct error error;

	(void)state;
	old = take_over(backend, 3, "gpu-1");
	commit(backend, old, &load);
	assert_ok(writer_check(old, &error), error);
	new = take_over(backend, 3, "gpu-2");
	assert_int_equal(writer_term(new).number, 2);
	load.seed = 2;
	assert_int_equal(load_commit(backend, old, &load, NULL, CLOCK_NEVER,
	    NULL, &error), -1);
	assert_int_equal(error.class, ERROR_SUPERSEDED);
	assert_non_null(strstr(error.message, "gpu-2, 2"));
	assert_non_null(strstr(error.message, "last.pt is not durable"));
	assert_int_equal(writer_check(old, &error), -1);
	assert_int_equal(error.class, ERROR_SUPERSEDED);
	assert_int_equal(writer_delete_due(old, &error), 0);
	truth = read_truth(backend);
	assert_int_equal(truth->term.number, 2);
	assert_int_equal(truth->count, 1);
	assert_int_equal(truth->valid[0]->term.number, 1);
	assert_int_equal(truth->valid[0]->attempt, 1);
	truth_free(truth);
	load.seed = 3;
	commit(backend, new, &load);
	delete_all(new);
	truth = read_truth(backend);
	assert_int_equal(truth->count, 2);
	truth_free(truth);
	writer_free(old);
	writer_free(new);
	backend_free(backend);
}

/* Cut after ${cut} of 40 chunks; the next term sends what was missing. */
static void
cut_upload(struct backend *backend, size_t cut, bool committed_before)
{
	const struct load before = { .name = "old.pt", .seed = 5, .chunks = 1 };
	const struct load load = { .name = "big.pt", .seed = 100 + cut,
		.chunks = 40 };
	struct writer *writer = take_over(backend, 1, "cut");
	struct error error;
	size_t sent;

	if (committed_before)
		commit(backend, writer, &before);
	assert_ok(load_send(backend, writer, writer_begin(writer), &load, cut,
	    &sent, &error), error);
	assert_int_equal(sent, cut);
	writer_free(writer);
	writer = take_over(backend, 1, "goes on");
	assert_ok(load_commit(backend, writer, &load, NULL, CLOCK_NEVER, &sent,
	    &error), error);
	assert_int_equal(sent, 40 - cut);
	writer_free(writer);
}

static void
test_cut_upload_goes_on(void **state)
{
	struct backend *backend = open_marked();
	struct truth *truth;
	struct writer *writer;
	size_t cut;

	(void)state;
	for (cut = 0; cut <= 40; cut++)
		cut_upload(backend, cut, cut % 2 == 0);
	truth = read_truth(backend);
	assert_string_equal(truth->valid[0]->name, "big.pt");
	truth_free(truth);
	/* All that the many terms left behind goes away in the end. */
	writer = take_over(backend, 1, "last");
	commit(backend, writer, &(struct load){ .name = "end.pt", .seed = 9,
		.chunks = 1 });
	delete_all(writer);
	writer_free(writer);
	truth = read_truth(backend);
	/* The newest that was adopted has no step: it stays. */
	assert_int_equal(truth->count, 2);
	truth_free(truth);
	backend_free(backend);
}

static void
test_from_zero_keeps_the_best(void **state)
{
	struct load load = { .name = "last.pt", .has_step = true, .step = 1000,
		.seed = 1, .chunks = 2 };
	struct backend *backend = open_marked();
	struct writer *writer;
	struct truth *truth;
	size_t step;

	(void)state;
	writer = take_over(backend, 1, "far");
	commit(backend, writer, &load);
	writer_free(writer);
	writer = take_over(backend, 1, "from zero");
	for (step = 0; step < 5; step++) {
		load.step = step;
		load.seed = 10 + step;
		commit(backend, writer, &load);
		delete_all(writer);
	}
	truth = read_truth(backend);
	assert_int_equal(truth->count, 2);
	assert_int_equal(truth->valid[0]->step, 4);
	assert_int_equal(truth->resume, 0);
	assert_int_equal(truth->valid[1]->step, 1000);
	truth_free(truth);
	load.step = 1001;
	load.seed = 20;
	commit(backend, writer, &load);
	delete_all(writer);
	truth = read_truth(backend);
	assert_int_equal(truth->count, 1);
	assert_int_equal(truth->valid[0]->step, 1001);
	assert_exactly_valid(backend, truth);
	truth_free(truth);
	writer_free(writer);
	backend_free(backend);
}

/* A commit of the long run: sometimes a better best, always some chunks new. */
static struct load
nth_load(size_t number)
{
	return (struct load){ .name = number % 10 == 9 ? "best.pt" : "last.pt",
		.role = number % 10 == 9 ? ROLE_BEST : ROLE_RESUME,
		.has_step = true, .step = number, .seed = 3, .chunks = 5,
		.new_chunks = 2, .completed = (time_t)number };
}

static void
test_two_hundred_commits(void **state)
{
	struct backend *backend = open_marked();
	struct writer *writer = NULL;
	struct truth *truth;
	struct load load;
	size_t i;

	(void)state;
	for (i = 0; i < 200; i++) {
		if (i % 67 == 0) {
			writer_free(writer);
			writer = take_over(backend, 3, "long");
		}
		load = nth_load(i);
		commit(backend, writer, &load);
		if (i % 7 == 0)
			delete_all(writer);
	}
	delete_all(writer);
	truth = read_truth(backend);
	/* 199 is the best; 198, 197 and 196 the newest three. */
	assert_int_equal(truth->count, 4);
	for (i = 0; i < 4; i++)
		assert_int_equal(truth->valid[i]->step, 199 - i);
	assert_int_equal(truth->resume, 1);
	assert_int_equal(truth->term.number, 3);
	assert_exactly_valid(backend, truth);
	truth_free(truth);
	writer_free(writer);
	backend_free(backend);
}

static void
test_claim_without_open(void **state)
{
	const struct load load = { .name = "last.pt", .seed = 1, .chunks = 1 };
	const struct term dead = { .number = 2, .random = 7 };
	struct backend *backend = open_marked();
	struct writer *writer;
	struct truth *truth;
	struct error error;
	char key[KEY_SIZE];

	(void)state;
	writer = take_over(backend, 3, "only one");
	commit(backend, writer, &load);
	assert_ok(backend_put(backend, key_term_object(&dead, "claim", key),
	    "{}", 2, 0, &error), error);
	truth = read_truth(backend);
	assert_int_equal(truth->term.number, 1);
	assert_int_equal(truth->count, 1);
	truth_free(truth);
	assert_ok(writer_check(writer, &error), error);
	/* Its time is over already: it asks once, and does not claim. */
	assert_int_equal(load_commit(backend, writer, &(struct load){
	    .name = "last.pt", .seed = 2, .chunks = 1 }, NULL,
	    clock_monotonic(), NULL, &error), -1);
	assert_int_equal(error.class, ERROR_NOT_DURABLE);
	writer_free(writer);
	writer = take_over(backend, 3, "next one");
	assert_int_equal(writer_term(writer).number, 3);
	writer_free(writer);
	backend_free(backend);
}

static void
test_terms_that_never_committed(void **state)
{
	const struct load load = { .name = "last.pt", .seed = 1, .chunks = 2 };
	struct backend *backend = open_marked();
	struct writer *writer;
	struct truth *truth;
	size_t i;

	(void)state;
	writer = take_over(backend, 3, "worker");
	commit(backend, writer, &load);
	for (i = 0; i < 5; i++) {
		writer_free(writer);
		writer = take_over(backend, 3, "idle");
		truth = read_truth(backend);
		assert_int_equal(truth->count, 1);
		assert_int_equal(truth->resume, 0);
		assert_int_equal(truth->term.number, i + 2);
		truth_free(truth);
	}
	commit(backend, writer, &(struct load){ .name = "last.pt", .seed = 2,
		.chunks = 2, .has_step = true, .step = 1 });
	delete_all(writer);
	truth = read_truth(backend);
	assert_int_equal(truth->count, 2);
	truth_free(truth);
	writer_free(writer);
	backend_free(backend);
}

static void
test_nodes_are_apart(void **state)
{
	const struct load load = { .name = "last.pt", .seed = 1, .chunks = 1 };
	struct writer_options options = { .node = 3, .nodes = 4,
		.rules.keep = 1 };
	struct backend *backend = open_marked();
	struct writer *writer, *other;
	struct truth *truth;
	struct error error;
	char id[MANIFEST_ID_SIZE];

	(void)state;
	writer = take_over(backend, 1, "node 0");
	other = writer_take_over(backend, &options, CLOCK_NEVER, &error);
	assert_non_null(other);
	commit(backend, other, &load);
	assert_ok(writer_check(writer, &error), error);
	assert_null(truth_read(backend, 0, &error));
	assert_int_equal(error.class, ERROR_NOTHING);
	truth = truth_read(backend, 3, &error);
	assert_non_null(truth);
	assert_int_equal(truth->valid[0]->nodes, 4);
	assert_string_equal(manifest_id(truth->valid[0], id), "n3-1-1");
	truth_free(truth);
	writer_free(other);
	writer_free(writer);
	backend_free(backend);
}

const struct CMUnitTest suite_tests[SUITE_TESTS] = {
	cmocka_unit_test(test_first_commit),
	cmocka_unit_test(test_newer_agent_supersedes),
	cmocka_unit_test(test_cut_upload_goes_on),
	cmocka_unit_test(test_from_zero_keeps_the_best),
	cmocka_unit_test(test_two_hundred_commits),
	cmocka_unit_test(test_claim_without_open),
	cmocka_unit_test(test_terms_that_never_committed),
	cmocka_unit_test(test_nodes_are_apart),
};
