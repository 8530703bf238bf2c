#ifndef STORE_MACHINE_H
#define STORE_MACHINE_H

#include <stddef.h>

/* On what kind of machine this runs, from what its firmware says (DMI). */
struct machine {
	char cloud[32];		/* "aws", "gcp", "azure", ...; "": not known */
	char type[96];		/* "m5.large", else the product's name; may be "" */
};

/**
 * machine_judge(vendor, product, tag, machine):
 * From the texts in /sys/class/dmi/id: sys_vendor, product_name and
 * chassis_asset_tag ("": not there).
 */
void machine_judge(const char *vendor, const char *product, const char *tag,
    struct machine *machine);

/**
 * machine_look(machine):
 * This machine.  Starts no command and asks no server.
 */
void machine_look(struct machine *machine);

#endif
