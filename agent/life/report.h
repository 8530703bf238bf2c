#ifndef LIFE_REPORT_H
#define LIFE_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct checkpoint;
struct error;
struct uploads_result;

/*
 * What the agent says of each checkpoint, in the log and to whoever asked for
 * a push: one event object for both.
 *
 *	{"event": "checkpoint", "state": "complete" | "waiting" | "torn" |
 *	 "known" | "older" | "replaced" | "durable" | "changed" | "gone" |
 *	 "retry" | "lost", "name": ..., "message": ..., ...}
 *	{"event": "progress", "name": ..., "total_bytes": n, "done_bytes": n,
 *	 "bytes_per_s": n, "left_s": n}
 */

/**
 * report_seen(checkpoint, state):
 * Log that ${checkpoint} was seen in ${state} ("complete", "torn", "waiting",
 * "known", "older", "replaced", "gone", "changed") and return the event object
 * (the caller's), NULL when out of memory.
 */
json_t *report_seen(const struct checkpoint *checkpoint, const char *state);

/**
 * report_known(event):
 * What to tell one who comes later of a checkpoint that is durable, from the
 * event of report_durable; NULL when out of memory.
 */
json_t *report_known(const json_t *event);

/**
 * report_durable(checkpoint, result, since):
 * The same for one that is durable: bytes new and reused, and the seconds
 * since it was last written (${since}, clock_monotonic).
 */
json_t *report_durable(const struct checkpoint *checkpoint,
    const struct uploads_result *result, uint64_t since);

/**
 * report_failed(checkpoint, state, error, wait):
 * The same for "retry" (in ${wait} ns) and "lost".
 */
json_t *report_failed(const struct checkpoint *checkpoint, const char *state,
    const struct error *error, uint64_t wait);

/*
 * A line on a terminal that shows how far a transfer is; nothing where
 * standard error is not one.
 */
struct report_line {
	bool terminal;
	bool shown;
	uint64_t last;		/* clock_monotonic() of the last one */
	uint64_t began;
	uint64_t began_bytes;
};

/**
 * report_line_start(line, quiet): begin; never shown with ${quiet}.
 */
void report_line_start(struct report_line *line, bool quiet);

/**
 * report_line_show(line, what, done, total, force):
 * Show "what  12.0 MiB of 1.4 GiB  85.2 MiB/s  16 s left", at most five times
 * a second unless ${force}.
 */
void report_line_show(struct report_line *line, const char *what,
    uint64_t done, uint64_t total, bool force);

/**
 * report_line_clear(line): wipe it, before something else is printed.
 */
void report_line_clear(struct report_line *line);

#endif
