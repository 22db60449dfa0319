#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Live text and NDJSON to a file, from a program that hits as fast as it can; part of docs/performance.md.

    bench/run_text.py [--build DIR] [--seconds N] [--rounds N] [--dir DIR]

A row has the events kept a second, and the processor time of dynprobe for each; beside it the floor of the same round, the processor
time of writing the same bytes by write(2), and babeltrace2's for an event of a recording of that program.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

CHUNK = 1 << 16
BAR = 2e6


class Flood:
    """The program, which hits until it is left."""

    def __init__(self, build, threads):
        self.process = subprocess.Popen([os.path.join(build, "bench", "flood"), str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = int(self.process.stdout.readline().split()[1])

    def __enter__(self):
        self.process.stdin.write("probed 1000\n")
        self.process.stdin.flush()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def children_cpu():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measured(command):
    """(seconds, processor seconds, standard error) of a command."""
    cpu, at = children_cpu(), time.monotonic()
    p = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=120)
    if p.returncode:
        raise SystemExit(f"{command} failed: {p.stderr}")
    return time.monotonic() - at, children_cpu() - cpu, p.stderr


def write_floor(path, size):
    """Processor seconds of writing `size` bytes. The pages are given back and taken anew, as those of dynprobe's file are."""
    block = b"x" * CHUNK
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(size // CHUNK):
        os.write(fd, block)
    after = resource.getrusage(resource.RUSAGE_SELF)
    os.close(fd)
    os.unlink(path)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def dynprobe(build, pid, seconds, *args):
    return [os.path.join(build, "dynprobe"), "--pid", str(pid), "--function", "probed", "-t", "reg:rdi", "-d", str(seconds), *args]


def live(args, form, threads):
    path = os.path.join(args.dir, "events")
    write_floor(path, args.seconds << 29)  # a virtual machine's memory is slow when it is touched for the first time
    with Flood(args.build, threads) as flood:
        cpu = measured(dynprobe(args.build, flood.pid, args.seconds, "--no-record", "-f", form, "-o", path))[1]
    size = os.path.getsize(path)
    with open(path, "rb") as f:
        events = sum(block.count(b"probed: " if form == "text" else b'"type":"event"') for block in iter(lambda: read_lines(f), b""))
    os.unlink(path)
    floor = write_floor(path, size)
    rate = events / args.seconds
    print(f"{form:<5} {threads} thread{'s' if threads > 1 else ' '}  {rate / 1e6:6.2f} million/s  {cpu / events * 1e9:6.0f} ns of processor time an event"
          f"  write(2) {floor / events * 1e9:5.0f} ns  {size / events:5.0f} bytes  {'meets' if rate >= BAR else 'MISSES'}", flush=True)
    return rate >= BAR


def read_lines(f):
    """Whole lines."""
    return f.read(CHUNK) + f.readline()


def reader(args):
    directory = os.path.join(args.dir, "trace")
    with Flood(args.build, 1) as flood:
        said = measured(dynprobe(args.build, flood.pid, 0.3, "-q", "--record", directory))[2]
    events = int(re.search(r"recorded (\d+)", said)[1])
    cpu = measured(["babeltrace2", directory])[1]
    print(f"babeltrace2's text {events / cpu / 1e6:6.2f} million/s  {cpu / events * 1e9:6.0f} ns of processor time an event ({events} events)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", default="/dev/shm")
    args = parser.parse_args()
    met = True
    with tempfile.TemporaryDirectory(dir=args.dir) as args.dir:
        for _ in range(args.rounds):
            for threads in (1, 4):
                for form in ("text", "json"):
                    met &= live(args, form, threads)
        reader(args)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
