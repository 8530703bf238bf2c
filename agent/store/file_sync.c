#include "store/file_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "store/file_path.h"

/* Folders remembered; what does not fit is synced again, which only costs. */
#define SLOTS 1024

struct slot {
	char *folder;
	bool entered;		/* its name in the folder above is durable */
	uint64_t round;		/* in which its own names were synced */
};

struct file_sync {
	int root;
	pthread_mutex_t mutex;	/* over all below */
	uint64_t round;
	struct slot slots[SLOTS];
};

struct file_sync *
file_sync_new(int root)
{
	struct file_sync *sync = calloc(1, sizeof(*sync));

	if (sync != NULL) {
		sync->root = root;
		sync->round = 1;
		pthread_mutex_init(&sync->mutex, NULL);
	}
	return sync;
}

void
file_sync_begin(struct file_sync *sync)
{
	pthread_mutex_lock(&sync->mutex);
	sync->round++;
	pthread_mutex_unlock(&sync->mutex);
}

/* FNV-1a: the names are our own. */
static struct slot *
slot_of(struct file_sync *sync, const char *folder)
{
	uint32_t hash = 2166136261U;

	for (; *folder != '\0'; folder++)
		hash = (hash ^ (unsigned char)*folder) * 16777619U;
	return &sync->slots[hash % SLOTS];
}

static bool
knows(struct file_sync *sync, const char *folder, bool entered)
{
	struct slot *slot;
	bool known;

	pthread_mutex_lock(&sync->mutex);
	slot = slot_of(sync, folder);
	known = slot->folder != NULL && strcmp(slot->folder, folder) == 0 &&
	    (entered ? slot->entered : slot->round == sync->round);
	pthread_mutex_unlock(&sync->mutex);
	return known;
}

/* Remembering is only an economy: when memory is out it is left. */
static void
remember(struct file_sync *sync, const char *folder, bool entered)
{
	struct slot *slot;

	pthread_mutex_lock(&sync->mutex);
	slot = slot_of(sync, folder);
	if (slot->folder == NULL || strcmp(slot->folder, folder) != 0) {
		free(slot->folder);
		*slot = (struct slot){ .folder = strdup(folder) };
	}
	if (entered)
		slot->entered = true;
	else
		slot->round = sync->round;
	pthread_mutex_unlock(&sync->mutex);
}

static int
sync_folder(struct file_sync *sync, const char *folder, struct error *error)
{
	int fd, result = 0;

	if (knows(sync, folder, false))
		return 0;
	fd = openat(sync->root, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return file_path_failure(error, errno, folder,
		    "opening the folder");
	/* Some file systems cannot sync a folder and say so. */
	if (fsync(fd) != 0 && errno != EINVAL)
		result = file_path_failure(error, errno, folder,
		    "writing the folder to the disk");
	close(fd);
	if (result == 0)
		remember(sync, folder, false);
	return result;
}

int
file_sync_name(struct file_sync *sync, const char *path, struct error *error)
{
	char folder[FILE_PATH_SIZE], above[FILE_PATH_SIZE];

	file_path_parent(path, folder);
	if (sync_folder(sync, folder, error) != 0)
		return -1;
	while (strcmp(folder, ".") != 0 && !knows(sync, folder, true)) {
		file_path_parent(folder, above);
		if (sync_folder(sync, above, error) != 0)
			return -1;
		remember(sync, folder, true);
		strcpy(folder, above);
	}
	return 0;
}

void
file_sync_forget(struct file_sync *sync, const char *folder)
{
	struct slot *slot;

	pthread_mutex_lock(&sync->mutex);
	slot = slot_of(sync, folder);
	if (slot->folder != NULL && strcmp(slot->folder, folder) == 0) {
		free(slot->folder);
		*slot = (struct slot){ 0 };
	}
	pthread_mutex_unlock(&sync->mutex);
}

void
file_sync_free(struct file_sync *sync)
{
	size_t i;

	if (sync == NULL)
		return;
	for (i = 0; i < SLOTS; i++)
		free(sync->slots[i].folder);
	pthread_mutex_destroy(&sync->mutex);
	free(sync);
}
