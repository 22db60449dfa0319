#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Events kept of threads that hit as fast as they can, beside a compiled-in tracepoint of LTTng in the same program and run; part of
docs/performance.md.

    bench/run_record.py [--build DIR] [--rounds N] [--seconds N] [--where DIR]        (as root: it makes a private LTTng, like the tests)

dynprobe and LTTng take turns. Both write to disk with their default buffers and drop what they cannot keep. The floor is the time that the
same number of bytes takes in plain writes of the same file system.
"""

import argparse
import glob
import os
import re
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "e2e"))
import lttng_env  # noqa: E402
from run import row, rows  # noqa: E402

BLOCK = 256 << 10
LTTNG_HEADER, LTTNG_EVENT = 84, 14  # bytes of a packet's header, and of an event: id, time of 32 bits, field


class Flood:
    """The program, and how many calls its threads make in a given time."""

    def __init__(self, build, threads, env):
        self.process = subprocess.Popen([os.path.join(build, "bench", "flood"), str(threads)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = int(self.process.stdout.readline().split()[1])
        time.sleep(0.5)

    def run(self, what, seconds):
        self.process.stdin.write(f"{what} {seconds}\n")
        self.process.stdin.flush()
        calls, took = self.process.stdout.readline().split()
        return int(calls), float(took)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def emptied(directory):
    subprocess.run(["rm", "-rf", directory], check=True)
    return directory


def by_dynprobe(build, flood, seconds, trace):
    """(events kept per second, bytes of each, share of the calls)"""
    p = subprocess.Popen([os.path.join(build, "dynprobe"), "--pid", str(flood.pid), "-q", "--sink", "ring", "--function", "probed", "-t", "reg:rdi",
                          "--record", emptied(trace)], stderr=subprocess.PIPE, text=True)
    while p.poll() is None and not os.path.exists(os.path.join(trace, "metadata")):
        time.sleep(0.01)
    time.sleep(0.5)
    calls, took = flood.run("probed", seconds)
    p.send_signal(signal.SIGINT)
    err = p.communicate()[1]
    found = re.search(r"hits +(\d+) +recorded (\d+)", err)
    if not found or int(found[1]) != calls:
        raise SystemExit(f"{calls} calls, but dynprobe says: {err}")
    return int(found[2]) / took, sum(map(os.path.getsize, glob.glob(trace + "/events_*"))) / int(found[2]), int(found[2]) / calls


def kept_by_lttng(path):
    """The events in a stream of the tracepoint's, by the contents of its packets. (The session's own count of discarded events has been negative.)"""
    n = 0
    with open(path, "rb") as f:
        while header := f.read(LTTNG_HEADER):
            content, size = struct.unpack_from("<QQ", header, 48)
            n += (content // 8 - LTTNG_HEADER) // LTTNG_EVENT
            f.seek(size // 8 - LTTNG_HEADER, os.SEEK_CUR)
    return n


def by_lttng(env, flood, seconds, trace):
    def lttng(*args):
        return subprocess.run(["lttng", "-n", *args], env=env, check=True, capture_output=True, text=True).stdout

    lttng("create", "flood", "--output", emptied(trace))
    lttng("enable-channel", "-u", "-s", "flood", "c")
    lttng("enable-event", "-u", "-s", "flood", "-c", "c", "bench:wanted")
    lttng("start", "flood")
    time.sleep(0.3)
    calls, took = flood.run("wanted", seconds)
    lttng("stop", "flood")
    lttng("destroy", "flood")
    streams = [f for f in glob.glob(trace + "/**/c_*", recursive=True) if not f.endswith(".idx")]
    kept = sum(map(kept_by_lttng, streams))
    return kept / took, sum(map(os.path.getsize, streams)) / kept, kept / calls


def floor(directory, size):
    """Seconds that plain writes of so many bytes take."""
    block, path = bytes(BLOCK), os.path.join(directory, "floor")
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    start = time.monotonic()
    for _ in range(int(size) // BLOCK):
        os.write(fd, block)
    took = time.monotonic() - start
    os.close(fd)
    os.unlink(path)
    return took


def bench(build, env, directory, threads, args):
    flood = Flood(build, threads, env)
    ours, theirs, floors = [], [], []
    for _ in range(args.rounds):
        ours.append(by_dynprobe(build, flood, args.seconds, os.path.join(directory, "ours")))
        kept = ours[-1][0] * args.seconds
        floors.append(kept / floor(directory, kept * ours[-1][1]))
        theirs.append(by_lttng(env, flood, args.seconds, os.path.join(directory, "theirs")))
    flood.close()
    return [[statistics.median(x) for x in zip(*them)] for them in (ours, theirs)] + [statistics.median(floors)]


def bench_threads(build, env, directory, threads, bar, args):
    (kept, size, share), (reference, their_size, their_share), plain = bench(build, env, directory, threads, args)
    what = f"{threads} thread{'s' if threads > 1 else ''}"
    row(f"events kept, {what} at full rate", f"{kept / 1e6:.1f} M/s", f"LTTng {reference / 1e6:.1f}", f"{kept / reference:.2f}",
        f">= {bar} M/s, or 1.3 x LTTng", kept >= bar * 1e6 or kept >= 1.3 * reference)
    print(f"    of the calls: {100 * share:.0f} %, LTTng {100 * their_share:.0f} %; the bytes alone, in plain writes: {plain / 1e6:.0f} M/s")
    row(f"bytes an event, one 64-bit field, {what}", f"{size:.2f}", f"LTTng {their_size:.2f}", f"{size / their_size:.2f}", "<= 14", size <= 14)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--where", help="a directory for the traces")
    parser.add_argument("--threads", default="1,4")
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    with tempfile.TemporaryDirectory(dir=args.where) as directory:
        env = dict(os.environ, HOME=directory, LTTNG_HOME=directory)
        daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while subprocess.run(["lttng", "-n", "list"], env=env, capture_output=True).returncode:
            time.sleep(0.05)
        print(f"{'what':<46} {'value':>12} {'reference':>14} {'ratio':>8}  {'bar':<24} verdict")
        for threads in map(int, args.threads.split(",")):
            bench_threads(build, env, directory, threads, 10 if threads == 1 else 15, args)
        daemon.terminate()
        daemon.wait()
    return 0 if all(rows) else 1


if __name__ == "__main__":
    lttng_env.isolate()
    sys.exit(main())
