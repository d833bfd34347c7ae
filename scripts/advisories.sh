#!/bin/sh
# Print advisories.toml anew: what a checkout of RustSec's database knows against crates of
# Cargo.lock. Usage: scripts/advisories.sh CHECKOUT YYYY-MM-DD >advisories.toml
set -eu
database=$1 date=$2

cat <<END
# What RustSec (https://rustsec.org) knew on $date against crates that Cargo.lock had then, in any
# version: what \`make lint\` goes by where it cannot fetch the database. Written by
# scripts/advisories.sh.

advisories = [
END
sed -n 's/^name = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.lock" | sort -u | while read -r crate; do
	for advisory in "$database/crates/$crate"/*.md; do
		[ -e "$advisory" ] || continue
		# The TOML ahead of the text; a list may go on for several lines.
		awk -v crate="$crate" '
			/^```$/ { exit }
			/^withdrawn *=/ { withdrawn = 1 }
			/^id *=/ { id = $0 }
			/^(patched|unaffected) *=/ { list = $1 }
			list { lists[list] = lists[list] $0 }
			/\] *$/ { list = "" }
			function of(name) { return lists[name] ? lists[name] : name " = []" }
			END {
				if (!withdrawn)
					printf "    { crate = \"%s\", %s, %s, %s },\n", crate, id, of("patched"), of("unaffected")
			}' "$advisory"
	done
done
echo ']'
