# SPDX-License-Identifier: MIT
"""Tests kill -9 of dynprobe at every one of its system calls, and stops of it: the target continues with right results (G1).

DP_FULL=1 tests every call; otherwise a sample of them, another one each time.
"""

import itertools
import os
import random
import re
import signal
import subprocess
import time
import unittest

import harness
import killing
from harness import DYNPROBE, Case, State, changed_text, target_path

SAMPLES = 10


class Killed(killing.Killing, Case):
    def run_on(self, at, target, *args):
        """Runs dynprobe on the target under killat; returns (system call stops, number of the last call, exit status)."""
        stops, call, p = self.run_killed(at, "-v", "--no-record", "-o", os.devnull, "--pid", target.pid, *args, env=harness.environment(ASAN_OPTIONS="detect_leaks=0"))
        # The kernel makes a call fail when its thread stops; if the tool dies just then, the call is not repaired.
        together = "threads held for" in p.stderr or "all threads are held" in p.stderr
        target.may_interrupt = getattr(target, "may_interrupt", 0) + (len(os.listdir(f"/proc/{target.pid}/task")) if together else 1 if at else 0)
        return stops, call, p.returncode

    def assert_result_right(self, t):
        """assert_result_ok, with the exception stated under G1: between a stop and its repair there is an instant at which the kernel has already
        made a call fail with EINTR. Nothing else may be wrong. At most one call per kill is affected if one thread is stopped at a time."""
        if t.stop() == 0:
            self.assertIn("RESULT OK", t.output())
            return 0
        found = re.search(r"RESULT BAD interrupted (\d+) wrong 0\b", t.output())
        self.assertTrue(found, t.output()[-1500:] + t.errors()[-1500:])
        self.assertLessEqual(int(found[1]), t.may_interrupt, t.errors()[-1500:])
        return int(found[1])

    def at_every_call(self, name, *args, target_args=(), fresh=True):
        t = self.target(name, *target_args)
        total, _, status = self.run_on(0, t, *args)
        self.assertEqual(status, 0)
        self.assert_clean(t.pid)
        left = interrupted = kills = 0
        sampled = list(self.instants(total, SAMPLES))
        further = (random.randrange(1, total) for _ in range(100))  # until one comes while the probe is installed: a seventh of the time
        for at in itertools.chain(sampled, further):
            if left and kills >= len(sampled):
                break
            kills += 1
            if fresh or not t.alive():
                interrupted += self.assert_result_right(t) > 0
                t.close()
                t = self.target(name, *target_args)
            _, call, _ = self.run_on(at, t, *args)
            with self.subTest(stop=at, call=call):
                self.goes_on(t)
                left += bool(changed_text(t.pid))
                if kills % 4 == 0:  # a later dynprobe finds and removes what was left, and works
                    r = self.attach(t, "--function", "foo", "-n", 3)
                    self.assert_ok(r)
                    self.assert_clean(t.pid)
        interrupted += self.assert_result_right(t) > 0
        self.assertGreater(left, 0, "no kill came while the probe was installed")
        # One such instant in thirty kills is usual: among ten it may come twice.
        self.assertLessEqual(interrupted, max(2, kills // 10), "more calls failed than the short instant between a stop and its repair explains")

    def test_at_every_call_one_thread(self):
        self.at_every_call("spin", "--function", "foo", "-t", "regs", "-n", "20", target_args=(0, 100))

    def test_at_every_call_many_threads(self):
        self.at_every_call("threads", "--function", "foo", "-t", "backtrace", "-n", "20", target_args=(12,))

    def test_at_every_call_no_system_call_is_interrupted(self):
        self.at_every_call("eintr", "--function", "foo", "-n", "2")

    def test_killed_again_and_again_on_the_same_target(self):
        t = self.target("spin", 0, 100)
        total, _, _ = self.run_on(0, t, "--function", "foo", "-n", "20")
        rng = random.Random()
        for i in range(40 if harness.FULL else 5):
            self.run_on(rng.randrange(1, total), t, "--function", "foo", "-n", "20")
            self.goes_on(t)
        r = self.attach(t, "--function", "foo", "-n", 20)
        self.assert_ok(r)
        self.assert_hits(r, 20)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_killed_while_launching(self):
        """If dynprobe dies before its command has run, the command either runs correctly or not at all."""
        report = self.path("stops")
        argv = lambda at: [target_path("killat"), str(at), report, DYNPROBE, "--no-record", "-o", os.devnull, "--function", "foo", "--",
                           target_path("spin"), "200"]
        subprocess.run(argv(0), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
        total = int(open(report).read().split()[0])
        ran, not_run = 0, 0
        for at in list(self.instants(total, SAMPLES))[:: 2 if harness.FULL else 1]:
            with self.subTest(stop=at):
                # reads to the end of the output: until no process can write there
                text = subprocess.run(argv(at), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=300).stdout
                if text:
                    self.assertIn("RESULT OK", text)
                ran, not_run = ran + bool(text), not_run + (not text)
        self.assertGreater(ran, 0, "no kill came after the command had started")
        self.assertGreater(not_run, 0, "no kill came before the command had started")

    def test_probed_program_after_the_kill_keeps_its_results(self):
        """The ring fills because no tool drains it; the program continues, and the next dynprobe works."""
        t = self.target("spin")
        before = State(t.pid)
        p = self.start_attached(t, "--function", "foo", "-t", "regs")
        self.let_run(t)
        p.kill()
        p.wait()
        self.let_run(t, steps=500)
        self.goes_on(t)
        r = self.attach(t, "--function", "foo", "-n", 5)
        self.assert_ok(r)
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    def test_events_survive_up_to_the_last_drain(self):
        t = self.target("spin", 0, 500)
        trace = self.path("trace")
        p = self.start_attached(t, "--function", "foo", "-t", "reg:rdi", record=trace)
        self.await_output(p, 20000)
        p.kill()
        p.wait()
        self.assertGreater(len(harness.babeltrace(trace)), 20)

    def test_stopped_dynprobe_holds_nobody(self):
        t = self.target("threads", 16)
        p = self.start_attached(t, "--function", "foo", "--when", "arg0 % 256 == 0")  # few events: the threads do nothing but hit
        p.send_signal(signal.SIGSTOP)
        for _ in range(60 if harness.FULL else 2):
            time.sleep(1)  # for the timers of the hold watchdog
            self.goes_on(t)
        p.send_signal(signal.SIGCONT)
        r = self.finish(p)
        self.assert_hits(r)
        self.assertIsNotNone(r.summary)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)


@unittest.skipUnless(os.path.exists(target_path("killat")), "killat was not built")
class Tool(Case):
    def test_killat_counts_and_kills(self):
        report = self.path("stops")
        self.assertEqual(subprocess.run([target_path("killat"), "0", report, "true"]).returncode, 0)
        total = int(open(report).read().split()[0])
        self.assertGreater(total, 20)
        self.assertEqual(subprocess.run([target_path("killat"), "10", report, "true"]).returncode, 128 + signal.SIGKILL)
        self.assertEqual(int(open(report).read().split()[0]), 10)


if __name__ == "__main__":
    harness.main()
