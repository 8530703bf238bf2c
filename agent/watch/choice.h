#ifndef WATCH_CHOICE_H
#define WATCH_CHOICE_H

#include <stdbool.h>

struct view_options;

/*
 * Which names count: --include, --exclude and the defaults of DESIGN 6
 * (wandb/, .git/, __pycache__/, *.tmp).  What an --include names counts even
 * when a default leaves it out; an --exclude always wins.
 */

/**
 * choice_has_file(options, path):
 * Whether the file or link ${path} counts.
 */
bool choice_has_file(const struct view_options *options, const char *path);

/**
 * choice_has_folder(options, path):
 * Whether anything beneath the folder ${path} can count.
 */
bool choice_has_folder(const struct view_options *options, const char *path);

#endif
