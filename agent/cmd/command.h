#ifndef CMD_COMMAND_H
#define CMD_COMMAND_H

struct options;

/*
 * What each command does once its arguments are read.  Each returns the exit
 * code of the program (base/error.h, enum error_class).
 */
int command_run(const struct options *options);
int command_agent(const struct options *options);
int command_push(const struct options *options);
int command_notice(const struct options *options);
int command_flush(const struct options *options);
int command_status(const struct options *options);
int command_restore(const struct options *options);
int command_list(const struct options *options);
int command_show(const struct options *options);
int command_tensors(const struct options *options);	/* show --tensors */
int command_weights(const struct options *options);
int command_doctor(const struct options *options);

#endif
