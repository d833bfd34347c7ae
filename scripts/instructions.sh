#!/bin/bash
# How many instructions three runs take in all, counted by valgrind, which a busy host does not
# change: beside what scripts/instructions.txt has recorded. More than 5 % off either way fails: what
# got dearer is to be mended, what got cheaper to be recorded, with UPDATE_INSTRUCTIONS=1. Takes the
# program, placewise, as `cargo build --release` makes it, as its argument.
set -euo pipefail

placewise=$1
recorded=scripts/instructions.txt
crowd=traces/vm64-k618-overcommit.txt.zst

command -v valgrind >/dev/null || {
	echo "instructions: skipped: valgrind is not installed"
	exit 0
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# NAME ARGUMENTS...
count() {
	local name=$1
	shift
	valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file="$work/out" \
		"$placewise" "$@" >/dev/null 2>"$work/log" || {
		cat "$work/log"
		exit 1
	}
	sed -n 's/,//g; s/.*I *refs: *//p' "$work/log" | awk -v name="$name" '{ print $1, name }'
}

simulate() {
	count "$1" compare --machine "$2" --kernel v6.0 --workload "$3" --case "$4" --runs 1 --jobs 1
}

{
	simulate messages zen3-2s-nps1 hackbench "groups=16;warmup_ms=3;window_ms=3"
	simulate wakeups epyc-9654-2s context_switch1 "instances=384;warmup_ms=1;window_ms=1"
	count audit audit "$crowd"
} >"$work/counted"

if [ -n "${UPDATE_INSTRUCTIONS:-}" ]; then cp "$work/counted" "$recorded"; fi

awk '
	NR == FNR { recorded[$2] = $1; next }
	{
		change = recorded[$2] ? ($1 / recorded[$2] - 1) * 100 : 100
		printf "instructions of %-10s %6.0f M, %+.1f %% of what is recorded\n", $2, $1 / 1e6, change
		if (change > 5 || change < -5) failed = 1
	}
	END { exit failed }' "$recorded" "$work/counted"
