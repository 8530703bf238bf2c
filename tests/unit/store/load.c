#include "unit/store/load.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/queue.h"
#include "kit/kit.h"
#include "store/backend.h"

void
load_bytes(const struct load *load, size_t number, char data[LOAD_CHUNK])
{
	uint64_t seed = load->seed * 1000003 + number;

	if (load->new_chunks > 0 && number + load->new_chunks >= load->chunks)
		seed += (load->step + 1) * UINT64_C(1000000007);
	kit_random(data, LOAD_CHUNK, seed);
}

/* One chunk on its way. */
struct parcel {
	struct backend_request request;
	struct source_memory memory;
	struct source body;
	char data[LOAD_CHUNK], key[KEY_SIZE];
};

static void
arrive(struct backend_request *request)
{
	assert_int_equal(queue_put(request->context, request), 0);
}

/* Send chunk ${number} unless it is there already.  Return whether it was. */
static bool
send_one(struct backend *backend, struct writer *writer, uint64_t attempt,
    const struct load *load, size_t number, struct parcel *parcel,
    struct queue *arrived)
{
	uint8_t digest[SHA256_SIZE];
	struct writer_place place;

	load_bytes(load, number, parcel->data);
	sha256_of(parcel->data, LOAD_CHUNK, digest);
	if (writer_find(writer, attempt, digest, LOAD_CHUNK, &place))
		return false;
	parcel->memory = (struct source_memory){ parcel->data, LOAD_CHUNK };
	parcel->body = source_from_memory(&parcel->memory);
	parcel->request = (struct backend_request){ .operation = BACKEND_PUT,
		.key = writer_chunk_key(writer, attempt, digest, parcel->key),
		.body = &parcel->body, .length = LOAD_CHUNK, .done = arrive,
		.context = arrived };
	memcpy(parcel->request.sha256, digest, SHA256_SIZE);
	backend_submit(backend, &parcel->request);
	return true;
}

int
load_send(struct backend *backend, struct writer *writer, uint64_t attempt,
    const struct load *load, size_t limit, size_t *sent, struct error *error)
{
	struct parcel *parcels = calloc(load->chunks + 1, sizeof(*parcels));
	struct queue *arrived = queue_new(load->chunks + 1, error);
	struct backend_request *request;
	int result = 0;
	size_t i;

	assert_non_null(parcels);
	assert_non_null(arrived);
	*sent = 0;
	for (i = 0; i < load->chunks && i < limit; i++)
		*sent += send_one(backend, writer, attempt, load, i,
		    &parcels[i], arrived);
	for (i = 0; i < *sent; i++) {
		request = queue_take(arrived, CLOCK_NEVER);
		if (request->error.class == ERROR_NONE) {
			assert_int_equal(writer_stored(writer, attempt,
			    request->sha256, LOAD_CHUNK), 0);
			continue;
		}
		*error = request->error;
		result = -1;
	}
	queue_free(arrived);
	free(parcels);
	return result;
}

static char *
copy(const char *text)
{
	char *fresh = strdup(text);

	assert_non_null(fresh);
	return fresh;
}

static void
fill_chunks(struct writer *writer, uint64_t attempt, const struct load *load,
    struct manifest *manifest)
{
	struct manifest_entry *entry = &manifest->entries[0];
	char data[LOAD_CHUNK];
	struct writer_place place;
	size_t i;

	for (i = 0; i < load->chunks; i++) {
		struct manifest_chunk *chunk = &manifest->chunks[i];

		load_bytes(load, i, data);
		sha256_of(data, sizeof(data), chunk->digest);
		assert_true(writer_find(writer, attempt, chunk->digest,
		    sizeof(data), &place));
		chunk->key = copy(place.key);
		chunk->size = place.size;
		entry->extents[i] = (struct manifest_extent){
			.chunk = (uint32_t)i, .length = LOAD_CHUNK };
	}
	manifest->chunk_count = entry->extent_count = load->chunks;
	entry->size = manifest->size = load->chunks * LOAD_CHUNK;
}

struct manifest *
load_manifest(struct writer *writer, uint64_t attempt, const struct load *load)
{
	struct manifest *manifest = manifest_new();

	assert_non_null(manifest);
	manifest->name = copy(load->name);
	manifest->series = copy(load->series == NULL ? load->name :
	    load->series);
	manifest->layout = copy("file");
	manifest->reason = copy("made for a test");
	manifest->role = load->role;
	manifest->has_step = load->has_step;
	manifest->step = load->step;
	manifest->proven = !load->unproven;
	manifest->completed.tv_sec = load->completed;
	manifest->target = 8 << 20;
	manifest->entries = calloc(1, sizeof(*manifest->entries));
	manifest->chunks = calloc(load->chunks + 1, sizeof(*manifest->chunks));
	assert_non_null(manifest->entries);
	assert_non_null(manifest->chunks);
	manifest->entry_count = 1;
	manifest->entries[0].path = copy(load->name);
	manifest->entries[0].mode = 0644;
	manifest->entries[0].extents = calloc(load->chunks + 1,
	    sizeof(struct manifest_extent));
	assert_non_null(manifest->entries[0].extents);
	fill_chunks(writer, attempt, load, manifest);
	return manifest;
}

int
load_commit(struct backend *backend, struct writer *writer,
    const struct load *load, const struct writer_directory *directory,
    uint64_t deadline, size_t *sent, struct error *error)
{
	static const struct writer_directory nothing;
	uint64_t attempt = writer_begin(writer);
	struct manifest *manifest = NULL;
	size_t ignored;

	if (load_send(backend, writer, attempt, load, SIZE_MAX,
	    sent == NULL ? &ignored : sent, error) == 0) {
		manifest = load_manifest(writer, attempt, load);
		if (writer_commit(writer, attempt, manifest,
		    directory == NULL ? &nothing : directory, deadline,
		    error) == 0)
			return 0;
	}
	manifest_free(manifest);
	writer_end(writer, attempt);
	return -1;
}

struct writer *
load_take_over(struct backend *backend, uint64_t keep, uint64_t delay,
    const char *host, struct error *error)
{
	struct writer_options options = { .nodes = 1, .rules.keep = keep,
		.delete_delay = delay, .identity = json_object() };
	struct writer *writer;

	assert_int_equal(json_set_name(options.identity, "host", host), 0);
	assert_int_equal(json_set_time(options.identity, "time",
	    clock_wall()), 0);
	writer = writer_take_over(backend, &options,
	    clock_monotonic() + 600 * CLOCK_SECOND, error);
	json_decref(options.identity);
	return writer;
}
