#ifndef S3_CONTAINER_H
#define S3_CONTAINER_H

#include <stdatomic.h>
#include <stdbool.h>

struct error;
struct keys;

/*
 * The credentials endpoint of a container (Amazon ECS, EKS pod identity):
 * AWS_CONTAINER_CREDENTIALS_RELATIVE_URI on 169.254.170.2, or
 * AWS_CONTAINER_CREDENTIALS_FULL_URI: https anywhere, plain http only to
 * this machine and to 169.254.170.2, 169.254.170.23 and [fd00:ec2::23].
 * What AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE holds (read anew each time), or
 * AWS_CONTAINER_AUTHORIZATION_TOKEN, is sent along.  Never through a proxy,
 * never following a redirect.
 */
struct container;

/**
 * container_configured():
 * Whether the environment names such an endpoint.
 */
bool container_configured(void);

/**
 * container_new(stop, error):
 * Read the environment.  NULL with ERROR_USAGE when the address is not
 * allowed.  When ${stop} gets true, a request ends.
 */
struct container *container_new(const atomic_bool *stop, struct error *error);

/**
 * container_fetch(container, keys, error):
 * Ask for keys: up to three tries of 2 s.  Return 0 or -1.
 */
int container_fetch(struct container *container, struct keys *keys,
    struct error *error);

/**
 * container_free(container):
 * Behave consistently with free(NULL).
 */
void container_free(struct container *container);

#endif
