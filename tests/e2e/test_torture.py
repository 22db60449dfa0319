# SPDX-License-Identifier: MIT
"""Tests probes at random instructions of real programs and their libraries, in batches that come and go: the programs' output is the same.
This is the short form; `make torture` is the long one. A failure names its seed and keeps its batches.
"""

import os
import subprocess
import sys

import harness

HERE = os.path.dirname(os.path.abspath(__file__))
TORTURE = os.environ.get("TORTURE") or os.path.join(os.path.dirname(harness.TARGETS), "torture", "torture")
DRIVER = os.path.join(os.path.dirname(HERE), "torture", "run.py")
SECONDS = float(os.environ.get("TORTURE_SECONDS", "30" if harness.FULL else "0"))  # for all programs of a test; 0: one for each


class Torture(harness.Case):
    def under_torture(self, *programs):
        kept = os.environ.get("TORTURE_KEEP", os.path.join(os.path.dirname(TORTURE), "failures"))
        p = subprocess.run([sys.executable, "-B", DRIVER, "--torture", TORTURE, "--seconds", str(SECONDS or len(programs)), "--batch", "300", "--keep", kept, *programs],
                           capture_output=True, text=True, timeout=500, env=dict(os.environ, TARGETS=harness.TARGETS))
        print(p.stdout, file=sys.stderr)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertIn("TORTURE OK", p.stdout)

    def test_interpreters(self):
        self.under_torture("python3", "sqlite3", *(["bash"] if harness.FULL else []))

    def test_compiler_and_exceptions(self):
        """The compiler's many short processes are for the long form; forkload has such, too."""
        self.under_torture(*(["gcc"] if harness.FULL else []), "cxxthrow")

    @harness.long_form
    @harness.needs("redis-server")
    @harness.needs("redis-benchmark")
    def test_server_under_load(self):
        self.under_torture("redis-server")

    def test_signals_and_jumps(self):
        self.under_torture("sigstorm", "longjmper", "forkload")

    def test_refuse_DP_RSEQ_where_signal_handlers_return_to(self):
        """Unwinders recognise a signal frame by the bytes of the restorer: neither of its instructions may change."""
        t = self.target("spin")
        libc = next(m for m in harness.text_mappings(t.pid) if "libc.so" in m.path)
        at = harness.read_memory(t.pid, libc.start, libc.end - libc.start).find(bytes.fromhex("48c7c00f0000000f05"))
        self.assertGreater(at, 0)
        for offset in (0, 7):
            self.assert_refused(self.attach(t, "--probe", hex(libc.start + at + offset), "-n", 1), "DP-RSEQ")
        self.assert_result_ok(t)

    def test_the_instrument_can_fail(self):
        """A program whose results vary by themselves is not blamed on the torture; a program that does not exist is not a success."""
        p = subprocess.run([sys.executable, "-B", DRIVER, "--torture", "/bin/false", "--seconds", "1", "--keep", self.dir, "sqlite3"], capture_output=True,
                           text=True, timeout=200, env=dict(os.environ, TARGETS=harness.TARGETS))
        self.assertEqual(p.returncode, 1, p.stdout + p.stderr)
        self.assertIn("TORTURE BAD", p.stdout)


if __name__ == "__main__":
    if not os.access(TORTURE, os.X_OK):
        sys.exit(f"there is no torture at {TORTURE}: set TORTURE, or build first")
    harness.main()
