#ifndef FORMAT_SHARD_H
#define FORMAT_SHARD_H

struct error;
struct format_report;
struct source;

/*
 * A .distcp file of torch.distributed.checkpoint: one torch.save zip behind
 * the other (torch/distributed/checkpoint/filesystem.py, _write_item), one for
 * each part of a tensor.  Nothing in it tells where it should end, `.metadata`
 * beside it does; but each zip's end tells where it began, and so where the
 * one before it ended.
 */

/**
 * shard_inspect(source, report, error):
 * As format_inspect: never more than unproven.  The storages of all zips are
 * the records; none when something else lies between them.
 */
int shard_inspect(const struct source *source, struct format_report *report,
    struct error *error);

#endif
