#include "kit/kit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "s3/endpoint.h"
#include "s3/profile.h"
#include "server.h"

static struct profile *
profile_of(const char *config)
{
	struct error error = ERROR_INIT;
	struct profile *profile = profile_empty("p", &error);

	assert_ok(profile_read(profile, PROFILE_CONFIG, config,
	    strlen(config), &error), error);
	assert_ok(profile_read_services(profile, config, strlen(config),
	    &error), error);
	return profile;
}

/* "scheme://host/path" of the key "a b", in its first region. */
static char *
address(const struct s3_config *config, const char *settings)
{
	struct profile *profile = profile_of(settings);
	struct error error = ERROR_INIT;
	struct endpoint endpoint;
	struct buffer path;
	char host[ENDPOINT_HOST_SIZE];
	static char text[2048];

	assert_ok(endpoint_resolve(config, profile, &endpoint, &error),
	    error);
	buffer_init(&path, 1024);
	assert_ok(endpoint_path(&endpoint, "a b", &path, &error), error);
	snprintf(text, sizeof(text), "%s://%s%s %s",
	    endpoint_scheme(&endpoint), endpoint_host(&endpoint,
	    endpoint.region, host), buffer_text(&path), endpoint.region);
	buffer_free(&path);
	profile_free(profile);
	return text;
}

static struct s3_config
config_of(const char *bucket, const char *endpoint_url)
{
	return (struct s3_config){ .bucket = bucket,
	    .endpoint_url = endpoint_url };
}

static void
test_amazon(void **state)
{
	struct s3_config config = config_of("bucket", NULL);

	(void)state;
	assert_string_equal(address(&config, ""),
	    "https://bucket.s3.us-east-1.amazonaws.com/a%20b us-east-1");
	config.region = "cn-north-1";
	assert_string_equal(address(&config, ""), "https://bucket.s3.cn-north"
	    "-1.amazonaws.com.cn/a%20b cn-north-1");
	config.region = "eu-west-1";
	setenv("AWS_USE_DUALSTACK_ENDPOINT", "true", 1);
	assert_string_equal(address(&config, ""), "https://bucket.s3.dualstack"
	    ".eu-west-1.amazonaws.com/a%20b eu-west-1");
	setenv("AWS_USE_FIPS_ENDPOINT", "TRUE", 1);
	assert_string_equal(address(&config, ""), "https://bucket.s3-fips."
	    "dualstack.eu-west-1.amazonaws.com/a%20b eu-west-1");
	unsetenv("AWS_USE_DUALSTACK_ENDPOINT");
	assert_string_equal(address(&config, ""), "https://bucket.s3-fips."
	    "eu-west-1.amazonaws.com/a%20b eu-west-1");
	config.addressing = S3_ADDRESSING_PATH;
	unsetenv("AWS_USE_FIPS_ENDPOINT");
	assert_string_equal(address(&config, ""),
	    "https://s3.eu-west-1.amazonaws.com/bucket/a%20b eu-west-1");
	config = config_of("my.bucket", NULL);
	assert_string_equal(address(&config, ""),
	    "https://s3.us-east-1.amazonaws.com/my.bucket/a%20b us-east-1");
	config = config_of("Old_Bucket", NULL);
	assert_string_equal(address(&config, ""),
	    "https://s3.us-east-1.amazonaws.com/Old_Bucket/a%20b us-east-1");
}

static void
test_addressing_of_others(void **state)
{
	struct s3_config config = config_of("bucket",
	    "http://127.0.0.1:9000/");

	(void)state;
	assert_string_equal(address(&config, ""),
	    "http://127.0.0.1:9000/bucket/a%20b us-east-1");
	config = config_of("bucket", "https://minio.example.com");
	assert_string_equal(address(&config, ""),
	    "https://minio.example.com/bucket/a%20b us-east-1");
	config.addressing = S3_ADDRESSING_VIRTUAL;
	assert_string_equal(address(&config, ""),
	    "https://bucket.minio.example.com/a%20b us-east-1");
	config = config_of("bucket", "https://oss-cn-hangzhou.aliyuncs.com");
	assert_string_equal(address(&config, ""), "https://bucket.oss-cn-"
	    "hangzhou.aliyuncs.com/a%20b oss-cn-hangzhou");
	config = config_of("bucket", "https://cwobject.com");
	assert_string_equal(address(&config, ""),
	    "https://bucket.cwobject.com/a%20b us-east-1");
	config = config_of("my.bucket", "http://cwlota.com");
	assert_string_equal(address(&config, ""),
	    "http://my.bucket.cwlota.com/a%20b us-east-1");
	config = config_of("bucket", "https://notcwobject.com");
	assert_string_equal(address(&config, ""),
	    "https://notcwobject.com/bucket/a%20b us-east-1");
	config = config_of("bucket",
	    "https://abc.r2.cloudflarestorage.com");
	assert_string_equal(address(&config, ""), "https://abc.r2."
	    "cloudflarestorage.com/bucket/a%20b auto");
}

static void
test_profile_addressing(void **state)
{
	struct s3_config config = config_of("bucket", "http://h.example");

	(void)state;
	assert_string_equal(address(&config, "[profile p]\ns3 =\n"
	    " addressing_style = virtual\n"),
	    "http://bucket.h.example/a%20b us-east-1");
	config.addressing = S3_ADDRESSING_PATH;
	assert_string_equal(address(&config, "[profile p]\ns3 =\n"
	    " addressing_style = virtual\n"),
	    "http://h.example/bucket/a%20b us-east-1");
}

#define SETTINGS "[profile p]\nservices = s\nendpoint_url = http://five\n" \
    "[services s]\ns3 =\n endpoint_url = http://four\n"

static void
test_order_of_addresses(void **state)
{
	struct s3_config config = config_of("bucket", "http://one");

	(void)state;
	setenv("AWS_ENDPOINT_URL_S3", "http://two", 1);
	setenv("AWS_ENDPOINT_URL", "http://three", 1);
	assert_string_equal(address(&config, SETTINGS),
	    "http://one/bucket/a%20b us-east-1");
	config.endpoint_url = NULL;
	assert_string_equal(address(&config, SETTINGS),
	    "http://two/bucket/a%20b us-east-1");
	unsetenv("AWS_ENDPOINT_URL_S3");
	assert_string_equal(address(&config, SETTINGS),
	    "http://three/bucket/a%20b us-east-1");
	unsetenv("AWS_ENDPOINT_URL");
	assert_string_equal(address(&config, SETTINGS),
	    "http://four/bucket/a%20b us-east-1");
	assert_string_equal(address(&config, "[profile p]\n"
	    "endpoint_url = http://five\n"),
	    "http://five/bucket/a%20b us-east-1");
	setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true", 1);
	setenv("AWS_ENDPOINT_URL", "http://three", 1);
	assert_string_equal(address(&config, SETTINGS),
	    "https://bucket.s3.us-east-1.amazonaws.com/a%20b us-east-1");
	config.endpoint_url = "http://one";
	assert_string_equal(address(&config, SETTINGS),
	    "http://one/bucket/a%20b us-east-1");
}

static void
test_order_of_regions(void **state)
{
	struct s3_config config = config_of("bucket", "http://h");

	(void)state;
	assert_string_equal(address(&config, "[profile p]\nregion = r4\n"),
	    "http://h/bucket/a%20b r4");
	setenv("AWS_DEFAULT_REGION", "r3", 1);
	assert_string_equal(address(&config, "[profile p]\nregion = r4\n"),
	    "http://h/bucket/a%20b r3");
	setenv("AWS_REGION", "r2", 1);
	assert_string_equal(address(&config, ""), "http://h/bucket/a%20b r2");
	config.region = "r1";
	assert_string_equal(address(&config, ""), "http://h/bucket/a%20b r1");
}

static void
test_wrong_settings(void **state)
{
	const struct {
		struct s3_config config;
		const char *message;
	} cases[] = {
		{ { .bucket = NULL }, "bucket" },
		{ { .bucket = "" }, "bucket" },
		{ { .bucket = "a/b" }, "bucket" },
		{ { .bucket = "a?b" }, "bucket" },
		{ { .bucket = ".." }, "bucket" },
		{ { .bucket = "b", .endpoint_url = "example.com" },
		    "not a usable address" },
		{ { .bucket = "b", .endpoint_url = "http://h/path" },
		    "path" },
		{ { .bucket = "b", .endpoint_url = "http://h/?q" }, "query" },
		{ { .bucket = "b", .region = "a.b" }, "region" },
		{ { .bucket = "b", .region = "x/" }, "region" },
		{ { .bucket = "my_bucket",
		    .addressing = S3_ADDRESSING_VIRTUAL }, "virtual" },
		{ { .bucket = "bucket", .endpoint_url = "http://1.2.3.4",
		    .addressing = S3_ADDRESSING_VIRTUAL }, "virtual" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error = ERROR_INIT;
		struct profile *profile = profile_of("");
		struct endpoint endpoint;

		assert_int_equal(endpoint_resolve(&cases[i].config, profile,
		    &endpoint, &error), -1);
		assert_int_equal(error.class, ERROR_USAGE);
		if (strstr(error.message, cases[i].message) == NULL)
			fail_msg("%s", error.message);
		profile_free(profile);
	}
}

static int
setup(void **state)
{
	(void)state;
	server_clean_environment();
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_amazon, setup),
		cmocka_unit_test_setup(test_addressing_of_others, setup),
		cmocka_unit_test_setup(test_profile_addressing, setup),
		cmocka_unit_test_setup(test_order_of_addresses, setup),
		cmocka_unit_test_setup(test_order_of_regions, setup),
		cmocka_unit_test_setup(test_wrong_settings, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
