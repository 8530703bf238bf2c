/*
 * The protocol against a store that misbehaves, at random but from fixed
 * seeds: up to three writers and a reader on one node, which stop before every
 * request of theirs; between any two requests another one may run, crash or
 * start anew, and a late request may take effect.  After every step the claims
 * of DESIGN 5 are checked against what lies in the store:
 *
 *  (a) what was reported durable is valid, or something newer is;
 *  (b) every valid checkpoint is whole;
 *  (c) so it is however late replaced writers and their requests come;
 *  (d) a reader never gets less than what was durable when it began.
 *
 * One actor runs at a time, each on a thread of its own; clock_sleep and the
 * random numbers of the store room are replaced (see CMakeLists.txt), so that
 * a seed says all.
 */
#include "kit/kit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/random.h"
#include "store/backend.h"
#include "store/truth.h"
#include "unit/store/delaying.h"
#include "unit/store/load.h"

#define WRITERS 3
#define ACTORS (WRITERS + 1)
/* The sanitizers look for something else than the protocol's holes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 60
#else
#define SEEDS 400
#endif
#define STEPS 900

/* For the linker: what stands in for functions of base. */
void __wrap_clock_sleep(uint64_t nanoseconds);
uint64_t __wrap_random_bits(void);
uint64_t __wrap_random_below(uint64_t limit);

enum state { ACTOR_ABSENT, ACTOR_WAITING, ACTOR_RUNNING };

struct actor {
	pthread_t thread;
	pthread_cond_t turn;
	enum state state;
	bool dying;		/* no request of it is applied any more */
	uint64_t wakes;		/* asleep until then, on the test clock */
};

/* One run. */
static struct {
	uint64_t seed, bits;
	struct backend *store;
	uint64_t keep, delay;

	pthread_mutex_t mutex;
	pthread_cond_t back;	/* the scheduler's turn */
	struct actor actors[ACTORS];
	int running;		/* index, -1: the scheduler */

	uint64_t next_step;	/* of checkpoints, growing over all writers */
	uint64_t durable;	/* newest step that was reported durable */
	bool any_durable;
	bool reported[STEPS + 1];	/* steps that were reported durable */
	size_t changes;		/* of the store when it was last checked */
	unsigned reports, checked_reports;
	char failure[1400];	/* what an actor found wrong */
	unsigned commits, takeovers, reads, superseded, crashes;
} model;

static __thread int self = -1;

static uint64_t
draw(uint64_t limit)
{
	uint64_t bits;

	kit_random(&bits, sizeof(bits), model.seed * UINT64_C(0x9e3779b97f4a7c15)
	    + model.bits++);
	return bits % limit;
}

/* Give the baton to the scheduler and wait until it comes back. */
static void
stand_back(uint64_t wakes)
{
	pthread_mutex_lock(&model.mutex);
	model.actors[self].wakes = wakes;
	model.actors[self].state = ACTOR_WAITING;
	model.running = -1;
	pthread_cond_signal(&model.back);
	while (model.running != self)
		pthread_cond_wait(&model.actors[self].turn, &model.mutex);
	model.actors[self].state = ACTOR_RUNNING;
	pthread_mutex_unlock(&model.mutex);
}

void
__wrap_clock_sleep(uint64_t nanoseconds)
{
	if (self >= 0 && !model.actors[self].dying)
		stand_back(clock_monotonic() + nanoseconds);
}

uint64_t
__wrap_random_bits(void)
{
	return draw(UINT64_MAX);
}

uint64_t
__wrap_random_below(uint64_t limit)
{
	return limit == 0 ? 0 : draw(limit);
}

static enum delaying_fate
decide(void *context, enum delaying_operation operation, const char *key)
{
	(void)context;
	(void)key;
	if (self < 0)
		return DELAYING_ANSWERED;	/* a check */
	if (model.actors[self].dying)
		return DELAYING_NEVER;
	stand_back(0);
	if (model.actors[self].dying)
		/* It was on its way when its sender died. */
		return operation == DELAYING_GET || operation == DELAYING_LIST
		    ? DELAYING_NEVER : (enum delaying_fate[]){
		    DELAYING_NEVER, DELAYING_UNANSWERED, DELAYING_LATER
		    }[draw(3)];
	if (draw(100) < 88)
		return DELAYING_ANSWERED;
	if (operation == DELAYING_GET || operation == DELAYING_LIST)
		return draw(4) == 0 ? DELAYING_NEVER : DELAYING_ANSWERED;
	return (enum delaying_fate[]){ DELAYING_UNANSWERED, DELAYING_LATER,
	    DELAYING_TWICE, DELAYING_NEVER }[draw(4)];
}

/* --- the actors --- */

/* Let the scheduler's thread fail: an actor's cannot. */
static void
complain(const char *who, const struct error *error)
{
	snprintf(model.failure, sizeof(model.failure), "%s: %s: %s", who,
	    error->object, error->message);
}

static void
report_durable(uint64_t step)
{
	if (model.actors[self].dying)
		return;
	model.reported[step] = true;
	model.reports++;
	if (!model.any_durable || step > model.durable)
		model.durable = step;
	model.any_durable = true;
}

/*
 * A commit, tried again with the same attempt as long as the store does not
 * answer, or given up.  Return whether to go on.
 */
static bool
work_once(struct writer *writer)
{
	static const struct writer_directory nothing;
	const uint64_t step = model.next_step++;
	const struct load load = { .name = "last.pt", .has_step = true,
		.step = step, .seed = draw(3), .chunks = 3, .new_chunks =
		draw(3), .completed = (time_t)step };
	uint64_t attempt = writer_begin(writer), deadline;
	struct manifest *manifest = NULL;
	struct error error = ERROR_INIT;
	unsigned tries;
	size_t sent;

	for (tries = 0; tries < 4; tries++) {
		if (manifest == NULL && load_send(model.store, writer, attempt,
		    &load, SIZE_MAX, &sent, &error) != 0)
			continue;
		if (manifest == NULL)
			manifest = load_manifest(writer, attempt, &load);
		deadline = draw(4) == 0 ? clock_monotonic() +
		    draw(90) * CLOCK_SECOND : CLOCK_NEVER;
		if (writer_commit(writer, attempt, manifest, &nothing,
		    deadline, &error) == 0) {
			report_durable(step);
			model.commits++;
			return true;
		}
		if (error.class == ERROR_SUPERSEDED || draw(4) == 0)
			break;
	}
	manifest_free(manifest);
	writer_end(writer, attempt);
	if (error.class == ERROR_DAMAGED)
		complain("commit", &error);
	model.superseded += error.class == ERROR_SUPERSEDED;
	return error.class != ERROR_SUPERSEDED;
}

/* From T6 on, what was adopted is durable. */
static int
report_adopted(void *context, const struct manifest *manifest, bool adopted,
    bool resume)
{
	(void)context;
	(void)adopted;
	(void)resume;
	report_durable(manifest->step);
	return 0;
}

static void
write_for_a_while(void)
{
	struct error error;
	struct writer *writer;
	unsigned rounds = 1 + (unsigned)draw(12), i;

	writer = load_take_over(model.store, model.keep, model.delay, "w", &error);
	if (writer == NULL) {
		if (error.class == ERROR_DAMAGED)
			complain("takeover", &error);
		return;
	}
	model.takeovers++;
	writer_valid(writer, report_adopted, NULL);
	for (i = 0; i < rounds && !model.actors[self].dying; i++) {
		if (!work_once(writer))
			break;
		if (draw(3) == 0)
			stand_back(clock_monotonic() + draw(100) *
			    CLOCK_SECOND);
		if (draw(2) == 0)
			(void)writer_delete_due(writer, &error);
	}
	writer_free(writer);
}

/* Claim (d). */
static void
read_once(void)
{
	bool any = model.any_durable;
	uint64_t durable = model.durable, newest = 0;
	struct error error;
	struct truth *truth = truth_read(model.store, 0, &error);
	size_t i;

	if (model.actors[self].dying) {
		truth_free(truth);
		return;
	}
	model.reads++;
	if (truth == NULL) {
		if ((any && error.class == ERROR_NOTHING) ||
		    error.class == ERROR_DAMAGED)
			complain("reader", &error);
		return;
	}
	for (i = 0; i < truth->count; i++) {
		if (truth->valid[i]->step > newest)
			newest = truth->valid[i]->step;
	}
	if (any && newest < durable)
		snprintf(model.failure, sizeof(model.failure),
		    "the reader got step %u, durable was %u",
		    (unsigned)newest, (unsigned)durable);
	truth_free(truth);
}

static void *
act(void *context)
{
	self = (int)(intptr_t)context;
	pthread_mutex_lock(&model.mutex);
	while (model.running != self)
		pthread_cond_wait(&model.actors[self].turn, &model.mutex);
	pthread_mutex_unlock(&model.mutex);
	if (self < WRITERS)
		write_for_a_while();
	else
		read_once();
	pthread_mutex_lock(&model.mutex);
	model.actors[self].state = ACTOR_ABSENT;
	model.running = -1;
	pthread_cond_signal(&model.back);
	pthread_mutex_unlock(&model.mutex);
	return NULL;
}

/* --- the checks: the truth by another hand than truth.c's --- */

static struct manifest *
manifest_at(const char *key)
{
	struct error error;
	struct manifest *manifest;
	size_t length;
	const char *data = delaying_get(model.store, key, &length);

	if (data == NULL)
		fail_msg("seed %u: valid, but gone: %s", (unsigned)model.seed,
		    key);
	manifest = manifest_read(key, data, length, &error);
	if (manifest == NULL)
		fail_msg("seed %u: %s", (unsigned)model.seed, error.message);
	return manifest;
}

/* The newest manifest of the highest open term, or its open.json. */
static void
find_truth(const char **open, const char **newest)
{
	struct key_parts parts;
	struct term term = { 0 };
	size_t i;

	*open = *newest = NULL;
	for (i = 0; i < delaying_count(model.store); i++) {
		const char *key = delaying_key(model.store, i);

		key_parse(key, &parts);
		if (parts.kind == KEY_OPEN && parts.term.number > term.number) {
			term = parts.term;
			*open = key;
		}
	}
	for (i = 0; i < delaying_count(model.store); i++) {
		key_parse(delaying_key(model.store, i), &parts);
		if (parts.kind == KEY_MANIFEST && term_same(&parts.term, &term))
			*newest = delaying_key(model.store, i);
	}
}

/* Claim (b) for one of the valid ones; returns its step. */
static uint64_t
check_whole(const char *key)
{
	struct manifest *manifest = manifest_at(key);
	uint64_t step = manifest->step;
	size_t i, length;

	for (i = 0; i < manifest->chunk_count; i++) {
		if (delaying_get(model.store, manifest->chunks[i].key,
		    &length) == NULL)
			fail_msg("seed %u: step %u is valid, but its chunk is "
			    "gone: %s", (unsigned)model.seed, (unsigned)step,
			    manifest->chunks[i].key);
	}
	manifest_free(manifest);
	return step;
}

/* Claim (a) against the steps that are valid. */
static void
check_durable(const bool *valid)
{
	uint64_t step, newest = 0;

	for (step = 0; step < model.next_step; step++) {
		if (valid[step])
			newest = step;
		if (model.keep == 0 && model.reported[step] && !valid[step])
			fail_msg("seed %u: step %u was durable and is lost",
			    (unsigned)model.seed, (unsigned)step);
	}
	if (model.any_durable && newest < model.durable)
		fail_msg("seed %u: step %u was durable, the newest is %u",
		    (unsigned)model.seed, (unsigned)model.durable,
		    (unsigned)newest);
}

static void
check_claims(void)
{
	bool valid[STEPS + 1] = { false };
	const char *open, *newest;
	struct manifest *manifest;
	struct error error;
	size_t i, length;

	if (model.failure[0] != '\0')
		fail_msg("seed %u: %s", (unsigned)model.seed, model.failure);
	if (model.changes == delaying_changes(model.store) &&
	    model.checked_reports == model.reports)
		return;
	model.changes = delaying_changes(model.store);
	model.checked_reports = model.reports;

	find_truth(&open, &newest);
	if (newest != NULL) {
		manifest = manifest_at(newest);
		valid[check_whole(newest)] = true;
		for (i = 0; i < manifest->keep_count; i++)
			valid[check_whole(manifest->keeps[i].key)] = true;
		manifest_free(manifest);
	} else if (open != NULL) {
		const char *text = delaying_get(model.store, open, &length);
		json_t *object = json_read(text, length, open, &error), *item;

		assert_non_null(object);
		json_array_foreach(json_object_get(object, "adopted"), i, item)
			valid[check_whole(json_get_text(item, "key"))] = true;
		json_decref(object);
	}
	check_durable(valid);
}

/* --- the scheduler --- */

static void
start(int index)
{
	struct actor *actor = &model.actors[index];

	*actor = (struct actor){ .state = ACTOR_WAITING };
	pthread_cond_init(&actor->turn, NULL);
	assert_int_equal(pthread_create(&actor->thread, NULL, act,
	    (void *)(intptr_t)index), 0);
}

/* Let ${index} run until it stands back or ends. */
static void
run(int index)
{
	struct actor *actor = &model.actors[index];

	if (actor->wakes > clock_monotonic())
		clock_test_turn(actor->wakes - clock_monotonic());
	pthread_mutex_lock(&model.mutex);
	model.running = index;
	pthread_cond_signal(&actor->turn);
	while (model.running != -1)
		pthread_cond_wait(&model.back, &model.mutex);
	pthread_mutex_unlock(&model.mutex);
	if (actor->state == ACTOR_ABSENT) {
		pthread_join(actor->thread, NULL);
		pthread_cond_destroy(&actor->turn);
	}
}

static void
crash(int index)
{
	model.crashes++;
	model.actors[index].dying = true;
	while (model.actors[index].state != ACTOR_ABSENT) {
		model.actors[index].wakes = 0;
		run(index);
	}
}

/* Something that is not a writer's or reader's step. */
static void
meddle(void)
{
	size_t late = delaying_late(model.store);

	switch (draw(4)) {
	case 0:
		clock_test_turn(draw(120) * CLOCK_SECOND);
		break;
	default:
		if (late > 0 && draw(8) > 0)
			delaying_release(model.store, draw(late));
		else if (late > 0)
			delaying_forget(model.store, draw(late));
		break;
	}
}

static void
step_once(void)
{
	int index = (int)draw(ACTORS);
	struct actor *actor = &model.actors[index];

	if (draw(10) == 0)
		meddle();
	else if (actor->state == ACTOR_ABSENT) {
		if (draw(index == 0 ? 3 : 25) == 0)
			start(index);
	} else if (draw(400) == 0)
		crash(index);
	else if (actor->wakes <= clock_monotonic() || draw(8) == 0)
		run(index);
}

static void
run_seed(uint64_t seed)
{
	unsigned step;
	int i;

	memset(&model, 0, sizeof(model));
	model.seed = seed;
	model.keep = seed % 3;
	model.delay = seed % 2 * 60 * CLOCK_SECOND;
	model.running = -1;
	pthread_mutex_init(&model.mutex, NULL);
	pthread_cond_init(&model.back, NULL);
	model.store = delaying_new(decide, NULL);
	clock_test_start((struct timespec){ .tv_sec = 1796060000 });
	for (step = 0; step < STEPS; step++) {
		step_once();
		check_claims();
	}
	for (i = 0; i < ACTORS; i++) {
		if (model.actors[i].state != ACTOR_ABSENT)
			crash(i);
	}
	check_claims();
	while (delaying_late(model.store) > 0) {
		delaying_release(model.store,
		    draw(delaying_late(model.store)));
		check_claims();
	}
	backend_free(model.store);
	clock_test_stop();
	pthread_cond_destroy(&model.back);
	pthread_mutex_destroy(&model.mutex);
}

static void
test_claims_hold(void **state)
{
	unsigned commits = 0, takeovers = 0, reads = 0, superseded = 0;
	unsigned crashes = 0;
	const char *text = getenv("CKPTSYNC_MODEL_SEEDS");
	uint64_t seeds = text == NULL ? SEEDS : strtoull(text, NULL, 10), seed;

	(void)state;
	for (seed = 1; seed <= seeds; seed++) {
		run_seed(seed);
		commits += model.commits;
		takeovers += model.takeovers;
		reads += model.reads;
		superseded += model.superseded;
		crashes += model.crashes;
	}
	print_message("%u durable commits, %u takeovers, %u superseded, %u "
	    "reads, %u crashes\n", commits, takeovers, superseded, reads,
	    crashes);
	/* That it was worth running. */
	assert_true(commits > seeds * 3);
	assert_true(takeovers > seeds * 2);
	assert_true(reads > seeds);
	assert_true(superseded > seeds / 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_claims_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
