#include "life/control.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "life/loop.h"

#define CLIENTS_MAXIMUM 16
#define OUTPUT_MAXIMUM (1 << 20)

struct control_client {
	struct control *control;
	int fd;
	struct buffer input;
	struct buffer output;
	size_t sent;		/* of output */
	bool asked;		/* its request was handed over */
	bool ending;		/* close when the output is sent */
	struct control_client *next;
};

struct control {
	struct loop *loop;
	struct control_handler handler;
	int fd;
	char *path;
	dev_t device;		/* of the socket that we made there */
	ino_t inode;
	struct control_client *clients;
	size_t count;
};

static void
client_close(struct control_client *client)
{
	struct control *control = client->control;
	struct control_client **place;

	for (place = &control->clients; *place != NULL;
	    place = &(*place)->next) {
		if (*place == client) {
			*place = client->next;
			control->count--;
			break;
		}
	}
	control->handler.gone(control->handler.context, client);
	loop_forget(control->loop, client->fd);
	close(client->fd);
	buffer_free(&client->input);
	buffer_free(&client->output);
	free(client);
}

static void client_ready(void *context);

static int
client_watch(struct control_client *client)
{
	struct error ignored = ERROR_INIT;
	short events = client->ending ? 0 : POLLIN;

	if (client->sent < client->output.length)
		events |= POLLOUT;
	return loop_watch(client->control->loop, client->fd, events,
	    client_ready, client, &ignored);
}

/* Send what can be sent.  Return -1 when the client is done with. */
static int
client_send(struct control_client *client)
{
	ssize_t sent;

	while (client->sent < client->output.length) {
		sent = send(client->fd, client->output.data + client->sent,
		    client->output.length - client->sent,
		    MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -1;
		client->sent += (size_t)sent;
	}
	buffer_clear(&client->output);
	client->sent = 0;
	return client->ending ? -1 : 0;
}

/* The first whole line as an object; NULL: not whole yet, or not one. */
static json_t *
client_request(struct control_client *client, bool *whole)
{
	struct error error = ERROR_INIT;
	char *end;

	*whole = false;
	if (client->input.length == 0 || (end = memchr(client->input.data,
	    '\n', client->input.length)) == NULL)
		return NULL;
	*whole = true;
	return json_read(client->input.data,
	    (size_t)(end - client->input.data), "request", &error);
}

static void
client_handle(struct control_client *client)
{
	struct control_handler *handler = &client->control->handler;
	const char *word = NULL;
	json_t *request;
	bool whole;

	request = client_request(client, &whole);
	if (!whole)
		return;
	client->asked = true;
	if (request != NULL)
		word = json_get_text(request, "request");
	if (word == NULL)
		control_end(client, ERROR_USAGE,
		    "not a request: one JSON object with \"request\" a line",
		    NULL);
	else
		handler->request(handler->context, client, word, request);
	json_decref(request);
}

static void
client_ready(void *context)
{
	struct control_client *client = context;
	struct error error = ERROR_INIT;
	char bytes[4096];
	ssize_t length;

	if (client_send(client) != 0) {
		client_close(client);
		return;
	}
	length = recv(client->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR)) {
		client_close(client);
		return;
	}
	/* One request a connection; what follows it is not read. */
	if (length > 0 && !client->asked) {
		if (buffer_append(&client->input, bytes, (size_t)length,
		    &error) != 0) {
			client->asked = true;
			control_end(client, ERROR_USAGE,
			    "the request is too long", NULL);
			return;
		}
		client_handle(client);
		return;
	}
	client_watch(client);
}

static bool
is_allowed(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
	    (peer.uid == geteuid() || peer.uid == 0);
}

static void
client_arrived(void *context)
{
	struct control *control = context;
	struct control_client *client;
	int fd;

	fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	if (control->count == CLIENTS_MAXIMUM || !is_allowed(fd) ||
	    (client = calloc(1, sizeof(*client))) == NULL) {
		close(fd);
		return;
	}
	client->control = control;
	client->fd = fd;
	buffer_init(&client->input, CONTROL_LINE_MAXIMUM);
	buffer_init(&client->output, OUTPUT_MAXIMUM);
	client->next = control->clients;
	control->clients = client;
	control->count++;
	if (client_watch(client) != 0)
		client_close(client);
}

static int
set_address(struct sockaddr_un *address, const char *path,
    struct error *error)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(address->sun_path))
		return error_set(error, ERROR_USAGE, CAUSE_LIMIT, path,
		    "the path of the control socket is too long");
	strcpy(address->sun_path, path);
	return 0;
}

/* Whether somebody listens there.  No agent does: its lock is ours. */
static bool
is_alive(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    0);
	bool dead;

	if (fd < 0)
		return true;
	dead = connect(fd, (const struct sockaddr *)address,
	    sizeof(*address)) != 0 && errno == ECONNREFUSED;
	close(fd);
	return !dead;
}

int
control_check(const char *path, struct error *error)
{
	struct sockaddr_un address;
	struct stat status;
	const char *what = NULL;

	if (set_address(&address, path, error) != 0)
		return -1;
	if (lstat(path, &status) != 0)
		return 0;	/* what else is wrong, bind() says */
	if (!S_ISSOCK(status.st_mode))
		what = "it is not a socket";
	else if (status.st_uid != geteuid())
		what = "it is another user's";
	else if (is_alive(&address))
		what = "another program listens on it";
	if (what == NULL)
		return 0;
	error_set(error, ERROR_USAGE, CAUSE_OTHER, path, "what lies there "
	    "cannot be replaced by the control socket: %s", what);
	return error_cure(error, "name a free path with --socket or "
	    "CKPTSYNC_SOCKET");
}

static int
listen_on(const char *path, struct error *error)
{
	struct sockaddr_un address;
	mode_t mask;
	int fd, result;

	if (control_check(path, error) != 0 ||
	    set_address(&address, path, error) != 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set_errno(error, errno, path,
		    "could not make the control socket");
	unlink(path);
	mask = umask(0177);
	result = bind(fd, (const struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (result != 0 || listen(fd, CLIENTS_MAXIMUM) != 0) {
		error_set_errno(error, errno, path,
		    "could not listen on the control socket");
		close(fd);
		return -1;
	}
	return fd;
}

struct control *
control_new(struct loop *loop, const char *path,
    const struct control_handler *handler, struct error *error)
{
	struct control *control;
	struct stat status;

	if ((control = calloc(1, sizeof(*control))) == NULL ||
	    (control->path = strdup(path)) == NULL) {
		free(control);
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, path,
		    "out of memory for the control socket");
		return NULL;
	}
	control->loop = loop;
	control->handler = *handler;
	control->fd = listen_on(path, error);
	if (control->fd >= 0 && lstat(path, &status) == 0) {
		control->device = status.st_dev;
		control->inode = status.st_ino;
	}
	if (control->fd < 0 || loop_watch(loop, control->fd, POLLIN,
	    client_arrived, control, error) != 0) {
		control_free(control);
		return NULL;
	}
	return control;
}

static int
client_add(struct control_client *client, json_t *object)
{
	struct error ignored = ERROR_INIT;
	char *text;
	int result = -1;

	text = object == NULL ? NULL : json_dumps(object, JSON_COMPACT);
	if (text != NULL)
		result = buffer_format(&client->output, &ignored, "%s\n",
		    text);
	free(text);
	json_decref(object);
	return result;
}

void
control_send(struct control_client *client, json_t *object)
{
	/* Room is left for the end. */
	if (client->ending ||
	    client->output.length > OUTPUT_MAXIMUM - 2 * CONTROL_LINE_MAXIMUM) {
		json_decref(object);
		return;
	}
	(void)client_add(client, object);
	(void)client_watch(client);
}

void
control_end(struct control_client *client, int class, const char *message,
    json_t *more)
{
	json_t *end = json_pack("{s:s, s:i, s:o}", "event", "end", "class",
	    class, "message", json_text(message));

	if (end != NULL && more != NULL)
		json_object_update_missing(end, more);
	json_decref(more);
	(void)client_add(client, end);
	client->ending = true;
	(void)client_watch(client);
}

void
control_free(struct control *control)
{
	struct stat status;

	if (control == NULL)
		return;
	while (control->clients != NULL) {
		/* An end that was just said should still get there. */
		(void)client_send(control->clients);
		client_close(control->clients);
	}
	if (control->fd >= 0) {
		loop_forget(control->loop, control->fd);
		close(control->fd);
		if (lstat(control->path, &status) == 0 &&
		    status.st_dev == control->device &&
		    status.st_ino == control->inode)
			unlink(control->path);
	}
	free(control->path);
	free(control);
}
