#include "move/upload.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "format/cutter.h"
#include "format/format.h"
#include "store/manifest.h"
#include "store/writer.h"
#include "move/around.h"
#include "move/description.h"
#include "move/files.h"
#include "move/intake.h"
#include "move/sender.h"

/* One upload, from its attempt number to its commit. */
struct work {
	struct upload *upload;
	struct upload_outcome *outcome;
	uint64_t attempt;
	uint64_t target;
	struct files *files;
	struct sender *sender;
	struct intake *intake;
	struct around *around;
	struct sender_extents *extents;	/* of each entry */
	struct format_report *reports;	/* of each entry */
	struct manifest *manifest;
};

/* Freeze the files first, when asked and possible. */
static int
take_snapshot(struct work *work, struct error *error)
{
	struct upload *upload = work->upload;
	struct error trouble = ERROR_INIT;
	const char *how;

	if (upload->snapshot != UPLOAD_SNAPSHOT)
		return 0;
	if (files_snapshot(work->files, upload->spool, &upload->cancel, &how,
	    &trouble) == 0) {
		strncpy(work->outcome->snapshot, how,
		    sizeof(work->outcome->snapshot) - 1);
		return 0;
	}
	if (trouble.cause == CAUSE_CHANGED || trouble.cause == CAUSE_CANCELLED) {
		*error = trouble;
		return -1;
	}
	error_prefix(&trouble, "%s is read in place, no snapshot can be made",
	    upload->checkpoint->name);
	log_failure(LOG_WARNING, "no_snapshot", &trouble);
	return 0;
}

static int
prepare(struct work *work, struct error *error)
{
	struct upload *upload = work->upload;
	const struct checkpoint *checkpoint = upload->checkpoint;
	size_t count = checkpoint->entry_count;

	work->target = writer_target(upload->writer);
	if (work->target == 0)
		work->target = cutter_target(checkpoint->size);
	work->extents = calloc(count + 1, sizeof(*work->extents));
	work->reports = calloc(count + 1, sizeof(*work->reports));
	if (work->extents == NULL || work->reports == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	work->files = files_open(upload->folder, checkpoint->entries, count,
	    FILES_FIXED, error);
	if (work->files == NULL || take_snapshot(work, error) == -1 ||
	    (work->around = around_new(upload, error)) == NULL)
		return -1;
	work->sender = sender_new(upload, work->attempt, work->target, error);
	if (work->sender == NULL)
		return -1;
	work->intake = intake_new(work->sender, work->target, error);
	return work->intake == NULL ? -1 : 0;
}

/* Each byte of the checkpoint once. */
static int
read_files(struct work *work, struct error *error)
{
	const struct checkpoint *checkpoint = work->upload->checkpoint;
	const struct checkpoint_entry *entry;
	size_t i;

	for (i = 0; i < checkpoint->entry_count; i++) {
		entry = &checkpoint->entries[i];
		if (entry->kind != ENTRY_FILE || entry->same_as != i)
			continue;
		if (format_inspect(files_source(work->files, i), entry->path,
		    &work->reports[i], error) == -1 ||
		    intake_file(work->intake, work->files, i,
		    &work->reports[i], &work->extents[i], error) == -1)
			return -1;
	}
	return 0;
}

/* Whether exactly this is durable already; then nothing was sent. */
static int
find_known(struct work *work, struct error *error)
{
	struct manifest *manifest;
	int result = -1;

	if (sender_is_fresh(work->sender))
		return 0;
	if (files_check_all(work->files, error) == -1)
		return -1;
	manifest = description_new(work->upload, work->extents, work->target,
	    error);
	if (manifest == NULL)
		return -1;
	if (sender_chunks(work->sender, manifest, error) == 0) {
		work->outcome->manifest = writer_known(work->upload->writer,
		    manifest);
		work->outcome->known = work->outcome->manifest != NULL;
		result = 0;
	}
	manifest_free(manifest);
	return result;
}

/* What lies around it now, and then everything stored. */
static int
finish_sending(struct work *work, struct error *error)
{
	if (around_take(work->around, error) == -1 ||
	    around_read_pointers(work->around, work->sender, error) == -1 ||
	    sender_flush(work->sender, SENDER_CHECKPOINT, error) == -1 ||
	    around_read_companions(work->around, work->intake, work->sender,
	    error) == -1 ||
	    sender_flush(work->sender, SENDER_COMPANIONS, error) == -1 ||
	    sender_wait(work->sender, error) == -1)
		return -1;
	/* Only now is it certain that no byte of the checkpoint moved. */
	return files_check_all(work->files, error);
}

static int
describe(struct work *work, struct error *error)
{
	size_t i;

	work->manifest = description_new(work->upload, work->extents,
	    work->target, error);
	if (work->manifest == NULL)
		return -1;
	for (i = 0; i < work->upload->checkpoint->entry_count; i++)
		if (description_records(work->manifest, i, &work->reports[i],
		    error) == -1)
			return -1;
	if (around_describe(work->around, work->sender, work->manifest,
	    error) == -1)
		return -1;
	sender_totals(work->sender, &work->manifest->new_size,
	    &work->outcome->reused_bytes);
	return sender_chunks(work->sender, work->manifest, error);
}

static int
commit(struct work *work, struct error *error)
{
	struct upload *upload = work->upload;
	uint64_t deadline = upload->deadline;

	if (sender_check(work->sender, error) == -1)
		return -1;
	if (writer_commit(upload->writer, work->attempt, work->manifest,
	    around_directory(work->around),
	    deadline != 0 ? deadline : CLOCK_NEVER, error) == -1)
		return -1;
	work->outcome->manifest = work->manifest;
	work->manifest = NULL;
	return 0;
}

static int
perform(struct work *work, struct error *error)
{
	if (prepare(work, error) == -1 || read_files(work, error) == -1 ||
	    find_known(work, error) == -1)
		return -1;
	if (work->outcome->known)
		return 0;
	if (finish_sending(work, error) == -1 || describe(work, error) == -1)
		return -1;
	return commit(work, error);
}

/* Let every request end.  What is on its way is not worth waiting for when it
 * is wrong or unwanted; behind a passing fault it is, since then it is not
 * sent again. */
static void
end_requests(struct work *work, bool failed, const struct error *error)
{
	if (work->sender == NULL)
		return;
	sender_end(work->sender, failed && (error->cause == CAUSE_CHANGED ||
	    error->cause == CAUSE_CANCELLED));
	sender_totals(work->sender, &work->outcome->new_bytes,
	    &work->outcome->reused_bytes);
}

static void
clean_up(struct work *work)
{
	size_t i;

	sender_free(work->sender);
	intake_free(work->intake);
	around_free(work->around);
	files_free(work->files);
	for (i = 0; i < work->upload->checkpoint->entry_count; i++) {
		if (work->extents != NULL)
			free(work->extents[i].all);
		if (work->reports != NULL)
			format_report_free(&work->reports[i]);
	}
	free(work->extents);
	free(work->reports);
	manifest_free(work->manifest);
}

int
upload_run(struct upload *upload, struct upload_outcome *outcome,
    struct error *error)
{
	struct work work = { .upload = upload, .outcome = outcome };
	uint64_t started = clock_monotonic();
	int result;

	assert(upload->checkpoint->state == CHECKPOINT_COMPLETE);
	memset(outcome, 0, sizeof(*outcome));
	upload->progress.done = 0;
	upload->progress.moved = 0;
	upload->progress.reused = 0;
	upload->progress.total = upload->checkpoint->size;
	upload->progress.started = started;
	work.attempt = writer_begin(upload->writer);
	result = perform(&work, error);
	end_requests(&work, result == -1, error);
	if (result == -1 || outcome->known)
		writer_end(upload->writer, work.attempt);
	clean_up(&work);
	outcome->took = clock_monotonic() - started;
	return result;
}
