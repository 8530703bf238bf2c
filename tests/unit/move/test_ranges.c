#include "unit/move/payload.h"

#include "base/log.h"
#include "move/fetcher.h"
#include "move/ranges.h"
#include "move/remote_file.h"

#define MIB ((size_t)1 << 20)

/* A file of large tensors with small ones between, and what is known of it. */
struct place {
	struct scene *scene;
	struct truth *truth;
	struct manifest *manifest;
	size_t entry;
	char *data;
	size_t length;
	_Atomic bool cancel;
	_Atomic uint64_t fetched;
};

static size_t
find_file(const struct manifest *manifest)
{
	size_t i;

	for (i = 0; i < manifest->entry_count; i++)
		if (manifest->entries[i].kind == MANIFEST_FILE)
			return i;
	fail_msg("no file in the manifest");
	return 0;
}

static struct place *
make_place(size_t count, size_t size)
{
	struct place *place = calloc(1, sizeof(*place));
	struct payload payload = { .count = count, .size = size };
	char *path;
	size_t i;

	assert_non_null(place);
	for (i = 0; i < count; i++)
		payload.seeds[i] = i + 1;
	place->scene = scene_new();
	payload_torch(place->scene, "last.pt", &payload);
	path = scene_path(place->scene, NULL, "last.pt");
	place->data = kit_read_file(path, &place->length);
	free(path);
	scene_push(place->scene, "last.pt");
	place->truth = scene_truth(place->scene);
	place->manifest = place->truth->valid[0];
	place->entry = find_file(place->manifest);
	script_reset(place->scene->script);
	return place;
}

static void
free_place(struct place *place)
{
	truth_free(place->truth);
	scene_free(place->scene);
	free(place->data);
	free(place);
}

static struct remote_file_set *
open_set(struct place *place)
{
	struct error error = ERROR_INIT;
	struct remote_file_set *set;

	set = remote_file_set_new(&place->scene->script->backend,
	    place->manifest, &place->cancel, &place->fetched, &error);
	assert_non_null(set);
	return set;
}

static void
check_read(struct place *place, const struct source *source, uint64_t offset,
    size_t length)
{
	struct error error = ERROR_INIT;
	char *got = malloc(length + 1);

	assert_non_null(got);
	assert_ok(source_read(source, offset, got, length, &error), error);
	assert_memory_equal(got, place->data + offset, length);
	free(got);
}

/* Every extent's bytes, and each GET inside of its chunk. */
static void
check_ranges(const struct ranges *ranges)
{
	const struct range *range;
	uint64_t bytes = 0;
	size_t i, j;

	for (i = 0; i < ranges->count; i++) {
		range = &ranges->all[i];
		bytes += range->length;
		assert_true(range->length > 0);
		assert_true(range->offset + range->length <=
		    range->chunk->size);
		for (j = 0; j < range->proof_count; j++) {
			assert_true(range->proofs[j].offset >= range->offset);
			assert_true(range->proofs[j].offset +
			    range->proofs[j].length <=
			    range->offset + range->length);
		}
		for (j = 0; j < range->portion_count; j++) {
			assert_true(range->portions[j].offset >=
			    range->offset);
			assert_true(range->portions[j].offset +
			    range->portions[j].length <=
			    range->offset + range->length);
		}
	}
	assert_int_equal(bytes, ranges->bytes);
}

static uint64_t
plan(struct place *place, const struct ranges_wish *wishes, size_t count,
    uint64_t slack, size_t *gets)
{
	struct error error = ERROR_INIT;
	struct ranges ranges;
	uint64_t bytes;

	assert_ok(ranges_make(place->manifest, wishes, count, slack, &ranges,
	    &error), error);
	check_ranges(&ranges);
	bytes = ranges.bytes;
	*gets = ranges.count;
	ranges_free(&ranges);
	return bytes;
}

static void
test_what_shares_a_hash(void **state)
{
	struct place *place = make_place(12, 300000);
	const struct manifest_entry *entry =
	    &place->manifest->entries[place->entry];
	struct ranges_wish wishes[40];
	uint64_t start = 0, sum = 0;
	size_t i, gets, count = 0;

	(void)state;
	assert_true(entry->extent_count > 12);
	/* One byte costs its extent. */
	for (i = 0; i < entry->extent_count; i++) {
		wishes[0] = (struct ranges_wish){ place->entry,
		    start + entry->extents[i].length - 1, 1 };
		assert_int_equal(plan(place, wishes, 1, 0, &gets),
		    entry->extents[i].length);
		assert_int_equal(gets, 1);
		start += entry->extents[i].length;
	}
	/* Twice is once, whatever the order. */
	wishes[1] = (struct ranges_wish){ place->entry, 0, place->length };
	assert_int_equal(plan(place, wishes, 2, 0, &gets), place->length);
	/* Nothing costs nothing. */
	wishes[0].length = 0;
	assert_int_equal(plan(place, wishes, 1, 0, &gets), 0);
	assert_int_equal(gets, 0);
	/* Every other extent: with slack, one request a chunk. */
	start = 0;
	for (i = 0; i < entry->extent_count; i++) {
		if (i % 2 == 1 && entry->extents[i].length > 1000) {
			wishes[count++] = (struct ranges_wish){ place->entry,
			    start, entry->extents[i].length };
			sum += entry->extents[i].length;
		}
		start += entry->extents[i].length;
	}
	assert_int_equal(plan(place, wishes, count, 0, &gets), sum);
	assert_int_equal(gets, count);
	assert_true(plan(place, wishes, count, 40000, &gets) <= sum + 40000);
	assert_true(gets < count);
	free_place(place);
}

/* A manifest that does not say the hash of an extent: the whole chunk. */
static void
test_without_digests(void **state)
{
	struct place *place = make_place(12, 300000);
	struct manifest_entry *entry =
	    &place->manifest->entries[place->entry];
	struct remote_file_set *set;
	struct ranges_wish wish = { place->entry, 5, 10 };
	size_t i, gets;

	(void)state;
	for (i = 0; i < entry->extent_count; i++)
		entry->extents[i].has_digest = false;
	assert_int_equal(plan(place, &wish, 1, 0, &gets),
	    place->manifest->chunks[entry->extents[0].chunk].size);
	set = open_set(place);
	check_read(place, remote_file_source(set, place->entry), 5, 10);
	check_read(place, remote_file_source(set, place->entry), 0,
	    place->length);
	remote_file_set_free(set);
	free_place(place);
}

static void
test_read_anywhere(void **state)
{
	struct place *place = make_place(9, 3 * MIB + 11);
	struct remote_file_set *set = open_set(place);
	const struct source *source = remote_file_source(set, place->entry);
	uint64_t number;
	size_t i, length;

	(void)state;
	assert_int_equal(source->size, place->length);
	for (i = 0; i < 400; i++) {
		kit_random(&number, sizeof(number), i);
		length = i % 50 == 0 ? 12 * MIB : number % 70000 + 1;
		number = number / 70000 % (place->length - length);
		check_read(place, source, number, length);
	}
	assert_int_equal(place->fetched, place->scene->script->get_bytes);
	remote_file_set_free(set);
	free_place(place);
}

/* Front to back in small steps: few requests, and each byte once. */
static void
test_read_in_steps(void **state)
{
	struct place *place = make_place(60, 40000);
	struct remote_file_set *set = open_set(place);
	const struct source *source = remote_file_source(set, place->entry);
	uint64_t at, edge;

	(void)state;
	for (at = 0; at + 500 <= place->length; at += 500) {
		check_read(place, source, at, 500);
		edge = source->find_edge(source->context, at);
		assert_true(edge > at && edge <= place->length);
	}
	assert_true(place->fetched <= place->length);
	assert_true(place->scene->script->gets < 30);
	remote_file_set_free(set);
	free_place(place);
}

static void
test_cache_is_bounded(void **state)
{
	struct place *place = make_place(8, 6 * MIB);
	struct remote_file_set *set = open_set(place);
	const struct source *source = remote_file_source(set, place->entry);
	uint64_t length, at, cached = 0;

	(void)state;
	for (at = 0; at < place->length; at += 6 * MIB)
		check_read(place, source, at, 100);
	for (at = 0; at < place->length; at += length) {
		length = place->length - at;
		if (remote_file_cached(set, place->entry, at, &length) != NULL)
			cached += length;
		assert_true(length > 0);
	}
	assert_true(cached > 0 && cached <= REMOTE_FILE_CACHE);
	remote_file_set_free(set);
	free_place(place);
}

static void
damage_chunk(struct place *place, size_t chunk, uint64_t offset)
{
	const char *key = place->manifest->chunks[chunk].key;
	const char *name = strrchr(key, '/') + 1;
	size_t length;
	char path[4096], *data;

	/* On a disk, chunks are spread over folders (ckptsync-format(5)). */
	snprintf(path, sizeof(path), "%s/%.*s%.2s/%s", place->scene->store,
	    (int)(name - key), key, name, name);
	data = kit_read_file(path, &length);
	data[offset] ^= 1;
	kit_write_file(path, data, length);
	free(data);
}

/* One wrong bit, wherever it is in what has to be fetched. */
static void
test_damage(void **state)
{
	struct place *place = make_place(12, 300000);
	const struct manifest_entry *entry =
	    &place->manifest->entries[place->entry];
	const struct manifest_extent *extent;
	struct remote_file_set *set;
	struct error error = ERROR_INIT;
	uint64_t start = 0;
	char byte;
	size_t i;

	(void)state;
	for (i = 0; i < entry->extent_count; i++) {
		extent = &entry->extents[i];
		damage_chunk(place, extent->chunk,
		    extent->offset + extent->length - 1);
		set = open_set(place);
		script_reset(place->scene->script);
		assert_int_equal(source_read(
		    remote_file_source(set, place->entry), start, &byte, 1,
		    &error), -1);
		assert_int_equal(error.class, ERROR_DAMAGED);
		assert_string_equal(error.object,
		    place->manifest->chunks[extent->chunk].key);
		assert_non_null(strstr(error.message, "last.pt"));
		assert_int_equal(place->scene->script->gets, 2);
		remote_file_set_free(set);
		damage_chunk(place, extent->chunk,
		    extent->offset + extent->length - 1);
		start += extent->length;
	}
	free_place(place);
}

static void
test_store_fails(void **state)
{
	struct place *place = make_place(3, 300000);
	struct remote_file_set *set = open_set(place);
	const struct source *source = remote_file_source(set, place->entry);
	struct script *script = place->scene->script;
	struct error error = ERROR_INIT;
	char byte;

	(void)state;
	script->fail_get = 1;
	assert_int_equal(source_read(source, 0, &byte, 1, &error), -1);
	assert_int_equal(error.cause, CAUSE_UNREACHABLE);
	script->cause = CAUSE_NOT_FOUND;
	assert_int_equal(source_read(source, 0, &byte, 1, &error), -1);
	assert_int_equal(error.class, ERROR_DAMAGED);
	script->fail_get = 0;
	place->cancel = true;
	assert_int_equal(source_read(source, 0, &byte, 1, &error), -1);
	assert_int_equal(error.cause, CAUSE_CANCELLED);
	place->cancel = false;
	check_read(place, source, 0, 1);
	assert_int_equal(source_read(source, place->length, &byte, 1, &error),
	    -1);
	assert_int_equal(error.class, ERROR_DAMAGED);
	remote_file_set_free(set);
	free_place(place);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_shares_a_hash),
		cmocka_unit_test(test_without_digests),
		cmocka_unit_test(test_read_anywhere),
		cmocka_unit_test(test_read_in_steps),
		cmocka_unit_test(test_cache_is_bounded),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_store_fails),
	};

	log_setup(LOG_TEXT, LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
