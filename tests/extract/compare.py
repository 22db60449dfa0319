#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Frames and values of a process that stands still: ours against gdb's.

compare.py --dump extract_dump PID    prints what differs, and the share that is equal

What is counted: every frame and every variable that gdb or we list. A frame is equal if pc, kind, function, file and line are. A variable
is equal if its text is, or if both say that no part of it is there. A variable or frame that only one of both lists is a difference. A
difference is set aside only for a reason of REASONS, each with its own test, and how many were is printed beside the share.
"""
import argparse
import difflib
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

REASONS = {
    "clobbered": "gdb shows what a register that calls do not preserve holds now; we say that it is lost",
    "passed": "what an inlined copy has of what the function around it was passed, gdb reads in the wrong frame; we show what gdb has in that function",
    "unending": "where a list of pieces ends early, gdb shows 0; we say that nothing is there",
    "gives up": "gdb ends in an error of its own where we have a value",
    "copies": "of a function that has jumped on, gdb shows the innermost inlined copy alone; we show the function around it as well",
    "hidden": "gdb lists parameters of the compiler's own (__in_chrg) of a copy that are not passed to it, without a value",
    "unnamed": "gdb does not list parameters without a name",
    "line": "two lines begin at that address: gdb shows the one that is marked as a statement, we the last, whose code it is",
}


COPY, TAIL = "1", "2"


def parse(text):
    """{tid: [frame]}, a frame is {"pc", "kind", "name", "path", "line", "lines", "vars": [(name, value, marks)]}; kind "1": an inlined copy,
    "2": it has jumped on; lines: all that begin where the code of "line" does"""
    threads, frames = {}, None
    for line in text.splitlines():
        part = line.split("\t")
        if part[0] == "T" and len(part) >= 3:
            frames = threads[int(part[1])] = []
        elif part[0] == "F" and len(part) >= 7 and frames is not None:
            frames.append({"kind": part[2], "pc": part[3], "name": part[4], "path": os.path.basename(part[5]), "line": int(part[6]),
                           "lines": [int(n) for n in part[7].split()] if len(part) > 7 else [], "vars": []})
        elif part[0] == "V" and len(part) >= 4 and frames:
            frames[-1]["vars"].append((part[2], part[3], part[4].split() if len(part) > 4 else []))
    return threads


def gdb_says(pid):
    r = subprocess.run(["gdb", "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-p", str(pid), "-x",
                        os.path.join(HERE, "gdb_dump.py")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       errors="replace", timeout=300)
    got = parse(r.stdout)
    if not got or "Traceback" in r.stderr:
        raise SystemExit("gdb: " + r.stderr)
    return got


def we_say(dump, pid):
    r = subprocess.run([dump, str(pid), "rehearse"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=300)
    if r.returncode:
        raise SystemExit("extract_dump: " + r.stderr)
    return parse(r.stdout), r.stderr.strip()


# ---- names -------------------------------------------------------------------------------------------------------------------


def without(text, opening, closing):
    """Removes the text in such brackets, at any depth."""
    out, depth = [], 0
    for c in text:
        depth += c == opening
        if not depth:
            out.append(c)
        depth -= c == closing and depth > 0
    return "".join(out)


def components(name):
    """A function's qualified name without parameters and template arguments."""
    name = re.sub(r"operator(\(\)|<<=?|>>=?|<=>?|>=?|->\*?|<(?!\w))", lambda m: "operator" + "".join("%02x" % ord(c) for c in m.group(1)), name)
    name = re.sub(r"\.\d+$", "", name)  # a nested function of gcc's
    name = re.sub(r"( \[clone .*\]|\.(constprop|part|isra|cold|llvm|lto_priv).*)$", "", name)
    name = without(without(name, "(", ")"), "<", ">")
    name = re.sub(r"\{lambda\}?#?\d*\}?", "{lambda}", name).replace(" const", "").split("@")[0]
    return [p.strip().split(" ")[-1] for p in name.split("::") if p.strip()]


def is_same_name(a, b):
    a, b = components(a), components(b)
    n = min(len(a), len(b))
    return a[len(a) - n:] == b[len(b) - n:]


class Symbols:
    """Treats two names of one function as equal, by the symbol tables of the mapped files."""

    def __init__(self, pid):
        self.pid, self.values = pid, None

    def load(self):
        self.values = {}
        with open("/proc/%d/maps" % self.pid) as f:
            files = {line.split()[5] for line in f if " r-xp " in line and len(line.split()) > 5 and line.split()[5].startswith("/")}
        for path in files:
            notes = subprocess.run(["readelf", "-n", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
            ident = re.search(r"Build ID: ([0-9a-f]+)", notes)
            other = glob.glob("/usr/lib/debug/.build-id/%s/%s.debug" % (ident.group(1)[:2], ident.group(1)[2:])) if ident else []
            for each in [path] + other:
                self.add(path, each)

    def add(self, module, path):
        for flag in ([], ["-D"]):
            out = subprocess.run(["nm", *flag, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
            for m in re.finditer(r"^([0-9a-f]{8,}) [a-zA-Z] (\S+)$", out, re.M):
                self.values.setdefault(m.group(2).split("@")[0], set()).add((module, m.group(1)))

    def same(self, a, b):
        if self.values is None:
            self.load()
        return bool(self.values.get(a, set()) & self.values.get(b, set()))


# ---- values ------------------------------------------------------------------------------------------------------------------

# Values that gdb reports as missing: our reason may be worded differently, but we must not show a value.
ABSENT = re.compile(r"^(<[^>]*>|\{(([^,{}]* = )?(<[^>]*>|\{.*\})(, )?)*\})$")


def is_absent(value):
    """No part of the value is available."""
    return value is not None and bool(ABSENT.match(value)) and not re.search(r"[^a-z>.}]", re.sub(r"<[^>]*>|[\w.$]* = |[{}, .]", "", value))


GIVES_UP = re.compile(r"<[Cc]annot access memory[^>]*>")
MARK = re.compile(r"<[^<>]*>")


def is_same(gdb, ours):
    """Equal, except for the reason why a part is missing."""
    if (gdb, ours) == ("0", "0x0"):  # std::nullptr_t, which gdb reads as an int
        return True
    return MARK.sub("<>", gdb) == MARK.sub("<>", ours) or (is_absent(gdb) and is_absent(ours))


def is_unending(gdb, ours):
    if ours == "<optimized out>" and gdb.endswith(" + 0i"):
        return True
    g, o = gdb.split(", "), ours.split(", ")
    return len(g) == len(o) and all(a == b or ("<optimized out>" in b and re.sub(r"^.* = ", "", a).strip("{}") in ("0", "0x0")) for a, b in zip(g, o))


def why_set_aside(value, marks, ours, around):
    if "clobbered" in marks and is_absent(ours):
        return "clobbered"
    if "passed" in marks and around and ours in [v[1] for v in around["vars"]]:
        return "passed"
    if is_unending(value, ours):
        return "unending"
    pattern = GIVES_UP.sub("@", value)
    if pattern != value and re.fullmatch(re.escape(pattern).replace("@", ".*"), ours):
        return "gives up"
    return None


def in_blocks(gdb, ours):
    """Within one block gdb's order is arbitrary: moves ours to the equal ones."""
    out, rest = [], list(ours)
    while len(out) < len(gdb) and rest:
        block = [v for v in gdb[len(out):] if v[2][:1] == gdb[len(out)][2][:1]]
        mine, rest = rest[:len(block)], rest[len(block):]
        for g in block:
            fit = next((v for v in mine if is_same(g[1], v[1])), mine[0] if mine else None)
            if fit:
                mine.remove(fit)
                out.append(fit)
    return out + rest


def kind_of(gdb, ours):
    if gdb is None or ours is None:
        return "not listed by us" if ours is None else "not listed by gdb"
    return "only gdb" if is_absent(ours) else "only we" if is_absent(gdb) else "wrong"


class Tally:
    def __init__(self):
        self.equal = self.different = 0
        self.frames_equal = self.frames_different = 0
        self.kinds, self.reasons = {}, {}
        self.lines, self.aside = [], []
        self.symbols = self.measure = None
        self.tails = 0

    def total(self):
        return self.equal + self.different

    def differ(self, kind, what):
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        self.lines.append("%s: %s" % (kind, what))

    def value(self, where, name, gdb, ours, around=None):
        """gdb, ours: (name, value, marks), or None if it is not listed; around: gdb's frame of the function around a copy."""
        g, o = gdb and gdb[1], ours and ours[1]
        if not name and not gdb:
            self.set_aside("unnamed", where)
            return
        if not ours and name.startswith("__") and is_absent(g):
            self.set_aside("hidden", "%s %s" % (where, name))
            return
        if gdb and ours and is_same(g, o):
            self.equal += 1
            return
        why = gdb and ours and why_set_aside(g, gdb[2], o, around)
        what = "%s %s: gdb %.300s, we %.300s" % (where, name, g, o)
        if why:
            self.set_aside(why, what)
            return
        self.different += 1
        self.differ(kind_of(g, o), what)

    def values(self, where, gdb, ours, around=None):
        """gdb begins with the innermost block, we end with it: this pairs variables of the same name."""
        for name in dict.fromkeys([v[0] for v in gdb + ours]):
            a, b = [v for v in gdb if v[0] == name], [v for v in reversed(ours) if v[0] == name]
            b = in_blocks(a, b)
            for i in range(max(len(a), len(b))):
                self.value(where, name, a[i] if i < len(a) else None, b[i] if i < len(b) else None, around)

    def is_same_place(self, gdb, ours):
        wrong = []
        if "signal handler" not in gdb["name"] and not is_same_name(gdb["name"], ours["name"]) and \
                not self.symbols.same(gdb["name"], ours["name"]):
            wrong.append("name")
        if gdb["line"] and (gdb["line"] != ours["line"] or gdb["path"] != ours["path"]):
            if ours["line"] in gdb["lines"] and gdb["path"] == ours["path"]:
                self.set_aside("line", "%s: gdb %d, we %d" % (gdb["name"], gdb["line"], ours["line"]))
            else:
                wrong.append("line")
        return wrong

    def set_aside(self, why, what):
        self.reasons[why] = self.reasons.get(why, 0) + 1
        self.aside.append("%s: %s" % (why, what))

    def without_copies(self, where, gdb, ours):
        """Our frames as gdb would show them."""
        shown = {f["pc"]: f["name"] for f in gdb if f["kind"] == TAIL}
        out, i = [], 0
        while i < len(ours):
            end = i
            while end + 1 < len(ours) and ours[end]["kind"] == COPY:
                end += 1
            group, pc = ours[i:end + 1], ours[end]["pc"]
            if len(group) > 1 and ours[end]["kind"] == TAIL and pc in shown and is_same_name(shown[pc], group[0]["name"]):
                for f in group[1:]:
                    self.set_aside("copies", "%s %s in %s" % (where, group[0]["name"], f["name"]))
                group = [dict(group[0], kind=TAIL)]
            out += group
            i = end + 1
        return out

    def frame(self, where, gdb, ours, around=None):
        where += " " + (gdb or ours)["name"]
        wrong = ["frame"] if not gdb or not ours else self.is_same_place(gdb, ours)
        self.frames_different += bool(wrong)
        self.frames_equal += not wrong
        for kind in wrong:
            self.differ(kind, "%s: gdb %s, we %s" % (where, *(f and "%s %s %s:%d" % (f["pc"], f["name"], f["path"], f["line"]) for f in (gdb, ours))))
        self.values(where, gdb["vars"] if gdb else [], ours["vars"] if ours else [], around)

    def thread(self, tid, gdb, ours):
        self.tails += sum(f["kind"] == TAIL for f in ours)
        ours = self.without_copies(tid, gdb, ours)
        keys = [[(f["pc"], f["kind"]) for f in each] for each in (gdb, ours)]
        for _, a, b, c, d in difflib.SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
            same = keys[0][a:b] == keys[1][c:d]
            for i in range(a, b):
                around = next((f for f in gdb[i + 1:] if f["kind"] != COPY and f["pc"] == gdb[i]["pc"]), None)
                self.frame("%d#%d" % (tid, i), gdb[i], ours[c + i - a] if same else None, around)
            for i in range(c, d):
                if not same:
                    self.frame("%d#%d" % (tid, i), None, ours[i])


def compare(dump, pid):
    tally = Tally()
    tally.symbols = Symbols(pid)
    gdb = gdb_says(pid)
    ours, tally.measure = we_say(dump, pid)
    for tid in sorted(set(gdb) | set(ours)):
        tally.thread(tid, gdb.get(tid, []), ours.get(tid, []))
    return tally


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--dump", required=True)
    p.add_argument("--aside", action="store_true", help="print what was set aside")
    p.add_argument("pid", type=int)
    o = p.parse_args()
    t = compare(o.dump, o.pid)
    for line in t.lines[:60] + (t.aside if o.aside else []):
        print(line)
    print("frames: %d equal, %d different; values: %d equal of %d (%.3f %%); %s; set aside %s; %s" %
          (t.frames_equal, t.frames_different, t.equal, t.total(), 100.0 * t.equal / max(t.total(), 1), t.kinds, t.reasons, t.measure))


if __name__ == "__main__":
    sys.exit(main())
