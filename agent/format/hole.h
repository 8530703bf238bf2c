#ifndef FORMAT_HOLE_H
#define FORMAT_HOLE_H

struct format_report;
struct source;

/**
 * hole_judge(source, report):
 * The structure of ${source} is whole; see whether its bytes were written at
 * all, as far as the file system knows.  A hole that reaches the end makes it
 * torn: a save was cut off after the file had got its full size.  A hole
 * elsewhere makes it unproven and `hollow`: a save of which a part is missing
 * and a sparse copy of an honest file look the same.
 */
void hole_judge(const struct source *source, struct format_report *report);

#endif
