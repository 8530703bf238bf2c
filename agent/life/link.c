#include "life/link.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/json.h"

/* A path and a few words. */
#define PACKET_MAXIMUM 65536

int
link_pair(int ends[2], struct error *error)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    0, ends) != 0)
		return error_set_errno(error, errno, NULL,
		    "could not make a pair of sockets");
	return 0;
}

int
link_say(int fd, const char *format, ...)
{
	va_list arguments;
	json_t *object;
	char *text = NULL;
	int result = -1;

	va_start(arguments, format);
	object = json_vpack_ex(NULL, 0, format, arguments);
	va_end(arguments);
	if (object != NULL &&
	    (text = json_dumps(object, JSON_COMPACT)) != NULL &&
	    strlen(text) <= PACKET_MAXIMUM &&
	    send(fd, text, strlen(text), MSG_NOSIGNAL) >= 0)
		result = 0;
	free(text);
	json_decref(object);
	return result;
}

json_t *
link_hear(int fd, int *closed)
{
	struct error ignored = ERROR_INIT;
	char *packet;
	ssize_t length;
	json_t *object = NULL;

	*closed = 0;
	if ((packet = malloc(PACKET_MAXIMUM)) == NULL)
		return NULL;
	length = recv(fd, packet, PACKET_MAXIMUM, 0);
	if (length > 0)
		object = json_read(packet, (size_t)length, "link", &ignored);
	else if (length == 0 || (errno != EAGAIN && errno != EINTR))
		*closed = 1;
	free(packet);
	return object;
}
