# SPDX-License-Identifier: MIT
"""The expression compiler against gcc: expressions are generated, compiled by gcc into a library, and by expression_diff in its own memory.

python3 diff.py EXPRESSION_DIFF [--seconds S]: without seconds a few fixed seeds and one at random; a difference names the seed.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# -z now: the table of calls must not change while a case is computed.
FLAGS = ["-g", "-w", "-std=gnu11", "-fwrapv", "-fno-strict-aliasing", "-Wl,-z,now"]
FIXED = ((1, "-O0"), (2, "-O2"))
COUNT, LONG_COUNT, ROUNDS = 150, 600, 8


def build(output, seed, count, *flags, options=()):
    """gcc's view of `count` expressions of a seed."""
    cases = output + ".c"
    with open(cases, "w") as f:
        subprocess.run([sys.executable, "-B", os.path.join(HERE, "generate.py"), "--seed", str(seed), "--count", str(count), *options],
                       stdout=f, check=True)
    subprocess.run(["gcc", *FLAGS, *flags, "-I", HERE, "-o", output, cases, "-lm"], check=True)


def run(diff, seed, count, level):
    with tempfile.TemporaryDirectory() as d:
        library = os.path.join(d, "cases.so")
        build(library, seed, count, level, "-fPIC", "-shared")
        done = subprocess.run([diff, library, str(ROUNDS), str(seed)], capture_output=True, text=True, timeout=300)
    print(f"seed {seed} {level}: {done.stdout.strip()}", flush=True)
    if done.returncode:
        sys.exit(f"{done.stderr}\nAgain: python3 {' '.join(sys.argv[:2])} --seed {seed} --level={level} --count {count}; it ended with {done.returncode}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("diff")
    p.add_argument("--seconds", type=float)
    p.add_argument("--seed", type=int)
    p.add_argument("--count", type=int, default=LONG_COUNT)
    p.add_argument("--level", default="-O0")
    a = p.parse_args()
    if a.seed is not None:
        run(a.diff, a.seed, a.count, a.level)
        return
    if a.seconds is None:
        for seed, level in FIXED:
            run(a.diff, seed, COUNT, level)
        run(a.diff, random.randrange(1 << 32), COUNT, "-O0")
        return
    end = time.monotonic() + a.seconds
    while time.monotonic() < end:
        run(a.diff, random.randrange(1 << 32), LONG_COUNT, random.choice(["-O0", "-O1", "-O2"]))


if __name__ == "__main__":
    main()
