#!/bin/sh
# Make sure that the commands named are there: on Debian, root gets what is missing installed,
# everyone else is told what to install.
set -eu

package_of() {
	case $1 in
	busybox) echo busybox-static ;;
	cc) echo "gcc libc6-dev" ;;
	hackbench) echo rt-tests ;;
	qemu-system-x86_64) echo qemu-system-x86 ;;
	*) echo "$1" ;;
	esac
}

for command; do
	if command -v "$command" >/dev/null; then
		continue
	fi
	if [ "$command" = cargo ]; then
		echo "cargo is missing: install Rust 1.95 or newer (https://rustup.rs)" >&2
		exit 1
	fi
	packages=$(package_of "$command")
	if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
		apt-get update -qq
		# shellcheck disable=SC2086 # several packages
		DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $packages
	else
		echo "$command is missing: install $packages (as root: apt-get install $packages)" >&2
		exit 1
	fi
done
