#ifndef FORMAT_JSON_TEXT_H
#define FORMAT_JSON_TEXT_H

struct error;
struct format_report;
struct source;

/**
 * json_text_inspect(source, report, error):
 * As format_inspect, for a file that should be JSON.  It is whole when its
 * outermost bracket closes at its end and, up to 1 MiB, when it parses.  A
 * number or word alone, and several values in a row, are unproven.
 */
int json_text_inspect(const struct source *source,
    struct format_report *report, struct error *error);

#endif
