#include "store/environment.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/path.h"
#include "base/process.h"
#include "store/secret.h"

/* Limits for what the user's command says, and for commands of our own. */
#define OUTPUT_MAXIMUM ((size_t)256 << 10)
#define OUTPUT_TIMEOUT (30 * CLOCK_SECOND)
#define TOOL_MAXIMUM ((size_t)64 << 10)
#define TOOL_TIMEOUT (10 * CLOCK_SECOND)

/* The only variables that are looked at: where in the cluster it ran, and
 * what changes the numbers. */
static const char *const variables[] = {
	"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "RANK",
	"LOCAL_RANK", "WORLD_SIZE", "NODE_RANK", "SLURM_JOB_ID",
	"SLURM_JOB_NAME", "SLURM_NODEID", "CONDA_DEFAULT_ENV", "VIRTUAL_ENV",
	"OMP_NUM_THREADS", "PYTHONHASHSEED", "CUBLAS_WORKSPACE_CONFIG" };

static int
set_masked(json_t *object, const char *field, const char *text)
{
	char *masked = secret_mask(text);
	int result = masked == NULL ? -1 : json_set_name(object, field, masked);

	free(masked);
	return result;
}

static int
set_known(json_t *object, const char *field, const char *text)
{
	return text == NULL || text[0] == '\0' ? 0 :
	    json_set_name(object, field, text);
}

/* Host, cloud and machine type. */
static int
set_machine(json_t *object)
{
	char host[256] = "", text[MACHINE_TEXT_SIZE];
	const char *cloud = machine_cloud(), *type = machine_type(text);
	int failed = 0;

	if (gethostname(host, sizeof(host) - 1) != 0)
		host[0] = '\0';
	failed |= set_known(object, "host", host);
	failed |= set_known(object, "cloud", cloud);
	failed |= set_known(object, "machine_type", type);
	return failed;
}

static int
set_kernel(json_t *object)
{
	char text[sizeof(struct utsname)];
	struct utsname name;

	if (uname(&name) != 0)
		return 0;
	snprintf(text, sizeof(text), "%s %s %s", name.sysname, name.release,
	    name.machine);
	return json_set_name(object, "kernel", text);
}

/* "NVIDIA A100-SXM4-40GB, 535.104.05": one line a GPU. */
static int
add_gpu(json_t *list, const char *line, size_t length)
{
	json_t *object = json_object();
	size_t comma = length;
	char model[256], driver[64];
	int failed = 0;

	while (comma > 0 && line[comma - 1] != ',')
		comma--;
	if (comma < 2 || length - comma < 2) {
		json_decref(object);
		return 0;
	}
	snprintf(model, sizeof(model), "%.*s", (int)(comma - 1), line);
	snprintf(driver, sizeof(driver), "%.*s", (int)(length - comma - 1),
	    line + comma + 1);
	failed |= json_set_name(object, "model", model);
	failed |= json_set_name(object, "driver", driver);
	failed |= json_array_append_new(list, object);
	return failed;
}

/* Without nvidia-smi: what the driver itself shows, without the models. */
static int
set_driver(json_t *object)
{
	struct buffer text;
	struct error ignored;
	int result = 0;

	buffer_init(&text, TOOL_MAXIMUM);
	if (path_read_at(AT_FDCWD, "/proc/driver/nvidia/version", &text,
	    &ignored) == 0) {
		text.data[strcspn(text.data, "\n")] = '\0';
		result = json_set_name(object, "gpu_driver",
		    buffer_text(&text));
	}
	buffer_free(&text);
	return result;
}

static int
set_gpus(json_t *object)
{
	char *const command[] = { "nvidia-smi",
		"--query-gpu=name,driver_version", "--format=csv,noheader",
		NULL };
	json_t *list = json_array();
	struct buffer text;
	struct error ignored;
	const char *line;
	size_t length;
	int failed = 0;

	buffer_init(&text, TOOL_MAXIMUM);
	if (process_output(command, TOOL_TIMEOUT, &text, &ignored) != 0)
		buffer_clear(&text);
	for (line = buffer_text(&text); *line != '\0'; line += length) {
		length = strcspn(line, "\n");
		failed |= add_gpu(list, line, length);
		length += line[length] == '\n';
	}
	buffer_free(&text);
	if (json_array_size(list) > 0)
		return failed | json_object_set_new(object, "gpus", list);
	json_decref(list);
	return failed | set_driver(object);
}

/* The output of git in ${folder}.  Return 0, or -1 when it failed. */
static int
ask_git(const char *folder, char *const words[3], struct buffer *text)
{
	/* No lock, so that nothing is written into the user's directory. */
	char *const command[] = { "git", "--no-optional-locks", "-C",
		(char *)(folder == NULL ? "." : folder), words[0], words[1],
		words[2], NULL };
	struct error ignored;

	return process_output(command, TOOL_TIMEOUT, text, &ignored);
}

static int
set_git(json_t *object, const char *folder)
{
	char *const head[] = { "rev-parse", "--verify", "HEAD" };
	char *const status[] = { "status", "--porcelain",
		"--untracked-files=no" };
	struct buffer text;
	json_t *git;
	int failed = 0;

	buffer_init(&text, TOOL_MAXIMUM);
	if (ask_git(folder, head, &text) == 0 && text.length > 0) {
		text.data[strcspn(text.data, "\n")] = '\0';
		git = json_object();
		failed |= json_set_name(git, "commit", text.data);
		buffer_clear(&text);
		if (ask_git(folder, status, &text) == 0)
			failed |= json_object_set_new(git, "dirty",
			    json_boolean(text.length > 0));
		failed |= json_object_set_new(object, "git", git);
	}
	buffer_free(&text);
	return failed;
}

static int
set_command(json_t *object, char *const *command)
{
	json_t *list;
	int failed = 0;
	size_t i;

	if (command == NULL)
		return 0;
	list = json_array();
	for (i = 0; command[i] != NULL; i++) {
		char *masked = environment_mask(command[i],
		    i == 0 ? NULL : command[i - 1]);
		json_t *word = json_object();

		/* A bare string, but for a word that is not UTF-8. */
		if (masked == NULL)
			failed = -1;
		else
			failed |= json_set_name(word, "word", masked);
		failed |= json_array_append(list,
		    json_object_get(word, "word") != NULL ?
		    json_object_get(word, "word") : word);
		json_decref(word);
		free(masked);
	}
	return failed | json_object_set_new(object, "command", list);
}

static int
set_output(json_t *object, const char *shell_command)
{
	char *const command[] = { "sh", "-c", (char *)shell_command, NULL };
	struct buffer text;
	struct error error;
	int failed = 0;

	if (shell_command == NULL)
		return 0;
	buffer_init(&text, OUTPUT_MAXIMUM);
	if (process_output(command, OUTPUT_TIMEOUT, &text, &error) != 0)
		failed |= json_set_name(object, "env_command_failed",
		    error.message);
	failed |= set_masked(object, "env_command", buffer_text(&text));
	buffer_free(&text);
	return failed;
}

static int
set_variables(json_t *object)
{
	json_t *list = json_object();
	int failed = 0;
	size_t i;

	for (i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		const char *value = getenv(variables[i]);

		if (value != NULL)
			failed |= set_masked(list, variables[i], value);
	}
	return failed | json_object_set_new(object, "variables", list);
}

json_t *
environment_gather(const struct environment_options *options)
{
	json_t *object = json_object();
	int failed = 0;

	failed |= set_machine(object);
	failed |= set_kernel(object);
	failed |= set_gpus(object);
	failed |= set_git(object, options->folder);
	failed |= set_command(object, options->command);
	failed |= set_variables(object);
	failed |= set_output(object, options->shell_command);
	if (failed == 0)
		return object;
	json_decref(object);
	return NULL;
}

json_t *
environment_identity(void)
{
	json_t *object = json_object();
	int failed = 0;

	failed |= set_machine(object);
	failed |= json_set_u64(object, "pid", (uint64_t)getpid());
	failed |= json_object_set_new(object, "version",
	    json_string(CKPTSYNC_VERSION));
	failed |= json_set_time(object, "time", clock_wall());
	if (failed == 0)
		return object;
	json_decref(object);
	return NULL;
}

char *
environment_mask(const char *text, const char *previous)
{
	size_t name = strcspn(text, "=");
	char *masked;

	/* "--token" and its value as the next word. */
	if (previous != NULL && previous[0] == '-' &&
	    strchr(previous, '=') == NULL && strncmp(text, "--", 2) != 0 &&
	    secret_is_name(previous, strlen(previous)))
		return strdup("***");
	/* "--token=value", whatever is in the value. */
	if (text[name] == '=' && strcspn(text, " \t\n/:?&\"'{") > name &&
	    secret_is_name(text, name)) {
		if (asprintf(&masked, "%.*s=***", (int)name, text) < 0)
			return NULL;
		return masked;
	}
	return secret_mask(text);
}
