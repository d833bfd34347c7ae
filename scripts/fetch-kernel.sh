#!/bin/bash
# Prints the directory of Debian's newest kernel of a series, such as 6.18 or 7: `vmlinuz` and `config`.
# What is not in the cache comes from the release of that series, or else trixie-backports, whose have
# sched_ext; through an apt configuration of its own: the machine's is read for its mirror, and never
# changed.
# What is in the cache is taken as it is; remove it to look for a newer one.
set -euo pipefail

series=$1
case $series in
5.10) suite=bullseye ;;
6.1) suite=bookworm ;;
6.12) suite=trixie ;;
*) suite=trixie-backports ;;
esac
cache=${XDG_CACHE_HOME:-$HOME/.cache}/placewise/kernels
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

fail() {
	echo "no Linux $series to boot: $1" >&2
	exit 1
}

# The newest of the directories named by version.
newest() {
	grep -E "^${series//./\\.}\." | sort -V | tail -1
}

cached=$({ ls "$cache" 2>/dev/null || true; } | newest || true)
if [ -n "$cached" ]; then
	echo "$cache/$cached"
	exit
fi

command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
	fail "apt is not here: it is fetched on Debian and its descendants"
[ "$(dpkg --print-architecture)" = amd64 ] || fail "only amd64 is emulated"
[ -e "$keyring" ] || fail "apt-get install debian-archive-keyring"
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -E '/debian/?$' | head -1) ||
	fail "apt's configuration names no mirror of Debian"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/lists/partial "$work"/cache/archives/partial "$cache"
echo "deb [arch=amd64 signed-by=$keyring] $mirror $suite main" >"$work/sources.list"
private=(-o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
	-o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache"
	-o Dir::State::status=/dev/null -o APT::Sandbox::User=root -o Debug::NoLocking=1)

apt-get -qq "${private[@]}" -o APT::Update::Error-Mode=any update >"$work/log" 2>&1 ||
	fail "$suite cannot be read: $(grep -m1 '^E:' "$work/log")"

# Newer releases have the kernel in linux-binary and its configuration in linux-base, older ones
# all in linux-image.
offered=$(apt-cache "${private[@]}" pkgnames linux-)
release=$(sed -nE 's/^linux-image-([0-9].*-cloud-amd64)$/\1/p' <<<"$offered" | newest) ||
	fail "$suite offers none: build one, and put its vmlinuz and config into $cache/$series.N"
packages=$(grep -xF -e "linux-binary-$release" -e "linux-base-$release" <<<"$offered") ||
	packages=linux-image-$release

# shellcheck disable=SC2086 # several packages
(cd "$work" && apt-get -qq "${private[@]}" download $packages) >"$work/log" 2>&1 ||
	fail "$release cannot be fetched: $(grep -m1 '^E:' "$work/log")"
for package in "$work"/*.deb; do
	dpkg-deb --extract "$package" "$work/root"
done

mkdir "$work/kernel"
for file in vmlinuz config; do
	# Not configfs.ko.
	find "$work/root" -type f \( -name "$file" -o -name "$file-*" \) -exec mv {} "$work/kernel/$file" \;
	[ -e "$work/kernel/$file" ] || fail "no $file in" $packages
done
# At once, so that nobody finds half of it; another one may have been faster.
mv -T "$work/kernel" "$cache/$release" 2>/dev/null || [ -e "$cache/$release/vmlinuz" ]
echo "$cache/$release"
