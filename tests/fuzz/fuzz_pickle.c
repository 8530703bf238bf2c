/* room: format */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/source.h"
#include "format/pickle.h"
#include "format/storage.h"
#include "format/window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever the bytes are: a value or an error, and every id can be read. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct source_memory memory = { data, size };
	struct source source = source_from_memory(&memory);
	struct window *window = malloc(sizeof(*window));
	struct error error = ERROR_INIT;
	struct storage storage;
	struct pickle *pickle;

	if (window == NULL)
		abort();
	window_init(window, &source, 0, size);
	pickle = pickle_read(window, &error);
	if (pickle == NULL && error.class != ERROR_DAMAGED)
		abort();
	if (pickle != NULL && pickle_root(pickle) == NULL)
		abort();
	for (size_t i = 0; pickle != NULL &&
	    i < pickle_persistent_count(pickle); i++)
		storage_read(pickle_persistent(pickle, i), &storage);
	pickle_free(pickle);
	free(window);
	return 0;
}
