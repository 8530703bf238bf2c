#ifndef FORMAT_READER_H
#define FORMAT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct archive;
struct source;

/*
 * libarchive on a source.  Bytes are handed over in windows of at most 64 KiB
 * (the first after a jump is smaller, since after a jump only a header is
 * wanted), and no more of them than a reader of honest files needs.
 */
struct reader;

/**
 * reader_open(source, support, failed, error):
 * A reader of ${source} for the format that ${support}, like libarchive's
 * archive_read_support_format_*, sets up.  NULL when that does not work:
 * ERROR_DAMAGED when it is not of that format; *${failed} is set when the
 * source could not be read.
 */
struct reader *reader_open(const struct source *source,
    int (*support)(struct archive *), bool *failed, struct error *error);

/**
 * reader_archive(reader):
 * The open archive, the reader's.
 */
struct archive *reader_archive(struct reader *reader);

/**
 * reader_locate(reader, block, offset):
 * Where in the source the bytes at ${block}, which archive_read_data_block
 * has just given, lie.  Return 0, or -1 when they are not the source's own
 * (unpacked or decrypted).
 */
int reader_locate(const struct reader *reader, const void *block,
    uint64_t *offset);

/**
 * reader_recent(reader, start, length):
 * The window that was handed over last: *${length} bytes of the source from
 * offset *${start} on, until libarchive is used again.
 */
const uint8_t *reader_recent(const struct reader *reader, uint64_t *start,
    size_t *length);

/**
 * reader_fail(reader, error):
 * Say why libarchive gave up: the source's own error when reading failed
 * (reader_failed), else ERROR_DAMAGED with libarchive's text.  Return -1.
 */
int reader_fail(const struct reader *reader, struct error *error);

/**
 * reader_failed(reader):
 * Whether the source could not be read.
 */
bool reader_failed(const struct reader *reader);

/**
 * reader_free(reader):
 * Behave consistently with free(NULL).
 */
void reader_free(struct reader *reader);

#endif
