#ifndef WATCH_LEASE_H
#define WATCH_LEASE_H

enum lease_answer {
	LEASE_FREE,	/* nobody has it open for writing */
	LEASE_WRITTEN,	/* somebody has */
	LEASE_UNKNOWN	/* leases do not work here, or not for us */
};

/**
 * lease_look(fd):
 * Whether anybody has the file that is open (for reading) at ${fd} open for
 * writing, or maps it so (not seen on overlayfs).  Takes a read lease and
 * drops it in the same breath: while one is held, a writer that opens the
 * file would be stopped.  Sets SIGIO to be ignored if nobody handles it,
 * since the kernel sends it when that happens in between.  Any thread.
 */
enum lease_answer lease_look(int fd);

#endif
