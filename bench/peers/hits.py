# SPDX-License-Identifier: MIT
"""What a hit costs with each tool: the program's own loops before and while the tool is attached, and the tool's answer."""

import contextlib
import itertools
import os
import shutil
import subprocess
import time

from . import attach, lttng, parse, tools
from .attach import Failed
from .program import Program, Silent, costs, loops

SETTLE_S = 0.3  # text has changed, but a tool may still be on its way to its second probe
IN_PROCESS = ("/usr/lib/libinproctrace.so", "/usr/lib/x86_64-linux-gnu/libinproctrace.so")  # gdbserver's part in the program
GROUP = f"peers{os.getpid()}"


class Bench:
    """Where the built programs are."""

    def __init__(self, build):
        self.build = os.path.abspath(build)
        self.dynprobe = os.path.join(self.build, "dynprobe")

    def program(self, variant):
        return os.path.join(self.build, "bench", f"peers_{variant}")

    def words(self, command, **values):
        """The words of a command; OUT is left to attach.Attached."""
        words = tools.fill(command, **values)
        return [self.dynprobe, *words[1:]] if words[0] == "dynprobe" else words


# ---- the ways to attach ----


@contextlib.contextmanager
def uprobe_of(path, function):
    """perf's uprobe, as the event that `perf record -e` takes."""
    added = f"{GROUP}:{function}={function} a=%di"
    try:
        p = subprocess.run(["perf", "probe", "-q", "-x", path, "--add", added], capture_output=True, text=True, env=attach.ENV, check=False, timeout=30)
        if p.returncode:
            raise Failed(attach.reason(p.stderr))
        yield f"{GROUP}:{function}"
    finally:
        remove_perf_probes()


def remove_perf_probes():
    if shutil.which("perf"):
        subprocess.run(["perf", "probe", "-q", "--del", f"{GROUP}:*"], capture_output=True, env=attach.ENV, check=False, timeout=120)


def ready_of(way, program):
    if way.function != "getppid":
        return attach.text_changed(program, way.function)
    return {"dynprobe": attach.maps_dynprobe(program), "strace": attach.traces(program)}.get(way.tool, attach.holds_perf_event)


def gdb_of(way, bench, program):
    """gdb itself, or gdb with a gdbserver that can place fast tracepoints."""
    ready, lines = ready_of(way, program), way.command.split("\n")
    if way.how == "gdb":
        return attach.Gdb(["gdb", "-q", "-nx", "-p", str(program.pid)], ready, lines)
    served = ["set sysroot /", f"target extended-remote | exec gdbserver --attach - {program.pid} 2>/dev/null"]
    return attach.Gdb(["gdb", "-q", "-nx", bench.program("fixed")], ready, served + lines, ("tstop", "tstatus"))


@contextlib.contextmanager
def tool_of(way, bench, program):
    """The tool, not started yet."""
    with contextlib.ExitStack() as stack:
        path, event = bench.program("program"), ""
        if way.how == "perf":
            event = stack.enter_context(uprobe_of(path, way.function))
        if way.how in ("gdb", "fixed"):
            yield stack.enter_context(gdb_of(way, bench, program))
        else:
            argv = bench.words(way.command, PID=program.pid, PROGRAM=path, EVENT=event)
            yield stack.enter_context(attach.Attached(argv, ready_of(way, program)))


def started(way, bench):
    """The program that a way probes."""
    if way.how == "fixed":
        library = next((path for path in IN_PROCESS if os.path.exists(path)), None)
        if not library:
            raise Failed("no libinproctrace.so (Debian's package gdbserver has it)")
        return Program(bench.program("fixed"), env={**os.environ, "LD_PRELOAD": library})
    return Program(bench.program("program"))


def result(tool, way):
    """All that the tool said, and what shows its result."""
    text = tool.read()
    if way.after:
        argv = [word.replace("OUT", tool.out) for word in tools.split(way.after)]
        p = subprocess.run(argv, capture_output=True, text=True, errors="replace", env=attach.ENV, check=False, timeout=60)
        text += "\n" + p.stdout + p.stderr
    return text


def attached(way, bench, alone, during):
    """Fills in the loops of both; returns what the tool said, and remarks."""
    notes = []
    with started(way, bench) as program:
        loops(program, way, alone[0])
        with tool_of(way, bench, program) as tool:
            tool.start()
            time.sleep(SETTLE_S)
            try:
                loops(program, way, during)
            except Silent as e:
                notes.append(str(e))
            if not tool.stop():
                notes.append("did not end by itself")
            text = result(tool, way)
        time.sleep(0.05)
        if not program.alive():
            notes.append("the program died")
        elif program.changed("work") or program.changed("wide"):
            notes.append("left the program's text changed")
        else:
            loops(program, way, alone[1])
    return text, notes


def launched(way, bench, alone, during):
    """The program alone, and the program as the tool's child."""
    with Program(bench.program("program")) as program:
        loops(program, way, alone[0])
    with attach.Attached([], None) as tool:
        argv = [word.replace("OUT", tool.out) for word in bench.words(way.command, PROGRAM=bench.program("program"))]
        with Program(*argv, env=attach.ENV) as program:
            loops(program, way, during)
        return result(tool, way), []


# ---- one row ----

HOW = {"launch": launched, "lttng": lttng.recorded}


def hit(way, bench):
    """One row: {"cost": {threads: ns}, "equal":, "answer":, "notes":}, or {"failed": why}."""
    alone, during = [{}, {}], {}
    try:
        text, notes = HOW.get(way.how, attached)(way, bench, alone, during)
    except (Failed, Silent, OSError, subprocess.SubprocessError) as e:
        return {"failed": str(e)}
    if not during:
        return {"failed": ", ".join(notes)}
    calls = list(itertools.chain(*(run.calls for run in during.values())))
    truth = parse.filtered(calls) if way.question == "filter" else sum(calls)
    answer = way.read(text)
    equal, words = parse.verdict(answer, truth, parse.powers(calls) if way.question == "hist" else None)
    return {"cost": costs(alone, during), "equal": equal, "answer": words, "notes": notes, "calls": sum(calls)}
