#ifndef TESTS_UNIT_FORMAT_HOSTILE_H
#define TESTS_UNIT_FORMAT_HOSTILE_H

#include "weigh.h"
#include "zipper.h"
#include "pickler.h"

/*
 * Cases that a file made to harm might try: each must give one clear message
 * (or a tensor refused by name), and nothing else.
 */

/**
 * hostile_expect(files, message):
 * Reading the model of ${files} fails as damaged, or as unsupported or over a
 * limit, with ${message} in the text.  "refused ..." expects instead that it
 * works and refuses a tensor with what follows; "fine" that it works.  Closes
 * ${files}.
 */
void hostile_expect(struct weigh_files *files, const char *message);

/**
 * hostile_pickle(bytes, length):
 * A torch zip whose data.pkl is this, with storages "0" of 64 bytes and "1" of
 * 16 bytes.
 */
struct weigh_files *hostile_pickle(const void *bytes, size_t length);

/**
 * hostile_zip(zipper, wide): the finished zip as a file; frees ${zipper}.
 */
struct weigh_files *hostile_zip(struct zipper *zipper, bool wide);

#endif
