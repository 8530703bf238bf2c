#include "cmd/subject.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cmd/options.h"
#include "format/checkpoint.h"
#include "move/files.h"
#include "move/match.h"
#include "move/remote_file.h"
#include "store/backend.h"
#include "store/remote.h"
#include "store/truth.h"

const char *
subject_path(const char *name, bool folder, const char *path)
{
	size_t length = strlen(name);
	const char *slash = strrchr(name, '/');

	if (folder && strncmp(path, name, length) == 0 && path[length] == '/')
		return path + length + 1;
	length = slash == NULL ? 0 : (size_t)(slash + 1 - name);
	if (strncmp(path, name, length) == 0)
		return path + length;
	return path;
}

static const struct manifest *
choose(const struct truth *truth, const struct options *options,
    enum subject_choice *choice, struct error *error)
{
	const struct manifest *final = truth_final(truth);
	const struct manifest *best = truth_best(truth);
	bool any = !options->best && !options->latest;

	*choice = SUBJECT_ASKED;
	if (options->checkpoint != NULL)
		return truth_find(truth, options->checkpoint, error);
	*choice = SUBJECT_FINAL;
	if (any && final != NULL)
		return final;
	*choice = SUBJECT_BEST;
	if (!options->latest && best != NULL)
		return best;
	*choice = SUBJECT_RESUME;
	if (!options->best && (truth->resume_lost ||
	    truth->resume != SIZE_MAX))
		return truth_resume(truth, error);
	error_set(error, ERROR_NOTHING, CAUSE_NOT_FOUND,
	    options->settings.url, "the remote holds no %s",
	    options->best ? "checkpoint whose name says that it is the best" :
	    "resume point");
	return NULL;
}

static bool
is_folder(const struct manifest *manifest)
{
	size_t i;

	for (i = 0; i < manifest->entry_count; i++)
		if (manifest->entries[i].kind == MANIFEST_FOLDER &&
		    strcmp(manifest->entries[i].path, manifest->name) == 0)
			return true;
	return false;
}

/* Every file and hard link of the manifest. */
static int
add_files(struct subject *subject, struct error *error)
{
	const struct manifest *manifest = subject->manifest;
	const struct manifest_entry *entry, *content;
	bool folder = is_folder(manifest);
	size_t i, number;

	subject->files = calloc(manifest->entry_count + 1,
	    sizeof(*subject->files));
	subject->entries = calloc(manifest->entry_count + 1,
	    sizeof(*subject->entries));
	if (subject->files == NULL || subject->entries == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	for (i = 0; i < manifest->entry_count; i++) {
		entry = &manifest->entries[i];
		content = match_content(manifest, entry);
		if (content == NULL)
			continue;
		number = (size_t)(content - manifest->entries);
		subject->entries[subject->count] = number;
		subject->files[subject->count++] = (struct model_file){
			.path = subject_path(manifest->name, folder,
			    entry->path),
			.source = remote_file_source(subject->set, number)
		};
	}
	subject->folder = folder || subject->count > 1;
	subject->size = manifest->size;
	return 0;
}

static int
open_remote(struct subject *subject, const struct options *options,
    struct error *error)
{
	subject->backend = remote_open(options->settings.url,
	    &options->settings.remote, false, error);
	if (subject->backend == NULL)
		return -1;
	if (remote_check(subject->backend, error) != 0)
		return -1;
	subject->truth = truth_read_any(subject->backend, 0, error);
	if (subject->truth == NULL)
		return -1;
	subject->manifest = choose(subject->truth, options, &subject->choice,
	    error);
	if (subject->manifest == NULL)
		return -1;
	subject->name = strdup(subject->manifest->name);
	if (subject->name == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	subject->set = remote_file_set_new(subject->backend,
	    subject->manifest, &subject->cancel, &subject->fetched, error);
	return subject->set == NULL ? -1 : add_files(subject, error);
}

int
subject_open(struct subject *subject, const struct options *options,
    struct error *error)
{
	memset(subject, 0, sizeof(*subject));
	subject->at = -1;
	if (options->input != NULL)
		return subject_open_local(subject, options, error);
	return open_remote(subject, options, error);
}

int
subject_check(const void *context, struct error *error)
{
	const struct subject *subject = context;

	if (subject->open == NULL)
		return 0;
	return files_check_all(subject->open, error);
}

void
subject_weights(const struct subject *subject, struct weights *weights)
{
	weights->files = subject->files;
	weights->count = subject->count;
	weights->backend = subject->backend;
	weights->manifest = subject->manifest;
	weights->entries = subject->entries;
	weights->set = subject->set;
	weights->check = subject_check;
	weights->check_context = subject;
}

void
subject_close(struct subject *subject)
{
	remote_file_set_free(subject->set);
	truth_free(subject->truth);
	backend_free(subject->backend);
	files_free(subject->open);
	checkpoint_free(subject->local);
	if (subject->at >= 0)
		close(subject->at);
	free(subject->files);
	free(subject->entries);
	free(subject->name);
	memset(subject, 0, sizeof(*subject));
	subject->at = -1;
}
