#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

#include <stdbool.h>

/*
 * What the firmware says about this machine (DMI, /sys/class/dmi/id), without
 * asking any network.
 */

#define MACHINE_TEXT_SIZE 128

/**
 * machine_cloud():
 * Whose machine this is, as a word of ours: "aws", "google", "azure",
 * "alibaba", "tencent", "oracle", "huawei", "hetzner", "scaleway",
 * "digitalocean", "vultr", "upcloud", "akamai", "openstack".  NULL when the
 * firmware names none of them, which does not prove that it is none.  Any
 * thread.
 */
const char *machine_cloud(void);

/**
 * machine_type(text):
 * The product name that the firmware gives ("p4d.24xlarge" on AWS; elsewhere
 * the name of the hypervisor or the model of the hardware), cut to fit and
 * without control characters, into ${text}.  Return ${text}, or NULL when it
 * gives none.  Any thread.
 */
char *machine_type(char text[MACHINE_TEXT_SIZE]);

/**
 * machine_has_gpu():
 * Whether the driver of an NVIDIA GPU is loaded.  Any thread.
 */
bool machine_has_gpu(void);

/**
 * machine_test_root(folder):
 * For tests, before threads start: look beneath ${folder}, which must stay,
 * instead of "/"; NULL: as usual.
 */
void machine_test_root(const char *folder);

#endif
