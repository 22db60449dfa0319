# SPDX-License-Identifier: MIT
"""Tests programs that use recent kernel features: they notice nothing, or dynprobe refuses them before it does harm."""

import os
import shutil
import signal

import harness
from harness import Case, State, wait_until

DISABLED = "/proc/sys/kernel/io_uring_disabled"


class Programs(Case):
    def tool(self, *args):
        return harness.tool(*args, status=0).stdout


class Uring(Programs):
    """io_uring's threads are listed among the program's, and a stop would make the request of such a thread fail."""

    def uring(self, polled):
        if os.path.exists(DISABLED):
            with open(DISABLED) as f:
                was = f.read().strip()
            if was != "0":
                self.allow("0")
                self.addCleanup(self.allow, was)
        t = self.target("uring", polled)
        if "NO IO_URING" in t.output():
            self.skipTest("this kernel has no io_uring")
        return t

    def allow(self, value):
        with open(DISABLED, "w") as f:
            f.write(value)

    def workers(self, t):
        names = {x: harness.status(f"{t.pid}/task/{x}", "Name") for x in os.listdir(f"/proc/{t.pid}/task")}
        return {int(x) for x, name in names.items() if name and name.startswith("iou-")}

    def each(self, polled_too=harness.FULL):
        for polled in (0, 1) if polled_too else (0,):
            with self.subTest(polled=polled):
                t = self.uring(polled)
                harness.wait_until(lambda: len(self.workers(t)) > 2 + polled, what="the kernel's threads to start")  # noqa: B023
                yield t
                harness.wait_until(lambda: len(self.workers(t)) > 2 + polled, what="the kernel's threads to continue")  # noqa: B023
                self.assert_clean(t.pid)
                self.assert_result_ok(t)

    def test_no_request_is_ended_by_probes_that_come_and_go(self):
        for t in self.each(polled_too=True):
            for i in range(10 if harness.FULL else 3):
                r = self.attach(t, "--function", "foo", *(["-t", "regs"] if i % 2 else ["--return", "foo"]), "-n", 20)
                self.assert_ok(r)
                self.assert_hits(r, 20)
                self.assertEqual(r.summary["left_bytes"], 0)
                self.assertEqual({e["tid"] for e in r.events} & self.workers(t), set())

    def test_nor_beside_probes_that_stay(self):
        for t in self.each():
            self.tool("attach", "--sink", "ring", "--pid", t.pid, "--function", "foo")
            for _ in range(5 if harness.FULL else 2):
                r = self.attach(t, "--function", "libc.so.6!clock_nanosleep", "-n", 5)
                self.assert_ok(r)
                self.assertEqual(r.summary["left_bytes"], 0)
            self.tool("detach", "--pid", t.pid)

    def test_nor_by_a_trap(self):
        for t in self.each():
            r = self.attach(t, "--function", "foo", "--tactic", "trap", "-n", 5)
            self.assert_ok(r)
            self.assertEqual(r.summary["left_bytes"], 0)

    def test_nor_by_snapshots_and_they_show_the_programs_own_threads(self):
        for t in self.each():
            for mode in ("stop", "fork"):
                path = self.path(f"{mode}.dps")
                self.tool("snapshot", t.pid, "--mode", mode, "-q", "-o", path)
                shown = self.tool("show", path)
                self.assertNotIn("iou-", shown)
                self.assertIn("call_foo", shown)


class HugeText(Programs):
    """Text that the program has moved to anonymous memory: the refusal says so, and functions keep their names."""

    def test_moved_text_is_named_as_that(self):
        t = self.target("hugetext")
        before = State(t.pid)
        for what in (("--function", "foo"), ("--function", "hugetext!foo"), ("--probe", f"{t.site():#x}")):
            self.assert_refused(self.attach(t, *what), "DP-MOVED-TEXT", "hugetext", "anonymous memory")
        self.assert_refused(self.attach(t, "--return", "foo"), "DP-MOVED-TEXT", "hugetext", "anonymous memory")
        self.assert_refused(self.attach(t, "--function", "fooo"), "DP-NO-SYMBOL", "did you mean foo")
        self.assertEqual(before.differences(State(t.pid)), {})
        self.assert_result_ok(t)

    def test_what_is_still_in_its_file_is_probed(self):
        t = self.target("hugetext")
        r = self.attach(t, "--function", "libc.so.6!clock_nanosleep", "-t", "backtrace", "-n", 5)
        self.assert_ok(r)
        self.assert_hits(r, 5)
        self.assertIn("main", str(r.events[-1]))
        self.assert_clean(t.pid)
        self.assert_result_ok(t)


class Dispatched(Programs):
    """A thread's system calls go to a handler of the program (Syscall User Dispatch): a call by dynprobe would end it."""

    def dispatched(self, *args):
        t = self.target("dispatched", *args)
        if "NO DISPATCH" in t.output():
            self.skipTest("this kernel has no Syscall User Dispatch")
        return t

    def test_is_refused_and_unharmed(self):
        for how in (0, 1):
            with self.subTest(how=how):
                t = self.dispatched(how)
                before = State(t.pid)
                for what in (("--function", "foo"), ("--function", "foo", "-t", "str(rdi)"), ("--return", "foo"), ("--function", "foo", "--tactic", "trap")):
                    self.assert_refused(self.attach(t, *what), "DP-DISPATCH", t.pid)
                self.assertEqual(before.differences(State(t.pid)), {})
                self.assert_result_ok(t)

    def test_probes_that_were_there_before_come_out(self):
        t = self.dispatched(0, 1)
        before = State(t.pid)
        p = self.start_attached(t, "--function", "foo")
        os.kill(t.pid, signal.SIGUSR1)
        self.await_events(p, n=50)
        r = self.finish(p)
        self.assert_hits(r, 50)
        self.assertEqual(r.summary["left_bytes"], 0)
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)


class NoTimeStamps(Programs):
    """rdtsc faults in the program's threads (PR_SET_TSC): the first hit would end it."""

    def test_is_refused_and_unharmed(self):
        t = self.target("notsc")
        before = State(t.pid)
        for _ in range(3 if harness.FULL else 1):
            self.assert_refused(self.attach(t, "--function", "foo", "-n", 1), "DP-TSC", t.pid)
            self.assert_clean(t.pid, before)
        self.assert_result_ok(t)


class Translated(Programs):
    """A translator executes what it made of the program's code: a probe in that code would never be hit."""

    @staticmethod
    def asleep(t):
        """Its state in a call: valgrind blocks all signals between calls. None if it runs."""
        sleeps = lambda: harness.status(t.pid, "State")[0] == "S"
        state = State(t.pid) if sleeps() else None
        return state if sleeps() else None

    def assert_translated(self, t, function):
        before = harness.wait_until(lambda: self.asleep(t), what="the program to sleep")
        self.assert_refused(self.attach(t, "--function", function, "-n", 1), "DP-TRANSLATED", t.pid)
        self.assert_clean(t.pid, before)

    @harness.needs("valgrind")
    def test_by_valgrind_is_refused_and_unharmed(self):
        t = self.target("spin", 0, 1000, prefix=("valgrind", "-q"))
        self.assert_translated(t, "foo")
        self.assert_result_ok(t)

    def test_all_but_the_translator_is_refused(self):
        """Translators are known by their files' names, so a program with such a name is taken for one."""
        os.mkdir(self.path("valgrind"))
        program = self.path("valgrind/none-amd64-linux")
        shutil.copy(harness.target_path("spin"), program)
        t = self.target(program, 0, 1000)
        self.assert_translated(t, "libc.so.6!clock_nanosleep")
        self.assert_ok(self.attach(t, "--function", "foo", "-n", 5))
        self.assert_result_ok(t)


class Headless(Programs):
    """The first thread has ended: dynprobe must use another thread's id where it would use the process's."""

    def headless(self):
        t = self.target("headless")
        wait_until(lambda: t.state() == "Z", what="the end of the first thread")  # other threads may join it a little earlier
        return t

    def test_probes_come_and_go(self):
        t = self.headless()
        for _ in range(5 if harness.FULL else 2):
            r = self.attach(t, "--function", "foo", "-t", "regs", "-n", 20)
            self.assert_ok(r)
            self.assert_hits(r, 20)
            self.assertEqual(r.summary["left_bytes"], 0)
        self.assert_result_ok(t)

    def test_a_second_dynprobe_is_told_of_the_first(self):
        t = self.headless()
        first = self.start("--pid", t.pid, "--function", "foo")
        wait_until(lambda: os.path.exists(first.events) and '"foo"' in self.said(first), what="the first event")
        self.assert_refused(self.attach(t, "--function", "foo", "-n", 1), "DP-LOCKED", first.pid)
        self.assert_hits(self.finish(first))
        self.assert_ok(self.attach(t, "--function", "foo", "-n", 1))
        self.assert_result_ok(t)


if __name__ == "__main__":
    harness.main()
