#include "notice/tencent.h"

#include "base/clock.h"

const struct termination_plan tencent_plan = {
	.name = "tencent",
	.address = "http://metadata.tencentyun.com",
	.path = "/latest/meta-data/spot/termination-time",
	.zone = 8 * 3600,
};

static void *
open_tencent(struct lookout *lookout, struct error *error)
{
	return termination_open(&tencent_plan, lookout, error);
}

const struct lookout_cloud tencent_cloud = {
	.cloud = NOTICE_CLOUD_TENCENT,
	.name = "tencent",
	.window = 120 * CLOCK_SECOND,
	.patience = 60 * CLOCK_SECOND,
	.open = open_tencent,
	.step = termination_step,
	.close = termination_close,
};
