#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * UTF-8 (RFC 3629) in bytes that may be anything: file names and answers of
 * servers.
 */

/**
 * text_decode(text, length, code):
 * How many of the first ${length} bytes make the first character, its number
 * in ${code}; 0 when ${length} is 0 or they are not UTF-8.
 */
size_t text_decode(const char *text, size_t length, uint32_t *code);

/**
 * text_is_utf8(text):
 * Whether the whole string is UTF-8.
 */
bool text_is_utf8(const char *text);

#endif
