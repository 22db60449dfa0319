#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests thousands of probes at once: right results, nothing left behind, and no more stops of all threads than for a few probes."""
import re

import harness
from harness import Case, State

ALL, FUNCTIONS = ("f[12]*", 20000) if harness.FULL else ("f1[0-3]*", 4000)
HELD = re.compile(r"threads held for ([\d.]+)(ns|us|ms|s)\b")
US = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}


class Wildcards(Case):
    def run_on(self, name, *what, state=None):
        """Returns the result, and how often all threads were held."""
        t = self.target(name, 5)
        before = State(t.pid)
        r = self.attach(t, *what, "--count", "-v", "-d", "0.3", json_events=False)
        self.assertIn(r.status, (0, harness.EXIT_PARTIAL), r.err[-2000:])
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)
        placed = re.search(r"(?m)^dynprobe: (\d+) (?:of \d+ )?probes? placed", r.err)
        self.assertTrue(placed, r.err[-2000:])
        if int(placed[1]) > FUNCTIONS // 3:  # with few probes, possibly none is called in that time
            hits = re.search(r"^  hits +(\d+) ", r.err, re.M)
            self.assertTrue(hits and int(hits[1]), r.err[-2000:])
        return int(placed[1]), [float(n) * US[unit] for n, unit in HELD.findall(r.err)]

    def test_all_functions_of_a_program_are_probed_and_nobody_is_held(self):
        placed, held = self.run_on("thousands", "--function", ALL)
        self.assertEqual(placed, FUNCTIONS)
        self.assertEqual(held, [])

    def test_text_that_may_be_unloaded_is_held_for_as_often_for_all_as_for_ten(self):
        ten, few = self.run_on("thousands-loaded", "--function", "thousands-module.so!f1000*")
        many, all_of_them = self.run_on("thousands-loaded", "--function", "thousands-module.so!" + ALL)
        self.assertEqual((ten, many), (10, FUNCTIONS))
        self.assertGreaterEqual(len(few), 1, "text that may be unloaded was moved while all threads ran")
        self.assertEqual(len(all_of_them), len(few))

    def test_one_window_does_not_hold_for_the_others(self):
        few_placed, few = self.run_on("thousands", "--tactic", "jump,window", "--probe", "f10000+8")
        many_placed, many = self.run_on("thousands", "--tactic", "jump,window", "--probe", "f10000+8", "--function", ALL, "-x", "f10000")
        self.assertEqual(few_placed, 1)
        self.assertEqual(many_placed, FUNCTIONS)
        self.assertEqual(len(few), 1)
        self.assertEqual(len(many), 1)

    def test_windows_alone_are_written_in_turns(self):
        placed, held = self.run_on("thousands", "--tactic", "window", "--probe", ("f1*" if harness.FULL else ALL) + "+8")
        self.assertGreater(placed, FUNCTIONS // 3)
        self.assertGreater(len(held), 1, "all of them were written in one hold")


if __name__ == "__main__":
    harness.main()
