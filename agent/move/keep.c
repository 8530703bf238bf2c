#include "move/keep.h"

#include <sys/resource.h>

#define MINIMUM 64
#define MAXIMUM 4096

size_t
keep_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == -1 ||
	    limit.rlim_cur / 2 < MINIMUM)
		return MINIMUM;
	if (limit.rlim_cur / 2 > MAXIMUM)
		return MAXIMUM;
	return (size_t)(limit.rlim_cur / 2);
}
