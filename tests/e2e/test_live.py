#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests that probes come and go beside others in a process, and that at most one thread is stopped at a time."""

import harness
from harness import Case, State


class Live(Case):
    def test_the_first_attach_holds_one_thread_at_a_time(self):
        t = self.target("threads", "8")
        before = State(t.pid)
        r = self.attach(t, "--function", "foo", "-d", "0.2")
        self.assert_ok(r)
        self.assertIsNone(r.summary["frozen_attach"])
        self.assertIsNone(r.summary["frozen_detach"])
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    def test_beside_probes_that_stay(self):
        t = self.target("threads", "8")
        harness.tool("attach", "--sink", "ring", "--pid", t.pid, "--function", "foo", status=0)
        for _ in range(5):
            r = self.attach(t, "--function", "libc.so.6!malloc", "-d", "0.1")
            self.assert_ok(r)
            self.assertIsNone(r.summary["frozen_attach"])
            self.assertIsNone(r.summary["frozen_detach"])
            self.assertEqual(r.summary["left_bytes"], 0)
        harness.tool("detach", "--pid", t.pid, status=0)
        self.assert_result_ok(t)


if __name__ == "__main__":
    harness.main()
