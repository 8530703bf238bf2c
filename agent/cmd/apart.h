#ifndef CMD_APART_H
#define CMD_APART_H

struct error;
struct options;

/**
 * apart_check(options, error):
 * Whether the directory and a file:// remote lie apart, by their real paths:
 * one inside the other would back itself up, without end, or have a restore
 * write among the remote's objects.  A restore may bring something into a
 * directory that holds the remote, too.  What does not exist yet counts as
 * what it will be.  Return 0, or -1 with ERROR_USAGE.
 */
int apart_check(const struct options *options, struct error *error);

#endif
