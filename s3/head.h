#ifndef S3_HEAD_H
#define S3_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/*
 * The headers of an answer that we look at.  Foreign bytes: what cannot be
 * read is taken as not there, texts are cut.
 */
struct head {
	int status;		/* 0: no answer yet */
	char request_id[96];
	char region[64];	/* x-amz-bucket-region */
	char etag[128];
	char location[256];
	time_t date;		/* of the answer; 0 or less: none */
	time_t age;
	uint64_t retry_after;	/* nanoseconds, 0: none */
	bool has_length;
	uint64_t length;	/* Content-Length */
	bool has_range;		/* Content-Range: bytes first-last/total */
	uint64_t range_first;
	uint64_t range_last;
	bool has_total;
	uint64_t range_total;
};

/**
 * head_read_line(head, line, length):
 * Take in one header line as libcurl hands it out (not NUL-terminated, line
 * end included).  A status line begins a new head.
 */
void head_read_line(struct head *head, const char *line, size_t length);

/**
 * head_server_time(head):
 * The server's clock when it answered; 0 when it did not say.
 */
time_t head_server_time(const struct head *head);

#endif
