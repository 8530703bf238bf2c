#ifndef STORE_FILE_SYNC_H
#define STORE_FILE_SYNC_H

struct error;

/*
 * Which folders of a file:// store are known to survive a power cut.  A new
 * name is durable when its folder and every folder above that is new were
 * synced; a folder is synced once for all that wait for it at the time.
 */
struct file_sync;

/**
 * file_sync_new(root):
 * For the store in the folder ${root}, or NULL when out of memory.
 */
struct file_sync *file_sync_new(int root);

/**
 * file_sync_begin(sync):
 * A new round: folders that were synced before it have to be synced again.
 * One thread runs rounds.
 */
void file_sync_begin(struct file_sync *sync);

/**
 * file_sync_name(sync, path, error):
 * Make the name ${path} durable.  Return 0 or -1.
 */
int file_sync_name(struct file_sync *sync, const char *path,
    struct error *error);

/**
 * file_sync_forget(sync, folder):
 * ${folder} is about to be removed.  Any thread.
 */
void file_sync_forget(struct file_sync *sync, const char *folder);

/**
 * file_sync_free(sync):
 * Behave consistently with free(NULL).
 */
void file_sync_free(struct file_sync *sync);

#endif
