#ifndef LIFE_NOTICE_FILE_H
#define LIFE_NOTICE_FILE_H

#include <stdint.h>

struct cause;
struct error;

/*
 * The file that tells a trainer of a notice: it is there while one holds.
 *
 *	{"deadline": "2026-11-30T17:46:00.000Z", "left_s": 24.9,
 *	 "source": "aws spot", "reason": "terminate", "survives": false}
 */

/**
 * notice_file_own(path, error):
 * Whether ${path} may be written, replaced and removed: nothing lies there, or
 * a notice file of this user.  Return 0, or -1 with ERROR_USAGE.
 */
int notice_file_own(const char *path, struct error *error);

/**
 * notice_file_check(folder, path, error):
 * Whether ${path} may be it: its folder is there, and is not ${folder} (a real
 * path) or beneath it, and notice_file_own says so too.  Return its absolute
 * path, which the caller frees; NULL with ERROR_USAGE.
 */
char *notice_file_check(const char *folder, const char *path,
    struct error *error);

/**
 * notice_file_write(path, cause, now, error):
 * Write or replace it, whole at every moment.  ${now} is clock_monotonic().
 * Return 0 or -1.
 */
int notice_file_write(const char *path, const struct cause *cause,
    uint64_t now, struct error *error);

/**
 * notice_file_remove(path): no notice holds.  What is not ours stays.
 */
void notice_file_remove(const char *path);

#endif
