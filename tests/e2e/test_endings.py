# SPDX-License-Identifier: MIT
"""Tests how targets end their probes: exec, fork, vfork, exit, closing every descriptor, unmapping a probed library, flooding the ring."""

import os
import signal

import harness
from harness import Case, State, target_path, wait_until

CALLS = 200000 if harness.FULL else 30000  # a ring of 16 KiB holds some hundred hits


def lost(r):
    return r.summary["lost"]["total"]


class Endings(Case):
    def test_exec_ends_the_probes_and_not_the_program(self):
        t = self.target("execer", 0)
        p = self.start_attached(t, "--function", "foo")
        self.await_events(p, n=10)
        os.kill(t.pid, signal.SIGUSR1)
        r = self.finish(p, None)
        self.assert_ok(r)
        self.assert_hits(r, 10)
        said = r.err + str(r.told)
        self.assertRegex(said, rf"process {t.pid} executes execer, which has no probes; --follow goes on with it \(as root\)")
        self.assertEqual(r.summary["ended_by"], "target called exec")
        wait_until(lambda: "second life" in t.output(), what="the second run")
        self.assertEqual(t.stop(), 7)
        self.assertIn("RESULT OK second life", t.output())

    def test_exec_by_another_thread(self):
        t = self.target("execer", 0, "thread", "echo", "new program")
        p = self.start_attached(t, "--function", "foo")
        self.await_events(p, n=10)
        os.kill(t.pid, signal.SIGUSR1)
        r = self.finish(p, None)
        self.assert_hits(r, 10)
        self.assertEqual(t.process.wait(300), 0)
        self.assertIn("new program", t.output())

    def test_launched_program_that_executes_another(self):
        r = self.dynprobe("--function", "foo", "--", target_path("execer"), 200)
        self.assert_ok(r, 7)
        self.assert_hits(r, 10)
        self.assertIn("second life", r.out)

    def test_fork_children_run_right_and_record_nothing(self):
        t = self.target("forker")
        before = State(t.pid)
        r = self.attach(t, "--function", "foo", "--function", "in_child", "-t", "regs", *(("-d", 1) if harness.FULL else ("-n", 20)))  # its children are between two of its own hits
        self.assert_ok(r)
        self.assertEqual({e["probe"] for e in r.events}, {"foo"}, "in_child runs in children only")
        self.assertEqual({e["tid"] for e in r.events}, {t.pid})
        self.assertGreater(lost(r), 0, str(r.summary))  # the children's hits are counted
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    def test_children_forked_in_the_middle_of_a_hit_run_right(self):
        """A signal handler interrupts a hit and forks: in the child the hit goes on with wiped tables."""
        quiet = ("-f", "json", "-o", "/dev/null")
        small = ("--buffer-size", "16K", *quiet)
        ways = [
            ("--function", "foo", "-t", "regs", "-t", "backtrace", *small),
            ("--return", "foo", "-t", "duration", *small, "--follow"),
            ("--return", "foo", "--hist", "duration"),
            ("--function", "foo", "--count", "--by", "arg0"),
            ("--function", "foo", "-t", "regs", "--when", "pid % 2 == 0 && hits % 2", *quiet, "--follow"),
            ("--function", "foo", "--count", "--by", "pid", "--follow"),
            ("--function", "foo", "--count", "--by", "backtrace", "--follow"),
        ]
        more = [
            ("--function", "foo", "-t", "regs", *small, "--follow"),
            ("--return", "foo", "-t", "duration", *small),
            ("--function", "foo", "--count"),
            ("--return", "foo", "--hist", "duration", "--follow"),
            ("--function", "foo", "--count", "--follow"),
        ]
        for words in ways + more if harness.FULL else ways:
            with self.subTest(words):
                t = self.target("handler_forks", 600000)
                harness.tool("--pid", t.pid, "-q", "-d", 1 if harness.FULL else 0.3, *words, status=0)  # it forks 500 times a second
                t.process.terminate()
                self.assertEqual(t.process.wait(300), 0, t.output())

    def test_no_duration_is_wrong_if_handlers_fork(self):
        """A child that goes on with its parent's hit has the same stack addresses: it would find and change its parent's calls."""
        for words in ((), ("--follow",)):
            with self.subTest(words):
                r = self.dynprobe("--return", "foo", "--max", "duration", "--min", "duration", *words, "--", harness.target_path("handler_forks"), 1500 if harness.FULL else 500)
                self.assert_ok(r)
                row = r.answers[-1]
                self.assertGreaterEqual(row["min"], 0)
                self.assertLess(row["max"], 60e9, "a call takes no minute, and no time in the future")

    def test_fork_child_outlives_the_probes(self):
        """Children share the stubs' memory: it must stay valid for them when the parent's probes are removed and installed again."""
        t = self.target("forker")
        for _ in range(5 if harness.FULL else 2):
            self.assert_ok(self.attach(t, "--function", "foo", "-t", "regs", "-d", "0.2"))
            self.assert_ok(self.attach(t, "--function", "in_child", "--function", "foo", "-t", "backtrace", "-d", "0.2"))
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_exit_of_the_target_under_load(self):
        for code in (0, 3):
            with self.subTest(code):
                t = self.target("crasher", code, 1000)
                p = self.start_attached(t, "--function", "foo")
                os.kill(t.pid, signal.SIGUSR1)
                r = self.finish(p, None)
                self.assert_ok(r)
                self.assert_hits(r, 1000)
                self.assertEqual(t.process.wait(300), code)

    def test_death_by_signal(self):
        for how, sig in (("segv", signal.SIGSEGV), ("abort", signal.SIGABRT), ("kill", signal.SIGKILL)):
            with self.subTest(how):
                t = self.target("crasher", how, 1000)
                p = self.start_attached(t, "--function", "foo")
                os.kill(t.pid, signal.SIGUSR1)
                r = self.finish(p, None)
                self.assert_ok(r)
                self.assert_hits(r, 1000)
                self.assertEqual(t.process.wait(300), -sig)

    def test_closing_every_descriptor(self):
        t = self.target("closer")
        p = self.start_attached(t, "--function", "foo", "-t", "reg:rdi")
        os.kill(t.pid, signal.SIGUSR1)
        wait_until(lambda: "CLOSED" in t.output(), what="the target to close")
        self.await_output(p, 20000)
        r = self.finish(p)
        self.assert_ok(r)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_no_descriptor_is_held_in_the_target(self):
        t = self.target("spin", 0, 500)
        before = State(t.pid).fds
        p = self.start_attached(t, "--function", "foo")
        self.assertEqual(State(t.pid).fds, before)
        self.finish(p)

    def test_unmapping_a_probed_library(self):
        t = self.target("unmapper", target_path("plugin.so"))
        p = self.start_attached(t, "--function", "plugin_work", "--function", "foo", "-t", "regs")
        self.await_events(p, "plugin_work")
        os.kill(t.pid, signal.SIGUSR1)
        wait_until(lambda: "CLOSED" in t.output(), what="the library to be closed")
        self.await_output(p, 5000)
        r = self.finish(p)
        self.assertEqual({e["probe"] for e in r.events}, {"plugin_work", "foo"})
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_full_ring_is_counted_and_blocks_nobody(self):
        t = self.target("spin")
        p = self.start_attached(t, "--function", "foo", "-t", "regs", "--buffer-size", "16K")
        p.send_signal(signal.SIGSTOP)
        before = t.cpu_ticks()
        wait_until(lambda: t.cpu_ticks() > before + 10, what="the target to fill its ring")
        p.send_signal(signal.SIGCONT)
        r = self.finish(p)
        self.assert_hits(r, 10)
        self.assertGreater(lost(r), 0, str(r.summary))
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_every_hit_is_recorded_or_counted(self):
        r = self.dynprobe("--function", "foo", "--buffer-size", "16K", "--", target_path("spin"), CALLS)
        self.assert_ok(r)
        self.assertEqual(len(r.events) + lost(r), CALLS, str(r.summary))


if __name__ == "__main__":
    harness.main()
