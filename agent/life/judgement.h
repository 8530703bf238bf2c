#ifndef LIFE_JUDGEMENT_H
#define LIFE_JUDGEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct finding;
struct s3_facts;

/*
 * When something is wrong, when it is worth a hint, and when it is well: the
 * numbers of `doctor`, without asking anybody.  Each fills a finding.
 */

/**
 * judgement_fit(finding, bytes, speed, window, source):
 * Whether a checkpoint of ${bytes} goes up at ${speed} (bytes a second, not 0)
 * within ${window} (ns) of ${source} ("aws"; NULL: no cloud says how long, and
 * ${window} is --grace).  Wrong when it does not; a hint above four fifths of
 * it.
 */
void judgement_fit(struct finding *finding, uint64_t bytes, uint64_t speed,
    uint64_t window, const char *source);

/**
 * judgement_clock(finding, offset):
 * The server's clock minus ours, in whole seconds.  Well up to 2 s, since
 * answers are dated by the second; a hint up to 10 s; then wrong: notices and
 * --deadline name a time of day, and windows are as short as 25 s.
 */
void judgement_clock(struct finding *finding, long long offset);

/**
 * judgement_credentials(finding, facts, now):
 * Whether keys last.  Well when they have no end or are renewed; keys that
 * cannot be renewed are a hint, and wrong within an hour of their end.
 */
void judgement_credentials(struct finding *finding,
    const struct s3_facts *facts, time_t now);

/* What the kernel allows a user, and the names of its sysctls. */
struct judgement_limits {
	const char *watches_name;
	uint64_t watches;	/* UINT64_MAX: not known */
	const char *instances_name;
	uint64_t instances;
};

/* Instead of an errno value: there is no inotify instance to be had. */
#define JUDGEMENT_NO_INSTANCE (-1)

/**
 * judgement_watches(finding, folders, limits, refused):
 * ${folders} directories were watched, with errno ${refused} (0: all were).
 * Wrong when one was refused; a hint when they are more than half of what is
 * allowed.
 */
void judgement_watches(struct finding *finding, size_t folders,
    const struct judgement_limits *limits, int refused);

/**
 * judgement_space(finding, needed, available):
 * Whether the largest checkpoint fits beside what is there.  Wrong when it
 * does not, a hint when it fits only once: the next save and a restore need
 * their place at the same time.
 */
void judgement_space(struct finding *finding, uint64_t needed,
    uint64_t available);

/**
 * judgement_stop(finding, unit, timeout, grace, window, source):
 * What systemd gives ${unit} between SIGTERM and SIGKILL (ns, CLOCK_NEVER:
 * for ever), held against --grace and the window of the cloud ${source}
 * (NULL: not known).  Wrong when it is shorter than --grace; a hint when the
 * cloud will not wait that long.
 */
void judgement_stop(struct finding *finding, const char *unit,
    uint64_t timeout, uint64_t grace, uint64_t window, const char *source);

/**
 * judgement_cloud(source):
 * The name of the cloud "aws", ... for people; ${source} itself for others.
 */
const char *judgement_cloud(const char *source);

/**
 * judgement_timespan(text, nanoseconds):
 * Read a time span as `systemctl show` prints it ("1min 30s", "infinity":
 * CLOCK_NEVER; systemd.time(7)).  Return 0, or -1 when it is not one.
 */
int judgement_timespan(const char *text, uint64_t *nanoseconds);

#endif
