# SPDX-License-Identifier: MIT
"""Tests the recorded trace: babeltrace2 and lttng view read it, and it has the events that were shown."""

import os
import re
import shutil
import subprocess

import harness
from harness import Case, needs


@needs("babeltrace2")
class Record(Case):
    def test_run_without_a_probe_leaves_no_directory(self):
        t = self.target("spin")
        mine, new = self.path("mine"), self.path("new")
        os.mkdir(mine)
        for trace in new, mine:
            r = self.attach(t, "--function", "foo", "--tactic", "jump", record=trace)
            self.assert_refused(r, "DP-TOO-SHORT", "none of the probes could be placed")
            self.assertNotIn("DP-USAGE", r.err)
        self.assertFalse(os.path.exists(new))
        self.assertEqual(os.listdir(mine), [])
        with open(mine + "/other", "w"):
            pass
        self.attach(t, "--function", "foo", "--tactic", "jump", record=mine)
        self.assertEqual(os.listdir(mine), ["other"])

    def recorded(self, *contexts, n=20, name="spin", function="foo"):
        t = self.target(name, 0, 300)
        trace = self.path("trace")
        r = self.attach(t, "--function", function, *(x for c in contexts for x in ("-t", c)), "-n", n, record=trace)
        self.assert_ok(r)
        return t, r, trace

    def test_same_events_as_shown(self):
        _, r, trace = self.recorded("reg:rdi")
        lines = harness.babeltrace(trace)
        self.assertEqual(len(lines), len(r.events))
        for line, e in zip(lines, r.events):
            self.assertIn("dynprobe:foo:", line)
            rdi = re.search(r"\brdi = (\w+)", line)[1]
            self.assertEqual(int(rdi, 0), int(str(e["fields"]["rdi"]), 0))
            seconds = re.search(r"\[(\d+)\.(\d{9})\]", line)
            self.assertEqual(int(seconds[1]) * 10**9 + int(seconds[2]), e["ts"])

    def test_every_context_reads_back(self):
        t = self.target("spin", 0, 300)
        greeting = t.site("greeting")
        contexts = ("regs", "reg:xmm0", f"string:s:{greeting:#x}", f"bytes[4]:b:{greeting:#x}", f"double:d:{greeting:#x}", "int:bad:0x10", "backtrace")
        trace = self.path("trace")
        r = self.attach(t, "--function", "foo", *(x for c in contexts for x in ("-t", c)), "-n", 10, record=trace)
        self.assert_ok(r)
        lines = harness.babeltrace(trace)
        self.assertGreaterEqual(len(lines), 10)
        self.assertIn('s = "hello from the target"', lines[0])
        self.assertIn("rflags = ", lines[0])

    @needs("lttng")
    def test_lttng_view(self):
        _, r, trace = self.recorded("reg:rdi")
        p = subprocess.run(["lttng", "view", "-t", trace], capture_output=True, text=True, timeout=300)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(p.stdout.count("dynprobe:foo:"), len(r.events), p.stdout[:500])

    def test_default_place_and_the_first_line_names_it(self):
        t = self.target("spin", 0, 300)
        home = self.path("home")
        os.mkdir(home)
        for variable in ("HOME", "LTTNG_HOME"):
            with self.subTest(variable):
                env = harness.environment(HOME="/nonexistent")
                env.pop("LTTNG_HOME", None)
                env[variable] = home
                p = harness.tool("--pid", t.pid, "--function", "foo", "-d", "2s", env=env, status=0)
                directory = re.search(re.escape(home) + r"/lttng-traces/dynprobe-spin-\d{8}-\d{6}\S*", p.stderr.splitlines()[0])
                self.assertIsNotNone(directory, p.stderr)
                self.assertGreaterEqual(len(harness.babeltrace(directory[0])), 5)
                self.assertEqual(os.stat(directory[0]).st_mode & 0o077, 0)

    def test_directory_that_holds_a_trace_is_not_overwritten(self):
        t, _, trace = self.recorded()
        r = self.attach(t, "--function", "foo", "-n", 1, record=trace)
        self.assert_refused(r, "DP-OUTPUT", trace)
        self.assert_clean(t.pid)

    def test_no_record_records_nothing(self):
        t = self.target("spin", 0, 300)
        home = self.path("home")
        os.mkdir(home)
        self.assert_ok(self.attach(t, "--function", "foo", "-n", 3, env=harness.environment(HOME=home)))
        self.assertEqual(os.listdir(home), [])

    def test_only_events_without_end_are_recorded_unless_asked_for(self):
        t = self.target("spin", 0, 300)
        home, trace = self.path("home"), self.path("trace")
        os.mkdir(home)
        probe = ("--pid", t.pid, "--function", "foo")
        until = lambda more, duration: more if "-n" in more else [*more, "-d", duration]
        for more in (["-n", 5], ["-o", self.path("o")], ["-f", "json", "-o", "-"], ["--count"], ["--no-record"]):
            harness.tool(*probe, *until(more, "200ms"), env=harness.environment(HOME=home, LTTNG_HOME=home), status=0)
            self.assertEqual(os.listdir(home), [], more)
        for i, more in enumerate((["-n", 5], ["-o", self.path("o")])):
            harness.tool(*probe, *until(more, "2s"), "--record", f"{trace}{i}", status=0)
            self.assertGreaterEqual(len(harness.babeltrace(f"{trace}{i}")), 5)
        for more in ([], ["-f", "json"], ["-q", "-n", 5], ["-n", 5, "-f", "ctf"], ["-n", 5, "--record-size", "1M"]):
            harness.tool(*probe, *until(more, "2s"), env=harness.environment(HOME=home, LTTNG_HOME=home), status=0)
            self.assertEqual(len(traces := os.listdir(os.path.join(home, "lttng-traces"))), 1, more)
            self.assertGreaterEqual(len(harness.babeltrace(os.path.join(home, "lttng-traces", traces[0]))), 5)
            shutil.rmtree(os.path.join(home, "lttng-traces"))

    def test_threads_of_a_process_merge_in_time_order(self):
        t = self.target("threads", 16)
        trace = self.path("trace")
        r = self.attach(t, "--function", "foo", "--when", harness.CALM, "-d", 1, record=trace)
        self.assert_ok(r)
        stamps = [line.split("]")[0] for line in harness.babeltrace(trace)]
        self.assertEqual(stamps, sorted(stamps))
        self.assertGreater(len(stamps), 100)


if __name__ == "__main__":
    harness.main()
