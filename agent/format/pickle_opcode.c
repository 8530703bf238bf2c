#include "format/pickle_opcode.h"

#include <string.h>

/* What follows an opcode. */
enum argument {
	ARGUMENT_UNKNOWN, ARGUMENT_NONE, ARGUMENT_1, ARGUMENT_2, ARGUMENT_4,
	ARGUMENT_8, ARGUMENT_TEXT_1, ARGUMENT_TEXT_4, ARGUMENT_TEXT_8,
	ARGUMENT_LINES
};

static const uint8_t arguments[256] = {
	['('] = ARGUMENT_NONE, ['0'] = ARGUMENT_NONE, ['1'] = ARGUMENT_NONE,
	['2'] = ARGUMENT_NONE, ['N'] = ARGUMENT_NONE, [0x88] = ARGUMENT_NONE,
	[0x89] = ARGUMENT_NONE, [')'] = ARGUMENT_NONE, [']'] = ARGUMENT_NONE,
	['}'] = ARGUMENT_NONE, ['t'] = ARGUMENT_NONE, ['l'] = ARGUMENT_NONE,
	['d'] = ARGUMENT_NONE, ['a'] = ARGUMENT_NONE, ['s'] = ARGUMENT_NONE,
	['e'] = ARGUMENT_NONE, ['u'] = ARGUMENT_NONE, ['R'] = ARGUMENT_NONE,
	['b'] = ARGUMENT_NONE, ['Q'] = ARGUMENT_NONE, ['.'] = ARGUMENT_NONE,
	[0x81] = ARGUMENT_NONE, [0x85] = ARGUMENT_NONE,
	[0x86] = ARGUMENT_NONE, [0x87] = ARGUMENT_NONE,
	[0x8f] = ARGUMENT_NONE, [0x90] = ARGUMENT_NONE,
	[0x91] = ARGUMENT_NONE, [0x92] = ARGUMENT_NONE,
	[0x93] = ARGUMENT_NONE, [0x94] = ARGUMENT_NONE,
	['K'] = ARGUMENT_1, ['h'] = ARGUMENT_1, ['q'] = ARGUMENT_1,
	[0x80] = ARGUMENT_1, ['M'] = ARGUMENT_2, ['J'] = ARGUMENT_4,
	['j'] = ARGUMENT_4, ['r'] = ARGUMENT_4, ['G'] = ARGUMENT_8,
	[0x95] = ARGUMENT_8, [0x8a] = ARGUMENT_TEXT_1,
	[0x8c] = ARGUMENT_TEXT_1, ['U'] = ARGUMENT_TEXT_1,
	['C'] = ARGUMENT_TEXT_1, ['X'] = ARGUMENT_TEXT_4,
	['T'] = ARGUMENT_TEXT_4, ['B'] = ARGUMENT_TEXT_4,
	[0x8d] = ARGUMENT_TEXT_8, [0x8e] = ARGUMENT_TEXT_8,
	[0x96] = ARGUMENT_TEXT_8, ['c'] = ARGUMENT_LINES,
};

/* The number in the ${width} bytes behind the opcode. */
static int
read_number(const uint8_t *bytes, size_t length, size_t width,
    struct pickle_opcode *opcode)
{
	if (width > length - opcode->end)
		return -1;
	for (size_t i = width; i-- > 0;)
		opcode->number = opcode->number << 8 |
		    bytes[opcode->end + i];
	opcode->end += width;
	return 0;
}

static int
read_text(const uint8_t *bytes, size_t length, size_t width,
    struct pickle_opcode *opcode)
{
	if (read_number(bytes, length, width, opcode) != 0 ||
	    opcode->number > length - opcode->end)
		return -1;
	opcode->text = opcode->end;
	opcode->end += (size_t)opcode->number;
	return 0;
}

static int
read_lines(const uint8_t *bytes, size_t length, struct pickle_opcode *opcode)
{
	for (int i = 0; i < 2; i++) {
		const uint8_t *line = memchr(bytes + opcode->end, '\n',
		    length - opcode->end);

		if (line == NULL)
			return -1;
		opcode->end = (size_t)(line + 1 - bytes);
	}
	return 0;
}

int
pickle_opcode_read(const uint8_t *bytes, size_t length, size_t at,
    struct pickle_opcode *opcode)
{
	if (at >= length)
		return -1;
	*opcode = (struct pickle_opcode){ .code = bytes[at], .start = at,
		.end = at + 1 };
	switch (arguments[bytes[at]]) {
	case ARGUMENT_NONE:
		return 0;
	case ARGUMENT_1:
		return read_number(bytes, length, 1, opcode);
	case ARGUMENT_2:
		return read_number(bytes, length, 2, opcode);
	case ARGUMENT_4:
		return read_number(bytes, length, 4, opcode);
	case ARGUMENT_8:
		return read_number(bytes, length, 8, opcode);
	case ARGUMENT_TEXT_1:
		return read_text(bytes, length, 1, opcode);
	case ARGUMENT_TEXT_4:
		return read_text(bytes, length, 4, opcode);
	case ARGUMENT_TEXT_8:
		return read_text(bytes, length, 8, opcode);
	case ARGUMENT_LINES:
		return read_lines(bytes, length, opcode);
	default:
		return -1;
	}
}
