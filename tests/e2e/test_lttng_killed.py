# SPDX-License-Identifier: MIT
"""Tests kill -9 of dynprobe while it loads LTTng into a process, and removes its probes: the program continues, and a later dynprobe works.

Every system call of attach and detach with DP_FULL=1; otherwise a sample of them, another one each time.
"""

import os
import random
import re
import signal
import subprocess
import time

import harness
import killing
import lttng_env
import lttng_probe
from harness import DYNPROBE, target_path, wait_until

SAMPLES = 1  # of each target and verb; at another instant each time
HANG_US = 1_500_000  # LTTng itself would wait three seconds for a hung daemon
SELDOM = ("--when", "(edi & 63) == 5")
TARGETS = {"one_thread": ("spin", 0, 100), "many_threads": ("threads", 12), "threads_in_system_calls": ("eintr",)}


class Killed(killing.Killing, lttng_probe.WithDaemon):
    def setUp(self):
        super().setUp()
        self.rounds = 0

    # -- a killed tool

    def run_killed(self, at, *args):
        return super().run_killed(at, *args, **self.root.popen())

    # -- checks

    def assert_works(self, t):
        """A later dynprobe removes what was left, and its own probe's events arrive."""
        self.run_tool("detach", "--pid", t.pid)  # all of it, or nothing, may be left
        self.rounds += 1
        name = f"after_{self.rounds}"
        self.session(name, f"dynprobe:{name}")
        self.leave(t, "--name", name, "--function", "foo", "-t", "reg:edi", *SELDOM, session=name)

        def arrived():
            found = self.events(name, name)
            self.lttng("start", name)
            return found

        events = wait_until(arrived, 60, "an event of a probe attached after the kill")
        self.assertEqual({e.fields["edi"] & 63 for e in events}, {5})
        self.tool("detach", "--pid", t.pid)
        self.assertEqual(harness.changed_text(t.pid), [])
        self.lttng("destroy", name)

    def assert_right(self, t):
        """The program's results are correct, with the exception stated under G1: a wait that the kernel ended in the instant of the kill."""
        if t.stop() != 0:
            self.assertRegex(t.output(), r"RESULT BAD interrupted \d+ wrong 0\b", t.errors()[-1500:])

    def one_round(self, target, at, prepare, *args):
        t = self.program(*target)
        prepare(t)
        _, call, p = self.run_killed(at, *args, "--pid", t.pid)
        with self.subTest(target=target[0], verb=args[0], stop=at, call=call):
            self.goes_on(t)
            left = bool(harness.changed_text(t.pid))
            self.assert_works(t)
            self.goes_on(t)
            self.assert_right(t)
            return left
        t.close()
        return False

    def matrix(self, target, prepare, *args):
        t = self.program(*target)
        prepare(t)
        total, _, p = self.run_killed(0, *args, "--pid", t.pid)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.run_tool("detach", "--pid", t.pid)
        self.assert_right(t)
        left = [self.one_round(target, at, prepare, *args) for at in self.instants(total, SAMPLES)]
        if harness.FULL:
            self.assertTrue(any(left), "no kill came while the probe was installed")

    PROBE = ("--function", "foo", "-t", "reg:edi", *SELDOM, "--session", "s")

    def attach(self, target):
        self.session("s", "dynprobe:*")
        self.matrix(target, lambda t: None, "attach", *self.PROBE)

    def detach(self, target):
        self.session("s", "dynprobe:*")
        self.matrix(target, lambda t: self.tool("attach", "--pid", t.pid, *self.PROBE), "detach")

    def test_attach_one_thread(self):
        self.attach(TARGETS["one_thread"])

    @harness.long_form  # its two threads that spin are in test_killed_again_and_again_on_one_process as well
    def test_attach_many_threads(self):
        self.attach(TARGETS["many_threads"])

    def test_attach_threads_in_system_calls(self):
        self.attach(TARGETS["threads_in_system_calls"])

    def test_detach_one_thread(self):
        self.detach(TARGETS["one_thread"])

    @harness.long_form
    def test_detach_many_threads(self):
        self.detach(TARGETS["many_threads"])

    def test_detach_threads_in_system_calls(self):
        self.detach(TARGETS["threads_in_system_calls"])

    def test_killed_again_and_again_on_one_process(self):
        self.session("s", "dynprobe:*")
        t = self.program("threads", 12)
        rng = random.Random()
        for _ in range(60 if harness.FULL else 2):
            for verb, args in (("attach", self.PROBE), ("detach", ())):
                self.run_killed(rng.randrange(1, 3000), verb, *args, "--pid", t.pid)
                self.goes_on(t)
        self.assert_works(t)
        self.assert_right(t)

    def test_killed_at_any_moment_with_its_helpers(self):
        """Kills the whole process group, as a terminal or a service manager does."""
        self.session("s", "dynprobe:*")
        rng = random.Random()
        for target in (("gaps", 8 if harness.FULL else 3), ("libcstorm", 1, 1, 1, 1)):
            t = self.program(*target)
            for _ in range(60 if harness.FULL else 2):
                argv = [DYNPROBE, "attach", "--pid", str(t.pid), "--function", "libc.so.6!malloc", *SELDOM, "--session", "s"]
                with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, **self.root.popen()) as p:
                    time.sleep(rng.uniform(0, 0.3))  # any moment
                    os.killpg(p.pid, signal.SIGKILL)
                self.goes_on(t)
                self.run_tool("detach", "--pid", t.pid)
            self.tool("attach", "--pid", t.pid, "--function", "libc.so.6!malloc", *SELDOM, "--session", "s")
            self.end(t)


class Hung(lttng_probe.Case):
    """A session daemon that keeps its sockets open and answers no request."""

    def gap(self, t):
        self.assertEqual(t.stop(), 0, t.output())
        self.assertIn("RESULT OK", t.output())
        return int(re.search(r"longest gap (\d+) us", t.output())[1])

    def measured(self, do):
        """The longest gap of a probed program's threads, and of an undisturbed program beside it: what the machine causes."""
        urgent = ("chrt", "-f", "10")  # not delayed by other programs
        t, control = (self.program(target_path("gaps"), 6, prefix=urgent) for _ in range(2))
        self.let_run()
        do(t)
        self.let_run()
        return self.gap(t), self.gap(control)

    def probe(self, t, *args, fails=False):
        p = self.run_tool("attach", "--pid", t.pid, "--function", "foo", *args, timeout=300)
        self.assertEqual(bool(harness.changed_text(t.pid)), not fails, p.stderr)

    def frozen_in_between(self, daemon, delay):
        def do(t):
            argv = [DYNPROBE, "attach", "--pid", str(t.pid), "--function", "foo", "--session", "s"]
            with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self.root.popen()) as p:
                time.sleep(delay)
                daemon.freeze()
                p.wait(300)

        return do

    @harness.long_form  # it measures time; lttng_sessiond.Hung holds each of these hangs, with a wider bound
    def test_hung_session_daemon_delays_no_thread(self):
        figures = {
            "unprobed": self.measured(lambda t: time.sleep(1)),  # as long as an attach
            "no daemon": self.measured(lambda t: self.probe(t, "--sink", "lttng")),
        }
        daemon = self.sessiond()
        figures["daemon"] = self.measured(lambda t: self.probe(t, "--session", "s"))
        daemon.freeze()
        figures["hung"] = self.measured(lambda t: self.probe(t, "--sink", "lttng", fails=True))
        figures["hung, session asked for"] = self.measured(lambda t: self.probe(t, "--session", "s", fails=True))
        daemon.thaw()
        for i in range(20) if harness.FULL else (0, 4):
            delay = (i + 0.5) * 0.03
            figures[f"hung {delay * 1000:.0f} ms into the attach"] = self.measured(self.frozen_in_between(daemon, delay))
            daemon.thaw()
            self.await_sessiond(daemon)
        print("longest gap of any thread in us, (probed, unprobed):", figures, flush=True)
        self.assertEqual({k: v for k, v in figures.items() if v[0] - v[1] > HANG_US}, {})

    def test_probes_work_once_it_answers_again(self):
        """Frozen in the middle of a registration, LTTng 2.13's daemon may record nothing of that user's programs any more, not even in new
        sessions (their metadata lacks the stream): an attach then leaves probes all the same, and events arrive at the next daemon."""
        daemon = self.sessiond()
        self.session("s", "dynprobe:foo")
        t = self.program("gaps", 6 if harness.FULL else 2)
        self.frozen_in_between(daemon, 0.08)(t)
        daemon.thaw()
        self.await_sessiond(daemon)
        self.run_tool("detach", "--pid", t.pid)
        self.leave(t, "--function", "foo", "-t", "reg:edi")
        self.tool("detach", "--pid", t.pid)
        daemon.kill()
        daemon.stop()
        daemon.start()
        self.await_sessiond(daemon)
        self.session("next", "dynprobe:foo")
        self.leave(t, "--function", "foo", "-t", "reg:edi", session="next")

        def arrived():
            found = self.events("next")
            self.lttng("start", "next")
            return found

        wait_until(arrived, 60, "events at the next daemon")
        self.end(t)


if __name__ == "__main__":
    lttng_env.main()
