#ifndef STORE_FILE_LIST_H
#define STORE_FILE_LIST_H

#include <stdbool.h>

#include "store/backend.h"

/**
 * file_list(root, prefix, fold, visit, context, error):
 * backend_list for the store in the folder ${root}: walks the folders anew,
 * gives chunks their keys back, and keeps silent about what is no object.
 */
int file_list(int root, const char *prefix, bool fold, backend_visit visit,
    void *context, struct error *error);

#endif
