# SPDX-License-Identifier: MIT
"""Tests a uprobe on a probed site: our probe retires, and the program's results stay right."""

import os
import re
import subprocess

import binutils
import harness
from harness import Case, State, needs_root, wait_until


class Tracefs:
    """A private mount of tracefs, removed at the end."""

    def __init__(self, case):
        self.root = "/sys/kernel/tracing"
        if not os.path.exists(self.root + "/uprobe_events"):
            self.root = case.path("tracefs")
            os.mkdir(self.root)
            if subprocess.run(["mount", "-t", "tracefs", "nodev", self.root], capture_output=True).returncode != 0:
                case.skipTest("tracefs cannot be mounted here")
            case.addCleanup(subprocess.run, ["umount", self.root], capture_output=True)
        if not os.path.exists(self.root + "/uprobe_events"):
            case.skipTest("this kernel has no uprobe events")

    def write(self, name, text):
        # O_APPEND: without it the events file would be emptied. Not open(..., "a"): that seeks, which fails here.
        fd = os.open(os.path.join(self.root, name), os.O_WRONLY | os.O_APPEND)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)


@needs_root
class Uprobe(Case):
    def setUp(self):
        super().setUp()
        self.fs = Tracefs(self)
        self.event = f"dp_test_{os.getpid()}"
        self.addCleanup(self.detach)

    def attach_uprobe(self, path, offset):
        self.fs.write("uprobe_events", f"p:{self.event}/e {path}:{offset:#x}\n")
        self.fs.write(f"events/{self.event}/e/enable", "1")

    def detach(self):
        try:
            self.fs.write(f"events/{self.event}/e/enable", "0")
            self.fs.write("uprobe_events", f"-:{self.event}/e\n")
        except OSError:
            pass

    def file_offset(self, path, symbol):
        address = harness.symbol_address(path, symbol)
        out = binutils.readelf("-lW", path)
        for m in re.finditer(r"LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", out):
            offset, start, size = (int(x, 16) for x in m.groups())
            if start <= address < start + size:
                return address - start + offset
        raise KeyError(symbol)

    def test_uprobe_on_our_site(self):
        t = self.target("spin", 0, 20)
        before = State(t.pid)
        p = self.start_attached(t, "--function", "foo", "--function", "caller", "-t", "reg:rdi")
        self.attach_uprobe(t.path, self.file_offset(t.path, "foo"))
        wait_until(lambda: "retired" in self.said(p), what="the probe to retire")
        self.detach()
        self.await_events(p, "caller", 10)
        r = self.finish(p)
        self.assertIn("retired", str(r.lines) + r.err, str(r))
        self.assertIn("caller", {e["probe"] for e in r.events[-5:]}, "the other probe continues")
        wait_until(lambda: not harness.changed_text(t.pid), what="the original text")
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    def test_uprobe_that_was_there_first_is_left_alone(self):
        t = self.target("spin", 0, 200)
        self.attach_uprobe(t.path, self.file_offset(t.path, "foo"))
        wait_until(t.patched, what="the uprobe")
        self.assert_refused(self.attach(t, "--function", "foo", "-n", 1), "DP-FOREIGN")
        self.detach()
        self.assert_clean(t.pid)
        self.assert_result_ok(t)


if __name__ == "__main__":
    harness.main()
