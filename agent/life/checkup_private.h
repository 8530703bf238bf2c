#ifndef LIFE_CHECKUP_PRIVATE_H
#define LIFE_CHECKUP_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/unit.h"
#include "life/checkup.h"
#include "life/finding.h"

struct checkup;

/* What parts found that is needed for the end. */
struct checkup_facts {
	char source[32];	/* whose notices can come; "": not known */
	uint64_t window;	/* ns, 0: not known */
	uint64_t local;		/* bytes of the largest complete checkpoint */
	uint64_t remote;	/* bytes of the largest valid one */
	bool space_known;
	uint64_t space;		/* bytes free where DIR is or will be */
	uint64_t speed;		/* bytes a second upwards; 0: not known */
	char left[40];		/* objects of this prefix may be in the remote */
};

/* One part, on a thread of its own; findings are under the checkup's lock. */
struct checkup_part {
	struct checkup *checkup;
	const struct checkup_row *row;
	pthread_t thread;
	bool started;
	bool over;
	const char *doing;	/* words: "reading the directory" */
	struct finding *findings;
	size_t count;
	size_t told;
};

struct checkup_row {
	const char *check;	/* of the finding when it takes too long */
	uint64_t limit;		/* ns from the beginning */
	void (*run)(struct checkup_part *part);
};

#define CHECKUP_PARTS 3

/* Shared by all threads; left alone when one of them hangs. */
struct checkup {
	const struct settings *settings;
	uint64_t began;
	int wake;			/* eventfd: something was told */
	atomic_bool stop;		/* the user has had enough */
	pthread_mutex_t lock;
	struct checkup_facts facts;	/* under the lock */
	struct checkup_part parts[CHECKUP_PARTS];
};

/**
 * checkup_say(part, finding):
 * Hand over ${finding}, which is empty then.
 */
void checkup_say(struct checkup_part *part, struct finding *finding);

/**
 * checkup_doing(part, words): what it is at; ${words} must stay.
 */
void checkup_doing(struct checkup_part *part, const char *words);

/**
 * checkup_left_out(part, check, why): say that ${check} was left out.
 */
void checkup_left_out(struct checkup_part *part, const char *check,
    const char *why);

/**
 * checkup_time_text(nanoseconds, text):
 * "3.2 ms", from a second on as unit_duration_text.  Return ${text}.
 */
char *checkup_time_text(uint64_t nanoseconds, char text[UNIT_TEXT_SIZE]);

/* The parts; each ends soon after checkup->stop. */
void checkup_folder(struct checkup_part *part);
void checkup_store(struct checkup_part *part);
void checkup_notices(struct checkup_part *part);

/**
 * checkup_end(settings, facts, tell, context):
 * What needs the facts of several parts: fit, space, stop time.
 */
void checkup_end(const struct settings *settings,
    const struct checkup_facts *facts, checkup_tell tell, void *context);

#endif
