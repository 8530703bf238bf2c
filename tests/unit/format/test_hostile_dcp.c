#include <stdio.h>
#include <stdlib.h>

#include "hostile.h"

#define MODULE "torch.distributed.checkpoint.metadata"

/* Blobs in the one file: a tensor of 2 x 2 floats twice, then no tensor. */
#define BLOB_SIZE 1024
#define CHUNKS_MAXIMUM 3

struct chunk {
	int64_t start[2], size[2];
	const char *path;
	int64_t offset, length;
};

static const struct chunk left = { { 0, 0 }, { 2, 2 }, "__0_0.distcp", 0,
	BLOB_SIZE };
static const struct chunk right = { { 0, 2 }, { 2, 2 }, "__0_0.distcp",
	BLOB_SIZE, BLOB_SIZE };

/* A tensor of 2 x 4 in chunks; what is not set is as it should be. */
struct layout {
	const char *message;
	struct chunk chunks[CHUNKS_MAXIMUM];
	size_t count;
	const char *dtype;
	const char *class;
	int64_t size[2];
	size_t dimensions;		/* of the size; else 2 */
	bool without_places;
	bool changed;
	const char *name;
};

static void
begin_object(struct pickler *pickler, const char *class)
{
	pickler_global(pickler, MODULE, class);
	pickler_put(pickler, ")\x81}(");
}

static void
put_size(struct pickler *pickler, const int64_t *numbers, size_t count)
{
	pickler_global(pickler, "torch", "Size");
	pickler_tuple(pickler, numbers, count);
	pickler_put(pickler, "\x85R");
}

static void
put_tensor(struct pickler *pickler, const struct layout *layout,
    const char *name)
{
	static const int64_t size[2] = { 2, 4 };
	size_t dimensions = layout->dimensions != 0 ? layout->dimensions : 2;

	pickler_text(pickler, name);
	begin_object(pickler, layout->class != NULL ? layout->class :
	    "TensorStorageMetadata");
	pickler_text(pickler, "properties");
	pickler_global(pickler, MODULE, "TensorProperties");
	pickler_put(pickler, ")\x81(");
	pickler_global(pickler, "torch", layout->dtype != NULL ?
	    layout->dtype : "float32");
	pickler_put(pickler, "Ntb");
	pickler_text(pickler, "size");
	put_size(pickler, layout->size[0] != 0 ? layout->size : size,
	    dimensions);
	pickler_text(pickler, "chunks");
	pickler_put(pickler, "](");
	for (size_t i = 0; i < layout->count; i++) {
		begin_object(pickler, "ChunkStorageMetadata");
		pickler_text(pickler, "offsets");
		put_size(pickler, layout->chunks[i].start, dimensions);
		pickler_text(pickler, "sizes");
		put_size(pickler, layout->chunks[i].size, dimensions);
		pickler_put(pickler, "ub");
	}
	pickler_put(pickler, "eub");
}

static void
put_place(struct pickler *pickler, const struct layout *layout,
    const struct chunk *chunk, const char *name)
{
	begin_object(pickler, "MetadataIndex");
	pickler_text(pickler, "fqn");
	pickler_text(pickler, name);
	pickler_text(pickler, "offset");
	put_size(pickler, chunk->start, layout->dimensions != 0 ?
	    layout->dimensions : 2);
	pickler_put(pickler, "ub");
	begin_object(pickler, "_StorageInfo");
	pickler_text(pickler, "relative_path");
	pickler_text(pickler, chunk->path);
	pickler_text(pickler, "offset");
	pickler_integer(pickler, chunk->offset);
	pickler_text(pickler, "length");
	pickler_integer(pickler, chunk->length);
	if (layout->changed) {
		pickler_text(pickler, "transform_descriptors");
		pickler_put(pickler, "]");
		pickler_text(pickler, "zstd");
		pickler_put(pickler, "a");
	}
	pickler_put(pickler, "ub");
}

static void
put_metadata(struct pickler *pickler, const struct layout *layout)
{
	const char *name = layout->name != NULL ? layout->name : "w";

	pickler_put(pickler, "\x80\2");
	begin_object(pickler, "Metadata");
	pickler_text(pickler, "state_dict_metadata");
	pickler_put(pickler, "}(");
	put_tensor(pickler, layout, name);
	pickler_put(pickler, "u");
	if (!layout->without_places) {
		pickler_text(pickler, "storage_data");
		pickler_put(pickler, "}(");
		for (size_t i = 0; i < layout->count; i++)
			put_place(pickler, layout, &layout->chunks[i], name);
		pickler_put(pickler, "u");
	}
	pickler_put(pickler, "ub.");
}

/* A blob: the zip of a tensor of 2 x 2, padded by what torch adds too. */
static void
put_blob(char *bytes)
{
	static const int64_t size[] = { 2, 2 }, stride[] = { 2, 1 };
	static const char floats[16] = "sixteen bytes..";
	struct pickler pickler = { .length = 0 };
	struct zipper *zipper = new_zipper();
	char comment[BLOB_SIZE] = { 0 };

	pickler_put(&pickler, "\x80\2");
	pickler_global(&pickler, "torch._utils", "_rebuild_tensor_v2");
	pickler_put(&pickler, "(");
	pickler_storage(&pickler, "FloatStorage", "0", 4);
	pickler_view(&pickler, 0, size, stride, 2);
	pickler_put(&pickler, "tR.");
	add(zipper, (struct member){ .name = "archive/data.pkl",
	    .data = pickler.bytes, .length = pickler.length, .extra = 18 });
	add(zipper, (struct member){ .name = "archive/data/0",
	    .data = floats, .length = 16, .extra = 20 });
	/* A last member takes up the room. */
	add(zipper, (struct member){ .name = "archive/version",
	    .data = comment, .length = BLOB_SIZE - zipper->length -
	    zipper->directory_length - 30 - 15 - 16 - 46 - 15 - 22 });
	finish(zipper, false);
	assert_int_equal(zipper->length, BLOB_SIZE);
	memcpy(bytes, zipper->bytes, BLOB_SIZE);
	free(zipper);
}

/* .metadata and the file of blobs, as files of one directory. */
struct directory {
	struct model_file files[2];
	struct source sources[2];
	struct source_memory memories[2];
	char *blobs;
	char *metadata;
};

static void
open_directory(struct directory *directory, const char *metadata,
    size_t length)
{
	directory->blobs = calloc(3, BLOB_SIZE);
	put_blob(directory->blobs);
	put_blob(directory->blobs + BLOB_SIZE);
	memset(directory->blobs + 2 * BLOB_SIZE, 'x', BLOB_SIZE);
	directory->metadata = malloc(length + 1);
	memcpy(directory->metadata, metadata, length);
	directory->memories[0] = (struct source_memory){ directory->metadata,
		length };
	directory->memories[1] = (struct source_memory){ directory->blobs,
		3 * BLOB_SIZE };
	for (int i = 0; i < 2; i++) {
		directory->sources[i] = source_from_memory(
		    &directory->memories[i]);
		directory->files[i].source = &directory->sources[i];
	}
	directory->files[0].path = ".metadata";
	directory->files[1].path = "__0_0.distcp";
}

static void
expect_metadata(const char *metadata, size_t length, const char *message)
{
	struct directory directory;
	struct model_options options = { .key = "." };
	struct model model;
	struct error error = ERROR_INIT;
	int result;

	open_directory(&directory, metadata, length);
	result = model_read(directory.files, 2, &options, &model, &error);
	if (strcmp(message, "fine") == 0) {
		assert_ok(result, error);
		assert_int_equal(model.count, 1);
	} else if (result == 0 || strstr(error.message, message) == NULL) {
		fail_msg("%s; expected %s", result == 0 ? "it worked" :
		    error.message, message);
	}
	model_free(&model);
	free(directory.blobs);
	free(directory.metadata);
}

static void
expect_layout(struct layout layout)
{
	struct pickler pickler = { .length = 0 };

	put_metadata(&pickler, &layout);
	expect_metadata(pickler.bytes, pickler.length, layout.message);
}

/* A chunk with something else. */
static struct chunk
started(struct chunk chunk, int64_t row, int64_t column)
{
	chunk.start[0] = row;
	chunk.start[1] = column;
	return chunk;
}

static struct chunk
sized(struct chunk chunk, int64_t rows, int64_t columns)
{
	chunk.size[0] = rows;
	chunk.size[1] = columns;
	return chunk;
}

static struct chunk
placed(const char *path, int64_t offset, int64_t length)
{
	struct chunk chunk = right;

	chunk.path = path;
	chunk.offset = offset;
	chunk.length = length;
	return chunk;
}

#define EXPECT(message_, count_, chunks_, ...) expect_layout( \
	(struct layout){ .message = message_, .count = count_, \
	.chunks = chunks_, ##__VA_ARGS__ })
#define CHUNKS(...) { __VA_ARGS__ }

static void
test_chunks(void **state)
{
	(void)state;
	EXPECT("fine", 2, CHUNKS(left, right));
	EXPECT("fine", 2, CHUNKS(right, left));
	EXPECT("parts of it are missing", 1,
	    CHUNKS(left));
	EXPECT("parts of it are missing", 0,
	    CHUNKS(left));
	EXPECT("its parts lie over each other", 2,
	    CHUNKS(left, left));
	EXPECT("its parts lie over each other", 2,
	    CHUNKS(left, started(left, 0, 1)));
	EXPECT("its parts", 3,
	    CHUNKS(left, right, right));
	EXPECT("a part of it lies outside", 2,
	    CHUNKS(left, started(right, 1, 2)));
	EXPECT("a part of it lies outside", 2,
	    CHUNKS(left, started(right, 0, -2)));
	EXPECT("a part of it lies outside", 2,
	    CHUNKS(left, started(right, 0, INT64_MAX)));
	EXPECT("a part of it lies outside", 2,
	    CHUNKS(left, sized(right, 2, INT64_MAX)));
	EXPECT("a part of it lies outside", 2,
	    CHUNKS(left, sized(right, -2, 2)));
	EXPECT("another one than .metadata says", 2,
	    CHUNKS(left, sized(right, 1, 2)));
	/* A rank without rows has a chunk without elements. */
	EXPECT("fine", 3,
	    CHUNKS(left, right, sized(right, 0, 2)));
}

static void
test_places(void **state)
{
	(void)state;
	EXPECT("has no storage_data", 2,
	    CHUNKS(left, right), .without_places = true);
	EXPECT("its file __9_9.distcp is not there", 2,
	    CHUNKS(left, placed("__9_9.distcp", BLOB_SIZE, BLOB_SIZE)));
	EXPECT("its file ../__0_0.distcp is not there", 2,
	    CHUNKS(left, placed("../__0_0.distcp", BLOB_SIZE, BLOB_SIZE)));
	EXPECT("reaches past the end of its file", 2,
	    CHUNKS(left, placed("__0_0.distcp", 3 * BLOB_SIZE - 1, BLOB_SIZE)));
	EXPECT("reaches past the end of its file", 2,
	    CHUNKS(left, placed("__0_0.distcp", INT64_MAX, BLOB_SIZE)));
	EXPECT("reaches past the end of its file", 2,
	    CHUNKS(left, placed("__0_0.distcp", BLOB_SIZE,
	    INT64_MAX)));
	EXPECT("stored nowhere", 2,
	    CHUNKS(left, placed("__0_0.distcp", -1, BLOB_SIZE)));
	EXPECT("stored nowhere", 2,
	    CHUNKS(left, placed("__0_0.distcp", BLOB_SIZE,
	    -1)));
	EXPECT("no zip end record", 2,
	    CHUNKS(left, placed("__0_0.distcp", 2 * BLOB_SIZE, BLOB_SIZE)));
	EXPECT("no zip end record", 2,
	    CHUNKS(left, placed("__0_0.distcp", 1, BLOB_SIZE)));
	EXPECT("no zip end record", 2,
	    CHUNKS(left, placed("__0_0.distcp", BLOB_SIZE,
	    100)));
	EXPECT("no zip end record", 2,
	    CHUNKS(left, placed("__0_0.distcp", BLOB_SIZE,
	    0)));
	EXPECT("it is compressed or otherwise changed", 2,
	    CHUNKS(left, right), .changed = true);
}

static void
test_tensors(void **state)
{
	(void)state;
	EXPECT("it holds no tensors", 2,
	    CHUNKS(left, right), .class = "BytesStorageMetadata");
	EXPECT("another one than .metadata says", 2,
	    CHUNKS(left, right), .dtype = "float16");
	EXPECT("its element type is none", 2,
	    CHUNKS(left, right), .dtype = "float99");
	EXPECT("it is quantised", 2,
	    CHUNKS(left, right), .dtype = "quint8");
	EXPECT("it has a negative size", 2,
	    CHUNKS(left, right), .size = { -1, 4 });
	EXPECT("it is too large for any file", 2,
	    CHUNKS(left, right), .size = { INT64_MAX, INT64_MAX });
	EXPECT("parts of it are missing", 2,
	    CHUNKS(left, right), .size = { 1 << 30, 4 });
	EXPECT("another one than .metadata says", 1,
	    CHUNKS(left), .size = { 2 }, .dimensions = 1);
	EXPECT("fine", 2,
	    CHUNKS(left, right), .name = "../../../etc/passwd");
}

#define ROOT "c" MODULE "\nMetadata\n)\x81"

static void
test_other_pickles(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
		const char *message;
	} cases[] = {
#define CASE(bytes, message) { bytes, sizeof(bytes) - 1, message }
		CASE("", "ends in the middle"),
		CASE("junk", "does not begin with a protocol"),
		CASE("\x80\2N.", "has no state_dict_metadata"),
		CASE("\x80\2}.", "has no state_dict_metadata"),
		CASE("\x80\2" ROOT ".", "has no state_dict_metadata"),
		CASE("\x80\2" ROOT "}b.", "has no state_dict_metadata"),
		CASE("\x80\2" ROOT "}X\x13\0\0\0state_dict_metadataNsb.",
		    "has no state_dict_metadata"),
		CASE("\x80\2" ROOT "}X\x13\0\0\0state_dict_metadata}sb.",
		    "has no storage_data"),
		CASE("\x80\2" ROOT "}(X\x13\0\0\0state_dict_metadata}"
		    "X\x0c\0\0\0storage_data}ub.", "it holds no tensors"),
		/* Names and places that are no text, no numbers. */
		CASE("\x80\2" ROOT "}(X\x13\0\0\0state_dict_metadata}(K\1K\2"
		    "NNu" "X\x0c\0\0\0storage_data}(K\1K\2NNuub.",
		    "it holds no tensors"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_metadata(cases[i].bytes, cases[i].length,
		    cases[i].message);
}

/* The ways to tensors, as planner_data has them. */
static void
expect_way(const char *way, size_t length, const char *wanted)
{
	struct pickler pickler = { .length = 0 };
	struct layout layout = { .chunks = { left, right }, .count = 2,
		.name = "optimizer.w" };
	struct model_options options = { .key = "." };
	struct directory directory;
	struct model model;
	struct error error = ERROR_INIT;

	put_metadata(&pickler, &layout);
	pickler.length -= 3;
	pickler_text(&pickler, "planner_data");
	pickler_put(&pickler, "}");
	pickler_text(&pickler, "optimizer.w");
	pickler_raw(&pickler, way, length);
	pickler_put(&pickler, "sub.");
	open_directory(&directory, pickler.bytes, pickler.length);
	assert_ok(model_read(directory.files, 2, &options, &model, &error),
	    error);
	assert_int_equal(model.count, 1);
	assert_string_equal(model.tensors[0].name, wanted);
	model_free(&model);
	free(directory.blobs);
	free(directory.metadata);
}

#define WAY(bytes, wanted) expect_way(bytes, sizeof(bytes) - 1, wanted)

static void
test_ways(void **state)
{
	(void)state;
	WAY("(X\1\0\0\0aX\1\0\0\0bt", "a.b");
	WAY("(X\1\0\0\0aK\7X\3\0\0\0c.dt", "a.7.c.d");
	WAY("(K\1t", "1");
	/* What is none: the name as it is. */
	WAY(")", "optimizer.w");
	WAY("N", "optimizer.w");
	WAY("(NNt", "optimizer.w");
	WAY("(X\1\0\0\0aJ\xff\xff\xff\xfft", "optimizer.w");
	WAY("(K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1K\1t",
	    "optimizer.w");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_tensors),
		cmocka_unit_test(test_other_pickles),
		cmocka_unit_test(test_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
