#ifndef FORMAT_REPORT_H
#define FORMAT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format.h"

/*
 * Filling a format_report: what the parsers of this room share.
 */

/* Limits on what a foreign file may make us keep (format.h). */
#define REPORT_RECORDS_MAXIMUM 4000000
#define REPORT_NAME_MAXIMUM 4096

/**
 * report_say(report, verdict, format, ...):
 * Set the verdict and its reason; control characters in it become '?'.
 * Records are dropped when the file is torn.  Return 0, always, so that a
 * parser can write `return report_say(...)`.
 */
int report_say(struct format_report *report, enum format_verdict verdict,
    const char *format, ...) __attribute__((format(printf, 3, 4)));

/**
 * report_judge(report, error, failed):
 * Turn the ${error} of a parser into a verdict: data that is not what it
 * should be is torn; what we do not know or do not allow (CAUSE_LIMIT,
 * CAUSE_UNSUPPORTED) is unproven.  Return 0; -1 with nothing said when the
 * source could not be read (${failed}) or memory ran out.
 */
int report_judge(struct format_report *report, const struct error *error,
    bool failed);

/**
 * report_add(report, name, length_of_name, offset, length, error):
 * Add a record, copying its name.  Return 0, or -1: CAUSE_LIMIT when there
 * are too many or the name is too long.
 */
int report_add(struct format_report *report, const char *name,
    size_t length_of_name, uint64_t offset, uint64_t length,
    struct error *error);

/**
 * report_sort(report):
 * Put the records in the order of their offsets, then lengths.
 */
void report_sort(struct format_report *report);

/**
 * report_drop_empty(report):
 * Leave out the records without a byte: they are no place in the file.
 */
void report_drop_empty(struct format_report *report);

/**
 * report_twin(report, twin, error):
 * Set *${twin} to a name that two records have, or NULL; it is the report's.
 * Return 0, or -1 when out of memory.
 */
int report_twin(const struct format_report *report, const char **twin,
    struct error *error);

#endif
