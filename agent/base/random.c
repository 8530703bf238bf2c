#include "base/random.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

uint64_t
random_bits(void)
{
	uint64_t bits;
	ssize_t got;

	/* Up to 256 bytes come whole once the kernel is seeded: random(4). */
	do {
		got = getrandom(&bits, sizeof(bits), 0);
	} while (got < 0 && errno == EINTR);

	/* Names of terms rest on this: no answer is better than a bad one. */
	if (got != (ssize_t)sizeof(bits))
		abort();
	return bits;
}

uint64_t
random_below(uint64_t limit)
{
	uint64_t bits, uneven;

	if (limit == 0)
		return 0;

	/* Below 2^64 mod limit some answers would come once more often. */
	uneven = (UINT64_MAX - limit + 1) % limit;
	do {
		bits = random_bits();
	} while (bits < uneven);
	return bits % limit;
}
