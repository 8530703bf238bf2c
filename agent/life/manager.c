#include "life/manager.h"

#include <fcntl.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "base/process.h"
#include "life/judgement.h"

#define ANSWER_LIMIT 65536
#define PATIENCE (3 * CLOCK_SECOND)

/* The line of systemd's own hierarchy: version 2's, or its name in 1. */
static const char *
find_path(const char *text, size_t *length)
{
	static const char *const marks[] = { "0::", "name=systemd:" };
	const char *line, *at, *found = NULL;

	for (line = text; *line != '\0'; line += *line == '\n') {
		size_t size = strcspn(line, "\n");

		for (int i = 0; i < 2; i++) {
			at = i == 0 ? line : memchr(line, ':', size);
			if (at == NULL)
				continue;
			at += i;
			if (strncmp(at, marks[i], strlen(marks[i])) != 0)
				continue;
			at += strlen(marks[i]);
			/* Where both are there, systemd uses version 1's. */
			if (found == NULL || i == 1) {
				found = at;
				*length = size - (size_t)(at - line);
			}
		}
		line += size;
	}
	return found;
}

int
manager_unit(const char *text, struct manager *manager)
{
	static const char suffix[] = ".service";
	size_t length = 0, end, start, size = sizeof(suffix) - 1;
	const char *path = find_path(text, &length);

	/* The innermost service: a user's lies in user@1000.service. */
	for (end = path == NULL ? 0 : length; end > 0; end = start - 1) {
		for (start = end; start > 0 && path[start - 1] != '/';)
			start--;
		if (start == 0)
			break;
		if (end - start <= size || end - start >=
		    sizeof(manager->unit) ||
		    memcmp(path + end - size, suffix, size) != 0)
			continue;
		if (strncmp(path + start, "user@", 5) == 0)
			return -1;	/* a session of that user */
		memcpy(manager->unit, path + start, end - start);
		manager->unit[end - start] = '\0';
		manager->of_user = memmem(path, start, "/user@", 6) != NULL;
		return 0;
	}
	return -1;
}

/* The value of the line "${name}=value" in ${text}, "" when it is missing. */
static void
read_property(const char *text, const char *name, char *value, size_t size)
{
	size_t length = strlen(name);

	value[0] = '\0';
	for (; *text != '\0'; text += *text == '\n') {
		size_t end = strcspn(text, "\n");

		if (strncmp(text, name, length) == 0 && text[length] == '=' &&
		    end - length - 1 < size) {
			memcpy(value, text + length + 1, end - length - 1);
			value[end - length - 1] = '\0';
		}
		text += end;
	}
}

int
manager_properties(const char *text, struct manager *manager)
{
	char value[128];

	read_property(text, "KillMode", manager->kill_mode,
	    sizeof(manager->kill_mode));
	read_property(text, "TimeoutStopUSec", value, sizeof(value));
	return judgement_timespan(value, &manager->stop);
}

int
manager_find(struct manager *manager)
{
	char *const system[] = { "systemctl", "show", "-p", "TimeoutStopUSec",
	    "-p", "KillMode", "--", manager->unit, NULL };
	char *const user[] = { "systemctl", "--user", "show", "-p",
	    "TimeoutStopUSec", "-p", "KillMode", "--", manager->unit, NULL };
	struct error ignored = ERROR_INIT;
	struct buffer text;
	int result = -1;

	memset(manager, 0, sizeof(*manager));
	buffer_init(&text, ANSWER_LIMIT);
	if (path_read_at(AT_FDCWD, "/proc/self/cgroup", &text,
	    &ignored) == 0 && manager_unit(buffer_text(&text), manager) == 0) {
		buffer_clear(&text);
		if (process_output(manager->of_user ? user : system, PATIENCE,
		    &text, &ignored) == 0)
			result = manager_properties(buffer_text(&text),
			    manager);
	}
	buffer_free(&text);
	return result;
}
