#include <stdio.h>
#include <stdlib.h>

#include "hostile.h"

#define MAGIC "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
#define PROTOCOL "\x80\2M\xe9\3."
#define LITTLE "\x80\2}X\x0d\0\0\0little_endian\x88s."
#define BIG "\x80\2}X\x0d\0\0\0little_endian\x89s."

/* A legacy file: these pickles, then these bytes. */
struct parts {
	const char *message;
	const char *system;
	const char *object;
	const char *keys;
	const char *storages;
	size_t system_length, object_length, keys_length, storages_length;
};

#define PARTS(message, system, object, keys, storages) { message, system, \
	object, keys, storages, sizeof(system) - 1, sizeof(object) - 1, \
	sizeof(keys) - 1, sizeof(storages) - 1 }

/* {"w": a tensor of two floats}, its storage named "7". */
#define STORAGE_OF(type, key, count, more) "((X\7\0\0\0storagectorch\n" \
	type "\nX\1\0\0\0" key "X\3\0\0\0cpu" count more "tQ"
#define OBJECT_OF(storage) "\x80\2}X\1\0\0\0wctorch._utils\n" \
	"_rebuild_tensor_v2\n" storage "K\0K\2\x85K\1\x85\x89}tRs."
#define OBJECT OBJECT_OF(STORAGE_OF("FloatStorage", "7", "K\2", "N"))
#define KEYS "\x80\2]X\1\0\0\0" "7a."
#define DATA "\2\0\0\0\0\0\0\0" "12345678"

static const struct parts cases[] = {
	PARTS("fine", LITTLE, OBJECT, KEYS, DATA),
	PARTS("its numbers are not little-endian", BIG, OBJECT, KEYS, DATA),
	PARTS("fine", "\x80\2N.", OBJECT, KEYS, DATA),
	PARTS("bytes follow its last storage", LITTLE, OBJECT, KEYS, DATA "x"),
	PARTS("inside storage 7 of 2 elements", LITTLE, OBJECT, KEYS,
	    "\2\0\0\0\0\0\0\0" "1234567"),
	PARTS("ends in the middle", LITTLE, OBJECT, KEYS, "\2\0\0"),
	PARTS("ends in the middle", LITTLE, OBJECT, KEYS, ""),
	PARTS("ends in the middle", LITTLE, OBJECT, "", ""),
	PARTS("the keys of its storages are no list", LITTLE, OBJECT,
	    "\x80\2N.", DATA),
	PARTS("the key of a storage is no text", LITTLE, OBJECT,
	    "\x80\2]K\7a.", DATA),
	PARTS("storage 8 has no type that is known", LITTLE, OBJECT,
	    "\x80\2]X\1\0\0\0" "8a.", DATA),
	PARTS("storage 7 comes twice", LITTLE, OBJECT,
	    "\x80\2](X\1\0\0\0" "7X\1\0\0\0" "7e.", DATA DATA),
	PARTS("bytes of storage 7 are not there", LITTLE, OBJECT, "\x80\2].",
	    ""),
	PARTS("storage 7 has no type that is known", LITTLE,
	    OBJECT_OF(STORAGE_OF("FutureStorage", "7", "K\2", "N")), KEYS,
	    DATA),
	PARTS("its storage is a part of another one", LITTLE,
	    OBJECT_OF(STORAGE_OF("FloatStorage", "7", "K\2",
	    "(X\1\0\0\0" "8K\0K\1t")), KEYS, DATA),
	PARTS("reaches past the end of its storage 7", LITTLE,
	    OBJECT_OF(STORAGE_OF("FloatStorage", "7", "K\1", "N")), KEYS,
	    "\1\0\0\0\0\0\0\0" "1234"),
	PARTS("inside storage 7 of 9223372036854775807 elements", LITTLE,
	    OBJECT_OF(STORAGE_OF("FloatStorage", "7",
	    "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", "N")), KEYS, DATA),
	PARTS("its storage is no storage of this file", LITTLE,
	    OBJECT_OF(STORAGE_OF("FloatStorage", "7", "J\xff\xff\xff\xff",
	    "N")), "\x80\2].", ""),
};

static void
test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct parts *parts = &cases[i];
		struct pickler file = { .length = 0 };

		pickler_raw(&file, MAGIC, sizeof(MAGIC) - 1);
		pickler_raw(&file, PROTOCOL, sizeof(PROTOCOL) - 1);
		pickler_raw(&file, parts->system, parts->system_length);
		pickler_raw(&file, parts->object, parts->object_length);
		pickler_raw(&file, parts->keys, parts->keys_length);
		pickler_raw(&file, parts->storages, parts->storages_length);
		hostile_expect(weigh_one("x.pt", file.bytes, file.length),
		    parts->message);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
