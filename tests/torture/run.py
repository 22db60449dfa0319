#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Probe everything, compare everything: programs under torture must do exactly what they do without.

usage: run.py [--torture FILE] [--seconds S] [--seed X] [--batch N] [--keep DIR] [--markdown FILE] [PROGRAM...]

Each program runs once undisturbed, then again and again under torture for its share of the time; everything that it puts out is
compared. What differs is kept in DIR: the outputs, and the batches of instructions that were probed, for `torture --replay`.
"""

import argparse
import collections
import os
import pprint
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from box import Box, Mismatch  # noqa: E402
from programs import NEEDS, PROGRAMS  # noqa: E402


class Row:
    def __init__(self, name):
        self.name, self.runs, self.bad, self.seconds = name, 0, [], 0.0
        self.sum = collections.Counter()
        self.placed, self.refused, self.skipped = collections.Counter(), collections.Counter(), collections.Counter()

    def add(self, sums):
        for s in sums:
            self.sum.update({k: v for k, v in s.items() if isinstance(v, (int, float))})
            self.sum["pause_max"] = max(self.sum["pause_max"], s["pause_ms"])
            self.placed.update(s["placed"])
            self.refused.update(s["refused"])
            self.skipped.update(s["not_installed"])
            self.skipped.update(s["not_opened"])

    def cells(self):
        tactics = " ".join(f"{k} {v}" for k, v in self.placed.items() if v)
        refused = " ".join(f"{k[3:]} {v}" for k, v in self.refused.most_common())
        return [self.name, str(self.runs), str(int(self.sum["rounds"])), tactics or "-", refused or "-", str(int(self.sum["hits"])), str(len(self.bad))]


HEADER = ["program", "runs", "rounds", "sites placed", "refused", "hits recorded", "mismatches and crashes"]


def table(rows):
    lines = [HEADER, ["---"] * len(HEADER), *(r.cells() for r in rows)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def difference(want, got):
    a, b = pprint.pformat(want).splitlines(), pprint.pformat(got).splitlines()
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f"want {' '.join(a[at:at + 2])[:400]}\n      got  {' '.join(b[at:at + 2])[:400]}"


def keep(row, box, what, where, results=()):
    kept = os.path.join(where, f"{row.name.replace(' ', '-')}-{len(row.bad)}")
    shutil.copytree(box.dir, kept, dirs_exist_ok=True)
    for name, result in zip(("want", "got"), results):
        with open(os.path.join(kept, name), "w") as f:
            f.write(pprint.pformat(result, width=200))
    row.bad.append(what)
    print(f"  MISMATCH in {row.name}: {what}\n      kept in {kept}, seeds {box.first}..{box.seed}", flush=True)


def one_run(row, work, want, box, where):
    box.first = box.seed + 1
    try:
        got = work(box)
        if got != want:
            keep(row, box, difference(want, got), where, (want, got))
    except (Mismatch, OSError) as e:
        keep(row, box, f"{type(e).__name__}: {e}", where)
    row.runs += 1
    row.add(box.sums)


def fresh_runs(directory):
    for name in os.listdir(directory):
        if name.startswith("run-"):
            shutil.rmtree(os.path.join(directory, name))


def torture(name, options, seconds, seed):
    """Runs one program for its share of the time."""
    row, work = Row(name), PROGRAMS[name]
    with tempfile.TemporaryDirectory(prefix="torture-") as directory:
        begin = time.monotonic()
        want = work(Box(directory))
        if time.monotonic() - begin < 10 and (again := work(Box(directory))) != want:
            sys.exit(f"{name} does not do the same twice: {difference(want, again)}")
        begin = time.monotonic()
        while not row.runs or time.monotonic() - begin < seconds:
            fresh_runs(directory)
            box = Box(directory, options.torture, seed + 1000 * row.runs, options.batch, options.stay, options.option)
            box.quantum = min(seconds, 10)
            one_run(row, work, want, box, options.keep)
        row.seconds = time.monotonic() - begin
    return row


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--torture", default="build/tests/torture/torture")
    p.add_argument("--seconds", type=float, default=300, help="for all programs together")
    p.add_argument("--seed", type=int, default=int(time.time()) % 1000000 * 1000000)
    p.add_argument("--batch", type=int, default=500)
    p.add_argument("--stay", type=int, default=40, help="milliseconds that a batch stands")
    p.add_argument("--keep", default="torture-failures")
    p.add_argument("--markdown", help="file for the table")
    p.add_argument("--option", action="append", default=[], help="passed to torture")
    p.add_argument("program", nargs="*", help=", ".join(PROGRAMS))
    o = p.parse_args()
    o.torture = os.path.abspath(o.torture)
    return o


def chosen(options):
    names = options.program or [n for n in PROGRAMS if shutil.which(NEEDS.get(n, "sh"), path=os.environ["PATH"] + ":/usr/sbin")]
    names = [n for wanted in names for n in PROGRAMS if wanted in (n, n.split()[0] if n not in names and " -m " not in n else n)]
    for n in PROGRAMS:
        if not options.program and n not in names:
            print(f"  {n}: not installed, left out")
    return names


def main():
    options, rows = arguments(), []
    names = chosen(options)
    print(f"seed {options.seed}, {len(names)} programs, {options.seconds:.0f} s", flush=True)
    for i, name in enumerate(names):
        row = torture(name, options, options.seconds / len(names), options.seed + 1000000 * i)
        rows.append(row)
        print(f"  {row.seconds:5.1f} s  " + ", ".join(f"{h} {c}" for h, c in zip(HEADER, row.cells()))
              + f", longest pause {row.sum['pause_max']:.1f} ms, not planted {dict(row.skipped)}", flush=True)
    if options.markdown:
        with open(options.markdown, "w") as f:
            f.write(table(rows))
    bad = sum(len(r.bad) for r in rows)
    empty = [r.name for r in rows if not r.placed.total()]
    print(f"TORTURE {'OK' if not bad and not empty else 'BAD'}: {len(rows)} programs, {sum(r.placed.total() for r in rows)} sites, {bad} mismatches"
          + (f", nothing placed in {empty}" if empty else ""))
    return 1 if bad or empty else 0


if __name__ == "__main__":
    sys.exit(main())
