#ifndef S3_SOCKETS_H
#define S3_SOCKETS_H

#include <curl/curl.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The open sockets of one transfer thread, to learn how much of a body the
 * kernel still holds: only when that is nothing does the wait for an answer
 * begin.  (libcurl does not tell a running transfer's socket; its local port
 * leads to it.)
 */
#define SOCKETS_LIMIT 1024

struct sockets {
	int fds[SOCKETS_LIMIT];
	size_t count;
};

/**
 * sockets_watch(sockets, easy):
 * Let ${easy} note its sockets in ${sockets}, which outlives the connection.
 */
void sockets_watch(struct sockets *sockets, CURL *easy);

/**
 * sockets_find(sockets, port):
 * The socket with that local port, or -1.
 */
int sockets_find(const struct sockets *sockets, int port);

/**
 * sockets_unsent(fd):
 * Bytes that the other side has not acknowledged yet; 0 for -1.
 */
uint64_t sockets_unsent(int fd);

#endif
