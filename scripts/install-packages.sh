#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the Debian packages that building, testing and demonstrating dynprobe need. Does nothing if all are installed.
# usage: install-packages.sh [build|all|packages|torture|kernels|peers]     (default: all)
set -eu

build="gcc libc6-dev make cmake ninja-build pkg-config libcapstone-dev libzydis-dev libelf-dev libdw-dev libiberty-dev liblzma-dev
       liblttng-ust-dev liblttng-ctl-dev libjansson-dev liblua5.4-dev libzstd-dev zlib1g-dev uthash-dev libbabeltrace2-dev scdoc"
# clang: second compiler; g++: C++ targets; libc6-dbg: names of inner functions; the rest: what the tests run, probe or read traces with
rest="clang clang-format g++ musl-tools libcriterion-dev python3-minimal python3 libpython3-stdlib python3-jsonschema
      babeltrace2 lttng-tools redis-server nginx-light wrk redis-tools sqlite3 gdb libunwind-dev strace bpftrace
      git libc6-dbg binutils systemtap-sdt-dev dwz libdebuginfod1 chromium-headless-shell fzf ripgrep zstd xz-utils util-linux procps iproute2 shellcheck zsh fish dpkg-dev file"
# to make packages and archives, and to try them in bare systems
packages="dpkg-dev file lintian debootstrap"
# only for the long forms: python's own tests, programs written in Go and Rust, servers
torture="libpython3.11-testsuite golang-go age fd-find fzf ripgrep openssl nodejs default-jdk-headless postgresql apache2 php8.2-fpm mariadb-server"
# to boot other kernels
kernels="qemu-system-x86 busybox-static cpio"
# the tools that bench/run_peers.py compares, those of `rest` among them; not in CI
peers="linux-perf uftrace ltrace gdbserver systemtap"

case "${1:-all}" in
build) wanted=$build ;;
all) wanted="$build $rest" ;;
packages) wanted="$build $packages" ;;
torture) wanted="$build $rest $torture" ;;
kernels) wanted="$build $rest $kernels" ;;
peers) wanted="$build $rest $peers" ;;
*) echo "usage: $0 [build|all|packages|torture|kernels|peers]" >&2; exit 2 ;;
esac

# One call for all packages; it prints a line for each installed one.
# shellcheck disable=SC2086
present=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $wanted 2>/dev/null | sed -n 's/ installed$//p' || true)
missing=
for package in $wanted; do
	case "
$present
" in
	*"
$package
"*) ;;
	*) missing="$missing $package" ;;
	esac
done
[ -n "$missing" ] || exit 0

root=
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null || { echo "$0: please run as root (there is no sudo): apt-get install$missing" >&2; exit 1; }
	root=sudo
fi

# Packages with a service (redis-server, lttng-tools) must not start it: 101 forbids that for the length of this script.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	printf '#!/bin/sh\nexit 101\n' | $root sh -c "cat >$policy && chmod 755 $policy"
	trap '$root rm -f "$policy"' EXIT
	trap 'exit 1' HUP INT TERM
fi

echo "installing:$missing"
apt() { $root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@"; }
log=$(mktemp)
# Try with the package lists as they are; if that fails, update them and try again.
# shellcheck disable=SC2086
if ! apt install -y --no-install-recommends $missing >"$log" 2>&1; then
	apt update >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
	apt install -y --no-install-recommends $missing >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
fi
rm -f "$log"
