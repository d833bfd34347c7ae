#!/usr/bin/env bash
# The pictures in docs/: panels of a report of a trace that comes along: pictures.sh PLACEWISE
set -euo pipefail
placewise=$(realpath "$1")
cd "$(dirname "$0")/.."
chromium=$(command -v chromium || command -v google-chrome) ||
	{ echo "pictures need Chromium (Debian: apt install chromium)" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$placewise" report traces/vm32-k73-hackbench-pipe.txt.zst -o "$work/report.html" --svg "$work"
cp "$work/machine-0.svg" docs/report-machine.svg
cp "$work/residency-0.svg" docs/report-residency.svg

# One panel of the page: picture PANEL WIDTH HEIGHT
picture() {
	"$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" \
		--blink-settings=preferredColorScheme=1 --virtual-time-budget=10000 --window-size="$2,$3" \
		--screenshot="docs/report-$1.png" "file://$work/report.html#only=$1${4:-}" 2>/dev/null
}
picture timeline 1100 830
picture latency 760 470
