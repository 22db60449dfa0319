#!/bin/sh
# SPDX-License-Identifier: MIT
# Boots Debian's kernels, and one kernel on several processor models, in an emulated machine without acceleration. In each it runs the smoke
# suite of tests/kernels with the dynprobe of BUILD. Prints what passed; writes the table of docs/kernels.md to BUILD/kernels/table.md.
# usage: check-kernels.sh [-b BUILD] [-o TOPICS,TESTS] [NAME...]
#   NAME: a kernel's series (6.1), a processor's model (Haswell), or "here" (no emulated machine). Default: all.
#   -o:   run only these topics of smoke.py, or end-to-end tests by name: attach,test_live.Live.test_beside_probes_that_stay
set -eu
cd "$(dirname "$0")/.."

build=build only=
kernel_of_models=6.1 # the kernel of this Debian release
# No XSAVE; no AVX; AVX; AVX2. The kernels themselves run on "max", with all that the emulator has.
models="qemu64 Nehalem SandyBridge Haswell"
slow=10    # factor for the tests' time limits
limit=5400 # seconds for each machine

while getopts b:o: option; do
	case "$option" in
	b) build=$OPTARG ;;
	o) only=$OPTARG ;;
	*) sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2 ;;
	esac
done
shift $((OPTIND - 1))
build=$(cd "$build" && pwd)
dir=$build/kernels
mkdir -p "$dir"
failed=0
names=

asked=$*

wanted() { # wanted NAME
	case " ${asked:-$1} " in
	*" $1 "*) return 0 ;;
	esac
	return 1
}

# One machine at a time, with two processors and little memory, at low priority.
boot() { # boot NAME VMLINUZ MODEL
	nice -n 10 timeout "$limit" qemu-system-x86_64 -machine q35 -accel tcg,thread=multi -cpu "$3" -smp 2 -m 2G -nodefaults -display none -nic none \
		-no-reboot -kernel "$2" -initrd "$dir/root.cpio" -serial "file:$dir/$1.console" -serial "file:$dir/$1.results" \
		-append "console=ttyS0 panic=-1 SLOW=$slow ONLY=\"$only\"" 2>"$dir/$1.qemu" || echo "qemu ended with status $?" >>"$dir/$1.qemu"
}

# Complaints of the kernel are failures as well.
complaints='BUG:|Oops|WARNING:|Kernel panic|soft lockup|detected stall|general protection fault, probably'

report() { # report NAME
	names="$names $1"
	if ! grep -qE '^[0-9]+ passed, 0 failed' "$dir/$1.results" || grep -nE "$complaints" "$dir/$1.console" 2>/dev/null; then
		failed=$((failed + 1))
	fi
	grep -E '^(FAIL|late) ' "$dir/$1.results" || true
	grep -E '^[0-9]+ passed, ' "$dir/$1.results" || echo "the suite did not finish: see $dir/$1.console and $1.results"
}

try() { # try NAME VMLINUZ MODEL
	echo "== $1"
	rm -f "$dir/$1.results" "$dir/$1.console"
	boot "$@"
	report "$1"
}

sh tests/kernels/root.sh "$build" "$dir/root.cpio"
sh tests/kernels/fetch.sh list "$dir"

if wanted here; then
	echo "== here"
	DYNPROBE=$build/dynprobe UNITS=$build/tests TARGETS=$build/tests/targets ONLY=$only python3 -B tests/kernels/smoke.py >"$dir/here.results" 2>&1 || true
	report here
fi
for series in $(cut -d' ' -f1 "$dir/list" | uniq); do
	wanted "$series" || continue
	if sh tests/kernels/fetch.sh get "$dir" "$series"; then
		try "$series" "$dir/$series/vmlinuz" max
	else
		echo "== $series: skipped, its package could not be fetched"
	fi
done
for model in $models; do
	wanted "$model" || continue
	if sh tests/kernels/fetch.sh get "$dir" "$kernel_of_models"; then
		try "$model" "$dir/$kernel_of_models/vmlinuz" "$model"
	else
		echo "== $model: skipped, there is no kernel $kernel_of_models"
	fi
done
for name in $asked; do
	case " $names " in
	*" $name "*) ;;
	*) echo "== $name: skipped, neither a kernel that the archive has nor one of these models: $models" ;;
	esac
done

# shellcheck disable=SC2086
python3 -B tests/kernels/table.py "$dir" $names | tee "$dir/table.md"
[ "$failed" -eq 0 ]
