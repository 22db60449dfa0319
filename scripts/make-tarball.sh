#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes build/packages/dynprobe-VERSION-Linux-x86_64.tar.gz, which runs where glibc is that of Debian 11 or later (cmake/portable.cmake).
# usage: make-tarball.sh     Status 77, with the reason: Debian 11's C library cannot be had.
set -eu
cd "$(dirname "$0")/.."
limit=2.31
build="build-portable"
mkdir -p $build/glibc
suites_dir=$(cd $build && pwd)/suites
# shellcheck source=scripts/suites.sh
. scripts/suites.sh

glibc=$build/glibc/$limit
if [ ! -e "$glibc/complete" ]; then
	rm -rf "$glibc" $build/glibc/*.deb
	update bullseye || { echo "skipped: apt's archive does not have Debian 11"; exit 77; }
	(cd $build/glibc && apt_in bullseye apt-get -o Dir::State::status=/dev/null download libc6 libc6-dev) || { echo "skipped: cannot fetch libc6-dev of Debian 11"; exit 77; }
	for package in "$build"/glibc/*.deb; do dpkg-deb -x "$package" "$glibc"; done
	# absolute links would lead to this machine's own library
	find "$glibc" -lname '/*' -printf '%p %l\n' | while read -r link to; do ln -sfr "$glibc$to" "$link"; done
	# the numbers of system calls are the kernel's
	cp /usr/include/x86_64-linux-gnu/bits/syscall.h "$glibc/usr/include/x86_64-linux-gnu/bits/"
	touch "$glibc/complete"
fi

sh scripts/build-quietly.sh portable -DDP_GLIBC="$PWD/$glibc"
rm -rf $build/install
cmake --install $build --prefix $build/install >/dev/null
needed=$(objdump -T $build/install/bin/dynprobe $build/install/lib/*.so* | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -n 1)
if [ "$(printf '%s\n' "$needed" $limit | sort -V | tail -n 1)" != $limit ]; then
	echo "dynprobe needs glibc $needed, not $limit" >&2
	exit 1
fi
cpack --config $build/CPackConfig.cmake -G TGZ -B build/packages >$build/cpack.log || { cat $build/cpack.log; exit 1; }
echo "$(ls build/packages/dynprobe-*.tar.gz): glibc $needed or later"
