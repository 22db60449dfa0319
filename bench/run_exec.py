#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What --program and --follow add to an exec: of another program, and of one that gets probes. Times are medians of fork to exit.

    bench/run_exec.py [--build DIR] [--rounds N]

Needs root. Watched and unwatched starts alternate in blocks, so that both meet the same load.
"""

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

BLOCK = 40
SOURCE = "__attribute__((noipa)) int foo(int a) { return a + 1; }\nint main(void) { return foo(0) != 1; }\n"


def starts(path):
    """Microseconds of each start."""
    took = []
    for _ in range(BLOCK):
        begin = time.monotonic_ns()
        pid = os.posix_spawn(path, [path], {})
        if os.waitpid(pid, 0)[1]:
            raise SystemExit(f"{path} failed")
        took.append((time.monotonic_ns() - begin) / 1000)
    return took


def watch(build, *args):
    tool = subprocess.Popen([os.path.join(build, "dynprobe"), "--no-record", "-f", "json", "-o", os.devnull, "--sink", "ring", "--function", "foo", *args],
                            stderr=subprocess.PIPE, text=True)
    for line in tool.stderr:
        if "waiting for" in line or "following" in line:
            return tool
    raise SystemExit("dynprobe ended early")


def compare(build, name, path, *args, most=None):
    without, within = [], []
    for _ in range(rounds):
        without += starts(path)
        tool = watch(build, *args)
        within += starts(path)
        tool.send_signal(signal.SIGINT)
        tool.wait()
    a, b = statistics.median(without), statistics.median(within)
    verdict = "" if most is None else f"  {'meets' if b - a <= most else 'MISSES'} <= {most} us more"
    print(f"{name}: {a:.0f} us without, {b:.0f} us with dynprobe: ratio {b / a:.3f}, {b - a:+.0f} us{verdict}")


parser = argparse.ArgumentParser()
parser.add_argument("--build", default="build")
parser.add_argument("--rounds", type=int, default=10)
options = parser.parse_args()
rounds = options.rounds
with tempfile.TemporaryDirectory() as folder:
    foo, other = os.path.join(folder, "foo"), os.path.join(folder, "other")
    subprocess.run(["cc", "-O2", "-x", "c", "-", "-o", foo], input=SOURCE, text=True, check=True)
    shutil.copy(foo, other)
    sleeper = subprocess.Popen(["sleep", "1000"])
    compare(options.build, "--program, another program", other, "--program", foo, most=20)
    compare(options.build, "--program, the program itself", foo, "--program", foo, most=3000)
    compare(options.build, "--follow, a process that is not followed", other, "--follow", "--pid", str(sleeper.pid))
    sleeper.kill()
    sleeper.wait()
