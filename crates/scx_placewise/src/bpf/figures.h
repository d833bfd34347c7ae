/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * figures.h: what the live scheduler says of itself. count.h counts what is
 * PLACED; what is BALANCED is counted by the policy. Every report is made of
 * this list.
 *
 * PLACED(name, how a table shows it, help): placements, beside how far they
 * went (policy/distance.h).
 */
PLACED(on_idle, share, "on a CPU that was idle")
PLACED(hinted, count, "of tasks with a hint for them")

/* BALANCED(name, counter of struct domain_stats, help): tasks. */
BALANCED(newly_idle, lb_gained[CPU_NEWLY_IDLE], "pulled by CPUs about to idle")
BALANCED(idle, lb_gained[CPU_IDLE], "pulled by idle CPUs")
BALANCED(busy, lb_gained[CPU_NOT_IDLE], "pulled by busy CPUs")
BALANCED(pushed, alb_pushed, "pushed while running (active balance)")
