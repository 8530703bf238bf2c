#include "kit/kit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/machine.h"
#include "store/environment.h"
#include "store/secret.h"

static void
assert_masked(const char *text, const char *previous, const char *expected)
{
	char *masked = environment_mask(text, previous);

	assert_non_null(masked);
	assert_string_equal(masked, expected);
	free(masked);
}

static void
test_secrets_are_masked(void **state)
{
	(void)state;
	assert_masked("--api-key=abc", NULL, "--api-key=***");
	assert_masked("--api_key=a b=c", NULL, "--api_key=***");
	assert_masked("+trainer.wandbKey=abc", NULL, "+trainer.wandbKey=***");
	assert_masked("HF_TOKEN=abc", NULL, "HF_TOKEN=***");
	assert_masked("--db-password=x", NULL, "--db-password=***");
	assert_masked("AWS_SECRET_ACCESS_KEY=x/y", NULL,
	    "AWS_SECRET_ACCESS_KEY=***");
	assert_masked("hunter2", "--password", "***");
	assert_masked("hunter2", "-token", "***");
	assert_masked("https://me:pw@host/x?a=1&sig=abc&b=2", NULL,
	    "https://***@host/x?a=1&sig=***&b=2");
	assert_masked("git+https://tok@host/x", NULL,
	    "git+https://***@host/x");
	assert_masked("{\"api_key\": \"abc\", \"lr\": 1}", NULL,
	    "{\"api_key\": \"***\", \"lr\": 1}");
	assert_masked("Authorization: Bearer abc.def", NULL,
	    "Authorization: Bearer ***");
	assert_masked("--key-id=AKIAABCDEFGHIJKLMNOP", NULL,
	    "--key-id=***");
	assert_masked("hf_abcdefghijklmnopqrstuvwxyz", NULL, "***");
	assert_masked("x hf_abcdefghijklmnopqrstuvwxyz y", NULL, "x *** y");
	assert_masked("ghp_0123456789abcdefghij", NULL, "***");
}

static void
test_harmless_words_stay(void **state)
{
	static const char *const words[] = { "python", "train.py",
		"--tokenizer=gpt2", "--max-tokens=2048", "--num_tokens=5",
		"s3://bucket/run1", "https://host:8080/x", "--monitor=val_loss",
		"--keyboard=x", "a@b.c", "--lr=1e-4", "", "=", "--", "hf_x",
		"/data/token/x.pt", "--passes=3", "--hidden-size=1024" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		assert_masked(words[i], i == 0 ? NULL : words[i - 1],
		    words[i]);
	assert_masked("gpt2", "--tokenizer", "gpt2");
	assert_masked("--verbose", "--token", "--verbose");
	assert_masked("x", "--token=abc", "x");
}

static void
test_gather(void **state)
{
	char *const command[] = { (char *)"python", (char *)"--token",
		(char *)"abc", (char *)"\xff.py", NULL };
	const struct environment_options options = { .command = command,
		.shell_command = "printf 'torch==2.8\\nx @ https://t@h/x\\n'" };
	json_t *object, *list;

	(void)state;
	setenv("WORLD_SIZE", "8", 1);
	setenv("MY_SECRET", "xyzzy", 1);
	object = environment_gather(&options);
	assert_non_null(object);
	assert_non_null(json_get_text(object, "host"));
	assert_non_null(json_get_text(object, "kernel"));
	assert_string_equal(json_get_text(object, "env_command"),
	    "torch==2.8\nx @ https://***@h/x\n");
	assert_null(json_object_get(object, "env_command_failed"));
	list = json_object_get(object, "command");
	assert_int_equal(json_array_size(list), 4);
	assert_string_equal(json_string_value(json_array_get(list, 0)),
	    "python");
	assert_string_equal(json_string_value(json_array_get(list, 2)), "***");
	assert_string_equal(json_get_text(json_array_get(list, 3),
	    "word_b64"), "/y5weQ==");
	list = json_object_get(object, "variables");
	assert_string_equal(json_get_text(list, "WORLD_SIZE"), "8");
	assert_null(json_object_get(list, "MY_SECRET"));
	json_decref(object);
}

static void
test_gather_what_fails(void **state)
{
	const struct environment_options options = { .folder = "/nonexistent",
		.shell_command = "echo half; exit 3" };
	json_t *object = environment_gather(&options);

	(void)state;
	assert_non_null(object);
	assert_null(json_object_get(object, "git"));
	assert_null(json_object_get(object, "command"));
	assert_string_equal(json_get_text(object, "env_command"), "half\n");
	assert_non_null(json_get_text(object, "env_command_failed"));
	json_decref(object);
}

static void
write_text(const char *folder, const char *name, const char *text)
{
	char path[512];

	snprintf(path, sizeof(path), "%s%s", folder, name);
	kit_write_file(path, text, strlen(text));
}

static void
test_identity(void **state)
{
	char *folder = kit_scratch();
	struct timespec time;
	uint64_t pid;
	json_t *object;

	(void)state;
	write_text(folder, "/sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
	write_text(folder, "/sys/class/dmi/id/product_name", "p4d.24xlarge\n");
	machine_test_root(folder);
	object = environment_identity();
	machine_test_root(NULL);
	assert_non_null(object);
	assert_string_equal(json_get_text(object, "cloud"), "aws");
	assert_string_equal(json_get_text(object, "machine_type"),
	    "p4d.24xlarge");
	assert_string_equal(json_get_text(object, "version"),
	    CKPTSYNC_VERSION);
	assert_int_equal(json_get_u64(object, "pid", &pid), 0);
	assert_int_equal(pid, getpid());
	assert_int_equal(json_get_time(object, "time", &time), 0);
	json_decref(object);
	kit_scratch_remove(folder);
	free(folder);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_secrets_are_masked),
		cmocka_unit_test(test_harmless_words_stay),
		cmocka_unit_test(test_gather),
		cmocka_unit_test(test_gather_what_fails),
		cmocka_unit_test(test_identity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
