#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "kit/kit.h"

/*
 * Standard error is a socket that keeps packets apart for the test's time, so
 * that each write(2) can be seen by itself.
 */
struct capture {
	int saved;
	int ends[2];
	char text[8192];
};

static int
begin(void **state)
{
	struct capture *capture = calloc(1, sizeof(*capture));

	if (capture == NULL ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
	    capture->ends) != 0)
		return -1;
	capture->saved = dup(STDERR_FILENO);
	dup2(capture->ends[1], STDERR_FILENO);
	clock_test_start((struct timespec){ 1796060760, 123000000 });
	*state = capture;
	return 0;
}

static int
end(void **state)
{
	struct capture *capture = *state;

	log_setup(LOG_TEXT, LOG_INFO);
	clock_test_stop();
	dup2(capture->saved, STDERR_FILENO);
	close(capture->saved);
	close(capture->ends[0]);
	close(capture->ends[1]);
	free(capture);
	return 0;
}

/* What one write wrote; "" when there was none. */
static const char *
next_write(struct capture *capture)
{
	ssize_t got = recv(capture->ends[0], capture->text,
	    sizeof(capture->text) - 1, MSG_DONTWAIT);

	capture->text[got > 0 ? got : 0] = '\0';
	return capture->text;
}

static json_t *
next_object(struct capture *capture)
{
	const char *line = next_write(capture);
	json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);

	if (object == NULL)
		fail_msg("not JSON: %s", line);
	assert_int_equal(line[strlen(line) - 1], '\n');
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
	return object;
}

static const char *
text_of(const json_t *object, const char *field)
{
	return json_string_value(json_object_get(object, field));
}

static void
writes_a_line(void **state)
{
	struct capture *capture = *state;

	log_line(LOG_INFO, "durable", "%s is durable (%d new)", "last.pt", 3);
	assert_string_equal(next_write(capture),
	    "2026-11-30T17:46:00.123Z info durable: "
	    "last.pt is durable (3 new)\n");
	assert_string_equal(next_write(capture), "");

	/* Fields are not for the eye. */
	log_event(LOG_WARNING, "behind",
	    LOG_FIELDS(LOG_NUMBER_FIELD("bytes", 1)), "behind");
	assert_string_equal(next_write(capture),
	    "2026-11-30T17:46:00.123Z warning behind: behind\n");
}

static void
keeps_to_the_level(void **state)
{
	struct capture *capture = *state;

	assert_int_equal(log_level_now(), LOG_INFO);
	log_line(LOG_DEBUG, "request", "not shown");
	assert_string_equal(next_write(capture), "");
	log_setup(LOG_TEXT, LOG_ERROR);
	assert_int_equal(log_level_now(), LOG_ERROR);
	log_line(LOG_WARNING, "warning", "not shown");
	assert_string_equal(next_write(capture), "");
	log_line(LOG_ERROR, "failed", "shown");
	assert_non_null(strstr(next_write(capture), " error failed: shown\n"));
	log_setup(LOG_TEXT, LOG_DEBUG);
	log_line(LOG_DEBUG, "request", "shown");
	assert_non_null(strstr(next_write(capture), " debug request: shown"));
}

static void
foreign_bytes_stay_one_line_of_utf8(void **state)
{
	struct capture *capture = *state;

	log_line(LOG_INFO, "seen", "%s",
	    "a\nb\r\033[1m\x7f\xc2\x9b \xff\xc3 \xc3\xa9");
	assert_string_equal(next_write(capture),
	    "2026-11-30T17:46:00.123Z info seen: a?b??[1m?? "
	    "\xef\xbf\xbd\xef\xbf\xbd \xc3\xa9\n");
}

static void
long_messages_are_cut(void **state)
{
	struct capture *capture = *state;
	char long_text[6000];

	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	log_line(LOG_INFO, "seen", "%s", long_text);
	assert_true(strlen(next_write(capture)) > 2000);
	assert_true(strlen(capture->text) < 2200);
	assert_int_equal(capture->text[strlen(capture->text) - 1], '\n');
	assert_string_equal(next_write(capture), "");
}

static void
writes_objects(void **state)
{
	struct capture *capture = *state;
	json_t *object;

	log_setup(LOG_JSON, LOG_INFO);
	log_event(LOG_INFO, "durable", LOG_FIELDS(
	    LOG_TEXT_FIELD("name", "a\nb\xff"),
	    LOG_TEXT_FIELD("none", NULL),
	    LOG_NUMBER_FIELD("new_bytes", 12582912),
	    LOG_NUMBER_FIELD("huge_bytes", UINT64_MAX),
	    LOG_SECONDS_FIELD("took_s", 0.4),
	    LOG_SECONDS_FIELD("odd_s", (double)NAN)), "%s", "is\ndurable");
	object = next_object(capture);
	assert_string_equal(text_of(object, "time"),
	    "2026-11-30T17:46:00.123Z");
	assert_string_equal(text_of(object, "level"), "info");
	assert_string_equal(text_of(object, "event"), "durable");
	assert_string_equal(text_of(object, "message"), "is?durable");
	assert_string_equal(text_of(object, "name"), "a?b\xef\xbf\xbd");
	assert_true(json_is_null(json_object_get(object, "none")));
	assert_int_equal(json_integer_value(json_object_get(object,
	    "new_bytes")), 12582912);
	assert_int_equal(json_integer_value(json_object_get(object,
	    "huge_bytes")), INT64_MAX);
	assert_non_null(strstr(capture->text, "\"took_s\":0.4,"));
	assert_true(json_is_null(json_object_get(object, "odd_s")));
	json_decref(object);
}

static void
writes_errors(void **state)
{
	struct capture *capture = *state;
	struct error error = ERROR_INIT;
	json_t *object;

	error_set(&error, ERROR_NOT_DURABLE, CAUSE_UNREACHABLE, "last.pt",
	    "could not be sent");
	error_cure(&error, "check the network");
	log_failure(LOG_ERROR, "put_failed", &error);
	assert_string_equal(next_write(capture),
	    "2026-11-30T17:46:00.123Z error put_failed: "
	    "last.pt: could not be sent (check the network)\n");
	log_setup(LOG_JSON, LOG_INFO);
	log_failure(LOG_ERROR, "put_failed", &error);
	object = next_object(capture);
	assert_string_equal(text_of(object, "class"), "not_durable");
	assert_string_equal(text_of(object, "object"), "last.pt");
	assert_string_equal(text_of(object, "cure"), "check the network");
	assert_string_equal(text_of(object, "message"), "could not be sent");
	json_decref(object);
}

static void
leaves_errno_alone(void **state)
{
	(void)state;
	close(STDERR_FILENO);
	errno = ENOENT;
	log_line(LOG_ERROR, "seen", "into nothing");
	assert_int_equal(errno, ENOENT);
}

static void
a_full_pipe_does_not_block(void **state)
{
	int ends[2];
	char filling[4096] = "";

	(void)state;
	assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	while (write(ends[1], filling, sizeof(filling)) > 0)
		;
	dup2(ends[1], STDERR_FILENO);
	log_line(LOG_ERROR, "seen", "has no room");
	close(ends[0]);
	close(ends[1]);
}

#define THREADS 4
#define LINES 300

static void *
chatter(void *argument)
{
	char word[64];

	memset(word, *(const char *)argument, sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	for (int i = 0; i < LINES; i++)
		log_event(LOG_INFO, "chatter",
		    LOG_FIELDS(LOG_TEXT_FIELD("word", word)), "%s", word);
	return NULL;
}

static void
threads_do_not_mix_lines(void **state)
{
	static const char letters[THREADS] = { 'a', 'b', 'c', 'd' };
	char *folder = kit_scratch(), *path = path_join(folder, "log");
	pthread_t threads[THREADS];
	size_t length, counts[THREADS] = { 0 };
	char *text, *rest, *line;
	int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	dup2(file, STDERR_FILENO);
	close(file);
	log_setup(LOG_JSON, LOG_INFO);
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, chatter,
		    (void *)(uintptr_t)&letters[i]);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	text = kit_read_file(path, &length);
	for (line = strtok_r(text, "\n", &rest); line != NULL;
	    line = strtok_r(NULL, "\n", &rest)) {
		json_t *object = json_loads(line, 0, NULL);
		const char *word = text_of(object, "word");

		assert_non_null(word);
		assert_int_equal(strspn(word, (char[]){ word[0], 0 }), 63);
		assert_string_equal(text_of(object, "message"), word);
		counts[word[0] - 'a']++;
		json_decref(object);
	}
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(counts[i], LINES);
	free(text);
	kit_scratch_remove(folder);
	free(path);
	free(folder);
}

#define CAPTURED(test) cmocka_unit_test_setup_teardown(test, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CAPTURED(writes_a_line),
		CAPTURED(keeps_to_the_level),
		CAPTURED(foreign_bytes_stay_one_line_of_utf8),
		CAPTURED(long_messages_are_cut),
		CAPTURED(writes_objects),
		CAPTURED(writes_errors),
		CAPTURED(leaves_errno_alone),
		CAPTURED(a_full_pipe_does_not_block),
		CAPTURED(threads_do_not_mix_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
