#ifndef NOTICE_PACE_H
#define NOTICE_PACE_H

#include <stdint.h>

/**
 * pace_jitter(interval):
 * ${interval} give or take a tenth, so that many machines do not ask in step.
 */
uint64_t pace_jitter(uint64_t interval);

/**
 * pace_grow(pause, first, last):
 * The pause after another failure: ${first} when ${pause} is 0, else its
 * double, at most ${last}.  Keep it and wait pace_jitter of it.
 */
uint64_t pace_grow(uint64_t pause, uint64_t first, uint64_t last);

#endif
