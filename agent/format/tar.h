#ifndef FORMAT_TAR_H
#define FORMAT_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct format_report;
struct source;

/**
 * tar_claimed(start, length):
 * Whether a file that begins with these (up to 512) bytes is a tar, POSIX or
 * GNU: "ustar" at byte 257.
 */
bool tar_claimed(const uint8_t *start, size_t length);

/**
 * tar_inspect(source, report, error):
 * As format_inspect, for a file that begins like one.  It is whole when every
 * member lies inside it and the two zero blocks of the end follow the last.
 */
int tar_inspect(const struct source *source, struct format_report *report,
    struct error *error);

#endif
