#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stdint.h>

struct buffer;
struct error;

/**
 * process_output(argv, timeout, buffer, error):
 * Run argv[0] (searched in PATH, no shell) with no standard input and add its
 * standard output to ${buffer}, whose limit bounds it (what is beyond is
 * dropped); standard error goes nowhere.  It runs in a session of its own; at
 * ${timeout} nanoseconds its whole group is killed.  All descriptors but the
 * standard ones are closed in it and signals are at their defaults.  Return 0
 * when it exited with 0; -1 otherwise, with the exit status or "took longer
 * than" in the message.  Any thread.
 */
int process_output(char *const argv[], uint64_t timeout, struct buffer *buffer,
    struct error *error);

#endif
