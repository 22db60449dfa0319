#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests an output that is not read: a signal and -d still end the run."""

import os
import pty
import re
import select
import signal
import subprocess
import termios

import harness
from harness import Case, State, wait_until


class OutputStalls(Case):
    def begin(self, *args, terminal=False):
        """Starts a run whose reader stops reading once its output is full."""
        self.t = self.target("spin", 0, 100)
        self.before = State(self.t.pid)
        self.reader, writer = pty.openpty() if terminal else os.pipe()
        self.addCleanup(os.close, self.reader)
        full = select.poll()
        full.register(writer, select.POLLOUT)
        command = [harness.DYNPROBE, "--pid", self.t.pid, "--function", "foo", "-t", "regs", "-o", "-", "--no-record", *args]
        p = self.spawn(*command, stdout=writer, stderr=subprocess.PIPE, text=True, env=harness.environment())
        if terminal:
            termios.tcflow(writer, termios.TCOOFF)  # Ctrl-S
        wait_until(lambda: p.poll() is not None or (harness.armed(self.t.pid) and not full.poll(0)), what="the output to be full")
        self.let_run(self.t)  # more than a buffer that counts as full still takes
        os.close(writer)
        return p

    def clean(self):
        return not self.t.patched() and not any(m.is_ours for m in harness.maps(self.t.pid))

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
        p = self.begin("-d", 2)
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


if __name__ == "__main__":
    harness.main()
