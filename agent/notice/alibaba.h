#ifndef NOTICE_ALIBABA_H
#define NOTICE_ALIBABA_H

#include "notice/lookout.h"
#include "notice/termination.h"

/*
 * Alibaba Cloud ECS (reference 5).
 */
extern const struct lookout_cloud alibaba_cloud;
extern const struct termination_plan alibaba_plan;

#endif
