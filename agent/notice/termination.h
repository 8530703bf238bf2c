#ifndef NOTICE_TERMINATION_H
#define NOTICE_TERMINATION_H

#include "notice/lookout.h"

struct ledger;

/*
 * The clouds whose metadata has one item, the termination time: not found
 * while nothing is planned (Alibaba, Tencent; reference 5).
 */
struct termination_plan {
	const char *name;		/* of the cloud */
	const char *address;
	const char *path;
	int zone;			/* of its times, seconds east of UTC */

	/* Where tokens are had when a plain request is refused; or NULL. */
	const char *token_path;
	const char *token_life;		/* the header that asks for one */
	const char *token_header;	/* the header that carries it: "Name: " */
};

/* What lookout_cloud wants. */
void *termination_open(const struct termination_plan *plan,
    struct lookout *lookout, struct error *error);
uint64_t termination_step(void *termination);
void termination_close(void *termination);

/**
 * termination_read(ledger, plan, text):
 * Tell ${ledger} the time ${text}.  Return 0, or -1 when it is none.
 */
int termination_read(struct ledger *ledger,
    const struct termination_plan *plan, const char *text);

#endif
