#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests --interval and --top on a terminal: one table that is drawn again in its place, with rates, and the totals in the end."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading

import harness
from harness import Case

REDRAW = re.compile(r"\x1b\[(\d+)A\r\x1b\[J")


class Redraw(Case):
    def on_terminal(self, *args, redraws=3, columns=60, rows=20, resize=None, term="xterm", probe=("--function", "work", "--count", "--by", "caller"), mark=b"in the last"):
        """What dynprobe writes to a terminal until so many drawings have come and Ctrl-C ends it."""
        t = self.target("callers", "loop")
        terminal, tool = pty.openpty()
        fcntl.ioctl(tool, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        p = subprocess.Popen([harness.DYNPROBE, "--pid", str(t.pid), *probe, *args],
                             stdin=subprocess.DEVNULL, stdout=tool, stderr=subprocess.DEVNULL, env=harness.environment(TERM=term))
        data = b""

        def read():
            nonlocal data
            try:
                while more := os.read(terminal, 65536):
                    data += more
            except OSError:
                pass  # the other end was closed

        reader = threading.Thread(target=read)
        reader.start()
        harness.wait_until(lambda: data.count(mark) > redraws, what="drawings")
        if resize:
            fcntl.ioctl(tool, termios.TIOCSWINSZ, struct.pack("HHHH", *resize, 0, 0))
            harness.wait_until(lambda: b"\x1b[2J" in data, what="a drawing of the new size")
        os.close(tool)
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(300), 0)
        reader.join()
        os.close(terminal)
        self.assert_clean(t.pid)
        return data.decode().replace("\r\n", "\n")

    def test_one_table_and_then_the_totals(self):
        text = self.on_terminal("--interval", "50ms")
        first, *drawings = re.split(r"\x1b\[\d+A\r\x1b\[J", text)
        self.assertEqual(first.count("\n"), int(REDRAW.search(text).group(1)), "all lines of the first are replaced")
        for drawing in (first, *drawings[:-1]):
            self.assertRegex(drawing, r"^in the last [\d.]+ s\n +hits +hits/s probe, by caller\n")
            self.assertNotIn("\x1b", drawing)
        self.assertRegex(drawings[-1], r"^in [\d.]+ s\n +hits +hits/s probe, by caller\n(?: +\d+ +[\d.]+ work  (?:first|second)\n){2}$")

    def test_top_needs_no_interval(self):
        text = self.on_terminal("--top=1", redraws=1)
        self.assertRegex(text, r"\n +\d+ +[\d.]+ work  (?:first|second)\n +1 more row\n")

    def test_a_tree_of_calls_is_one_table_too(self):
        for args in (("--interval", "50ms"), ("--self", "--top=2")):
            text = self.on_terminal(*args, probe=("--calls", "first"), mark=b"self      calls", redraws=2)
            first, *drawings = re.split(r"\x1b\[\d+A\r\x1b\[J", text)
            self.assertGreater(len(drawings), 1)
            self.assertEqual(first.count("\n"), int(REDRAW.search(text).group(1)), "all lines of the first are replaced")
            for drawing in (first, *drawings):
                self.assertRegex(drawing, r"^in [\d.]+ s\n +total +self +calls  function\n")
                self.assertNotIn("\x1b", drawing)

    def test_lines_are_cut_and_a_new_size_begins_anew(self):
        text = self.on_terminal("--interval", "50ms", columns=24, rows=4, resize=(5, 30))
        before, after = text.split("\x1b[2J", 1)
        self.assertLess(max(len(line) for line in re.sub(r"\x1b\[\d*[AHJ]|\r", "", before).split("\n")), 24)
        self.assertRegex(before, r"\n\.\.\. \d+ more lines\n")
        self.assertNotIn("2J", after)

    def test_no_escapes_for_a_terminal_that_has_none(self):
        self.assertNotIn("\x1b", self.on_terminal("--interval", "50ms", term="dumb"))

    def test_line_by_line_elsewhere(self):
        t = self.target("callers", "loop")
        text = harness.tool("--pid", t.pid, "--function", "work", "--count", "--interval", "50ms", "-d", "0.3", status=0).stdout
        self.assertNotIn("\x1b", text)
        self.assertGreater(text.count("in the last"), 1)

    def test_bars_fit(self):
        text = self.on_terminal("--hist", "size", "--interval", "50ms", columns=60, rows=60)
        bars = re.findall(r"(?m)^\[.*\|$", text)
        self.assertTrue(bars)
        self.assertEqual({len(bar) for bar in bars}, {60 - 1}, "one column is left, so that no line wraps")


if __name__ == "__main__":
    harness.main()
