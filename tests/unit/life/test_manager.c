#include "kit/kit.h"

#include <string.h>

#include "base/clock.h"
#include "life/manager.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void
the_unit_is_in_the_control_group(void **state)
{
	static const struct {
		const char *text;
		const char *unit;
		bool of_user;
	} good[] = {
		{ "0::/system.slice/train.service\n", "train.service", false },
		{ "0::/system.slice/train.service/agent\n", "train.service",
		    false },
		{ "0::/system.slice/system-run.slice/run@7.service",
		    "run@7.service", false },
		{ "12:pids:/x\n1:name=systemd:/system.slice/a.service\n"
		    "0::/b.service\n", "a.service", false },
		{ "0::/\n1:name=systemd:/system.slice/a.service\n",
		    "a.service", false },
		{ "0::/user.slice/user-1000.slice/user@1000.service/app.slice/"
		    "train.service\n", "train.service", true },
	};
	static const char *const bad[] = { "", "\n", "0::", "0::/", "0::x",
	    "0::/user.slice/user-1000.slice/session-3.scope\n",
	    "0::/user.slice/user-1000.slice/user@1000.service/init.scope\n",
	    "0::/system.slice/docker-0123.scope\n", "4:memory:/a.service\n",
	    "0::/.service\n", "1:name=systemd:/\n", "garbage", "::::" };
	struct manager manager = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_int_equal(manager_unit(good[i].text, &manager), 0);
		assert_string_equal(manager.unit, good[i].unit);
		assert_int_equal(manager.of_user, good[i].of_user);
	}
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(manager_unit(bad[i], &manager), -1);
}

static void
a_name_that_is_too_long_is_no_unit(void **state)
{
	char text[1024] = "0::/";
	struct manager manager = { 0 };

	(void)state;
	memset(text + 4, 'x', 600);
	strcpy(text + 604, ".service\n");
	assert_int_equal(manager_unit(text, &manager), -1);
}

static void
properties_are_read(void **state)
{
	struct manager manager = { 0 };
	char text[400];

	(void)state;
	assert_int_equal(manager_properties("TimeoutStopUSec=1min 30s\n"
	    "KillMode=control-group\n", &manager), 0);
	assert_int_equal(manager.stop, 90 * CLOCK_SECOND);
	assert_string_equal(manager.kill_mode, "control-group");
	assert_int_equal(manager_properties("KillMode=mixed\n"
	    "TimeoutStopUSec=infinity", &manager), 0);
	assert_int_equal(manager.stop, CLOCK_NEVER);
	assert_string_equal(manager.kill_mode, "mixed");
	assert_int_equal(manager_properties("", &manager), -1);
	assert_int_equal(manager_properties("TimeoutStopUSec=\n", &manager),
	    -1);
	assert_int_equal(manager_properties("TimeoutStopUSec", &manager), -1);
	memset(text, '9', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memcpy(text, "TimeoutStopUSec=", 16);
	assert_int_equal(manager_properties(text, &manager), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_unit_is_in_the_control_group),
		cmocka_unit_test(a_name_that_is_too_long_is_no_unit),
		cmocka_unit_test(properties_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
