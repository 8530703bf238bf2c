#include "cmd/weights_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/path.h"
#include "cmd/options.h"
#include "cmd/spectacle.h"
#include "format/checkpoint.h"
#include "move/restore.h"
#include "move/weights.h"
#include "store/manifest.h"

/*
 * A directory on its way: it is made beside OUT under a name of its own, and
 * then takes OUT's place.
 */
struct folder {
	struct weights_work *work;
	struct error *error;
	char *staging;
	char *made;		/* what OUT will be, in the staging */
	const char **paths;	/* of what is chosen, in the checkpoint's
				 * directory */
	char **globs;		/* the same for a restore */
	struct restore restore;
	struct restore_plan plan;
};

static int
out_of_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory");
}

static int
choose(struct folder *folder, const char *path, const char *inside)
{
	struct weights_work *work = folder->work;

	folder->paths[work->file_count] = path;
	work->files[work->file_count] = strdup(inside);
	if (work->files[work->file_count] == NULL)
		return out_of_memory(folder->error);
	work->file_count++;
	return 0;
}

/* The files that are weights, by their names. */
static int
choose_files(struct folder *folder)
{
	struct weights_work *work = folder->work;
	const struct manifest *manifest = work->subject.manifest;
	const struct checkpoint *local = work->subject.local;
	size_t i, count;
	const char *path, *inside;

	count = manifest != NULL ? manifest->entry_count : local->entry_count;
	folder->paths = calloc(count + 1, sizeof(*folder->paths));
	work->files = calloc(count + 1, sizeof(*work->files));
	if (folder->paths == NULL || work->files == NULL)
		return out_of_memory(folder->error);
	for (i = 0; i < count; i++) {
		if (manifest != NULL ?
		    manifest->entries[i].kind == MANIFEST_FOLDER :
		    local->entries[i].kind != ENTRY_FILE)
			continue;
		path = manifest != NULL ? manifest->entries[i].path :
		    local->entries[i].path;
		inside = subject_path(manifest != NULL ? manifest->name :
		    local->name, true, path);
		if (model_choose_file(inside) &&
		    choose(folder, path, inside) == -1)
			return -1;
	}
	if (work->file_count == 0)
		return error_set(folder->error, ERROR_NOTHING,
		    CAUSE_NOT_FOUND, work->subject.name,
		    "none of its files is known to hold weights");
	return 0;
}

/* A glob that matches ${path} alone, bound to the top. */
static char *
make_glob(const char *path)
{
	char *glob = malloc(2 * strlen(path) + 2), *to = glob;

	if (glob == NULL)
		return NULL;
	*to++ = '/';
	for (; *path != '\0'; path++) {
		if (strchr("*?[]\\!", *path) != NULL)
			*to++ = '\\';
		*to++ = *path;
	}
	*to = '\0';
	return glob;
}

static int
make_globs(struct folder *folder)
{
	size_t i, count = folder->work->file_count;

	folder->globs = calloc(count + 1, sizeof(*folder->globs));
	if (folder->globs == NULL)
		return out_of_memory(folder->error);
	for (i = 0; i < count; i++)
		if ((folder->globs[i] = make_glob(folder->paths[i])) == NULL)
			return out_of_memory(folder->error);
	return 0;
}

/* Where it is made: ".ckptsync-weights-<name>" beside OUT, so that a run that
 * was cut is gone on with. */
static int
choose_places(struct folder *folder, const char *out)
{
	const struct subject *subject = &folder->work->subject;
	char *parent, *slash, *name;
	const char *inside, *path;

	parent = strdup(out);
	if (parent == NULL)
		return out_of_memory(folder->error);
	slash = strrchr(parent, '/');
	if (slash != NULL)
		slash[slash == parent] = '\0';
	if (asprintf(&name, ".ckptsync-weights-%s", path_base(out)) == -1)
		name = NULL;
	if (name != NULL)
		folder->staging = path_join(slash == NULL ? "" : parent, name);
	free(parent);
	free(name);
	if (folder->staging == NULL)
		return out_of_memory(folder->error);
	/* What is left of a chosen path before the part inside of it. */
	path = folder->paths[0];
	inside = folder->work->files[0];
	if (subject->manifest == NULL || strlen(inside) == strlen(path)) {
		folder->made = strdup(folder->staging);
	} else {
		char *above = strndup(path, strlen(path) - strlen(inside) - 1);

		if (above != NULL)
			folder->made = path_join(folder->staging, above);
		free(above);
	}
	return folder->made == NULL ? out_of_memory(folder->error) : 0;
}

/* OUT without slashes at its end. */
static char *
plain_out(const char *out)
{
	size_t length = strlen(out);

	while (length > 1 && out[length - 1] == '/')
		length--;
	return strndup(out, length);
}

static bool
is_empty(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	bool empty = folder != NULL;

	while (empty && (entry = readdir(folder)) != NULL)
		empty = strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0;
	if (folder != NULL)
		closedir(folder);
	return empty;
}

/* Without --force OUT is not there, or an empty directory. */
static int
check_out(const struct options *options, const char *out, bool *there,
    struct error *error)
{
	struct stat status;

	*there = false;
	if (lstat(out, &status) != 0)
		return errno == ENOENT ? 0 : error_set_errno(error, errno, out,
		    "cannot look at it");
	if (stat(out, &status) == 0 && S_ISDIR(status.st_mode)) {
		/* rename(2) takes the place of an empty one. */
		if (is_empty(out))
			return 0;
		*there = true;
		if (options->force)
			return 0;
	}
	error_set(error, ERROR_FAILED, CAUSE_EXISTS, out,
	    "it exists already");
	return error_cure(error, "--force replaces the files in it that are "
	    "brought");
}

static int
restore(void *context)
{
	struct folder *folder = context;

	return restore_run(&folder->restore, &folder->plan, folder->error);
}

/* The ordinary way back, for the chosen files alone. */
static int
fetch(struct folder *folder)
{
	struct weights_work *work = folder->work;
	const struct subject *subject = &work->subject;
	int result = 0;

	folder->restore.backend = subject->backend;
	folder->restore.truth = subject->truth;
	folder->restore.folder = folder->staging;
	folder->restore.wanted = &subject->manifest;
	folder->restore.wanted_count = 1;
	folder->restore.include = (const char *const *)folder->globs;
	folder->restore.include_count = work->file_count;
	folder->restore.force = true;
	if (restore_plan_make(&folder->restore, &folder->plan,
	    folder->error) == -1)
		return -1;
	work->out_bytes = folder->plan.total_bytes;
	work->fetch_bytes = folder->plan.fetch_bytes;
	if (!work->options->dry_run)
		result = spectacle_run(subject->name, work->options->quiet,
		    &folder->restore.progress, restore, folder,
		    folder->error);
	work->fetched += folder->restore.progress.moved;
	restore_plan_free(&folder->plan);
	return result;
}

static int
make_parents(const char *path, struct error *error)
{
	char *parent = strdup(path);
	int result;

	if (parent == NULL)
		return out_of_memory(error);
	*strrchr(parent, '/') = '\0';
	result = path_make_folders(parent, 0777, error);
	free(parent);
	return result;
}

/* One local file, its mode and time too. */
static int
copy_file(struct folder *folder, size_t number, size_t file,
    const struct checkpoint_entry *entry)
{
	struct weights_work *work = folder->work;
	struct weights weights = { .count = 0 };
	struct weights_plan plan;
	const struct model_part part = {
		.file = file, .length = entry->identity.size
	};
	const struct timespec times[2] = {
		entry->identity.modified, entry->identity.modified
	};
	char *path = path_join(folder->staging, work->files[number]);
	int result;

	if (path == NULL)
		return out_of_memory(folder->error);
	subject_weights(&work->subject, &weights);
	result = weights_plan_part(&weights, &part, &plan, folder->error);
	if (result == 0)
		result = make_parents(path, folder->error);
	if (result == 0)
		result = weights_run(&weights, &plan, path, true,
		    folder->error);
	weights_plan_free(&plan);
	if (result == 0) {
		if (entry->mode != 0)
			(void)chmod(path, entry->mode & 0777);
		(void)utimensat(AT_FDCWD, path, times, 0);
	}
	free(path);
	return result;
}

static int
copy_local(struct folder *folder)
{
	struct weights_work *work = folder->work;
	const struct subject *subject = &work->subject;
	const struct checkpoint_entry *entry;
	size_t i, number = 0;

	if (!work->options->dry_run && path_remove_tree(AT_FDCWD,
	    folder->staging, folder->error) == -1)
		return -1;
	for (i = 0; i < subject->count; i++) {
		entry = &subject->local->entries[subject->entries[i]];
		if (number == work->file_count ||
		    entry->path != folder->paths[number])
			continue;
		work->out_bytes += entry->identity.size;
		if (!work->options->dry_run &&
		    copy_file(folder, number, i, entry) == -1)
			return -1;
		number++;
	}
	return 0;
}

static bool
is_index(const char *name)
{
	return fnmatch("*.index.json", path_base(name), 0) == 0;
}

/* Into a directory that is there: each file by a rename, an index after what
 * it names. */
static int
put_files(struct folder *folder, const char *out)
{
	struct weights_work *work = folder->work;
	int index, result = 0;
	char *from, *to;
	size_t i;

	for (index = 0; index < 2; index++) {
		for (i = 0; i < work->file_count && result == 0; i++) {
			if (is_index(work->files[i]) != (index == 1))
				continue;
			from = path_join(folder->made, work->files[i]);
			to = path_join(out, work->files[i]);
			if (from == NULL || to == NULL)
				result = out_of_memory(folder->error);
			if (result == 0)
				result = make_parents(to, folder->error);
			if (result == 0 && rename(from, to) != 0)
				result = error_set_errno(folder->error, errno,
				    to, "cannot put it into place");
			free(from);
			free(to);
		}
	}
	return result;
}

static int
put(struct folder *folder, const char *out, bool there)
{
	char *parent;
	int result;

	if (there) {
		result = put_files(folder, out);
		if (result == 0)
			result = path_sync_folder(out, folder->error);
	} else if (rename(folder->made, out) != 0) {
		result = error_set_errno(folder->error, errno, out,
		    "cannot put it into place");
	} else {
		result = 0;
	}
	if (result == -1 || path_remove_tree(AT_FDCWD, folder->staging, folder->error) == -1)
		return -1;
	if ((parent = strdup(out)) == NULL)
		return out_of_memory(folder->error);
	if (strrchr(parent, '/') == NULL)
		strcpy(parent, ".");
	else
		strrchr(parent, '/')[strrchr(parent, '/') == parent] = '\0';
	result = path_sync_folder(parent[0] == '\0' ? "." : parent,
	    folder->error);
	free(parent);
	return result;
}

static int
bring(struct folder *folder, char *out)
{
	const struct options *options = folder->work->options;
	bool there = false;
	int result;

	if (choose_files(folder) == -1 || make_globs(folder) == -1 ||
	    choose_places(folder, out) == -1)
		return -1;
	if (!options->dry_run && check_out(options, out, &there,
	    folder->error) == -1)
		return -1;
	result = folder->work->subject.manifest != NULL ? fetch(folder) :
	    copy_local(folder);
	/* Nothing takes OUT's place that is not what it was read from. */
	if (result == 0)
		result = subject_check(&folder->work->subject, folder->error);
	if (result == 0 && !options->dry_run)
		result = put(folder, out, there);
	return result;
}

int
weights_folder(struct weights_work *work, struct error *error)
{
	struct folder folder = { .work = work, .error = error };
	const char *wanted = work->options->out;
	char *out = plain_out(wanted != NULL ? wanted : "weights");
	int result;
	size_t i;

	work->format = "files";
	if (out == NULL)
		return out_of_memory(error);
	result = bring(&folder, out);
	if (wanted != NULL)
		work->target = out;
	else
		free(out);
	for (i = 0; folder.globs != NULL && i < work->file_count; i++)
		free(folder.globs[i]);
	free(folder.globs);
	free(folder.paths);
	free(folder.staging);
	free(folder.made);
	return result;
}
