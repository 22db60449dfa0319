#!/bin/sh
# SPDX-License-Identifier: MIT
# Everything that CI runs, cheapest first; the full test run comes last, so that its summary closes the output.
set -eu
cd "$(dirname "$0")/.."
jobs=$(nproc)

# Some tests run as the user nobody, who cannot enter a checkout below /root: then a copy elsewhere is tested.
if [ "$(id -u)" -eq 0 ] && [ -z "${DP_CHECK_COPY-}" ] && ! setpriv --reuid 65534 --clear-groups test -r "$PWD/scripts/check.sh"; then
	copy=$(mktemp -d)
	trap 'rm -rf "$copy"' EXIT
	chmod 755 "$copy"
	echo "other users cannot read $PWD: testing a copy in $copy"
	git clone -q . "$copy/dynprobe"
	git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$copy/dynprobe"
	DP_CHECK_COPY=1 sh "$copy/dynprobe/scripts/check.sh"
	exit
fi

step() { printf '\n== %s\n' "$*"; }

# Configures and builds a preset quietly: the log is shown only if it fails.
build() {
	log=$(mktemp)
	if ! { cmake --preset "$@" && cmake --build --preset "$1" -j "$jobs"; } >"$log" 2>&1; then
		tail -n 60 "$log" >&2
		rm -f "$log"
		exit 1
	fi
	rm -f "$log"
}

step "source: rooms, licence lines, shell scripts"
sh scripts/check-source.sh

step "clang, gcc -O0, gcc -O3: the tool, its agent and library compile without a warning"
for preset in clang debug o3; do build "$preset" -DBUILD_TESTING=OFF; done

step "ASan and UBSan: unit tests, and some end-to-end tests"
build asan
ctest --preset asan --timeout 300

step "gcc: all tests"
build release -DBUILD_TESTING=ON
ctest --preset release --timeout 600
