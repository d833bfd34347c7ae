#!/usr/bin/env bash
# What the page of a long trace takes, ten million events of 384 CPUs: to make it, beside an audit of
# that trace, and, in headless Chromium, to open and to zoom it: bench-report.sh PLACEWISE DIRECTORY
#
# What drives the browser is fetched into the directory, as test-browser.sh does.
set -euo pipefail
placewise=$(realpath "$1")
mkdir -p "$2"
directory=$(realpath "$2")
cd "$(dirname "$0")/.."

skip() {
	echo "report of a long trace: skipped: $1"
	exit 0
}

[ -x /usr/bin/time ] || skip "GNU time is not installed"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$placewise" compare --machine epyc-9654-2s --kernel v6.0 --workload context_switch1 --runs 1 \
	--case 'instances=384;warmup_ms=1;window_ms=58' --trace "$work/trace.txt" >/dev/null
echo "report of a long trace: $(grep -vc '^#' "$work/trace.txt") events of 384 CPUs"

# What it prints is not looked at.
measured() {
	/usr/bin/time -f "  $1: %e s, of a CPU %U s and %S s in the kernel, %M kB" "${@:2}" >/dev/null
}
measured "made" "$placewise" report "$work/trace.txt" -o "$work/report.html"
measured "its audit" "$placewise" audit "$work/trace.txt"
echo "  $(stat -c %s "$work/report.html") bytes"

chromium=$(command -v chromium || command -v google-chrome || true)
[ -n "$chromium" ] && command -v npm >/dev/null || skip "opening it needs Chromium and npm"
[ -e "$directory/package.json" ] || echo '{ "private": true }' >"$directory/package.json"
(cd "$directory" && npm install --silent --no-save puppeteer-core@24 axe-core@4)
node crates/placewise-report/tests/browser/speed.mjs "$chromium" "$directory" "$work/report.html"
