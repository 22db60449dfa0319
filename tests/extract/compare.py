#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Frames and values of a process that stands still: ours against gdb's.

compare.py --dump extract_dump PID    prints what differs, and the share that is equal
"""
import argparse
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def parse(text):
    """{tid: [frame]}, a frame is {"pc", "name", "line", "inline", "vars": [(name, value)]}"""
    threads, frames, frame = {}, None, None
    for line in text.splitlines():
        part = line.split("\t")
        if part[0] == "T" and len(part) >= 3:
            frames = threads[int(part[1])] = []
        elif part[0] == "F" and len(part) == 7 and frames is not None:
            frame = {"pc": part[3], "name": part[4], "line": int(part[6]), "inline": part[2] == "1", "vars": [], "jumped": False, "clobbered": set()}
            frames.append(frame)
        elif part[0] == "K" and frame is not None:
            for f in frames:
                f["jumped"] |= f["pc"] == frame["pc"]
        elif part[0] == "V" and len(part) >= 4 and frame is not None:
            frame["vars"].append((part[2], part[3]))
            if len(part) > 4:
                frame["clobbered"].add(part[2])
    return threads


def gdb_says(pid):
    r = subprocess.run(["gdb", "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-p", str(pid), "-x",
                        os.path.join(HERE, "gdb_dump.py")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       errors="replace", timeout=300)
    return parse(r.stdout)


def we_say(dump, pid):
    r = subprocess.run([dump, str(pid), "rehearse"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=300)
    if r.returncode:
        raise SystemExit("extract_dump: " + r.stderr)
    return parse(r.stdout), r.stderr.strip()


def bare(name):
    name = re.sub(r"\(.*$", "", name)
    name = re.sub(r"( \[clone .*\]|\.(constprop|part|isra|cold).*)$", "", name)
    return name.split("@")[0].split("::")[-1].lstrip("_")


# What gdb says is not there: we may know why in other words, but may not show a value.
ABSENT = re.compile(r"^(<[^>]*>|\{(([^,{}]* = )?(<[^>]*>|\{.*\})(, )?)*\})$")


def is_absent(value):
    """No part of it is there."""
    return value is not None and bool(ABSENT.match(value)) and not re.search(r"[^a-z>.}]", re.sub(r"<[^>]*>|[\w.]* = |[{}, .]", "", value))


def is_zero_where_nothing_is(gdb, ours):
    """Where a list of pieces ends early, gdb says 0: the debug information says that there is nothing."""
    if ours == "<optimized out>" and gdb.endswith(" + 0i"):
        return True
    g, o = gdb.split(", "), (ours or "").split(", ")
    return len(g) == len(o) and all(a == b or ("<optimized out>" in b and a.strip("{}") in ("0", "0x0")) for a, b in zip(g, o))


class Tally:
    def __init__(self):
        self.equal = self.different = 0
        self.frames_equal = self.frames_different = self.unlisted = 0
        self.kinds, self.reasons = {}, {}
        self.lines = []

    def differ(self, kind, what):
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        self.lines.append("%s: %s" % (kind, what))

    def explained(self, gdb, ours, name, value, got):
        """Differences that are gdb's. Callers that jumped on to the function, which gdb makes up as frames: what they passed we leave out. And
        what an inlined copy was passed at the call of the function around it, gdb reads in the wrong frame: it says otherwise there."""
        if name in gdb["clobbered"] and got is not None and "optimized out" in got:
            return "clobbered"
        if value == "VLA" and got is not None:
            return "length at run time"
        if is_zero_where_nothing_is(value, got):
            return "pieces"
        if gdb["jumped"] and is_absent(got):
            return "jumped"
        around = gdb.get("around")
        if gdb["inline"] and around and (name, got) in around["vars"]:
            return "inlined"
        if "not available on integers of more than 8 bytes" in value:
            return "wide"
        return None

    def value(self, where, name, gdb, ours):
        if gdb == ours or (is_absent(gdb) and is_absent(ours)):
            self.equal += 1
            return
        if ours is None and is_absent(gdb):
            self.unlisted += 1  # without a value anyway: gdb counts lost labels among variables
            return
        self.different += 1
        kind = "missing" if ours is None else "wrong"
        if is_absent(ours):
            kind = "only gdb"
        elif is_absent(gdb):
            kind = "only we"
        self.differ(kind, "%s %s: gdb %.200s, we %.200s" % (where, name, gdb, ours))

    def frame(self, where, gdb, ours):
        if gdb["pc"] != ours["pc"] or gdb["inline"] != ours["inline"]:
            self.frames_different += 1
            self.differ("frame", "%s: gdb %s %s, we %s %s" % (where, gdb["pc"], gdb["name"], ours["pc"], ours["name"]))
            return False
        if bare(gdb["name"]) != bare(ours["name"]) and "signal handler" not in gdb["name"]:
            self.differ("name", "%s: gdb %s, we %s" % (where, gdb["name"], ours["name"]))
        if gdb["line"] != ours["line"] and gdb["line"]:
            self.differ("line", "%s %s: gdb %d, we %d" % (where, gdb["name"], gdb["line"], ours["line"]))
        self.frames_equal += 1
        pool = list(ours["vars"])
        for name, value in gdb["vars"]:
            same = [v for v in pool if v[0] == name]
            best = next((v for v in same if v[1] == value), same[0] if same else None)
            if best:
                pool.remove(best)
            got = best[1] if best else None
            why = value != got and self.explained(gdb, ours, name, value, got)
            if why:
                self.reasons[why] = self.reasons.get(why, 0) + 1
            else:
                self.value(where + " " + gdb["name"], name, value, got)
        return True

    def thread(self, tid, gdb, ours):
        for i, g in enumerate(gdb):
            g["around"] = next((f for f in gdb[i + 1:] if not f["inline"] and f["pc"] == g["pc"]), None)
            where = "%d#%d" % (tid, i)
            if i >= len(ours):
                self.frames_different += 1
                self.differ("frame", "%s: gdb %s, we end" % (where, g["name"]))
                return
            if not self.frame(where, g, ours[i]):
                return
        for o in ours[len(gdb):]:
            self.differ("more", "%d: we have %s as well" % (tid, o["name"]))


def compare(dump, pid):
    tally = Tally()
    gdb = gdb_says(pid)
    ours, measure = we_say(dump, pid)
    for tid, frames in gdb.items():
        tally.thread(tid, frames, ours.get(tid, []))
    tally.measure = measure
    return tally


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--dump", required=True)
    p.add_argument("pid", type=int)
    o = p.parse_args()
    t = compare(o.dump, o.pid)
    for line in t.lines[:60]:
        print(line)
    total = t.equal + t.different
    print("frames: %d equal, %d different; values: %d equal of %d (%.3f %%); %s; explained %s; %s" %
          (t.frames_equal, t.frames_different, t.equal, total, 100.0 * t.equal / max(total, 1), t.kinds, t.reasons, t.measure))


if __name__ == "__main__":
    main()
