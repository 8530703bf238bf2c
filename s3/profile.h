#ifndef S3_PROFILE_H
#define S3_PROFILE_H

#include <stddef.h>

struct error;

/*
 * One profile of the shared AWS files: ~/.aws/config (AWS_CONFIG_FILE) with
 * sections [default], [profile NAME] and [services NAME], and
 * ~/.aws/credentials (AWS_SHARED_CREDENTIALS_FILE) with sections [NAME].
 * Lines are read by inih.  Names of settings are lower case.
 */
struct profile;

/**
 * profile_load(name, error):
 * Read both files; one that is missing is empty.  ${name} NULL: AWS_PROFILE,
 * AWS_DEFAULT_PROFILE, or "default".  NULL with ERROR_USAGE when a named
 * profile is in neither file, or a file cannot be read.
 */
struct profile *profile_load(const char *name, struct error *error);

/**
 * profile_again(profile, error):
 * Read the same files anew.  NULL as profile_load.
 */
struct profile *profile_again(const struct profile *profile,
    struct error *error);

/**
 * profile_empty(name, error):
 * A profile without settings, for profile_read.
 */
struct profile *profile_empty(const char *name, struct error *error);

enum profile_file { PROFILE_CONFIG, PROFILE_CREDENTIALS };

/**
 * profile_read(profile, file, text, length, error):
 * Take the profile's settings out of a file's text: the credentials file wins
 * over the configuration, [profile default] over [default], later over
 * earlier.  Return 0 or -1.
 */
int profile_read(struct profile *profile, enum profile_file file,
    const char *text, size_t length, struct error *error);

/**
 * profile_read_services(profile, text, length, error):
 * Take [services NAME] out of the configuration, where NAME is the profile's
 * `services`.  After profile_read.
 */
int profile_read_services(struct profile *profile, const char *text,
    size_t length, struct error *error);

/**
 * profile_free(profile):
 * Behave consistently with free(NULL).
 */
void profile_free(struct profile *profile);

/**
 * profile_name(profile):
 * Its name.
 */
const char *profile_name(const struct profile *profile);

/**
 * profile_get(profile, key):
 * A setting; a nested one as "s3.addressing_style", one of the profile's
 * services section as "services.s3.endpoint_url".  NULL when it is not set or
 * empty.  It is the profile's.
 */
const char *profile_get(const struct profile *profile, const char *key);

#endif
