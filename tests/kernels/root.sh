#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes the small system that check-kernels.sh boots: an archive of this machine's own files, with dynprobe, its tests and what they run.
# usage: root.sh BUILD ARCHIVE
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
archive=$2
export PATH=/usr/sbin:/usr/bin:/sbin:/bin # Debian's programs, whatever else is installed

usr_lib=/usr/lib/$(gcc -print-multiarch)

# Programs that the tests run; all others are busybox's (see init). Files that they read or load by name, which ldd does not list.
programs="busybox sh sleep true bash python3 nm readelf objdump unshare mount umount ip setpriv env lttng lttng-sessiond lttng-relayd babeltrace2"
folders="$usr_lib/babeltrace2/plugins $usr_lib/lttng/libexec $usr_lib/gconv /usr/share/xml/lttng"
libraries="liblttng-ust liblttng-ctl libbabeltrace2 libgcc_s"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
root=$work/root

copy() { # copy FILE...: to the same place, and what links lead to
	for file; do
		mkdir -p "$root${file%/*}"
		cp -P "$file" "$root$file"
		[ ! -L "$file" ] || copy "$(readlink -f "$file")"
	done
}

mkdir -p "$root/var"
for dir in bin sbin lib lib64; do
	mkdir -p "$root/usr/$dir"
	ln -s "usr/$dir" "$root/$dir"
done
for dir in proc sys dev tmp run etc root home; do mkdir "$root/$dir"; done
chmod 1777 "$root/tmp"
ln -s ../run "$root/var/run"

for name in $programs; do
	if [ -x "/usr/bin/$name" ]; then copy "/usr/bin/$name"; else copy "/usr/sbin/$name"; fi
done
for name in $folders; do
	mkdir -p "$root$name"
	cp -rL "$name/." "$root$name"
done
for name in $libraries; do
	copy "$usr_lib/$name"*.so.*
done
python=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
mkdir -p "$root$python"
tar -C "$python" --exclude=test --exclude=tests --exclude=idlelib --exclude=lib2to3 --exclude=ensurepip --exclude=pydoc_data \
	--exclude=dist-packages --exclude=site-packages --exclude='config-*' -c . | tar -C "$root$python" -x

# At the same paths as here, because they refer to each other by path.
copy "$build/dynprobe" "$build/agent/agent.so" "$build/agent/lttng/libdynprobe-lttng.so" "$build/demo/server"
copy "$build"/tests/agent_test_* "$build"/tests/injector_test_* "$build"/tests/trampoline_test_* "$build"/tests/sinkhost/lttng_test_*
strip --strip-debug "$root$build"/tests/*_test_* "$root$build"/tests/sinkhost/*
mkdir -p "$root$source/tests"
cp -r "$build/tests/targets" "$root$build/tests/"
rm -rf "$root$build/tests/targets/CMakeFiles"
cp -r "$source/tests/e2e" "$source/tests/kernels" "$root$source/tests/"
install -m 755 "$source/tests/kernels/init" "$root/init"
printf 'SOURCE=%s\nBUILD=%s\n' "$source" "$build" >"$root/etc/kernels"

# The libraries of all of them.
find "$root" -type f \( -perm -u+x -o -name '*.so*' \) -exec ldd {} + 2>/dev/null |
	sed -n 's/^[^/]*\(\/[^ :]*\) (0x.*/\1/p' | sort -u |
	while read -r file; do [ -e "$root$file" ] || copy "$file"; done

# Names of the C library's inner functions (libc6-dbg).
for file in "$root$usr_lib/libc.so.6" "$root$usr_lib/ld-linux-x86-64.so.2"; do
	id=$(readelf -n "$file" | sed -n 's/.*Build ID: //p')
	copy "/usr/lib/debug/.build-id/$(echo "$id" | cut -c1-2)/$(echo "$id" | cut -c3-).debug"
done

cp /etc/passwd /etc/group /etc/ld.so.conf "$root/etc/"
cp -r /etc/ld.so.conf.d "$root/etc/"
printf 'passwd: files\ngroup: files\n' >"$root/etc/nsswitch.conf"
echo '127.0.0.1 localhost kernels' >"$root/etc/hosts"
ldconfig -X -r "$root"

(cd "$root" && find . | cpio -o -H newc --quiet) >"$archive.new"
mv "$archive.new" "$archive"
