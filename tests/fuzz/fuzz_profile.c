/* room: s3 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "s3/endpoint.h"
#include "s3/profile.h"
#include "s3/words.h"

/*
 * The shared AWS files, and what is made of their settings.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
use(const struct profile *profile)
{
	static const char *const keys[] = { "region", "endpoint_url",
	    "aws_secret_access_key", "services.s3.endpoint_url",
	    "s3.addressing_style", "" };
	const struct s3_config config = { .bucket = "bucket" };
	const char *process = profile_get(profile, "credential_process");
	struct error error = ERROR_INIT;
	struct endpoint endpoint;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *value = profile_get(profile, keys[i]);

		if (value != NULL && value[0] == '\0')
			abort();
	}
	if (endpoint_resolve(&config, profile, &endpoint, &error) == 0 &&
	    !endpoint_region_is_plain(endpoint.region))
		abort();
	if (process != NULL)
		words_free(words_split(process, &error));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "default", "p" };
	const char *text = (const char *)data;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct error error = ERROR_INIT;
		struct profile *profile = profile_empty(names[i], &error);

		if (profile == NULL)
			return 0;
		if (profile_read(profile, PROFILE_CONFIG, text, size,
		    &error) == 0 && profile_read_services(profile, text, size,
		    &error) == 0 && profile_read(profile,
		    PROFILE_CREDENTIALS, text, size, &error) == 0)
			use(profile);
		profile_free(profile);
	}
	return 0;
}
