#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attaching to busy programs: the time until probes are installed and removed, and the gaps in a thread of the program.

run_busy.py [--build DIR] [--rounds N] [--rows NAME,...]

Each row: milliseconds until armed (from the summary) and from Ctrl-C to dynprobe's end; the pauses in the summary; and for a thread that
never sleeps the longest gap, the number of gaps over 1 ms and their sum, during installation, during removal, and in the 0.9 s before
(quiet).
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import time

SPINNER = "while True: pass"
# name: (sleeping threads, processors of the program, processors of dynprobe, other programs that spin)
ROWS = {
    "asleep": (None, None, None, 0),
    "5 threads": (4, None, None, 0),
    "5 threads on another cpu": (4, "1", "0", 0),
    "5 threads on one cpu": (4, "0", "0", 0),
    "5 threads beside 4 spinners": (4, None, None, 4),
    "500 threads": (500, None, None, 0),
    "1000 threads": (1000, None, None, 0),
    "2000 threads": (2000, None, None, 0),
}


def pinned(cpus, argv):
    return ["taskset", "-c", cpus, *argv] if cpus else argv


def start(build, sleepers, cpus):
    program = ["sleep", "1000"] if sleepers is None else [os.path.join(build, "tests", "targets", "throng"), str(sleepers)]
    p = subprocess.Popen(pinned(cpus, program), stdout=subprocess.PIPE, text=True)
    if sleepers is not None:
        p.stdout.readline()
    else:
        time.sleep(0.1)
    return p


def probe(build, pid, sleepers, cpus, seconds):
    """(begin, interrupt, end: monotonic ns; the summary; the exit status)."""
    function = "foo" if sleepers is not None else "libc.so.6!malloc"
    argv = pinned(cpus, [os.path.join(build, "dynprobe"), "--pid", str(pid), "--function", function, "--count", "--no-record", "-f", "json"])
    begin = time.monotonic_ns()
    t = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    time.sleep(seconds)
    interrupt = time.monotonic_ns()
    t.send_signal(signal.SIGINT)
    said = t.communicate(timeout=60)[0]
    lines = [json.loads(line) for line in said.splitlines() if line.startswith('{"type":"summary"')]
    return begin, interrupt, time.monotonic_ns(), lines[0] if lines else {"said": said}, t.returncode


def gaps_in(gaps, begin, end):
    found = [n for at, n in gaps if at + n > begin and at < end]
    long = [n for n in found if n > 1_000_000]
    return {"longest_ms": round(max(found, default=0) / 1e6, 2), "over_1ms": len(long), "sum_ms": round(sum(long) / 1e6, 1)}


def once(build, row, seconds):
    sleepers, cpus, tool_cpus, spinners = ROWS[row]
    others = [subprocess.Popen([sys.executable, "-S", "-c", SPINNER]) for _ in range(spinners)]
    victim = start(build, sleepers, cpus)
    try:
        time.sleep(1)
        begin, interrupt, end, summary, status = probe(build, victim.pid, sleepers, tool_cpus, seconds)
        time.sleep(0.1)
    finally:
        victim.terminate()
        rest = victim.communicate()[0]
        for o in others:
            o.kill()
            o.wait()
    gaps = [tuple(map(int, l.split()[1:])) for l in rest.splitlines() if l.startswith("gap ")]
    ms = lambda ns: None if ns is None else round(ns / 1e6, 2)
    return {"row": row, "status": status, "armed_ms": ms(summary.get("attach_ns")), "out_ms": ms(end - interrupt),
            "pause_attach_ms": ms(summary.get("pause_attach_ns")), "pause_detach_ms": ms(summary.get("pause_detach_ns")),
            "frozen": summary.get("frozen_attach") or summary.get("said"), "attach": gaps_in(gaps, begin, interrupt),
            "detach": gaps_in(gaps, interrupt, end), "quiet": gaps_in(gaps, begin - 900_000_000, begin)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=2, help="from dynprobe's start to Ctrl-C")
    p.add_argument("--rows", default=",".join(ROWS))
    a = p.parse_args()
    for row in a.rows.split(","):
        for _ in range(a.rounds):
            print(json.dumps(once(a.build, row, a.seconds)), flush=True)


main()
