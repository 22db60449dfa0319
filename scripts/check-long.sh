#!/bin/sh
# SPDX-License-Identifier: MIT
# What make check leaves out because it is slow: everything with its tests, built by every compiler, and the long forms of the end-to-end tests.
set -eu
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

step "clang, gcc -O0, gcc -O3: everything compiles without a warning, the tests too"
for preset in clang debug o3; do sh scripts/build-quietly.sh "$preset" -DBUILD_TESTING=ON; done

step "gcc: all tests, the end-to-end ones in their long form"
sh scripts/build-quietly.sh release -DBUILD_TESTING=ON -DDP_TEST_TIMEOUT=14400
DP_FULL=1 ctest --preset release

step "ASan and UBSan: more end-to-end tests"
sh scripts/build-quietly.sh asan
ctest --test-dir build-asan --output-on-failure -L '^asan_long$' -j 2

step "packages: lintian, and a bare Debian 12; the archive in a bare Debian 11 and 13"
sh scripts/check-packages.sh build || [ $? -eq 77 ]
sh scripts/check-tarball.sh || [ $? -eq 77 ]
