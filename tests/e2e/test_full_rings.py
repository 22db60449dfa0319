#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests --on-full block and --overwrite: what becomes of hits whose thread's ring is full."""

import os
import signal

import harness
from harness import wait_until

SMALL = ("--buffer-size", "16K")  # full after some hundred hits
CALLS, THREADS, SIGNALS = (4000, 200, 20000) if harness.FULL else (1200, 60, 6000)  # many times what the rings hold, still
SPINS = 20000 if harness.FULL else 5000
LONG = "block=60s"  # tests that wait for so long have failed


def written(r):
    """The number of events. They may be half a million, too many to look at."""
    with open(r.path) as f:
        return sum(line.startswith('{"type":"event"') for line in f)


class Block(harness.Case):
    def exact(self, r, hits):
        """Every hit was recorded."""
        self.assert_ok(r)
        self.assertEqual((r.summary["recorded"], r.summary["lost"]["total"]), (hits, 0), str(r.summary))
        self.assertEqual(written(r), hits)
        self.assertEqual(r.summary["waited"]["in_vain"], 0)

    def launched(self, *command, options=()):
        return self.dynprobe("--function", "foo", *SMALL, "--on-full", LONG, *options, "--", *command)

    def tally(self, mode, n, **kw):
        return self.launched(harness.target_path("tally"), mode, n, **kw)

    def called(self, r):
        return sum(int(line.split()[1]) for line in r.out.splitlines() if line.startswith(("foo", "children")))

    def test_no_hit_of_many_threads_is_lost(self):
        r = self.tally("threads", CALLS)
        self.exact(r, 8 * CALLS)
        self.assertGreater(r.summary["waited"]["hits"], 0, "no ring was ever full: nothing was tested")
        self.assertGreater(r.summary["waited"]["ns"], 0)
        self.assertIn("RESULT OK", r.out)

    def test_no_hit_of_threads_that_come_and_go_is_lost(self):
        r = self.tally("churn", THREADS)
        self.exact(r, THREADS * 100)

    def test_no_hit_of_signal_handlers_is_lost(self):
        r = self.tally("signals", SIGNALS)
        self.exact(r, self.called(r))

    def test_no_hit_of_fork_children_is_lost(self):
        r = self.tally("fork", CALLS, options=["--follow"])
        self.exact(r, 5 * CALLS + 1)
        self.assertEqual(r.summary["followed"], 4)

    def test_the_removal_loses_no_hit_of_a_program_under_full_load(self):
        t = self.target("tally", "loop")
        r = self.attach(t, "--function", "foo", *SMALL, "--on-full", LONG, "-d", "200ms")
        self.exact(r, written(r))
        self.assertGreater(r.summary["waited"]["hits"], 0)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def waits(self, t, time=LONG, *args):
        """Stops dynprobe and returns it when the program's threads wait."""
        p = self.start_attached(t, "--function", "foo", *SMALL, "--on-full", time, *args)
        self.addCleanup(p.kill)
        p.send_signal(signal.SIGSTOP)
        return p

    def await_rest(self, t):
        """Until all its threads sleep."""
        tasks = f"/proc/{t.pid}/task"
        wait_until(lambda: all(harness.status(f"{t.pid}/task/{tid}", "State")[0] == "S" for tid in os.listdir(tasks)), what="all threads to wait")

    def await_work(self, t):
        before = t.cpu_ticks()
        wait_until(lambda: t.cpu_ticks() > before + 20, 30, "the program to continue")

    def test_threads_that_wait_for_a_killed_tool_go_on_at_once(self):
        t = self.target("tally", "loop")
        p = self.waits(t)
        self.await_rest(t)
        p.kill()
        p.wait()
        self.await_work(t)
        self.assert_cleaned(t)

    def test_a_stopped_tool_is_waited_for_once(self):
        t = self.target("tally", "loop")
        p = self.waits(t, "block=100ms")
        self.await_work(t)
        p.send_signal(signal.SIGCONT)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertGreater(r.summary["lost"]["full"], 0)
        self.assertEqual(sum(r.summary["lost"][k] for k in ("abandoned", "damaged", "other")), 0)
        self.assertIn(r.summary["waited"]["in_vain"], range(1, 10), "each thread that waited gave up once for each time that dynprobe stood still")
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_a_tool_that_ends_lets_waiting_threads_go(self):
        t = self.target("tally", "loop")
        p = self.waits(t)
        self.await_rest(t)
        p.send_signal(signal.SIGINT)
        p.send_signal(signal.SIGCONT)
        self.exact(r := self.finish(p, None), written(r))
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def interrupt_waits(self, t):
        """dynprobe stands still again and again: then the program's threads wait, and are interrupted by its own signals."""
        p = self.start_attached(t, "--function", "foo", *SMALL, "--on-full", LONG)
        for _ in range(5 if harness.FULL else 2):
            size, handled = os.path.getsize(p.events), t.steps()
            wait_until(lambda: os.path.getsize(p.events) > size + 20000 or t.steps() > handled + 200, what="events")  # noqa: B023
            p.send_signal(signal.SIGSTOP)
            handled = t.steps()
            wait_until(lambda: not t.alive() or t.steps() > handled + 3, what=f"{t.path} to handle signals")
            p.send_signal(signal.SIGCONT)
        return self.finish(p)

    def test_handlers_that_hit_or_jump_out_of_a_wait_leave_a_sound_program(self):
        for name in ("longjmper", "sigstorm"):
            with self.subTest(name):
                t = self.target(name)
                r = self.interrupt_waits(t)
                self.assert_ok(r)
                lost = r.summary["lost"]
                self.assertGreater(r.summary["waited"]["hits"] + lost["full"], 0, "a hit that was left for good fills its ring")
                self.assertEqual(lost["damaged"], 0)
                self.assert_clean(t.pid)
                self.assert_result_ok(t)

    def test_handlers_that_fork_in_a_wait_leave_sound_processes(self):
        t = self.target("handler_forks", 600000)
        r = self.interrupt_waits(t)
        self.assert_ok(r)
        self.assertGreater(r.summary["lost"]["forked"], 0)
        self.assertEqual(r.summary["lost"]["damaged"], 0)
        self.assert_result_ok(t)

    def test_DP_SECCOMP_under_a_filter_neither_is_possible(self):
        t = self.target("caged", ready="CAGED")
        for option, *more in (("--on-full", LONG), ("--overwrite",)):
            r = self.attach(t, "--allow-seccomp", "--function", "foo", option, *more)
            self.assert_refused(r, "DP-SECCOMP", option)
        self.assert_clean(t.pid)
        t.stop()

    def test_what_cannot_go_together_is_refused(self):
        wrong = [("--on-full", "block"), ("--on-full", "block=0"), ("--on-full", "block=61s"), ("--on-full", "wait"), ("--on-full", LONG, "--count"), ("--on-full", LONG, "--sink", "lttng")]
        wrong += [("--overwrite", *more) for more in (["-n", "5"], ["--follow"], ["--pending"], ["--snapshot"], ["--count"], ["--on-full", LONG], ["--sink", "lttng"])]
        for options in wrong:
            with self.subTest(options):
                done = harness.tool("--pid", os.getpid(), "--function", "foo", *options, status=harness.OWN_FAILURE)
                self.assertIn("DP-USAGE", done.stderr)


class Overwrite(harness.Case):
    def newest(self, r, calls):
        """The last calls of a program that counts them, without a gap; the others are told."""
        self.assert_ok(r)
        seen = [harness.number(e["fields"]["edi"]) for e in r.events]
        self.assertEqual(seen, list(range(calls - len(seen), calls)))
        self.assertEqual(r.summary["recorded"], len(seen))
        self.assertEqual(r.summary["lost"]["overwritten"], calls - len(seen))
        self.assertEqual(r.summary["lost"]["total"], calls - len(seen))
        self.assertGreater(len(seen), 100)

    def test_the_newest_events_of_a_program_that_ends_are_kept(self):
        r = self.dynprobe("--function", "foo", "-t", "reg:edi", *SMALL, "--overwrite", "--", harness.target_path("spin"), 5 * SPINS)
        self.newest(r, 5 * SPINS)
        self.assertLess(len(r.events), 2000)

    def test_the_newest_events_up_to_the_removal_are_kept_while_the_program_goes_on(self):
        words = ("--function", "foo", "-t", "reg:edi", *SMALL, "--overwrite")
        for sig in (signal.SIGINT, None):
            with self.subTest(sig):
                t = self.target("spin")
                if sig:
                    p = self.start_attached(t, *words)
                    self.let_run(t)
                    self.assertEqual(self.said(p).count('"event"'), 0, "nothing is read before the end")
                    r = self.finish(p, sig)
                else:
                    r = self.attach(t, *words, "-d", "300ms")
                first = harness.number(r.events[0]["fields"]["edi"])
                self.assertGreater(first, 0)
                seen = [harness.number(e["fields"]["edi"]) for e in r.events]
                self.assertEqual(seen, list(range(first, first + len(seen))))
                self.assertEqual(r.summary["lost"]["total"], r.summary["lost"]["overwritten"])
                self.assert_clean(t.pid)
                self.assert_result_ok(t)

    def test_every_hit_of_many_threads_is_kept_or_told(self):
        for mode, n, hits in (("threads", CALLS, 8 * CALLS), ("churn", THREADS, THREADS * 100), ("signals", SIGNALS, None)):
            with self.subTest(mode):
                r = self.dynprobe("--function", "foo", *SMALL, "--overwrite", "--", harness.target_path("tally"), mode, n)
                self.assert_ok(r)
                hits = hits or sum(int(line.split()[1]) for line in r.out.splitlines() if line.startswith("foo"))
                self.assertEqual(r.summary["hits"], hits, str(r.summary))
                self.assertEqual(r.summary["lost"]["total"], r.summary["lost"]["overwritten"] + r.summary["lost"]["no_slot"])
                self.assertIn("RESULT OK", r.out)

    def test_the_events_of_a_killed_program_are_kept(self):
        t = self.target("tally", "loop")
        p = self.start_attached(t, "--function", "foo", *SMALL, "--overwrite")
        self.let_run(t)
        t.process.kill()
        r = self.finish(p, None)
        self.assert_ok(r)
        self.assertGreater(len(r.events), 100)

    def test_a_killed_tool_leaves_a_sound_program(self):
        t = self.target("tally", "loop")
        for _ in range(3 if harness.FULL else 1):
            p = self.start_attached(t, "--function", "foo", *SMALL, "--overwrite")
            self.let_run(t)
            p.kill()
            p.wait()
            self.let_run(t)
        self.assert_cleaned(t)

    def test_a_trace_tells_what_was_overwritten_before_its_first_event(self):
        r = self.dynprobe("--function", "foo", "-t", "reg:edi", *SMALL, "--overwrite", "--", harness.target_path("spin"), 2 * SPINS, record=self.path("trace"))
        self.newest(r, 2 * SPINS)
        lines = harness.babeltrace(self.path("trace"))
        self.assertEqual(len(lines), len(r.events))


if __name__ == "__main__":
    harness.main()
