#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How fast `dynprobe view` reads a recorded trace, beside babeltrace2 and cat on the same trace in the same run.

run_view.py [--build DIR] [--rounds N] [--seconds S]    One field of 64 bits, and the same with a backtrace. Measure on a quiet machine.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

READERS = {
    "cat": lambda d, t: f"cat {t}/events_*",
    "view": lambda d, t: f"{d} view {t}",
    "view -f json": lambda d, t: f"{d} view {t} -f json",
    "view --count --by": lambda d, t: f"{d} view {t} --count --by '$rdi % 10'",
    "view --when (false)": lambda d, t: f"{d} view {t} --when '$rdi == 0 && tid == 0'",
    "view --last 100ms": lambda d, t: f"{d} view {t} --last 100ms",
    "babeltrace2": lambda d, t: f"babeltrace2 {t}",
}


def record(dynprobe, program, trace, contexts, seconds):
    """Records the program for that long; returns the number of events."""
    flood = subprocess.Popen([program, "2"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        argv = [dynprobe, "-q", "--pid", str(flood.pid), "--function", "probed", *contexts, "--buffer-size", "16M", "--max-memory", "256M", "--record", trace, "-d", str(seconds)]
        tool = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
        flood.stdin.write(f"probed {seconds + 1}\n")
        flood.stdin.flush()
        err = tool.communicate(timeout=60)[1]
    finally:
        flood.kill()
        flood.wait()
    found = re.search(r"recorded (\d+)", err)
    if tool.returncode or not found:
        sys.exit(err)
    return int(found[1])


def timed(command, out):
    began = time.monotonic()
    subprocess.run(f"exec {command} >{out}", shell=True, check=True, stderr=subprocess.DEVNULL, timeout=300)
    return time.monotonic() - began


def measure(dynprobe, trace, events, rounds, out):
    seconds = {name: [] for name in READERS}
    for _ in range(rounds):
        for name, command in READERS.items():
            seconds[name].append(timed(command(dynprobe, trace), out))
    rate = {name: events / statistics.median(s) / 1e6 for name, s in seconds.items()}
    for name, r in rate.items():
        print(f"  {name:22} {r:9.2f} million events/s   {r / rate['babeltrace2']:7.1f} x babeltrace2")
    return rate["view"] / rate["babeltrace2"]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--build", default="build")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.3)
    p.add_argument("--bar", type=float, default=5)
    args = p.parse_args()
    dynprobe, program = os.path.join(args.build, "dynprobe"), os.path.join(args.build, "bench", "flood")
    if not shutil.which("babeltrace2"):
        sys.exit("babeltrace2 is not installed")
    ok = True
    with tempfile.TemporaryDirectory() as work:
        for what, contexts in (("one field of 64 bits", ("-t", "reg:rdi")), ("the same, and a backtrace", ("-t", "reg:rdi", "-t", "backtrace"))):
            trace = os.path.join(work, contexts[-1].split(":")[0])
            events = record(dynprobe, program, trace, contexts, args.seconds)
            size = sum(os.path.getsize(os.path.join(trace, f)) for f in os.listdir(trace))
            print(f"{what}: {events} events, {size / events:.1f} bytes each")
            ratio = measure(dynprobe, trace, events, args.rounds, os.path.join(work, "out"))
            print(f"  bar: {args.bar:g} x babeltrace2; {'meets' if ratio >= args.bar else 'misses'} ({ratio:.1f})")
            ok &= ratio >= args.bar
    sys.exit(not ok)


if __name__ == "__main__":
    main()
