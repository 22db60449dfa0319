#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The cost of an event through LTTng, beside a compiled-in tracepoint of the same process; part of docs/performance.md.

    bench/run_lttng.py [--build DIR] [--rounds N]        (as root: it makes a private LTTng, like the tests)

Each measurement prints one row, as bench/run.py does. The session's rings overwrite old events, so that nothing waits for a reader.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "e2e"))
import lttng_env  # noqa: E402
from run import row, rows  # noqa: E402

SESSION = "bench"


class Lttng:
    """A session daemon."""

    def __init__(self, directory):
        self.env = dict(os.environ, HOME=directory, LTTNG_HOME=directory)
        self.daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while subprocess.run(["lttng", "-n", "list"], env=self.env, capture_output=True).returncode:
            time.sleep(0.05)

    def lttng(self, *args):
        return subprocess.run(["lttng", "-n", *args], env=self.env, check=True, capture_output=True, text=True).stdout

    def close(self):
        self.daemon.terminate()
        self.daemon.wait()


class World(Lttng):
    """With a snapshot session that has rules for the compiled-in tracepoints and for our events."""

    def __init__(self, directory):
        super().__init__(directory)
        self.lttng("create", SESSION, "--snapshot")
        self.lttng("enable-channel", "-u", "-s", SESSION, "c", "--overwrite", "--num-subbuf=4", "--subbuf-size=4M")
        self.lttng("enable-event", "-u", "-s", SESSION, "-c", "c", "bench:wanted,bench:many")
        self.lttng("start", SESSION)


class Target:
    def __init__(self, build, world, rounds):
        self.process = subprocess.Popen([os.path.join(build, "bench", "tracepoint"), "-r", rounds], env=world.env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.pid = int(self.process.stdout.readline().split()[1])
        time.sleep(0.5)

    def measure(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        words = self.process.stdout.readline().split()
        return {words[i]: float(words[i + 1]) for i in range(0, len(words), 3)}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def dynprobe(build, world, *args, **kw):
    return subprocess.run([os.path.join(build, "dynprobe"), *map(str, args)], env=world.env, capture_output=True, text=True, timeout=60, **kw)


def attached(build, world, target, *args):
    p = dynprobe(build, world, "attach", "--pid", target.pid, "--session", SESSION, "--function", "probed", *args)
    if p.returncode:
        raise SystemExit("dynprobe failed: " + p.stderr)
    time.sleep(0.3)


def event(build, world, rounds, args):
    """ns of a probe's event and of the tracepoint's over the bare function; also with the session stopped, and the event disabled."""
    target = Target(build, world, rounds)
    before = target.measure()
    attached(build, world, target, *args)
    m = target.measure()
    world.lttng("stop", SESSION)
    time.sleep(0.3)
    stopped = target.measure()
    world.lttng("start", SESSION)
    world.lttng("disable-event", "-u", "-s", SESSION, "-c", "c", "dynprobe:probed")
    time.sleep(0.3)
    disabled = target.measure()
    dynprobe(build, world, "detach", "--pid", target.pid)
    removed = target.measure()
    target.close()

    def over(m, kind):
        return m[kind] - m["bare"]

    own = over(before, "probed")
    return {"probe": over(m, "probed") - own, "tracepoint": over(m, "wanted"), "many": over(m, "many"), "idle": over(m, "idle"),
            "stopped": over(stopped, "probed") - own, "disabled": over(disabled, "probed") - own, "removed": over(removed, "probed") - own}


def bench_events(build, world, rounds):
    one = event(build, world, rounds, ["-t", "reg:rdi"])
    row("LTTng event, one field", f"{one['probe']:.1f} ns", f"tp {one['tracepoint']:.1f}", f"{one['probe'] / one['tracepoint']:.2f}",
        "<= 1.25 x tracepoint", one["probe"] <= 1.25 * one["tracepoint"])
    regs = event(build, world, rounds, ["-t", "regs"])
    row("LTTng event, all registers", f"{regs['probe']:.1f} ns", f"tp {regs['tracepoint']:.1f}", f"{regs['probe'] / regs['tracepoint']:.2f}",
        "<= 1.25 x tracepoint", regs["probe"] <= 1.25 * regs["tracepoint"])
    row("  the same, beside 18 compiled-in fields", f"{regs['probe']:.1f} ns", f"tp {regs['many']:.1f}", f"{regs['probe'] / regs['many']:.2f}",
        "<= 1.25 x tracepoint", regs["probe"] <= 1.25 * regs["many"])
    for what in ("stopped", "disabled"):
        row(f"LTTng event, {'session stopped' if what == 'stopped' else 'event disabled'}", f"{one[what]:.2f} ns", f"tp {one['idle']:.2f}", "",
            "<= 2 ns", one[what] <= 2)
    row("a probe once removed", f"{one['removed']:.2f} ns", "", "", "0", abs(one["removed"]) < 0.3)


def milliseconds(number, unit):
    return float(number) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]


def longest_gap(build, world, storm):
    """ms: the longest gap in a thread of the program while the sink is loaded, and without dynprobe."""
    program = [os.path.join(build, "bench", "sleepers"), "64"] if not storm else [os.path.join(build, "tests", "targets", "libcstorm")]
    pauses = []
    for _ in range(7):
        target = subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=world.env)
        target.stdout.readline()
        function = "tick" if not storm else "libc.so.6!getpid"
        p = subprocess.run([os.path.join(build, "dynprobe"), "--pid", str(target.pid), "--session", SESSION, "--function", function, "-d", "0.05", "-v"],
                           env=world.env, capture_output=True, text=True, timeout=60)
        target.kill()
        target.wait()
        found = re.search(r"placed in \S+ \(program paused ([\d.]+)(us|ms|s)\b", p.stderr)
        if p.returncode or not found:
            raise SystemExit("dynprobe failed: " + p.stderr)
        pauses.append(milliseconds(*found.groups()))
    return statistics.median(pauses), max(pauses)


def bench_pause(build, world):
    for storm, bar in ((False, 5), (True, 20)):
        median, worst = longest_gap(build, world, storm)
        row(f"first attach, {'allocation storm' if storm else '64 idle threads'}: pause", f"{median:.2f} ms", f"worst {worst:.2f}", "",
            f"<= {bar} ms", worst <= bar)


def bench_register(build, world):
    target = Target(build, world, "20")
    attached(build, world, target, "-t", "reg:rdi")
    args = [a for i in range(100) for a in ("--name", f"p{i}", "--probe", f"probed+{'0x7' if i % 2 else '0xb'}", "-t", "reg:rdi", "-t", "reg:rsi")]
    p = dynprobe(build, world, "attach", "-v", "--pid", target.pid, "--session", SESSION, *args)
    found = re.search(r"(\d+) events? registered in ([\d.]+)(us|ms|s)\b", p.stderr)
    target.close()
    if not found:
        raise SystemExit("no registration: " + p.stderr[-2000:])
    ms = milliseconds(found[2], found[3])
    row("100 events registered, session active", f"{ms:.2f} ms", f"{found[1]} events", "", "<= 10 ms", ms <= 10)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", default="200")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    with tempfile.TemporaryDirectory() as directory:
        world = World(directory)
        every = {"events": lambda: bench_events(build, world, args.rounds), "pause": lambda: bench_pause(build, world),
                 "register": lambda: bench_register(build, world)}
        print(f"{'what':<46} {'value':>12} {'reference':>14} {'ratio':>8}  {'bar':<24} verdict")
        for name, run in every.items():
            if not args.only or name in args.only.split(","):
                run()
        world.close()
    return 0 if all(rows) else 1


if __name__ == "__main__":
    lttng_env.isolate()
    sys.exit(main())
