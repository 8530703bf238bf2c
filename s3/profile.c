#include <assert.h>
#include <ctype.h>
#include <fcntl.h>
#include <ini.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/path.h"
#include "s3/profile.h"

/* The files are a user's own, but a wrong name in a variable may point at
 * anything. */
#define FILE_LIMIT (1024 * 1024)
#define LINE_LIMIT (64 * 1024)
#define SETTINGS_LIMIT 512
#define KEY_LIMIT 128

/* Where a setting comes from; a higher one wins. */
enum rank { RANK_DEFAULT, RANK_PROFILE, RANK_CREDENTIALS };

struct setting {
	char *key;
	char *value;
	enum rank rank;
};

struct profile {
	char *name;
	char *config;		/* paths of the files; NULL: no such file */
	char *credentials;
	struct setting settings[SETTINGS_LIMIT];
	size_t count;
	bool found;		/* a section of that name was there */
	bool has_profile;	/* [profile default], so [default] is void */
};

/* One pass over one file. */
struct reading {
	struct profile *profile;
	enum profile_file file;
	const char *services;	/* the services section that is wanted */
	const char *rest;	/* of the text */
	size_t left;

	bool wanted;		/* the section that we are in */
	enum rank rank;
	bool indented;		/* the line that was handed out last */
	char parent[KEY_LIMIT];	/* key with an empty value before it */
	struct error *error;
	bool failed;
};

static pthread_once_t ini_once = PTHREAD_ONCE_INIT;

/* inih's limits are variables; its 200 bytes a line are too few for a session
 * token. */
static void
ini_set_up(void)
{
	ini_use_stack = false;
	ini_initial_alloc = LINE_LIMIT;
	ini_max_line = LINE_LIMIT;
	ini_allow_multiline = true;
}

/* Cut blanks at both ends, then one pair of quotes. */
static char *
trim(char *text)
{
	size_t length;

	while (isspace((unsigned char)*text))
		text++;
	length = strlen(text);
	while (length > 0 && isspace((unsigned char)text[length - 1]))
		text[--length] = '\0';
	if (length >= 2 && (text[0] == '"' || text[0] == '\'') &&
	    text[length - 1] == text[0]) {
		text[length - 1] = '\0';
		text++;
	}
	return text;
}

/* ${text} behind the word and the blanks after it, or NULL. */
static char *
after_word(char *text, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(text, word, length) != 0 ||
	    !isspace((unsigned char)text[length]))
		return NULL;
	return trim(text + length);
}

/* A section begins.  It is taken from the line, since inih cuts its name at
 * 49 bytes. */
static void
section_begin(struct reading *reading, const char *line)
{
	struct profile *profile = reading->profile;
	const char *end = strchr(line, ']');
	char text[512];
	char *name;

	reading->wanted = false;
	reading->parent[0] = '\0';
	if (end == NULL || (size_t)(end - line) > sizeof(text))
		return;
	memcpy(text, line + 1, (size_t)(end - line) - 1);
	text[end - line - 1] = '\0';
	name = trim(text);

	if (reading->services != NULL) {
		name = after_word(name, "services");
		reading->wanted = name != NULL &&
		    strcmp(name, reading->services) == 0;
		return;
	}
	reading->rank = RANK_CREDENTIALS;
	if (reading->file == PROFILE_CONFIG) {
		char *named = after_word(name, "profile");

		reading->rank = named != NULL ? RANK_PROFILE : RANK_DEFAULT;
		if (named == NULL && strcmp(name, "default") != 0)
			return;
		name = named != NULL ? named : name;
	}
	reading->wanted = strcmp(name, profile->name) == 0;
	if (reading->wanted) {
		profile->found = true;
		profile->has_profile |= reading->rank == RANK_PROFILE;
	}
}

/* Hand inih the next line, as fgets does. */
static char *
line_next(char *line, int size, void *stream)
{
	struct reading *reading = stream;
	const char *end = memchr(reading->rest, '\n', reading->left);
	size_t length = end != NULL ? (size_t)(end - reading->rest) + 1 :
	    reading->left;

	if (length == 0 || reading->failed)
		return NULL;
	if (length >= (size_t)size || memchr(reading->rest, '\0', length)) {
		error_set(reading->error, ERROR_USAGE, CAUSE_LIMIT, NULL,
		    "a line that is too long or not text");
		reading->failed = true;
		return NULL;
	}
	memcpy(line, reading->rest, length);
	line[length] = '\0';
	reading->rest += length;
	reading->left -= length;
	reading->indented = line[0] == ' ' || line[0] == '\t';
	if (line[0] == '[')
		section_begin(reading, line);
	return line;
}

static int
setting_add(struct reading *reading, const char *key, const char *value)
{
	struct profile *profile = reading->profile;
	struct setting *setting = &profile->settings[profile->count];

	if (profile->count == SETTINGS_LIMIT) {
		error_set(reading->error, ERROR_USAGE, CAUSE_LIMIT, NULL,
		    "more than %d settings in one profile", SETTINGS_LIMIT);
		reading->failed = true;
		return 0;
	}
	setting->key = strdup(key);
	setting->value = strdup(value);
	setting->rank = reading->rank;
	if (setting->key == NULL || setting->value == NULL) {
		free(setting->key);
		free(setting->value);
		error_set(reading->error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		reading->failed = true;
		return 0;
	}
	for (char *byte = setting->key; *byte != '\0'; byte++)
		*byte = (char)tolower((unsigned char)*byte);
	profile->count++;
	return 1;
}

/* An indented "key = value" below a key without a value. */
static int
nested_add(struct reading *reading, const char *line)
{
	const char *prefix = reading->services != NULL ? "services." : "";
	const char *equals = strchr(line, '=');
	char text[KEY_LIMIT];
	char key[3 * KEY_LIMIT];

	if (equals == NULL || (size_t)(equals - line) >= sizeof(text))
		return 1;
	memcpy(text, line, (size_t)(equals - line));
	text[equals - line] = '\0';
	snprintf(key, sizeof(key), "%s%s.%s", prefix, reading->parent,
	    trim(text));
	equals++;
	equals += strspn(equals, " \t");
	return setting_add(reading, key, equals);
}

static int
on_setting(void *user, const char *section, const char *name,
    const char *value)
{
	struct reading *reading = user;

	(void)section;
	if (!reading->wanted || reading->failed)
		return 1;
	if (reading->indented)
		return reading->parent[0] == '\0' ? 1 :
		    nested_add(reading, value);
	reading->parent[0] = '\0';
	if (strlen(name) >= KEY_LIMIT)
		return 1;
	if (value[0] == '\0') {
		snprintf(reading->parent, KEY_LIMIT, "%s", name);
		return 1;
	}
	return reading->services != NULL ? 1 :
	    setting_add(reading, name, value);
}

static int
reading_run(struct reading *reading)
{
	pthread_once(&ini_once, ini_set_up);

	/* A line that inih does not understand is skipped, as the SDKs do. */
	int result = ini_parse_stream(line_next, reading, on_setting, reading);

	if (result == -2 && !reading->failed)
		return error_set(reading->error, ERROR_FAILED, CAUSE_MEMORY,
		    NULL, "out of memory");
	return reading->failed ? -1 : 0;
}

int
profile_read(struct profile *profile, enum profile_file file,
    const char *text, size_t length, struct error *error)
{
	struct reading reading = { .profile = profile, .file = file,
	    .rest = text, .left = length, .error = error };

	return reading_run(&reading);
}

int
profile_read_services(struct profile *profile, const char *text,
    size_t length, struct error *error)
{
	const char *services = profile_get(profile, "services");
	struct reading reading = { .profile = profile, .rank = RANK_PROFILE,
	    .rest = text, .left = length, .error = error };
	char *copy;
	int result;

	if (services == NULL)
		return 0;
	copy = strdup(services);
	if (copy == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	reading.services = copy;
	result = reading_run(&reading);
	free(copy);
	return result;
}

struct profile *
profile_empty(const char *name, struct error *error)
{
	struct profile *profile = calloc(1, sizeof(*profile));

	if (profile == NULL || (profile->name = strdup(name)) == NULL) {
		free(profile);
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	return profile;
}

void
profile_free(struct profile *profile)
{
	if (profile == NULL)
		return;
	for (size_t i = 0; i < profile->count; i++) {
		explicit_bzero(profile->settings[i].value,
		    strlen(profile->settings[i].value));
		free(profile->settings[i].key);
		free(profile->settings[i].value);
	}
	free(profile->config);
	free(profile->credentials);
	free(profile->name);
	free(profile);
}

const char *
profile_name(const struct profile *profile)
{
	return profile->name;
}

const char *
profile_get(const struct profile *profile, const char *key)
{
	const struct setting *best = NULL;

	for (size_t i = 0; i < profile->count; i++) {
		const struct setting *setting = &profile->settings[i];

		if (strcmp(setting->key, key) != 0 ||
		    (setting->rank == RANK_DEFAULT && profile->has_profile))
			continue;
		if (best == NULL || setting->rank >= best->rank)
			best = setting;
	}
	return best != NULL && best->value[0] != '\0' ? best->value : NULL;
}

/* The path of the file that ${variable} names, or of ~/.aws/${usual}; NULL
 * when there is no home. */
static int
path_find(const char *variable, const char *usual, char **path,
    struct error *error)
{
	const char *named = getenv(variable);
	const char *home = getenv("HOME");

	*path = NULL;
	if (named != NULL && named[0] != '\0')
		*path = strdup(named);
	else if (home == NULL || home[0] == '\0')
		return 0;
	else if (asprintf(path, "%s/.aws/%s", home, usual) < 0)
		*path = NULL;
	if (*path == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	return 0;
}

static int
file_read(const char *path, struct buffer *buffer, struct error *error)
{
	if (path == NULL || path_read_at(AT_FDCWD, path, buffer, error) == 0)
		return 0;
	if (error->cause == CAUSE_NOT_FOUND) {
		error_clear(error);
		return 0;
	}
	error->class = ERROR_USAGE;
	return -1;
}

static int
files_read(struct profile *profile, struct error *error)
{
	struct buffer config;
	struct buffer credentials;
	int result = -1;

	buffer_init(&config, FILE_LIMIT);
	buffer_init(&credentials, FILE_LIMIT);
	if (file_read(profile->config, &config, error) != 0 ||
	    file_read(profile->credentials, &credentials, error) != 0)
		goto out;
	if (profile_read(profile, PROFILE_CONFIG, buffer_text(&config),
	    config.length, error) != 0 ||
	    profile_read_services(profile, buffer_text(&config),
	    config.length, error) != 0) {
		error_prefix(error, "AWS configuration file");
		goto out;
	}
	if (profile_read(profile, PROFILE_CREDENTIALS,
	    buffer_text(&credentials), credentials.length, error) != 0) {
		error_prefix(error, "AWS credentials file");
		goto out;
	}
	result = 0;
out:
	if (credentials.data != NULL)
		explicit_bzero(credentials.data, credentials.length);
	buffer_free(&config);
	buffer_free(&credentials);
	return result;
}

/* The profile that was asked for, or NULL. */
static const char *
name_wanted(const char *name)
{
	if (name == NULL || name[0] == '\0')
		name = getenv("AWS_PROFILE");
	if (name == NULL || name[0] == '\0')
		name = getenv("AWS_DEFAULT_PROFILE");
	return name == NULL || name[0] == '\0' ? NULL : name;
}

struct profile *
profile_load(const char *name, struct error *error)
{
	const char *wanted = name_wanted(name);
	struct profile *profile = profile_empty(wanted != NULL ? wanted :
	    "default", error);

	if (profile == NULL)
		return NULL;
	if (path_find("AWS_CONFIG_FILE", "config", &profile->config,
	    error) != 0 || path_find("AWS_SHARED_CREDENTIALS_FILE",
	    "credentials", &profile->credentials, error) != 0 ||
	    files_read(profile, error) != 0)
		goto fail;
	if (wanted != NULL && !profile->found) {
		error_set(error, ERROR_USAGE, CAUSE_NOT_FOUND, wanted,
		    "there is no such profile in the AWS files");
		error_cure(error, "see ~/.aws/config and ~/.aws/credentials, "
		    "or leave out the profile");
		goto fail;
	}
	return profile;
fail:
	profile_free(profile);
	return NULL;
}

static char *
copy(const char *text)
{
	return text != NULL ? strdup(text) : NULL;
}

struct profile *
profile_again(const struct profile *profile, struct error *error)
{
	struct profile *again = profile_empty(profile->name, error);

	if (again == NULL)
		return NULL;
	again->config = copy(profile->config);
	again->credentials = copy(profile->credentials);
	if (files_read(again, error) != 0) {
		profile_free(again);
		return NULL;
	}
	return again;
}
