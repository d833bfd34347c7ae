#!/bin/sh
# Audits a trace: one of this machine, recorded now, where that is allowed; else one that comes along.
# Takes the program, placewise, as its argument.
set -eu

placewise=$1
bundled=traces/vm32-k73-hackbench-pipe.txt.zst

trace=$(mktemp -d)/here.txt.zst
trap 'rm -rf "$(dirname "$trace")"' EXIT

# Something with wakeups that every machine has.
load='for i in 1 2 3 4; do seq 100000 | sort -r | uniq | tail -n 1 & done; wait'
if command -v hackbench >/dev/null; then
	load='hackbench --pipe --groups 2 --loops 200'
fi

if "$placewise" record --output "$trace" -- sh -c "$load"; then
	"$placewise" audit "$trace"
	exit
fi
echo "A trace of another machine instead: $bundled"
"$placewise" audit "$bundled"
