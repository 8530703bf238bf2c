#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "s3/client.h"
#include "s3/container.h"
#include "s3/identity.h"
#include "s3/keys.h"
#include "s3/metadata.h"
#include "s3/origin.h"
#include "s3/profile.h"
#include "s3/words.h"

#define PROCESS_TIMEOUT (30 * CLOCK_SECOND)
#define ANSWER_LIMIT (64 * 1024)
#define METADATA_TRIES 3
#define METADATA_ROLE_PATH "/latest/meta-data/iam/security-credentials/"

enum origin_kind {
	ORIGIN_ENVIRONMENT,
	ORIGIN_PROFILE,		/* keys in the files */
	ORIGIN_PROCESS,
	ORIGIN_IDENTITY,
	ORIGIN_CONTAINER,
	ORIGIN_METADATA
};

struct origin {
	enum origin_kind kind;
	char text[160];
	atomic_bool stop;
	const struct profile *profile;
	struct keys fixed;		/* ORIGIN_ENVIRONMENT */
	struct words *process;
	struct identity *identity;
	struct container *container;
	struct metadata *metadata;
	bool answered;			/* the metadata server, once */
};

static const char *
environment(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

/* 1 when the keys are there, 0 when not, -1 on an error. */
static int
find_environment(struct origin *origin, struct error *error)
{
	const char *access_key = environment("AWS_ACCESS_KEY_ID");
	const char *secret = environment("AWS_SECRET_ACCESS_KEY");
	const char *token = environment("AWS_SESSION_TOKEN");

	if (access_key == NULL && secret == NULL)
		return 0;
	if (token == NULL)
		token = environment("AWS_SECURITY_TOKEN");
	if (keys_set(&origin->fixed, access_key, secret, token,
	    environment("AWS_CREDENTIAL_EXPIRATION"), error) != 0) {
		error_prefix(error, "keys in the environment");
		return error_cure(error, "set both AWS_ACCESS_KEY_ID and "
		    "AWS_SECRET_ACCESS_KEY");
	}
	origin->kind = ORIGIN_ENVIRONMENT;
	snprintf(origin->text, sizeof(origin->text), "the environment");
	return 1;
}

static int
found_identity(struct origin *origin, const struct profile *from,
    const char *region, const char *ca_bundle, struct error *error)
{
	origin->kind = ORIGIN_IDENTITY;
	origin->identity = identity_new(from, origin->profile, region,
	    ca_bundle, &origin->stop, error);
	if (from == NULL)
		snprintf(origin->text, sizeof(origin->text),
		    "web identity of the environment");
	else
		snprintf(origin->text, sizeof(origin->text),
		    "profile %s (web identity)", profile_name(from));
	return origin->identity != NULL ? 1 : -1;
}

static int
refuse_profile(const struct profile *profile, const char *what,
    struct error *error)
{
	error_set(error, ERROR_USAGE, CAUSE_UNSUPPORTED,
	    profile_name(profile), "the profile uses %s, which is not "
	    "supported directly", what);
	return error_cure(error, "let another profile run it: "
	    "credential_process = aws configure export-credentials --profile "
	    "%s --format process", profile_name(profile));
}

static int
find_profile(struct origin *origin, const char *region,
    const char *ca_bundle, struct error *error)
{
	const struct profile *profile = origin->profile;
	const char *process = profile_get(profile, "credential_process");
	const char *name = profile_name(profile);

	if (identity_configured(profile))
		return found_identity(origin, profile, region, ca_bundle,
		    error);
	if (profile_get(profile, "role_arn") != NULL)
		return refuse_profile(profile, "role_arn", error);
	if (profile_get(profile, "aws_access_key_id") != NULL) {
		origin->kind = ORIGIN_PROFILE;
		snprintf(origin->text, sizeof(origin->text), "profile %s",
		    name);
		return 1;
	}
	if (process != NULL) {
		origin->kind = ORIGIN_PROCESS;
		snprintf(origin->text, sizeof(origin->text),
		    "profile %s (credential_process)", name);
		origin->process = words_split(process, error);
		return origin->process != NULL ? 1 : -1;
	}
	if (profile_get(profile, "sso_session") != NULL ||
	    profile_get(profile, "sso_start_url") != NULL)
		return refuse_profile(profile, "single sign-on", error);
	return 0;
}

static int
find_machine(struct origin *origin, struct error *error)
{
	if (container_configured()) {
		origin->kind = ORIGIN_CONTAINER;
		snprintf(origin->text, sizeof(origin->text),
		    "the container's role");
		origin->container = container_new(&origin->stop, error);
		return origin->container != NULL ? 1 : -1;
	}
	if (metadata_disabled())
		return 0;
	origin->kind = ORIGIN_METADATA;
	snprintf(origin->text, sizeof(origin->text),
	    "the machine's role (EC2 metadata)");
	origin->metadata = metadata_new(&origin->stop, error);
	return origin->metadata != NULL ? 1 : -1;
}

static int
cure_nothing(struct error *error)
{
	return error_cure(error, "set AWS_ACCESS_KEY_ID and "
	    "AWS_SECRET_ACCESS_KEY, name a profile, or give this machine a "
	    "role");
}

static int
find(struct origin *origin, const struct s3_config *config,
    const char *region, const char *ca_bundle, struct error *error)
{
	bool named = config->profile != NULL && config->profile[0] != '\0';
	int found = named ? 0 : find_environment(origin, error);

	if (found == 0 && !named && identity_configured(NULL) &&
	    identity_configured(origin->profile))
		found = found_identity(origin, NULL, region, ca_bundle, error);
	if (found == 0)
		found = find_profile(origin, region, ca_bundle, error);
	if (found == 0 && identity_configured(NULL))
		found = found_identity(origin, NULL, region, ca_bundle, error);
	if (found == 0)
		found = find_machine(origin, error);
	if (found != 0)
		return found < 0 ? -1 : 0;
	error_set(error, ERROR_USAGE, CAUSE_DENIED, NULL, "no keys for S3: "
	    "neither in the environment nor in the profile %s, and no role "
	    "of this machine", profile_name(origin->profile));
	return cure_nothing(error);
}

struct origin *
origin_find(const struct s3_config *config, const struct profile *profile,
    const char *region, const char *ca_bundle, struct error *error)
{
	struct origin *origin = calloc(1, sizeof(*origin));

	if (origin == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	atomic_init(&origin->stop, false);
	origin->profile = profile;
	if (find(origin, config, region, ca_bundle, error) != 0) {
		origin_free(origin);
		return NULL;
	}
	return origin;
}

bool
origin_is_fixed(const struct origin *origin)
{
	return origin->kind == ORIGIN_ENVIRONMENT;
}

const char *
origin_text(const struct origin *origin)
{
	return origin->text;
}

void
origin_stop(struct origin *origin)
{
	atomic_store(&origin->stop, true);
}

void
origin_free(struct origin *origin)
{
	if (origin == NULL)
		return;
	words_free(origin->process);
	identity_free(origin->identity);
	container_free(origin->container);
	metadata_free(origin->metadata);
	explicit_bzero(&origin->fixed, sizeof(origin->fixed));
	free(origin);
}

/* The files are read anew: other tools write fresh keys into them. */
static int
fetch_profile(struct origin *origin, struct keys *keys, struct error *error)
{
	struct profile *profile = profile_again(origin->profile, error);
	int result;

	if (profile == NULL)
		return -1;
	result = keys_set(keys, profile_get(profile, "aws_access_key_id"),
	    profile_get(profile, "aws_secret_access_key"),
	    profile_get(profile, "aws_session_token"), NULL, error);
	if (result != 0)
		error_prefix(error, "profile %s", profile_name(profile));
	profile_free(profile);
	return result;
}

static int
fetch_process(struct origin *origin, struct keys *keys, struct error *error)
{
	struct buffer answer;
	int result;

	buffer_init(&answer, ANSWER_LIMIT);
	result = process_output(words_array(origin->process),
	    PROCESS_TIMEOUT, &answer, error);
	if (result == 0)
		result = keys_read_json(&answer, "credential_process",
		    "SessionToken", keys, error);
	if (answer.data != NULL)
		explicit_bzero(answer.data, answer.length);
	buffer_free(&answer);
	return result;
}

/* A role's name goes into a path: IAM allows letters, digits and +=,.@_- */
static int
role_check(struct buffer *role, struct error *error)
{
	size_t length = strcspn(buffer_text(role), "\r\n");

	if (length > 0)
		role->data[length] = '\0';
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)role->data[i]) &&
		    strchr("+=,.@_-", role->data[i]) == NULL)
			length = 0;
	if (length == 0)
		return error_set(error, ERROR_FAILED, CAUSE_DENIED, NULL,
		    "the metadata server names no role of this machine");
	return 0;
}

static int
fetch_metadata_once(struct origin *origin, struct keys *keys,
    struct error *error)
{
	struct buffer role;
	struct buffer answer;
	char path[512];
	int result = -1;

	buffer_init(&role, 256);
	buffer_init(&answer, ANSWER_LIMIT);
	if (metadata_get(origin->metadata, METADATA_ROLE_PATH, &role,
	    error) != 0 || role_check(&role, error) != 0)
		goto out;
	snprintf(path, sizeof(path), METADATA_ROLE_PATH "%s",
	    buffer_text(&role));
	if (metadata_get(origin->metadata, path, &answer, error) != 0)
		goto out;
	result = keys_read_json(&answer, "EC2 metadata", "Token", keys,
	    error);
out:
	if (answer.data != NULL)
		explicit_bzero(answer.data, answer.length);
	buffer_free(&role);
	buffer_free(&answer);
	return result;
}

static int
fetch_metadata(struct origin *origin, struct keys *keys, struct error *error)
{
	for (int try = 0; try < METADATA_TRIES; try++) {
		if (try > 0)
			clock_sleep(CLOCK_SECOND / 5);
		if (fetch_metadata_once(origin, keys, error) == 0) {
			origin->answered = true;
			return 0;
		}
		if (error->cause != CAUSE_UNREACHABLE)
			break;
	}

	/* Where no such server ever answered there is none: waiting for it
	 * would only hide that no keys are configured. */
	if (!origin->answered && (error->cause == CAUSE_UNREACHABLE ||
	    error->cause == CAUSE_NOT_FOUND)) {
		error->cause = CAUSE_DENIED;
		error_prefix(error, "no keys for S3 in the environment or a "
		    "profile, and this machine has no role");
		cure_nothing(error);
	}
	return -1;
}

int
origin_fetch(struct origin *origin, struct keys *keys, struct error *error)
{
	switch (origin->kind) {
	case ORIGIN_PROFILE:
		return fetch_profile(origin, keys, error);
	case ORIGIN_PROCESS:
		return fetch_process(origin, keys, error);
	case ORIGIN_IDENTITY:
		return identity_fetch(origin->identity, keys, error);
	case ORIGIN_CONTAINER:
		return container_fetch(origin->container, keys, error);
	case ORIGIN_METADATA:
		return fetch_metadata(origin, keys, error);
	case ORIGIN_ENVIRONMENT:
		break;
	}
	*keys = origin->fixed;
	return 0;
}
