#!/usr/bin/env bash
# Makes reports and opens them in headless Chromium: test-browser.sh PLACEWISE DIRECTORY
#
# puppeteer-core and axe-core are fetched into the directory, which also takes the screenshots.
set -euo pipefail
placewise=$(realpath "$1")
mkdir -p "$2"
directory=$(realpath "$2")
cd "$(dirname "$0")/.."

chromium=$(command -v chromium || command -v google-chrome || true)
if [ -z "$chromium" ] || ! command -v npm >/dev/null; then
	echo "skipped: reports in a browser need Chromium and npm (Debian: apt install chromium npm)"
	exit 0
fi
[ -e "$directory/package.json" ] || echo '{ "private": true }' >"$directory/package.json"
(cd "$directory" && npm install --silent --no-save puppeteer-core@24 axe-core@4)

traces=traces
"$placewise" report $traces/vm32-k73-hackbench-pipe.txt.zst -o "$directory/trace.html"
"$placewise" report $traces/vm16-k61-stress-mix.txt.zst $traces/vm16-k612-pingpong.txt.zst \
	-o "$directory/two.html"
"$placewise" compare --machine 'pack:2 l3:2 core:2 pu:2' --costs-from icx-2s --kernel v6.0 \
	--workload hackbench --case 'groups=1' --policy short-task --quick \
	--trace "$directory/out.txt" --html "$directory/compare.html" >/dev/null
"$placewise" advise $traces/vm16-k612-pingpong.txt.zst --budget 40 --html "$directory/advise.html" >/dev/null
"$placewise" reproduce studies/wake-wide_x86_12_pgbench.csv --sample 2 \
	--html "$directory/reproduce.html" >/dev/null
# A task with a name that HTML would obey.
zstd -dc $traces/vm16-k612-pingpong.txt.zst | sed 's|comm=pp |comm=</script><b> |g; s|^ *pp-|</script><b>-|' \
	>"$directory/evil.txt"
"$placewise" report "$directory/evil.txt" -o "$directory/evil.html"

node crates/placewise-report/tests/browser/pages.mjs "$chromium" "$directory"
