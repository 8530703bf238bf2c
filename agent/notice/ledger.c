#include "notice/ledger.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "notice/outbox.h"
#include "notice/wall_time.h"

/* More notices about one machine at a time are nonsense. */
#define ENTRIES 32

#define OUTLIVED (60 * CLOCK_SECOND)

/* Less than that is the resolution of what clouds state. */
#define EARLIER (500 * CLOCK_MILLISECOND)

struct entry {
	bool used;
	bool there;		/* in the document that is being read */
	bool doubtful;		/* told before a freeze */
	int document;
	struct timespec when;	/* as stated; meaningless without that */
	struct notice notice;	/* as told last */
};

struct ledger {
	struct outbox *outbox;
	int document;
	struct entry entries[ENTRIES];
};

struct ledger *
ledger_new(struct outbox *outbox, struct error *error)
{
	struct ledger *ledger = calloc(1, sizeof(*ledger));

	if (ledger == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	ledger->outbox = outbox;
	return ledger;
}

void
ledger_free(struct ledger *ledger)
{
	free(ledger);
}

void
ledger_begin(struct ledger *ledger, int document)
{
	ledger->document = document;
	for (int i = 0; i < ENTRIES; i++)
		ledger->entries[i].there = false;
}

/* Copy what fits, with '?' for all that is not plain ASCII. */
static void
copy(char *to, size_t size, const char *from)
{
	size_t i;

	for (i = 0; i + 1 < size && from[i] != '\0'; i++)
		to[i] = from[i] < 0x20 || from[i] > 0x7e ? '?' : from[i];
	to[i] = '\0';
}

static struct entry *
find(struct ledger *ledger, const char *id)
{
	for (int i = 0; i < ENTRIES; i++)
		if (ledger->entries[i].used &&
		    strcmp(ledger->entries[i].notice.id, id) == 0)
			return &ledger->entries[i];
	return NULL;
}

/* A free place, else that of the least urgent; never NULL. */
static struct entry *
find_place(struct ledger *ledger)
{
	struct entry *least = NULL;

	for (int i = 0; i < ENTRIES; i++) {
		struct entry *entry = &ledger->entries[i];

		if (!entry->used)
			return entry;
		if (least == NULL || (entry->notice.kind == NOTICE_HINT &&
		    least->notice.kind == NOTICE_DEADLINE) ||
		    (entry->notice.kind == least->notice.kind &&
		    entry->notice.deadline > least->notice.deadline))
			least = entry;
	}
	return least;
}

static void
fill(struct notice *notice, const struct ledger_word *word)
{
	*notice = (struct notice){ .kind = word->kind,
	    .survives = word->survives };
	copy(notice->source, sizeof(notice->source), word->source);
	copy(notice->id, sizeof(notice->id), word->id);
	copy(notice->reason, sizeof(notice->reason), word->reason);
	if (word->kind != NOTICE_DEADLINE)
		return;
	notice->stated = word->stated != NULL;
	notice->deadline = word->stated != NULL ?
	    wall_time_deadline(*word->stated) :
	    clock_monotonic() + word->usual;
}

/* What is refused now is not noted, so that the next poll offers it again. */
static void
note(struct ledger *ledger, struct entry *entry, const struct notice *notice,
    const struct ledger_word *word)
{
	if (outbox_put(ledger->outbox, notice) != 0)
		return;
	*entry = (struct entry){ .used = true, .there = true,
	    .document = ledger->document, .notice = *notice };
	if (word->stated != NULL)
		entry->when = *word->stated;
}

static bool
withdraw(struct ledger *ledger, struct entry *entry)
{
	struct notice notice = entry->notice;

	notice.kind = NOTICE_WITHDRAWN;
	if (outbox_put(ledger->outbox, &notice) != 0)
		return false;
	entry->used = false;
	return true;
}

static bool
says_the_same_time(const struct entry *entry, const struct ledger_word *word)
{
	if (entry->notice.stated != (word->stated != NULL))
		return false;
	return word->stated == NULL ||
	    (entry->when.tv_sec == word->stated->tv_sec &&
	    entry->when.tv_nsec == word->stated->tv_nsec);
}

static void
tell_again(struct ledger *ledger, struct entry *entry,
    const struct notice *notice, const struct ledger_word *word)
{
	bool doubtful = entry->doubtful;

	entry->there = true;
	if (notice->kind == NOTICE_HINT && entry->notice.kind == NOTICE_HINT)
		return;
	if (notice->kind == NOTICE_DEADLINE &&
	    entry->notice.kind == NOTICE_HINT) {
		note(ledger, entry, notice, word);
		return;
	}
	if (word->stated != NULL && says_the_same_time(entry, word))
		return;

	/* A deadline that moved so far away that it is a hint again. */
	if (notice->kind == NOTICE_HINT) {
		if (withdraw(ledger, entry))
			note(ledger, entry, notice, word);
		return;
	}
	if (word->stated == NULL && !entry->notice.stated)
		return;
	if (doubtful || notice->deadline + EARLIER < entry->notice.deadline)
		note(ledger, entry, notice, word);
}

void
ledger_tell(struct ledger *ledger, const struct ledger_word *word)
{
	struct notice notice;
	struct entry *entry;

	assert(word->kind == NOTICE_HINT || word->kind == NOTICE_DEADLINE);
	fill(&notice, word);
	entry = find(ledger, notice.id);
	if (entry != NULL) {
		tell_again(ledger, entry, &notice, word);
		return;
	}
	entry = find_place(ledger);
	if (!entry->used || (notice.kind == NOTICE_DEADLINE &&
	    (entry->notice.kind == NOTICE_HINT ||
	    notice.deadline < entry->notice.deadline)))
		note(ledger, entry, &notice, word);
}

void
ledger_end(struct ledger *ledger, bool may_be_withdrawn)
{
	uint64_t now = clock_monotonic();

	for (int i = 0; i < ENTRIES; i++) {
		struct entry *entry = &ledger->entries[i];

		if (!entry->used || entry->there ||
		    entry->document != ledger->document)
			continue;
		if (entry->notice.kind == NOTICE_HINT || may_be_withdrawn ||
		    entry->doubtful ||
		    now >= entry->notice.deadline + OUTLIVED)
			withdraw(ledger, entry);
	}
}

bool
ledger_holds(const struct ledger *ledger, const char *id)
{
	for (int i = 0; i < ENTRIES; i++)
		if (ledger->entries[i].used &&
		    strcmp(ledger->entries[i].notice.id, id) == 0)
			return true;
	return false;
}

void
ledger_doubt(struct ledger *ledger)
{
	for (int i = 0; i < ENTRIES; i++)
		ledger->entries[i].doubtful = ledger->entries[i].used;
}
