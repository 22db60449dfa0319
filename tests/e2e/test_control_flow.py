# SPDX-License-Identifier: MIT
"""Tests control flow other than call and ret, through functions with a probe at every instruction.

Probes are installed and removed all the time, with other contexts each time; the programs check their own results.
"""

import os
import re
import signal
import unittest

import harness
from harness import Case, wait_until

CONTEXTS = (
    ("-t", "regs", "-t", "backtrace"),
    (),
    ("-t", "reg:rdi", "-t", "backtrace:4", "-t", "reg:xmm0"),
    ("-t", "regs"),
)
ROUNDS = 3 * len(CONTEXTS) if harness.FULL else 1
AGAIN = 3 * len(CONTEXTS) if harness.FULL else 2  # for programs whose threads or stacks are others by then


class ControlFlow(Case):
    def every_instruction(self, *functions):
        """The options for a probe at every instruction and every return of those functions."""
        return [word for f in functions for word in ("--probe", f + ":*", "--return", f)]

    def come_and_go(self, t, probes, rounds=None):
        for i in range(ROUNDS if rounds is None else rounds):
            for _ in range(20):  # on a busy machine it may have no processor for so long
                r = self.attach(t, *probes, *CONTEXTS[i % len(CONTEXTS)], "-d", "0.15", "-o", "/dev/null", json_events=False)
                self.assertTrue(t.alive(), f"round {i}: status {t.process.poll()}\n{t.output()}\n{t.errors()}\n{r}")
                self.assertIn(r.status, (0, harness.EXIT_PARTIAL), str(r))
                hits = int(re.search(r"hits +(\d+)", r.err)[1])
                if hits > 10:
                    break
            self.assertGreater(hits, 10, str(r))
        return r

    def hold(self, name, *args, probes, rounds=None):
        t = self.target(name, *args)
        r = self.come_and_go(t, probes, rounds)
        self.assertFalse([m.key() for m in harness.maps(t.pid) if m.is_ours], str(r))  # r names what was left and why
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    # -- children in the same memory

    def test_children_in_the_same_memory(self):
        self.hold("cloner", rounds=AGAIN, probes=self.every_instruction("foo", "nested"))

    def test_processes_that_share_memory_without_being_threads(self):
        self.hold("cloner", "alone", probes=self.every_instruction("foo", "nested"))

    def test_process_that_shares_memory_as_long_as_the_program_lives(self):
        """Memory that it uses is not unmapped: what cannot be removed stays and is reported; the text is the program's own again."""
        t = self.target("cloner", "beside")
        r = self.attach(t, *self.every_instruction("foo", "nested"), "--tactic", "jump,pun", "-t", "regs", "-d", "0.2", "-o", "/dev/null", json_events=False)
        self.assertRegex(r.err, r"left +\d+ bytes stay in the target: process \d+ shares its memory")
        self.assertEqual(harness.changed_text(t.pid), [], str(r))
        self.assert_result_ok(t)

    def test_jumps_between_which_such_a_process_may_be_stay_and_are_reported(self):
        """It may have executed the short jump, and not yet the long one in an evicted instruction's place. When it has ended, both go."""
        t = self.target("cloner", "beside")
        neighbour = int(re.fullmatch(r"neighbour (\d+)\n", t.errors())[1])
        r = self.attach(t, *self.every_instruction("foo"), "--tactic", "jump,evict", "-n", 1000)
        left = r.summary["left_sites"]
        self.assertGreater(left, 0, str(r))
        self.assertIn("shares its memory", r.summary["left_why"])
        self.assertNotEqual(harness.changed_text(t.pid), [])
        self.assertIn(f" {left} changed place", harness.tool("status", "--pid", t.pid, status=0).stdout)
        refused = harness.tool("detach", "--pid", t.pid)
        self.assertRegex(refused.stderr, r"(?s)shares its memory.*DP-BUSY.*when that has passed")
        os.kill(neighbour, signal.SIGKILL)
        wait_until(lambda: harness.status(neighbour, "State")[0] in "ZX", what="it to end")
        harness.tool("detach", "--pid", t.pid, status=0)
        self.assert_clean(t.pid)

    def test_forks_and_spawned_children(self):
        self.hold("forker", probes=self.every_instruction("foo", "in_child"))

    def test_exec_in_a_thread(self):
        """The new program finds nothing of the probes, and runs."""
        t = self.target("execer", 0, "thread")
        p = self.start_attached(t, *self.every_instruction("foo"))
        self.await_events(p, "foo_entry")
        os.kill(t.pid, signal.SIGUSR1)
        r = self.finish(p, None)
        self.assertIn(r.status, (0, harness.EXIT_PARTIAL), str(r))
        wait_until(lambda: "second life" in t.output(), what="the next program")
        self.assert_clean(t.pid)
        self.assertEqual(t.stop(), 7)

    # -- jumps out of functions

    def test_coroutines_and_long_jumps(self):
        self.hold("jumper", rounds=AGAIN, probes=self.every_instruction("jumper!step", "yield", "resume", "deeper", "jump", "leave", "on_alarm"))

    def test_every_instruction_of_what_switches_stacks(self):
        """swapcontext, longjmp and their helpers in libc."""
        names = ("swapcontext", "_setjmp", "__sigsetjmp", "__longjmp", "siglongjmp")
        self.hold("jumper", probes=self.every_instruction(*(f"libc.so.6!{f}" for f in names)))

    # -- unwinding

    def test_exceptions_through_every_instruction(self):
        self.hold("unwinding", "exceptions", probes=self.every_instruction("thrower", "rethrower", "catcher", "keeper"))

    def test_every_instruction_of_the_unwinder(self):
        self.hold("unwinding", "exceptions",
                  probes=self.every_instruction("libgcc_s.so.1!_Unwind_RaiseException", "libgcc_s.so.1!_Unwind_Resume", "libstdc++.so.6!__cxa_throw",
                                                "libstdc++.so.6!__cxa_begin_catch", "libstdc++.so.6!__gxx_personality_v0"))

    def test_cancelled_threads_run_destructors_and_cleanup_handlers(self):
        self.hold("unwinding", "cancel", probes=self.every_instruction("spin", "waits", "exits"))

    def test_threads_cancelled_at_any_instruction(self):
        self.hold("canceller", probes=self.every_instruction("spin", "twice"))

    def test_threads_that_begin_and_end(self):
        self.hold("churn", probes=self.every_instruction("foo", "brief"))

    # -- a profiler in the program

    def test_samples_of_backtrace_never_crash(self):
        self.hold("walker", probes=self.every_instruction("leaf", "inner", "outer"))

    @harness.long_form
    @unittest.skipUnless(os.path.exists(harness.target_path("walker-libunwind")), "libunwind-dev is not installed")
    def test_samples_of_libunwind_never_crash(self):
        self.hold("walker-libunwind", probes=self.every_instruction("leaf", "inner", "outer"))


if __name__ == "__main__":
    harness.main()
