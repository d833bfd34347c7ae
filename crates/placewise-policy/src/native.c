/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The native build of the policy: its entry points with C linkage, which the
 * build makes of policy/entry_points.h. That of a tree of somebody's own, which
 * need not come back, is WATCHED.
 */
#include <distance.h>
#include <nohz.h>
#include <place.h>
#include <runqueue.h>
#include "layout.h"

#ifdef WATCHED
#include "watch.h"
#else
#define ENTER(entry_point)
#endif

const unsigned long *placewise_layout(unsigned long *entries)
{
	*entries = sizeof(layout) / sizeof(layout[0]);
	return layout;
}

#include "native_entry_points.h"
