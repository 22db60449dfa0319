#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The time to resolve names in a program with 100 MB of debug information: `-t '*req'` at a function, an inlined one, a line.

    bench/run_debug.py [--build DIR] [--units N] [--rounds N] [--gdb]

Makes its own program: one unit with many types and functions, compiled once, assembled many times under other names. Cold: the file is not
in the page cache. Warm: as the run before left it. Beside each: the same with an address instead of a name, which is the time of any dry
run; the difference is the time to resolve.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time

TYPES, FUNCTIONS = 2500, 200
REQUEST = """\
#include <stdio.h>
#include <unistd.h>
struct request { int id; long len; const char *path; struct { int kind; unsigned flags; } hdr; struct request *next; };
static inline __attribute__((always_inline)) long weigh(struct request *req) { __asm__ volatile("" : "+r"(req)); return req->len * 3; }
__attribute__((noinline)) long handle(struct request *req, int n)
{
	__asm__ volatile("" : : "r"(req));
	return weigh(req) + n;
}
"""


def unit():
    kinds = ["unsigned", "short", "double", "char", "unsigned long", "int *"] * 2
    members = " ".join(f"{t} f{{0}}_{j};" for j, t in enumerate(kinds))
    out = []
    for i in range(TYPES):
        links = f"struct t{i - 1} *prev; struct t{i // 2} *half;" if i else ""
        out.append(f"struct t{i} {{ int a{i}; long len; char *name; {links} {members.format(i)} }};")
    for i in range(FUNCTIONS):
        out.append(f"static inline long in{i}(struct t{i * 3} *p, int n) {{ return p->len * n + p->f{i * 3}_0; }}")
    for i in range(FUNCTIONS):
        out.append(f"long fn{i}_UNITX(struct t{i} *req, int n) {{ long s = 0; for (int k = 0; k < n; k++) "
                   f"s += in{i}((void *)req, k) ^ in{i * 7 % FUNCTIONS}((void *)req, k) ^ (long)req->len; return s; }}")
    return "\n".join(out) + "\n"


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def build(directory, units):
    run = lambda *command, **kw: subprocess.run(command, check=True, cwd=directory, **kw)
    write(os.path.join(directory, "unit.c"), unit())
    run("gcc", "-O2", "-g3", "-fno-eliminate-unused-debug-types", "-S", "unit.c", "-o", "unit.s")
    with open(os.path.join(directory, "unit.s")) as f:
        text = f.read()
    for u in range(units):
        run("as", "-o", f"u{u}.o", "-", input=text.replace("UNITX", f"u{u}").replace('"unit.c"', f'"unit{u}.c"').encode())
    calls = "\n".join(f"extern long fn0_u{u}(void *, int);" for u in range(units))
    uses = " + ".join(f"fn0_u{u}(0, 0)" for u in range(units))
    write(os.path.join(directory, "main.c"), f"{REQUEST}{calls}\nint main(void) {{ struct request r = {{1, 2, \"/\", {{3, 4}}, 0}};\n"
          f"printf(\"%ld\\n\", handle(&r, 1) + {uses}); fflush(stdout); pause(); return 0; }}\n")
    run("gcc", "-O2", "-g3", "-c", "main.c", "-o", "main.o")
    objects = [f"u{u}.o" for u in range(units)]
    run("gcc", "-Wl,--build-id", *objects[: units // 2], "main.o", *objects[units // 2:], "-o", "big")
    return os.path.join(directory, "big")


def forget(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def once(tool, pid, *args):
    """(wall clock, processor time) in ms"""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([tool, "--pid", str(pid), *args, "--sink", "ring", "--dry-run", "--no-record"], capture_output=True, text=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stderr)
    return wall * 1e3, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def measure(tool, program, pid, rounds, *args):
    cold = []
    for _ in range(3):
        forget(program)
        cold.append(once(tool, pid, *args)[0])
    warm = [once(tool, pid, *args) for _ in range(rounds)]
    return statistics.median(cold), min(w for w, _ in warm), min(c for _, c in warm)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--units", type=int, default=140)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--gdb", action="store_true", help="ask gdb the same")
    args = parser.parse_args()
    tool = os.path.join(args.build, "dynprobe")
    directory = tempfile.mkdtemp(prefix="dynprobe-bench-")
    try:
        program = build(directory, args.units)
        print(f"{os.path.getsize(program) / 1e6:.0f} MB, {args.units + 1} units")
        p = subprocess.Popen([program], stdout=subprocess.PIPE)
        p.stdout.readline()
        address = next(x.split()[0] for x in subprocess.run(["nm", program], capture_output=True, text=True).stdout.splitlines() if x.endswith(" handle"))
        line = next(i + 1 for i, x in enumerate(REQUEST.splitlines()) if "return weigh" in x)
        _, floor, floor_cpu = measure(tool, program, p.pid, args.rounds, "--probe", f"big!0x{address}")
        for what, names in (("*req at a function", ("--function", "big!handle", "-t", "*req")), ("*req at an inlined one", ("--function", "big!weigh", "-t", "*req")),
                            ("*req at a line", ("--probe", f"big!main.c:{line}", "-t", "*req")), ("a cast to a struct", ("--function", "big!handle", "-t", "*(struct t77 *)req"))):
            cold, warm, cpu = measure(tool, program, p.pid, args.rounds, *names)
            print(f"{what}: cold {cold - floor:.0f} ms ({'meets' if cold - floor <= 1000 else 'MISSES'} <= 1 s), warm {warm - floor:.1f} ms "
                  f"({'meets' if warm - floor <= 50 else 'MISSES'} <= 50 ms), processor {cpu - floor_cpu:.1f} ms, above {floor:.1f} ms that any dry run takes")
        p.kill()
        p.wait()
        if args.gdb:
            start = time.perf_counter()
            subprocess.run(["gdb", "-batch", "-nx", "-ex", "break handle", "-ex", "ptype struct request", program], capture_output=True)
            print(f"gdb, break and ptype: {(time.perf_counter() - start) * 1e3:.0f} ms")
    finally:
        shutil.rmtree(directory)


main()
