#include "cmd/subject.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/log.h"
#include "base/path.h"
#include "cmd/options.h"
#include "format/checkpoint.h"
#include "move/files.h"
#include "watch/tree.h"
#include "watch/view.h"

/*
 * What lies in a directory that is one checkpoint, and not in one that holds
 * several (reference layouts of watch/layout.c).
 */
static const char *const marks[] = { ".metadata", "trainer_state.json",
	"training_args.bin", "config.json", "adapter_config.json",
	"model_index.json", "metadata.json", "*_model_states.pt", "mp_rank_*",
	"model_optim_rng.pt", "random_states_*.pkl", "_CHECKPOINT_METADATA",
	"_METADATA", "manifest.ocdbt", "commit_success.txt",
	"*.safetensors.index.json", "*.bin.index.json",
	"pytorch_model_fsdp_0", "weights/.metadata" };

/* Checkpoints beside what save_model leaves at the end. */
static const char *const other_folders[] = { "checkpoint-[0-9]*",
	"checkpoint_[0-9]*" };
static const char *const other_files[] = { "last*.pt", "last*.pth",
	"best*.pt", "best*.pth", "best*.safetensors", "*.ckpt", "*.pth.tar",
	"epoch*.pt", "epoch*.pth", "step*.pt", "step*.pth", "checkpoint*.pt",
	"checkpoint*.pth" };

static int
out_of_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory");
}

/* Whether something of that kind (NULL: any) directly in it, or where a glob
 * has a slash, matches. */
static bool
has_match(const struct tree *tree, const char *const *globs, size_t count,
    const enum tree_kind *kind)
{
	size_t i, j;

	for (i = 1; i < tree->count; i++)
		for (j = 0; j < count; j++)
			if (fnmatch(globs[j], tree->nodes[i].path,
			    FNM_PATHNAME | FNM_PERIOD) == 0 &&
			    (kind == NULL || tree->nodes[i].kind == *kind))
				return true;
	return false;
}

#define COUNT(row) (sizeof(row) / sizeof((row)[0]))

/* Whether the directory is one checkpoint, not a place of several. */
static bool
is_checkpoint(const struct tree *tree)
{
	static const enum tree_kind folder = TREE_FOLDER, file = TREE_FILE;

	return has_match(tree, marks, COUNT(marks), NULL) &&
	    !has_match(tree, other_folders, COUNT(other_folders), &folder) &&
	    !has_match(tree, other_files, COUNT(other_files), &file);
}

static int
add_entry(struct checkpoint *checkpoint, const char *path,
    const struct identity *identity, bool follow, struct error *error)
{
	struct checkpoint_entry *entry =
	    &checkpoint->entries[checkpoint->entry_count];

	*entry = (struct checkpoint_entry){
		.path = strdup(path),
		.kind = ENTRY_FILE,
		.identity = *identity,
		.follow = follow,
		.same_as = checkpoint->entry_count
	};
	if (entry->path == NULL)
		return out_of_memory(error);
	checkpoint->entry_count++;
	checkpoint->size += identity->size;
	return 0;
}

static struct checkpoint *
new_checkpoint(const char *name, size_t count, struct error *error)
{
	struct checkpoint *checkpoint = calloc(1, sizeof(*checkpoint));

	if (checkpoint != NULL) {
		checkpoint->name = strdup(name);
		checkpoint->entries = calloc(count + 1,
		    sizeof(*checkpoint->entries));
	}
	if (checkpoint == NULL || checkpoint->name == NULL ||
	    checkpoint->entries == NULL) {
		checkpoint_free(checkpoint);
		out_of_memory(error);
		return NULL;
	}
	return checkpoint;
}

/* The directory itself as a checkpoint, its paths relative to itself. */
static struct checkpoint *
take_tree(const struct tree *tree, struct error *error)
{
	struct checkpoint *checkpoint;
	const struct tree_node *node;
	mode_t mode;
	size_t i;

	checkpoint = new_checkpoint("", tree->count, error);
	for (i = 1; checkpoint != NULL && i < tree->count; i++) {
		node = &tree->nodes[i];
		mode = node->mode;
		if (node->kind != TREE_FILE || node->left_out)
			continue;
		if (add_entry(checkpoint, node->path, &node->identity,
		    node->follow, error) == -1) {
			checkpoint_free(checkpoint);
			return NULL;
		}
		checkpoint->entries[checkpoint->entry_count - 1].mode = mode;
	}
	return checkpoint;
}

static bool
is_pointed(const struct view *view, const struct checkpoint *checkpoint)
{
	size_t i;

	for (i = 0; i < view->surroundings->pointed_count; i++)
		if (strcmp(view->surroundings->pointed[i],
		    checkpoint->name) == 0)
			return true;
	return false;
}

/* Whether a trainer would rather go on from ${a} (DESIGN 5, resume point). */
static bool
is_newer(const struct view *view, const struct checkpoint *a,
    const struct checkpoint *b)
{
	bool of_a = is_pointed(view, a), of_b = is_pointed(view, b);

	if (of_a != of_b)
		return of_a;
	if (a->has_step && b->has_step && a->step != b->step)
		return a->step > b->step;
	if (a->completed.tv_sec != b->completed.tv_sec)
		return a->completed.tv_sec > b->completed.tv_sec;
	if (a->completed.tv_nsec != b->completed.tv_nsec)
		return a->completed.tv_nsec > b->completed.tv_nsec;
	return strcmp(a->name, b->name) > 0;
}

static const struct checkpoint *
newest(const struct view *view, enum role role)
{
	const struct checkpoint *each, *found = NULL;
	size_t i;

	for (i = 0; i < view->count; i++) {
		each = view->checkpoints[i];
		if (each->state == CHECKPOINT_COMPLETE && each->role == role &&
		    (found == NULL || is_newer(view, each, found)))
			found = each;
	}
	return found;
}

static const struct checkpoint *
find_name(const struct view *view, const char *name)
{
	size_t i;

	for (i = 0; i < view->count; i++)
		if (strcmp(view->checkpoints[i]->name, name) == 0)
			return view->checkpoints[i];
	return NULL;
}

static const struct checkpoint *
choose(const struct view *view, const struct options *options,
    enum subject_choice *choice, struct error *error)
{
	const struct checkpoint *found = NULL;

	if (options->checkpoint != NULL) {
		*choice = SUBJECT_ASKED;
		found = find_name(view, options->checkpoint);
	}
	if (found == NULL && options->checkpoint == NULL && !options->best &&
	    !options->latest) {
		*choice = SUBJECT_FINAL;
		found = newest(view, ROLE_FINAL);
	}
	if (found == NULL && options->checkpoint == NULL && !options->latest) {
		*choice = SUBJECT_BEST;
		found = newest(view, ROLE_BEST);
	}
	if (found == NULL && options->checkpoint == NULL && !options->best) {
		*choice = SUBJECT_RESUME;
		found = newest(view, ROLE_RESUME);
	}
	if (found != NULL)
		return found;
	error_set(error, ERROR_NOTHING, CAUSE_NOT_FOUND, options->input,
	    options->checkpoint != NULL ? "it holds no checkpoint %s" :
	    "it holds no complete %scheckpoint", options->checkpoint != NULL ?
	    options->checkpoint : options->best ? "best " : "");
	if (view->count > 0 && view->checkpoints[0]->state !=
	    CHECKPOINT_COMPLETE)
		error_cure(error, "%s: %s", view->checkpoints[0]->name,
		    view->checkpoints[0]->reason);
	return NULL;
}

/* One of the checkpoints in the directory. */
static int
take_one(struct subject *subject, const struct options *options,
    struct error *error)
{
	/* What is here now counts; nothing is waited for. */
	const struct view_options patience = { .settle_known = 1,
		.settle_unknown = 1, .settle_marker = 1 };
	const struct checkpoint *chosen;
	struct view *view;

	view = view_take(options->input, &patience, NULL, error);
	if (view == NULL)
		return -1;
	chosen = choose(view, options, &subject->choice, error);
	if (chosen != NULL) {
		if (chosen->state != CHECKPOINT_COMPLETE)
			log_line(LOG_WARNING, "not_complete", "%s is not "
			    "complete: %s", chosen->name, chosen->reason);
		subject->local = checkpoint_copy(chosen);
		if (subject->local == NULL)
			out_of_memory(error);
	}
	view_free(view);
	return subject->local == NULL ? -1 : 0;
}

static int
take_folder(struct subject *subject, const struct options *options,
    struct error *error)
{
	struct tree *tree;
	int result = 0;

	subject->at = open(options->input, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (subject->at < 0)
		return error_set_errno(error, errno, options->input,
		    "cannot open the directory");
	tree = tree_scan(options->input, &(struct view_options){ 0 }, NULL,
	    error);
	if (tree == NULL)
		return -1;
	if (options->checkpoint == NULL && is_checkpoint(tree)) {
		subject->choice = SUBJECT_GIVEN;
		subject->folder = true;
		subject->local = take_tree(tree, error);
		result = subject->local == NULL ? -1 : 0;
		tree_free(tree);
		return result;
	}
	tree_free(tree);
	return take_one(subject, options, error);
}

static int
take_file(struct subject *subject, const struct options *options,
    const struct stat *status, struct error *error)
{
	char *folder = strdup(options->input), *slash;
	struct identity identity = identity_of(status);

	if (folder == NULL)
		return out_of_memory(error);
	slash = strrchr(folder, '/');
	if (slash != NULL)
		slash[slash == folder] = '\0';
	subject->at = open(slash == NULL ? "." : folder,
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(folder);
	if (subject->at < 0)
		return error_set_errno(error, errno, options->input,
		    "cannot open its directory");
	subject->choice = SUBJECT_GIVEN;
	subject->local = new_checkpoint(path_base(options->input), 1, error);
	if (subject->local == NULL)
		return -1;
	return add_entry(subject->local, path_base(options->input), &identity,
	    true, error);
}

/* The files of what was chosen, open. */
static int
open_files(struct subject *subject, struct error *error)
{
	const struct checkpoint *local = subject->local;
	const struct checkpoint_entry *entry;
	size_t i;

	for (i = 0; i < local->entry_count; i++)
		if (local->entries[i].kind == ENTRY_FOLDER &&
		    strcmp(local->entries[i].path, local->name) == 0)
			subject->folder = true;
	subject->open = files_open(subject->at, local->entries,
	    local->entry_count, FILES_FIXED, error);
	subject->files = calloc(local->entry_count + 1,
	    sizeof(*subject->files));
	subject->entries = calloc(local->entry_count + 1,
	    sizeof(*subject->entries));
	if (subject->open == NULL)
		return -1;
	if (subject->files == NULL || subject->entries == NULL)
		return out_of_memory(error);
	for (i = 0; i < local->entry_count; i++) {
		entry = &local->entries[i];
		if (entry->kind != ENTRY_FILE)
			continue;
		subject->entries[subject->count] = i;
		subject->files[subject->count++] = (struct model_file){
			.path = subject_path(local->name, subject->folder,
			    entry->path),
			.source = files_source(subject->open, entry->same_as)
		};
	}
	subject->folder |= subject->count > 1;
	subject->size = local->size;
	return 0;
}

int
subject_open_local(struct subject *subject, const struct options *options,
    struct error *error)
{
	struct stat status;
	int result;

	if (stat(options->input, &status) != 0) {
		error_set_errno(error, errno, options->input,
		    "cannot look at it");
		if (error->cause == CAUSE_NOT_FOUND)
			error->class = ERROR_NOTHING;
		return -1;
	}
	if (S_ISDIR(status.st_mode))
		result = take_folder(subject, options, error);
	else if (S_ISREG(status.st_mode))
		result = take_file(subject, options, &status, error);
	else
		return error_set(error, ERROR_USAGE, CAUSE_OTHER,
		    options->input, "it is neither a file nor a directory");
	if (result == -1)
		return -1;
	subject->name = strdup(subject->local->name[0] == '\0' ?
	    options->input : subject->local->name);
	if (subject->name == NULL)
		return out_of_memory(error);
	return open_files(subject, error);
}
