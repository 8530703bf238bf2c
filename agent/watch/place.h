#ifndef WATCH_PLACE_H
#define WATCH_PLACE_H

#include <stdbool.h>

/**
 * place_is_remote(fd):
 * Whether the file system under ${fd} can be changed by other machines or
 * behind the kernel's back (NFS, SMB, FUSE, 9p, Ceph, Lustre and their like):
 * inotify does not see those changes, leases do not see those writers, and
 * its times may come from another clock.
 */
bool place_is_remote(int fd);

#endif
