#ifndef NOTICE_TENCENT_H
#define NOTICE_TENCENT_H

#include "notice/lookout.h"
#include "notice/termination.h"

/*
 * Tencent Cloud CVM (reference 5): its times are Beijing's, without saying so.
 */
extern const struct lookout_cloud tencent_cloud;
extern const struct termination_plan tencent_plan;

#endif
