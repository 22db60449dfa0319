# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Bare systems of Debian releases, to try a package or archive in. Sourced, after suites.sh. Needs root.

# Makes a minimal system; where that cannot be had, says why and returns 77, ctest's word for "skipped".
bare_root() { # bare_root SUITE DIRECTORY
	[ "$(id -u)" -eq 0 ] || { echo "skipped: $1: needs root"; return 77; }
	command -v debootstrap >/dev/null || { echo "skipped: $1: debootstrap is not installed"; return 77; }
	mirror=$(source_of "$1")
	[ -n "$mirror" ] || { echo "skipped: $1: apt has no archive of Debian here"; return 77; }
	if ! debootstrap --variant=minbase "$1" "$2" "$mirror" >"$2.log" 2>&1; then
		echo "skipped: $1: debootstrap failed: $(tail -n 1 "$2.log")"
		return 77
	fi
	cp /etc/resolv.conf "$2/etc/resolv.conf"
}

# Runs a command in a root, with /proc; its processes end with it.
in_root() { # in_root DIRECTORY COMMAND...
	root=$1
	shift
	unshare --mount --pid --fork --kill-child --mount-proc="$root/proc" chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive "$@"
}
