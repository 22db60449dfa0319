#!/bin/sh
# SPDX-License-Identifier: MIT
# Looks for Linux kernels of Debian in the archive that this machine's apt is set up for, and fetches them. Nothing is installed.
# usage: fetch.sh list DIR          writes the available kernels to DIR/list: "SERIES PACKAGE SUITE" by series (5.10, 6.1), newest first
#        fetch.sh get DIR SERIES    the newest kernel of a series as DIR/SERIES/vmlinuz, its name in DIR/SERIES/package
set -eu

# Releases beside the one that is set up; those that the archive does not serve are reported and skipped.
suites="bullseye bullseye-security bookworm bookworm-security bookworm-backports trixie trixie-security trixie-backports sid"

dir=$2
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
suites_dir=$dir
# shellcheck source=scripts/suites.sh
. "$(dirname "$0")/../../scripts/suites.sh"

kernels_of() { # kernels_of SUITE: "SERIES PACKAGE SUITE"
	apt_in "$1" apt-cache search --names-only '^linux-image-[0-9]+[.][0-9]+[.][0-9][^ ]*-amd64(-unsigned)?$' |
		sed -nE "/-(rt|cloud)-amd64/d; s/^linux-image-([0-9]+[.][0-9]+)([^ ]*) .*/\1 linux-image-\1\2 $1/p"
}

list() {
	[ -z "$(find "$dir/list" -size +0 -mmin -600 2>/dev/null)" ] || return 0
	for suite in $suites; do
		if update "$suite"; then
			kernels_of "$suite"
		else
			echo "$suite: not served by this machine's archive" >&2
		fi
	done | sort -k1,1V -k2,2Vr >"$dir/list"
}

unpack() { # unpack SUITE PACKAGE SERIES: false where it cannot be had, or has no kernel in it
	(cd "$dir/$3" && apt_in "$1" apt-get download "$2") >/dev/null 2>&1 || return 1
	dpkg-deb --fsys-tarfile "$dir/$3"/*.deb | tar -x -O --wildcards '*/vmlinuz*' >"$dir/$3/vmlinuz" 2>/dev/null || true
	rm -f "$dir/$3"/*.deb
	[ -s "$dir/$3/vmlinuz" ]
}

get() { # get SERIES
	mkdir -p "$dir/$1"
	while read -r series package suite; do
		[ "$series" = "$1" ] || continue
		[ "$(cat "$dir/$1/package" 2>/dev/null)" != "$package" ] || return 0
		# from 7.2 on the kernel itself is a package of its own
		if unpack "$suite" "$package" "$1" || unpack "$suite" "linux-binary-${package#linux-image-}" "$1"; then
			echo "$package" >"$dir/$1/package"
			return 0
		fi
	done <"$dir/list"
	rm -rf "${dir:?}/$1"
	return 1
}

case "$1" in
list) list ;;
get) get "$3" ;;
esac
