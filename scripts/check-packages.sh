#!/bin/sh
# SPDX-License-Identifier: MIT
# The packages of Debian: lintian has no complaint, and they install and work in a bare Debian 12. usage: check-packages.sh [BUILD]
set -eu
cd "$(dirname "$0")/.."
build=$(cd "${1:-build}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
suites_dir=$work
# shellcheck source=scripts/suites.sh
. scripts/suites.sh
# shellcheck source=scripts/roots.sh
. scripts/roots.sh

cpack --config "$build/CPackConfig.cmake" -G DEB -B "$work/packages" >"$work/log" || { cat "$work/log"; exit 1; }
if command -v lintian >/dev/null; then
	lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$work"/packages/*.deb
	echo "lintian: no complaint"
else
	echo "skipped: lintian is not installed"
fi

bare_root bookworm "$work/root" || exit $?
mkdir "$work/root/packages"
cp "$work"/packages/*.deb scripts/try-dynprobe.sh "$work/root/packages"
in_root "$work/root" sh -c 'apt-get update && apt-get install -y --no-install-recommends /packages/*.deb' >"$work/log" 2>&1 || { tail -n 30 "$work/log"; exit 1; }
in_root "$work/root" sh /packages/try-dynprobe.sh dynprobe /usr/share/man/man1/dynprobe.1.gz
in_root "$work/root" apt-get -qq purge -y dynprobe dynprobe-dev >/dev/null 2>&1
left=$(find "$work/root/usr" -path '*dynprobe*')
[ -z "$left" ] || { echo "left after the removal: $left"; exit 1; }
