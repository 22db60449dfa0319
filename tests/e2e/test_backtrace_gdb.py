# SPDX-License-Identifier: MIT
"""Tests backtraces against gdb's at the same stops, in a short form; tests/unwind/run.py is the long one."""

import os
import sys

import harness
from harness import Case, needs

BUILD = os.path.dirname(os.path.dirname(harness.TARGETS))
sys.path.insert(0, os.path.join(harness.ROOT, "tests", "unwind"))
import run  # noqa: E402


@needs("gdb")
class BacktraceAsGdb(Case):
    def stops(self, name, stops, least, **plan):
        got = run.run(dict(run.programs(BUILD, self.dir)[name], stops=stops, seed=1, **plan), BUILD, self.dir)
        self.assertGreaterEqual(len(got), least)
        return got

    def assert_same(self, stops):
        self.assertEqual([s for s in stops if not s["same"]], [])

    def test_libc_instruction_by_instruction(self):
        """Strings, lazy binding, the vdso, signal frames, longjmp, threads, realigned stacks, calls that do not return."""
        stops = self.stops("libc, instruction by instruction", 480, 400)
        self.assert_same(stops)
        kinds = {s["kind"] for s in stops}
        self.assertLessEqual({"in or under a signal handler", "PLT and lazy binding", "prologue", "vdso"}, kinds)

    def test_random_moments(self):
        self.assert_same(self.stops("sqlite3", 60, 60))

    def test_where_gdb_goes_on_into_data_we_end(self):
        """The stack of a makecontext() context has no marked end: above it are the words of makecontext."""
        stops = self.stops("other stacks", 80, 60, at=["on_other_stack"])
        self.assertEqual([s for s in stops if not s["same"] and not run.astray(s)], [])
        self.assertTrue(all(len(s["ours"]) < len(s["theirs"]) for s in stops if not s["same"]))


if __name__ == "__main__":
    harness.main()
