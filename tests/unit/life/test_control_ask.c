#include "kit/kit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/json.h"
#include "life/control.h"

/* An agent that answers one request with a text, or not at all. */
struct agent {
	char *folder;
	char path[100];
	int fd;
	const char *answer;	/* NULL: end without having read the request */
	pthread_t thread;
};

static void *
serve(void *context)
{
	struct agent *agent = context;
	char request[4096];
	int fd = accept(agent->fd, NULL, NULL);

	if (agent->answer != NULL && recv(fd, request, sizeof(request), 0) > 0)
		(void)send(fd, agent->answer, strlen(agent->answer),
		    MSG_NOSIGNAL);
	else
		/* Something lies there unread: the other side is reset. */
		(void)recv(fd, request, 1, MSG_PEEK);
	close(fd);
	return NULL;
}

static void
start(struct agent *agent, const char *answer)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	agent->folder = kit_scratch();
	agent->answer = answer;
	snprintf(agent->path, sizeof(agent->path), "%s/socket", agent->folder);
	strcpy(address.sun_path, agent->path);
	agent->fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(agent->fd, (struct sockaddr *)&address,
	    sizeof(address)), 0);
	assert_int_equal(listen(agent->fd, 1), 0);
	assert_int_equal(pthread_create(&agent->thread, NULL, serve, agent), 0);
}

static void
end(struct agent *agent)
{
	pthread_join(agent->thread, NULL);
	close(agent->fd);
	kit_scratch_remove(agent->folder);
	free(agent->folder);
}

static json_t *
ask(const char *path, struct error *error)
{
	json_t *request = json_pack("{s:s}", "request", "push"), *answer;

	answer = control_ask(path, request, NULL, NULL, error);
	json_decref(request);
	return answer;
}

static void
an_answer_is_the_last_event(void **state)
{
	struct error error = ERROR_INIT;
	struct agent agent;
	json_t *answer;

	(void)state;
	start(&agent, "{\"event\":\"progress\"}\n"
	    "{\"event\":\"end\",\"class\":5}\n");
	answer = ask(agent.path, &error);
	assert_non_null(answer);
	assert_int_equal(json_integer_value(json_object_get(answer, "class")),
	    5);
	json_decref(answer);
	end(&agent);
}

static void
nobody_listens(void **state)
{
	char *folder = kit_scratch(), path[100];
	struct error error = ERROR_INIT;

	(void)state;
	snprintf(path, sizeof(path), "%s/socket", folder);
	assert_null(ask(path, &error));
	assert_int_equal(error.class, ERROR_NO_AGENT);
	kit_scratch_remove(folder);
	free(folder);
}

static void
an_agent_that_is_killed_meanwhile_is_none(void **state)
{
	static const char *const answers[] = { NULL, "",
		"{\"event\":\"progress\"}\n", "{\"event\":\"en" };
	struct error error;
	struct agent agent;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		error_clear(&error);
		start(&agent, answers[i]);
		assert_null(ask(agent.path, &error));
		assert_int_equal(error.class, ERROR_NO_AGENT);
		assert_string_equal(error.message,
		    "the agent ended before it had answered");
		end(&agent);
	}
}

static void
what_is_no_answer_is_refused(void **state)
{
	struct error error = ERROR_INIT;
	struct agent agent;

	(void)state;
	start(&agent, "hello\n");
	assert_null(ask(agent.path, &error));
	assert_int_equal(error.class, ERROR_DAMAGED);
	end(&agent);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_is_the_last_event),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(an_agent_that_is_killed_meanwhile_is_none),
		cmocka_unit_test(what_is_no_answer_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
