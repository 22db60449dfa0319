#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks the LTTng sink's rules as a guest. usage: check.sh SHARED-OBJECT OBJECTS-WITHOUT-VECTOR-REGISTERS...
set -eu
so=$1
shift
fail() { echo "$so: $1" >&2; exit 1; }

[ "$(nm -D --defined-only "$so" | awk '{ print $3 }')" = dp_lttng_start ] || fail "it must export dp_lttng_start and nothing else"
needed=$(readelf -dW "$so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | tr '\n' ' ')
case "$needed" in
*liblttng-ust.so*) ;;
*) fail "it must need liblttng-ust (needs: $needed)" ;;
esac
! readelf -dW "$so" | grep -qE '\((RPATH|RUNPATH|TEXTREL)\)' || fail "it has a search path or text relocations"
readelf -rW "$so" | grep -q R_X86_64_IRELATIV || fail "it has no indirect function, whose resolver calls early.c"
for flag in NODELETE NOW; do
	readelf -dW "$so" | grep -q "(FLAGS_1).*$flag" || fail "it must be linked with -z $(echo "$flag" | tr '[:upper:]' '[:lower:]')"
done
# The surplus of static TLS is small and shared by all libraries.
tls=$(readelf -lW "$so" | awk '$1 == "TLS" { print $6 }')
[ $((tls)) -le 64 ] || fail "it has $((tls)) bytes of TLS"
for object in "$@"; do
	if objdump -d --no-show-raw-insn "$object" | grep -qE '%[xyz]mm|%st|%mm[0-7]'; then
		fail "$object uses vector registers, which are not saved yet when it runs"
	fi
done
