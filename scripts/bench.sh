#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the release and runs every benchmark; docs/performance.md is written from what this prints.
set -eu
cd "$(dirname "$0")/.."
cmake --preset release -DBUILD_TESTING=OFF >/dev/null
cmake --build build -j "$(nproc)" --target dynprobe bench_programs
exec python3 bench/run.py --build build "$@"
