#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

/**
 * random_bits():
 * 64 bits from the kernel (getrandom).  Any thread.
 */
uint64_t random_bits(void);

/**
 * random_below(limit):
 * A number from 0 to ${limit} - 1, evenly; 0 when ${limit} is 0.  Any thread.
 */
uint64_t random_below(uint64_t limit);

#endif
