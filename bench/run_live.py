#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Installs probes in a running python3 and removes them: the time that this takes, and the longest gap in python3's own loop.

run_live.py [--build DIR] [--count N] [--rounds N] [--threads 1|2]    Measure on a quiet machine.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

VICTIM = """
import sys, threading, time
if sys.argv[2] == "2":  # a second thread, that waits for something, as nearly every server has
    lock = threading.Lock()
    lock.acquire()
    threading.Thread(target=lock.acquire, daemon=True).start()
now, out = time.monotonic_ns, open(sys.argv[1], "w")
begin = last = now()
gap, n = 0, 0
while True:
    at = now()
    gap = max(gap, at - last)
    last = at
    n += 1
    if at - begin > 20_000_000:
        print(begin, at, gap, n, file=out, flush=True)
        begin = last = now()
        gap, n = 0, 0
"""


def functions(path, count):
    """Exported functions of the program, evenly chosen."""
    lines = subprocess.run(["nm", "-D", "--defined-only", "-S", path], capture_output=True, text=True, check=True).stdout.splitlines()
    found = sorted({int(f[0], 16) for f in map(str.split, lines) if len(f) == 4 and f[2] == "T" and int(f[1], 16) >= 16})
    return found[:: max(1, len(found) // count)][:count]


def windows(path, begin, end):
    """The longest gap that touches [begin, end) in us, and the median of loops per second over the periods within."""
    periods = [tuple(map(int, line.split())) for line in open(path) if line.count(" ") == 3 and line.endswith("\n")]
    gaps = [gap for f, t, gap, _ in periods if t > begin and f < end]
    rates = [n / (t - f) * 1e9 for f, t, _, n in periods if f >= begin and t < end]
    return round(max(gaps, default=0) / 1e3), statistics.median(rates) if rates else 0


def once(build, python, sites, threads):
    with tempfile.TemporaryDirectory() as work:
        log = os.path.join(work, "log")
        victim = subprocess.Popen([python, "-S", "-c", VICTIM, log, str(threads)])
        try:
            time.sleep(2)
            quiet_end = time.monotonic_ns()
            r = subprocess.run([os.path.join(build, "bench", "live"), "--pid", str(victim.pid)],
                               input="\n".join(hex(s) for s in sites), capture_output=True, text=True, timeout=120)
            if r.returncode:
                sys.exit(r.stderr)
            time.sleep(0.2)
        finally:
            victim.kill()
            victim.wait()
        lines = [json.loads(line) for line in r.stdout.splitlines()]
        at = {line["step"]: line["at"] for line in lines if "step" in line}
        result = lines[-1]
        order = ["install", "still", "toggle", "pace", "stop", "gate", "gate_pace", "remove", "end"]
        steps = {"quiet": windows(log, quiet_end - 1_500_000_000, quiet_end)} | {a: windows(log, at[a], at[b]) for a, b in zip(order, order[1:])}
        result["gap_us"] = {k: v[0] for k, v in steps.items()}
        result["probed_loss_percent"] = round(100 * (1 - steps["still"][1] / steps["quiet"][1]), 1)
        for step in "toggle", "pace", "stop", "gate", "gate_pace":  # compared with the same program and probes without changes
            result[step + "_loss_percent"] = round(100 * (1 - steps[step][1] / steps["still"][1]), 1)
        return result


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--build", default="build")
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, choices=(1, 2), default=1, help="of the program")
    a = p.parse_args()
    python = os.path.realpath("/usr/bin/python3")
    sites = functions(python, a.count)
    for _ in range(a.rounds):
        print(json.dumps(once(a.build, python, sites, a.threads)))


main()
