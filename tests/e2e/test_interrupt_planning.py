#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests a signal while many probes are being planned: the command ends with the documented status, and the target is unchanged."""

import signal
import subprocess

import harness
from harness import Case, State, wait_until

MANY = "libc.so.6![f-p]*:*"  # some thousand instructions


class InterruptPlanning(Case):
    def interrupt(self, number, before=(), behind=()):
        """Sends the signal once the command has blocked it to handle it later, which is before it looks for the first probe."""
        t = self.target("spin", 0, 1000)
        state = State(t.pid)
        command = [harness.DYNPROBE, *before, "--pid", str(t.pid), "--probe", MANY, *behind]
        tool = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=harness.environment())
        wait_until(lambda: int(harness.status(tool.pid, "SigBlk"), 16) >> (number - 1) & 1, what="the command to block the signal")
        tool.send_signal(number)
        out, said = tool.communicate(timeout=300)
        self.assertEqual(tool.returncode, 128 + number, said)
        self.assertIn("DP-INTERRUPTED", said)
        self.assertEqual(out, "")
        self.assertEqual(State(t.pid).differences(state), {})
        self.assert_result_ok(t)

    def test_dry_run(self):
        self.interrupt(signal.SIGINT, behind=["--dry-run"])

    def test_live(self):
        self.interrupt(signal.SIGTERM, behind=["--no-record"])

    def test_attach(self):
        self.interrupt(signal.SIGINT, before=["attach"])


if __name__ == "__main__":
    harness.main()
