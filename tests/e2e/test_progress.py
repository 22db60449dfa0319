#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the progress counter while many probes are planned, installed and removed: only on a terminal, and nothing of it stays."""

import json
import os
import pty
import re
import subprocess
import threading

import harness
from harness import Case

COUNTER = re.compile(r"\r\x1b\[Kdynprobe: (looking up|matching functions|planning|placing|removing) (\d+) of (\d+)")


def screen(text):
    """The contents of the terminal's lines at the end."""
    lines = []
    for line in text.split("\n"):
        shown = ""
        for part in re.split(r"(\r\x1b\[K|\r)", line):
            shown = "" if part == "\r\x1b[K" else shown if part == "\r" else shown + part
        lines.append(shown)
    return lines


class Progress(Case):
    def on_terminal(self, *args):
        """The output on a terminal that is standard error."""
        t = self.target("thousands", 2, 0)
        terminal, tool = pty.openpty()
        p = subprocess.Popen([harness.DYNPROBE, "--pid", str(t.pid), "--no-record", "--count", "-d", "0.1", *args], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=tool, env=harness.environment())
        os.close(tool)
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
        self.assertEqual(p.wait(300), 0)
        reader.join()
        os.close(terminal)
        self.assert_clean(t.pid)
        return data.decode().replace("\r\n", "\n")

    def test_it_moves_and_goes(self):
        text = self.on_terminal("--function", "*")
        seen = {}
        for what, done, of in COUNTER.findall(text):
            seen.setdefault(what, []).append(int(done))
            self.assertLessEqual(int(done), int(of))
        self.assertLessEqual({"looking up", "planning", "placing", "removing"}, set(seen), text[-3000:])
        self.assertGreater(len(set(seen["planning"])), 1, seen)
        for counts in seen.values():
            self.assertEqual(counts, sorted(counts))
        left = screen(text)
        self.assertFalse([line for line in left if re.search(r" \d+ of \d+$", line)], left)
        self.assertTrue([line for line in left if line.startswith("dynprobe: matched ")], left)
        self.assertFalse([line for line in left if re.search(r" \d+ of \d+dynprobe: ", line)], left)
        self.assertIn("dynprobe: counting; Ctrl-C ends", left)

    def test_quiet_has_none(self):
        text = self.on_terminal("--function", "*", "-q")
        self.assertNotIn("\x1b[K", text)
        self.assertNotIn("ms to remove", text)

    def test_few_probes_leave_nothing_either(self):
        left = screen(self.on_terminal("--function", "f1234*"))
        self.assertFalse([line for line in left if re.search(r" \d+ of \d+$", line)], left)

    def test_what_many_places_will_cost_is_said_before_they_are_touched(self):
        t = self.target("thousands", 2, 0)
        said = r"(\d+) sites in (\d+) pages of text of \d+ \(thousands\): about (\d+) ms to install, \d+ ms to remove; .* 7 ms at most \(--max-pause\)"
        words = map(str, ("--pid", t.pid, "--function", "*", "--max-pause", 7, "--dry-run", "-f", "json"))
        dry = harness.tool(*words)
        total = json.loads(dry.stdout.splitlines()[-1])
        r = self.attach(t, "--function", "*", "--max-pause", 7, "--count", "-d", "0.1")
        self.assert_ok(r)
        self.assertNotIn("\x1b", r.err, "standard error is no terminal: there is no counter")
        self.assertNotIn("\r", r.err)
        places, pages, ms = map(int, re.search(said, r.err).groups())
        self.assertLess(re.search(said, r.err).start(), r.err.index("ended by") if "ended by" in r.err else len(r.err))
        self.assertGreater(places, 20000)
        self.assertEqual((pages, 7000000), (total["text_pages"], total["together_ns"]))
        self.assertLess(abs(ms - total["install_ns"] / 1e6), 10, "which neighbours are evicted is random")
        self.assertNotIn("ms to remove", self.attach(t, "--function", "f1234*", "--count", "-d", "0.1").err)
        self.assert_result_ok(t)


if __name__ == "__main__":
    harness.main()
