#include "life/speed.h"

#include <string.h>

#include "base/clock.h"

/* Together the samples cover some three seconds. */
#define BETWEEN (CLOCK_SECOND * 2 / 5)

/* Less time or fewer bytes say nothing: the first of them only fill buffers. */
#define SPAN_LEAST (CLOCK_SECOND + CLOCK_SECOND / 2)
#define BYTES_LEAST (UINT64_C(1) << 20)

static uint64_t
per_second(uint64_t bytes, uint64_t span)
{
	return (uint64_t)((double)bytes / ((double)span /
	    (double)CLOCK_SECOND));
}

void
speed_sample(struct speed *speed, uint64_t now, uint64_t passed)
{
	unsigned last = speed->count - 1;
	uint64_t span, bytes;

	if (speed->count > 0 && now - speed->samples[last].when < BETWEEN)
		return;
	if (speed->count == SPEED_SAMPLES) {
		memmove(speed->samples, speed->samples + 1,
		    (SPEED_SAMPLES - 1) * sizeof(speed->samples[0]));
		speed->count--;
	}
	speed->samples[speed->count].when = now;
	speed->samples[speed->count].passed = passed;
	speed->count++;
	span = now - speed->samples[0].when;
	bytes = passed - speed->samples[0].passed;
	if (span < SPAN_LEAST ||
	    (bytes < BYTES_LEAST && speed->count < SPEED_SAMPLES))
		return;
	/* A wire that stands still is known to; 0 would be "unknown". */
	speed->known = per_second(bytes, span) + 1;
	speed->fresh = true;
}

void
speed_ended(struct speed *speed, uint64_t bytes, uint64_t took)
{
	if (!speed->fresh && bytes >= BYTES_LEAST && took > 0)
		speed->known = per_second(bytes, took);
	speed->count = 0;
	speed->fresh = false;
}

void
speed_forget(struct speed *speed)
{
	memset(speed, 0, sizeof(*speed));
}

uint64_t
speed_now(const struct speed *speed)
{
	return speed->known;
}
