#include "notice/pace.h"

#include "base/random.h"

uint64_t
pace_jitter(uint64_t interval)
{
	return interval - interval / 10 + random_below(interval / 5 + 1);
}

uint64_t
pace_grow(uint64_t pause, uint64_t first, uint64_t last)
{
	if (pause == 0)
		return first;
	return pause >= last / 2 ? last : pause * 2;
}
