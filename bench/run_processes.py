#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs of many processes: hits in fork children, fork() of a large process, many processes armed at once.

    bench/run_processes.py [--build DIR] [--only hit,fork,armed] [--rounds N]

Needs root. What is compared alternates, so that both meet the same load.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

MANY = 200
IDLE = "#include <unistd.h>\n__attribute__((noipa)) int foo(int a) { return a + 1; }\nint main(void) { for (;; sleep(1000)) foo(0); }\n"
ok = []


def verdict(good, bar):
    ok.append(good)
    return f"{'meets' if good else 'MISSES'} {bar}"


class Forks:
    def __init__(self, *args):
        self.process = subprocess.Popen([os.path.join(options.build, "bench", "forks"), *args], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def measure(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return [float(word) for word in self.process.stdout.readline().split()]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def mapped(pid):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/status") as status:
        return "dynprobe" in maps.read() and "TracerPid:\t0" in status.read()


class Probing:
    def __init__(self, *args, pid=None):
        self.events = tempfile.NamedTemporaryFile()
        self.process = subprocess.Popen([os.path.join(options.build, "dynprobe"), "--no-record", "-f", "json", "-o", self.events.name,
                                         "--sink", "ring", *(() if "--function" in args else ("--function", "foo")), *args],
                                        stderr=subprocess.DEVNULL)
        while pid and self.process.poll() is None and not mapped(pid):
            time.sleep(0.02)
        time.sleep(0.2)

    def end(self):
        """The summary."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        with self.events as f:
            last = json.loads(f.readlines()[-1])
        if last["type"] != "summary":
            raise SystemExit("dynprobe failed")
        return last


def bench_hit():
    program = Forks("hit")
    pid = str(program.process.pid)
    parent, child = [], []
    lost = 0
    for _ in range(options.rounds):
        probing = Probing("--pid", pid, "--follow", pid=pid)
        mine, bare, theirs, their_bare = program.measure()
        lost += probing.end()["lost"]["total"]
        parent.append(mine - bare)
        child.append(theirs - their_bare)
    program.close()
    a, b = statistics.median(parent), statistics.median(child)
    print(f"hit in a followed fork child: {b:.1f} ns, in the parent {a:.1f} ns: ratio {b / a:.2f}, {lost} lost  "
          f"{verdict(b <= 1.1 * a, '<= 1.1')}")


def bench_fork():
    program = Forks("fork", "1024")
    pid = str(program.process.pid)
    for name, args in (("--follow", ["--follow"]), ("without --follow", [])):
        without, within = [], []
        for _ in range(options.rounds):
            without.append(program.measure()[1])
            probing = Probing("--pid", pid, *args, pid=pid)
            within.append(program.measure()[1])
            probing.end()
        a, b = statistics.median(without), statistics.median(within)
        print(f"fork() with 1 GiB resident, {name}: {a / 1000:.2f} ms without, {b / 1000:.2f} ms with a probe: ratio {b / a:.3f}  "
              f"{verdict(b <= 1.02 * a, '<= 1.02')}")
    program.close()


def arm(processes, args):
    """Seconds from dynprobe's start to the last site of the last process; its processor time, and its memory in MiB."""
    probing = Probing(*args, *([] if "--program" in args else ["--pid", ",".join(str(p.pid) for p in processes)]))
    while probing.process.poll() is None and not all(mapped(p.pid) for p in processes):
        time.sleep(0.05)
    time.sleep(0.5)  # the last one is being patched
    with open(f"/proc/{probing.process.pid}/statm") as f, open(f"/proc/{probing.process.pid}/stat") as stat:
        memory = int(f.read().split()[1]) * 4096 >> 20
        busy = sum(map(int, stat.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")
    summary = probing.end()
    if summary["placed"] != MANY:
        raise SystemExit(f"{summary['placed']} of {MANY} placed")
    return summary["attach_ns"] / 1e9, busy, memory


def armed(name, command, *args):
    processes = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) for _ in range(MANY)]
    try:
        time.sleep(1)  # until they are through their start; nothing is measured
        took, busy, memory = zip(*(arm(processes, args) for _ in range(options.rounds)))
    finally:
        for p in processes:
            p.kill()
            p.wait()
    print(f"{MANY} processes armed, {name}: {statistics.median(took):.2f} s ({min(took):.2f} to {max(took):.2f}), "
          f"{statistics.median(busy):.2f} s of processor time, dynprobe's memory {max(memory)} MiB  "
          f"{verdict(statistics.median(took) <= 2, '<= 2 s')}")


def bench_armed():
    with tempfile.TemporaryDirectory() as folder:
        idle = os.path.join(folder, "idle")
        subprocess.run(["cc", "-O2", "-x", "c", "-", "-o", idle], input=IDLE, text=True, check=True)
        armed("--pid", [idle])
        armed("--program", [idle], "--program", idle)
    armed("--pid, python3", ["/usr/bin/python3", "-c", "import time; time.sleep(1000)"], "--function", "PyObject_Repr")


parser = argparse.ArgumentParser()
parser.add_argument("--build", default="build")
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--only", default="hit,fork,armed")
options = parser.parse_args()
for part in options.only.split(","):
    {"hit": bench_hit, "fork": bench_fork, "armed": bench_armed}[part]()
sys.exit(not all(ok))
