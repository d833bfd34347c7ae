#!/bin/sh
# Make sure that the commands and C headers named are there: on Debian, root gets what is missing
# installed, everyone else is told what to install.
set -eu

package_of() {
	case $1 in
	busybox) echo busybox-static ;;
	cc) echo "gcc libc6-dev" ;;
	chrt) echo util-linux ;;
	hackbench) echo rt-tests ;;
	libelf.h) echo libelf-dev ;;
	qemu-system-x86_64) echo qemu-system-x86 ;;
	zlib.h) echo zlib1g-dev ;;
	*) echo "$1" ;;
	esac
}

is_there() {
	case $1 in
	*.h) [ -e "/usr/include/$1" ] ;;
	*) command -v "$1" >/dev/null ;;
	esac
}

for needed; do
	if is_there "$needed"; then
		continue
	fi
	if [ "$needed" = cargo ]; then
		echo "cargo is missing: install Rust 1.95 or newer (https://rustup.rs)" >&2
		exit 1
	fi
	packages=$(package_of "$needed")
	if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
		apt-get update -qq
		# shellcheck disable=SC2086 # several packages
		DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $packages
	else
		echo "$needed is missing: install $packages (as root: apt-get install $packages)" >&2
		exit 1
	fi
done
