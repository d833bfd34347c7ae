#!/usr/bin/env python3
"""Instructions between the functions of a kernel that emulated CPUs came to, by what steps.so has written.

usage: steps.py KALLSYMS STEPS [FUNCTION,...]
"""

import bisect
import sys

USUAL = """pipe_write anon_pipe_write pipe_read anon_pipe_read try_to_wake_up select_task_rq_fair
native_send_call_func_single_ipi asm_sysvec_call_function_single sched_ttwu_pending raw_spin_rq_lock_nested
_raw_spin_lock enqueue_task_fair schedule_idle __schedule dequeue_task_fair newidle_balance sched_balance_newidle
__switch_to_asm finish_task_switch.isra.0 finish_wait schedule do_idle default_idle mwait_idle entry_SYSCALL_64
syscall_return_via_sysret"""


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__.strip())
    functions = set(sys.argv[3].split(",") if len(sys.argv) == 4 else USUAL.split())
    fields = (line.split() for line in open(sys.argv[1]))
    known = sorted((int(address, 16), name) for address, kind, name, *_ in fields if kind in "tT")
    begins = [address for address, _ in known]
    done = {}
    for line in open(sys.argv[2]):
        cpu, address, instructions = line.split()
        address = int(address, 16)
        place = bisect.bisect_right(begins, address) - 1
        so_far, last = done.get(cpu, (0, 0))
        if place >= 0 and begins[place] == address and known[place][1] in functions:
            print(f"CPU {cpu:>3} {so_far:>9} +{so_far - last:<6} {known[place][1]}")
            last = so_far
        done[cpu] = (so_far + int(instructions), last)


main()
