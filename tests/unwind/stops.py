# SPDX-License-Identifier: MIT
"""For gdb: stops the program, takes gdb's frames at each stop and asks `walk` for ours. Driven by run.py, whose PLAN says how:

argv    of the program
walk    the program that prints our frames
at      functions to run to, one after the other, before stepping; unknown names are skipped
steps   instructions to inspect after each, `stride` apart
random  stops at random moments, caused by a signal, each followed by `steps` instructions
out     a JSON line for each stop: its place, and both lists of pcs if they differ"""

import json
import os
import random
import re
import subprocess

import gdb

GPRS = "rip rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15".split()
LIMIT = 127
SIGNAL = 23  # SIGURG: ignored by default


class Ours:
    def __init__(self, walk, pid):
        self.p = subprocess.Popen([walk, str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def sleep(self, usec):
        self.p.stdin.write(f"sleep {usec} {SIGNAL}\n")

    def frames(self, regs):
        self.p.stdin.write(" ".join(f"{r:x}" for r in regs) + "\n")
        first, _, cached = self.p.stdout.readline().strip().partition(" cached ")
        return [int(pc, 16) for pc in first.split()], [int(pc, 16) for pc in cached.split()]


def register(frame, name):
    return int(frame.read_register(name)) & (1 << 64) - 1


def gdbs_frames():
    """Frames on the stack: inlined functions and tail calls have none, whatever gdb prints."""
    pcs, kinds, frame, why = [], set(), gdb.newest_frame(), ""
    while frame and len(pcs) < LIMIT:
        kind = frame.type()
        if kind not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            pcs.append(frame.pc())
            kinds.add(kind)
        try:
            older = frame.older()
        except gdb.MemoryError as e:
            why, older = str(e), None
        if not older and not why:
            why = gdb.frame_stop_reason_string(frame.unwind_stop_reason())
        frame = older
    return pcs, gdb.SIGTRAMP_FRAME in kinds, why


def name_of(pc):
    name = gdb.execute(f"info symbol {pc:#x}", to_string=True).strip().split("\n")[0]
    return name if not name.startswith("No symbol") else f"{pc:#x} of {gdb.solib_name(pc)}"


PROLOGUE = re.compile(rb"U|S|A[T-W]|H\x83\xec|H\x81\xec|H\x89\xe5|\xf3\x0f\x1e\xfa", re.S)  # push, sub from rsp, rsp to rbp, endbr64
EPILOGUE = re.compile(rb"\xc3|\xc9|\x5b|\x5d|A[\x5c-\x5f]|H\x83\xc4|H\x81\xc4", re.S)  # ret, leave, pop, add to rsp
STRINGS = ("mem", "str", "wcs", "wmem")


def kind_of(name, code, through_signal):
    """The kind of place of a stop, for the table."""
    symbol, _, section = name.partition(" in section ")
    function, _, offset = symbol.partition(" + ")
    if through_signal:
        return "in or under a signal handler"
    if ".plt" in section or "_dl_runtime_resolve" in function:
        return "PLT and lazy binding"
    if "system-supplied DSO" in section:
        return "vdso"
    if "libc.so" in section and function.lstrip("_").startswith(STRINGS):
        return "string functions of libc"
    if PROLOGUE.match(code) or (section and not offset):
        return "prologue"
    return "epilogue" if EPILOGUE.match(code) else "anywhere else"


def in_code(pid, pcs):
    """Those that are in executable memory."""
    with open(f"/proc/{pid}/maps") as f:
        code = [[int(x, 16) for x in line.split()[0].split("-")] for line in f if line.split()[1][2] == "x"]
    return [any(lo <= pc < hi for lo, hi in code) for pc in pcs]


class Run:
    def __init__(self, plan):
        self.plan, self.out, self.n = plan, open(plan["out"], "w"), 0
        self.random = random.Random(plan.get("seed", 1))
        self.more = plan.get("stops", 1 << 30)

    def alive(self):
        return gdb.selected_inferior().pid != 0 and self.n < self.more

    def start(self):
        for line in ("pagination off", "confirm off", "backtrace past-main on", "backtrace limit unlimited", "debuginfod enabled off", "style enabled off",
                     "print frame-info short-location", "print entry-values no", "breakpoint pending on", "unwindonsignal on"):
            gdb.execute("set " + line)
        gdb.execute("handle all nostop noprint pass", to_string=True)
        gdb.execute("handle SIGTRAP SIGINT stop print nopass", to_string=True)
        gdb.execute("handle SIGURG stop nopass", to_string=True)
        gdb.execute("file " + self.plan["argv"][0])
        gdb.execute("set args " + " ".join("'" + a.replace("'", "'\\''") + "'" for a in self.plan["argv"][1:]) + " < /dev/null > /dev/null 2>&1")
        gdb.execute("starti", to_string=True)
        self.inferior = gdb.selected_inferior()
        self.ours = Ours(self.plan["walk"], self.inferior.pid)

    def look(self):
        self.n += 1
        newest = gdb.newest_frame()
        regs = [register(newest, r) for r in GPRS]
        theirs, through_signal, why = gdbs_frames()
        ours, cached = self.ours.frames(regs)
        code = bytes(self.inferior.read_memory(regs[0], 4))
        stop = {"kind": kind_of(name_of(regs[0]), code, through_signal), "same": ours == theirs and not cached, "frames": len(theirs)}
        if not stop["same"]:
            stop.update(theirs=theirs, ours=ours, cached=cached, why=why, names=[name_of(pc) for pc in dict.fromkeys(theirs + ours + cached)],
                        code=bytes(self.inferior.read_memory(regs[0], 8)).hex(), sp=regs[5], bp=regs[6], in_code=in_code(self.inferior.pid, theirs))
        self.out.write(json.dumps(stop) + "\n")

    def step(self, n, stride=1):
        for _ in range(n):
            if not self.alive():
                return
            self.look()
            gdb.execute(f"stepi {stride}" if stride > 1 else "stepi", to_string=True)

    def functions(self):
        """The functions with stops; those that are missing were stepped into from another one."""
        for name in self.plan["at"]:
            gdb.Breakpoint(name, temporary=True)
        while self.alive() and gdb.breakpoints():
            gdb.execute("continue", to_string=True)
            self.step(self.plan["steps"], self.plan.get("stride", 1))

    def moments(self):
        gdb.execute("tbreak __libc_start_main", to_string=True)
        gdb.execute("continue", to_string=True)
        for _ in range(self.plan["random"]):
            if not self.alive():
                return
            self.ours.sleep(self.random.randrange(50, 2500))
            gdb.execute("continue", to_string=True)
            self.step(self.plan.get("steps", 0) + 1, self.random.randrange(1, 4))

    def run(self):
        self.start()
        if "random" in self.plan:
            self.moments()
        else:
            self.functions()
        if gdb.selected_inferior().pid:
            gdb.execute("kill", to_string=True)
        self.out.close()


with open(os.environ["PLAN"]) as f:
    Run(json.load(f)).run()
gdb.execute("quit")
