#ifndef CMD_OUTPUT_H
#define CMD_OUTPUT_H

#include <jansson.h>
#include <stdint.h>
#include <time.h>

struct error;
struct manifest;
struct options;

/*
 * What the commands print: results on standard output, failures on standard
 * error.
 */

/**
 * output_say(options, error):
 * Say why it failed, in the form of the log when that is JSON.  Return the
 * exit code, error->class.
 */
int output_say(const struct options *options, const struct error *error);

/**
 * output_failure(options, error):
 * The same and, with --json, print {"error": ...}: for who prints no object of
 * its own.
 */
int output_failure(const struct options *options, const struct error *error);

/**
 * output_add_error(object, error):
 * Add {"class", "object", "message", "cure"} as "error" to ${object} (may be
 * NULL), unless ${error} is none.  Return ${object}.
 */
json_t *output_add_error(json_t *object, const struct error *error);

/**
 * output_json(object):
 * Print ${object} (the reference is taken) on standard output.  Return 0, or
 * ERROR_FAILED when it is NULL (out of memory) or could not be written.
 */
int output_json(json_t *object);

/**
 * output_finish(status):
 * Flush standard output.  Return ${status}, or ERROR_FAILED when what was
 * printed did not get through and ${status} is 0.
 */
int output_finish(int status);

#define OUTPUT_TIME_SIZE 32
#define OUTPUT_MACHINE_SIZE 160

/**
 * output_time(when, text): "2026-11-30 18:20:11Z".  Return ${text}.
 */
char *output_time(struct timespec when, char text[OUTPUT_TIME_SIZE]);

/**
 * output_machine(manifest, text):
 * The host and machine type in its environment record, "-" when there is none.
 * Control characters are replaced.  Return ${text}.
 */
char *output_machine(const struct manifest *manifest,
    char text[OUTPUT_MACHINE_SIZE]);

/**
 * output_name(name): print foreign text, control characters replaced.
 */
void output_name(const char *name);

/**
 * output_checkpoint(manifest, resume):
 * What `list` and `show` say of a checkpoint, as an object; NULL when out of
 * memory.
 */
json_t *output_checkpoint(const struct manifest *manifest, int resume);

#endif
