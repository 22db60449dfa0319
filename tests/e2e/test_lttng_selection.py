# SPDX-License-Identifier: MIT
"""Tests patterns with the LTTng sink: each probe is an event with a name of its own."""

import collections

import harness
import lttng_env
import lttng_probe

ROUNDS = 40
CALLS = 16 * ROUNDS


class Selection(lttng_probe.WithDaemon):
    def counts(self, *args):
        p = self.run_tool("-c", f"{harness.target_path('points')} {ROUNDS} 100", *args, "--set-url", "file://" + self.path("t"))
        self.assertIn(p.returncode, (0, 121), p.stderr)  # an IFUNC may be among them
        self.assertIn("RESULT OK", p.stdout)
        return collections.Counter(e.name.split(":")[1] for e in self.read(self.path("t"))), p

    def test_entries_and_returns_by_a_pattern(self):
        got, p = self.counts("--function", "tail_[mr]*", "--return", "tail_m*")
        self.assertIn("matched 3 probes", p.stderr)
        self.assertEqual(got, {"tail_memory": CALLS, "tail_register": CALLS, "tail_memory_return": CALLS})

    def test_a_hundred_events(self):
        got, p = self.counts("--function", "points!*", "--function", "libc.so.6!_IO_*", "-x", "endless")
        self.assertEqual((got["two_returns"], got["by_table"], got["endless"]), (CALLS, CALLS, 0))
        self.assertRegex(p.stderr, r"matched [1-9][0-9]+ probes")


if __name__ == "__main__":
    lttng_env.main()
