#!/bin/sh
# Hold the dependencies to deny.toml: licences, one version of each, crates.io only, nothing that
# RustSec knows to be wrong with them. Where its database cannot be fetched, what it knew when
# advisories.toml was written.
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
	"${CARGO:-cargo}" test --quiet --package placewise --test command_line advisories
	echo "advisories: not fetched; none of those in advisories.toml, $(sed -n \
		's/^# .* knew on \([0-9-]*\) .*/of \1,/p' advisories.toml) is against Cargo.lock"
fi
