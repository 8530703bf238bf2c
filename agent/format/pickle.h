#ifndef FORMAT_PICKLE_H
#define FORMAT_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct window;

/*
 * A pickle (protocols 2 to 5, Python's Lib/pickle.py and pickletools.py) read
 * without executing anything: what a name stands for is never looked up, a
 * call is a node that keeps what would be called and with what.
 *
 * The result is a graph: one node may be reached on several ways, and a list
 * may even hold itself.  Whoever walks it must bound that.
 */
enum pickle_kind {
	PICKLE_NONE,
	PICKLE_BOOLEAN,		/* integer: 0 or 1 */
	PICKLE_INTEGER,		/* integer */
	PICKLE_BIG,		/* text: an integer over 64 bits, little-endian */
	PICKLE_REAL,		/* real */
	PICKLE_TEXT,		/* text: str, UTF-8 when the writer was honest */
	PICKLE_BYTES,		/* text: bytes, bytearray, or str of Python 2 */
	PICKLE_TUPLE,		/* items */
	PICKLE_LIST,		/* items */
	PICKLE_DICT,		/* items: key, value, key, value, ... */
	PICKLE_SET,		/* items: set or frozenset */
	PICKLE_GLOBAL,		/* items: module and name, PICKLE_TEXT both */
	PICKLE_PERSISTENT,	/* items: the one persistent id */
	PICKLE_CALL		/* call: REDUCE, NEWOBJ or NEWOBJ_EX */
};

struct pickle_node {
	enum pickle_kind kind;
	uint32_t count;		/* items, or bytes of text */
	union {
		int64_t integer;
		double real;
		const char *text;	/* a NUL follows it */
		struct pickle_node **items;
		struct pickle_call *call;
	};
};

struct pickle_call {
	struct pickle_node *callee;	/* what would be called, or the class */
	struct pickle_node *arguments;
	struct pickle_node *keywords;	/* NEWOBJ_EX; else NULL */
	struct pickle_node *state;	/* BUILD; else NULL */
	struct pickle_node *list;	/* PICKLE_LIST of what is appended; or NULL */
	struct pickle_node *dict;	/* PICKLE_DICT of what is set; or NULL */
};

/* Limits: CAUSE_LIMIT beyond. */
#define PICKLE_MEMORY_MAXIMUM (UINT64_C(64) << 20)	/* for nodes and texts */
#define PICKLE_TEXT_MAXIMUM (UINT64_C(16) << 20)	/* for one text */
#define PICKLE_STACK_MAXIMUM 1000000	/* and for persistent ids */
#define PICKLE_MEMO_MAXIMUM 4000000
#define PICKLE_MARKS_MAXIMUM 65536			/* depth */

struct pickle;

/**
 * pickle_read(window, error):
 * Read one pickle and leave ${window} behind its STOP.  Return it, or NULL:
 * CAUSE_UNSUPPORTED for an opcode or a use of one that is not known here,
 * CAUSE_LIMIT, CAUSE_MEMORY; ERROR_DAMAGED otherwise (it ends before its STOP,
 * or nothing sensible is on its stack).
 */
struct pickle *pickle_read(struct window *window, struct error *error);

/**
 * pickle_read_within(window, memory, error):
 * As pickle_read, but with ${memory} bytes for nodes and texts instead of
 * PICKLE_MEMORY_MAXIMUM.
 */
struct pickle *pickle_read_within(struct window *window, uint64_t memory,
    struct error *error);

/**
 * pickle_root(pickle):
 * What it stands for; the pickle's.
 */
const struct pickle_node *pickle_root(const struct pickle *pickle);

/**
 * pickle_persistent_count(pickle) / pickle_persistent(pickle, index):
 * The persistent ids (the content of PICKLE_PERSISTENT nodes) in the order in
 * which they come, also those that the result does not reach.
 */
size_t pickle_persistent_count(const struct pickle *pickle);
const struct pickle_node *pickle_persistent(const struct pickle *pickle,
    size_t index);

/**
 * pickle_is_text(node, text):
 * Whether ${node} is PICKLE_TEXT (or PICKLE_BYTES) that reads ${text}.
 */
bool pickle_is_text(const struct pickle_node *node, const char *text);

/**
 * pickle_find(node, name):
 * The value of the key ${name} in the dict ${node}, the last one as Python
 * has it; NULL when it is not there, or ${node} is no dict or NULL.
 */
const struct pickle_node *pickle_find(const struct pickle_node *node,
    const char *name);

/**
 * pickle_free(pickle):
 * Behave consistently with free(NULL).
 */
void pickle_free(struct pickle *pickle);

#endif
