#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Tests that the pause in the summary is what the program saw: a thread that only reads the clock records its own gaps, and how long it
waited for a processor in each. The rest of a gap is explained by the pause, or the thread has such gaps anyway.
"""

import re
import sys
import time

import harness
from harness import Case, long_form

ROUNDS = 4 if not harness.FULL else 60
QUIET = 1.0  # seconds, before and after
SLACK_NS = 1_000_000
SPINNER = [sys.executable, "-c", "while True: pass"]


class Pauses(Case):
    def busy(self):
        for _ in range(4):
            self.spawn(*SPINNER)

    def watch(self, threads, *args):
        """Returns [(summary, begin, end)] of several runs, the gaps (begin, end, length without waits), and the times without a run."""
        t = self.target("thousands", threads, 50)
        runs, quiet = [], []
        for _ in range(ROUNDS):
            begin = time.monotonic_ns()
            time.sleep(QUIET / ROUNDS)  # what the thread sees without dynprobe, throughout the test
            quiet.append((begin, time.monotonic_ns()))
            begin = time.monotonic_ns()
            r = self.attach(t, *args, "-d", "0.05", "-q")
            runs.append((r.summary, begin, time.monotonic_ns()))
            self.assert_ok(r)
        self.assert_result_ok(t)
        lines = [tuple(map(int, x)) for x in re.findall(r"^gap (\d+) (\d+) (\d+)$", t.output(), re.M)]
        return runs, [(end - length, end, length - waited) for end, length, waited in lines], quiet

    def longest(self, gaps, begin, end):
        return max((n for at, until, n in gaps if until >= begin and at <= end), default=0)

    def test_refuse_DP_TRAP_UNSAFE_where_max_pause_is_too_short(self):
        """Twenty threads cannot all stop within a microsecond. If they need not be stopped together, the limit does not matter."""
        t = self.target("thousands", 20, 50)
        before = harness.State(t.pid)
        r = self.attach(t, "--probe", "f12345", "--tactic", "trap", "--max-pause", "1us", "-d", "0.1")
        if r.status == 0:  # the tool lost its processor when it had asked them to stop, and found that all had: the report must say how long
            self.assertGreater(r.summary["pause_attach_ns"], 1000, str(r))
        else:
            self.assertRegex(r.err, r"--max-pause: 0.001 ms at a time.*\[DP-(TRAP-UNSAFE|UNSTOPPABLE)\]", str(r))
        self.assert_clean(t.pid, before)
        self.assert_ok(self.attach(t, "--probe", "f12345", "--max-pause", "1us", "-d", "0.1"))
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    def check(self, threads, *args):
        runs, gaps, quiet = self.watch(threads, *args)
        anyway, within = max(self.longest(gaps, *x) for x in quiet), 0
        for s, begin, end in runs:
            stated = max(s["pause_attach_ns"], s["pause_detach_ns"])
            seen = self.longest(gaps, begin, end)
            within += seen <= max(stated, anyway) + SLACK_NS
            self.assertLessEqual(seen, 2 * max(stated, anyway) + 10 * SLACK_NS, f"stated {stated}, anyway {anyway}: {s}")
            for side in ("attach", "detach"):
                stops, longest = s["stops_" + side], s[f"pause_{side}_ns"]
                self.assertGreater(stops["stops"], 0)
                self.assertLessEqual(stops["given_up"], stops["stops"])
                self.assertGreaterEqual(stops["held_ns"], longest)
                self.assertLessEqual(longest, end - begin)
        self.assertGreaterEqual(within, ROUNDS * 3 // 4, "the machine's host may disturb a round or two, not most of them")

    @long_form
    def test_calm(self):
        self.check(1, "--function", "f1234*")

    @long_form
    def test_busy(self):
        self.busy()
        self.check(1, "--function", "f1234*")

    def test_many_threads(self):
        self.check(60, "--function", "f1234*")

    @long_form
    def test_many_threads_busy(self):
        self.busy()
        self.check(60, "--function", "f1234*")

    def test_all_threads_held(self):
        """A trap is installed with all threads held: failed attempts count, too."""
        self.check(20, "--probe", "f12345", "--tactic", "trap")

    @long_form
    def test_all_threads_held_busy(self):
        self.busy()
        self.check(20, "--probe", "f12345", "--tactic", "trap")


if __name__ == "__main__":
    harness.main()
