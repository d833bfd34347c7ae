#!/bin/sh
# Hold the dependencies to deny.toml: licences, one version of each, crates.io only, nothing that
# RustSec knows to be wrong with them. What it knew when advisories.toml was written is held by a test.
set -eu
database=https://github.com/RustSec/advisory-db

if command -v cargo-deny >/dev/null; then
	cargo deny --workspace check bans licenses sources
else
	echo "skipped: licences and versions of dependencies: cargo-deny is not installed"
fi
if command -v cargo-deny >/dev/null && timeout 20 git ls-remote "$database" HEAD >/dev/null 2>&1; then
	cargo deny --workspace check advisories
else
	echo "advisories: not fetched; make test holds Cargo.lock to those in advisories.toml, $(sed -n \
		's/^# .* knew on \([0-9-]*\) .*/of \1/p' advisories.toml)"
fi
