# SPDX-License-Identifier: MIT
"""Tests variables that exist only in the debug information: stubs and snapshots compute them, and the program knows their values."""

import glob
import os
import struct

import harness
from harness import Case, needs

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "variables", "computed.c")
with open(SOURCE) as f:
    LINE = next(n for n, text in enumerate(f, 1) if "here: LINE" in text)
NAMES = "twice from_int halved wide third negative narrow whole is_less is_same byte rest product".split()
FLOATS = {"third", "negative", "narrow"}
ROUNDS = 60


def rounded(name, value):
    """The shortest decimals of a float read back as another double."""
    return struct.pack("<f", value) if name in FLOATS else value


class Computed(Case):
    def check(self, needed, *command):
        """The `needed` variables must have a value; the compiler may omit others, but none may have a wrong value."""
        program = harness.compiled(self.path("program"), *command, "-g", "-Wno-unknown-attributes", SOURCE, cwd=self.dir)
        r = self.dynprobe("--probe", f"computed.c:{LINE}", "-t", "locals", "--snapshot", "--max-snapshots", 2, "--snapshot-interval", "1ms",
                          "--max-pause", "30000", "--", program, ROUNDS, cwd=self.dir)
        self.assert_ok(r)
        printed = harness.objects(r.out)
        self.assertEqual(len(printed), ROUNDS)
        self.assertEqual(len(r.events), ROUNDS)
        seen = {name for said, e in zip(printed, r.events) for name in self.agree(said, e["fields"])}
        self.assertLessEqual(set(needed), seen)
        files = glob.glob(self.path("*.dps"))
        self.assertGreaterEqual(len(files), 1, r.err)
        for path in files:
            self.check_snapshot(path, needed, printed, [int(str(e["fields"]["snapshot_id"]), 0) for e in r.events])

    def agree(self, said, values):
        there = [name for name in NAMES if values.get(name) is not None]
        for name in there:
            self.assertEqual(rounded(name, values[name]), rounded(name, said[name]), f"{name}: {values}")
        return there

    def check_snapshot(self, path, needed, printed, ids):
        frame = harness.shown(path)["threads"][0]["frames"][0]
        self.assertEqual(frame["symbol"], "work")
        number = lambda text: int(text) if text.lstrip("-").isdigit() else float(text)
        values = {v["name"]: v["real"] if "real" in v else number(v["value"].split()[0]) for v in frame["variables"] if v["value"][0] in "-0123456789"}
        there = self.agree(printed[ids.index(int(path.split(".")[-2], 16))], values)
        self.assertLessEqual(set(needed), set(there))

    @needs("gcc")
    def test_gcc(self):
        self.check({"twice", "halved", "narrow", "whole", "is_less", "from_int", "rest"}, "gcc", "-O2")

    @needs("gcc")
    def test_gcc_dwarf_4_with_floats_in_memory(self):
        self.check({"twice", "halved", "narrow", "whole", "is_less", "third", "negative", "wide", "is_same", "product"}, "gcc", "-O1", "-gdwarf-4")

    @needs("clang")
    def test_clang(self):
        self.check((), "clang", "-O1")


if __name__ == "__main__":
    harness.main()
