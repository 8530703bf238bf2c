#include "store/machine.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/path.h"

/*
 * What the clouds write there; cloud-init's tools/ds-identify has the same
 * list.  Azure shares Microsoft's name with every Hyper-V, so its chassis tag
 * counts.
 */
static const struct {
	const char *vendor, *tag, *cloud;
} clouds[] = {
	{ "Amazon EC2", NULL, "aws" },
	{ "Google", NULL, "gcp" },
	{ "Microsoft Corporation", "7783-7084-3265-9085-8269-3286-77",
	    "azure" },
	{ "Alibaba Cloud", NULL, "alibaba" },
	{ "Tencent Cloud", NULL, "tencent" },
	{ "DigitalOcean", NULL, "digitalocean" },
	{ "Hetzner", NULL, "hetzner" },
	{ "Scaleway", NULL, "scaleway" },
	{ "Vultr", NULL, "vultr" },
	{ "Akamai", NULL, "linode" },
	{ "Linode", NULL, "linode" },
	{ "OVHcloud", NULL, "ovh" },
	{ NULL, "OracleCloud.com", "oracle" },
	{ "OpenStack Foundation", NULL, "openstack" },
};

void
machine_judge(const char *vendor, const char *product, const char *tag,
    struct machine *machine)
{
	size_t i;

	memset(machine, 0, sizeof(*machine));
	for (i = 0; i < sizeof(clouds) / sizeof(*clouds); i++) {
		if ((clouds[i].vendor == NULL ||
		    strcmp(clouds[i].vendor, vendor) == 0) &&
		    (clouds[i].tag == NULL ||
		    strcmp(clouds[i].tag, tag) == 0)) {
			snprintf(machine->cloud, sizeof(machine->cloud), "%s",
			    clouds[i].cloud);
			break;
		}
	}
	snprintf(machine->type, sizeof(machine->type), "%s", product);
}

/* One line of the firmware's, or "". */
static void
read_line(const char *path, char *text, size_t size)
{
	struct buffer buffer;
	struct error ignored;

	buffer_init(&buffer, 4096);
	text[0] = '\0';
	if (path_read_at(AT_FDCWD, path, &buffer, &ignored) == 0)
		snprintf(text, size, "%s", buffer_text(&buffer));
	text[strcspn(text, "\r\n")] = '\0';
	buffer_free(&buffer);
}

void
machine_look(struct machine *machine)
{
	char vendor[96], product[96], tag[96];

	read_line("/sys/class/dmi/id/sys_vendor", vendor, sizeof(vendor));
	read_line("/sys/class/dmi/id/product_name", product, sizeof(product));
	read_line("/sys/class/dmi/id/chassis_asset_tag", tag, sizeof(tag));
	machine_judge(vendor, product, tag, machine);
}
