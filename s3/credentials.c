#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "s3/client.h"
#include "s3/credentials.h"
#include "s3/origin.h"
#include "s3/worker.h"

/* botocore's times. */
#define TRY_BEFORE (15 * 60)	/* seconds before the end: try */
#define INSIST_BEFORE (10 * 60)	/* let a request wait for a try */
#define TRY_PAUSE (60 * CLOCK_SECOND)
#define INSIST_PAUSE (30 * CLOCK_SECOND)
#define FAILED_PAUSE (1 * CLOCK_SECOND)	/* how long a failure is told */
#define SLEEP_LIMIT (60 * CLOCK_SECOND)	/* so that a suspend is noticed */

struct credentials {
	struct origin *origin;
	void (*wake)(void *context);
	void *context;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool has_thread;
	bool stopping;

	struct keys keys;		/* number 0: none yet */
	unsigned long numbers;		/* given so far */
	unsigned long refused;		/* the number that the server refused */
	bool wanted;			/* the thread shall fetch */
	bool tried;
	uint64_t last_try;		/* clock_monotonic() */
	bool failed;			/* the last try, with this error: */
	struct error error;
	time_t clock_offset;		/* the server's clock minus ours */
};

static uint64_t
since_last_try(const struct credentials *credentials)
{
	return credentials->tried ? clock_monotonic() - credentials->last_try :
	    CLOCK_NEVER;
}

static bool
keys_usable(const struct credentials *credentials, time_t now)
{
	const struct keys *keys = &credentials->keys;

	return keys->number != 0 && keys->number != credentials->refused &&
	    (keys->expires == 0 || now < keys->expires);
}

/* What to do about renewing now. */
enum need { NEED_NOTHING, NEED_TRY, NEED_WAIT };

static enum need
renewal_need(const struct credentials *credentials, time_t now)
{
	time_t expires = credentials->keys.expires;
	uint64_t since = since_last_try(credentials);

	if (!keys_usable(credentials, now))
		return NEED_WAIT;
	if (expires == 0 || now < expires - TRY_BEFORE)
		return NEED_NOTHING;
	if (now < expires - INSIST_BEFORE)
		return since >= TRY_PAUSE ? NEED_TRY : NEED_NOTHING;
	return since >= INSIST_PAUSE ? NEED_WAIT : NEED_NOTHING;
}

/* Fetch without the lock, then say how it went. */
static void
renew(struct credentials *credentials)
{
	struct keys keys;
	struct error error = ERROR_INIT;
	int result;

	pthread_mutex_unlock(&credentials->lock);
	result = origin_fetch(credentials->origin, &keys, &error);
	pthread_mutex_lock(&credentials->lock);

	credentials->tried = true;
	credentials->last_try = clock_monotonic();
	credentials->failed = result != 0;
	credentials->wanted = false;
	if (result == 0) {
		credentials->keys = keys;
		credentials->keys.number = ++credentials->numbers;
		explicit_bzero(&keys, sizeof(keys));
	} else {
		/* A source that worked once is taken to be down, not gone. */
		if (credentials->numbers > 0)
			error.cause = CAUSE_UNREACHABLE;
		credentials->error = error;
	}
	pthread_mutex_unlock(&credentials->lock);
	credentials->wake(credentials->context);
	pthread_mutex_lock(&credentials->lock);
}

/* Wait until something changes or it may be time for a renewal. */
static void
pause_for_renewal(struct credentials *credentials)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += SLEEP_LIMIT / CLOCK_SECOND;
	pthread_cond_timedwait(&credentials->changed, &credentials->lock,
	    &until);
}

static void *
thread_main(void *context)
{
	struct credentials *credentials = context;

	pthread_mutex_lock(&credentials->lock);
	while (!credentials->stopping) {
		time_t now = clock_wall().tv_sec + credentials->clock_offset;
		bool have = credentials->keys.number != 0;

		/* Keys that nobody uses now must not be found expired when a
		 * deadline comes; but nothing is fetched before it is asked
		 * for. */
		if (credentials->wanted || (have &&
		    renewal_need(credentials, now) != NEED_NOTHING &&
		    since_last_try(credentials) >= INSIST_PAUSE))
			renew(credentials);
		else if (have && credentials->keys.expires == 0)
			pthread_cond_wait(&credentials->changed,
			    &credentials->lock);
		else
			pause_for_renewal(credentials);
	}
	pthread_mutex_unlock(&credentials->lock);
	return NULL;
}

static int
locks_make(struct credentials *credentials)
{
	pthread_condattr_t attributes;
	int result;

	if (pthread_condattr_init(&attributes) != 0)
		return -1;
	result = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	if (result == 0)
		result = pthread_cond_init(&credentials->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	if (result != 0)
		return -1;
	if (pthread_mutex_init(&credentials->lock, NULL) != 0) {
		pthread_cond_destroy(&credentials->changed);
		return -1;
	}
	return 0;
}

struct credentials *
credentials_new(const struct s3_config *config, const struct profile *profile,
    const char *region, const char *ca_bundle, void (*wake)(void *context),
    void *context, struct error *error)
{
	struct credentials *credentials = calloc(1, sizeof(*credentials));

	if (credentials == NULL || locks_make(credentials) != 0) {
		free(credentials);
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	credentials->wake = wake;
	credentials->context = context;
	credentials->origin = origin_find(config, profile, region, ca_bundle,
	    error);
	if (credentials->origin == NULL)
		goto fail;
	if (origin_is_fixed(credentials->origin)) {
		if (origin_fetch(credentials->origin, &credentials->keys,
		    error) != 0)
			goto fail;
		credentials->keys.number = ++credentials->numbers;
	}
	return credentials;
fail:
	credentials_free(credentials);
	return NULL;
}

void
credentials_stop(struct credentials *credentials)
{
	bool has_thread;

	origin_stop(credentials->origin);
	pthread_mutex_lock(&credentials->lock);
	credentials->stopping = true;
	has_thread = credentials->has_thread;
	credentials->has_thread = false;
	pthread_cond_signal(&credentials->changed);
	pthread_mutex_unlock(&credentials->lock);
	if (has_thread)
		pthread_join(credentials->thread, NULL);
}

void
credentials_free(struct credentials *credentials)
{
	if (credentials == NULL)
		return;
	if (credentials->origin != NULL)
		credentials_stop(credentials);
	origin_free(credentials->origin);
	pthread_mutex_destroy(&credentials->lock);
	pthread_cond_destroy(&credentials->changed);
	explicit_bzero(&credentials->keys, sizeof(credentials->keys));
	free(credentials);
}

/* Make the thread fetch.  -1 when there can be no thread. */
static int
renewal_start(struct credentials *credentials, struct error *error)
{
	if (credentials->stopping)
		return error_set(error, ERROR_FAILED, CAUSE_CANCELLED, NULL,
		    "the client is being closed");
	credentials->wanted = true;
	if (credentials->has_thread) {
		pthread_cond_signal(&credentials->changed);
		return 0;
	}
	if (worker_start(&credentials->thread, thread_main, credentials,
	    "a thread for credentials", error) != 0)
		return -1;
	credentials->has_thread = true;
	return 0;
}

static enum credentials_state
get_locked(struct credentials *credentials, time_t now, struct error *error)
{
	enum need need;

	if (origin_is_fixed(credentials->origin))
		return CREDENTIALS_READY;
	credentials->clock_offset = now - clock_wall().tv_sec;
	need = renewal_need(credentials, now);
	if (need == NEED_WAIT && credentials->wanted)
		return CREDENTIALS_WAIT;
	if (!keys_usable(credentials, now) && credentials->failed &&
	    since_last_try(credentials) < FAILED_PAUSE) {
		*error = credentials->error;
		return CREDENTIALS_NONE;
	}
	if (need != NEED_NOTHING && !credentials->wanted &&
	    renewal_start(credentials, error) != 0)
		return keys_usable(credentials, now) ? CREDENTIALS_READY :
		    CREDENTIALS_NONE;
	return need == NEED_WAIT ? CREDENTIALS_WAIT : CREDENTIALS_READY;
}

enum credentials_state
credentials_get(struct credentials *credentials, time_t now,
    struct keys *keys, struct error *error)
{
	enum credentials_state state;

	pthread_mutex_lock(&credentials->lock);
	state = get_locked(credentials, now, error);
	if (state == CREDENTIALS_READY)
		*keys = credentials->keys;
	pthread_mutex_unlock(&credentials->lock);
	return state;
}

bool
credentials_refuse(struct credentials *credentials, unsigned long number)
{
	if (origin_is_fixed(credentials->origin))
		return false;
	pthread_mutex_lock(&credentials->lock);
	if (credentials->keys.number == number)
		credentials->refused = number;
	pthread_mutex_unlock(&credentials->lock);
	return true;
}

void
credentials_look(struct credentials *credentials, struct s3_facts *facts)
{
	snprintf(facts->source, sizeof(facts->source), "%s",
	    origin_text(credentials->origin));
	facts->renewable = !origin_is_fixed(credentials->origin);
	pthread_mutex_lock(&credentials->lock);
	facts->keys_known = credentials->keys.number != 0;
	facts->temporary = credentials->keys.token[0] != '\0';
	facts->expires = credentials->keys.expires;
	pthread_mutex_unlock(&credentials->lock);
}

char *
credentials_text(struct credentials *credentials, char *text, size_t size)
{
	char when[CLOCK_TEXT_SIZE] = "";
	struct timespec expires = { 0 };

	pthread_mutex_lock(&credentials->lock);
	expires.tv_sec = credentials->keys.expires;
	pthread_mutex_unlock(&credentials->lock);
	if (expires.tv_sec != 0)
		clock_text(expires, when);
	snprintf(text, size, "%s%s%s", origin_text(credentials->origin),
	    when[0] != '\0' ? ", until " : "", when);
	return text;
}
