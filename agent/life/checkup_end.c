#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/unit.h"
#include "life/checkup_private.h"
#include "life/judgement.h"
#include "life/manager.h"
#include "life/settings.h"

/* Where the findings of the end go. */
struct listener {
	checkup_tell tell;
	void *context;
};

static void
say(const struct listener *listener, struct finding *finding)
{
	listener->tell(listener->context, finding);
	finding_free(finding);
}

static void
leave_out(const struct listener *listener, const char *check,
    const char *why)
{
	struct finding finding = FINDING_INIT;

	finding_set(&finding, FINDING_LEFT_OUT, check, "%s", why);
	say(listener, &finding);
}

static void
check_fit(const struct listener *listener, const struct settings *settings,
    const struct checkup_facts *facts)
{
	uint64_t bytes = facts->local > 0 ? facts->local : facts->remote;
	struct finding finding = FINDING_INIT;
	bool known = facts->window > 0;

	if (settings->url == NULL)
		return;		/* said with the remote */
	if (bytes == 0) {
		leave_out(listener, "fit", "no complete checkpoint was seen "
		    "whose size could be held against the speed");
	} else if (facts->speed == 0) {
		leave_out(listener, "fit", "the speed is not known");
	} else {
		judgement_fit(&finding, bytes, facts->speed, known ?
		    facts->window : settings->grace, known ? facts->source :
		    NULL);
		say(listener, &finding);
	}
}

static void
check_space(const struct listener *listener, const struct settings *settings,
    const struct checkup_facts *facts)
{
	uint64_t bytes = facts->local > facts->remote ? facts->local :
	    facts->remote;
	struct finding finding = FINDING_INIT;

	if (settings->folder == NULL)
		return;		/* said with the directory */
	if (!facts->space_known) {
		leave_out(listener, "space",
		    "the file system of DIR does not say how much is free");
	} else if (bytes == 0) {
		leave_out(listener, "space",
		    "no complete checkpoint was seen whose size is needed");
	} else {
		judgement_space(&finding, bytes, facts->space);
		say(listener, &finding);
	}
}

/*
 * Who sends SIGTERM and SIGKILL around here and cannot be asked: told by what
 * it leaves in the environment.
 */
static const struct platform {
	const char *variable;	/* of the environment, or a file: "/..." */
	const char *message;
	const char *cure;
} platforms[] = {
	{ "KUBERNETES_SERVICE_HOST",
	    "in Kubernetes a pod has terminationGracePeriodSeconds (30 if "
	    "nothing is said) for everything, and a sidecar hears SIGTERM "
	    "last; a pod cannot see its own value",
	    "set terminationGracePeriodSeconds to at least %s, and a preStop "
	    "hook that runs `ckptsync notice --in %s`" },
	{ "ECS_CONTAINER_METADATA_URI_V4",
	    "ECS kills a container 30 s after SIGTERM if its task definition "
	    "says nothing; a container cannot see its own value",
	    "set stopTimeout to at least %s (Fargate: at most 120), and on "
	    "EC2 ECS_ENABLE_SPOT_INSTANCE_DRAINING=true; --grace is %s" },
	{ "SLURM_JOB_ID",
	    "Slurm preempts with GraceTime, which is 0 if nothing is said, "
	    "and ends a job KillWait (30 s) after SIGTERM; a batch script is "
	    "not signalled at all by default",
	    "#SBATCH --signal=B:TERM@60 and, in the script, `exec ckptsync "
	    "run ...`; ask for a GraceTime of at least %s s; --grace is %s" },
	{ "/.dockerenv",
	    "docker stop kills a container after 10 s if nothing is said; a "
	    "container cannot see its own value",
	    "start it with --stop-timeout %s or more; --grace is %s" },
};

static const struct platform *
find_platform(bool by_file)
{
	for (size_t i = 0; i < sizeof(platforms) / sizeof(platforms[0]); i++) {
		const char *name = platforms[i].variable;

		if ((*name == '/') == by_file && (by_file ?
		    access(name, F_OK) == 0 : getenv(name) != NULL))
			return &platforms[i];
	}
	return NULL;
}

static void
say_platform(const struct listener *listener, const struct platform *platform,
    const struct settings *settings, const struct checkup_facts *facts)
{
	uint64_t wanted = facts->window > settings->grace ? facts->window :
	    settings->grace + 5 * CLOCK_SECOND;
	char most[UNIT_TEXT_SIZE], grace[UNIT_TEXT_SIZE], cure[384];
	struct finding finding = FINDING_INIT;
	const char *texts[2] = { most, grace };
	const char *at = platform->cure;
	size_t length = 0, next = 0;

	/* As these settings want them. */
	snprintf(most, sizeof(most), "%" PRIu64,
	    (wanted + CLOCK_SECOND - 1) / CLOCK_SECOND);
	snprintf(grace, sizeof(grace), "%" PRIu64 "s",
	    settings->grace / CLOCK_SECOND);
	for (; *at != '\0' && length + UNIT_TEXT_SIZE < sizeof(cure); at++) {
		if (at[0] == '%' && at[1] == 's' && next < 2) {
			strcpy(cure + length, texts[next++]);
			length += strlen(cure + length);
			at++;
		} else {
			cure[length++] = *at;
		}
	}
	cure[length] = '\0';
	finding_set(&finding, FINDING_HINT, "stop_time", "%s",
	    platform->message);
	finding_cure(&finding, "%s", cure);
	finding_fact(&finding, "platform", json_string(platform->variable));
	say(listener, &finding);
}

static void
check_stop(const struct listener *listener, const struct settings *settings,
    const struct checkup_facts *facts)
{
	const struct platform *platform = find_platform(false);
	struct finding finding = FINDING_INIT;
	struct manager manager;
	bool of_systemd = platform == NULL && manager_find(&manager) == 0;

	/* Slurm's daemon may be a service; a container's may not be seen. */
	if (platform == NULL && !of_systemd)
		platform = find_platform(true);
	if (platform != NULL) {
		say_platform(listener, platform, settings, facts);
		return;
	}
	if (!of_systemd) {
		leave_out(listener, "stop_time", "this is no service of "
		    "systemd; to check one, let it run doctor (ExecStartPre=)");
		return;
	}
	judgement_stop(&finding, manager.unit, manager.stop, settings->grace,
	    facts->window, facts->window > 0 ? facts->source : NULL);
	say(listener, &finding);
	if (strcmp(manager.kill_mode, "control-group") != 0)
		return;
	finding_set(&finding, FINDING_HINT, "stop_time", "KillMode of %s is "
	    "control-group: systemd sends SIGTERM to the trainer as well, "
	    "which `run` would let save first", manager.unit);
	finding_cure(&finding, "KillMode=mixed in its [Service] section");
	say(listener, &finding);
}

void
checkup_end(const struct settings *settings,
    const struct checkup_facts *facts, checkup_tell tell, void *context)
{
	const struct listener listener = { tell, context };

	check_fit(&listener, settings, facts);
	check_space(&listener, settings, facts);
	check_stop(&listener, settings, facts);
}
