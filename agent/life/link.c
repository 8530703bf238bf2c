#include "life/link.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"

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
link_send(int fd, json_t *object)
{
	struct error error = ERROR_INIT;
	char *text = NULL;
	int result = -1;

	if (object == NULL ||
	    (text = json_dumps(object, JSON_COMPACT)) == NULL)
		error_set(&error, ERROR_FAILED, CAUSE_OTHER, NULL,
		    "a message between supervisor and agent could not be "
		    "made");
	else if (strlen(text) > PACKET_MAXIMUM)
		error_set(&error, ERROR_FAILED, CAUSE_LIMIT, NULL,
		    "a message between supervisor and agent is too long");
	else if (send(fd, text, strlen(text), MSG_NOSIGNAL) >= 0)
		result = 0;
	else if (errno != EPIPE && errno != ECONNRESET && errno != ENOTCONN)
		error_set_errno(&error, errno, NULL,
		    "a message between supervisor and agent was not sent");
	if (error.class != ERROR_NONE)
		log_failure(LOG_ERROR, "link", &error);
	free(text);
	json_decref(object);
	return result;
}

int
link_say(int fd, const char *format, ...)
{
	va_list arguments;
	json_t *object;

	va_start(arguments, format);
	object = json_vpack_ex(NULL, 0, format, arguments);
	va_end(arguments);
	return link_send(fd, object);
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
