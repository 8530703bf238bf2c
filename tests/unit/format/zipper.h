#ifndef TESTS_UNIT_FORMAT_ZIPPER_H
#define TESTS_UNIT_FORMAT_ZIPPER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/source.h"
#include "format/format.h"
#include "kit/kit.h"

/*
 * A writer of zips, also wrong ones.  What it makes is kept in memory; `skip`
 * moves on without bytes, for files larger than memory.
 */
struct member {
	const char *name;
	size_t name_length;	/* 0: strlen */
	const void *data;	/* NULL: not written */
	uint64_t length;
	uint16_t extra;		/* bytes of an extra field in the local header */
	int64_t shift;		/* added to its offset in the directory */
	uint16_t method;
	bool wide;		/* zip64 sizes and offset */
};

#define HOLES_MAXIMUM 256

struct zipper {
	char bytes[1 << 20];
	size_t length;
	char directory[1 << 20];
	size_t directory_length;
	/* Bytes not kept: so many before bytes[from]. */
	struct {
		size_t from;
		uint64_t length;
	} holes[HOLES_MAXIMUM];
	size_t hole_count;
	uint64_t hole;		/* all of them */
	uint64_t count;
};

static inline void
put(char *to, size_t *at, uint64_t number, int width)
{
	for (int i = 0; i < width; i++)
		to[(*at)++] = i < 8 ? (char)(number >> (8 * i)) : 0;
}

static inline void
put_bytes(char *to, size_t *at, const void *bytes, size_t length)
{
	memcpy(to + *at, bytes, length);
	*at += length;
}

static inline uint64_t
offset_of(const struct zipper *zipper)
{
	return zipper->length + zipper->hole;
}

static inline void
add_local(struct zipper *zipper, const struct member *member, size_t name)
{
	char *to = zipper->bytes;
	size_t *at = &zipper->length;

	put(to, at, 0x04034b50, 4);
	put(to, at, 0, 2);
	put(to, at, 0x0808, 2);		/* a descriptor follows; UTF-8 */
	put(to, at, member->method, 2);
	put(to, at, 0, 4);		/* time */
	put(to, at, 0, 4);		/* checksum and sizes: later */
	put(to, at, 0, 8);
	put(to, at, name, 2);
	put(to, at, member->extra, 2);
	put_bytes(to, at, member->name, name);
	for (int i = 0; i < member->extra; i++)
		put(to, at, i == 0 ? 'F' : i == 1 ? 'B' : i == 2 ?
		    (uint8_t)(member->extra - 4) : i == 3 ?
		    (member->extra - 4) >> 8 : 'Z', 1);
	if (member->data != NULL)
		put_bytes(to, at, member->data, (size_t)member->length);
}

static inline void
add_directory(struct zipper *zipper, const struct member *member, size_t name,
    uint64_t offset)
{
	char *to = zipper->directory;
	size_t *at = &zipper->directory_length;

	put(to, at, 0x02014b50, 4);
	put(to, at, 0, 4);
	put(to, at, 0x0808, 2);
	put(to, at, member->method, 2);
	put(to, at, 0, 4);
	put(to, at, 0, 4);
	put(to, at, member->wide ? UINT32_MAX : member->length, 4);
	put(to, at, member->wide ? UINT32_MAX : member->length, 4);
	put(to, at, name, 2);
	put(to, at, member->wide ? 28 : 0, 2);
	put(to, at, 0, 2 + 2 + 2 + 4);
	put(to, at, member->wide ? UINT32_MAX : offset, 4);
	put_bytes(to, at, member->name, name);
	if (member->wide) {
		put(to, at, 1, 2);
		put(to, at, 24, 2);
		put(to, at, member->length, 8);
		put(to, at, member->length, 8);
		put(to, at, offset, 8);
	}
	zipper->count++;
}

static inline void
add(struct zipper *zipper, struct member member)
{
	size_t name = member.name_length != 0 ? member.name_length :
	    strlen(member.name);
	uint64_t start = offset_of(zipper);

	add_local(zipper, &member, name);
	if (member.data == NULL && member.length > 0) {
		zipper->holes[zipper->hole_count].from = zipper->length;
		zipper->holes[zipper->hole_count++].length = member.length;
		zipper->hole += member.length;
	}
	/* The descriptor: signature, checksum, sizes. */
	put(zipper->bytes, &zipper->length, 0x08074b50, 4);
	put(zipper->bytes, &zipper->length, 0, 4);
	put(zipper->bytes, &zipper->length, member.length,
	    member.wide ? 8 : 4);
	put(zipper->bytes, &zipper->length, member.length,
	    member.wide ? 8 : 4);
	add_directory(zipper, &member, name, start + (uint64_t)member.shift);
}

static inline void
add_text(struct zipper *zipper, const char *name, const char *text)
{
	add(zipper, (struct member){ .name = name, .data = text,
	    .length = strlen(text), .extra = 4 });
}

/* Only the end record, saying what the caller wants. */
static inline void
add_end(struct zipper *zipper, uint64_t count, uint64_t length,
    uint64_t offset)
{
	char *to = zipper->bytes;
	size_t *at = &zipper->length;

	put(to, at, 0x06054b50, 4);
	put(to, at, 0, 4);
	put(to, at, count, 2);
	put(to, at, count, 2);
	put(to, at, length, 4);
	put(to, at, offset, 4);
	put(to, at, 0, 2);
}

static inline void
add_end64(struct zipper *zipper, uint64_t count, uint64_t length,
    uint64_t offset, uint64_t record)
{
	char *to = zipper->bytes;
	size_t *at = &zipper->length;

	put(to, at, 0x06064b50, 4);
	put(to, at, 44, 8);
	put(to, at, 0x002d031e, 4);
	put(to, at, 0, 8);
	put(to, at, count, 8);
	put(to, at, count, 8);
	put(to, at, length, 8);
	put(to, at, offset, 8);
	put(to, at, 0x07064b50, 4);
	put(to, at, 0, 4);
	put(to, at, record, 8);
	put(to, at, 1, 4);
}

/* The directory and the end as they should be. */
static inline void
finish(struct zipper *zipper, bool wide)
{
	uint64_t offset = offset_of(zipper);
	size_t length = zipper->directory_length;

	put_bytes(zipper->bytes, &zipper->length, zipper->directory, length);
	if (wide)
		add_end64(zipper, zipper->count, length, offset,
		    offset_of(zipper));
	add_end(zipper, zipper->count, length, wide ? UINT32_MAX : offset);
}

static inline struct zipper *
new_zipper(void)
{
	return calloc(1, sizeof(struct zipper));
}

/* Inspect what was made, and free it. */
static inline void
expect_named(struct zipper *zipper, const char *name,
    enum format_verdict verdict, const char *reason)
{
	char *bytes = malloc(zipper->length);
	struct source_memory memory = { bytes, zipper->length };
	struct source source = source_from_memory(&memory);
	struct format_report report;
	struct error error = ERROR_INIT;

	memcpy(bytes, zipper->bytes, zipper->length);
	assert_ok(format_inspect(&source, name, &report, &error), error);
	if (report.verdict != verdict || strstr(report.reason, reason) == NULL)
		fail_msg("verdict %d: %s; expected %d: %s", report.verdict,
		    report.reason, verdict, reason);
	format_report_free(&report);
	free(bytes);
	free(zipper);
}

static inline void
expect(struct zipper *zipper, enum format_verdict verdict, const char *reason)
{
	expect_named(zipper, "last.pt", verdict, reason);
}

/* A pickle that names one storage; returned in static memory. */
static inline const struct member *
pickle(const char *type, const char *key, uint32_t elements)
{
	static char bytes[8192];
	static struct member member;
	size_t at = 0;

	put_bytes(bytes, &at, "\x80\2(X\7\0\0\0storagectorch\n", 22);
	put_bytes(bytes, &at, type, strlen(type));
	put_bytes(bytes, &at, "\nX", 2);
	put(bytes, &at, strlen(key), 4);
	put_bytes(bytes, &at, key, strlen(key));
	put_bytes(bytes, &at, "X\3\0\0\0cpuJ", 9);
	put(bytes, &at, elements, 4);
	put_bytes(bytes, &at, "tQ.", 3);
	member = (struct member){ .name = "a/data.pkl", .data = bytes,
		.length = at, .extra = 20 };
	return &member;
}

/* A zip with holes of zeros instead of its large members. */
struct holed {
	const struct zipper *zipper;
	uint64_t read;
};

/* The run of kept bytes or zeros at ${at}; return its length, or ${most}. */
static inline size_t
run_at(const struct zipper *zipper, uint64_t at, size_t most,
    const char **bytes)
{
	uint64_t skipped = 0, left = zipper->length + zipper->hole - at;

	*bytes = NULL;
	for (size_t i = 0; i < zipper->hole_count; i++) {
		uint64_t from = zipper->holes[i].from + skipped;

		if (at < from) {
			left = from - at;
			break;
		}
		if (at < from + zipper->holes[i].length) {
			left = from + zipper->holes[i].length - at;
			return left < most ? (size_t)left : most;
		}
		skipped += zipper->holes[i].length;
	}
	*bytes = zipper->bytes + (at - skipped);
	return left < most ? (size_t)left : most;
}

static inline int
read_holed(void *context, uint64_t offset, void *data, size_t length,
    struct error *error)
{
	struct holed *holed = context;
	char *to = data;

	(void)error;
	assert_true(length <= 65536);
	holed->read += length;
	while (length > 0) {
		const char *bytes;
		size_t part = run_at(holed->zipper, offset, length, &bytes);

		if (bytes != NULL)
			memcpy(to, bytes, part);
		else
			memset(to, 0, part);
		to += part;
		offset += part;
		length -= part;
	}
	return 0;
}

#endif
