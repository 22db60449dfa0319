# SPDX-License-Identifier: MIT
"""Tests vm.overcommit_memory=2, where the first use of a page that the kernel cannot provide is a SIGBUS: hits touch only pages that exist,
or probes are refused.
"""

import os

import harness
from harness import Case, State

FOLDER = "/proc/sys/vm/"
LEFT_KIB = 8 << 20


def read(name):
    with open(FOLDER + name) as f:
        return f.read().strip()


class Overcommit(Case):
    def setUp(self):
        super().setUp()
        if not os.access(FOLDER + "overcommit_memory", os.W_OK):
            self.skipTest("vm.overcommit_memory cannot be set here")
        self.t = self.target("spin", 0, 300)  # started first: the limit may be below the current use
        # The rest of the machine must continue: this much memory stays available.
        with open("/proc/meminfo") as f:
            kib = {line.split(":")[0]: int(line.split()[1]) for line in f}
        self.put("overcommit_ratio", (kib["Committed_AS"] + LEFT_KIB) * 100 // kib["MemTotal"] + 1)

    def put(self, name, value):
        """Sets the value until the end of the test."""
        old = read(name)
        self.addCleanup(self.write, name, old)
        self.write(name, value)

    def write(self, name, value):
        with open(FOLDER + name, "w") as f:
            f.write(str(value))

    def test_pages_exist_before_they_are_used(self):
        self.put("overcommit_memory", 2)
        tool = self.start_attached(self.t, "--function", "foo", "-t", "backtrace")
        self.await_events(tool)
        harness.assert_memory_exists(self, self.t.pid)
        self.assert_hits(self.finish(tool))
        self.assert_clean(self.t.pid)
        self.assert_result_ok(self.t)

    def test_refuse_DP_LIMIT_what_may_not_be_committed(self):
        self.put("overcommit_memory", 2)
        before = State(self.t.pid)
        for more in (["--dry-run"], ["-n", 1]):
            r = self.attach(self.t, "--function", "foo", "--buffer-size", "1G", "--max-memory", "64G", *more)
            self.assert_refused(r, "DP-LIMIT", "vm.overcommit_memory", "CommitLimit", "--buffer-size")
            self.assertEqual(before.differences(State(self.t.pid)), {})
        self.assert_result_ok(self.t)


if __name__ == "__main__":
    harness.main()
