#include "cmd/apart.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cmd/options.h"

/*
 * The real path of ${path}, of which the last parts need not exist yet, in
 * fresh memory; NULL when it cannot be told.
 */
static char *
real_path(const char *path)
{
	char *left = strdup(path), *real = NULL, *slash, *whole = NULL;
	const char *rest = "";

	while (left != NULL && *left != '\0' &&
	    (real = realpath(left, NULL)) == NULL) {
		slash = strrchr(left, '/');
		if (slash == NULL) {
			rest = path;
			real = realpath(".", NULL);
			break;
		}
		*slash = '\0';
		rest = path + (slash - left) + 1;
		if (slash == left)
			real = strdup("");
		if (real != NULL)
			break;
	}
	if (real != NULL && asprintf(&whole, "%s%s%s",
	    strcmp(real, "/") == 0 ? "" : real, *rest != '\0' ? "/" : "",
	    rest) < 0)
		whole = NULL;
	free(real);
	free(left);
	return whole;
}

/* Whether ${path} is ${folder} or lies inside it.  "" is the root. */
static bool
is_inside(const char *path, const char *folder)
{
	size_t length = strlen(folder);

	return strncmp(path, folder, length) == 0 &&
	    (path[length] == '/' || path[length] == '\0');
}

int
apart_check(const struct options *options, struct error *error)
{
	const char *url = options->settings.url;
	char *folder, *remote;
	int result = 0;

	if (options->settings.folder == NULL || url == NULL ||
	    strncmp(url, "file://", 7) != 0)
		return 0;
	url += strncmp(url, "file://localhost/", 17) == 0 ? 16 : 7;
	folder = real_path(options->settings.folder);
	remote = real_path(url);
	if (folder != NULL && remote != NULL) {
		if (is_inside(folder, remote))
			result = error_set(error, ERROR_USAGE, CAUSE_OTHER,
			    options->settings.url, "the directory %s lies in "
			    "the remote", folder);
		else if (options->command != COMMAND_RESTORE &&
		    is_inside(remote, folder))
			result = error_set(error, ERROR_USAGE, CAUSE_OTHER,
			    options->settings.url, "the remote lies in the "
			    "directory %s and would back itself up", folder);
	}
	if (result != 0)
		error_cure(error, "let neither hold the other");
	free(folder);
	free(remote);
	return result;
}
