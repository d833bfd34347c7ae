#!/bin/bash
# What `--jobs 2` gains where two CPUs have nothing else to do: the wall time of the same comparison with
# one thread and with two, in turns, the least of three runs each. Takes the program, placewise, as its
# argument.
set -euo pipefail

placewise=$1
TIMEFORMAT=%R

if [ "$(nproc)" -lt 2 ]; then
	echo "runs side by side: skipped: there is one CPU"
	exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# JOBS
compare() {
	"$placewise" compare --machine zen3-2s-nps1 --kernel v6.0 --policy baseline --policy short-task \
		--workload hackbench --case "groups=16;warmup_ms=30;window_ms=100" --runs 4 --jobs "$1" \
		>"$work/table.$1"
}

for run in 1 2 3; do
	for jobs in 1 2; do
		# What the program says of itself is not to be taken for a time.
		{ time compare "$jobs" 2>&3; } 3>&2 2>>"$work/seconds.$jobs"
	done
done
cmp "$work/table.1" "$work/table.2"

least() {
	sort -n "$work/seconds.$1" | head -1
}

awk -v one="$(least 1)" -v two="$(least 2)" 'BEGIN {
	printf "runs side by side, 8 of hackbench with 16 groups on zen3-2s-nps1\n"
	printf "  --jobs 1 %8.2f s\n  --jobs 2 %8.2f s  %.2f times as fast\n", one, two, one / two
}'
