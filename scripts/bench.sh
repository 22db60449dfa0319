#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the release and runs every benchmark; docs/performance.md has the figures that this prints.
set -eu
cd "$(dirname "$0")/.."
cmake --preset release -DBUILD_TESTING=OFF >/dev/null
cmake --build build -j "$(nproc)" --target dynprobe bench_programs
status=0
python3 bench/run.py --build build "$@" || status=1
echo
cmake --preset release -DBUILD_TESTING=ON >/dev/null # for a target of the tests
cmake --build build -j "$(nproc)" --target target_libcstorm
python3 bench/run_lttng.py --build build || status=1
echo
python3 bench/run_record.py --build build || status=1
exit $status
