#!/bin/bash
# How fast `placewise audit` reads and judges a trace, beside perf on the same events in the same
# run: `perf script`, which prints them, and `perf sched latency`, which sums them up. CPU time, the
# least of three runs. Takes the program, placewise, as its argument.
set -euo pipefail

placewise=$1
TIMEFORMAT='%U %S'

skip() {
	echo "audit against perf: skipped: $1"
	exit 0
}

command -v perf >/dev/null || skip "perf is not installed"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

perf sched record -o "$work/perf.data" -- perf bench sched messaging -g 16 -l 2000 \
	>"$work/log" 2>&1 || skip "perf may not record scheduler events: run as root"

# The events themselves, without what perf adds and the audit would leave out.
perf script -i "$work/perf.data" 2>/dev/null | grep -v sched_stat_runtime >"$work/trace.txt"

best() {
	local run
	for run in 1 2 3; do
		{ time "$@" >/dev/null 2>&1; } 2>&1
	done | awk '{ print $1 + $2 }' | sort -n | head -1
}

audit=$(best "$placewise" audit "$work/trace.txt" --machine host --kernel v6.18)
script=$(best perf script -i "$work/perf.data")
latency=$(best perf sched latency -i "$work/perf.data")

events=$("$placewise" audit "$work/trace.txt" --machine host --kernel v6.18 --format json |
	sed -n 's/^ *"events": \([0-9]*\),$/\1/p' | head -1)

awk -v events="$events" -v audit="$audit" -v script="$script" -v latency="$latency" 'BEGIN {
	printf "audit against perf, %d events of perf sched record, CPU time\n", events
	printf "  %-20s %8.3f s  %6.2f M events/s\n", "placewise audit", audit, events / audit / 1e6
	printf "  %-20s %8.3f s  audit takes %.2f of its time\n", "perf script", script, audit / script
	printf "  %-20s %8.3f s  audit takes %.2f of its time\n", "perf sched latency", latency, audit / latency
}'
