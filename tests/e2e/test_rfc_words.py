# SPDX-License-Identifier: MIT
"""Tests the command lines of the 2013 proposal and of lttng(1), typed after dynprobe: each does what docs/lttng.md says."""

import os
import re

import harness
from harness import Case

ROUNDS = 100 if harness.FULL else 3


class Words(Case):
    def tool(self, *args, status=0, env=None):
        return harness.tool(*args, env=env or dict(harness.environment(), HOME=self.dir, LTTNG_HOME=self.dir), status=status)

    def resident(self, t):
        """Name to (enabled or disabled, place, contexts), as list -u has it."""
        out = self.tool("list", "-u", "--pid", t.pid).stdout
        return {m[1]: (m[2], m[3]) for m in re.finditer(r"^  (\w+) +(enabled|disabled) +0x\w+  (\S+)", out, re.M)}, out

    def test_events_of_a_running_process(self):
        for _ in range(ROUNDS):
            t = self.target("points", 0, 500)
            r = self.tool("enable-event", "aname", "-u", "--pid", t.pid, "--probe", "do_nothing2+0x1")
            self.assertIn("events stay in the target (there is no current LTTng session)", r.stderr)
            self.tool("enable-event", "-u", "octal", "--pid", t.pid, "--probe", "two_returns+02")
            self.tool("enable-event", "entry", "--userspace", "--pid", t.pid, "--function", "with_cold")
            self.tool("enable-event", "inside", "-u", "--pid", t.pid, "--function", "tail_memory+4")
            for context in ("reg:rdi", "regs", "backtrace"):
                self.tool("add-context", "-u", "-e", "aname", "--pid", t.pid, "-t", context)
            self.tool("add-context", "--pid", t.pid, "-e", "entry", "-t", "reg:rsp")
            self.tool("disable-event", "octal", "-u", "--pid", t.pid)
            there, text = self.resident(t)
            self.assertEqual(there, {"aname": ("enabled", "do_nothing2+0x1/0xd"), "octal": ("disabled", "two_returns+0x2/0x12"),
                                     "entry": ("enabled", "with_cold+0x0/0x14"), "inside": ("enabled", "tail_memory+0x4/0xe")}, text)
            self.assertRegex(text, r"records +reg:rdi, regs, backtrace")
            self.tool("enable-event", "octal", "-u", "--pid", t.pid)
            self.assertEqual(self.resident(t)[0]["octal"][0], "enabled")
            self.tool("detach", "--pid", t.pid)
            self.assert_clean(t.pid)
            self.assert_result_ok(t)

    def test_a_command_that_is_started(self):
        home = dict(harness.environment(), HOME=self.dir, LTTNG_HOME=self.dir)
        for _ in range(ROUNDS):
            self.tool("trace", "-c", "ls -l /", "--probe", "write", "--function", "malloc", env=home)
            self.assertRegex(self.tool("view", env=home).stdout, r"\] malloc\n(.*\n)*.*\] write\n")
        last = sorted(os.listdir(os.path.join(self.dir, "lttng-traces")))[-1]
        self.assertIn("] malloc\n", self.tool("view", os.path.join(self.dir, "lttng-traces", last), env=home).stdout)

    def test_addresses_in_the_three_bases_of_c(self):
        t = self.target("points", 0, 500)
        plan = self.tool("--pid", t.pid, "--dry-run", "--function", "two_returns").stdout
        addr = int(re.search(r"0x[0-9a-f]+", plan)[0], 16)
        for option in ("--probe", "--function"):
            for text in (f"{addr:#x}", f"{addr:d}", f"0{addr:o}", "two_returns+0x2", "two_returns+2", "two_returns+02"):
                self.assertIn("1 of 1 placed", self.tool("--pid", t.pid, "--dry-run", option, text).stdout, text)
        self.assert_result_ok(t)

    def test_wrong_words(self):
        for words in (("enable-event",), ("enable-event", "-u", "--pid", 1), ("disable-event", "--pid", 1), ("view", "-x")):
            self.assertIn("[DP-USAGE]", self.tool(*words, status=harness.OWN_FAILURE).stderr, words)
        self.assertIn("enable-event NAME -u", self.tool("--help").stdout)


if __name__ == "__main__":
    harness.main()
