#!/bin/bash
# Prints the path of a QEMU whose CPUs run side by side in virtual time: Debian's source of QEMU with
# crates/placewise-vm/qemu/parallel-time.h. What is not in the cache is built, in some minutes; the
# source comes through an apt configuration of its own, the machine's is only read.
set -euo pipefail

header=$(dirname "$0")/../crates/placewise-vm/qemu/parallel-time.h
cache=${XDG_CACHE_HOME:-$HOME/.cache}/placewise/qemu
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
# The changes below are to this one.
suite=bookworm

fail() {
	echo "no qemu-parallel-time: $1" >&2
	exit 1
}

key=$(cat "$header" "$0" | sha256sum | cut -c 1-12)
built=$cache/$key/bin/qemu-parallel-time
if [ -x "$built" ]; then
	echo "$built"
	exit
fi

command -v apt-get >/dev/null || fail "apt is not here: it is built on Debian and its descendants"
[ -e "$keyring" ] || fail "apt-get install debian-archive-keyring"
[ -e /usr/share/seabios/bios-256k.bin ] || fail "its firmware is missing: apt-get install qemu-system-x86"
packages="gcc libc6-dev libfdt-dev libglib2.0-dev libpixman-1-dev meson ninja-build pkg-config python3 zlib1g-dev"
if ! pkg-config --exists glib-2.0 pixman-1 zlib 2>/dev/null || ! command -v meson >/dev/null; then
	[ "$(id -u)" -eq 0 ] || fail "apt-get install $packages"
	# shellcheck disable=SC2086 # several packages
	DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $packages >/dev/null
fi
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -E '/debian/?$' | head -1) ||
	fail "apt's configuration names no mirror of Debian"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/lists/partial "$work"/cache/archives/partial "$cache"
echo "deb-src [signed-by=$keyring] $mirror $suite main" >"$work/sources.list"
private=(-o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
	-o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache"
	-o Dir::State::status=/dev/null -o APT::Sandbox::User=root -o Debug::NoLocking=1)
apt-get -qq "${private[@]}" -o APT::Update::Error-Mode=any update >"$work/log" 2>&1 ||
	fail "$suite cannot be read: $(grep -m1 '^E:' "$work/log")"
(cd "$work" && apt-get -qq "${private[@]}" --download-only source qemu) >"$work/log" 2>&1 ||
	fail "its source cannot be fetched: $(grep -m1 '^E:' "$work/log")"
cp "$header" "$work/parallel-time.h"
mkdir "$work/source"
tar --extract --file "$work"/qemu_*.orig.tar.xz --strip-components 1 --directory "$work/source"
cd "$work/source"
cp ../parallel-time.h accel/tcg/

# change FILE FROM TO: FROM is there once.
change() {
	python3 - "$@" <<-'END' || fail "$1 is not as in QEMU 7.2: $2"
		import sys
		path, old, new = sys.argv[1:]
		text = open(path).read()
		if text.count(old) != 1:
		    sys.exit(1)
		open(path, "w").write(text.replace(old, new))
	END
}
tcg=accel/tcg/tcg-accel-ops
change $tcg-rr.c '#include "tcg-accel-ops-icount.h"' '#include "tcg-accel-ops-icount.h"
#include "parallel-time.h"'
change $tcg-rr.c 'if (!cpu) {' 'cpu = parallel_next(); if (!cpu) {'
change $tcg-rr.c 'cpu = CPU_NEXT(cpu);
        } /*' 'cpu = parallel_next(); } /*'
change $tcg-rr.c 'icount_prepare_for_run(cpu);' 'icount_prepare_for_run(cpu, parallel_budget(cpu));'
change $tcg-rr.c 'icount_process_data(cpu);' 'icount_process_data(cpu); parallel_ran(cpu);'
change target/i386/tcg/misc_helper.c 'cs->exception_index = EXCP_INTERRUPT;' \
	'extern bool parallel_paused; parallel_paused = true; cs->exception_index = EXCP_INTERRUPT;'
for file in $tcg-icount.c $tcg-icount.h; do
	change $file 'icount_prepare_for_run(CPUState *cpu)' 'icount_prepare_for_run(CPUState *cpu, int64_t most)'
done
change $tcg-icount.c 'budget = icount_get_limit();' 'budget = MIN(icount_get_limit(), most);'
# Debian's source is without firmware.
change pc-bios/meson.build 'if unpack_edk2_blobs' 'if false'

mkdir build
cd build
jobs=${JOBS:-$(nproc)}
{
	../configure --meson="$(command -v meson)" --target-list=x86_64-softmmu --without-default-features \
		--enable-system --enable-tcg --enable-plugins --enable-fdt=system --disable-docs --disable-tools --disable-werror \
		--disable-qom-cast-debug --disable-install-blobs \
		--prefix=/usr --firmwarepath=/usr/share/qemu:/usr/share/seabios &&
		ninja -j "$jobs" qemu-system-x86_64
} >"$work/log" 2>&1 || fail "it does not build: $(grep -m1 -iE 'error' "$work/log")"
# It looks for the firmware of /usr from where it is itself.
mkdir -p "$cache/$key/bin" "$cache/$key/include"
cp ../include/qemu/qemu-plugin.h "$cache/$key/include"
ln -sfn /usr/share "$cache/$key/share"
mv qemu-system-x86_64 "$built"
echo "$built"
