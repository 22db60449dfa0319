#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests an output that is not read: a signal and -d still end the run."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
import unittest

import harness
from harness import Case, State, wait_until


class Stalled(Case):
    def stall(self, t, *args, terminal=False, ready=lambda: True):
        """Starts dynprobe on a program, with a reader that stops reading once its output is full."""
        self.reader, writer = pty.openpty() if terminal else os.pipe()
        self.addCleanup(os.close, self.reader)
        if not terminal:
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)  # soon full, also of the samples of a program that gets little time
        full = select.poll()
        full.register(writer, select.POLLOUT)
        command = [harness.DYNPROBE, *args, "--pid", t.pid, "-o", "-", "--no-record"]
        p = self.spawn(*command, stdout=writer, stderr=subprocess.PIPE, text=True, env=harness.environment())
        if terminal:
            termios.tcflow(writer, termios.TCOOFF)  # Ctrl-S
        wait_until(lambda: p.poll() is not None or (ready() and not full.poll(0)), what="the output to be full")
        self.let_run(t)  # more than a buffer that counts as full still takes
        os.close(writer)
        return p

    def read_all(self):
        data = b""
        while True:
            try:
                more = os.read(self.reader, 65536)
            except OSError:  # a terminal whose other end is closed
                more = b""
            if not more:
                return data.decode()
            data += more

    def take(self, p, sig):
        """Sends a signal and waits until dynprobe has taken it. It still waits for its reader."""
        p.send_signal(sig)
        pending = lambda: int(harness.status(p.pid, "ShdPnd"), 16) >> (sig - 1) & 1
        wait_until(lambda: p.poll() is not None or not pending(), 30, "the signal to be taken")
        self.assertIsNone(p.poll(), "it waits for its reader")

    def let_duration_pass(self, p, seconds):
        """What dynprobe shows has begun. Since then so much time has passed, and dynprobe has looked at it."""
        time.sleep(seconds)  # what -d counts
        looks = lambda: int(harness.status(p.pid, "voluntary_ctxt_switches"))
        before = looks()
        wait_until(lambda: p.poll() is not None or looks() > before + 2, 30, "the time to be looked at")
        self.assertIsNone(p.poll(), "it waits for its reader")


class OutputStalls(Stalled):
    def begin(self, *args, terminal=False):
        self.t = self.target("spin", 0, 100)
        self.before = State(self.t.pid)
        return self.stall(self.t, "--function", "foo", "-t", "regs", *args, terminal=terminal, ready=lambda: harness.armed(self.t.pid))

    def clean(self):
        return not self.t.patched() and not any(m.is_ours for m in harness.maps(self.t.pid))

    def answered(self, p, sig):
        if sig:
            p.send_signal(sig)
        wait_until(self.clean, what="the probes to be removed")
        self.assertIsNone(p.poll(), "it waits for its reader")

    def test_a_signal_takes_the_probes_out_and_the_events_come_when_they_are_read(self):
        p = self.begin("-f", "json")
        self.answered(p, signal.SIGTERM)
        lines = self.read_all().splitlines()
        said = p.communicate(timeout=300)[1]
        self.assertEqual(p.returncode, 0, said)
        self.assertIn('"type":"summary"', lines[-1])
        events = sum('"type":"event"' in line for line in lines)
        self.assertEqual(events, int(re.search(r'"recorded":(\d+)', lines[-1])[1]))
        self.assert_clean(self.t.pid, self.before)

    def test_a_second_signal_ends_it_and_says_what_was_not_read(self):
        p = self.begin()
        self.answered(p, signal.SIGINT)
        p.send_signal(signal.SIGINT)
        said = p.communicate(timeout=300)[1]
        self.assertEqual(p.returncode, 0, said)
        self.assertRegex(said, r"a second signal came before all events were shown: \d+ hits and [1-9]\d* bytes of text were dropped\n")
        self.assert_clean(self.t.pid, self.before)
        self.assert_result_ok(self.t)

    def test_a_duration_ends_all_the_same(self):
        p = self.begin("-d", 10)  # within which its output is full
        self.answered(p, None)
        self.assertIn(" foo: ", self.read_all())
        said = p.communicate(timeout=300)[1]
        self.assertRegex(said, "ended by  duration")

    def test_a_terminal_that_was_stopped(self):
        p = self.begin(terminal=True)
        self.answered(p, signal.SIGINT)
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(300), 0)
        self.assert_clean(self.t.pid, self.before)


class RecorderStalls(Stalled):
    def begin(self, *args):
        self.t = self.target("spin", 0, 100)
        harness.tool("attach", "--pid", self.t.pid, "--function", "foo", "-t", "regs", "--sink", "ring", status=0)
        return self.stall(self.t, "record", *args)

    def end(self):
        harness.tool("detach", "--pid", self.t.pid, status=0)
        self.assert_clean(self.t.pid)
        self.assert_result_ok(self.t)

    def test_a_signal_ends_it_and_the_events_come_when_they_are_read(self):
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            p = self.begin("-f", "json")
            self.take(p, sig)
            lines = self.read_all().splitlines()
            said = p.communicate(timeout=300)[1]
            self.assertEqual(p.returncode, 0, said)
            summary = json.loads(lines[-1])
            self.assertEqual(summary["ended_by"], "interrupt")
            self.assertEqual(sum('"type":"event"' in line for line in lines), summary["probes"][0]["recorded"])
            self.end()

    def test_a_second_signal_drops_what_was_not_read(self):
        p = self.begin()
        self.take(p, signal.SIGTERM)
        p.send_signal(signal.SIGTERM)
        said = p.communicate(timeout=300)[1]
        self.assertEqual(p.returncode, 0, said)
        self.assertRegex(said, r"a signal came before all events were shown: [1-9]\d* bytes of text were dropped\n")
        self.end()

    def test_a_duration_ends_it_all_the_same(self):
        p = self.begin("-d", 1)
        self.let_duration_pass(p, 1)
        p.send_signal(signal.SIGTERM)  # one is enough now
        said = p.communicate(timeout=300)[1]
        self.assertEqual(p.returncode, 0, said)
        self.assertRegex(said, "ended by  duration")
        self.end()


@unittest.skipIf("DP-PERF" in harness.tool("--profile", "10", "--no-record", "-q", "--", "/bin/true").stderr, "perf events are refused here")
class ProfileStalls(Stalled):
    def begin(self, *args):
        self.t = self.target("spin")
        return self.stall(self.t, "--profile", 999, *args)

    def test_a_signal_ends_it_and_the_samples_come_when_they_are_read(self):
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            p = self.begin("-f", "json")
            self.take(p, sig)
            lines = self.read_all().splitlines()
            said = p.communicate(timeout=300)[1]
            self.assertEqual(p.returncode, 0, said)
            profile = json.loads(lines[-1])
            self.assertEqual(profile["ended_by"], "interrupt")
            self.assertEqual(sum('"type":"event"' in line for line in lines), profile["samples"])
            self.assert_result_ok(self.t)

    def test_a_second_signal_drops_what_was_not_read(self):
        p = self.begin()
        self.take(p, signal.SIGTERM)
        p.send_signal(signal.SIGTERM)
        said = p.communicate(timeout=300)[1]
        self.assertEqual(p.returncode, 0, said)
        self.assertRegex(said, r"a signal came before all events were shown: [1-9]\d* bytes of text were dropped\n")
        self.assertRegex(said, r"dynprobe: \d+ samples in .*; interrupt\n")

    def test_a_duration_ends_it_all_the_same(self):
        p = self.begin("-d", 3)
        self.let_duration_pass(p, 3)
        p.send_signal(signal.SIGTERM)  # one is enough now
        said = p.communicate(timeout=300)[1]
        self.assertEqual(p.returncode, 0, said)
        self.assertRegex(said, r"dynprobe: \d+ samples in .*; duration\n")


if __name__ == "__main__":
    harness.main()
