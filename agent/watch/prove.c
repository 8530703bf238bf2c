#include "watch/prove.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/source.h"
#include "watch/lease.h"
#include "watch/map.h"
#include "watch/pattern.h"
#include "watch/rule.h"
#include "watch/tree.h"
#include "watch/view.h"

/*
 * Times of other machines are believed when they lie so far back that no
 * sane clock could be that wrong.
 */
#define CLOCK_DOUBT (UINT64_C(600) * CLOCK_SECOND)

/* What became of the look at one unit. */
struct look {
	struct prover *prover;
	const struct unit *unit;
	struct checkpoint *checkpoint;
	uint64_t wait;		/* until the last file has been quiet enough */
	uint64_t unsure;	/* the same, for a writer that cannot be seen */
	size_t files;
	size_t whole;		/* files proven, JSON aside */
	size_t unproven;	/* files of weights that nothing proves */
	char hollow[160];	/* which bytes of which file nobody wrote */
	char torn[256];		/* why, when one is */
	char waiting[256];	/* why nothing can be said now */
	uint64_t again;		/* and when to look again */
	bool unreadable;	/* because the system does not let us */
	bool unfinished;	/* because a part is missing */
};

static int
no_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory while looking at checkpoints");
}

static void __attribute__((format(printf, 3, 4)))
look_wait(struct look *look, uint64_t again, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(look->waiting, sizeof(look->waiting), format, list);
	va_end(list);
	look->again = again;
}

static int
proof_compare(const void *a, const void *b)
{
	return strcmp(((const struct proof *)a)->path,
	    ((const struct proof *)b)->path);
}

/* Open the book for ${node}: what is known of it, or a new page. */
static struct proof *
proof_open(struct prover *prover, const struct tree_node *node,
    struct error *error)
{
	struct proof key = { .path = node->path }, *larger, *proof;
	const struct proof *known = NULL;

	if (prover->known_count > 0)
		known = bsearch(&key, prover->known, prover->known_count,
		    sizeof(key), proof_compare);
	if ((prover->proof_count & (prover->proof_count - 1)) == 0) {
		larger = realloc(prover->proofs, (prover->proof_count > 0 ?
		    prover->proof_count * 2 : 1) * sizeof(*larger));
		if (larger == NULL) {
			no_memory(error);
			return NULL;
		}
		prover->proofs = larger;
	}
	proof = &prover->proofs[prover->proof_count];
	if (known != NULL && identity_same(&known->identity, &node->identity))
		*proof = *known;
	else
		*proof = (struct proof){ .identity = node->identity,
		    .seen = prover->now };
	proof->path = strdup(node->path);
	if (proof->reason != NULL)
		proof->reason = strdup(proof->reason);
	prover->proof_count++;
	if (proof->path == NULL || (proof->inspected &&
	    known->reason != NULL && proof->reason == NULL)) {
		no_memory(error);
		return NULL;
	}
	return proof;
}

static uint64_t
option_or(uint64_t option, uint64_t otherwise)
{
	return option != 0 ? option : otherwise;
}

/* How long ${node} has not changed, as far as that is certain. */
static uint64_t
quiet_time(const struct prover *prover, const struct tree_node *node,
    const struct proof *proof)
{
	uint64_t quiet = prover->now - proof->seen, age;
	const struct timespec *then = &node->identity.changed;
	const struct timespec *now = &prover->wall;

	if (now->tv_sec < then->tv_sec || (now->tv_sec == then->tv_sec &&
	    now->tv_nsec < then->tv_nsec))
		return quiet;
	if (now->tv_sec - then->tv_sec > 1000000000)
		return UINT64_MAX;
	age = (uint64_t)(now->tv_sec - then->tv_sec) * CLOCK_SECOND +
	    (uint64_t)now->tv_nsec - (uint64_t)then->tv_nsec;
	if (node->remote && age < CLOCK_DOUBT)
		return quiet;
	return age > quiet ? age : quiet;
}

/*
 * Ask that ${node} has been quiet for ${wanted}.  Return how long that still
 * takes.
 */
static uint64_t
ask_quiet(struct look *look, const struct tree_node *node,
    const struct proof *proof, uint64_t wanted)
{
	uint64_t quiet = quiet_time(look->prover, node, proof);
	uint64_t left = quiet < wanted ? wanted - quiet : 0;

	if (left > look->wait)
		look->wait = left;
	return left;
}

static bool
is_same_file(int fd, const struct identity *identity)
{
	struct stat status;
	struct identity now;

	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
		return false;
	now = identity_of(&status);
	return identity_same(&now, identity);
}

/*
 * Look into the open file.  Return 0; -1 when memory ran out.  What cannot be
 * read now is left uninspected.
 */
static int
inspect(struct look *look, int fd, const struct tree_node *node,
    struct proof *proof, struct error *error)
{
	struct source_file file = { .fd = fd, .name = node->path };
	struct source source = source_from_file(&file, node->identity.size);
	struct format_report report = { 0 };
	struct error failure = ERROR_INIT;

	if (format_inspect(&source, node->path, &report, &failure) != 0) {
		if (failure.cause == CAUSE_MEMORY) {
			*error = failure;
			return -1;
		}
		look_wait(look, PROVE_AGAIN_WRITTEN, "%.100s cannot be read: "
		    "%.100s", node->path, failure.message);
		look->unreadable = true;
		return 0;
	}
	if (!is_same_file(fd, &node->identity)) {
		look_wait(look, PROVE_AGAIN_CHANGED,
		    "%.200s changed while it was read", node->path);
	} else {
		proof->inspected = true;
		proof->kind = report.kind;
		proof->verdict = report.verdict;
		proof->hollow = report.hollow;
		proof->reason = strdup(report.reason);
	}
	format_report_free(&report);
	return proof->inspected && proof->reason == NULL ? no_memory(error) : 0;
}

/* See whether anybody writes ${node}, and what is in it. */
static int
open_file(struct look *look, const struct tree_node *node,
    struct proof *proof, struct error *error)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	int fd = openat(look->prover->map->tree->folder, node->path,
	    node->follow ? flags : flags | O_NOFOLLOW);
	enum lease_answer lease;
	int result = 0;

	if (fd == -1 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP) {
		look_wait(look, PROVE_SETTLE_KNOWN,
		    "%.150s cannot be opened: %m", node->path);
		look->unreadable = true;
		return 0;
	}
	if (fd == -1 || !is_same_file(fd, &node->identity)) {
		look_wait(look, PROVE_AGAIN_CHANGED,
		    "%.200s changed while it was looked at", node->path);
		goto done;
	}
	lease = node->remote ? LEASE_UNKNOWN : lease_look(fd);
	if (lease == LEASE_WRITTEN) {
		look_wait(look, PROVE_AGAIN_WRITTEN,
		    "%.200s is being written", node->path);
		goto done;
	}
	if (lease == LEASE_UNKNOWN)
		look->prover->leases = false;
	proof->free = lease == LEASE_FREE;
	if (!proof->inspected)
		result = inspect(look, fd, node, proof, error);
done:
	if (fd != -1)
		close(fd);
	return result;
}

/* DCP writes no empty file; object stores mounted as folders leave some
 * (pytorch/xla#7919). */
static bool
is_empty_distcp(const struct tree_node *node)
{
	return node->identity.size == 0 &&
	    pattern_matches("*.distcp", node->base);
}

static void
count_file(struct look *look, const struct tree_node *node,
    const struct proof *proof)
{
	const struct view_options *options = look->prover->options;
	uint64_t left = 0;

	look->files++;
	if (!proof->free)
		left = ask_quiet(look, node, proof,
		    option_or(options->settle_known, PROVE_SETTLE_KNOWN));
	if (left > look->unsure)
		look->unsure = left;
	if (proof->verdict == FORMAT_TORN || is_empty_distcp(node)) {
		if (look->torn[0] == '\0')
			snprintf(look->torn, sizeof(look->torn),
			    "%.100s: %.140s", node->path,
			    proof->verdict == FORMAT_TORN ? proof->reason :
			    "it is empty");
	} else if (proof->verdict == FORMAT_WHOLE) {
		look->whole += proof->kind != FORMAT_JSON;
	} else {
		look->unproven += layout_is_weights(node->base);
		if (proof->hollow && look->hollow[0] == '\0')
			snprintf(look->hollow, sizeof(look->hollow),
			    "%.80s: %.70s", node->path, proof->reason);
		ask_quiet(look, node, proof,
		    option_or(options->settle_unknown,
		    PROVE_SETTLE_UNKNOWN));
	}
}

/* Look at all files of the unit; stops at one that is being written. */
static int
look_at_files(struct look *look, uint64_t settle, struct error *error)
{
	struct prover *prover = look->prover;
	const struct tree_node *nodes = prover->map->tree->nodes;

	for (size_t i = 0; i < look->unit->count; i++) {
		const struct tree_node *node = &nodes[look->unit->nodes[i]];
		struct proof *proof = proof_open(prover, node, error);

		if (proof == NULL)
			return -1;
		ask_quiet(look, node, proof, settle);
		if (node->kind != TREE_FILE || look->waiting[0] != '\0')
			continue;
		if ((!proof->inspected || !proof->free) &&
		    open_file(look, node, proof, error) != 0)
			return -1;
		if (look->waiting[0] == '\0')
			count_file(look, node, proof);
	}
	return 0;
}

struct shard_look {
	const struct tree *tree;
	size_t folder;
	char missing[128];
};

static int
visit_shard(void *context, const char *name, struct error *error)
{
	struct shard_look *shards = context;

	(void)error;
	if (tree_child(shards->tree, shards->folder, name) == SIZE_MAX &&
	    shards->missing[0] == '\0')
		snprintf(shards->missing, sizeof(shards->missing), "%s", name);
	return 0;
}

/* Every shard that an index of the unit names must be there. */
static void
look_at_index(struct look *look, const struct tree_node *node)
{
	const struct tree *tree = look->prover->map->tree;
	struct shard_look shards = { .tree = tree, .folder = node->parent };
	struct error error;
	struct source_file file = { .name = node->path };
	struct source source;

	file.fd = openat(tree->folder, node->path,
	    O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file.fd == -1)
		return;		/* the last look sees that it has gone */
	source = source_from_file(&file, node->identity.size);
	if (format_index_shards(&source, visit_shard, &shards, &error) == 0 &&
	    shards.missing[0] != '\0') {
		look_wait(look, CLOCK_NEVER, "%.100s, which %.100s names, is "
		    "missing", shards.missing, node->path);
		look->unfinished = true;
	}
	close(file.fd);
}

static void
look_at_indexes(struct look *look)
{
	const struct tree_node *nodes = look->prover->map->tree->nodes;

	for (size_t i = 0; i < look->unit->count; i++) {
		const struct tree_node *node = &nodes[look->unit->nodes[i]];

		if (look->waiting[0] == '\0' && node->kind == TREE_FILE &&
		    pattern_matches("*.index.json", node->base))
			look_at_index(look, node);
	}
}

/* Whether all is still as it was before the reading (DESIGN 6.4). */
static void
look_again(struct look *look)
{
	const struct tree *tree = look->prover->map->tree;

	for (size_t i = 0; i < look->unit->count; i++) {
		const struct tree_node *node =
		    &tree->nodes[look->unit->nodes[i]];
		struct identity now;
		struct stat status;

		if (fstatat(tree->folder, node->path, &status,
		    node->follow ? 0 : AT_SYMLINK_NOFOLLOW) == 0) {
			now = identity_of(&status);
			if (identity_same(&now, &node->identity))
				continue;
		}
		look_wait(look, PROVE_AGAIN_CHANGED,
		    "%.200s changed while it was read", node->path);
		return;
	}
}

static void
conclude_waiting(struct look *look, const char *reason, uint64_t again)
{
	struct checkpoint *checkpoint = look->checkpoint;
	struct prover *prover = look->prover;

	checkpoint->state = CHECKPOINT_WAITING;
	checkpoint->unreadable = look->unreadable;
	checkpoint->unfinished = look->unfinished || look->torn[0] != '\0';
	snprintf(checkpoint->reason, sizeof(checkpoint->reason), "%s", reason);
	if (again != CLOCK_NEVER && prover->now + again < prover->check_again)
		prover->check_again = prover->now + again;
}

static void
conclude_complete(struct look *look, const struct rule *rule)
{
	struct checkpoint *checkpoint = look->checkpoint;
	const struct proof *last =
	    &look->prover->proofs[look->prover->proof_count - 1];

	checkpoint->state = CHECKPOINT_COMPLETE;
	/* A trainer's marker says that it wrote, not that this disk has it. */
	checkpoint->hollow = look->hollow[0] != '\0';
	checkpoint->proven = !checkpoint->hollow && (rule->proves ||
	    (look->whole > 0 && look->unproven == 0));
	if (look->unit->count == 1 && last->reason != NULL)
		snprintf(checkpoint->reason, sizeof(checkpoint->reason),
		    "%s: %.200s", format_kind_text(last->kind), last->reason);
	else
		snprintf(checkpoint->reason, sizeof(checkpoint->reason),
		    "%zu files, %zu proven whole by their structure%s%s%s",
		    look->files, look->whole, rule->proves ?
		    ", and the trainer's own marker" : "",
		    checkpoint->hollow ? "; " : "", look->hollow);
}

/* How long the row wants nothing of the unit to change. */
static uint64_t
settle_of(const struct view_options *options, const struct rule *rule)
{
	if (rule->settle == SETTLE_MARKER)
		return option_or(options->settle_marker, PROVE_SETTLE_MARKER);
	if (rule->settle == SETTLE_KNOWN)
		return option_or(options->settle_known, PROVE_SETTLE_KNOWN);
	return 0;
}

int
prove_unit(struct prover *prover, size_t unit, struct checkpoint *checkpoint,
    struct error *error)
{
	struct look look = { .prover = prover, .checkpoint = checkpoint,
	    .unit = &prover->map->units[unit] };
	struct rule rule = rule_check(prover->map, unit);

	if (look_at_files(&look, settle_of(prover->options, &rule), error) != 0)
		return -1;
	if (look.waiting[0] != '\0') {
		conclude_waiting(&look, look.waiting, look.again);
		return 0;
	}
	if (!rule.met) {
		look.unfinished = true;
		conclude_waiting(&look, rule.reason, CLOCK_NEVER);
		return 0;
	}
	look_at_indexes(&look);
	/* Torn is torn however short it lies there, unless somebody who cannot
	 * be seen may still be writing. */
	if (look.waiting[0] == '\0' && look.torn[0] == '\0' && look.wait > 0)
		look_wait(&look, look.wait,
		    "waits until it has been quiet long enough");
	else if (look.waiting[0] == '\0' && look.unsure > 0)
		look_wait(&look, look.unsure, "not whole so far: %.200s",
		    look.torn);
	if (look.waiting[0] == '\0')
		look_again(&look);
	if (look.waiting[0] != '\0') {
		conclude_waiting(&look, look.waiting, look.again);
	} else if (look.torn[0] != '\0') {
		checkpoint->state = CHECKPOINT_TORN;
		memcpy(checkpoint->reason, look.torn, sizeof(look.torn));
	} else {
		conclude_complete(&look, &rule);
	}
	return 0;
}

int
prove_keep(struct prover *prover, size_t unit, struct error *error)
{
	const struct unit *kept = &prover->map->units[unit];

	for (size_t i = 0; i < kept->count; i++) {
		if (proof_open(prover, &prover->map->tree->nodes[
		    kept->nodes[i]], error) == NULL)
			return -1;
	}
	return 0;
}

void
prove_end(struct prover *prover)
{
	if (prover->proof_count > 0)
		qsort(prover->proofs, prover->proof_count,
		    sizeof(*prover->proofs), proof_compare);
}

void
prove_free(struct proof *proofs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(proofs[i].path);
		free(proofs[i].reason);
	}
	free(proofs);
}
