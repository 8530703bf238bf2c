#ifndef NOTICE_NOTICE_H
#define NOTICE_NOTICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Who says that this machine goes (DESIGN 8): the cloud's metadata, asked by
 * threads of their own that nothing else can delay and that no answer can
 * end.  Signals, `ckptsync notice` and --deadline are the life room's; they
 * end in the same state machine.
 *
 * Facts, bodies and traps: reference "Spot / preemption notices", sections 2
 * to 5, 11 and 15.
 */

enum notice_cloud {
	NOTICE_CLOUD_AUTO,	/* DMI files, else short parallel probes */
	NOTICE_CLOUD_NONE,	/* none: only signals and the user's word */
	NOTICE_CLOUD_AWS,
	NOTICE_CLOUD_GOOGLE,
	NOTICE_CLOUD_AZURE,
	NOTICE_CLOUD_ALIBABA,
	NOTICE_CLOUD_TENCENT
};

/**
 * notice_cloud_parse(text, cloud):
 * "auto", "none", "aws", "google" ("gcp"), "azure", "alibaba", "tencent".
 * Return 0, or -1 for another word.
 */
int notice_cloud_parse(const char *text, enum notice_cloud *cloud);

/* What the user said; zero the rest. */
struct notice_options {
	enum notice_cloud cloud;
	uint64_t google_notice;	/* --gcp-notice: ns from `preempted` to the end;
				 * 0: 25 s */
	bool azure_acknowledge;	/* --azure-ack */
	const char *endpoint;	/* copied; tests: another address of the metadata
				 * servers, "http://127.0.0.1:PORT"; NULL: the
				 * usual ones and the clouds' own variables */
};

enum notice_kind {
	NOTICE_SEEING,		/* notices can be seen here: source and cloud */
	NOTICE_BLIND,		/* they cannot: error says why and what to do */
	NOTICE_HINT,		/* rebalance, maintenance far away: upload sooner */
	NOTICE_DEADLINE,	/* this machine goes at `deadline` */
	NOTICE_WITHDRAWN	/* the notice with `id` is gone: taken back, or
				 * the machine has outlived it */
};

struct notice {
	enum notice_kind kind;
	char source[32];	/* "aws spot", "google preempted", "azure Preempt";
				 * SEEING, BLIND: the cloud, "aws" */
	char id[96];		/* the same notice keeps its id */
	char reason[160];	/* for people: "terminate", "Preempt by Platform";
				 * BLIND: the cause in a word or two, one of
				 * "blocked", "garbled", "hidden", "hop limit",
				 * "no cloud", "not started", "refused",
				 * "silent", "silent cloud", "switched off",
				 * "unwell" */
	uint64_t deadline;	/* DEADLINE: clock_monotonic(), turned from a wall
				 * time once, when first seen, and bounded to
				 * 0..15 min from then */
	bool stated;		/* the cloud stated the time; else the default
				 * of the table in reference 15.1 */
	bool survives;		/* stop, hibernate, reboot: the disk comes back */
	struct error error;	/* BLIND */
};

/**
 * notice_window(options, source):
 * How long before the end the cloud ${source} ("aws": the source of SEEING)
 * usually says so, in nanoseconds, with what ${options} say; 0 when that is
 * not known.
 */
uint64_t notice_window(const struct notice_options *options,
    const char *source);

struct notice_watch;

/**
 * notice_start(options, error):
 * Begin to watch, on threads of its own; returns at once, also when nothing
 * answers.  NULL only when no thread or memory could be had.
 */
struct notice_watch *notice_start(const struct notice_options *options,
    struct error *error);

/**
 * notice_fd(watch): readable while notice_next has something.
 */
int notice_fd(struct notice_watch *watch);

/**
 * notice_next(watch, notice):
 * The next one, into ${notice}.  Return true, or false when there is none
 * now.  Never blocks.  The same DEADLINE comes again only when its time
 * became earlier.
 */
bool notice_next(struct notice_watch *watch, struct notice *notice);

/**
 * notice_acknowledge(watch, id):
 * Azure with --azure-ack: tell the cloud that it may go on with the event
 * ${id} of this machine.  After the flush only.  Returns at once.
 */
void notice_acknowledge(struct notice_watch *watch, const char *id);

/**
 * notice_resumed(watch):
 * The machine was frozen: drop tokens and connections, ask anew now.
 */
void notice_resumed(struct notice_watch *watch);

/**
 * notice_free(watch):
 * End the threads (at most a second) and free all.  Behave consistently with
 * free(NULL).
 */
void notice_free(struct notice_watch *watch);

#endif
