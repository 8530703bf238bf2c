#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "kit/kit.h"
#include "mock.h"

#define ROUTES 32
#define CONNECTIONS 512

struct route {
	char key[256];
	struct mock_reply reply;
	unsigned version;
	size_t count;
	size_t answered;
	struct mock_seen seen;
};

struct connection {
	struct mock *mock;
	pthread_t thread;
	int socket;
	unsigned number;
};

struct mock {
	int listener;
	char url[64];
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stop;
	size_t total;
	size_t busy;		/* requests that are being answered */
	size_t route_count;
	struct route routes[ROUTES];
	unsigned connection_count;
	struct connection connections[CONNECTIONS];
};

/* Under the lock. */
static struct route *
find(struct mock *mock, const char *key)
{
	struct route *route;

	for (size_t i = 0; i < mock->route_count; i++)
		if (strcmp(mock->routes[i].key, key) == 0)
			return &mock->routes[i];
	if (mock->route_count == ROUTES)
		abort();
	route = &mock->routes[mock->route_count++];
	snprintf(route->key, sizeof(route->key), "%s", key);
	route->reply = (struct mock_reply){ .status = 404,
	    .body = "<html><body>404 - Not Found</body></html>\n" };
	return route;
}

static void
send_all(int out, const char *data, size_t length)
{
	while (length > 0) {
		ssize_t sent = send(out, data, length, MSG_NOSIGNAL);

		if (sent <= 0)
			return;
		data += sent;
		length -= (size_t)sent;
	}
}

/* Read up to the blank line and the body; -1 when the client has gone. */
static int
read_request(int in, char *text, size_t size)
{
	size_t length = 0, wanted = 0;

	for (;;) {
		char *end = strstr(text, "\r\n\r\n"), *field;
		ssize_t got;

		if (end != NULL && wanted == 0) {
			wanted = (size_t)(end + 4 - text);
			field = strcasestr(text, "Content-Length:");
			if (field != NULL && field < end)
				wanted += strtoul(field + 15, NULL, 10);
		}
		if (wanted != 0 && length >= wanted)
			return 0;
		if (length + 1 >= size)
			return -1;
		got = recv(in, text + length, size - 1 - length, 0);
		if (got <= 0)
			return -1;
		length += (size_t)got;
		text[length] = '\0';
	}
}

static bool
client_has_gone(int in)
{
	char byte;

	return recv(in, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void
reset(int out)
{
	struct linger linger = { .l_onoff = 1 };

	setsockopt(out, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

/* Return whether the connection can go on. */
static bool
answer(int out, const struct mock_reply *reply)
{
	const char *body = reply->body != NULL ? reply->body : "";
	size_t length = strlen(body);
	char head[1024];

	if (reply->kind == MOCK_RESET) {
		reset(out);
		return false;
	}
	snprintf(head, sizeof(head), "HTTP/1.1 %d Word\r\n%s%s%s%s"
	    "Content-Type: text/plain\r\nContent-Length: %zu\r\n\r\n",
	    reply->status == 0 ? 200 : reply->status,
	    reply->headers != NULL ? reply->headers : "",
	    reply->etag != NULL ? "ETag: " : "",
	    reply->etag != NULL ? reply->etag : "",
	    reply->etag != NULL ? "\r\n" : "", length);
	send_all(out, head, strlen(head));
	if (reply->kind == MOCK_CUT) {
		send_all(out, body, length / 2);
		return false;
	}
	for (size_t i = 0; reply->kind == MOCK_DRIP && i < length; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
		send_all(out, body + i, 1);
	}
	if (reply->kind == MOCK_ANSWER)
		send_all(out, body, length);
	return true;
}

/* Note what came and wait as long as its path says so.  Under the lock. */
static struct mock_reply
meet(struct mock *mock, struct connection *connection, struct route *route,
    const char *text)
{
	unsigned version = route->version;
	char wait[256];
	bool waits;

	mock->total++;
	mock->busy++;
	route->count++;
	pthread_cond_broadcast(&mock->changed);
	snprintf(wait, sizeof(wait), "last_etag=%s&", route->reply.etag !=
	    NULL ? route->reply.etag : "");
	waits = route->reply.kind == MOCK_HOLD || (route->reply.etag != NULL &&
	    strstr(text, "wait_for_change=true") != NULL &&
	    strstr(text, wait) != NULL);
	if (waits) {
		mock->busy--;
		pthread_cond_broadcast(&mock->changed);
	}
	while (waits && version == route->version && !mock->stop &&
	    !client_has_gone(connection->socket)) {
		struct timespec limit;

		clock_gettime(CLOCK_REALTIME, &limit);
		limit.tv_nsec += 5000000;
		if (limit.tv_nsec >= 1000000000) {
			limit.tv_nsec -= 1000000000;
			limit.tv_sec++;
		}
		pthread_cond_timedwait(&mock->changed, &mock->lock, &limit);
	}
	if (waits)
		mock->busy++;
	return route->reply;
}

static bool
serve(struct connection *connection, const char *text)
{
	struct mock *mock = connection->mock;
	char method[16] = "", target[1024] = "", key[300];
	struct mock_reply reply;
	struct route *route;
	const char *query;
	bool goes_on;

	sscanf(text, "%15s %1023s", method, target);
	query = strchr(target, '?');
	snprintf(key, sizeof(key), "%s %.*s", method,
	    (int)strcspn(target, "?"), target);

	pthread_mutex_lock(&mock->lock);
	route = find(mock, key);
	snprintf(route->seen.query, sizeof(route->seen.query), "%s",
	    query != NULL ? query + 1 : "");
	snprintf(route->seen.head, sizeof(route->seen.head), "%.4095s", text);
	snprintf(route->seen.body, sizeof(route->seen.body), "%.1023s",
	    strstr(text, "\r\n\r\n") + 4);
	route->seen.connection = connection->number;
	reply = meet(mock, connection, route, text);
	if (reply.kind == MOCK_HOLD)
		mock->busy--;
	pthread_mutex_unlock(&mock->lock);
	if (reply.kind == MOCK_HOLD)
		return false;
	if (reply.token != NULL && strstr(text, reply.token) == NULL)
		reply = (struct mock_reply){ .status = 401, .body = "401" };
	goes_on = answer(connection->socket, &reply);

	/* Closed before it counts as answered: its client knows by then. */
	pthread_mutex_lock(&mock->lock);
	if (!goes_on) {
		close(connection->socket);
		connection->socket = -1;
	}
	mock->busy--;
	route->answered++;
	pthread_cond_broadcast(&mock->changed);
	pthread_mutex_unlock(&mock->lock);
	return goes_on;
}

static void *
run_connection(void *context)
{
	struct connection *connection = context;
	char text[8192];

	do {
		text[0] = '\0';
	} while (read_request(connection->socket, text, sizeof(text)) == 0 &&
	    serve(connection, text));
	pthread_mutex_lock(&connection->mock->lock);
	if (connection->socket >= 0)
		close(connection->socket);
	connection->socket = -1;
	pthread_mutex_unlock(&connection->mock->lock);
	return NULL;
}

static void *
run_listener(void *context)
{
	struct mock *mock = context;

	for (;;) {
		int one = accept(mock->listener, NULL, NULL);
		struct connection *connection;

		if (one < 0)
			return NULL;
		setsockopt(one, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 },
		    sizeof(int));
		pthread_mutex_lock(&mock->lock);
		if (mock->connection_count == CONNECTIONS)
			abort();
		connection = &mock->connections[mock->connection_count++];
		*connection = (struct connection){ .mock = mock,
		    .socket = one, .number = mock->connection_count };
		if (pthread_create(&connection->thread, NULL, run_connection,
		    connection) != 0)
			abort();
		pthread_mutex_unlock(&mock->lock);
	}
}

struct mock *
mock_start(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	struct mock *mock = calloc(1, sizeof(*mock));

	assert_non_null(mock);
	pthread_mutex_init(&mock->lock, NULL);
	pthread_cond_init(&mock->changed, NULL);
	mock->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(mock->listener >= 0);
	assert_int_equal(bind(mock->listener, (struct sockaddr *)&address,
	    sizeof(address)), 0);
	assert_int_equal(listen(mock->listener, 64), 0);
	assert_int_equal(getsockname(mock->listener,
	    (struct sockaddr *)&address, &length), 0);
	snprintf(mock->url, sizeof(mock->url), "http://127.0.0.1:%d",
	    ntohs(address.sin_port));
	assert_int_equal(pthread_create(&mock->thread, NULL, run_listener,
	    mock), 0);
	return mock;
}

void
mock_stop(struct mock *mock)
{
	pthread_mutex_lock(&mock->lock);
	mock->stop = true;
	pthread_cond_broadcast(&mock->changed);
	pthread_mutex_unlock(&mock->lock);
	shutdown(mock->listener, SHUT_RDWR);
	pthread_join(mock->thread, NULL);
	close(mock->listener);

	pthread_mutex_lock(&mock->lock);
	for (unsigned i = 0; i < mock->connection_count; i++)
		if (mock->connections[i].socket >= 0)
			shutdown(mock->connections[i].socket, SHUT_RDWR);
	pthread_mutex_unlock(&mock->lock);
	for (unsigned i = 0; i < mock->connection_count; i++)
		pthread_join(mock->connections[i].thread, NULL);
	pthread_cond_destroy(&mock->changed);
	pthread_mutex_destroy(&mock->lock);
	free(mock);
}

const char *
mock_url(const struct mock *mock)
{
	return mock->url;
}

void
mock_set(struct mock *mock, const char *key, struct mock_reply reply)
{
	struct route *route;

	pthread_mutex_lock(&mock->lock);
	route = find(mock, key);
	route->reply = reply;
	route->version++;
	pthread_cond_broadcast(&mock->changed);
	pthread_mutex_unlock(&mock->lock);
}

size_t
mock_count(struct mock *mock, const char *key)
{
	size_t count;

	pthread_mutex_lock(&mock->lock);
	count = find(mock, key)->count;
	pthread_mutex_unlock(&mock->lock);
	return count;
}

size_t
mock_answered(struct mock *mock, const char *key)
{
	size_t count;

	pthread_mutex_lock(&mock->lock);
	count = find(mock, key)->answered;
	pthread_mutex_unlock(&mock->lock);
	return count;
}

size_t
mock_total(struct mock *mock)
{
	size_t count;

	pthread_mutex_lock(&mock->lock);
	count = mock->total;
	pthread_mutex_unlock(&mock->lock);
	return count;
}

unsigned
mock_connections(struct mock *mock)
{
	unsigned count;

	pthread_mutex_lock(&mock->lock);
	count = mock->connection_count;
	pthread_mutex_unlock(&mock->lock);
	return count;
}

static void
wait_for(struct mock *mock, const char *key, size_t count, bool answered)
{
	struct timespec limit;
	size_t now;
	int result = 0;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 30;
	pthread_mutex_lock(&mock->lock);
	for (;;) {
		const struct route *route = find(mock, key);

		now = answered ? route->answered : route->count;
		if (now >= count || result != 0)
			break;
		result = pthread_cond_timedwait(&mock->changed, &mock->lock,
		    &limit);
	}
	pthread_mutex_unlock(&mock->lock);
	if (now < count)
		fail_msg("%s: %zu requests, not %zu", key, now, count);
}

void
mock_wait(struct mock *mock, const char *key, size_t count)
{
	wait_for(mock, key, count, false);
}

void
mock_wait_answered(struct mock *mock, const char *key, size_t count)
{
	wait_for(mock, key, count, true);
}

void
mock_wait_idle(struct mock *mock)
{
	struct timespec limit;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 30;
	pthread_mutex_lock(&mock->lock);
	while (mock->busy > 0 && pthread_cond_timedwait(&mock->changed,
	    &mock->lock, &limit) == 0)
		;
	pthread_mutex_unlock(&mock->lock);
}

struct mock_seen
mock_seen(struct mock *mock, const char *key)
{
	struct mock_seen seen;
	const struct route *route;
	size_t count;

	pthread_mutex_lock(&mock->lock);
	route = find(mock, key);
	count = route->count;
	seen = route->seen;
	pthread_mutex_unlock(&mock->lock);
	if (count == 0)
		fail_msg("%s was not asked", key);
	return seen;
}
