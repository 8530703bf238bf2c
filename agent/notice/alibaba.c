#include "notice/alibaba.h"

#include "base/clock.h"

const struct termination_plan alibaba_plan = {
	.name = "alibaba",
	.address = "http://100.100.100.200",
	.path = "/latest/meta-data/instance/spot/termination-time",
	.zone = 0,
	.token_path = "/latest/api/token",
	.token_life = "X-aliyun-ecs-metadata-token-ttl-seconds: 21600",
	.token_header = "X-aliyun-ecs-metadata-token: ",
};

static void *
open_alibaba(struct lookout *lookout, struct error *error)
{
	return termination_open(&alibaba_plan, lookout, error);
}

const struct lookout_cloud alibaba_cloud = {
	.cloud = NOTICE_CLOUD_ALIBABA,
	.name = "alibaba",
	.window = 300 * CLOCK_SECOND,
	.patience = 60 * CLOCK_SECOND,
	.open = open_alibaba,
	.step = termination_step,
	.close = termination_close,
};
