#!/bin/sh
# SPDX-License-Identifier: MIT
# Probes a running server and shows the output. Called by `make demo`; needs the packages of scripts/install-packages.sh.
# usage: demo.sh [DIRECTORY]     (with a finished build; by default builds build/)
set -eu
cd "$(dirname "$0")/.."

# One stream, so that all output stays in order.
exec 2>&1
bold='' green='' plain=''
[ -t 1 ] && bold=$(printf '\033[1m') && green=$(printf '\033[32m') && plain=$(printf '\033[0m')
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
run() {
	printf '%s$' "$green"
	for word; do
		case $word in
		*[!A-Za-z0-9/:._-]*) printf " '%s'" "$word" ;;
		*) printf ' %s' "$word" ;;
		esac
	done
	printf '%s\n' "$plain"
	"$@"
}

bin=${1:-build}
if [ $# -eq 0 ]; then
	say "Building"
	cmake --preset release >/dev/null
	cmake --build build -j "$(nproc)" --target dynprobe demo_server | tail -n 1
fi

work=$(mktemp -d)
server='' daemon=''
finish() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	[ -z "$daemon" ] || kill "$(cat "$daemon")" 2>/dev/null || true
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' HUP INT TERM

# LTTng's sessions, sockets and traces stay in this directory. Root has one session daemon for the whole machine; if it runs, it is used.
export LTTNG_HOME="$work"
if ! lttng --no-sessiond list >/dev/null 2>&1; then
	lttng-sessiond --background --no-kernel --pidfile "$work/sessiond.pid" >/dev/null
	daemon=$work/sessiond.pid
fi

say "A server with four worker threads and three clients is running; it knows nothing of dynprobe"
"$bin/demo/server" 3 20 >"$work/server.out" &
server=$!
until grep -q READY "$work/server.out"; do sleep 0.05; done
cat "$work/server.out"

say "Its next requests, live: the entry of handle_request, with a register and a backtrace"
run "$bin/dynprobe" --pid "$server" --function handle_request -t reg:rdi -t backtrace -n 8 --record "$work/trace"

say "Only some of them: checksum() where its second argument is more than 4"
run "$bin/dynprobe" --pid "$server" --function checksum -t reg:rdi -t reg:rsi --when 'arg1 > 4' -n 4 --no-record

say "The recorded events, as LTTng users view them"
run lttng view -t "$work/trace"

say "The same function as a tracepoint of the server in a session of LTTng: its own filters, contexts and viewers work on it"
run "$bin/dynprobe" --pid "$server" --function handle_request -t reg:rdi -t backtrace:4 --session dynprobe-demo -d 1s
lttng view -t "$work/lttng-traces" >"$work/view"
printf '%s$ lttng view -t %s%s\n' "$green" "$work/lttng-traces" "$plain"
head -n 6 "$work/view"
printf '... (%s events)\n' "$(wc -l <"$work/view")"

say "The server never noticed"
kill "$server"
wait "$server" || true
server=
grep RESULT "$work/server.out"
