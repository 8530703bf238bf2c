#ifndef S3_PERFORM_H
#define S3_PERFORM_H

#include "s3/client.h"

struct call;
struct service;

/*
 * What the operations that wait (listings, batch deletes) need of a client.
 */

/**
 * client_service(client):
 * What the client knows of its server.
 */
struct service *client_service(struct s3_client *client);

/**
 * client_perform_call(client, call):
 * Submit ${call} (which is given away) and wait.  Its request's `done` and
 * `context` are used here.  Return 0 or -1, the error in the request.
 */
int client_perform_call(struct s3_client *client, struct call *call);

#endif
