#include "base/clock.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

/*
 * The test clock is the one piece of global state here: a clock is the
 * machine's, so its stand-in is the process's.
 */
static struct {
	atomic_bool running;
	pthread_mutex_t lock;
	pthread_cond_t turned;

	/* Under the lock. */
	struct timespec start;
	uint64_t passed;
	uint64_t slices;
} test_clock = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.turned = PTHREAD_COND_INITIALIZER,
};

#define TEST_START (1000 * CLOCK_SECOND)

static uint64_t
test_passed(void)
{
	uint64_t passed;

	pthread_mutex_lock(&test_clock.lock);
	passed = test_clock.passed;
	pthread_mutex_unlock(&test_clock.lock);
	return passed;
}

static uint64_t
real_time(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * CLOCK_SECOND + (uint64_t)now.tv_nsec;
}

uint64_t
clock_monotonic(void)
{
	if (atomic_load(&test_clock.running))
		return TEST_START + test_passed();
	return real_time(CLOCK_MONOTONIC);
}

uint64_t
clock_boot(void)
{
	if (atomic_load(&test_clock.running))
		return TEST_START + test_passed();
	return real_time(CLOCK_BOOTTIME);
}

struct timespec
clock_wall(void)
{
	struct timespec now;
	uint64_t passed;

	if (!atomic_load(&test_clock.running)) {
		clock_gettime(CLOCK_REALTIME, &now);
		return now;
	}
	pthread_mutex_lock(&test_clock.lock);
	now = test_clock.start;
	passed = test_clock.passed;
	pthread_mutex_unlock(&test_clock.lock);
	passed += (uint64_t)now.tv_nsec;
	now.tv_sec += (time_t)(passed / CLOCK_SECOND);
	now.tv_nsec = (long)(passed % CLOCK_SECOND);
	return now;
}

static uint64_t
add(uint64_t time, uint64_t more)
{
	return more > UINT64_MAX - time ? UINT64_MAX : time + more;
}

static void
test_sleep(uint64_t nanoseconds)
{
	uint64_t end;

	pthread_mutex_lock(&test_clock.lock);
	end = add(test_clock.passed, nanoseconds);
	while (test_clock.passed < end && atomic_load(&test_clock.running))
		pthread_cond_wait(&test_clock.turned, &test_clock.lock);
	pthread_mutex_unlock(&test_clock.lock);
}

void
clock_sleep(uint64_t nanoseconds)
{
	struct timespec until;
	uint64_t end;

	if (atomic_load(&test_clock.running)) {
		test_sleep(nanoseconds);
		return;
	}
	end = add(real_time(CLOCK_MONOTONIC), nanoseconds);
	until.tv_sec = (time_t)(end / CLOCK_SECOND);
	until.tv_nsec = (long)(end % CLOCK_SECOND);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until,
	    NULL) == EINTR)
		;
}

#define TEST_SLICE CLOCK_MILLISECOND
#define TEST_SLICE_BUSY (20 * CLOCK_MILLISECOND)

uint64_t
clock_slice(uint64_t nanoseconds, bool busy)
{
	uint64_t slice = busy ? TEST_SLICE_BUSY : TEST_SLICE;

	if (!atomic_load(&test_clock.running))
		return nanoseconds;
	pthread_mutex_lock(&test_clock.lock);
	test_clock.slices++;
	pthread_cond_broadcast(&test_clock.turned);
	pthread_mutex_unlock(&test_clock.lock);
	return nanoseconds < slice ? nanoseconds : slice;
}

/* The first second of the year 0 and the last of 9999: RFC 3339's range. */
#define FIRST_SECOND INT64_C(-62167219200)
#define LAST_SECOND INT64_C(253402300799)

char *
clock_text(struct timespec when, char text[CLOCK_TEXT_SIZE])
{
	time_t seconds = when.tv_sec;
	long milliseconds = when.tv_nsec / 1000000;
	struct tm parts;

	if (seconds < FIRST_SECOND)
		seconds = FIRST_SECOND;
	if (seconds > LAST_SECOND)
		seconds = LAST_SECOND;
	if (milliseconds < 0 || milliseconds > 999)
		milliseconds = 0;
	gmtime_r(&seconds, &parts);

	/* The remainders change nothing; they show the compiler the widths. */
	snprintf(text, CLOCK_TEXT_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
	    (unsigned)(parts.tm_year + 1900) % 10000,
	    (unsigned)(parts.tm_mon + 1) % 100, (unsigned)parts.tm_mday % 100,
	    (unsigned)parts.tm_hour % 100, (unsigned)parts.tm_min % 100,
	    (unsigned)parts.tm_sec % 100, (unsigned)milliseconds % 1000);
	return text;
}

/* Read exactly ${count} digits and move on; -1 when they are not there. */
static int
read_digits(const char **text, int count)
{
	int value = 0;

	for (int i = 0; i < count; i++) {
		if (!isdigit((unsigned char)**text))
			return -1;
		value = value * 10 + (**text - '0');
		(*text)++;
	}
	return value;
}

static int
read_mark(const char **text, char mark)
{
	if (toupper((unsigned char)**text) != mark)
		return -1;
	(*text)++;
	return 0;
}

static int
days_of_month(int year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31,
	    30, 31 };
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}

/* "2026-11-30T17:46:00", each part in its range. */
static int
read_date_time(const char **text, struct tm *parts)
{
	int year, month, day, hour, minute, second;

	if ((year = read_digits(text, 4)) < 0 || read_mark(text, '-') != 0 ||
	    (month = read_digits(text, 2)) < 1 || month > 12 ||
	    read_mark(text, '-') != 0 || (day = read_digits(text, 2)) < 1 ||
	    day > days_of_month(year, month))
		return -1;
	if (read_mark(text, 'T') != 0 ||
	    (hour = read_digits(text, 2)) < 0 || hour > 23 ||
	    read_mark(text, ':') != 0 ||
	    (minute = read_digits(text, 2)) < 0 || minute > 59 ||
	    read_mark(text, ':') != 0 ||
	    (second = read_digits(text, 2)) < 0 || second > 60)
		return -1;
	*parts = (struct tm){
		.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day,
		.tm_hour = hour, .tm_min = minute, .tm_sec = second,
	};
	return 0;
}

/* ".123", or nothing; what is finer than a nanosecond is dropped. */
static int
read_fraction(const char **text, long *nanoseconds)
{
	long unit = 100000000;

	*nanoseconds = 0;
	if (**text != '.')
		return 0;
	(*text)++;
	if (!isdigit((unsigned char)**text))
		return -1;
	for (; isdigit((unsigned char)**text); (*text)++) {
		*nanoseconds += unit * (**text - '0');
		unit /= 10;
	}
	return 0;
}

/* "Z", "+05:30" or "-08:00", as seconds to take away. */
static int
read_offset(const char **text, int *seconds)
{
	int sign = **text == '-' ? -1 : 1;
	int hours, minutes;

	*seconds = 0;
	if (read_mark(text, 'Z') == 0)
		return 0;
	if (read_mark(text, '+') != 0 && read_mark(text, '-') != 0)
		return -1;
	if ((hours = read_digits(text, 2)) < 0 || hours > 23 ||
	    read_mark(text, ':') != 0 ||
	    (minutes = read_digits(text, 2)) < 0 || minutes > 59)
		return -1;
	*seconds = sign * (hours * 3600 + minutes * 60);
	return 0;
}

int
clock_parse(const char *text, struct timespec *when)
{
	struct tm parts;
	long nanoseconds;
	int offset;
	bool leap;
	time_t seconds;

	if (read_date_time(&text, &parts) != 0 ||
	    read_fraction(&text, &nanoseconds) != 0 ||
	    read_offset(&text, &offset) != 0 || *text != '\0')
		return -1;

	/* A leap second ends a UTC day (RFC 3339, 5.7); it has no number. */
	leap = parts.tm_sec == 60;
	seconds = timegm(&parts) - offset;
	if (leap && seconds % 86400 != 0)
		return -1;
	*when = (struct timespec){
		.tv_sec = seconds, .tv_nsec = nanoseconds,
	};
	return 0;
}

void
clock_test_start(struct timespec wall)
{
	pthread_mutex_lock(&test_clock.lock);
	test_clock.start = wall;
	test_clock.passed = 0;
	atomic_store(&test_clock.running, true);
	pthread_mutex_unlock(&test_clock.lock);
}

void
clock_test_turn(uint64_t nanoseconds)
{
	pthread_mutex_lock(&test_clock.lock);
	test_clock.passed = add(test_clock.passed, nanoseconds);
	pthread_cond_broadcast(&test_clock.turned);
	pthread_mutex_unlock(&test_clock.lock);
}

bool
clock_test_settle(void)
{
	struct timespec limit;
	uint64_t before;
	int result = 0;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 5;
	pthread_mutex_lock(&test_clock.lock);
	before = test_clock.slices;
	while (test_clock.slices < before + 2 && result == 0)
		result = pthread_cond_timedwait(&test_clock.turned,
		    &test_clock.lock, &limit);
	pthread_mutex_unlock(&test_clock.lock);
	return result == 0;
}

void
clock_test_stop(void)
{
	pthread_mutex_lock(&test_clock.lock);
	atomic_store(&test_clock.running, false);
	pthread_cond_broadcast(&test_clock.turned);
	pthread_mutex_unlock(&test_clock.lock);
}
