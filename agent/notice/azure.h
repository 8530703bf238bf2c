#ifndef NOTICE_AZURE_H
#define NOTICE_AZURE_H

#include <stddef.h>
#include <stdint.h>

#include "notice/lookout.h"

struct ledger;

/*
 * Azure's Scheduled Events (reference 4): one document, polled every second,
 * that speaks of other machines too.
 */
extern const struct lookout_cloud azure_cloud;

/**
 * azure_read(ledger, text, length, name, incarnation):
 * Tell ${ledger} what the document says of the machine ${name}; set
 * *${incarnation} to its number.  When ${incarnation} was 0 or more and the
 * document's is lower, nothing is told: it is an older answer that came late.
 * Return 0, or -1 when it is no such document.
 */
int azure_read(struct ledger *ledger, const char *text, size_t length,
    const char *name, int64_t *incarnation);

/* An EventId is a UUID. */
#define AZURE_EVENT_SIZE 80

/**
 * azure_is_ours_alone(text, length, name, id, event):
 * Whether the event that the ledger calls ${id} names the machine ${name} and
 * no other; its EventId is then written into ${event}.
 */
bool azure_is_ours_alone(const char *text, size_t length, const char *name,
    const char *id, char event[AZURE_EVENT_SIZE]);

#endif
