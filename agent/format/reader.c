#include "format/reader.h"

#include <archive.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/source.h"

#define WINDOW_FULL 65536
#define WINDOW_AFTER_JUMP 16384

/* Spared for what libarchive reads twice: both ends and the directory. */
#define BUDGET_SPARE (4u << 20)

struct reader {
	const struct source *source;
	struct archive *archive;
	uint64_t at;		/* offset of the next byte to hand over */
	uint64_t start;		/* what `window` holds, and how much */
	size_t length;
	size_t next;		/* size of the next window */
	uint64_t budget;	/* bytes that may still be handed over */
	bool failed;		/* the source could not be read */
	struct error error;	/* why; set too when the budget is spent */
	uint8_t window[WINDOW_FULL];
};

static la_ssize_t
hand_over(struct archive *archive, void *context, const void **bytes)
{
	struct reader *reader = context;
	uint64_t left = reader->source->size - reader->at;
	size_t length = left < reader->next ? (size_t)left : reader->next;

	if (length > reader->budget) {
		error_set(&reader->error, ERROR_DAMAGED, CAUSE_OTHER,
		    reader->source->name, "its parts lie over each other");
		archive_set_error(archive, EILSEQ, "read too much");
		return ARCHIVE_FATAL;
	}
	reader->length = 0;
	if (source_read(reader->source, reader->at, reader->window, length,
	    &reader->error) != 0) {
		reader->failed = true;
		archive_set_error(archive, EIO,
		    "reading failed");
		return ARCHIVE_FATAL;
	}
	reader->start = reader->at;
	reader->length = length;
	reader->at += length;
	reader->budget -= length;
	reader->next = WINDOW_FULL;
	*bytes = reader->window;
	return (la_ssize_t)length;
}

/* libarchive takes a short skip for the end of what can be skipped. */
static la_int64_t
skip(struct archive *archive, void *context, la_int64_t request)
{
	struct reader *reader = context;
	uint64_t left = reader->source->size - reader->at;

	(void)archive;
	if (request <= 0)
		return 0;
	if ((uint64_t)request > left)
		request = (la_int64_t)left;
	reader->at += (uint64_t)request;
	reader->next = WINDOW_AFTER_JUMP;
	return request;
}

static la_int64_t
seek(struct archive *archive, void *context, la_int64_t offset, int whence)
{
	struct reader *reader = context;
	la_int64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ?
	    (la_int64_t)reader->at : (la_int64_t)reader->source->size;
	la_int64_t to;

	if (__builtin_add_overflow(base, offset, &to) || to < 0 ||
	    (uint64_t)to > reader->source->size) {
		archive_set_error(archive, EILSEQ,
		    "it points outside of itself");
		return ARCHIVE_FATAL;
	}
	if ((uint64_t)to != reader->at)
		reader->next = WINDOW_AFTER_JUMP;
	reader->at = (uint64_t)to;
	return to;
}

struct reader *
reader_open(const struct source *source, int (*support)(struct archive *),
    bool *failed, struct error *error)
{
	struct reader *reader = calloc(1, sizeof(*reader));

	if (reader == NULL)
		goto no_memory;
	reader->source = source;
	reader->next = WINDOW_FULL;
	reader->budget = source->size > UINT64_MAX / 2 ? UINT64_MAX :
	    2 * source->size + BUDGET_SPARE;
	reader->archive = archive_read_new();
	if (reader->archive == NULL ||
	    support(reader->archive) != ARCHIVE_OK ||
	    archive_read_set_read_callback(reader->archive, hand_over) !=
	    ARCHIVE_OK ||
	    archive_read_set_skip_callback(reader->archive, skip) !=
	    ARCHIVE_OK ||
	    archive_read_set_seek_callback(reader->archive, seek) !=
	    ARCHIVE_OK ||
	    archive_read_set_callback_data(reader->archive, reader) !=
	    ARCHIVE_OK)
		goto no_memory;
	if (archive_read_open1(reader->archive) != ARCHIVE_OK) {
		*failed = reader->failed;
		reader_fail(reader, error);
		reader_free(reader);
		return NULL;
	}
	return reader;

no_memory:
	reader_free(reader);
	error_set(error, ERROR_FAILED, CAUSE_MEMORY, source->name,
	    "out of memory for reading an archive");
	return NULL;
}

struct archive *
reader_archive(struct reader *reader)
{
	return reader->archive;
}

int
reader_locate(const struct reader *reader, const void *block,
    uint64_t *offset)
{
	uintptr_t first = (uintptr_t)reader->window;
	uintptr_t place = (uintptr_t)block;

	if (place < first || place >= first + reader->length)
		return -1;
	*offset = reader->start + (place - first);
	return 0;
}

const uint8_t *
reader_recent(const struct reader *reader, uint64_t *start, size_t *length)
{
	*start = reader->start;
	*length = reader->length;
	return reader->window;
}

bool
reader_failed(const struct reader *reader)
{
	return reader->failed;
}

int
reader_fail(const struct reader *reader, struct error *error)
{
	const char *text = archive_error_string(reader->archive);

	if (reader->error.class != ERROR_NONE) {
		*error = reader->error;
		return -1;
	}
	return error_set(error, ERROR_DAMAGED,
	    archive_errno(reader->archive) == ENOMEM ? CAUSE_MEMORY :
	    CAUSE_OTHER, reader->source->name, "%s",
	    text != NULL ? text : "it cannot be read as an archive");
}

void
reader_free(struct reader *reader)
{
	if (reader == NULL)
		return;
	if (reader->archive != NULL)
		archive_read_free(reader->archive);
	free(reader);
}
