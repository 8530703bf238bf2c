#include "kit/kit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "server.h"

#define SEEN_LIMIT 512
#define CONNECTIONS_LIMIT 256
#define BODY_KEPT (1u << 20)

struct server {
	int fd;
	int port;
	char url[64];
	const struct step *steps;
	size_t count;
	pthread_t thread;
	pthread_mutex_t lock;
	bool stopping;
	size_t taken;
	struct seen *seen[SEEN_LIMIT];
	size_t seen_count;
	pthread_t threads[CONNECTIONS_LIMIT];
	int fds[CONNECTIONS_LIMIT];	/* -1: closed */
	unsigned connections;
};

struct connection {
	struct server *server;
	int fd;
	unsigned number;
	char head[12288];
	size_t length;		/* bytes in `head`, possibly beyond its end */
};

static void
nap(long milliseconds)
{
	struct timespec time = { .tv_nsec = milliseconds * 1000000 };

	nanosleep(&time, NULL);
}

static void
check(bool good, const char *what)
{
	if (!good) {
		perror(what);
		abort();
	}
}

/* Read until the head is whole; its length, or 0 when the client is gone. */
static size_t
head_read(struct connection *connection)
{
	for (;;) {
		char *end = memmem(connection->head, connection->length,
		    "\r\n\r\n", 4);
		ssize_t got;

		if (end != NULL)
			return (size_t)(end - connection->head) + 4;
		if (connection->length == sizeof(connection->head))
			return 0;
		got = recv(connection->fd, connection->head +
		    connection->length, sizeof(connection->head) -
		    connection->length, 0);
		if (got <= 0)
			return 0;
		connection->length += (size_t)got;
	}
}

static size_t
content_length(const struct seen *seen)
{
	char value[32];

	return strtoul(seen_header(seen, "content-length", value,
	    sizeof(value)), NULL, 10);
}

/* The rest of the body, of which ${have} bytes were read with the head. */
static bool
body_read(struct connection *connection, struct seen *seen, size_t have,
    bool slowly)
{
	size_t length = content_length(seen);
	size_t room = slowly ? 64 * 1024 : 256 * 1024;
	char *part = malloc(room);
	bool whole = true;

	check(part != NULL, "malloc");
	while (have < length) {
		size_t wanted = length - have < room ? length - have : room;
		ssize_t got = recv(connection->fd, part, wanted, 0);

		if (got <= 0) {
			whole = false;
			break;
		}
		for (ssize_t i = 0; i < got; i++)
			if (seen->body_length < BODY_KEPT)
				seen->body[seen->body_length++] = part[i];
		have += (size_t)got;
		if (slowly)
			nap(20);
	}
	free(part);
	return whole;
}

static struct seen *
seen_new(struct connection *connection, size_t head)
{
	struct server *server = connection->server;
	struct seen *seen = calloc(1, sizeof(*seen));

	check(seen != NULL, "calloc");
	memcpy(seen->head, connection->head, head - 2);
	sscanf(seen->head, "%15s %2047s", seen->method, seen->target);
	seen->connection = connection->number;
	seen->body = calloc(1, BODY_KEPT + 1);
	check(seen->body != NULL, "calloc");
	pthread_mutex_lock(&server->lock);
	check(server->seen_count < SEEN_LIMIT, "too many requests");
	server->seen[server->seen_count++] = seen;
	pthread_mutex_unlock(&server->lock);
	return seen;
}

static bool
send_all(int fd, const char *data, size_t length)
{
	while (length > 0) {
		ssize_t sent = send(fd, data, length, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		data += sent;
		length -= (size_t)sent;
	}
	return true;
}

/* Until the client closes, or the server is stopped. */
static void
wait_for_close(int fd)
{
	char byte[4096];

	while (recv(fd, byte, sizeof(byte), 0) > 0)
		;
}

static void
reset(int fd)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

/* Answer by the script; whether the connection goes on. */
static bool
answer(struct connection *connection, const struct seen *seen,
    const struct step *step)
{
	const char *body = step->body != NULL ? step->body : "";
	size_t length = strlen(body);
	bool head_only = strcmp(seen->method, "HEAD") == 0;
	bool whole = step->kind == STEP_ANSWER || step->kind == STEP_CLOSE ||
	    step->kind == STEP_SLOW_READ;
	char head[4096];
	int status = step->status != 0 ? step->status : 200;
	int fd = connection->fd;
	bool has_length = step->headers != NULL &&
	    strstr(step->headers, "Content-Length") != NULL;

	snprintf(head, sizeof(head), "HTTP/1.1 %d Scripted\r\n%s", status,
	    step->headers != NULL ? step->headers : "");
	if (!has_length)
		snprintf(head + strlen(head), sizeof(head) - strlen(head),
		    "Content-Length: %zu\r\n", length);
	strcat(head, "\r\n");
	if (!send_all(fd, head, strlen(head)))
		return false;
	if (head_only)
		length = 0;
	if (step->kind == STEP_DRIP) {
		for (size_t i = 0; i < length; i++) {
			nap(15);
			if (!send_all(fd, body + i, 1))
				return false;
		}
		return true;
	}
	if (!send_all(fd, body, whole ? length : step->cut))
		return false;
	if (step->kind == STEP_STALL)
		wait_for_close(fd);
	if (step->kind == STEP_RESET) {
		/* Let the client read what came before. */
		nap(50);
		reset(fd);
	}
	return step->kind == STEP_ANSWER || step->kind == STEP_SLOW_READ;
}

static const struct step *
step_take(struct server *server)
{
	static const struct step beyond = { .status = 418 };
	const struct step *step = &beyond;

	pthread_mutex_lock(&server->lock);
	if (server->taken < server->count)
		step = &server->steps[server->taken];
	server->taken++;
	pthread_mutex_unlock(&server->lock);
	return step;
}

/* One request; whether the connection goes on. */
static bool
serve(struct connection *connection)
{
	size_t head = head_read(connection);
	size_t have;
	const struct step *step;
	struct seen *seen;

	if (head == 0)
		return false;
	seen = seen_new(connection, head);
	have = connection->length - head;
	memcpy(seen->body, connection->head + head, have);
	seen->body_length = have;
	connection->length = 0;
	step = step_take(connection->server);
	if (step->kind == STEP_DEAF) {
		/* Not even the kernel's buffer is emptied. */
		struct pollfd gone = { .fd = connection->fd };

		poll(&gone, 1, -1);
		return false;
	}
	if (!body_read(connection, seen, have, step->kind == STEP_SLOW_READ))
		return false;
	if (step->kind == STEP_SILENT) {
		wait_for_close(connection->fd);
		return false;
	}
	return answer(connection, seen, step);
}

static void *
connection_main(void *context)
{
	struct connection *connection = context;
	struct server *server = connection->server;

	while (serve(connection))
		;
	pthread_mutex_lock(&server->lock);
	server->fds[connection->number - 1] = -1;
	pthread_mutex_unlock(&server->lock);
	close(connection->fd);
	free(connection);
	return NULL;
}

static void
connection_start(struct server *server, int fd)
{
	struct connection *connection = calloc(1, sizeof(*connection));
	unsigned number = server->connections;

	check(connection != NULL && number < CONNECTIONS_LIMIT, "connection");
	connection->server = server;
	connection->fd = fd;
	connection->number = number + 1;
	server->fds[number] = fd;
	server->connections++;
	check(pthread_create(&server->threads[number], NULL, connection_main,
	    connection) == 0, "pthread_create");
}

static void *
server_main(void *context)
{
	struct server *server = context;

	for (;;) {
		int fd = accept(server->fd, NULL, NULL);

		if (fd < 0)
			return NULL;
		pthread_mutex_lock(&server->lock);
		if (server->stopping)
			close(fd);
		else
			connection_start(server, fd);
		pthread_mutex_unlock(&server->lock);
	}
}

struct server *
server_start(const struct step *steps, size_t count)
{
	struct server *server = calloc(1, sizeof(*server));
	struct sockaddr_in address = { .sin_family = AF_INET,
	    .sin_addr = { .s_addr = htonl(INADDR_LOOPBACK) } };
	socklen_t length = sizeof(address);
	int small = 64 * 1024;

	check(server != NULL, "calloc");
	server->steps = steps;
	server->count = count;
	pthread_mutex_init(&server->lock, NULL);
	server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(server->fd >= 0, "socket");
	/* So that a body that nobody reads soon fills the kernel's room. */
	setsockopt(server->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	check(bind(server->fd, (struct sockaddr *)&address, length) == 0 &&
	    listen(server->fd, 128) == 0 && getsockname(server->fd,
	    (struct sockaddr *)&address, &length) == 0, "listen");
	server->port = ntohs(address.sin_port);
	snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%d",
	    server->port);
	check(pthread_create(&server->thread, NULL, server_main, server) == 0,
	    "pthread_create");
	return server;
}

void
server_stop(struct server *server)
{
	pthread_mutex_lock(&server->lock);
	server->stopping = true;
	for (unsigned i = 0; i < server->connections; i++)
		if (server->fds[i] >= 0)
			shutdown(server->fds[i], SHUT_RDWR);
	pthread_mutex_unlock(&server->lock);
	shutdown(server->fd, SHUT_RDWR);
	pthread_join(server->thread, NULL);
	for (unsigned i = 0; i < server->connections; i++)
		pthread_join(server->threads[i], NULL);
	close(server->fd);
	for (size_t i = 0; i < server->seen_count; i++) {
		free(server->seen[i]->body);
		free(server->seen[i]);
	}
	pthread_mutex_destroy(&server->lock);
	free(server);
}

const char *
server_url(const struct server *server)
{
	return server->url;
}

int
server_port(const struct server *server)
{
	return server->port;
}

size_t
server_count(struct server *server)
{
	size_t count;

	pthread_mutex_lock(&server->lock);
	count = server->seen_count;
	pthread_mutex_unlock(&server->lock);
	return count;
}

const struct seen *
server_seen(struct server *server, size_t index)
{
	const struct seen *seen = NULL;

	pthread_mutex_lock(&server->lock);
	if (index < server->seen_count)
		seen = server->seen[index];
	pthread_mutex_unlock(&server->lock);
	assert_non_null(seen);
	return seen;
}

char *
seen_header(const struct seen *seen, const char *name, char *value,
    size_t size)
{
	size_t length = strlen(name);

	value[0] = '\0';
	for (const char *line = strstr(seen->head, "\r\n"); line != NULL &&
	    line[2] != '\0'; line = strstr(line + 2, "\r\n")) {
		const char *start = line + 2;

		if (strncasecmp(start, name, length) != 0 ||
		    start[length] != ':')
			continue;
		start += length + 1;
		start += strspn(start, " ");
		snprintf(value, size, "%.*s", (int)strcspn(start, "\r"),
		    start);
	}
	return value;
}

void
server_clean_environment(void)
{
	extern char **environ;
	char names[64][64];
	size_t count = 0;

	for (char **entry = environ; *entry != NULL && count < 64; entry++)
		if (strncmp(*entry, "AWS_", 4) == 0)
			snprintf(names[count++], sizeof(names[0]), "%.*s",
			    (int)strcspn(*entry, "="), *entry);
	for (size_t i = 0; i < count; i++)
		unsetenv(names[i]);
	unsetenv("http_proxy");
	unsetenv("https_proxy");
	unsetenv("HTTPS_PROXY");
	unsetenv("all_proxy");
	unsetenv("ALL_PROXY");
	unsetenv("no_proxy");
	unsetenv("NO_PROXY");
	setenv("HOME", "/nonexistent", 1);
}
