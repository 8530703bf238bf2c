#include "base/text.h"

#include <string.h>

/* The length that a first byte asks for; 0 when no character begins so. */
static size_t
sequence_length(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if (first >= 0xe0 && first <= 0xef)
		return 3;
	if (first >= 0xf0 && first <= 0xf4)
		return 4;
	return 0;
}

size_t
text_decode(const char *text, size_t length, uint32_t *code)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t needed = length > 0 ? sequence_length(bytes[0]) : 0;
	uint32_t value;

	if (needed == 0 || needed > length)
		return 0;
	value = needed == 1 ? bytes[0] : bytes[0] & (0x7fu >> needed);
	for (size_t i = 1; i < needed; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (bytes[i] & 0x3f);
	}

	/* RFC 3629: no overlong forms, no surrogates, nothing past 10FFFF. */
	if ((needed == 3 && value < 0x800) || (needed == 4 && value < 0x10000))
		return 0;
	if ((value >= 0xd800 && value <= 0xdfff) || value > 0x10ffff)
		return 0;
	*code = value;
	return needed;
}

bool
text_is_utf8(const char *text)
{
	size_t length = strlen(text);

	while (length > 0) {
		uint32_t code;
		size_t used = text_decode(text, length, &code);

		if (used == 0)
			return false;
		text += used;
		length -= used;
	}
	return true;
}
