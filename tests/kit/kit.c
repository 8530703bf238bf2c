#include "kit/kit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/path.h"

char *
kit_scratch(void)
{
	const char *parent = getenv("TMPDIR");
	char *folder;

	if (parent == NULL || parent[0] == '\0')
		parent = "/tmp";
	folder = path_join(parent, "ckptsync-test-XXXXXX");
	assert_non_null(folder);
	if (mkdtemp(folder) == NULL)
		fail_msg("%s: %s", folder, strerror(errno));
	return folder;
}

void
kit_scratch_remove(char *folder)
{
	struct error error = ERROR_INIT;

	assert_ok(path_remove_tree(AT_FDCWD, folder, &error), error);
}

void
kit_write_file(const char *path, const void *data, size_t length)
{
	struct error error = ERROR_INIT;
	const char *base = path_base(path);
	int fd;

	if (base > path + 1) {
		char *folder = strndup(path, (size_t)(base - path) - 1);

		assert_non_null(folder);
		assert_ok(path_make_folders(folder, 0777, &error), error);
		free(folder);
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0 || path_write_all(fd, data, length) != 0)
		fail_msg("%s: %s", path, strerror(errno));
	close(fd);
}

char *
kit_read_file(const char *path, size_t *length)
{
	struct error error = ERROR_INIT;
	struct buffer buffer;

	buffer_init(&buffer, SIZE_MAX / 2);
	assert_ok(path_read_at(AT_FDCWD, path, &buffer, &error), error);
	assert_ok(buffer_append(&buffer, "", 0, &error), error);
	*length = buffer.length;
	return buffer.data;
}

void
kit_random(void *data, size_t length, uint64_t seed)
{
	unsigned char *bytes = data;

	/* SplitMix64 (Steele, Lea, Flood 2014). */
	for (size_t i = 0; i < length; i += 8) {
		uint64_t bits = (seed += UINT64_C(0x9e3779b97f4a7c15));
		size_t some = length - i < 8 ? length - i : 8;

		bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
		bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
		bits ^= bits >> 31;
		for (size_t k = 0; k < some; k++)
			bytes[i + k] = (unsigned char)(bits >> (8 * k));
	}
}
