#ifndef STORE_MOUNT_H
#define STORE_MOUNT_H

#include <stdbool.h>
#include <stdint.h>

struct error;

/* On what a file:// store lies, as far as it matters to us. */
struct mount {
	char type[64];		/* "ext4", "fuse.s3fs" */
	bool objects;		/* a FUSE mount of an object store: no atomic
				 * link, no durable fsync */
	bool weak;		/* NFS that may answer from memory */
};

/**
 * mount_find(text, id, mount):
 * The mount number ${id} in ${text}, which reads like /proc/self/mountinfo
 * (proc(5)).  Return 0, or -1 when it is not there.
 */
int mount_find(const char *text, uint64_t id, struct mount *mount);

/**
 * mount_look(fd, path, mount, error):
 * The mount on which the folder ${fd} lies; when the system does not say, one
 * that nothing is known of.  Return 0, or -1 with ERROR_USAGE when it is a
 * mount of an object store.
 */
int mount_look(int fd, const char *path, struct mount *mount,
    struct error *error);

#endif
