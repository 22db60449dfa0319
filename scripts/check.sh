#!/bin/sh
# SPDX-License-Identifier: MIT
# Everything that CI runs, fastest first. The full test run is last, so that its summary ends the output.
set -eu
cd "$(dirname "$0")/.."

# Some tests run as the user nobody, who cannot enter a checkout below /root. Then a copy elsewhere is tested.
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

# Where processes spin, Linux 6.18 may keep its own threads from a processor for two minutes if processes are scheduled in groups, one
# for each session. liburcu waits for such a thread, and LTTng for liburcu. So the groups are off while the tests run.
groups=/proc/sys/kernel/sched_autogroup_enabled
if [ "$(cat $groups 2>/dev/null)" = 1 ] && (echo 0 >$groups) 2>/dev/null; then
	echo "$groups is 0 until the tests end"
	trap 'echo 1 >$groups' EXIT
	trap 'exit 1' HUP INT TERM
fi

step() { printf '\n== %s\n' "$*"; }

step "source: rooms, licence lines, shell scripts"
sh scripts/check-source.sh

step "clang, gcc -O0, gcc -O3: the tool, its agent and library compile without a warning"
# clang's warnings are the same without optimization, and nobody debugs these
sh scripts/build-quietly.sh clang -DBUILD_TESTING=OFF -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=
sh scripts/build-quietly.sh debug -DBUILD_TESTING=OFF -DCMAKE_C_FLAGS_DEBUG=
sh scripts/build-quietly.sh o3 -DBUILD_TESTING=OFF

jobs=$(sh scripts/test-jobs.sh)

step "ASan and UBSan: unit tests, and some end-to-end tests, $jobs at once"
sh scripts/build-quietly.sh asan
ctest --preset asan --timeout 900 -j "$jobs"

step "gcc: all tests, $jobs at once"
sh scripts/build-quietly.sh release -DBUILD_TESTING=ON -DDP_TEST_TIMEOUT=1500
ctest --preset release --timeout 1500 -j "$jobs"
