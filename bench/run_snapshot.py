#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Measures snapshots: run_snapshot.py --build BUILD [--threads 100] [--depth 43] [--mib 1024 | --program NAME] [--rounds 20].

The target is tests/targets/crowd, or a program under its own load, whose answers are checked. Each pause is compared with the floor of
the same run: stopping all threads and reading their registers and stacks with the fewest possible ptrace calls, and fork() of a process
of that size. Sizes and times are compared with gdb's text.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import snapshot_programs


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--build", default="build")
    p.add_argument("--threads", type=int, default=100)
    p.add_argument("--depth", type=int, default=43)
    p.add_argument("--mib", type=int, default=1024)
    p.add_argument("--program", choices=sorted(snapshot_programs.PROGRAMS))
    p.add_argument("--rounds", type=int, default=20)
    p.add_argument("--no-gdb", action="store_true")
    return p.parse_args()


def start(a):
    out = tempfile.TemporaryFile()
    p = subprocess.Popen([f"{a.build}/tests/targets/crowd", str(a.threads), str(a.depth), str(a.mib)], stdout=out)
    while b"READY" not in os.pread(out.fileno(), 1 << 20, 0):
        if p.poll() is not None:
            sys.exit("the target ended")
        time.sleep(0.05)
    return p, out


def show(name, values, unit="ms"):
    values = sorted(values)
    p99 = values[min(len(values) - 1, int(len(values) * 0.99))]
    print(f"{name:42} median {statistics.median(values):9.2f}  p99 {p99:9.2f}  least {values[0]:9.2f} {unit}")
    return statistics.median(values)


def snapshot(a, pid, mode, path, cache, *more):
    """(pause, time of the command, its peak memory in MiB, its processor time); `cache`: directory for unpacked debug information"""
    begin = time.monotonic()
    p = subprocess.Popen([f"{a.build}/dynprobe", "snapshot", str(pid), "--mode", mode, "-v", "-o", path, *more], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=dict(os.environ, XDG_CACHE_HOME=cache))
    err = p.stderr.read()
    _, wait_status, usage = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(wait_status)
    whole = (time.monotonic() - begin) * 1000
    if p.returncode:
        sys.exit(err)
    pause = float(re.search(r"stopped for ([0-9.]+) ms", err).group(1))
    if mode not in err:
        print(err, file=sys.stderr)
    return pause, whole, usage.ru_maxrss / 1024, (usage.ru_utime + usage.ru_stime) * 1000


def floor(a, *args):
    return float(subprocess.run([f"{a.build}/bench/stop_floor", *map(str, args)], capture_output=True, text=True, check=True).stdout)


def gdb(pid):
    begin = time.monotonic()
    text = subprocess.run(["gdb", "-nx", "-batch", "-p", str(pid), "-ex", "thread apply all bt full"], capture_output=True).stdout
    return (time.monotonic() - begin) * 1000, len(text)


def modes(a, pid, directory):
    found = {"floor": [], "fork": []}
    path = os.path.join(directory, "s.dps")
    for mode in ("quick", "stop", "fork"):
        runs = []
        for _ in range(a.rounds):
            runs.append(snapshot(a, pid, mode, path, os.path.join(directory, "cache")))
            found["floor"].append(floor(a, pid, 16384))  # interleaved, so that both see the same machine
            if mode == "fork":
                found["fork"].append(floor(a, "fork", a.mib))
        show(f"pause, mode {mode}", [r[0] for r in runs])
        show(f"whole time, mode {mode}", [r[1] for r in runs])
        show(f"processor time, mode {mode}", [r[3] for r in runs])
        show(f"peak memory of the tool, mode {mode}", [r[2] for r in runs], "MiB")
        print(f"{'file':42} {os.path.getsize(path):12} bytes")
    runs = [snapshot(a, pid, "stop", path, os.path.join(directory, f"cold-{n}")) for n in range(a.rounds)]
    show("whole time, nothing kept yet", [r[1] for r in runs])
    show("processor time, nothing kept yet", [r[3] for r in runs])
    show("floor: stop, registers, 16 KiB of each stack", found["floor"])
    show(f"floor: fork() of {a.mib} MiB", found["fork"])


def resident_mib(pid):
    with open(f"/proc/{pid}/statm") as f:
        return max(1, int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20)


def of_program(a):
    with tempfile.TemporaryDirectory() as directory:
        program = snapshot_programs.start(a.program, a.build, directory)
        try:
            time.sleep(1)  # until it is under load
            a.mib = resident_mib(program.pid)  # the size for the floor of fork()
            threads = len(os.listdir(f"/proc/{program.pid}/task"))
            print(f"{a.program}: {threads} threads, {a.mib} MiB; load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
            modes(a, program.pid, directory)
        finally:
            wrong = program.finish()
    print(f"the program: {'; '.join(wrong) if wrong else 'OK'}, {program.checked} answers compared")
    return bool(wrong)


def main():
    a = arguments()
    if not os.path.exists(f"{a.build}/bench/stop_floor"):
        subprocess.run(["cmake", "--build", a.build, "--target", "stop_floor", "target_crowd"], check=True, stdout=subprocess.DEVNULL)
    if a.program:
        return of_program(a)
    target, out = start(a)
    print(f"{a.threads} threads, {a.depth} frames each, {a.mib} MiB touched; load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    try:
        with tempfile.TemporaryDirectory() as directory:
            modes(a, target.pid, directory)
        if not a.no_gdb:
            took, size = gdb(target.pid)
            print(f"{'gdb, thread apply all bt full':42} {took:9.0f} ms {size:12} bytes")
    finally:
        target.terminate()
        target.wait()
    result = os.pread(out.fileno(), 1 << 20, 0).decode().splitlines()[-1]
    print(f"the target: {result}")
    return "OK" not in result


if __name__ == "__main__":
    sys.exit(main())
