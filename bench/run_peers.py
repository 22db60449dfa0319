#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dynprobe beside bpftrace, perf, uftrace, LTTng, gdb, strace, ltrace and systemtap, on the same programs in the same run: docs/peers.md.

    bench/run_peers.py [--build DIR] [--rounds N] [--only hits,places,redis] [--out DIR] [--from FILE]

Writes peers.md, peers-cost.svg and peers-pause.svg to --out (docs), and what was measured to DIR/peers.json; --from draws such a file again. One
round is the short form. As root, for uprobes; a tool that this machine cannot run is left out, and the page says why. Nothing is left behind:
tracefs is mounted in a mount namespace of this run, its uprobes are removed, and so are its processes.
"""

import argparse
import datetime
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time

from peers import hits, places, redis, report, tools
from peers.program import Program

MOUNTED = "DP_PEERS_MOUNTED"
TRACEFS = "/sys/kernel/tracing"


def own_mounts():
    """Root's run gets a mount namespace, with tracefs in it if there is none yet: its end unmounts that."""
    if os.geteuid() != 0:
        return
    if os.environ.get(MOUNTED) != "1":
        os.environ[MOUNTED] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, "-B", *sys.argv])
    if not os.path.exists(f"{TRACEFS}/uprobe_events"):
        subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACEFS], check=False)


def say(*words):
    print(*words, flush=True)


def short(result):
    """A result as a line of progress."""
    if "failed" in result:
        return "could not: " + result["failed"]
    figures = {k: f"{v:.4g}" for k, v in result.items() if isinstance(v, float)}
    figures |= {f"{k} thread(s)": f"{v:.4g} ns" for k, v in result.get("cost", {}).items()} if isinstance(result.get("cost"), dict) else {}
    return ", ".join([f"{k} {v}" for k, v in figures.items()] + [result["answer"], *result["notes"]])


def guarded(measure):
    """One row that goes wrong in a new way does not end the run: the page says so."""
    try:
        return measure()
    except Exception as e:  # pylint: disable=broad-except
        return {"failed": f"the measurement failed: {e!r}"}


class Rows:
    """What is measured, round by round: all tools in turn, so that a slow minute of the machine hits all of them."""

    def __init__(self):
        self.rows, self.todo, self.skipped = [], [], {}

    def add(self, row, times, measure):
        self.rows.append(row)
        self.todo.append((row, times, measure))

    def run(self, rounds, name):
        for turn in range(rounds):
            for row, times, measure in self.todo:
                if turn < times and not any("failed" in r for r in row["rounds"]):
                    began = time.monotonic()
                    row["rounds"].append(guarded(measure))
                    say(f"round {turn + 1}: {name(row)}: {short(row['rounds'][-1])}  [{time.monotonic() - began:.1f} s]")
        for row in self.rows:
            if row["rounds"] and "failed" in row["rounds"][0]:
                self.skipped[name(row)] = row["rounds"][0]["failed"]


def measure_hits(bench, rounds):
    rows = Rows()
    for way in tools.WAYS:
        if not tools.missing(way.tool):
            rows.add({"question": way.question, "tool": way.tool, "command": way.command, "rounds": []}, rounds, lambda way=way: hits.hit(way, bench))
    rows.run(rounds, lambda row: f"{row['tool']} ({row['question']})")
    return rows


def measure_places(bench, rounds):
    rows = Rows()
    for place, row, times in places.cases(rounds):
        if not tools.missing(place.tool):
            rows.add(row, times, lambda place=place, row=row: places.measure(place, row["places"], bench))
    rows.run(rounds, lambda row: f"{row['tool']}, {row['places']:,} place(s)")
    return rows


def measure_redis(bench, rounds):
    rows = Rows()
    for way in redis.WAYS if not redis.missing() else ():
        if not tools.missing(way.tool):
            rows.add({"tool": way.tool, "command": way.command, "rounds": []}, rounds, lambda way=way: redis.measure(way, bench))
    rows.run(rounds, lambda row: f"redis, {row['tool']}")
    if redis.missing():
        rows.skipped["redis-server"] = redis.missing()
    return rows


def machine():
    with open("/proc/cpuinfo") as f:
        model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), platform.machine())
    kind = "a virtual machine with " if "hypervisor" in open("/proc/cpuinfo").read() else ""
    with open("/etc/os-release") as f:
        system = next((line.split("=", 1)[1].strip().strip('"') for line in f if line.startswith("PRETTY_NAME=")), "Linux")
    return f"{kind}{os.cpu_count()} processors ({model}), Linux {platform.release().split('-')[0]}, {system}"


def versions(bench):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    commit = subprocess.run(["git", "-C", root, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    found = {"dynprobe": commit or "?"}
    return found | {name: tools.version(name) for name in tools.TOOLS if name != "gdb fast tracepoint" and not tools.missing(name)}


def bare_ns(bench):
    with Program(bench.program("program")) as program:
        return statistics.median(program.run(("bare", "bare"), 1, 8).bare)


def measure(args):
    bench = hits.Bench(args.build)
    parts = {"hits": measure_hits, "places": measure_places, "redis": measure_redis}
    data = {"date": datetime.date.today().isoformat(), "machine": machine(), "rounds": args.rounds, "versions": versions(bench), "bare_ns": bare_ns(bench)}
    skipped = {name: why for name in tools.TOOLS if (why := tools.missing(name))}
    try:
        for name, part in parts.items():
            rows = part(bench, args.rounds) if name in args.only.split(",") else Rows()
            data[name] = rows.rows
            skipped |= rows.skipped
    finally:
        hits.remove_perf_probes()
        places.remove_uprobes()
    return data | {"skipped": skipped}


def write(data, out):
    for name, text in (("peers.md", report.page(data)), ("peers-cost.svg", report.cost_chart(data)), ("peers-pause.svg", report.pause_chart(data))):
        with open(os.path.join(out, name), "w", encoding="utf-8") as f:
            f.write(text)
        say("wrote", os.path.join(out, name))


def wrong(data):
    """Rows of dynprobe whose answer was not the truth: the run fails then."""
    return [row["tool"] for name in ("hits", "places", "redis") for row in data[name] if row["tool"].startswith("dynprobe")
            for r in row["rounds"] if "failed" in r or r["equal"] is False]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="hits,places,redis")
    parser.add_argument("--out", default="docs")
    parser.add_argument("--from", dest="source")
    args = parser.parse_args()
    if args.source:
        with open(args.source) as f:
            write(json.load(f), args.out)
        return 0
    own_mounts()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    data = measure(args)
    with open(os.path.join(args.build, "peers.json"), "w") as f:
        json.dump(data, f, indent=1)
    write(data, args.out)
    for tool in wrong(data):
        say(f"{tool}: a wrong answer, see above")
    return 1 if wrong(data) else 0


if __name__ == "__main__":
    sys.exit(main())
