#include "life/launcher.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/unit.h"

/*
 * How many nodes a variable shows: its number, divided by that of `beside`
 * when that is set (processes in all, processes on each node).
 */
static const struct launcher {
	const char *variable;
	const char *beside;
	const char *instead;	/* when this is set, it says it better */
} launchers[] = {
	{ "NNODES", NULL, NULL },
	{ "SLURM_STEP_NUM_NODES", NULL, NULL },
	{ "SLURM_NNODES", NULL, "SLURM_STEP_NUM_NODES" },
	{ "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL },
	{ "WORLD_SIZE", "LOCAL_WORLD_SIZE", NULL },
};

static uint64_t
read_number(const char *name)
{
	const char *text = name == NULL ? NULL : getenv(name);
	struct error ignored = ERROR_INIT;
	uint64_t number;

	if (text == NULL ||
	    unit_parse_number(text, 1, 1000000, &number, &ignored) != 0)
		return 0;
	return number;
}

int
launcher_check(struct error *error)
{
	const struct launcher *launcher;
	uint64_t number, local;
	size_t i;

	for (i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		launcher = &launchers[i];
		if (read_number(launcher->instead) > 0 ||
		    (number = read_number(launcher->variable)) == 0)
			continue;
		local = read_number(launcher->beside);
		if (number <= (local == 0 ? 1 : local))
			continue;
		error_set(error, ERROR_USAGE, CAUSE_UNSUPPORTED, NULL,
		    "%s=%s: this job runs on more than one node, and this "
		    "version syncs only one node into a remote",
		    launcher->variable, getenv(launcher->variable));
		return error_cure(error, "when only this node saves "
		    "checkpoints, start it with `env -u %s ckptsync ...`",
		    launcher->variable);
	}
	return 0;
}

#define YEAR (INT64_C(366) * 24 * 3600)

int64_t
launcher_job_end(int64_t now, struct error *error)
{
	const char *text = getenv("SLURM_JOB_END_TIME");
	struct error ignored = ERROR_INIT;
	uint64_t end = 0;

	if (text == NULL || text[0] == '\0')
		return 0;
	if (unit_parse_number(text, 1, (uint64_t)INT64_MAX, &end,
	    &ignored) == 0 && (int64_t)end > now &&
	    (int64_t)end - now <= YEAR)
		return (int64_t)end;
	return error_set(error, ERROR_FAILED, CAUSE_OTHER,
	    "SLURM_JOB_END_TIME", "'%s' is not the end of this job", text), 0;
}
