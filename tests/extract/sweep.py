#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The long form of e2e/snapshot_gdb: many ways to compile, and programs that are there; a table for docs/snapshots-gdb.md.

sweep.py --dump extract_dump [--only TEXT] [--lines]
"""
import argparse
import os
import shutil
import signal
import subprocess
import tempfile
import time

import compare

HERE = os.path.dirname(os.path.abspath(__file__))
C = ["shapes.c", "tails.c", "features.c"]
CXX = ["shapes.cc", "features.cc"]
WAYS = [
    ("gcc", C, ["-O0"]), ("gcc", C, ["-Og"]), ("gcc", C, ["-O1"]), ("gcc", C, ["-O2"]), ("gcc", C, ["-O3", "-march=native"]),
    ("gcc", C, ["-O2", "-fno-omit-frame-pointer", "-gdwarf-4"]), ("gcc", C, ["-O2", "-static-pie"]), ("gcc", C, ["-O2", "-flto"]),
    ("gcc", C, ["-O2", "-gz"]), ("gcc", C, ["-O2", "-fdebug-types-section"]), ("gcc", C, ["-O2", "stripped"]),
    ("gcc", C, ["-O2", "-no-pie", "-static"]), ("gcc", C, ["-Os", "-gsplit-dwarf"]),
    ("clang", C, ["-O0"]), ("clang", C, ["-O1"]), ("clang", C, ["-O2"]), ("clang", C, ["-O3", "-gdwarf-4"]),
    ("g++", CXX, ["-O0"]), ("g++", CXX, ["-Og"]), ("g++", CXX, ["-O1"]), ("g++", CXX, ["-O2"]), ("g++", CXX, ["-O3"]),
    ("g++", CXX, ["-O2", "-fdebug-types-section"]), ("g++", CXX, ["-O2", "-gdwarf-4", "-gz"]), ("g++", CXX, ["-O2", "-flto"]),
    ("clang++", CXX, ["-O0"]), ("clang++", CXX, ["-O1"]), ("clang++", CXX, ["-O2"]), ("clang++", CXX, ["-O2", "-gdwarf-4"]),
]


def build(directory, compiler, source, options):
    path = os.path.join(directory, "program")
    language = ["-std=c++20"] if source.endswith(".cc") else []
    flags = [o for o in options if o.startswith("-")]
    subprocess.run([compiler, "-g", "-w", *language, *flags, "-o", path, os.path.join(HERE, source), "-pthread"], check=True, cwd=directory)
    if "stripped" in options:
        subprocess.run(["objcopy", "--only-keep-debug", path, path + ".debug"], check=True)
        subprocess.run(["strip", path], check=True)
        subprocess.run(["objcopy", "--add-gnu-debuglink=" + path + ".debug", path], check=True)
    return [path]


def real_programs(directory):
    """Installed programs: debug information is their own, or that of the libraries that they wait in."""
    program = "import threading, time\ndef f(n):\n  if n: return f(n - 1)\n  time.sleep(1000)\n" \
              "threading.Thread(target=f, args=(5,), daemon=True).start()\nf(9)\n"
    return [
        ("python3", ["python3", "-c", program]), ("/usr/bin/python3", ["/usr/bin/python3", "-c", program]),
        ("redis-server", ["redis-server", "--port", "0", "--unixsocket", directory + "/redis", "--save", ""]),
        ("nginx", ["nginx", "-p", directory, "-c", "/dev/null", "-g", "daemon off; events {} pid %s/pid; error_log stderr;" % directory]),
        ("sqlite3", ["sqlite3", "-interactive"]), ("bash", ["bash", "-c", "sleep 1000; true"]), ("zstd", ["zstd", "-T2", "-c"]),
        ("cc1plus", ["g++", "-pipe", "-x", "c++", "-S", "-o", "/dev/null", "-"]),
    ]


def settle(pid):
    """Waits until its number of threads is stable."""
    last = 0
    for _ in range(50):
        time.sleep(0.2)
        now = len(os.listdir("/proc/%d/task" % pid))
        if now == last:
            return
        last = now


def one(o, name, command, total):
    try:
        p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    except OSError:
        return
    try:
        settle(p.pid)
        t = compare.compare(o.dump, p.pid)
    except (SystemExit, FileNotFoundError) as e:
        print("%s: not compared: %s" % (name, str(e)[:300]), flush=True)
        return
    finally:
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
    reasons = ", ".join("%s %d" % r for r in sorted(t.reasons.items()))
    print("| %s | %d | %d | %d | %d | %s |" % (name, t.frames_equal, t.frames_different, t.equal, t.different, reasons), flush=True)
    for line in t.lines if o.lines else []:
        print("   " + line[:600], flush=True)
    for key, n in (("fe", t.frames_equal), ("fd", t.frames_different), ("ve", t.equal), ("vd", t.different)):
        total[key] = total.get(key, 0) + n
    for key, n in t.reasons.items():
        total.setdefault("reasons", {})[key] = total.get("reasons", {}).get(key, 0) + n


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--dump", required=True)
    p.add_argument("--only", default="")
    p.add_argument("--programs", action="store_true", help="only the programs that are there")
    p.add_argument("--lines", action="store_true", help="print the differences")
    o = p.parse_args()
    total = {}
    with tempfile.TemporaryDirectory() as directory:
        for compiler, sources, options in [] if o.programs else WAYS:
            for source in sources:
                name = " ".join([compiler, *options, source])
                if o.only in name and shutil.which(compiler):
                    one(o, name, build(directory, compiler, source, options), total)
        for name, command in real_programs(directory):
            if o.only in name and shutil.which(command[0]):
                one(o, name, command, total)
    print(total)


if __name__ == "__main__":
    main()
