#ifndef S3_XML_H
#define S3_XML_H

#include <stdbool.h>
#include <stddef.h>

struct error;

/* Limits of foreign XML; S3's answers have a depth of 4 and keys of 1 KiB. */
#define XML_DEPTH_LIMIT 12
#define XML_NAME_LIMIT 64
#define XML_TEXT_LIMIT 8192

/*
 * A walk over a document.  `path` is the element's place without name space
 * prefixes: "ListBucketResult/Contents/Key".
 */
struct xml_visitor {
	/* An element begins, or ended with that text (trimmed of nothing;
	 * empty for an element that holds others).  -1, error filled, stops. */
	int (*begin)(void *context, const char *path, struct error *error);
	int (*end)(void *context, const char *path, const char *text,
	    struct error *error);
	void *context;
	bool cut_texts;	/* cut a text that is too long rather than fail */
};

/**
 * xml_walk(data, length, visitor, error):
 * Parse the whole of ${data}.  Return 0, or -1: ERROR_DAMAGED when it is not
 * well-formed, is beyond a limit or has a document type; or the visitor's
 * error.
 */
int xml_walk(const void *data, size_t length,
    const struct xml_visitor *visitor, struct error *error);

#endif
