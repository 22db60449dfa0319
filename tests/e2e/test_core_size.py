# SPDX-License-Identifier: MIT
"""Tests that a probed program that crashes leaves the same core as without probes: it has no rings and tables."""

import os
import signal
import struct

import harness
from cores import CoreCase

MIB = 1 << 20


def segments(core):
    """{address: bytes in the file} for each mapping in a core."""
    with open(core, "rb") as f:
        data = f.read(1 << 16)
    phoff, n = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    headers = (struct.unpack_from("<IIQQQQQQ", data, phoff + 56 * i) for i in range(n))
    return {h[3]: h[5] for h in headers if h[0] == 1}


class CoreSize(CoreCase):
    def crash(self, how, *probes):
        """The status and the core's size of a program that crashes at SIGUSR1, with or without probes."""
        folder = self.path(f"cores-{how}-{len(probes)}")
        t = self.dumping(folder, "crasher", how, 1000)
        tool = self.start_attached(t, *probes) if probes else None
        if tool:
            self.await_events(tool)
            self.ours = [m for m in harness.maps(t.pid) if m.is_ours]
        os.kill(t.pid, signal.SIGUSR1)
        status = t.process.wait(300)
        if tool:
            r = self.finish(tool, None)
            self.assert_hits(r, 1000)
        return status, self.dumped(folder)

    def check(self, how, *probes):
        status, core = self.crash(how)
        probed_status, probed_core = self.crash(how, *probes)
        self.assertEqual(probed_status, status)
        plain, probed = os.path.getsize(core), os.path.getsize(probed_core)
        self.assertGreater(plain, 0)
        self.assertLessEqual(probed, 1.05 * plain + MIB)
        return probed_core

    def test_the_core_of_a_probed_program_is_as_large_as_without_probes(self):
        self.check("abort", "--function", "foo", "-t", "regs")

    def test_unwind_tables_are_not_in_the_core(self):
        self.check("segv", "--function", "foo", "-t", "backtrace")

    def test_the_text_of_large_modules_is_not_in_the_core(self):
        """Neither the text of the probed module, nor that of a module in which a thread was borrowed."""
        self.check("abort", "--function", "foo", "--function", "libc.so.6!clock_nanosleep", "--function", "libc.so.6!malloc", "-t", "regs")

    def test_code_is_in_the_core_for_a_debugger_and_data_is_not(self):
        _, core = self.crash("abort", "--function", "foo", "-t", "backtrace", "--buffer-size", "16M")
        dumped = segments(core)
        self.assertEqual({m.perms for m in self.ours}, {"r-xs", "rw-s", "r--s"})
        for m in self.ours:
            self.assertEqual(dumped[m.start], m.end - m.start if "x" in m.perms else 0, m.key())


if __name__ == "__main__":
    harness.main()
