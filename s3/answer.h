#ifndef S3_ANSWER_H
#define S3_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

struct error;

/*
 * What an S3 server (or STS) answers in XML, read by expat.  The bytes are
 * foreign: depth, the length of each text and the number of entries are
 * limited, document types are refused, unknown elements are skipped.
 */

/* <Error> of S3, or <ErrorResponse><Error> of STS.  Texts are cut to fit. */
struct answer_error {
	char code[64];
	char message[256];
	char request_id[96];
	char region[64];
};

/**
 * answer_read_error(data, length, failure):
 * Read an error answer.  Return 0, or -1 when it is none: another root
 * element, no code, or not XML at all.
 */
int answer_read_error(const void *data, size_t length,
    struct answer_error *failure);

/* One line of a listing; the key lies in the page's texts. */
struct answer_entry {
	size_t key;	/* from the start of the texts */
	bool is_prefix;
	uint64_t size;
};

#define ANSWER_TOKEN_SIZE 2048
#define ANSWER_ENTRIES_LIMIT 20000

/* A page of a listing (ListObjectsV2). */
struct answer_page {
	struct answer_entry *entries;	/* in the order of their keys */
	size_t count;
	size_t capacity;
	struct buffer texts;
	bool truncated;
	char next[ANSWER_TOKEN_SIZE];	/* to continue, when truncated */
};

/**
 * answer_page_init(page) / answer_page_free(page):
 * Make an empty page; give its memory back (it may be read into again).
 */
void answer_page_init(struct answer_page *page);
void answer_page_free(struct answer_page *page);

/**
 * answer_read_page(data, length, page, error):
 * Read a <ListBucketResult> into ${page}, which is emptied first.  Return 0,
 * or -1 with ERROR_DAMAGED.
 */
int answer_read_page(const void *data, size_t length, struct answer_page *page,
    struct error *error);

/**
 * answer_page_key(page, index):
 * The key or prefix of an entry.
 */
const char *answer_page_key(const struct answer_page *page, size_t index);

/**
 * answer_read_deletes(data, length, visit, context, error):
 * Read a <DeleteResult> and call ${visit} with each key that the server says
 * it did not delete, and why.  ${visit} returns -1 (error filled) to stop.
 * Return 0, or -1 with ERROR_DAMAGED or the visitor's error.
 */
int answer_read_deletes(const void *data, size_t length,
    int (*visit)(void *context, const char *key,
    const struct answer_error *failure, struct error *error), void *context,
    struct error *error);

/* Credentials in <AssumeRoleWithWebIdentityResponse>. */
struct answer_role {
	char access_key[256];
	char secret[256];
	char token[8192];
	char expiration[64];
};

/**
 * answer_read_role(data, length, role, error):
 * Read STS's answer.  Return 0, or -1 with ERROR_DAMAGED.
 */
int answer_read_role(const void *data, size_t length, struct answer_role *role,
    struct error *error);

#endif
