/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * average.h: the running average of the scheduler, an eighth of each sample.
 *
 * The quotient is truncated toward zero, so an average may stop up to 7 units
 * away from what it averages.
 */
#ifndef PLACEWISE_AVERAGE_H
#define PLACEWISE_AVERAGE_H

#include "types.h"

static inline void update_avg(u64 __arena *avg, u64 sample)
{
	s64 difference = (s64)(sample - *avg);

	*avg += (u64)(difference / 8);
}

#endif
