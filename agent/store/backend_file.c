#include "store/backend_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "store/backend.h"
#include "store/file_copy.h"
#include "store/file_list.h"
#include "store/file_path.h"
#include "store/file_sync.h"
#include "store/mount.h"

/* Threads that copy; one more syncs folders for all of them. */
#define COPIERS 4

/* One request on its way. */
struct job {
	struct backend_request *request;
	atomic_bool cancelled;
	char path[FILE_PATH_SIZE];
	struct job *next;
};

struct jobs {
	struct job *first, **last;
	pthread_cond_t more;
	bool closed;		/* no more come: end when it is empty */
};

struct store {
	struct backend backend;
	int root;
	struct file_sync *sync;
	atomic_bool swept;

	pthread_mutex_t mutex;	/* over the lists */
	struct jobs waiting;	/* for a copier */
	struct jobs named;	/* PUTs whose name has to be synced, and
				 * what was cancelled before it began */
	struct job *running[COPIERS];

	pthread_t copiers[COPIERS], syncer;
	size_t copier_count;
	bool syncer_runs;
};

static struct store *
store_of(struct backend *backend)
{
	return (struct store *)backend;
}

static void
jobs_init(struct jobs *jobs)
{
	jobs->first = NULL;
	jobs->last = &jobs->first;
	pthread_cond_init(&jobs->more, NULL);
}

/* With the mutex held. */
static void
jobs_add(struct jobs *jobs, struct job *job)
{
	job->next = NULL;
	*jobs->last = job;
	jobs->last = &job->next;
	pthread_cond_signal(&jobs->more);
}

/* With the mutex held: the first one, NULL when closed and empty. */
static struct job *
jobs_take(struct jobs *jobs, pthread_mutex_t *mutex)
{
	struct job *job;

	while (jobs->first == NULL && !jobs->closed)
		pthread_cond_wait(&jobs->more, mutex);
	job = jobs->first;
	if (job != NULL) {
		jobs->first = job->next;
		if (jobs->first == NULL)
			jobs->last = &jobs->first;
	}
	return job;
}

static void
jobs_close(struct store *store, struct jobs *jobs)
{
	pthread_mutex_lock(&store->mutex);
	jobs->closed = true;
	pthread_cond_broadcast(&jobs->more);
	pthread_mutex_unlock(&store->mutex);
}

/* Give the request back to its caller, who may free it in `done`. */
static void
finish(struct store *store, struct job *job)
{
	struct backend_request *request = job->request;

	pthread_mutex_lock(&store->mutex);
	request->private_data = NULL;
	pthread_mutex_unlock(&store->mutex);
	free(job);
	request->done(request);
}

/*
 * Remove one object and the folders that it leaves empty.  Nothing is synced:
 * a power cut that brings it back does no harm, since no key is used again.
 */
static int
delete_object(struct store *store, const char *path, struct error *error)
{
	char folder[FILE_PATH_SIZE], above[FILE_PATH_SIZE];

	if (unlinkat(store->root, path, 0) != 0 && errno != ENOENT &&
	    errno != ENOTDIR)
		return file_path_failure(error, errno, path, "removing");
	file_path_parent(path, folder);
	while (strcmp(folder, ".") != 0) {
		file_sync_forget(store->sync, folder);
		if (unlinkat(store->root, folder, AT_REMOVEDIR) != 0)
			break;
		file_path_parent(folder, above);
		strcpy(folder, above);
	}
	return 0;
}

/* Do a copier's part of ${job}.  Whether a sync has to follow. */
static bool
run(struct store *store, struct job *job, void *block)
{
	struct backend_request *request = job->request;
	const struct file_copy copy = { store->root, request, &job->cancelled,
		block };
	int result;

	switch (request->operation) {
	case BACKEND_PUT:
		result = file_copy_in(&copy, job->path, &request->error);
		if (!atomic_exchange(&store->swept, true))
			file_copy_sweep(store->root);
		return result == 0;
	case BACKEND_GET:
		file_copy_out(&copy, job->path, &request->error);
		return false;
	case BACKEND_DELETE:
		if (atomic_load(&job->cancelled))
			error_set(&request->error, ERROR_FAILED,
			    CAUSE_CANCELLED, request->key, "cancelled");
		else
			delete_object(store, job->path, &request->error);
		return false;
	}
	return false;
}

/* With the mutex held: a copier's place in `running`. */
static struct job **
free_place(struct store *store)
{
	size_t i = 0;

	while (store->running[i] != NULL)
		i++;
	assert(i < COPIERS);
	return &store->running[i];
}

static void *
copier_main(void *context)
{
	struct store *store = context;
	void *block = NULL;
	struct job *job, **place;
	bool named;

	pthread_mutex_lock(&store->mutex);
	while ((job = jobs_take(&store->waiting, &store->mutex)) != NULL) {
		place = free_place(store);
		*place = job;
		pthread_mutex_unlock(&store->mutex);
		if (block == NULL)
			block = malloc(FILE_COPY_BLOCK);
		if (block == NULL)
			error_set(&job->request->error, ERROR_FAILED,
			    CAUSE_MEMORY, job->request->key, "out of memory");
		named = block != NULL && run(store, job, block);
		pthread_mutex_lock(&store->mutex);
		*place = NULL;
		if (named) {
			jobs_add(&store->named, job);
			continue;
		}
		pthread_mutex_unlock(&store->mutex);
		finish(store, job);
		pthread_mutex_lock(&store->mutex);
	}
	pthread_mutex_unlock(&store->mutex);
	free(block);
	return NULL;
}

/*
 * Takes all names that wait at once, so that one sync of a folder serves
 * every object that got its name there meanwhile.
 */
static void *
syncer_main(void *context)
{
	struct store *store = context;
	struct job *job, *next;

	pthread_mutex_lock(&store->mutex);
	while ((job = jobs_take(&store->named, &store->mutex)) != NULL) {
		store->named.first = NULL;
		store->named.last = &store->named.first;
		pthread_mutex_unlock(&store->mutex);
		file_sync_begin(store->sync);
		for (; job != NULL; job = next) {
			next = job->next;
			if (job->request->error.class == ERROR_NONE)
				file_sync_name(store->sync, job->path,
				    &job->request->error);
			finish(store, job);
		}
		pthread_mutex_lock(&store->mutex);
	}
	pthread_mutex_unlock(&store->mutex);
	return NULL;
}

static void
store_submit(struct backend *backend, struct backend_request *request)
{
	struct store *store = store_of(backend);
	struct job *job = calloc(1, sizeof(*job));

	error_clear(&request->error);
	request->attempts = 1;
	request->private_data = NULL;
	if (job == NULL)
		error_set(&request->error, ERROR_FAILED, CAUSE_MEMORY,
		    request->key, "out of memory");
	if (job == NULL ||
	    file_path_of(request->key, job->path, &request->error) != 0) {
		free(job);
		request->done(request);
		return;
	}
	job->request = request;
	pthread_mutex_lock(&store->mutex);
	request->private_data = job;
	jobs_add(&store->waiting, job);
	pthread_mutex_unlock(&store->mutex);
}

static void
store_cancel(struct backend *backend, struct backend_request *request)
{
	struct store *store = store_of(backend);
	struct job *job, **place;

	pthread_mutex_lock(&store->mutex);
	job = request->private_data;
	if (job != NULL)
		atomic_store(&job->cancelled, true);
	/* The copiers may be busy for long: one that waits ends without them. */
	for (place = &store->waiting.first; job != NULL && *place != NULL;
	    place = &(*place)->next) {
		if (*place != job)
			continue;
		*place = job->next;
		if (job->next == NULL)
			store->waiting.last = place;
		error_set(&request->error, ERROR_FAILED, CAUSE_CANCELLED,
		    request->key, "cancelled");
		jobs_add(&store->named, job);
		break;
	}
	pthread_mutex_unlock(&store->mutex);
}

static int
store_list(struct backend *backend, const char *prefix, bool fold,
    backend_visit visit, void *context, struct error *error)
{
	return file_list(store_of(backend)->root, prefix, fold, visit, context,
	    error);
}

static int
store_remove(struct backend *backend, const char *const *keys, size_t count,
    struct error *error)
{
	struct store *store = store_of(backend);
	char path[FILE_PATH_SIZE];
	struct error failure = ERROR_INIT;
	int result = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		if (file_path_of(keys[i], path, &failure) == 0 &&
		    delete_object(store, path, &failure) == 0)
			continue;
		if (result == 0)
			*error = failure;
		result = -1;
	}
	return result;
}

static void
store_free(struct backend *backend)
{
	struct store *store = store_of(backend);
	struct job *job;
	size_t i;

	pthread_mutex_lock(&store->mutex);
	for (job = store->waiting.first; job != NULL; job = job->next)
		atomic_store(&job->cancelled, true);
	for (i = 0; i < COPIERS; i++) {
		if (store->running[i] != NULL)
			atomic_store(&store->running[i]->cancelled, true);
	}
	pthread_mutex_unlock(&store->mutex);
	jobs_close(store, &store->waiting);
	for (i = 0; i < store->copier_count; i++)
		pthread_join(store->copiers[i], NULL);
	jobs_close(store, &store->named);
	if (store->syncer_runs)
		pthread_join(store->syncer, NULL);
	pthread_cond_destroy(&store->waiting.more);
	pthread_cond_destroy(&store->named.more);
	pthread_mutex_destroy(&store->mutex);
	file_sync_free(store->sync);
	close(store->root);
	free(store);
}

static const struct backend_operations operations = {
	.submit = store_submit, .cancel = store_cancel, .list = store_list,
	.remove = store_remove, .free = store_free };

static int
start_threads(struct store *store, struct error *error)
{
	int failure = pthread_create(&store->syncer, NULL, syncer_main, store);

	store->syncer_runs = failure == 0;
	while (failure == 0 && store->copier_count < COPIERS) {
		failure = pthread_create(&store->copiers[store->copier_count],
		    NULL, copier_main, store);
		store->copier_count += failure == 0;
	}
	return failure == 0 ? 0 : error_set_errno(error, failure,
	    store->backend.name, "starting a thread");
}

/* Make ${path} and its missing parents, and make their names durable. */
static int
make_folder(const char *path, struct error *error)
{
	size_t there = strlen(path), length;
	char *folder = strdup(path);
	int result = -1;

	if (folder == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, path,
		    "out of memory");
	/* How much of the path is there before. */
	while (there > 1 && access(folder, F_OK) != 0) {
		while (there > 1 && path[there - 1] != '/')
			there--;
		there -= there > 1;
		folder[there] = '\0';
	}
	if (path_make_folders(path, 0777, error) != 0)
		goto out;
	for (length = there; path[length] != '\0';
	    length += strcspn(path + length, "/")) {
		memcpy(folder, path, length);
		folder[length] = '\0';
		if (path_sync_folder(folder, error) != 0)
			goto out;
		length += path[length] == '/';
	}
	result = 0;
out:
	free(folder);
	return result;
}

/* The folder, made when that is wanted.  Return its descriptor or -1. */
static int
open_folder(const char *path, bool create, struct error *error)
{
	int fd;

	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && create) {
		if (make_folder(path, error) != 0)
			return -1;
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd >= 0)
		return fd;
	if (errno == ENOENT)
		return error_set(error, ERROR_NOTHING, CAUSE_NOT_FOUND, path,
		    "there is no such folder");
	return file_path_failure(error, errno, path, "opening the folder");
}

struct backend *
backend_file_open(const char *path, bool create, struct error *error)
{
	struct mount mount;
	struct store *store;
	int root;

	root = open_folder(path, create, error);
	if (root < 0)
		return NULL;
	if (mount_look(root, path, &mount, error) != 0) {
		close(root);
		return NULL;
	}
	store = calloc(1, sizeof(*store));
	if (store == NULL || (store->sync = file_sync_new(root)) == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, path,
		    "out of memory");
		free(store);
		close(root);
		return NULL;
	}
	store->root = root;
	store->backend.operations = &operations;
	store->backend.local = true;
	store->backend.weak = mount.weak;
	snprintf(store->backend.name, sizeof(store->backend.name),
	    "file://%s", path);
	pthread_mutex_init(&store->mutex, NULL);
	jobs_init(&store->waiting);
	jobs_init(&store->named);
	if (start_threads(store, error) != 0) {
		backend_free(&store->backend);
		return NULL;
	}
	return &store->backend;
}
