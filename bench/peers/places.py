# SPDX-License-Identifier: MIT
"""Attaching and detaching, at 1, 1,000 and 20,000 places: how long it takes, and the longest pause of a thread that reads the clock."""

import collections
import contextlib
import os
import re
import subprocess
import time

from . import attach, parse, tools
from .attach import Failed
from .hits import GROUP
from .program import Program, Silent, longest, over_bare

QUIET_S, SETTLE_S = 0.3, 0.3
LIMIT_S = {1: 20, 100: 60, 1000: 180, 20000: 90}  # of an attach, and of a detach
PAIRS, SLICE_MS = 6, 10
TRACEFS = "/sys/kernel/tracing"
GLOBS = {1: ("work",), 100: ("f100*",), 1000: ("f10*",), 20000: ("f1*", "f2*")}
REGEXES = {1: "work$", 1000: "f10", 20000: "f[12]"}


def each(option, patterns):
    return " ".join(f"{option}{p}" for p in patterns)


# command: of the number of places, with the names that tools.py describes.
Place = collections.namedtuple("Place", "tool command read how places", defaults=("attach", (1, 1000, 20000)))
FLOOR = "floor: all threads stopped once"
PLACES = [
    Place(FLOOR, None, None, "floor", (1,)),
    Place("dynprobe", lambda n: f"dynprobe --pid PID -q -f json -o OUT --no-record --count {each('--function ', GLOBS[n])}", parse.dynprobe),
    Place("bpftrace", lambda n: f"bpftrace -p PID -f json -o OUT -e 'uprobe:PROGRAM:{GLOBS[n][0]} {{ @ = count(); }}'", parse.bpftrace, places=(1, 100, 1000)),
    Place("perf stat", lambda n: "perf stat -x , -o OUT -e EVENT -p PID", parse.perf_stat, "perf", (1, 100, 1000)),
    Place("gdb breakpoint", lambda n: f"rbreak ^{REGEXES[n]}\ncommands\nsilent\ncontinue\nend", parse.gdb_breakpoint, "gdb", (1, 1000)),
    Place("ltrace", lambda n: f"ltrace -f -L -c {each('-x ', GLOBS[n])} -p PID -o OUT", parse.call_table(r"(?:work|f\d{5})")),
    Place("strace", lambda n: "strace -f -c -e trace=getppid -p PID -o OUT", parse.call_table("getppid"), places=(1,)),
    Place("uftrace", lambda n: f"uftrace record -d OUT --no-libcall --no-event -P ^{REGEXES[n]} PROGRAM", parse.uftrace, "launch"),
]
NOT_TRIED = {("bpftrace", 20000): "not tried: the kernel removes its uprobes one by one, see 1,000",
             ("perf stat", 20000): "not tried: the kernel removes its uprobes one by one, see 1,000",
             ("gdb breakpoint", 20000): "not tried: see 1,000"}
SLOW = [("bpftrace", 1000), ("perf stat", 1000)]  # minutes: not in the short form


def symbols(path, pattern, *options):
    """(address in hexadecimal digits, name) of the functions whose whole name matches."""
    listed = subprocess.run(["nm", "--defined-only", *options, path], capture_output=True, text=True, check=True).stdout
    return re.findall(rf"^(\w+) [tT] ({pattern})$", listed, re.MULTILINE)


@contextlib.contextmanager
def uprobes_at(path, found):
    """A group of uprobes, written where perf probe writes them; perf probe itself adds at most some hundred at once."""
    try:
        change_uprobes([f"p:{GROUP}/{name} {path}:0x{address}" for address, name in found])
        yield f"{GROUP}:*"
    finally:
        remove_uprobes()


def change_uprobes(lines):
    """Appends, without the seek of open(..., "a"): the file has no end."""
    f = os.open(f"{TRACEFS}/uprobe_events", os.O_WRONLY | os.O_APPEND)
    try:
        for line in lines:
            os.write(f, line.encode() + b"\n")
    finally:
        os.close(f)


def remove_uprobes():
    """Those of this run."""
    with contextlib.suppress(OSError):
        with open(f"{TRACEFS}/uprobe_events") as f:
            ours = [line.split()[0].split(":", 1)[1] for line in f if f":{GROUP}/" in line]
        change_uprobes([f"-:{name}" for name in ours])


def kinds(n):
    return ("bare", "work") if n == 1 else ("none", "places")


def cost(program, n):
    run = program.run(kinds(n), 1, PAIRS, ms=SLICE_MS, places=n)
    return over_bare(run), sum(run.calls)


def all_changed(program, where, n):
    before = program.heads(*where, n)

    def ready(_):
        return all(a != b for a, b in zip(before, program.heads(*where, n)))
    return ready


@contextlib.contextmanager
def tool_of(place, n, bench, program, where):
    with contextlib.ExitStack() as stack:
        path = bench.program("program" if n == 1 else "places")
        event = stack.enter_context(uprobes_at(path, symbols(path, GLOBS[n][0].replace("*", ".*")))) if place.how == "perf" else ""
        ready = attach.traces(program) if place.tool == "strace" else all_changed(program, where, n)
        if place.how == "gdb":
            yield stack.enter_context(attach.Gdb(["gdb", "-q", "-nx", "-p", str(program.pid)], ready, place.command(n).split("\n")))
        else:
            argv = bench.words(place.command(n), PID=program.pid, PROGRAM=path, EVENT=event)
            yield stack.enter_context(attach.Attached(argv, ready))


def removed(program, tool, n):
    """Ends the tool under the eyes of the program; the figures of that."""
    program.watch(n if n > 1 else 0)
    begin = time.monotonic_ns()
    ended = tool.stop(LIMIT_S[n])
    end = time.monotonic_ns()
    time.sleep(0.1)
    gaps = program.gaps()
    notes = [] if ended else [f"did not end in {LIMIT_S[n]} s"]
    return {"removed_ms": (end - begin) / 1e6, "pause_removed_ms": longest(gaps.gaps, begin, end + 10**8), "restored": gaps.changed}, notes


def attached(place, n, bench):
    with Program(bench.program("program" if n == 1 else "places")) as program:
        alone, _ = cost(program, n)
        where = program.watch(n if n > 1 else 0)
        quiet = time.monotonic_ns()
        time.sleep(QUIET_S)
        with tool_of(place, n, bench, program, where) as tool:
            begin = time.monotonic_ns()
            tool.start(LIMIT_S[n])
            ready = time.monotonic_ns()
            time.sleep(SETTLE_S)
            gaps = program.gaps()
            with_it, calls = cost(program, n)
            detached, notes = removed(program, tool, n)
            text = tool.read()
    if place.tool != "strace" and gaps.changed != max(n, 1):
        notes.append(f"armed {gaps.changed:,} of {n:,}")
    if detached.pop("restored") != max(n, 1) and place.tool != "strace":
        notes.append("some places were not restored")
    equal, words = parse.verdict(place.read(text), calls) if place.tool != "strace" else (None, "not a probe")
    return {"armed_ms": ((gaps.at or ready) - begin) / 1e6, "quiet_ms": longest(gaps.gaps, quiet, begin), "cost": with_it - alone,
            "pause_ms": longest(gaps.gaps, begin, ready + SETTLE_S * 1e9), "equal": equal, "answer": words, "notes": notes, **detached}


def launched(place, n, bench):
    """The tool starts the program: armed is how much later that is ready."""
    path = bench.program("program" if n == 1 else "places")
    begin = time.monotonic_ns()
    with Program(path) as program:
        plain = time.monotonic_ns() - begin
        alone, _ = cost(program, n)
    with attach.Attached([], None) as tool:
        begin = time.monotonic_ns()
        argv = [word.replace("OUT", tool.out) for word in bench.words(place.command(n), PROGRAM=path)]
        with Program(*argv, env=attach.ENV) as program:
            ready = time.monotonic_ns() - begin
            with_it, calls = cost(program, n)
        p = subprocess.run(["uftrace", "report", "-d", tool.out], capture_output=True, text=True, env=attach.ENV, check=False, timeout=60)
        equal, words = parse.verdict(place.read(p.stdout), calls)
    return {"armed_ms": (ready - plain) / 1e6, "cost": with_it - alone, "equal": equal, "answer": words, "notes": ["at start-up only"]}


def stopped(place, n, bench):
    """What stopping all threads costs with the least that ptrace needs: no tool can attach to them all at once for less."""
    with Program(bench.program("program")) as program:
        program.watch()
        quiet = time.monotonic_ns()
        time.sleep(QUIET_S)
        begin = time.monotonic_ns()
        subprocess.run([os.path.join(bench.build, "bench", "stop_floor"), str(program.pid), "0"], capture_output=True, check=True, timeout=20)
        end = time.monotonic_ns()
        time.sleep(0.1)
        gaps = program.gaps().gaps
    return {"quiet_ms": longest(gaps, quiet, begin), "pause_ms": longest(gaps, begin, end), "equal": None, "answer": "no probe", "notes": []}


def measure(place, n, bench):
    try:
        return {"launch": launched, "floor": stopped}.get(place.how, attached)(place, n, bench)
    except (Failed, Silent, OSError, subprocess.SubprocessError) as e:
        return {"failed": str(e)}


def cases(rounds):
    """(row, how often): 1,000 and more places only once, but for dynprobe."""
    for place in PLACES:
        for n in (1, 100, 1000, 20000):
            row = {"tool": place.tool, "places": n, "rounds": []}
            if (place.tool, n) in NOT_TRIED:
                yield place, row | {"not_tried": NOT_TRIED[place.tool, n]}, 0
            elif (place.tool, n) in SLOW and rounds == 1:
                yield place, row | {"not_tried": "not in the short form"}, 0
            elif n in place.places:
                yield place, row, rounds if n == 1 or place.tool == "dynprobe" else 1
