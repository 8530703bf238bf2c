#ifndef CMD_OPTIONS_PRIVATE_H
#define CMD_OPTIONS_PRIVATE_H

#include <stddef.h>

#include "cmd/options.h"

/* One row of the table. */
struct option_row {
	const char *name;	/* without "--" */
	char letter;		/* '\0': none */
	const char *argument;	/* NULL: takes none */
	unsigned commands;	/* set of enum command */
	bool again;		/* may be given more than once */
	const char *help;

	/* Take it in; ${value} is NULL without an argument. */
	int (*take)(struct options *options, const char *value,
	    struct error *error);
};

/* option_table.c */
extern const struct option_row option_rows[];
extern const size_t option_row_count;

#endif
