#ifndef FORMAT_ZIP_PLAN_H
#define FORMAT_ZIP_PLAN_H

#include <stddef.h>
#include <stdint.h>

struct error;

/*
 * A zip that is going to be written: stored records whose places are known
 * before a byte of them is, as torch.save lays them out
 * (caffe2/serialize/inline_container.cc): each begins at a multiple of 64, a
 * field "FB" before it takes up the room, all dates are 0.
 *
 * By hand: libarchive's zip writer wants all bytes of all records in their
 * order, one after the other; here tensors of any size arrive in parallel at
 * places given beforehand.
 */
struct zip_plan;

/**
 * zip_plan_new():
 * An empty plan, or NULL when out of memory.  Free it with zip_plan_free.
 */
struct zip_plan *zip_plan_new(void);
void zip_plan_free(struct zip_plan *plan);

/**
 * zip_plan_add(plan, name, name_length, data, length, place, error):
 * Add a record of ${length} bytes.  ${data} is copied; NULL: the caller writes
 * them to *${place}, where they begin in the file.  Return 0 or -1.
 */
int zip_plan_add(struct zip_plan *plan, const char *name, size_t name_length,
    const void *data, uint64_t length, uint64_t *place, struct error *error);

/**
 * zip_plan_size(plan):
 * The size of the file, if no record is added any more.
 */
uint64_t zip_plan_size(const struct zip_plan *plan);

/**
 * zip_plan_seal(plan, checksums, emit, context, error):
 * ${checksums} has the CRC-32 of each record that the caller writes, in their
 * order.  Call ${emit} for each run of the other bytes: it takes over ${data},
 * which malloc made, also when it fails.  Return 0 or -1.
 */
int zip_plan_seal(const struct zip_plan *plan, const uint32_t *checksums,
    int (*emit)(void *context, uint64_t offset, void *data, size_t length,
    struct error *error), void *context, struct error *error);

#endif
