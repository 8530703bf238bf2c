#ifndef LIFE_PLACE_H
#define LIFE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

struct error;

/*
 * Where the agent of a directory keeps its lock, its socket and its state
 * (DESIGN 12).  Never in the directory itself.
 *
 * Lock and socket: what --socket or CKPTSYNC_SOCKET names, else a file in
 * XDG_RUNTIME_DIR, else in /run/user/UID, else in a directory under /tmp that
 * only we can use.  State: CKPTSYNC_STATE_DIR, else XDG_STATE_HOME/ckptsync,
 * else ~/.local/state/ckptsync, else none.
 */
struct place;

/**
 * place_new(folder, socket, error):
 * The place of the directory ${folder}, which need not exist.  ${socket} is
 * --socket or NULL.  When an agent holds the lock in any of the places above,
 * that one is taken.  NULL with ERROR_USAGE when ${socket} is too long for an
 * address, ERROR_FAILED when no place can be had (a directory under /tmp that
 * is another user's is refused).
 */
struct place *place_new(const char *folder, const char *socket,
    struct error *error);

/**
 * place_folder(place): the directory's real path.
 * place_socket(place): the path of the control socket.
 */
const char *place_folder(const struct place *place);
const char *place_socket(const struct place *place);

/**
 * place_lock(place, error):
 * Become the agent of the directory.  The lock is held until place_free and
 * by every process forked after this.  -1: with ERROR_USAGE when what is not
 * ours lies where the lock or the socket has to be, else with CAUSE_EXISTS when
 * another process holds it.
 */
int place_lock(struct place *place, struct error *error);

/**
 * place_state(place):
 * The path of the state file, or NULL when there is nowhere to keep it: then
 * one warning was logged by the first call.  Makes the folder.
 */
const char *place_state(struct place *place);

/**
 * place_notice(place):
 * The path of the notice file that `run` gives its trainer: beside the socket.
 */
const char *place_notice(const struct place *place);

/**
 * place_set_notice(place, path):
 * It is ${path}, which ${place} owns from now on.
 */
void place_set_notice(struct place *place, char *path);

/**
 * place_visit(visit, context):
 * Call ${visit} with the path of each control socket of this user in the
 * usual places (dead ones may be among them).
 */
void place_visit(void (*visit)(void *context, const char *socket),
    void *context);

/**
 * place_free(place):
 * Give up the lock, if it is held by this process alone.  Behave consistently
 * with free(NULL).
 */
void place_free(struct place *place);

#endif
