#!/bin/sh
# SPDX-License-Identifier: MIT
# The archive for other distributions: made, unpacked and tried in bare systems of Debian 11 and 13. Status 77, with the reason: not tried in all of them.
# usage: check-tarball.sh [SUITE...]
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
suites_dir=$work
# shellcheck source=scripts/suites.sh
. scripts/suites.sh
# shellcheck source=scripts/roots.sh
. scripts/roots.sh

sh scripts/make-tarball.sh
[ $# -gt 0 ] || set -- bullseye trixie
result=0
for suite; do
	status=0
	bare_root "$suite" "$work/$suite" || status=$?
	if [ $status -eq 77 ]; then
		result=77
		continue
	fi
	[ $status -eq 0 ] || exit $status
	tar -xzf build/packages/dynprobe-*.tar.gz -C "$work/$suite/opt"
	mv "$work/$suite"/opt/dynprobe-* "$work/$suite/opt/moved"
	cp scripts/try-dynprobe.sh "$work/$suite/opt"
	in_root "$work/$suite" sh /opt/try-dynprobe.sh /opt/moved/bin/dynprobe /opt/moved/share/man/man1/dynprobe.1.gz
	rm -rf "${work:?}/$suite"
done
exit $result
