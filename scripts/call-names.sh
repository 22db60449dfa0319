#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes the tables of output/calls/names.h from the system's headers: the names that output/calls/names.list asks for; the compiler fills in their values.
# usage: call-names.sh CC SOURCE-DIR OUTPUT.c
set -eu

cc=$1 source=$2
exec >"$3"
macros=$(printf '#include "output/calls/headers.h"\n' | "$cc" -D_GNU_SOURCE -I"$source" -E -dM -x c - | awk '$1 == "#define" && $2 !~ /\(/ && NF > 2 {print $2}' | LC_ALL=C sort)

cat <<'HEAD'
/* Made by scripts/call-names.sh. */
#include "output/calls/headers.h"
#include "output/calls/names.h"

HEAD
grep -v '^#' "$source/output/calls/names.list" | while read -r set _ names except; do
	printf 'static const struct dp_call_name %s_names[] = {\n' "$set"
	printf '%s\n' "$macros" | grep -Ex "$names" | grep -Evx "${except:-none}" | sed 's/.*/\t{(uint64_t)(&), "&"},/'
	printf '};\n'
done
printf 'const struct dp_call_names dp_call_names[] = {\n'
grep -v '^#' "$source/output/calls/names.list" | while read -r set kind _; do
	case $kind in
	values) mask='UINT64_MAX' ;;
	flags) mask=0 ;;
	*) mask=$kind ;;
	esac
	printf '\t{"%s", %s_names, sizeof(%s_names) / sizeof(*%s_names), %s},\n' "$set" "$set" "$set" "$set" "$mask"
done
printf '};\nconst size_t dp_call_nnames = sizeof(dp_call_names) / sizeof(*dp_call_names);\n'
