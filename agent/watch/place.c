#include "watch/place.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/vfs.h>

/* From linux/magic.h and, where it lacks them, the file systems' own
 * sources: Lustre, GPFS, BeeGFS, AFS. */
static const uint32_t remote[] = {
	0x00006969,	/* NFS */
	0x0000517b,	/* SMB */
	0xff534d42,	/* CIFS */
	0xfe534d42,	/* SMB2 */
	0x65735546,	/* FUSE, virtiofs */
	0x01021997,	/* 9p */
	0x00c36400,	/* Ceph */
	0x5346414f,	/* AFS */
	0x73757245,	/* Coda */
	0x0000564c,	/* NCP */
	0x7461636f,	/* OCFS2 */
	0x01161970,	/* GFS2 */
	0x786f4256,	/* vboxsf */
	0x0bd00bd0,	/* Lustre */
	0x47504653,	/* GPFS */
	0x19830326	/* BeeGFS */
};

bool
place_is_remote(int fd)
{
	struct statfs status;

	if (fstatfs(fd, &status) != 0)
		return true;
	for (size_t i = 0; i < sizeof(remote) / sizeof(remote[0]); i++) {
		if ((uint32_t)status.f_type == remote[i])
			return true;
	}
	return false;
}
