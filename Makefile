# What one types here. `make` alone says what there is.

SHELL := /bin/bash -o pipefail
CARGO ?= cargo
RUN = $(CARGO) run --release --quiet --package placewise --
TARGET = $(or $(CARGO_TARGET_DIR),target)
PROGRAM = $(TARGET)/release/placewise
BUILT = $(TARGET)/debug

# libbpf, and so scx_placewise, is built against libelf and zlib; without them it is left out.
HAS_LIBELF := $(shell test -e /usr/include/libelf.h -a -e /usr/include/zlib.h && echo yes)
SCOPE := $(if $(HAS_LIBELF),--workspace)

# Ends the output of tests with their number.
SUM_UP = awk ' \
    { print; fflush() } \
    /^test result:/ { passed += $$4; failed += $$6; skipped += $$8 } \
    END { printf "\n%d passed, %d failed, %d skipped\n", passed, failed, skipped }'

.PHONY: help
help:
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: demo
demo: compiler ## build, predict a published table, audit a trace of this machine
	$(CARGO) build --release --package placewise
	$(RUN) machine show host
	$(RUN) reproduce studies/wake-wide_x86_12_pgbench.csv --runs 3 --precision 1 --budget 12
	scripts/demo-audit.sh $(PROGRAM)

.PHONY: test
test: compiler ## all tests, those of scx_placewise where libelf-dev and zlib1g-dev are installed
	@$(if $(HAS_LIBELF),:,echo "skipped: scx_placewise needs libelf-dev and zlib1g-dev")
	@$(CARGO) test $(SCOPE) --no-fail-fast 2>&1 | $(SUM_UP)

.PHONY: perfetto
perfetto: compiler ## hold what --perfetto writes to Perfetto's own schema (pip install perfetto protobuf)
	$(CARGO) build --release --package placewise
	scripts/check-perfetto.py $(PROGRAM) traces/*.zst

.PHONY: test-browser
test-browser: compiler ## open reports in headless Chromium: panels, keyboard, accessibility (chromium, npm)
	$(CARGO) build --package placewise
	scripts/test-browser.sh $(BUILT)/placewise $(TARGET)/browser

.PHONY: pictures
pictures: compiler ## the pictures of reports in docs/: SVG, and PNG by headless Chromium
	$(CARGO) build --release --package placewise
	scripts/pictures.sh $(PROGRAM)

.PHONY: predictions
predictions: compiler ## predict the recorded interventions and write docs/interventions.md
	$(CARGO) build --release --package placewise-vm --bin interventions
	$(TARGET)/release/interventions predict studies/interventions/*.csv --page docs/interventions.md

.PHONY: test-vm
test-vm: compiler ## boot real kernels in QEMU and see what happens there; VM='[quick]' or VM=NAME for a part
	@if scripts/need.sh clang-19 pkg-config libelf.h zlib.h; \
	then $(MAKE) --no-print-directory scheduler; \
	else echo "left out: scx_placewise, for want of that"; $(CARGO) build --bins $(SCENARIOS); fi
	@$(CARGO) test $(SCOPE) $(SCENARIOS) -- --ignored '$(VM)' 2>&1 | $(SUM_UP)

.PHONY: test-python
test-python: compiler ## build the wheel of the Python package and test it in a new virtual environment; WHEEL=FILE for one that is there
	@scripts/test-python.sh

# Where the scenario stock-pairs leaves its traces.
PAIRS = $(TARGET)/tmp/vm/stock-pairs-two-nodes-16-6.18/out

.PHONY: replayed-pairs
replayed-pairs: compiler ## hold replays to what knobs and affinities did in QEMU: after make test-vm VM=stock-pairs; PAIRS=DIRECTORY
	$(CARGO) build --release --package placewise
	scripts/check-replays.py $(PROGRAM) $(PAIRS)

# Rows that a file has are not recorded again.
.PHONY: interventions
interventions: compiler ## turn knobs of real kernels in QEMU, record what loads do: BATCH=knobs ONLY='--kernel 6.18'
	$(CARGO) build --release --package placewise --package placewise-vm --bins
	nice -n 19 $(TARGET)/release/interventions record crates/placewise-vm/interventions/$(or $(BATCH),knobs).toml \
	    --output studies/interventions/$(or $(BATCH),knobs).csv $(ONLY)

# Where a test is built, here beside the programs, dependencies have the features that tests want of them: those
# that `make test` has built them with.
SCENARIOS = --test scenarios

# Also those with a fault, for the tests of what becomes of it: none is in the quick part.
.PHONY: scheduler
scheduler:
	for fault in $(if $(findstring [quick],$(VM)),,test-stall test-few-tasks test-held-lock); do \
	    $(CARGO) build --workspace --bins $(SCENARIOS) --features scx_placewise/$$fault && \
	    cp $(BUILT)/scx_placewise $(BUILT)/scx_placewise-$$fault || exit; \
	done
	$(CARGO) build --workspace --bins $(SCENARIOS)

.PHONY: lint
lint: compiler ## formatting and warnings, Rust and C; dependencies; what the service may do
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(SCOPE) --all-targets -- --deny warnings
	@if command -v clang-format-19 >/dev/null; \
	then git ls-files '*.c' '*.h' | xargs --no-run-if-empty clang-format-19 --dry-run --Werror; \
	else echo "skipped: clang-format-19 is not installed"; fi
	@if command -v node >/dev/null; then cat crates/placewise-report/page/*.js | node --check -; \
	else echo "skipped: scripts of pages: node is not installed"; fi
	@scripts/deny.sh
	@if command -v systemd-analyze >/dev/null; \
	then systemd-analyze security --offline=true --threshold=30 --no-pager dist/scx_placewise.service | tail -1; \
	else echo "skipped: what the service may do: systemd-analyze is not installed"; fi

# All rows and up to 24 runs with FULL=1; else CASES cases of each experiment and up to four: of four effects that had
# eight on a page before, none got its sign from the last four, which told two wrong signs from none.
# One series: STUDIES='studies/sis-util_*'.
CASES = 1
EFFORT = --precision 1 $(if $(FULL),--runs 3 --budget 24,--sample $(CASES) --runs 2 --budget 4)
STUDIES = studies/*.csv

.PHONY: accuracy
accuracy: compiler ## predict the published results in studies/ and write docs/ACCURACY.md: an hour on 2 slow CPUs, with CASES=2 two, with FULL=1 many
	$(RUN) reproduce $(STUDIES) $(EFFORT) --page docs >/dev/null

# As distributions have it: PREFIX is where it will be, DESTDIR where it is put for now.
PREFIX ?= /usr/local
SHARE = $(DESTDIR)$(PREFIX)/share

.PHONY: install
install: dist ## placewise with manual pages, completions and studies; PREFIX=/usr/local, DESTDIR
	install -D -m 755 $(TARGET)/dist/placewise $(DESTDIR)$(PREFIX)/bin/placewise
	install -d $(SHARE)/placewise
	cp -r $(TARGET)/dist/share/. $(SHARE)
	cp -r examples studies $(SHARE)/placewise

.PHONY: package
package: dist ## a Debian package of the same, by cargo-deb: target/debian/*.deb
	$(CARGO) deb --no-build --strip --profile dist --package placewise

# The program as fast as it gets, and what it writes for `share` directories.
.PHONY: dist
dist: compiler
	$(CARGO) build --profile dist --package placewise
	rm -rf $(TARGET)/dist/share
	$(TARGET)/dist/placewise share $(TARGET)/dist/share

.PHONY: bench
bench: compiler ## events per second of the simulator, what two threads gain, and the audit beside perf; a long report; ns per wakeup in BPF
	$(CARGO) build --profile dist --package placewise
	$(TARGET)/dist/placewise bench
	scripts/bench-jobs.sh $(TARGET)/dist/placewise
	scripts/bench-audit.sh $(TARGET)/dist/placewise
	scripts/bench-report.sh $(TARGET)/dist/placewise $(TARGET)/browser
	@$(if $(HAS_LIBELF),$(CARGO) bench --quiet --profile dist --package scx_placewise --bench wakeups, \
	    echo "wakeups in BPF: skipped: scx_placewise needs libelf-dev and zlib1g-dev")

.PHONY: instructions
instructions: compiler ## instructions that three runs take, beside the recorded ones: fails at 5 % more or less
	$(CARGO) build --release --package placewise
	scripts/instructions.sh $(PROGRAM)

.PHONY: fuzz
fuzz: compiler ## feed every importer and reader random input, a minute each
	$(CARGO) test --release --package placewise --package placewise-machine \
	    --package placewise-workload --package placewise-trace --package placewise-audit \
	    --package placewise-replay -- --ignored fuzz

.PHONY: compiler
compiler:
	@scripts/need.sh cargo cc
