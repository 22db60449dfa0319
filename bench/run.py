#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the figures of docs/performance.md, each beside a floor or the unprobed program of the same run.

    bench/run.py [--build DIR] [--rounds N]

Each measurement prints one row: name, value, reference, ratio, bar, verdict.
"""

import argparse
import atexit
import json
import os
import signal
import statistics
import subprocess
import sys
import time

rows = []


def row(what, value, reference, ratio, bar, ok):
    rows.append(ok)
    print(f"{what:<46} {value:>12} {reference:>14} {ratio:>8}  {bar:<24} {'meets' if ok else 'MISSES'}", flush=True)


class Hits:
    """The measured program, controlled by its standard input."""

    def __init__(self, build, *args):
        self.process = subprocess.Popen([os.path.join(build, "bench", "hits"), *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.pid = int(self.process.stdout.readline().split()[1])

    def measure(self):
        """{kind: (median, minimum)} in ns per call."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        words = self.process.stdout.readline().split()
        return {words[i]: (float(words[i + 1]), float(words[i + 2])) for i in range(0, len(words), 3)}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Probing:
    """dynprobe attached for the length of a with-block; .summary afterwards."""

    def __init__(self, build, pid, *args):
        self.command = [os.path.join(build, "dynprobe"), "--pid", str(pid), "-q", "--no-record", "-f", "json", "-o", "-", *args]
        self.pid = pid
        self.summary = None

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while self.process.poll() is None and not self.stands():
            time.sleep(0.05)
        time.sleep(0.5)
        if self.process.poll() is not None:
            raise SystemExit("dynprobe failed: " + self.process.stderr.read())
        return self

    def stands(self):
        """Waits until stubs are mapped and no thread is stopped."""
        with open(f"/proc/{self.pid}/maps") as maps, open(f"/proc/{self.pid}/status") as status:
            return "dynprobe" in maps.read() and "TracerPid:\t0" in status.read()

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate()
        for line in out.splitlines():
            if '"summary"' in line:
                self.summary = json.loads(line)
        if not self.summary:
            raise SystemExit("no summary: " + out + err)


def over(m, kind, before=None):
    """Median cost over the bare call of the same rounds, minus the same before the function was probed (code placement)."""
    return m[kind][0] - m["bare"][0] - (over(before, kind) if before else 0)


def lost(summary):
    return summary["lost"]["total"]


def row_over_hollow(what, ours, hollow):
    """A hit that has next to nothing to do: most of it is the jump there and back, which the hollow detour makes too."""
    row(what, f"{ours:.2f} ns", f"hollow {hollow:.2f}", "", "<= hollow + 0.3 ns", ours <= hollow + 0.3)


def measure_hits(build, probe_args, hits_args, points=("--function", "probed", "--function", "punned")):
    """Measures before, with and after probes; also returns dynprobe's summary."""
    target = Hits(build, *hits_args)
    before = target.measure()
    with Probing(build, target.pid, *points, *probe_args) as probing:
        m = target.measure()
    after = target.measure()
    target.close()
    return before, m, after, probing.summary


def bench_records(build, rounds):
    for what, limit, args in (("entry probe, record with one field", 1.25, ["-t", "reg:rdi"]),
                              ("entry probe, all 16 registers, rip, rflags", 1.5, ["-t", "regs", "--buffer-size", "4M"])):
        before, m, after, summary = measure_hits(build, args, ["-r", rounds])
        floor, ours = over(m, "floor"), over(m, "probed", before)
        row(what, f"{ours:.1f} ns", f"floor {floor:.1f}", f"{ours / floor:.2f}", f"<= {limit} x floor", ours <= limit * floor)
        short = over(m, "punned", before)
        row("  the same, punned jump", f"{short:.1f} ns", f"floor {floor:.1f}", f"{short / floor:.2f}", f"<= {limit} x floor", short <= limit * floor)
        if lost(summary):
            print(f"  note: lost {lost(summary)}")
    removed = over(after, "probed", before)
    row("a probe once removed", f"{removed:.2f} ns", "bare", "", "0", abs(removed) < 0.15)


def bench_pair(build, rounds):
    """One after the other in the same process: only the probes differ."""
    target = Hits(build, "-r", rounds)
    before = target.measure()
    got = {}
    for what, probes in (("one", ["--function", "probed"]), ("pair", ["--function", "probed", "--return", "probed"])):
        with Probing(build, target.pid, *probes, "-t", "reg:rdi", "--buffer-size", "4M") as probing:
            got[what] = over(target.measure(), "probed", before)
        if lost(probing.summary):
            print(f"  note: lost {lost(probing.summary)}")
    target.close()
    row("entry and return recorded", f"{got['pair']:.1f} ns", f"entry {got['one']:.1f}", f"{got['pair'] / got['one']:.2f}", "<= 2.2 x one record",
        got["pair"] <= 2.2 * got["one"])


def bench_tactics(build, rounds):
    """The same record with each tactic, in the same process, in turns: the least median of three. Nothing is subtracted for what the functions
    cost before: the site's own first instruction, in which they differ, is a jump in all of them."""
    target = Hits(build, "-r", rounds)
    got = {"jump": [], "pun": [], "evict": []}
    for _ in range(3):
        for tactic, function in (("jump", "probed"), ("pun", "punned"), ("evict", "punned")):
            with Probing(build, target.pid, "--function", function, "--tactic", tactic, "-t", "reg:rdi"):
                got[tactic].append(over(target.measure(), function))
    target.close()
    jump = min(got["jump"])
    for tactic, what in (("pun", "a punned site over one in place"), ("evict", "an evicting site over one in place")):
        more = min(got[tactic]) - jump
        row(what, f"{more:.2f} ns", f"in place {jump:.1f}", "", "<= 1.5 ns", more <= 1.5)


def bench_condition(build, rounds):
    before, m, _, _ = measure_hits(build, ["-t", "reg:rdi", "--when", "arg0 == 123456789"], ["-r", rounds])
    ours = over(m, "probed", before)
    hollow = over(m, "hollow")
    row_over_hollow("condition false (register compare)", ours, hollow)
    row_over_hollow("  the same, punned jump", over(m, "punned", before), hollow)


def bench_expressions(build, rounds):
    """Stubs alone, in a program of ours: {variant: median ns over the bare call}."""
    out = subprocess.run([os.path.join(build, "bench", "stub_bench"), rounds], capture_output=True, text=True, check=True).stdout
    m = {line[:28].strip(): float(line[28:].split()[1]) for line in out.splitlines()[2:]}
    hollow, one = m["floor: jump and back"], m["one field"]
    row_over_hollow("stub: false, register compare", m["false: rdi == K"], hollow)
    pointers = m["false: p->q->len > 4"]
    row("stub: false, p->q->len > 4", f"{pointers:.2f} ns", f"hollow {hollow:.2f}", "", "<= 3 ns", pointers <= 3)
    text = m["four and a 32-byte string"]
    row_over_hollow("stub: count", m["count"], hollow)
    row_over_hollow("stub: count, condition false", m["count, condition false"], hollow)
    for what, variant in (("stub: count by the base of fs", "count, by base of fs"), ("stub: count, shared and locked", "count, no %fs:0")):
        row(what, f"{m[variant]:.2f} ns", f"hollow {hollow:.2f}", "", "<= 3 ns", m[variant] <= 3)
    clocks, both = m["two rdtsc"], m["duration: entry and return"]
    row("stub: duration histogram, entry and return", f"{both:.1f} ns", f"2 rdtsc {clocks:.1f}", f"{both / clocks:.2f}", "<= 1.3 x two rdtsc",
        both <= 1.3 * clocks)
    row("stub: four typed fields, a 32-byte string", f"{text:.1f} ns", f"one field {one:.1f}", f"{text / one:.2f}", "<= 1.6 x one field",
        text <= 1.6 * one)


def bench_answers(build, rounds):
    for threads in ("1", "8"):
        less = rounds if threads == "1" else str(max(20, int(rounds) // 4))
        before, m, _, summary = measure_hits(build, ["--count"], ["-r", less, "-t", threads])
        ours, hollow = over(m, "probed", before), over(m, "hollow")
        row_over_hollow(f"count, {threads} thread{'s' if threads != '1' else ''}", ours, hollow)
        if lost(summary):
            print(f"  note: lost {lost(summary)}")
    before, m, _, _ = measure_hits(build, ["--count", "--when", "arg0 == 123456789"], ["-r", rounds])
    row_over_hollow("count, condition false", over(m, "probed", before), over(m, "hollow"))
    before, m, _, _ = measure_hits(build, ["--hist", "arg0"], ["-r", rounds])
    ours = over(m, "probed", before)
    row("histogram of an argument", f"{ours:.2f} ns", f"hollow {over(m, 'hollow'):.2f}", "", "<= 3 ns", ours <= 3)
    before, m, _, summary = measure_hits(build, ["--hist", "duration"], ["-r", rounds], ("--return", "probed"))
    ours, clocks = over(m, "probed", before), over(m, "clocks")
    row("duration histogram: entry and return", f"{ours:.1f} ns", f"2 rdtsc {clocks:.1f}", f"{ours / clocks:.2f}", "<= 1.3 x two rdtsc",
        ours <= 1.3 * clocks)
    if lost(summary):
        print(f"  note: lost {lost(summary)}")
    cost = {}
    for what, fields in (("one", ["-t", "reg:rdi"]),
                         ("five", ["--buffer-size", "4M", "-t", "a=(int)arg0", "-t", "p=arg1", "-t", "c=(unsigned char)$rdx", "-t", "d=(long)$r9", "-t", "s=str(arg1,32)"])):
        before, m, _, _ = measure_hits(build, fields, ["-r", rounds])
        cost[what] = over(m, "probed", before)
    row("record of four fields and a 32-byte string", f"{cost['five']:.1f} ns", f"one field {cost['one']:.1f}",
        f"{cost['five'] / cost['one']:.2f}", "<= 1.6 x one field", cost["five"] <= 1.6 * cost["one"])


def bench_keys(build, rounds):
    """One after the other in the same process. With --no-trap strings are read by a system call, in records too."""
    target = Hits(build, "-r", rounds)
    before = target.measure()
    cost = {}
    for what, args in (("number", ("--count", "--by", "arg0 % 16")), ("two", ("--count", "--by", "arg0 % 16, arg0 % 2")), ("string", ("--count", "--by", "str(arg1)")),
                       ("call", ("--count", "--by", "str(arg1)", "--no-trap")), ("record", ("-t", "str(arg1)", "--no-trap", "--buffer-size", "4M"))):  # fmt: skip
        with Probing(build, target.pid, "--function", "probed", *args) as probing:
            cost[what] = over(target.measure(), "probed", before)
        if lost(probing.summary):
            print(f"  note: lost {lost(probing.summary)}")
    target.close()
    for key, what, to, name, bar in (("two", "count by two numbers", "number", "a number", 1.5), ("string", "count by a string of 31 letters", "number", "a number", 3),
                                     ("call", "  the same, read by a system call", "record", "a record", 1.2)):  # fmt: skip
        row(what, f"{cost[key]:.1f} ns", f"{name} {cost[to]:.1f}", f"{cost[key] / cost[to]:.2f}", f"<= {bar} x {name}", cost[key] <= bar * cost[to])


def bench_backtrace(build, rounds):
    before, m, _, _ = measure_hits(build, ["-t", "backtrace:16", "--buffer-size", "4M"], ["-r", rounds, "-d", "24", "-b", "4000"])
    ours = over(m, "probed", before)
    row("backtrace, 16 frames, hot", f"{ours:.0f} ns", "", "", "<= 5 ns a frame", ours <= 80)


def bench_threads(build, rounds):
    cost = {}
    for threads in ("1", "8"):
        before, m, _, _ = measure_hits(build, ["-t", "reg:rdi"], ["-r", str(max(20, int(rounds) // 4)), "-t", threads])
        cost[threads] = over(m, "probed", before)
    ratio = cost["8"] / cost["1"]
    row("8 threads on one probe, CPU per hit", f"{cost['8']:.1f} ns", f"1: {cost['1']:.1f}", f"{ratio:.2f}", "<= 1.2 x one thread", ratio <= 1.2)


def floor_us(build, pid, *args):
    got = [float(subprocess.run([os.path.join(build, "bench", "ptrace_floor"), str(pid), *args], capture_output=True, text=True,
                                check=True).stdout.split()[1]) for _ in range(15)]
    return statistics.median(got)


def bench_pause(build):
    target = subprocess.Popen([os.path.join(build, "bench", "sleepers"), "64"], stdout=subprocess.PIPE, text=True)
    atexit.register(target.kill)
    target.stdout.readline()
    floor = floor_us(build, target.pid, "fifo")
    pauses = []
    for _ in range(15):
        out = subprocess.run([os.path.join(build, "dynprobe"), "--pid", str(target.pid), "-q", "--no-record", "-f", "json", "-o", "-", "-d",
                              "0.05", "--function", "tick"], capture_output=True, text=True, check=True).stdout
        summary = next(json.loads(line) for line in out.splitlines() if '"summary"' in line)
        pauses.append(summary["pause_attach_ns"] / 1e3)
    target.kill()
    target.wait()
    pause = statistics.median(pauses)
    row("first attach, 64 threads: longest pause", f"{pause:.0f} us", f"ptrace {floor:.0f}", f"{pause / floor:.2f}", "<= 3 x floor, <= 1 ms",
        pause <= 3 * floor and pause <= 1000)


def bench_ready(build, python="/usr/bin/python3"):
    """Debian's python3, which has no debug information: with it, inlined copies of the function are searched as well."""
    code = "import time\nwhile True:\n  str(time.time())\n  time.sleep(0.001)"
    target = subprocess.Popen([python, "-c", code])
    atexit.register(target.kill)
    time.sleep(0.5)
    cache = f"/tmp/dynprobe-bench-{os.getpid()}"
    for what, bar in (("first attach to python3, ready", 20), ("second attach, tables cached", 10)):
        runs = []
        for _ in range(7):
            if bar == 20:
                subprocess.run(["rm", "-rf", cache], check=True)
            out = subprocess.run([os.path.join(build, "dynprobe"), "--pid", str(target.pid), "-q", "--no-record", "-f", "json", "-o", "-", "-d",
                                  "0.05", "--function", "PyObject_Str", "-t", "backtrace"], capture_output=True, text=True, check=True,
                                 env={**os.environ, "XDG_CACHE_HOME": cache}).stdout
            runs.append(next(json.loads(line) for line in out.splitlines() if '"summary"' in line)["attach_ns"] / 1e6)
        got = statistics.median(runs)
        row(what, f"{got:.1f} ms", "", "", f"<= {bar} ms", got <= bar)
    subprocess.run(["rm", "-rf", cache], check=True)
    target.kill()
    target.wait()


def bench_start(build):
    """From the start of a process to its end: what every command costs, whatever it does."""
    took = {"true": [], os.path.join(build, "dynprobe"): []}
    for _ in range(60):
        for program, times in took.items():
            begin = time.monotonic()
            subprocess.run([program, "--version"], stdout=subprocess.DEVNULL, check=True)
            times.append((time.monotonic() - begin) * 1e3)
    floor, ours = (statistics.median(times) for times in took.values())
    row("start and end of dynprobe itself", f"{ours:.2f} ms", f"true {floor:.2f}", "", "<= 1 ms more", ours <= floor + 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", default="200")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    every = {"records": lambda: bench_records(build, args.rounds), "pair": lambda: bench_pair(build, args.rounds), "tactics": lambda: bench_tactics(build, args.rounds),
             "condition": lambda: bench_condition(build, args.rounds),
             "expressions": lambda: bench_expressions(build, args.rounds), "answers": lambda: bench_answers(build, args.rounds), "keys": lambda: bench_keys(build, args.rounds),
             "backtrace": lambda: bench_backtrace(build, args.rounds), "threads": lambda: bench_threads(build, args.rounds),
             "pause": lambda: bench_pause(build), "ready": lambda: bench_ready(build), "start": lambda: bench_start(build)}
    print(f"{'what':<46} {'value':>12} {'reference':>14} {'ratio':>8}  {'bar':<24} verdict")
    for name, run in every.items():
        if not args.only or name in args.only.split(","):
            run()
    return 0 if all(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
