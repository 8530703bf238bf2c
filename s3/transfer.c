#include <curl/curl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "s3/exchange.h"
#include "s3/call.h"
#include "s3/pool.h"
#include "s3/service.h"
#include "s3/sockets.h"
#include "s3/transfer.h"
#include "s3/verdict.h"
#include "s3/worker.h"

#define SLEEP_IDLE (60 * CLOCK_SECOND)
#define TICK_LONGEST (1 * CLOCK_SECOND)
#define TICK_SHORTEST (5 * CLOCK_MILLISECOND)
/* Asking again for credentials that are on their way, if nobody wakes us. */
#define CREDENTIALS_PAUSE (500 * CLOCK_MILLISECOND)

/* A connection's place. */
struct slot {
	struct call *call;		/* NULL: free */
	struct exchange *exchange;	/* made at first need, then kept */
	bool running;			/* its handle is in the multi handle */
};

struct transfer {
	struct service *service;
	struct pool *pool;
	unsigned seat;
	CURLM *multi;
	pthread_t thread;
	bool has_thread;
	struct sockets sockets;
	uint64_t tick;			/* how often silence is looked for */
	uint64_t next_tick;
	unsigned count;
	struct slot slots[];
};

struct transfer *
transfer_new(struct service *service, struct pool *pool, unsigned seat,
    struct error *error)
{
	unsigned count = pool_capacity(pool, seat);
	struct transfer *transfer = calloc(1, sizeof(*transfer) +
	    count * sizeof(transfer->slots[0]));
	uint64_t shortest = service->stall_timeout <
	    service->first_byte_timeout ? service->stall_timeout :
	    service->first_byte_timeout;

	if (transfer == NULL || (transfer->multi = curl_multi_init()) == NULL) {
		free(transfer);
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	curl_multi_setopt(transfer->multi, CURLMOPT_MAXCONNECTS, (long)count);
	curl_multi_setopt(transfer->multi, CURLMOPT_PIPELINING,
	    (long)CURLPIPE_NOTHING);
	transfer->service = service;
	transfer->pool = pool;
	transfer->seat = seat;
	transfer->count = count;
	transfer->tick = shortest / 4;
	if (transfer->tick > TICK_LONGEST)
		transfer->tick = TICK_LONGEST;
	if (transfer->tick < TICK_SHORTEST)
		transfer->tick = TICK_SHORTEST;
	pool_seat(pool, seat, transfer->multi);
	return transfer;
}

void
transfer_free(struct transfer *transfer)
{
	if (transfer == NULL)
		return;
	if (transfer->has_thread)
		pthread_join(transfer->thread, NULL);
	for (unsigned i = 0; i < transfer->count; i++)
		exchange_free(transfer->slots[i].exchange);
	/* Closes the kept connections, which are noted in `sockets`. */
	curl_multi_cleanup(transfer->multi);
	free(transfer);
}

/* One line a request, for `trace`. */
static void
tell(const struct slot *slot)
{
	const struct exchange *exchange = slot->exchange;
	const struct call *call = slot->call;
	const struct s3_request *request = call->request;
	const char *key = request->key[0] != '\0' ? request->key : "(bucket)";
	uint64_t bytes = exchange_sent(exchange) + exchange_received(exchange);
	uint64_t took = clock_monotonic() - exchange->started;
	bool good = request->error.class == ERROR_NONE;

	log_event(LOG_INFO, "request", LOG_FIELDS(
	    LOG_TEXT_FIELD("method", call_method(call)),
	    LOG_TEXT_FIELD("key", key),
	    LOG_NUMBER_FIELD("status", (uint64_t)exchange->head.status),
	    LOG_NUMBER_FIELD("body_bytes", bytes),
	    LOG_NUMBER_FIELD("took_ms", took / CLOCK_MILLISECOND),
	    LOG_NUMBER_FIELD("attempt", request->attempts),
	    LOG_TEXT_FIELD("request_id", exchange->head.request_id)),
	    "%s %s %d, %llu bytes, %llu ms, attempt %u, request id %s%s%s",
	    call_method(call), key, exchange->head.status,
	    (unsigned long long)bytes,
	    (unsigned long long)(took / CLOCK_MILLISECOND), request->attempts,
	    exchange->head.request_id[0] != '\0' ? exchange->head.request_id :
	    "none", good ? "" : ": ", good ? "" : request->error.message);
}

static void
slot_stop(struct transfer *transfer, struct slot *slot)
{
	if (!slot->running)
		return;
	curl_multi_remove_handle(transfer->multi, slot->exchange->easy);
	slot->running = false;
}

static void
slot_finish(struct transfer *transfer, struct slot *slot)
{
	struct call *call = slot->call;

	slot_stop(transfer, slot);
	slot->call = NULL;
	if (call->request->error.class == ERROR_NONE)
		retry_budget_return(&transfer->service->budget, call->tokens);
	pool_finish(transfer->pool, call, true);
}

static void
slot_cancel(struct transfer *transfer, struct slot *slot)
{
	error_set(&slot->call->request->error, ERROR_FAILED, CAUSE_CANCELLED,
	    slot->call->request->key, "cancelled");
	slot_finish(transfer, slot);
}

/* The deadline has come: say so, and how the last attempt ended. */
static void
set_overdue(struct s3_request *request)
{
	if (request->error.class == ERROR_NONE)
		error_set(&request->error, ERROR_FAILED, CAUSE_UNREACHABLE,
		    request->key, "not finished at its deadline (attempt %u)",
		    request->attempts);
	else
		error_prefix(&request->error, "given up at its deadline");
	request->error.cause = CAUSE_UNREACHABLE;
}

/* How long one request is tried again. */
static uint64_t
patience(const struct service *service)
{
	return service->answer_within != 0 &&
	    service->answer_within < service->give_up_after &&
	    !atomic_load(&service->answered) ? service->answer_within :
	    service->give_up_after;
}

/* Somebody waits: say once, and soon, why nothing happens. */
static void
complain(struct service *service, const struct error *error)
{
	if (service->answer_within == 0 || atomic_load(&service->answered) ||
	    error->class == ERROR_NONE ||
	    atomic_exchange(&service->complained, true))
		return;
	log_line(LOG_WARNING, "no_answer", "the server does not answer: %s; "
	    "trying again for up to %llu s", error->message,
	    (unsigned long long)(patience(service) / CLOCK_SECOND));
}

/* When the next attempt may start; CLOCK_NEVER: there is none. */
static uint64_t
next_start(struct transfer *transfer, struct call *call,
    const struct verdict *verdict, uint64_t now)
{
	struct service *service = transfer->service;
	uint64_t deadline = call->request->deadline;
	uint64_t delay;

	if (verdict->retry == RETRY_NEVER)
		return now;
	/* An attempt that brought something is a new beginning. */
	if (call->first_failure == 0 ||
	    call->delivered > call->delivered_before) {
		call->first_failure = now;
		call->failures = 0;
	}
	call->failures++;
	delay = retry_delay(verdict->retry, call->failures, verdict->asked,
	    random_bits());
	call->tokens = retry_budget_take(&service->budget, verdict->retry);
	if (call->tokens < 0) {
		call->tokens = 0;
		delay = RETRY_CAP;
	}
	if (deadline != 0 && now < deadline && delay > (deadline - now) / 2)
		delay = (deadline - now) / 2;
	if (now + delay - call->first_failure > patience(service))
		return CLOCK_NEVER;
	return now + delay;
}

static void
slot_retry(struct transfer *transfer, struct slot *slot,
    const struct verdict *verdict)
{
	struct call *call = slot->call;
	uint64_t now = clock_monotonic();
	uint64_t start = next_start(transfer, call, verdict, now);

	slot_stop(transfer, slot);
	if (start == CLOCK_NEVER) {
		slot_finish(transfer, slot);
		return;
	}
	if (verdict->retry != RETRY_NEVER)
		complain(transfer->service, &call->request->error);
	call->not_before = start;
	call->fresh = verdict->retry != RETRY_NEVER;
}

static void
slot_judge(struct transfer *transfer, struct slot *slot, CURLcode code)
{
	struct verdict verdict = verdict_of(slot->exchange, code);

	if (transfer->service->trace)
		tell(slot);
	if (slot->exchange->head.status != 0)
		atomic_store(&transfer->service->answered, true);
	if (verdict.kind == VERDICT_AGAIN)
		slot_retry(transfer, slot, &verdict);
	else
		slot_finish(transfer, slot);
}

static void
slot_run(struct transfer *transfer, struct slot *slot,
    const struct keys *keys)
{
	struct error *error = &slot->call->request->error;

	if (slot->exchange == NULL)
		slot->exchange = exchange_new(transfer->service,
		    &transfer->sockets, error);
	if (slot->exchange == NULL || exchange_prepare(slot->exchange, slot->call,
	    keys, error) != 0) {
		slot_finish(transfer, slot);
		return;
	}
	if (curl_multi_add_handle(transfer->multi, slot->exchange->easy) !=
	    CURLM_OK) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY,
		    slot->call->request->key, "out of memory");
		slot_finish(transfer, slot);
		return;
	}
	slot->running = true;
}

/* Start the next attempt, as soon as there are keys to sign it with. */
static void
slot_start(struct transfer *transfer, struct slot *slot, uint64_t now)
{
	static const struct verdict no_keys = { .kind = VERDICT_AGAIN,
	    .retry = RETRY_CONNECTION };
	struct service *service = transfer->service;
	struct error error = ERROR_INIT;
	struct keys keys;

	switch (credentials_get(service->credentials, service_now(service),
	    &keys, &error)) {
	case CREDENTIALS_READY:
		slot_run(transfer, slot, &keys);
		explicit_bzero(&keys, sizeof(keys));
		return;
	case CREDENTIALS_WAIT:
		/* Should its deadline come meanwhile: that was it. */
		if (slot->call->request->error.class == ERROR_NONE)
			error_set(&slot->call->request->error, ERROR_FAILED,
			    CAUSE_UNREACHABLE, slot->call->request->key,
			    "no credentials have come yet");
		slot->call->not_before = now + CREDENTIALS_PAUSE;
		return;
	case CREDENTIALS_NONE:
		break;
	}
	error_prefix(&error, "no credentials");
	slot->call->request->error = error;
	if (error.cause == CAUSE_UNREACHABLE)
		slot_retry(transfer, slot, &no_keys);
	else
		slot_finish(transfer, slot);
}

/* Everything about a slot that is not libcurl's to see. */
static void
slot_advance(struct transfer *transfer, struct slot *slot, uint64_t now,
    bool tick)
{
	struct call *call = slot->call;
	uint64_t deadline = call->request->deadline;

	if (atomic_load(&call->cancelled)) {
		slot_cancel(transfer, slot);
	} else if (call->wrong) {
		slot_finish(transfer, slot);
	} else if (deadline != 0 && now >= deadline) {
		set_overdue(call->request);
		slot_finish(transfer, slot);
	} else if (!slot->running) {
		if (now >= call->not_before)
			slot_start(transfer, slot, now);
	} else if (slot->exchange->paused) {
		if (now >= slot->exchange->resume_at)
			exchange_resume(slot->exchange);
	}
	if (tick && slot->running && exchange_is_silent(slot->exchange, now))
		slot_judge(transfer, slot, CURLE_OPERATION_TIMEDOUT);
}

static void
take_calls(struct transfer *transfer)
{
	for (unsigned i = 0; i < transfer->count; i++) {
		struct slot *slot = &transfer->slots[i];

		if (slot->call != NULL)
			continue;
		slot->call = pool_take(transfer->pool, transfer->seat);
		if (slot->call == NULL)
			return;
	}
}

static void
advance_all(struct transfer *transfer)
{
	uint64_t now = clock_monotonic();
	bool tick = now >= transfer->next_tick;
	struct call *overdue;

	if (tick)
		transfer->next_tick = now + transfer->tick;
	for (unsigned i = 0; i < transfer->count; i++)
		if (transfer->slots[i].call != NULL)
			slot_advance(transfer, &transfer->slots[i], now, tick);
	while (tick && (overdue = pool_take_overdue(transfer->pool, now)) !=
	    NULL) {
		set_overdue(overdue->request);
		pool_finish(transfer->pool, overdue, false);
	}
}

static struct slot *
slot_of(struct transfer *transfer, CURL *easy)
{
	for (unsigned i = 0; i < transfer->count; i++) {
		struct slot *slot = &transfer->slots[i];

		if (slot->running && slot->exchange->easy == easy)
			return slot;
	}
	return NULL;
}

static void
judge_ended(struct transfer *transfer)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(transfer->multi, &left)) !=
	    NULL) {
		struct slot *slot = slot_of(transfer, message->easy_handle);

		if (message->msg == CURLMSG_DONE && slot != NULL)
			slot_judge(transfer, slot, message->data.result);
	}
}

/* When this thread has something to do of its own, at the latest. */
static uint64_t
next_wakeup(const struct transfer *transfer, uint64_t now)
{
	uint64_t next = now + SLEEP_IDLE;

	for (unsigned i = 0; i < transfer->count; i++) {
		const struct slot *slot = &transfer->slots[i];
		uint64_t own;

		if (slot->call == NULL)
			continue;
		if (slot->running)
			own = slot->exchange->paused ?
			    slot->exchange->resume_at : transfer->next_tick;
		else
			own = slot->call->not_before;
		if (own < next)
			next = own;
		own = slot->call->request->deadline;
		if (own != 0 && own < next)
			next = own;
		/* Calls that wait in line have deadlines, too. */
		if (transfer->next_tick < next)
			next = transfer->next_tick;
	}
	return next > now ? next - now : 0;
}

static void *
thread_main(void *context)
{
	struct transfer *transfer = context;
	int running;

	while (!pool_is_closed(transfer->pool)) {
		uint64_t wait;

		take_calls(transfer);
		advance_all(transfer);
		curl_multi_perform(transfer->multi, &running);
		judge_ended(transfer);
		wait = next_wakeup(transfer, clock_monotonic());
		curl_multi_poll(transfer->multi, NULL, 0, (int)((wait +
		    CLOCK_MILLISECOND - 1) / CLOCK_MILLISECOND), NULL);
	}
	for (unsigned i = 0; i < transfer->count; i++)
		if (transfer->slots[i].call != NULL)
			slot_cancel(transfer, &transfer->slots[i]);
	return NULL;
}

int
transfer_start(struct transfer *transfer, struct error *error)
{
	if (worker_start(&transfer->thread, thread_main, transfer,
	    "a transfer thread", error) != 0)
		return -1;
	transfer->has_thread = true;
	return 0;
}
