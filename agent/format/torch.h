#ifndef FORMAT_TORCH_H
#define FORMAT_TORCH_H

#include <stdbool.h>

struct error;
struct format_report;
struct source;

/*
 * Zips: what torch.save writes since 1.6 (caffe2/serialize/inline_container.cc)
 * and others (.keras, .npz).  A torch zip has a member `<prefix>/data.pkl`; a
 * save that failed leaves a valid zip without it.  A torch zip is whole when
 * every member lies inside it and every storage that data.pkl names is there
 * and as long as it says.
 */

/**
 * torch_inspect(source, claimed, report, error):
 * As format_inspect, for a file that starts like a zip or should be one;
 * ${claimed}: its name says that it is torch's.
 */
int torch_inspect(const struct source *source, bool claimed,
    struct format_report *report, struct error *error);

#endif
