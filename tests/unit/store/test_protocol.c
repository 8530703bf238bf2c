/*
 * The protocol on the store in memory and on file://.
 */
#include "kit/kit.h"

#include <stdio.h>
#include <stdlib.h>

#include "store/backend_file.h"
#include "unit/store/delaying.h"
#include "unit/store/suite.h"

static char *folder;
static unsigned stores;

static struct backend *
open_memory(void)
{
	return delaying_new(NULL, NULL);
}

static struct backend *
open_file(void)
{
	char path[512];
	struct error error;

	snprintf(path, sizeof(path), "%s/a/store-%u", folder, ++stores);
	return backend_file_open(path, true, &error);
}

int
main(void)
{
	int failed;

	suite_open = open_memory;
	failed = cmocka_run_group_tests_name("memory", suite_tests, NULL,
	    NULL);
	folder = kit_scratch();
	suite_open = open_file;
	failed += cmocka_run_group_tests_name("file", suite_tests, NULL,
	    NULL);
	kit_scratch_remove(folder);
	free(folder);
	return failed;
}
