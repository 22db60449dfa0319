#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests busy programs (many threads, one that never sleeps, one processor for all): probes come and go one thread at a time."""
import os
import subprocess
import sys

import harness
from harness import Case, State


class Busy(Case):
    def assert_live(self, t, *args, threads=None):
        """Probes were installed and removed live, no thread was stopped for long enough to be reported, and the program noticed nothing."""
        before = State(t.pid)
        r = self.attach(t, "--function", "foo", "--count", "-d", "0.3", *args)
        self.assert_ok(r)
        summary = r.summary
        self.assertEqual((summary["placed"], summary["frozen_attach"], summary["frozen_detach"]), (1, None, None), str(r))
        self.assertGreater(summary["hits"], 0)
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    def test_first_attach_with_many_threads_holds_one_at_a_time(self):
        self.assert_live(self.target("throng", 500))

    def test_first_attach_on_the_only_processor_of_a_thread_that_never_rests(self):
        """A tool that polls at a raised priority would never let that thread run, and so would never see it stop."""
        cpu = min(os.sched_getaffinity(0))
        self.addCleanup(os.sched_setaffinity, 0, os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cpu})  # the program and dynprobe inherit it
        self.assert_live(self.target("throng", 4))

    def test_first_attach_beside_programs_that_keep_all_processors_busy(self):
        spinners = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
        try:
            self.assert_live(self.target("throng", 4))
        finally:
            for s in spinners:
                s.kill()
                s.wait()

    def test_descriptors_of_the_program_keep_their_numbers(self):
        """close(0) and open() give 0, whatever dynprobe opens in the program meanwhile."""
        t = self.target("lowest")
        for _ in range(12):
            self.assert_ok(self.attach(t, "--function", "foo", "-n", 3))
        self.assert_clean(t.pid)
        self.assert_result_ok(t)


if __name__ == "__main__":
    harness.main()
