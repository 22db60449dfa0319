#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Probes put into a running python3, and taken out: how long it takes, and the longest gap that its own loop sees meanwhile.

run_live.py [--build DIR] [--count N] [--rounds N] [--threads 1|2]    Measure on a quiet machine.
"""
import argparse
import json
import os
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
        print(begin, gap, n, file=out, flush=True)
        begin = last = now()
        gap, n = 0, 0
"""


def functions(path, count):
    """Exported functions of the program, evenly taken."""
    lines = subprocess.run(["nm", "-D", "--defined-only", "-S", path], capture_output=True, text=True, check=True).stdout.splitlines()
    found = sorted({int(f[0], 16) for f in map(str.split, lines) if len(f) == 4 and f[2] == "T" and int(f[1], 16) >= 16})
    return found[:: max(1, len(found) // count)][:count]


def windows(path, begin, end):
    """(gap, loops per second) of the victim's periods that lie in [begin, end)."""
    out = []
    for line in open(path):
        f = line.split()
        if len(f) == 3 and int(f[0]) + 20_000_000 > begin and int(f[0]) < end:
            out.append((int(f[1]), int(f[2]) / 0.02))
    return out


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
        quiet = windows(log, quiet_end - 1_500_000_000, quiet_end)
        steps = {"quiet": quiet, "install": windows(log, at["install"], at["toggle"]), "toggle": windows(log, at["toggle"], at["pace"]), "pace": windows(log, at["pace"], at["gate"]),
                 "remove": windows(log, at["remove"], at["end"])}
        result["gap_us"] = {k: round(max((w[0] for w in v), default=0) / 1e3) for k, v in steps.items()}
        rate = {k: sum(w[1] for w in v) / max(1, len(v)) for k, v in steps.items()}
        for step in "toggle", "pace":
            result[step + "_loss_percent"] = round(100 * (1 - rate[step] / rate["quiet"]), 1)
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
