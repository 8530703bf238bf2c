#include "base/machine.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* The firmware is the machine's, so a test's stand-in is the process's. */
static const char *test_root = "";

void
machine_test_root(const char *folder)
{
	test_root = folder == NULL ? "" : folder;
}

/* The first line of a small file; -1 when it is not there or empty. */
static int
read_line(const char *path, char text[MACHINE_TEXT_SIZE])
{
	char full[PATH_MAX];
	ssize_t length;
	int file;

	text[0] = '\0';
	if ((size_t)snprintf(full, sizeof(full), "%s%s", test_root, path) >=
	    sizeof(full))
		return -1;
	file = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file < 0)
		return -1;
	length = read(file, text, MACHINE_TEXT_SIZE - 1);
	close(file);
	text[length > 0 ? length : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	for (char *at = text; *at != '\0'; at++)
		if (iscntrl((unsigned char)*at))
			*at = '?';
	for (size_t n = strlen(text); n > 0 && text[n - 1] == ' '; n--)
		text[n - 1] = '\0';
	return text[0] == '\0' ? -1 : 0;
}

/*
 * Sources: cloud-init's tools/ds-identify, systemd's hwdb.d/40-imds.hwdb,
 * google-cloud-go's compute/metadata, "Identify EC2 instances" in Amazon's
 * EC2 User Guide.  Some clouds are OpenStack beneath, so that comes last.
 */
static const struct mark {
	const char *file;
	const char *value;
	bool is_beginning;
	const char *cloud;
} marks[] = {
	{ "bios_vendor", "Amazon EC2", false, "aws" },
	{ "sys_vendor", "Amazon EC2", false, "aws" },
	{ "product_name", "Google Compute Engine", false, "google" },
	{ "product_name", "Google", false, "google" },
	{ "product_serial", "GoogleCloud-", true, "google" },
	{ "chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77", false,
	    "azure" },
	{ "product_name", "Alibaba Cloud ECS", false, "alibaba" },
	{ "sys_vendor", "Tencent Cloud", false, "tencent" },
	{ "chassis_asset_tag", "OracleCloud.com", false, "oracle" },
	{ "chassis_asset_tag", "HUAWEICLOUD", false, "huawei" },
	{ "sys_vendor", "Hetzner", false, "hetzner" },
	{ "sys_vendor", "Scaleway", false, "scaleway" },
	{ "sys_vendor", "DigitalOcean", false, "digitalocean" },
	{ "sys_vendor", "Vultr", false, "vultr" },
	{ "sys_vendor", "UpCloud", false, "upcloud" },
	{ "sys_vendor", "Linode", false, "akamai" },
	{ "sys_vendor", "Akamai", false, "akamai" },
	{ "product_name", "OpenStack Nova", false, "openstack" },
	{ "product_name", "OpenStack Compute", false, "openstack" },
};

static bool
mark_is_there(const struct mark *mark)
{
	char path[64], text[MACHINE_TEXT_SIZE];

	snprintf(path, sizeof(path), "/sys/class/dmi/id/%s", mark->file);
	if (read_line(path, text) != 0)
		return false;
	return mark->is_beginning ?
	    strncmp(text, mark->value, strlen(mark->value)) == 0 :
	    strcmp(text, mark->value) == 0;
}

/* EC2's older machines run on Xen, whose UUID begins with "ec2". */
static bool
is_xen_of_amazon(void)
{
	char text[MACHINE_TEXT_SIZE];

	return read_line("/sys/hypervisor/uuid", text) == 0 &&
	    strncasecmp(text, "ec2", 3) == 0;
}

const char *
machine_cloud(void)
{
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (mark_is_there(&marks[i]))
			return marks[i].cloud;
	return is_xen_of_amazon() ? "aws" : NULL;
}

char *
machine_type(char text[MACHINE_TEXT_SIZE])
{
	return read_line("/sys/class/dmi/id/product_name", text) == 0 ? text :
	    NULL;
}

bool
machine_has_gpu(void)
{
	char text[MACHINE_TEXT_SIZE];

	return read_line("/proc/driver/nvidia/version", text) == 0;
}
