#!/bin/sh
# SPDX-License-Identifier: MIT
# The house rules that a script can check: order of includes, licences, sizes, names in docs/, shell scripts.
set -eu
cd "$(dirname "$0")/.."

files() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [ -e "$f" ] && echo "$f"; done; }
includes() { files '*.c' '*.h' '*.S' | xargs grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' /dev/null; }
status=0
complain() { # complain TITLE LINES
	[ -n "$2" ] || return 0
	printf '%s\n%s\n' "$1" "$2" >&2
	status=1
}

# The floors, lowest first. A folder may include its own headers and those of the folders before it.
upward=$(includes | awk -F: '
	BEGIN { n = split("base agent probes trampoline injector pmodules output session cli", name, " "); for (i = 1; i <= n; i++) floor[name[i]] = i }
	{
		split($1, from, "/"); split($3, quoted, "\""); split(quoted[2], to, "/")
		if ((from[1] in floor) && (to[1] in floor) && floor[to[1]] > floor[from[1]])
			print "  " $1 ":" $2 " includes " quoted[2]
	}')
complain "includes that run upward (docs/decisions/0001):" "$upward"

# Within a room: scripts/layers.txt has the order of its folders.
against=$(includes | awk -F: '
	function folder(path, room) { sub("^" room "/?", "", path); sub("/?[^/]*$", "", path); return path == "" ? "." : path }
	FILENAME == "scripts/layers.txt" { if ($0 !~ /^#/) { n = split($0, f, " "); for (i = 2; i <= n; i++) rank[f[1], f[i]] = i } next }
	{
		split($1, from, "/"); split($3, quoted, "\""); split(quoted[2], to, "/"); room = from[1]
		if (to[1] != room || quoted[2] == room "/" room ".h" || $1 == room "/" room ".h") next
		mine = folder($1, room); other = folder(quoted[2], room)
		if (((room, mine) in rank) && ((room, other) in rank) && rank[room, other] > rank[room, mine]) print "  " $1 ":" $2 " includes " quoted[2]
	}' scripts/layers.txt -)
complain "includes that run against the order of a room's folders (scripts/layers.txt):" "$against"

# Across rooms: scripts/public.txt lists the headers that a room's users may include; all of base/ is public. That list should only get shorter.
public=$(includes | awk -F: '
	BEGIN { n = split("base agent probes trampoline injector pmodules output session cli", name, " "); for (i = 1; i <= n; i++) room[name[i]] }
	{
		split($1, from, "/"); split($3, quoted, "\""); split(quoted[2], to, "/")
		if ((from[1] in room) && (to[1] in room) && to[1] != from[1] && to[1] != "base") print quoted[2]
	}' | LC_ALL=C sort -u)
complain "headers that another room includes but scripts/public.txt does not list, or that are listed and not included any more:" \
	"$(echo "$public" | diff scripts/public.txt - | sed -n 's/^>/  new:/p; s/^</  gone:/p')"

crowded=$(files '*.c' '*.h' '*.S' | grep -E '^(base|agent|probes|trampoline|injector|pmodules|output|session|cli)/' | sed 's/\.[a-zS]*$//' | sort -u |
	awk '{ folder = $0; sub("/[^/]*$", "", folder); n[folder]++ } END { for (f in n) if (n[f] > 15) print "  " f ": " n[f] }')
complain "more than 15 files (NAME.c and NAME.h are one) in a folder:" "$crowded"

# A struct tag that begins with dp_, or is in a header, must have one meaning in all rooms.
twice=$(files 'base/*.[ch]' 'agent/*.[ch]' 'probes/*.[ch]' 'trampoline/*.[ch]' 'injector/*.[ch]' 'pmodules/*.[ch]' 'output/*.[ch]' 'session/*.[ch]' 'cli/*.[ch]' |
	xargs grep -HoE '\b(struct|union|enum) [a-z0-9_]+ \{' | awk -F'[: ]' '
	{ n[$3]++; where[$3] = where[$3] " " $1; if ($3 ~ /^dp_/ || $1 ~ /h$/) shared[$3] }
	END { for (tag in n) if (n[tag] > 1 && (tag in shared)) print "  " tag ":" where[tag] }')
complain "tags that are defined twice:" "$twice"

unlicensed=$(files '*.c' '*.h' '*.S' '*.def' '*.lds' '*.py' '*.sh' '*.cmake' '*CMakeLists.txt' 'Makefile' '.ci/run' |
	xargs awk 'FNR == 1 { file[++n] = FILENAME } FNR <= 3 && /SPDX-License-Identifier: MIT/ { has[FILENAME] }
		END { for (i = 1; i <= n; i++) if (!(file[i] in has)) print "  " file[i] }')
complain "no SPDX licence line among the first three:" "$unlicensed"

long=$(files '*.c' '*.h' '*.S' | xargs wc -l | awk '$2 != "total" && $1 > 500 { print "  " $2 ": " $1 " lines" }')
complain "files over 500 lines:" "$long"

undone=$(files '*.c' '*.h' '*.S' | xargs grep -nE '\b(TODO|FIXME)\b' /dev/null || true)
complain "left undone:" "$undone"

# Each tag needs a test that names it; this one has none yet (huge pages would have to be reserved). Files that only use a tag as an example do not count.
known='DP-HUGETLBFS'
untested=$(git grep --untracked -ohE 'DP[-_][A-Z0-9_-]+' -- tests ':!tests/unit/base' ':!tests/unit/output' ':!tests/e2e/test_explain.py' |
	awk '
	NR == FNR { sub(/[_-]+$/, ""); gsub("-", "_"); named[$0]; next }
	match($0, /^DP_TAG\([A-Z0-9_]+, "DP-[A-Z0-9-]+"/) {
		split($0, part, /[(,"]+ ?"?/); id = part[2]; name = part[3]; with = name; gsub("-", "_", with)
		if (!((with in named) || (("DP_TAG_" id) in named))) print name
	}' - base/tags.def)
complain "tags of base/tags.def that no test names, or that one names by now (then take them off the list in this script):" \
	"$(for tag in $untested $known; do echo "  $tag"; done | sort | uniq -u)"

complain "names in docs/ of tests, files and functions that do not exist:" "$(python3 -B scripts/check-names.py 2>&1 || true)"
complain "the picture of the rooms:" "$(python3 -B scripts/draw-rooms.py --check 2>&1 || true)"

if command -v shellcheck >/dev/null; then
	# shellcheck disable=SC2046
	complain "shellcheck:" "$(shellcheck -f gcc $(files '*.sh') .ci/run || true)"
fi
exit $status
