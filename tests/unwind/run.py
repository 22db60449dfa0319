#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Our backtraces and gdb's at the same stops of real programs, and which of them differ.

usage: run.py --build DIR [--stops N] [--seed X] [--keep DIR] [--markdown FILE] [PROGRAM...]

At each stop gdb says its frames, and `walk` those of the agent's unwinder, with the tables that dynprobe compiles. N stops for each
program (2,500). Stops that differ are kept as JSON lines in DIR. Ends with 0 if at least 99.9 % of all frames are the same.
"""

import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SHARE = 0.999

PYTHON = """
import json, re, sqlite3, zlib, hashlib, decimal, struct, ctypes, random, sys
random.seed(1)
words = [''.join(random.choice('abcdefgh ') for _ in range(random.randrange(40))) for _ in range(300)]
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
libc, compare = ctypes.CDLL(None), COMPARE(lambda a, b: a[0] - b[0])
def deep(n):
    return sorted(words, key=lambda w: -len(w))[0] if n == 0 else max(deep(n - 1), '')
while True:
    for w in words:
        json.loads(json.dumps({w: words[:20]}))
        re.sub(r'(a+)b|c*d', lambda m: m.group(0).upper(), w * 10)
    zlib.decompress(zlib.compress(''.join(words).encode() * 20))
    [h(''.join(words).encode()).hexdigest() for h in (hashlib.md5, hashlib.sha1, hashlib.sha256, hashlib.sha512, hashlib.sha3_256, hashlib.blake2b)]
    sum(decimal.Decimal(i) / 7 for i in range(100))
    values = (ctypes.c_int * 30)(*range(30, 0, -1))
    libc.qsort(values, 30, 4, compare)
    db = sqlite3.connect(':memory:')
    db.create_function('rev', 1, lambda s: s[::-1])
    db.execute('create table t(w)')
    db.executemany('insert into t values (?)', [(w,) for w in words])
    db.execute('select rev(w), count(*) from t group by 1 order by 1').fetchall()
    deep(12)
"""

SQL = """
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 600000)
  insert into t select i, printf('%08d-%s', i * 7919 % 100003, hex(i)), i / 7.0 from n;
create index i1 on t(b);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000)
  select count(*), sum(length(b)), group_concat(distinct substr(b, 1, 2)), avg(c) from t, n where n.i = t.a % 1000 and b like '%1%' and b glob '*[3-7]*';
"""

CXX = """
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>
int main(int argc, char **argv)
{
    std::map<std::string, std::vector<std::function<int(int)>>> m;
    std::unordered_map<std::string, std::regex> r;
    for (int i = 0; i < argc; i++) {
        m[argv[i]].push_back([i](int x) { return x * i; });
        r.emplace(argv[i], std::regex(argv[i]));
    }
    for (auto &[name, functions] : m)
        std::sort(functions.begin(), functions.end(), [](auto &a, auto &b) { return a(1) < b(2); });
    std::cout << m.size() << r.size() << std::endl;
}
"""

PARTS = "copies strings numbers clocks callbacks realigned jumps signals threads output".split()
HARD = ["strcoll", "clock_gettime", "gettimeofday", "on_signal", "thread"]
STACKS = ["part_contexts", "on_other_stack", "setcontext", "__start_context"]


def programs(build, directory):
    """{name: plan}"""
    def write(name, text):
        path = os.path.join(directory, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    targets = os.path.join(build, "tests", "targets")
    python = os.path.realpath(shutil.which("python3", path="/usr/bin:/usr/local/bin"))
    compiler = subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True).stdout.strip()
    source = write("work.cc", CXX)
    subprocess.run(["g++", "-E", source, "-o", source[:-1]], check=False)
    parts = ["part_" + p for p in PARTS]
    return {
        "python3": {"argv": [python, write("work.py", PYTHON)], "random": 1 << 20, "steps": 3},
        "sqlite3": {"argv": [shutil.which("sqlite3"), ":memory:", ".read " + write("work.sql", SQL)], "random": 1 << 20, "steps": 3},
        "C++: the compiler": {"argv": [compiler, "-quiet", "-O2", "-fpreprocessed", source[:-1], "-o", "/dev/null"], "random": 1 << 20, "steps": 3},
        "C++: nothing but exceptions": {"argv": [os.path.join(targets, "unwinding"), "exceptions"], "random": 1 << 20, "steps": 3},
        "libc, instruction by instruction": {"argv": [os.path.join(targets, "frames")], "at": parts + HARD + ["exit"]},
        "other stacks": {"argv": [os.path.join(targets, "frames")], "at": STACKS},
    }


def run(plan, build, directory):
    """The stops, a dictionary each. Stops at functions are spread evenly over the functions."""
    out, script = os.path.join(directory, "out"), os.path.join(directory, "plan")
    plan = dict({"steps": -(-plan["stops"] // len(plan.get("at", [0])))}, **plan)
    with open(script, "w") as f:
        json.dump(dict(plan, walk=os.path.join(build, "tests", "unwind", "backtrace_walk"), out=out), f)
    p = subprocess.run(["gdb", "-q", "-nx", "-batch", "-x", os.path.join(HERE, "stops.py")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, env=dict(os.environ, PLAN=script, LC_ALL="C.UTF-8", DEBUGINFOD_URLS=""), text=True, errors="replace")
    with open(out) as f:
        stops = [json.loads(line) for line in f]
    if p.returncode or not stops:
        raise RuntimeError(f"gdb ended with {p.returncode} after {len(stops)} stops:\n{p.stdout[-3000:]}")
    return stops


def alike(stop):
    """The number of equal frames, counted from the innermost one."""
    if stop["same"]:
        return stop["frames"]
    return next((i for i, (a, b) in enumerate(zip(stop["ours"], stop["theirs"])) if a != b), min(len(stop["ours"]), len(stop["theirs"])))


def astray(stop):
    """Is gdb's next frame after the first difference no code at all?"""
    n = alike(stop)
    return not stop["same"] and n < len(stop["theirs"]) and not stop["in_code"][n]


def percent(part, whole):
    return f"{100 * part / whole:.2f} %"


def table(rows):
    """rows: [(name, stops)]"""
    lines = ["| where | stops | all frames identical | gdb went on into data | other | frames | identical | share |", "| --- " * 8 + "|"]
    for name, stops in rows:
        counts = zip(*((s["same"], astray(s), max(s["frames"], len(s.get("ours", []))), alike(s)) for s in stops))
        same, data, frames, like = (sum(x) for x in counts)
        lines.append(f"| {name} | {len(stops):,} | {same:,} | {data:,} | {len(stops) - same - data:,} | {frames:,} | {like:,} | {percent(like, frames)} |")
    return "\n".join(lines) + "\n"


def by_kind(stops):
    kinds = collections.defaultdict(list)
    for s in stops:
        kinds[s["kind"]].append(s)
    return sorted(kinds.items(), key=lambda item: -len(item[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--stops", type=int, default=2500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep")
    parser.add_argument("--markdown")
    parser.add_argument("program", nargs="*")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for name, plan in programs(os.path.abspath(args.build), directory).items():
            if not args.program or name in args.program:
                rows.append((name, run(dict(plan, stops=args.stops, seed=args.seed), os.path.abspath(args.build), directory)))
                print(table(rows[-1:]).splitlines()[-1], flush=True)
    everything = [s for name, stops in rows for s in stops]
    text = table(rows + [("all", everything)]) + "\n" + table(by_kind(everything))
    print(text)
    if args.markdown:
        with open(args.markdown, "w") as f:
            f.write(text)
    if args.keep:
        os.makedirs(args.keep, exist_ok=True)
        with open(os.path.join(args.keep, "differences"), "w") as f:
            f.writelines(json.dumps(dict(s, program=name)) + "\n" for name, stops in rows for s in stops if not s["same"])
    return sum(alike(s) for s in everything) < SHARE * sum(s["frames"] for s in everything)


if __name__ == "__main__":
    sys.exit(main())
