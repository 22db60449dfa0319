#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: build-quietly.sh PRESET [cmake options]. Configures and builds a preset; shows the log only if that fails.
set -u
cd "$(dirname "$0")/.." || exit 1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { cmake --preset "$@" && cmake --build --preset "$1" -j "$(nproc)"; } >"$log" 2>&1; then
	tail -n 60 "$log" >&2
	exit 1
fi
