/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The native build of the policy: its entry points with C linkage, which the
 * build makes of policy/entry_points.h.
 */
#include "distance.h"
#include "nohz.h"
#include "place.h"
#include "runqueue.h"
#include "layout.h"

const unsigned long *placewise_layout(unsigned long *entries)
{
	*entries = sizeof(layout) / sizeof(layout[0]);
	return layout;
}

#include "native_entry_points.h"
