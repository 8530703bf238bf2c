#ifndef NOTICE_LEDGER_H
#define NOTICE_LEDGER_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "notice/notice.h"

struct outbox;

/*
 * What has been told already: every poll repeats what holds, and the agent
 * hears only of what is new, nearer or gone.  One thread.
 *
 * A source reads one document after the other.  For each, ledger_begin, then
 * ledger_tell for what stands in it, then ledger_end: what stood in the same
 * document before and does no more is gone.
 */
struct ledger;

/* One thing that a document says. */
struct ledger_word {
	enum notice_kind kind;		/* NOTICE_HINT or NOTICE_DEADLINE */
	const char *source;
	const char *id;			/* foreign bytes are made harmless */
	const char *reason;
	const struct timespec *stated;	/* when the machine goes; NULL: not said */
	uint64_t usual;			/* then: nanoseconds from now */
	bool survives;
};

struct ledger *ledger_new(struct outbox *outbox, struct error *error);

/**
 * ledger_begin(ledger, document):
 * Begin with ${document}, a number of the source's own.
 */
void ledger_begin(struct ledger *ledger, int document);

/**
 * ledger_tell(ledger, word):
 * The document says ${word}.  Tell the agent when it is new, a hint that
 * became a deadline, or a deadline that became earlier.
 */
void ledger_tell(struct ledger *ledger, const struct ledger_word *word);

/**
 * ledger_end(ledger, may_be_withdrawn):
 * That was all.  A hint that is gone is told to be withdrawn at once; so is a
 * deadline when ${may_be_withdrawn}.  Where a cloud does not take back what it
 * said, a deadline that vanishes stays until the machine has outlived it by a
 * minute: a metadata server that fails for a moment must not call off a flush.
 */
void ledger_end(struct ledger *ledger, bool may_be_withdrawn);

/**
 * ledger_holds(ledger, id):
 * Whether ${id} was told and still holds.
 */
bool ledger_holds(const struct ledger *ledger, const char *id);

/**
 * ledger_doubt(ledger):
 * The machine was frozen: what is gone now is withdrawn at once, and another
 * time for the same notice is told also when it is later.
 */
void ledger_doubt(struct ledger *ledger);

/**
 * ledger_free(ledger):
 * Behave consistently with free(NULL).
 */
void ledger_free(struct ledger *ledger);

#endif
