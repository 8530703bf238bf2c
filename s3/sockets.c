#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "s3/sockets.h"

/*
 * How many bytes the kernel takes beyond what the network has room for.  More
 * would only make what was handed over look like what was sent.
 */
#define UNSENT_MAXIMUM (256 * 1024)

static curl_socket_t
on_open(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct sockets *sockets = context;
	int fd = socket(address->family, address->socktype | SOCK_CLOEXEC,
	    address->protocol);
	int unsent = UNSENT_MAXIMUM;

	(void)purpose;
	if (fd >= 0)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent,
		    sizeof(unsent));
	if (fd >= 0 && sockets->count < SOCKETS_LIMIT)
		sockets->fds[sockets->count++] = fd;
	return fd;
}

static int
on_close(void *context, curl_socket_t fd)
{
	struct sockets *sockets = context;

	for (size_t i = 0; i < sockets->count; i++)
		if (sockets->fds[i] == fd) {
			sockets->fds[i] = sockets->fds[--sockets->count];
			break;
		}
	return close(fd);
}

void
sockets_watch(struct sockets *sockets, CURL *easy)
{
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, sockets);
	curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
	curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, sockets);
}

static int
local_port(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address = { .any = { .sa_family = AF_UNSPEC } };
	socklen_t length = sizeof(address);

	if (getsockname(fd, &address.any, &length) != 0)
		return -1;
	if (address.any.sa_family == AF_INET)
		return ntohs(address.v4.sin_port);
	if (address.any.sa_family == AF_INET6)
		return ntohs(address.v6.sin6_port);
	return -1;
}

int
sockets_find(const struct sockets *sockets, int port)
{
	for (size_t i = 0; i < sockets->count; i++)
		if (local_port(sockets->fds[i]) == port)
			return sockets->fds[i];
	return -1;
}

uint64_t
sockets_unsent(int fd)
{
	int bytes = 0;

	if (fd < 0 || ioctl(fd, SIOCOUTQ, &bytes) != 0 || bytes < 0)
		return 0;
	return (uint64_t)bytes;
}
