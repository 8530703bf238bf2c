/* room: base */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A path whose every character is taken literally must match itself. */
static void
check_literal(const char *path)
{
	size_t length = strlen(path);
	char *pattern, *out;

	if (!path_is_harmless(path) || length > 2000)
		return;
	pattern = malloc(2 * length + 2);
	if (pattern == NULL)
		return;
	out = pattern;
	*out++ = '/';
	for (; *path != '\0'; path++) {
		if (strchr("*?[\\", *path) != NULL)
			*out++ = '\\';
		*out++ = *path;
	}
	*out = '\0';
	if (!path_matches(pattern, path - length))
		abort();
	free(pattern);
}

/* The pattern, a line's end, the path. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *line = memchr(data, '\n', size);
	size_t first = line != NULL ? (size_t)(line - data) : size;
	char *pattern = strndup((const char *)data, first);
	char *path = first < size ?
	    strndup((const char *)line + 1, size - first - 1) : strdup("a");

	if (pattern != NULL && path != NULL) {
		(void)path_matches(pattern, path);
		check_literal(path);
	}
	free(path);
	free(pattern);
	return 0;
}
