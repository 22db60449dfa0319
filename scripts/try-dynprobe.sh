#!/bin/sh
# SPDX-License-Identifier: MIT
# Tries an installed dynprobe in a system that has nothing else: it attaches, launches, views a trace and takes a snapshot.
# usage: try-dynprobe.sh DYNPROBE [MANUAL PAGE]
# 'libc[-.]*': before glibc 2.34 the file was libc-2.31.so.
set -eu
dynprobe=$1
work=$(mktemp -d)
perl=''
trap '[ -z "$perl" ] || kill "$perl"; rm -rf "$work"' EXIT
fail() { echo "$*" >&2; cat "$work/out" "$work/err" >&2; exit 1; }
run() { "$dynprobe" "$@" >"$work/out" 2>"$work/err" || fail "dynprobe $*: status $?"; }
expect() { grep -qE -- "$1" "$work/out" "$work/err" || fail "no '$1' in:"; }

perl -e '$| = 1; print "ready\n"; select(undef, undef, undef, 0.01) while 1' >"$work/ready" &
perl=$!
until [ -s "$work/ready" ]; do kill -0 "$perl" && sleep 0.05; done

run --version
expect '^dynprobe [0-9]'
run --pid "$perl" --function 'libc[-.]*!select' -t reg:rdi -t backtrace -n 5 --record "$work/trace"
expect 'select: rdi='
expect '^ *#1 .*perl'
run view "$work/trace"
[ "$(grep -c 'select: rdi=' "$work/out")" -eq 5 ] || fail "not five events in the trace:"
run -n 1 --function main -c true
expect 'main'
run snapshot "$perl" --module-load deadlock -o "$work/perl.dps"
run show "$work/perl.dps"
expect 'select'
run explain too-short
kill -0 "$perl"
if [ $# -gt 1 ]; then
	gzip -dc "$2" >"$work/out"
	expect 'dynprobe --pid|dynprobe .--pid'
fi
echo "$(cat /etc/debian_version): attached, launched, viewed a trace, took a snapshot"
