#include "notice/lookout.h"

#include <stddef.h>
#include <string.h>

#include "notice/alibaba.h"
#include "notice/aws.h"
#include "notice/azure.h"
#include "notice/google.h"
#include "notice/tencent.h"

/* Every cloud that says inside the machine that the machine goes. */
static const struct lookout_cloud *const clouds[] = {
	&aws_cloud,
	&google_cloud,
	&azure_cloud,
	&alibaba_cloud,
	&tencent_cloud,
};

#define COUNT (sizeof(clouds) / sizeof(clouds[0]))

const struct lookout_cloud *
lookout_find(enum notice_cloud cloud)
{
	for (size_t i = 0; i < COUNT; i++)
		if (clouds[i]->cloud == cloud)
			return clouds[i];
	return NULL;
}

const struct lookout_cloud *
lookout_find_name(const char *name)
{
	for (size_t i = 0; i < COUNT; i++)
		if (strcmp(clouds[i]->name, name) == 0)
			return clouds[i];
	return NULL;
}
