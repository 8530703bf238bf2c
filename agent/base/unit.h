#ifndef BASE_UNIT_H
#define BASE_UNIT_H

#include <stdint.h>

struct error;

/*
 * Durations and sizes as people write and read them (DESIGN 12).
 */

/**
 * unit_parse_duration(text, nanoseconds, error):
 * "25s", "5m", "2h", "7d", "500ms"; the unit is compulsory, a fraction ("1.5h")
 * is fine, "0s" too.  Return 0, or -1 with ERROR_USAGE.
 */
int unit_parse_duration(const char *text, uint64_t *nanoseconds,
    struct error *error);

/**
 * unit_parse_size(text, bytes, error):
 * "64MiB", "1.5 GB", "100KiB", "500B"; the unit is compulsory.  KiB, MiB, GiB,
 * TiB are powers of 1024, KB (kB), MB, GB, TB of 1000.  Return 0 or -1.
 */
int unit_parse_size(const char *text, uint64_t *bytes, struct error *error);

/**
 * unit_parse_number(text, minimum, maximum, number, error):
 * A decimal whole number within bounds.  Return 0, or -1 with ERROR_USAGE and
 * the bounds in the message.
 */
int unit_parse_number(const char *text, uint64_t minimum, uint64_t maximum,
    uint64_t *number, struct error *error);

#define UNIT_TEXT_SIZE 32

/**
 * unit_size_text(bytes, text):
 * "0 B", "532 B", "1.4 KiB", "12.0 MiB", "3.25 GiB".  Return ${text}.
 */
char *unit_size_text(uint64_t bytes, char text[UNIT_TEXT_SIZE]);

/**
 * unit_duration_text(nanoseconds, text):
 * "0.4 s", "12 s", "3m20s", "2h05m", "3d04h".  Return ${text}.
 */
char *unit_duration_text(uint64_t nanoseconds, char text[UNIT_TEXT_SIZE]);

#endif
