/* room: store */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "store/manifest.h"
#include "store/mount.h"
#include "store/opening.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read can be written, and is read again as the same. */
static void
write_again(const struct manifest *manifest)
{
	struct manifest *again;
	struct buffer buffer;
	struct error error;
	uint8_t digest[SHA256_SIZE];
	char key[KEY_SIZE];

	buffer_init(&buffer, MANIFEST_SIZE_MAXIMUM);
	if (manifest_write(manifest, &buffer, &error) != 0)
		abort();
	sha256_of(buffer.data, buffer.length, digest);
	key_manifest(&manifest->term, manifest->attempt, digest, key);
	again = manifest_read(key, buffer.data, buffer.length, &error);
	if (again == NULL || !manifest_same_content(manifest, again))
		abort();
	manifest_free(again);
	buffer_free(&buffer);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct term term = { 0, 3, UINT64_C(0x9f2c5d1e0a7b4c68) };
	struct manifest *manifest;
	struct mount mount;
	struct error error;
	uint8_t digest[SHA256_SIZE];
	char key[KEY_SIZE], *text;

	sha256_of(data, size, digest);
	key_manifest(&term, 17, digest, key);
	manifest = manifest_read(key, data, size, &error);
	if (manifest != NULL)
		write_again(manifest);
	manifest_free(manifest);
	opening_free(opening_read(&term, data, size, &error));

	text = malloc(size + 1);
	if (text == NULL)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	(void)mount_find(text, 33, &mount);
	free(text);
	return 0;
}
