#include "watch/link.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/path.h"

/* What is behind ${root} in ${path}; NULL when it is not beneath it. */
static const char *
beneath(const char *root, const char *path)
{
	size_t length = strlen(root);

	if (strcmp(root, "/") == 0)
		return path + 1;
	if (strncmp(root, path, length) != 0 || path[length] != '/')
		return NULL;
	return path + length + 1;
}

static size_t
count_slashes(const char *path)
{
	size_t count = 0;

	for (; *path != '\0'; path++)
		count += *path == '/';
	return count;
}

/*
 * Whether the text of a link at ${path} never leaves the directory on its
 * way, however it ends.
 */
static bool
stays_inside(const char *path, const char *text)
{
	size_t depth = count_slashes(path);

	if (*text == '/')
		return false;
	while (*text != '\0') {
		size_t length = strcspn(text, "/");

		if (length == 2 && memcmp(text, "..", 2) == 0) {
			if (depth-- == 0)
				return false;
		} else if (length > 0 && !(length == 1 && *text == '.')) {
			depth++;
		}
		text += length;
		text += strspn(text, "/");
	}
	return true;
}

/* From the folder that holds ${path} to ${resolved}; both relative. */
static char *
make_relative(const char *path, const char *resolved)
{
	struct buffer buffer;
	struct error error;
	size_t same = 0;

	/* Skip the folders that both lie in. */
	for (size_t i = 0; path[i] != '\0' && path[i] == resolved[i]; i++) {
		if (path[i] == '/')
			same = i + 1;
	}
	buffer_init(&buffer, (size_t)PATH_MAX * 2);
	for (size_t up = count_slashes(path + same); up > 0; up--) {
		if (buffer_append(&buffer, "../", 3, &error) != 0)
			goto failed;
	}
	if (buffer_append(&buffer, resolved + same, strlen(resolved + same),
	    &error) != 0)
		goto failed;
	return buffer.data;
failed:
	buffer_free(&buffer);
	return NULL;
}

static enum link_kind
look_outside(const char *path, const char *text, int folder, const char *name,
    struct stat *content, struct error *note)
{
	if (fstatat(folder, name, content, 0) != 0) {
		error_set_errno(note, errno, path,
		    "the link to %s is left out", text);
		return LINK_NOWHERE;
	}
	if (!S_ISREG(content->st_mode)) {
		error_set(note, ERROR_FAILED, CAUSE_UNSUPPORTED, path,
		    "the link to %s leads to a folder outside the directory; "
		    "what is in it is not kept", text);
		error_cure(note, "give that folder as the directory, or put "
		    "it here with a bind mount");
		return LINK_NOWHERE;
	}
	error_set(note, ERROR_FAILED, CAUSE_OTHER, path,
	    "the link to %s leads outside the directory; its content is kept "
	    "instead of the link", text);
	return LINK_OUTSIDE;
}

static enum link_kind
keep_inside(const char *path, const char *text, const char *inside,
    struct link *link)
{
	*link = (struct link){ .resolved = strdup(inside) };
	link->target = stays_inside(path, text) ? strdup(text) :
	    make_relative(path, inside);
	if (link->target == NULL || link->resolved == NULL) {
		link_clear(link);
		return LINK_NOWHERE;
	}
	return LINK_INSIDE;
}

enum link_kind
link_look(const char *root, const char *path, int folder, const char *name,
    struct link *link, struct stat *content, struct error *note)
{
	char text[PATH_MAX], resolved[PATH_MAX], *full;
	const char *inside;
	ssize_t length = readlinkat(folder, name, text, sizeof(text) - 1);
	bool found;
	int number;

	*link = (struct link){ 0 };
	if (length < 0)
		return LINK_NOWHERE;
	text[length] = '\0';
	full = path_join(root, path);
	if (full == NULL)
		return LINK_NOWHERE;
	found = realpath(full, resolved) != NULL;
	number = errno;
	free(full);
	if (!found) {
		/* lightning#21110: "last.ckpt" -> "last.ckpt" */
		error_set_errno(note, number, path,
		    "the link to %s leads nowhere and is left out", text);
		return LINK_NOWHERE;
	}
	inside = beneath(root, resolved);
	if (inside != NULL)
		return keep_inside(path, text, inside, link);
	return look_outside(path, text, folder, name, content, note);
}

void
link_clear(struct link *link)
{
	free(link->target);
	free(link->resolved);
	*link = (struct link){ 0 };
}
