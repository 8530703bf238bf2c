#ifndef NOTICE_LOOKOUT_H
#define NOTICE_LOOKOUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "notice/notice.h"

struct asker;
struct ledger;
struct sight;

/* What the watcher's thread hands to the cloud that it watches. */
struct lookout {
	const struct notice_options *options;
	struct asker *asker;
	struct ledger *ledger;
	struct sight *sight;
	const atomic_bool *interrupt;	/* end a request that blocks */
};

/*
 * One cloud.  Its state lives from `open` to `close`; all is called from the
 * watcher's thread.  Nothing that a server answers is an error of these: a
 * watcher outlives everything, and `sight` hears what is wrong.
 */
struct lookout_cloud {
	enum notice_cloud cloud;
	const char *name;		/* as --cloud and machine_cloud() say */
	uint64_t window;		/* its usual notice, nanoseconds */
	uint64_t patience;		/* of sight_name */

	/* NULL only without memory, or when a setting makes no sense. */
	void *(*open)(struct lookout *lookout, struct error *error);

	/* Take what came and ask what is due.  Return when to be called
	 * again, on clock_monotonic(), if no answer comes before. */
	uint64_t (*step)(void *state);

	/* Tell the cloud to go on with `id`; NULL where that is unknown. */
	void (*acknowledge)(void *state, const char *id);

	/* Drop tokens, connections are the asker's. */
	void (*close)(void *state);
};

/**
 * lookout_find(cloud):
 * The row of ${cloud}, NULL for NOTICE_CLOUD_AUTO and NOTICE_CLOUD_NONE.
 */
const struct lookout_cloud *lookout_find(enum notice_cloud cloud);

/**
 * lookout_find_name(name):
 * The row that is called ${name}, or NULL.
 */
const struct lookout_cloud *lookout_find_name(const char *name);

#endif
