#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures what docs/coverage.md states: which share of the instructions of real programs can be probed, and how.

    bench/run_coverage.py [--build DIR] [--only WORD] [--write docs/coverage.md]

Starts each program, runs bench/coverage on one of its modules, which asks the planner about every instruction at its address in the process
(it only reads the process), and prints or writes the tables. Exit status 1 if a plan violates its contract or a bar is missed.
"""

import argparse
import glob
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time

TACTICS = ("jump", "pun", "evict", "window", "trap")
CC1 = "/usr/lib/gcc/x86_64-linux-gnu/*/cc1"
PYTHON = "/usr/bin/python3"
WAIT_PYTHON = [PYTHON, "-c", "import ssl, sys; sys.stdin.read()"]

# Command (it waits on a pipe), module to ask about, kind of module. {dir} is a scratch directory.
PROGRAMS = (
    (["bash", "-c", "read line"], "libc.so.6", "library"),
    (["bash", "-c", "read line"], "bash", "PIE"),
    (["sqlite3", ":memory:"], "libsqlite3.so*", "library"),
    (["redis-server", "--port", "0", "--unixsocket", "{dir}/redis", "--save", ""], "redis-*", "PIE"),
    (WAIT_PYTHON, "libcrypto.so*", "library"),
    (["gdb", "-q", "-nx"], "libstdc++.so*", "library"),
    (["gdb", "-q", "-nx"], "libpython3*.so*", "library"),
    (["rg", "word", "-"], "rg", "PIE, Rust"),
    ([CC1, "-quiet", "-"], "cc1", "not PIE"),
    (WAIT_PYTHON, "python3*", "not PIE"),
    (["fzf", "--filter", "word"], "fzf", "not PIE, Go"),
)
FIXED = ("libc.so.6", "libcrypto.so*", "libstdc++.so*", "libpython3*.so*")  # measured again with ASLR off
ALL_AT_ONCE = ("libc.so.6",)


class Program:
    """A program that waits for input, alive for the length of a with-block."""

    def __init__(self, command, aslr):
        self.dir = tempfile.mkdtemp(prefix="coverage.")
        command = [word.replace("{dir}", self.dir) for word in command]
        command[0] = sorted(glob.glob(command[0]))[0] if "*" in command[0] else shutil.which(command[0])
        self.command = command if aslr else ["setarch", "-R", *command]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1.5)
        if self.process.poll() is not None:
            raise SystemExit(f"{self.command} ended at once")
        return self.process.pid

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.dir)


def ask(tool, pid, module, limit, *args):
    """The tool's output lines; modes that the time limit cut off are missing. Exits if a plan violates its contract."""
    command = ["timeout", str(limit), tool, "--pid", str(pid), "--module", module, "-j", *args]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 121):
        raise SystemExit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def mode(lines, name):
    found = [line for line in lines if line["kind"] == "mode" and line["mode"].startswith(name)]
    return found[0] if found else None


def measure(args, tool, row, aslr):
    command, module, kind = row
    print(f"{module} in {command[0]}{'' if aslr else ', ASLR off'} ...", file=sys.stderr, flush=True)
    with Program(command, aslr) as pid:
        sample = ["--sample", str(args.sample)] if args.sample else []
        lines = ask(tool, pid, module, args.limit, "--alone", *sample, "--batch=1000", "--rounds", str(args.rounds))
        result = {**lines[0], "program": os.path.basename(command[0]), "kind": kind, "aslr": aslr}
        result.update(alone=mode(lines, "alone"), batch=mode(lines, "batches"), ten=None, all=None)
        if module in ALL_AT_ONCE and aslr:
            result["ten"] = mode(ask(tool, pid, module, args.limit, "--batch=10000", "--rounds", "1"), "batches")
            result["all"] = mode(ask(tool, pid, module, args.limit, "--all"), "all")
    return result


# ---- tables -----------------------------------------------------------------------------------------------------------------------


def share(m, *tactics):
    return 100.0 * sum(m[t] for t in tactics) / m["asked"]


def percent(value):
    return f"{value:.3f}" if value < 99.9995 or value == 100 else f"{value:.4f}"


def title(r):
    return f"{r['name']} in {r['program']}" if r["kind"] == "library" else r["name"]


def kind(r):
    return r["kind"] if r["aslr"] else r["kind"] + ", ASLR off"


def refused(m):
    """The number of instructions that no tactic can place."""
    return sum(m["refused"].values())


def table_alone(results):
    yield "| module | kind | instructions | jump | pun | evict | **no window, no trap** | + window | + trap | refused | µs/site |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for r in results:
        m = r["alone"]
        if not m:
            yield f"| {title(r)} | {kind(r)} | {r['sites']} | not done in time | | | | | | | |"
            continue
        steps = [share(m, *TACTICS[: n + 1]) for n in range(5)]
        yield (f"| {title(r)} | {kind(r)} | {m['asked']} | {share(m, 'jump'):.3f} | {share(m, 'pun'):.3f} | {share(m, 'evict'):.3f} | "
               f"**{percent(steps[2])}** | {percent(steps[3])} | {percent(steps[4])} | {refused(m)} | {m['us_per_site']:.1f} |")


def table_together(results, key):
    yield "| module | kind | asked | no window, no trap | + window | + trap | refused | µs/site | mappings | own memory | text pages |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for r in results:
        m = r[key]
        if not m:
            continue
        steps = [share(m, *TACTICS[: n + 1]) for n in range(5)]
        yield (f"| {title(r)} | {kind(r)} | {m['asked']} | {percent(steps[2])} | {percent(steps[3])} | {percent(steps[4])} | {refused(m)} | "
               f"{m['us_per_site']:.1f} | {m['extents']} | {m['own_bytes'] / 2**20:.1f} MiB | {m['text_pages']} |")


def table_reasons(results):
    yield "| module | kind | reason | instructions | for example |"
    yield "| --- | --- | --- | ---: | --- |"
    for r in results:
        m = r["alone"]
        for tag, n in sorted((m or {"refused": {}})["refused"].items(), key=lambda item: -item[1]):
            texts = [e["text"].split(": ", 1)[-1].replace("|", "\\|") for e in m["examples"] if e["tag"] == tag]
            yield f"| {title(r)} | {kind(r)} | {tag} | {n} | {', '.join(f'`{t}`' for t in texts[:5])} |"


def bars(results):
    """(what, value, bar) of the promised shares."""
    for r in results:
        m = r["alone"]
        if not m:
            continue
        upto = 4 if "not PIE" in r["kind"] or not r["aslr"] else 3
        yield f"{title(r)}, {kind(r)}, alone, {'with' if upto == 4 else 'without'} windows", share(m, *TACTICS[:upto]), 99.9
        if r["all"] and r["name"] == "libc.so.6":
            yield f"{title(r)}, all at once, without traps", share(r["all"], *TACTICS[:4]), 99.5


def table_bars(results):
    yield "| what | share | bar | |"
    yield "| --- | ---: | ---: | --- |"
    for what, value, bar in bars(results):
        yield f"| {what} | {percent(value)} % | {bar} % | {'met' if value >= bar else '**missed**'} |"


PAGE = """# How much can be probed

This page answers: which share of the instructions of real programs can dynprobe probe, and by which tactic?
`bench/run_coverage.py` asked the planner about every instruction of these modules, in a live process, at the addresses where it
lay ({date}, {machine}).

Functions are found by symbols and unwind tables, and decoded from their start. Those of fzf, a Go program, come from its
runtime's table of functions. {sample}Not counted: padding between
functions (nops and int3 that no branch reaches), and endbr64, behind which dynprobe places the probe.

An instruction is *placed* if a tactic fits. dynprobe tries them in this order:

- `jump`: the instruction has room for the jump;
- `pun`: the jump keeps its neighbours' bytes;
- `evict`: neighbour instructions become jumps of their own;
- `window`: the jump covers several instructions, with a proof that no branch leads inside; what they lack in length it shares
  with what follows;
- `trap`: an int3.

For each plan an independent check applied the bytes, followed the jumps from every head to its stub, and compared every other
instruction with the original: {plans} plans, {violations} violations. A separate test runs the moved instructions
([relocation.md](relocation.md)).

## Against the bars

{bars}

## Each instruction alone (percent)

{alone}

## Batches of 1,000 random instructions (percent)

Mappings, own memory and copied pages of text: the most that a batch needed. Own memory is that of probes that record their hit
only. µs/site is processor time in the planner, stubs included, on a machine that other programs loaded. In "alone", a module's
instruction starts and branch targets are found once for all of its sites, as for the probes of one command.

{batch}

## 10,000 random instructions

{ten}

## All at once

{all}

## What is refused, alone

This table is what jumps alone leave. Places that you name get a trap where no jump fits ([decision
0035](decisions/0035-a-trap-where-no-jump-fits.md)).

`ud2`, `hlt` and `int3` raise a signal by design, and its handler looks at the address: Rust puts an `ud2` behind every call that
does not return. With `trap` in `--tactic` they carry probes ([decision 0016](decisions/0016-traps.md)), and nothing is refused:
`dynprobe list -v --tactic jump,pun,evict,trap` places all 190,791 instructions of bash (14 by traps) and all 655,452 of rg (20 by
traps). Go programs get no windows: the runtime interrupts goroutines anywhere, and keeps the address where one resumes on a stack
that belongs to no thread.

Never probed (DP-RSEQ):

- the instructions to which signal handlers return;
- system calls whose addresses thread cancellation checks (glibc from 2.41 on, musl: `__syscall_cancel_arch`, `__syscall_cp_asm`);
- code that ends threads without a stack (musl's `__unmapself`, Go's `runtime.exitThread`);
- restartable sequences whose descriptors a file has in a section `__rseq_cs`. A descriptor elsewhere is not seen: such a
  sequence, under a probe, is not aborted while its displaced instruction runs in the stub.

Other code that checks a thread's address is not recognised: a displaced `syscall` runs outside of the range that
PR_SET_SYSCALL_USER_DISPATCH (Wine) lets pass.

{reasons}
"""


def page(results, sample):
    modes = [r[key] for r in results for key in ("alone", "batch", "ten", "all") if r[key]]
    lines = {"alone": table_alone(results), "batch": table_together(results, "batch"), "ten": table_together(results, "ten"),
             "all": table_together(results, "all"), "reasons": table_reasons(results), "bars": table_bars(results)}
    return PAGE.format(date=time.strftime("%Y-%m-%d"), machine=f"{platform.machine()}, {os.cpu_count()} processors",
                       plans=sum(m["plans"] for m in modes), violations=sum(m["violations"] for m in modes),
                       sample=f'"Alone" is a sample of {sample} random instructions of each module. ' if sample else "",
                       **{k: "\n".join(v) for k, v in lines.items()})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--build", default=os.path.join(root, "build"))
    parser.add_argument("--only", help="modules whose name contains this")
    parser.add_argument("--sample", type=int, help="number of random instructions of each module to ask about alone (default: all)")
    parser.add_argument("--rounds", type=int, default=20, help="number of batches of 1,000 (default 20)")
    parser.add_argument("--limit", type=int, default=300, help="seconds for each run of bench/coverage (default 300)")
    parser.add_argument("--raw", help="file for the figures as JSON")
    parser.add_argument("--write", help="file to write the page to (default: standard output)")
    args = parser.parse_args()
    tool = os.path.join(args.build, "bench", "coverage")
    rows = [(row, True) for row in PROGRAMS] + [(row, False) for row in PROGRAMS if row[1] in FIXED]
    results = []
    for row, aslr in rows:
        if args.only and args.only not in row[1]:
            continue
        results.append(measure(args, tool, row, aslr))
        if args.raw:
            with open(args.raw, "w", encoding="utf-8") as f:
                json.dump(results, f)
    text = page(results, args.sample)
    if args.write:
        with open(args.write, "w", encoding="utf-8") as f:
            f.write(text)
    else:
        print(text)
    return 0 if all(value >= bar for _, value, bar in bars(results)) else 1


if __name__ == "__main__":
    sys.exit(main())
