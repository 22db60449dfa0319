#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which instructions of a batch does it take? Halves a batch that makes a program fail, as long as one half alone still does.

usage: halve.py [--torture FILE] [--tries N] BATCH PROGRAM      (BATCH as kept by run.py; PROGRAM as run.py names it)
"""

import argparse
import sys
import tempfile

from box import Box, Mismatch
from programs import PROGRAMS


def fails(work, want, o, first, last):
    """Does the program fail in one of several tries with lines first to last of the batch?"""
    for _ in range(o.tries):
        with tempfile.TemporaryDirectory(prefix="halve-") as directory:
            box = Box(directory, o.torture, options=["--replay", o.batch, "--only", f"{first}-{last}", "--stay", "500"])
            box.quantum = 5
            try:
                if work(box) != want:
                    return True
            except (Mismatch, OSError):
                return True
    return False


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--torture", default="build/tests/torture/torture")
    p.add_argument("--tries", type=int, default=3)
    p.add_argument("batch")
    p.add_argument("program", choices=PROGRAMS)
    o = p.parse_args()
    work = PROGRAMS[o.program]
    with open(o.batch) as f:
        lines = [line for line in f if not line.startswith("#")]
    with tempfile.TemporaryDirectory(prefix="halve-") as directory:
        want = work(Box(directory))
    first, last = 0, len(lines) - 1
    if not fails(work, want, o, first, last):
        sys.exit(f"{o.program} does not notice this batch in {o.tries} tries")
    while first < last:
        middle = (first + last) // 2
        for a, b in ((first, middle), (middle + 1, last)):
            if fails(work, want, o, a, b):
                first, last = a, b
                break
        else:
            break
        print(f"lines {first} to {last}", flush=True)
    print("".join(lines[first:last + 1]), end="")


if __name__ == "__main__":
    main()
