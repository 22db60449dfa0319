#!/bin/sh
# SPDX-License-Identifier: MIT
# House rules that a machine can check: no include runs upward, every source names its licence, scripts are sound.
set -eu
cd "$(dirname "$0")/.."

files() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [ -e "$f" ] && echo "$f"; done; }
status=0
complain() { # complain TITLE LINES
	[ -n "$2" ] || return 0
	printf '%s\n%s\n' "$1" "$2" >&2
	status=1
}

# The floors, lowest first. A folder may include its own headers and those of the folders before it.
upward=$(files '*.c' '*.h' '*.S' | xargs grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' /dev/null | awk -F: '
	BEGIN { n = split("base agent probes trampoline injector pmodules output cli", name, " "); for (i = 1; i <= n; i++) floor[name[i]] = i }
	{
		split($1, from, "/"); split($3, quoted, "\""); split(quoted[2], to, "/")
		if ((from[1] in floor) && (to[1] in floor) && floor[to[1]] > floor[from[1]])
			print "  " $1 ":" $2 " includes " quoted[2]
	}')
complain "includes that run upward (docs/decisions/0001):" "$upward"

unlicensed=$(files '*.c' '*.h' '*.S' '*.def' '*.lds' '*.py' '*.sh' '*.cmake' '*CMakeLists.txt' 'Makefile' '.ci/run' |
	while read -r f; do head -n 3 "$f" | grep -q 'SPDX-License-Identifier: MIT' || echo "  $f"; done)
complain "no SPDX licence line among the first three:" "$unlicensed"

long=$(files '*.c' '*.h' '*.S' | xargs wc -l | awk '$2 != "total" && $1 > 500 { print "  " $2 ": " $1 " lines" }')
complain "files over 500 lines:" "$long"

undone=$(files '*.c' '*.h' '*.S' | xargs grep -nE '\b(TODO|FIXME)\b' /dev/null || true)
complain "left undone:" "$undone"

if command -v shellcheck >/dev/null; then
	# shellcheck disable=SC2046
	complain "shellcheck:" "$(shellcheck -f gcc $(files '*.sh') .ci/run || true)"
fi
exit $status
