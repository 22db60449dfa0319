# SPDX-License-Identifier: MIT
"""Tests the ready-made module `python`: the frames that it shows are those that Python itself tells (pmodules/serpent.py)."""

import functools
import json
import os
import re
import subprocess
import sys
import unittest

import harness
from harness import Case

SERPENT = os.path.join(harness.ROOT, "tests", "e2e", "pmodules", "serpent.py")
LIMIT = ("--module-timeout", 20000)
CUT = {  # what `cut` shows of values that are too large
    "long_text": "'" + "x" * 200 + "'... (1000 characters)",
    "long_bytes": "b'" + "y" * 200 + "'... (1000 bytes)",
    "long_list": "[" + ", ".join(map(str, range(16))) + ", ... 84 more]",
    "long_dict": "{" + ", ".join(f"{i}: 0" for i in range(16)) + ", ... 34 more}",
    "deep": "[[[[...]]]]", "huge": "<int of 5010 bits>", "ring": "[1, [...]]", "holes": "{18: 1, 19: 1}", "key": "17",
}


@functools.cache
def interpreters():
    """Real paths of pythons that the module knows: the system's, and the one of this test. DP_PYTHONS: more of them."""
    ask = "import sys, os; print(sys.version_info[0] * 100 + sys.version_info[1], os.path.realpath(sys.executable))"
    found = {}
    for name in ["/usr/bin/python3", sys.executable, *os.environ.get("DP_PYTHONS", "").split()]:
        if os.path.exists(name):
            version, path = subprocess.run([name, "-c", ask], capture_output=True, text=True, check=True).stdout.split()
            found[path] = int(version)
    return [path for path, version in found.items() if 311 <= version <= 313]


def simplified(text):
    """The types of objects without their modules, which the names of some types have."""
    return re.sub(r"<(?:[\w<>]+\.)+(\w+ object at )", r"<\1", text)


@unittest.skipUnless(interpreters(), "no Python 3.11 to 3.13")
class PythonFrames(Case):
    def shot(self, pid, *options, module="python"):
        path = self.path("p.dps")
        taken = harness.tool("snapshot", pid, "-o", path, *LIMIT, "--module-load", module, *options)
        return harness.shown(path), taken.stderr, path

    def frames(self, snapshot):
        """tid: the thread's Python frames, as serpent.py tells them."""
        told = {}
        for t in snapshot["threads"]:
            told[t["tid"]] = [[f["symbol"], f["path"], f.get("line", 0), {v["name"]: v["value"] for v in f["variables"]}] for f in t["frames"] if f.get("is_synthesized")]
        return told

    def check_variables(self, function, got, wanted):
        if function == "cut":
            for name, text in CUT.items():
                self.assertEqual(got[name], text, name)
            self.assertRegex(got["many"], r"^\[\[1, .*\.\.\.")
            self.assertLess(len(got["many"]), 400)
            return
        if function == "wide":
            self.assertEqual(got, {f"v{i}": "1" for i in range(64)})
            return
        self.assertEqual(set(got), set(wanted), function)
        for name, text in wanted.items():
            if name not in ("names", "scope", "functions", "threads"):  # too long, or lists of what has a text of its own
                self.assertEqual(simplified(got[name]), simplified(text), f"{function}: {name}")

    def check(self, snapshot, output):
        told = {int(tid): about for tid, about in json.loads(re.search("^EXPECTED (.*)$", output, re.M)[1]).items()}
        frames = self.frames(snapshot)
        self.assertEqual(set(frames), set(told))
        for tid, (name, wanted) in told.items():
            self.assertEqual([f[:3] for f in frames[tid]], [f[:3] for f in wanted], name)
            for got, expected in zip(frames[tid], wanted):
                if expected[0] != "<module>":
                    self.check_variables(expected[0], got[3], expected[3])
        a = snapshot["attributes"]
        self.assertEqual((a["python.threads"], a["python.incomplete"]), (len(told), 0))
        self.assertEqual(a["python.frames"], sum(len(f) for f in frames.values()))

    def check_places(self, snapshot):
        """Each Python frame is above the C frame that runs it, so that between two of them is what C did."""
        for t in snapshot["threads"]:
            evals = [i for i, f in enumerate(t["frames"]) if f.get("symbol", "").startswith("_PyEval_EvalFrameDefault")]
            made = [f.get("is_synthesized", False) for f in t["frames"]]
            self.assertTrue(evals)
            above = -1
            for i in evals:  # each call of the interpreter has Python frames of its own
                self.assertTrue(any(made[above + 1:i]), [f.get("symbol") for f in t["frames"]])
                above = i
            self.assertFalse(any(made[above:]))

    def test_frames_are_those_that_python_tells(self):
        for python in interpreters():
            with self.subTest(python):
                t = self.target(python, SERPENT)
                snapshot, said, path = self.shot(t.pid)
                self.assertNotIn("python:", said)
                self.check(snapshot, t.output())
                self.check_places(snapshot)
                text = harness.tool("show", path).stdout
                self.assertRegex(text, r"\n#\d+ +in Überprüfung\.méthode\.<locals>\.inner \(\) at .*/serpent\.py:\d+")
                self.assertIn("shared = ['кот', '猫', '🐈']", text)
                self.assertIn("36 more local variables", text)
                again, told = self.path("again.dps"), t.output()
                t.close()
                harness.tool("pmodule", "run", path, *LIMIT, "--module-load", "python", "-o", again, status=0)  # from the memory that was kept
                self.check(harness.shown(again), told)

    def test_debug_information_tells_the_layout(self):
        for python in interpreters() if harness.FULL else interpreters()[:1]:
            with self.subTest(python):
                t = self.target(python, SERPENT)
                snapshot, said, _ = self.shot(t.pid, "--module=python:layout,debug")
                if "install its debug information" not in said:
                    self.check(snapshot, t.output())
                else:
                    self.assertFalse(any(self.frames(snapshot).values()))

    def test_a_program_that_is_not_python(self):
        _, said, _ = self.shot(self.target("elements").pid)
        self.assertIn("no Python runs here: no module has the symbol _PyRuntime", said)

    def test_a_core(self):
        python = interpreters()[0]
        t = self.target(python, SERPENT)
        path = self.path("c.dps")
        harness.tool("snapshot", "--core", self.core(t.pid), "-o", path, *LIMIT, "--module-load", "python")
        self.check(harness.shown(path), t.output())

    def test_limits_and_time(self):
        t = self.target(interpreters()[0], SERPENT)
        snapshot, _, path = self.shot(t.pid, "--module=python:frames,4", "--module=python:locals,2")
        frames = self.frames(snapshot)
        self.assertEqual(max(map(len, frames.values())), 4)
        self.assertLessEqual(max(len(f[3]) for fs in frames.values() for f in fs), 2)
        self.assertIn("warning: Python: there are more than 4 Python frames", harness.tool("show", path).stdout)


class Damaged(Case):
    """tests/targets/snake.c: types of the names that CPython's have, in another layout, and random words in them."""

    shot, frames = PythonFrames.shot, PythonFrames.frames

    def test_layout_of_the_debug_information(self):
        t = self.target("snake", "healthy")
        snapshot, _, _ = self.shot(t.pid)
        v = {"v": "('v', 'w')"}
        self.assertEqual(self.frames(snapshot)[t.pid], [[name, "snake.py", 15, v] for name in ("third", "second", "first")])
        self.assertEqual(snapshot["attributes"]["python.incomplete"], 0)

    def test_rings(self):
        t = self.target("snake", "ring")
        snapshot, _, path = self.shot(t.pid)
        self.assertEqual([f[0] for f in self.frames(snapshot)[t.pid]], ["third", "second", "first"])
        self.assertIn("warning: Python: the Python frames form a ring at 0x", harness.tool("show", path).stdout)

    def test_random_words(self):
        some, seeds = 0, range(0, 1600 if harness.FULL else 64, 16)  # each of 16 threads has its own
        for seed in seeds:
            with self.subTest(seed):
                t = self.target("snake", "garbage", seed)
                snapshot, said, _ = self.shot(t.pid)
                self.assertNotIn("error", said)
                self.assertEqual([c for c in snapshot["classifiers"] if c.startswith("pmodule")], [], said)
                some += sum(map(len, self.frames(snapshot).values()))
                t.close()
        self.assertGreater(some, 160 if harness.FULL else 64)


if __name__ == "__main__":
    harness.main()
