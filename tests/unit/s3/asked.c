#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asked.h"

char *asked_scratch;
struct profile *asked_profile;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned woken;

int
asked_setup(void **state)
{
	(void)state;
	server_clean_environment();
	asked_scratch = kit_scratch();
	asked_again();
	return 0;
}

int
asked_teardown(void **state)
{
	(void)state;
	kit_scratch_remove(asked_scratch);
	free(asked_scratch);
	return 0;
}

void
asked_again(void)
{
	pthread_mutex_lock(&lock);
	woken = 0;
	pthread_mutex_unlock(&lock);
}

static void
on_wake(void *context)
{
	(void)context;
	pthread_mutex_lock(&lock);
	woken++;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
}

void
asked_wait(unsigned count)
{
	pthread_mutex_lock(&lock);
	while (woken < count)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

struct credentials *
asked_credentials(const char *name, struct error *error)
{
	struct s3_config config = { .bucket = "b", .profile = name };

	asked_profile = profile_load(name, error);
	assert_non_null(asked_profile);
	return credentials_new(&config, asked_profile, "eu-west-1", NULL, on_wake,
	    NULL, error);
}

void
asked_end(struct credentials *credentials)
{
	credentials_free(credentials);
	profile_free(asked_profile);
}

enum credentials_state
asked_first(struct credentials *credentials, struct keys *keys,
    struct error *error)
{
	enum credentials_state state = credentials_get(credentials,
	    clock_wall().tv_sec, keys, error);

	if (state == CREDENTIALS_WAIT) {
		asked_wait(1);
		state = credentials_get(credentials, clock_wall().tv_sec,
		    keys, error);
	}
	return state;
}

const char *
asked_file(const char *name, const char *text)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", asked_scratch, name);
	kit_write_file(path, text, strlen(text));
	return path;
}

void
asked_aws_files(const char *config, const char *credentials)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/config", asked_scratch);
	kit_write_file(path, config, strlen(config));
	setenv("AWS_CONFIG_FILE", path, 1);
	snprintf(path, sizeof(path), "%s/credentials", asked_scratch);
	kit_write_file(path, credentials, strlen(credentials));
	setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
}

void
asked_check_first(const char *name, const char *n, const char *message)
{
	struct error error = ERROR_INIT;
	struct credentials *credentials = asked_credentials(name, &error);
	struct keys keys;
	char id[32];

	if (credentials == NULL)
		fail_msg("%s", error.message);
	if (n == NULL) {
		assert_int_equal(asked_first(credentials, &keys, &error),
		    CREDENTIALS_NONE);
		if (strstr(error.message, message) == NULL)
			fail_msg("%s", error.message);
	} else {
		if (asked_first(credentials, &keys, &error) != CREDENTIALS_READY)
			fail_msg("%s", error.message);
		snprintf(id, sizeof(id), "ID%s", n);
		assert_string_equal(keys.access_key, id);
	}
	asked_end(credentials);
}

void
asked_check_unusable(const char *name, const char *message)
{
	struct error error = ERROR_INIT;

	assert_null(asked_credentials(name, &error));
	assert_int_equal(error.class, ERROR_USAGE);
	if (strstr(error.message, message) == NULL)
		fail_msg("%s", error.message);
	assert_true(error.cure[0] != '\0');
	profile_free(asked_profile);
}
