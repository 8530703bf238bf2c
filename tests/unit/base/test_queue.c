#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/queue.h"
#include "kit/kit.h"

static bool
is_readable(struct queue *queue)
{
	struct pollfd entry = { .fd = queue_fd(queue), .events = POLLIN };

	return poll(&entry, 1, 0) == 1 && (entry.revents & POLLIN) != 0;
}

static void
keeps_order_and_bound(void **state)
{
	struct error error = ERROR_INIT;
	struct queue *queue = queue_new(3, &error);
	int items[8];

	(void)state;
	assert_non_null(queue);
	assert_null(queue_take(queue, 0));
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 3; i++)
			assert_int_equal(queue_put(queue, &items[i]), 0);
		assert_int_equal(queue_try_put(queue, &items[3]), -1);
		assert_int_equal(queue_length(queue), 3);
		assert_ptr_equal(queue_take(queue, 0), &items[0]);
		assert_int_equal(queue_try_put(queue, &items[3]), 0);
		assert_ptr_equal(queue_take(queue, 1), &items[1]);
		assert_ptr_equal(queue_take(queue, CLOCK_NEVER), &items[2]);
		assert_ptr_equal(queue_take(queue, CLOCK_SECOND), &items[3]);
		assert_int_equal(queue_length(queue), 0);
	}
	queue_free(queue);
	queue_free(NULL);
}

static void
descriptor_says_what_is(void **state)
{
	struct error error = ERROR_INIT;
	struct queue *queue = queue_new(2, &error);
	int item;

	(void)state;
	assert_non_null(queue);
	assert_false(is_readable(queue));
	queue_put(queue, &item);
	assert_true(is_readable(queue));
	queue_put(queue, &item);
	queue_take(queue, 0);
	assert_true(is_readable(queue));
	queue_take(queue, 0);
	assert_false(is_readable(queue));
	queue_take(queue, 0);
	assert_false(is_readable(queue));
	queue_put(queue, &item);
	queue_close(queue);
	queue_close(queue);
	assert_true(is_readable(queue));
	assert_ptr_equal(queue_take(queue, CLOCK_NEVER), &item);
	assert_true(is_readable(queue));
	queue_free(queue);
}

static void
closed_takes_no_more(void **state)
{
	struct error error = ERROR_INIT;
	struct queue *queue = queue_new(2, &error);
	int item;

	(void)state;
	assert_non_null(queue);
	queue_put(queue, &item);
	queue_close(queue);
	assert_int_equal(queue_put(queue, &item), -1);
	assert_int_equal(queue_try_put(queue, &item), -1);
	assert_ptr_equal(queue_take(queue, 0), &item);
	assert_null(queue_take(queue, CLOCK_NEVER));
	assert_null(queue_take(queue, 0));
	queue_free(queue);
}

static void
waits_as_long_as_told(void **state)
{
	struct error error = ERROR_INIT;
	struct queue *queue = queue_new(1, &error);
	uint64_t begun = clock_monotonic();

	(void)state;
	assert_non_null(queue);
	assert_null(queue_take(queue, 5 * CLOCK_MILLISECOND));
	assert_true(clock_monotonic() - begun >= 5 * CLOCK_MILLISECOND);

	/* Nearly never must not wrap round into the past. */
	queue_close(queue);
	assert_null(queue_take(queue, CLOCK_NEVER - 1));
	queue_free(queue);
}

static void
refuses_a_capacity_that_cannot_be(void **state)
{
	struct error error = ERROR_INIT;

	(void)state;
	assert_null(queue_new(SIZE_MAX, &error));
	assert_int_equal(error.cause, CAUSE_MEMORY);
}

static void *
put_one(void *argument)
{
	static int item;

	return queue_put(argument, &item) == 0 ? NULL : argument;
}

static void *
take_one(void *argument)
{
	return queue_take(argument, CLOCK_NEVER);
}

/* Whether the others already wait or not: closing sends all of them home. */
static void
closing_wakes_everybody(void **state)
{
	struct error error = ERROR_INIT;
	struct queue *full = queue_new(1, &error);
	struct queue *empty = queue_new(1, &error);
	pthread_t putters[3], takers[3];
	int item;

	(void)state;
	assert_true(full != NULL && empty != NULL);
	queue_put(full, &item);
	for (int i = 0; i < 3; i++) {
		pthread_create(&putters[i], NULL, put_one, full);
		pthread_create(&takers[i], NULL, take_one, empty);
	}
	queue_close(full);
	queue_close(empty);
	for (int i = 0; i < 3; i++) {
		void *result;

		pthread_join(putters[i], &result);
		assert_ptr_equal(result, full);
		pthread_join(takers[i], &result);
		assert_null(result);
	}
	assert_int_equal(queue_length(full), 1);
	queue_free(full);
	queue_free(empty);
}

#define WORKERS 4
#define EACH 5000

struct work {
	struct queue *queue;
	atomic_int seen[WORKERS * EACH];
	atomic_int next;
};

static void *
produce(void *argument)
{
	struct work *work = argument;

	for (int i = 0; i < EACH; i++) {
		int item = atomic_fetch_add(&work->next, 1);

		while (i % 2 == 0 &&
		    queue_try_put(work->queue, &work->seen[item]) != 0)
			sched_yield();
		if (i % 2 != 0)
			queue_put(work->queue, &work->seen[item]);
	}
	return NULL;
}

static void *
consume(void *argument)
{
	struct work *work = argument;
	atomic_int *item;

	while ((item = queue_take(work->queue, CLOCK_NEVER)) != NULL)
		atomic_fetch_add(item, 1);
	return NULL;
}

static void
many_threads_lose_nothing(void **state)
{
	static struct work work;
	struct error error = ERROR_INIT;
	pthread_t producers[WORKERS], consumers[WORKERS];

	(void)state;
	work.queue = queue_new(7, &error);
	assert_non_null(work.queue);
	for (int i = 0; i < WORKERS; i++) {
		pthread_create(&producers[i], NULL, produce, &work);
		pthread_create(&consumers[i], NULL, consume, &work);
	}
	for (int i = 0; i < WORKERS; i++)
		pthread_join(producers[i], NULL);
	queue_close(work.queue);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(consumers[i], NULL);
	for (int i = 0; i < WORKERS * EACH; i++)
		assert_int_equal(atomic_load(&work.seen[i]), 1);
	queue_free(work.queue);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_order_and_bound),
		cmocka_unit_test(descriptor_says_what_is),
		cmocka_unit_test(closed_takes_no_more),
		cmocka_unit_test(waits_as_long_as_told),
		cmocka_unit_test(refuses_a_capacity_that_cannot_be),
		cmocka_unit_test(closing_wakes_everybody),
		cmocka_unit_test(many_threads_lose_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
