#include "watch/choice.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "watch/view.h"

static bool
matches_any(const char *const *patterns, size_t count, const char *path)
{
	for (size_t i = 0; i < count; i++) {
		if (path_matches(patterns[i], path))
			return true;
	}
	return false;
}

/*
 * The defaults say what the globs wandb/, .git/, __pycache__/ and *.tmp say,
 * at a fraction of their price: they are asked for every name at every scan.
 */
static bool
is_default_folder(const char *name)
{
	return strcmp(name, "wandb") == 0 || strcmp(name, ".git") == 0 ||
	    strcmp(name, "__pycache__") == 0;
}

static bool
is_default_file(const char *name)
{
	size_t length = strlen(name);

	return length >= 4 && strcmp(name + length - 4, ".tmp") == 0;
}

/* Whether a component before the last one is left out by default. */
static bool
is_beneath_default(const char *path)
{
	const char *slash;
	char name[NAME_MAX + 1];

	for (; (slash = strchr(path, '/')) != NULL; path = slash + 1) {
		size_t length = (size_t)(slash - path);

		if (length >= sizeof(name))
			continue;
		memcpy(name, path, length);
		name[length] = '\0';
		if (is_default_folder(name))
			return true;
	}
	return false;
}

bool
choice_has_file(const struct view_options *options, const char *path)
{
	if (options->exclude_count > 0 &&
	    matches_any(options->exclude, options->exclude_count, path))
		return false;
	if (options->include_count > 0)
		return matches_any(options->include, options->include_count,
		    path);
	return !is_default_file(path_base(path)) && !is_beneath_default(path);
}

bool
choice_has_folder(const struct view_options *options, const char *path)
{
	char beneath[PATH_MAX];

	for (size_t i = 0; i < options->exclude_count; i++) {
		const char *pattern = options->exclude[i];
		size_t length = strlen(pattern);

		if (path_matches(pattern, path))
			return false;
		/* "logs/" matches what is beneath, whatever its name. */
		if (length > 0 && pattern[length - 1] == '/' &&
		    (size_t)snprintf(beneath, sizeof(beneath), "%s/x", path) <
		    sizeof(beneath) && path_matches(pattern, beneath))
			return false;
	}
	return options->include_count > 0 ||
	    (!is_default_folder(path_base(path)) &&
	    !is_default_file(path_base(path)));
}
