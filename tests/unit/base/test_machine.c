#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "kit/kit.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static char *root;

static int
make_root(void **state)
{
	(void)state;
	root = kit_scratch();
	machine_test_root(root);
	return 0;
}

static int
remove_root(void **state)
{
	(void)state;
	machine_test_root(NULL);
	kit_scratch_remove(root);
	free(root);
	return 0;
}

static void
write_line(const char *path, const char *text)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", root, path);
	kit_write_file(full, text, strlen(text));
}

#define DMI "/sys/class/dmi/id/"

static void
names_the_cloud(void **state)
{
	static const struct {
		const char *path, *text, *cloud;
	} cases[] = {
		{ DMI "bios_vendor", "Amazon EC2\n", "aws" },
		{ DMI "sys_vendor", "Amazon EC2", "aws" },
		{ "/sys/hypervisor/uuid", "EC2a1b2c-0000\n", "aws" },
		{ DMI "product_name", "Google Compute Engine\n", "google" },
		{ DMI "product_serial", "GoogleCloud-0123\n", "google" },
		{ DMI "chassis_asset_tag",
		    "7783-7084-3265-9085-8269-3286-77\n", "azure" },
		{ DMI "product_name", "Alibaba Cloud ECS\n", "alibaba" },
		{ DMI "sys_vendor", "Tencent Cloud\n", "tencent" },
		{ DMI "chassis_asset_tag", "OracleCloud.com\n", "oracle" },
		{ DMI "sys_vendor", "Linode\n", "akamai" },
		{ DMI "product_name", "OpenStack Nova\n", "openstack" },
		{ DMI "product_name", "Not Amazon EC2\n", NULL },
		{ DMI "sys_vendor", "Amazon EC2 Look-alike\n", NULL },
		{ DMI "bios_vendor", "", NULL },
		{ "/sys/hypervisor/uuid", "e2c00000\n", NULL },
	};

	(void)state;
	assert_null(machine_cloud());
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *cloud;

		write_line(cases[i].path, cases[i].text);
		cloud = machine_cloud();
		if (cases[i].cloud == NULL)
			assert_null(cloud);
		else
			assert_string_equal(cloud, cases[i].cloud);
		write_line(cases[i].path, "");
	}
}

/* A cloud that is OpenStack beneath is named by its own name. */
static void
prefers_the_closer_name(void **state)
{
	(void)state;
	write_line(DMI "product_name", "OpenStack Nova\n");
	write_line(DMI "chassis_asset_tag", "HUAWEICLOUD\n");
	assert_string_equal(machine_cloud(), "huawei");
}

static void
names_the_type(void **state)
{
	char text[MACHINE_TEXT_SIZE], long_name[1000];

	(void)state;
	assert_null(machine_type(text));
	write_line(DMI "product_name", "p4d.24xlarge\nmore\n");
	assert_string_equal(machine_type(text), "p4d.24xlarge");
	write_line(DMI "product_name", "a\x1b[1mb  \n");
	assert_string_equal(machine_type(text), "a?[1mb");

	memset(long_name, 'x', sizeof(long_name));
	long_name[sizeof(long_name) - 1] = '\0';
	write_line(DMI "product_name", long_name);
	assert_int_equal(strlen(machine_type(text)), MACHINE_TEXT_SIZE - 1);
	write_line(DMI "product_name", "\n");
	assert_null(machine_type(text));
}

static void
sees_a_gpu(void **state)
{
	(void)state;
	assert_false(machine_has_gpu());
	write_line("/proc/driver/nvidia/version", "NVRM version: 550\n");
	assert_true(machine_has_gpu());
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_the_cloud, make_root,
		    remove_root),
		cmocka_unit_test_setup_teardown(prefers_the_closer_name,
		    make_root, remove_root),
		cmocka_unit_test_setup_teardown(names_the_type, make_root,
		    remove_root),
		cmocka_unit_test_setup_teardown(sees_a_gpu, make_root,
		    remove_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
