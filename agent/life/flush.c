#include "life/flush.h"

#include "base/clock.h"

#define AGAIN (CLOCK_SECOND / 2)

void
flush_begin(struct flush *flush, uint64_t now, uint64_t token)
{
	flush->state = FLUSH_SCANNING;
	flush->token = token;
	flush->settle_until = now + FLUSH_SETTLE_SECONDS * CLOCK_SECOND;
	flush->mark = 0;
}

void
flush_scanned(struct flush *flush, uint64_t now, uint64_t token,
    const struct flush_facts *facts)
{
	if (flush->state != FLUSH_SCANNING || token != flush->token)
		return;
	if (facts->unsettled && now < flush->settle_until) {
		flush->state = FLUSH_SETTLING;
		flush->again = now + AGAIN;
		return;
	}
	flush->state = FLUSH_DRAINING;
	flush->mark = facts->last;
}

bool
flush_wants_scan(const struct flush *flush, uint64_t now)
{
	return flush->state == FLUSH_SETTLING && now >= flush->again;
}

void
flush_begin_scan(struct flush *flush, uint64_t token)
{
	flush->state = FLUSH_SCANNING;
	flush->token = token;
}

bool
flush_over(struct flush *flush, const struct flush_facts *facts)
{
	if (flush->state == FLUSH_DRAINING && facts->pending > flush->mark)
		flush->state = FLUSH_OVER;
	return flush->state == FLUSH_OVER;
}
