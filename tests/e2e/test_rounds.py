# SPDX-License-Identifier: MIT
"""Tests repeated attach and detach under load: threads, descriptors, mappings and memory stay the same."""

import harness
from harness import Case, State

ROUNDS = 500 if harness.FULL else 10


def resident_kib(pid):
    return int(harness.status(pid, "VmRSS").split()[0])


class Rounds(Case):
    def rounds(self, name, *args, target_args=()):
        t = self.target(name, *target_args)
        self.attach(t, *args)  # the first attach may leave something once (nothing is expected): that is not growth
        before, rss = State(t.pid), resident_kib(t.pid)
        for i in range(ROUNDS):
            r = self.attach(t, *args, json_events=False)
            self.assert_ok(r)
            if i % 10 == 9:
                self.assert_clean(t.pid, before)
        self.assert_clean(t.pid, before)
        self.assertLessEqual(harness.private_text_kib(t.pid), harness.KEPT_TEXT_KIB)
        self.assertLessEqual(resident_kib(t.pid), rss + 256)
        self.assert_result_ok(t)

    def test_one_busy_thread(self):
        self.rounds("spin", "--function", "foo", "-t", "regs", "-n", 5, "-q")

    def test_many_threads(self):
        self.rounds("threads", "--function", "foo", "-t", "backtrace", "-n", 5, "-q", target_args=(24,))


if __name__ == "__main__":
    harness.main()
