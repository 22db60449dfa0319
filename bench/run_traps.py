#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The cost of a hit of a trap, beside a bare int3 and an empty SIGTRAP handler in the same run.

    bench/run_traps.py [--build DIR] [--rounds N]
"""

import argparse
import os
import signal
import statistics
import subprocess
import time


def start(build, kind):
    p = subprocess.Popen([os.path.join(build, "bench", "traps"), kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    p.stdout.readline()
    return p


def ask(p):
    p.stdin.write("\n")
    p.stdin.flush()
    return float(p.stdout.readline())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=60)
    args = parser.parse_args()
    bare, probed = start(args.build, "bare"), start(args.build, "probed")
    tool = subprocess.Popen([os.path.join(args.build, "dynprobe"), "--pid", str(probed.pid), "--tactic", "trap", "--function", "trapped",
                             "-q", "--no-record", "-f", "json", "-o", os.devnull], stderr=subprocess.PIPE, text=True)
    time.sleep(2)
    if tool.poll() is not None:
        raise SystemExit(tool.stderr.read())
    pairs = []
    for _ in range(args.rounds):  # in turns: both run at the same clock speed and beside the same load
        pairs.append((ask(probed), ask(bare)))
    tool.send_signal(signal.SIGINT)
    tool.wait()
    for p in (bare, probed):
        p.stdin.close()
        p.wait()
    ratio = statistics.median(p / b for p, b in pairs)
    print(f"trap, recorded: {statistics.median(p for p, _ in pairs):.0f} ns; bare int3 and SIGTRAP: "
          f"{statistics.median(b for _, b in pairs):.0f} ns; ratio {ratio:.3f}  {'meets' if ratio <= 1.1 else 'MISSES'} <= 1.1")


main()
