#include "life/control.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"

/* The agent speaks every second; this long a silence means that it hangs. */
#define SILENCE_SECONDS 60

static int
connect_to(const char *path, struct error *error)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval limit = { .tv_sec = SILENCE_SECONDS };
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return error_set(error, ERROR_USAGE, CAUSE_LIMIT, path,
		    "the path of the control socket is too long");
	strcpy(address.sun_path, path);
	if ((fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0)
		return error_set_errno(error, errno, path,
		    "could not make a socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(fd, (const struct sockaddr *)&address,
	    sizeof(address)) == 0)
		return fd;
	if (errno == ENOENT || errno == ECONNREFUSED)
		error_set(error, ERROR_NO_AGENT, CAUSE_NOT_FOUND, path,
		    "no agent is listening here");
	else
		error_set_errno(error, errno, path,
		    "could not talk to the agent");
	close(fd);
	return -1;
}

static bool
is_gone(int number)
{
	return number == ECONNRESET || number == EPIPE;
}

/* It was killed: there is no agent any more, so its lock can be had soon. */
static int
agent_is_gone(const char *path, struct error *error)
{
	return error_set(error, ERROR_NO_AGENT, CAUSE_OTHER, path,
	    "the agent ended before it had answered");
}

static int
send_request(int fd, const char *path, const json_t *request,
    struct error *error)
{
	struct buffer line;
	char *text = json_dumps(request, JSON_COMPACT);
	size_t done = 0;
	ssize_t sent;
	int result = -1;

	buffer_init(&line, CONTROL_LINE_MAXIMUM);
	if (text == NULL || buffer_format(&line, error, "%s\n", text) != 0) {
		error_set(error, ERROR_FAILED, CAUSE_LIMIT, path,
		    "the request to the agent is too long");
		goto done;
	}
	while (done < line.length) {
		sent = send(fd, line.data + done, line.length - done,
		    MSG_NOSIGNAL);
		if (sent < 0) {
			if (is_gone(errno))
				agent_is_gone(path, error);
			else
				error_set_errno(error, errno, path,
				    "could not ask the agent");
			goto done;
		}
		done += (size_t)sent;
	}
	result = 0;
done:
	buffer_free(&line);
	free(text);
	return result;
}

/*
 * Hand over the whole lines in ${input}.  Return the end when it is among
 * them; NULL with ${error} set when a line is not what it should be.
 */
static json_t *
take_lines(struct buffer *input, const char *path,
    void (*visit)(void *context, const json_t *event), void *context,
    struct error *error)
{
	char *line = input->data, *end;
	const char *word;
	json_t *event;
	size_t rest;

	while ((rest = input->length - (size_t)(line - input->data)) > 0 &&
	    (end = memchr(line, '\n', rest)) != NULL) {
		event = json_read(line, (size_t)(end - line), path, error);
		if (event == NULL)
			return NULL;
		line = end + 1;
		word = json_get_text(event, "event");
		if (word != NULL && strcmp(word, "end") == 0)
			return event;
		if (visit != NULL)
			visit(context, event);
		json_decref(event);
	}
	memmove(input->data, line, rest);
	input->length = rest;
	return NULL;
}

static json_t *
read_answer(int fd, const char *path,
    void (*visit)(void *context, const json_t *event), void *context,
    struct error *error)
{
	struct buffer input;
	char bytes[4096];
	ssize_t length;
	json_t *end = NULL;

	buffer_init(&input, 4 * CONTROL_LINE_MAXIMUM);
	while (end == NULL) {
		length = recv(fd, bytes, sizeof(bytes), 0);
		if (length < 0 && errno == EINTR)
			continue;
		if (length == 0 || (length < 0 && is_gone(errno)))
			agent_is_gone(path, error);
		else if (length < 0)
			error_set_errno(error, errno, path,
			    "the agent does not answer");
		if (length <= 0 || buffer_append(&input, bytes,
		    (size_t)length, error) != 0)
			break;
		end = take_lines(&input, path, visit, context, error);
		if (end == NULL && error->class != ERROR_NONE)
			break;
	}
	buffer_free(&input);
	return end;
}

json_t *
control_ask(const char *path, const json_t *request,
    void (*visit)(void *context, const json_t *event), void *context,
    struct error *error)
{
	json_t *end = NULL;
	int fd;

	error_clear(error);
	if ((fd = connect_to(path, error)) < 0)
		return NULL;
	if (send_request(fd, path, request, error) == 0)
		end = read_answer(fd, path, visit, context, error);
	close(fd);
	return end;
}
