#ifndef FORMAT_PICKLE_OPCODE_H
#define FORMAT_PICKLE_OPCODE_H

#include <stddef.h>
#include <stdint.h>

/*
 * One instruction of a pickle in memory: pickletools.py says of each opcode
 * what follows it.
 */
struct pickle_opcode {
	uint8_t code;
	size_t start;		/* offset of the opcode */
	size_t end;		/* behind its argument */
	size_t text;		/* offset of the text in it, when it has one */
	uint64_t number;	/* its number, when it has one */
};

/**
 * pickle_opcode_read(bytes, length, at, opcode):
 * Read the instruction at ${at}.  Return 0, or -1 when it is none that
 * pickle_read knows, or cut off.
 */
int pickle_opcode_read(const uint8_t *bytes, size_t length, size_t at,
    struct pickle_opcode *opcode);

#endif
