# SPDX-License-Identifier: MIT
"""Tests dynprobe --pid: it attaches, shows events, ends for each of its reasons, and leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
import time

import harness
from harness import Case, State, maps, wait_until


class Attach(Case):
    def test_a_lock_whose_tool_has_ended_is_waited_for(self):
        """The dead tool's child keeps the lock's descriptor for a moment longer."""
        t = self.target("spin", 0, 500)
        script = (f"import fcntl, os, time\nf = open('/proc/{t.pid}/personality')\nfcntl.flock(f, fcntl.LOCK_EX)\n"
                  "if os.fork(): os._exit(0)\nprint('held', flush=True)\ntime.sleep(0.3)\nos._exit(0)\n")
        child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        self.assertEqual(child.stdout.readline(), "held\n")
        child.wait()
        self.assert_ok(self.attach(t, "--function", "foo", "-n", 1))
        self.assert_result_ok(t)

    def test_events_then_a_clean_target(self):
        t = self.target("spin", 0, 200)
        before = State(t.pid)
        r = self.attach(t, "--function", "foo", "-t", "reg:rdi", "-n", 20)
        self.assert_ok(r)
        self.assert_hits(r, 20)
        self.assert_clean(t.pid, before)
        self.assertLessEqual(harness.private_text_kib(t.pid), harness.KEPT_TEXT_KIB)
        self.assert_result_ok(t)

    def test_events_are_in_time_order_and_name_thread_and_program(self):
        t = self.target("spin", 0, 200)
        r = self.attach(t, "--function", "foo", "-t", "reg:rdi", "-n", 50)
        times = [e["mono"] for e in r.events]
        self.assertEqual(times, sorted(times))
        self.assertEqual({(e["pid"], e["tid"], e["comm"], e["probe"]) for e in r.events}, {(t.pid, t.pid, "spin", "foo")})
        rdi = [int(str(e["fields"]["rdi"]), 0) for e in r.events]
        self.assertEqual(rdi, list(range(rdi[0], rdi[0] + len(rdi))), "each call is seen once")

    def test_duration(self):
        t = self.target("spin", 0, 1000)
        start = time.monotonic()
        r = self.attach(t, "--function", "foo", "-d", 1)
        self.assert_ok(r)
        self.assertGreaterEqual(time.monotonic() - start, 1)
        self.assert_hits(r, 10)
        self.assert_clean(t.pid)

    def test_duration_is_the_time_between_armed_and_disarmed(self):
        """Planning some thousand probes takes longer than they are installed."""
        t = self.target("spin", 0, 1000)
        r = self.attach(t, "--return", "libc.so.6!*", "--function", "foo", "-d", "0.1", "-q")
        self.assertEqual(r.summary["ended_by"], "duration", str(r))
        self.assertGreater(r.summary["attach_ns"], 100e6, "the test's own premise")
        self.assertGreaterEqual(r.summary["armed_ns"], 100e6)
        self.assertLess(r.summary["armed_ns"], 100e6 + r.summary["attach_ns"])
        self.assertGreater(r.summary["hits"], 0)
        self.assert_clean(t.pid)

    def test_duration_of_a_command_begins_when_it_runs(self):
        t = harness.target_path("spin")
        r = self.dynprobe("--function", "foo", "-d", "0.2", "--", t, 1000, 1000)
        self.assert_ok(r)
        mono = [e["mono"] for e in r.events]
        self.assertGreaterEqual(r.summary["armed_ns"], 200e6)
        self.assertLess(max(mono) - min(mono), r.summary["armed_ns"] + r.summary["detach_ns"])

    def test_interrupt_is_a_clean_detach_with_a_summary(self):
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(sig):
                t = self.target("spin", 0, 1000)
                before = State(t.pid)
                p = self.start_attached(t, "--function", "foo")
                self.await_output(p)
                r = self.finish(p, sig)
                self.assert_hits(r, 1)
                self.assertIsNotNone(r.summary, str(r))
                self.assert_clean(t.pid, before)
                self.assert_result_ok(t)

    def test_target_that_ends_ends_dynprobe(self):
        t = self.target("spin", 0, 1000)
        p = self.start_attached(t, "--function", "foo")
        self.await_events(p)
        self.assert_result_ok(t)
        r = self.finish(p, None)
        self.assert_ok(r)
        self.assert_hits(r)
        self.assertIn("exited", str(r.summary) + r.err)

    def test_last_events_before_the_end_are_seen(self):
        """The rings outlive the target: what it recorded just before _exit is not lost."""
        t = self.target("crasher", "kill", 1000)
        p = self.start_attached(t, "--function", "foo", "-t", "reg:rdi")
        os.kill(t.pid, signal.SIGUSR1)
        wait_until(lambda: not t.alive(), what="the target's end")
        r = self.finish(p, None)
        self.assert_hits(r, 1000)

    def test_events_are_the_only_text_on_standard_output(self):
        t = self.target("spin", 0, 1000)
        r = self.attach(t, "--function", "foo", "-t", "reg:edi", "-n", 5, json_events=False)
        self.assert_ok(r)
        for line in r.out.splitlines():
            self.assertRegex(line, r"^\d\d:\d\d:\d\d\.\d+ spin\[\d+\] foo: edi=")
        self.assertGreaterEqual(len(r.out.splitlines()), 5, str(r))
        self.assertNotIn(" spin[", r.err)
        self.assertNotIn("\033[", r.out + r.err)

    def test_text_to_a_file(self):
        t = self.target("spin", 0, 1000)
        r = self.attach(t, "--function", "foo", "-n", 5, "-o", self.path("out"), json_events=False)
        with open(self.path("out")) as f:
            self.assertGreaterEqual(f.read().count(" foo"), 5)
        self.assertNotIn(" spin[", r.out + r.err)

    def test_output_that_cannot_be_written_is_said_before_the_target_is_touched(self):
        t = self.target("spin", 0, 1000)
        r = self.attach(t, "--function", "foo", "-o", "/no/such/directory/out", json_events=False)
        self.assert_refused(r, "DP-OUTPUT", "/no/such/directory/out")
        self.assert_clean(t.pid)

    def test_colour_only_where_it_is_wanted(self):
        t = self.target("spin", 0, 1000)
        args = ("--function", "foo", "-n", 2)
        self.assertIn("\033[", self.attach(t, *args, "--color", "always", json_events=False).out)
        self.assertNotIn("\033[", self.attach(t, *args, "--color", "never", json_events=False).out)
        self.assertNotIn("\033[", self.attach(t, *args, json_events=False, env=harness.environment(NO_COLOR="1")).out)

    def test_quiet_shows_the_summary_only(self):
        t = self.target("spin", 0, 1000)
        r = self.attach(t, "--function", "foo", "-n", 5, "-q", json_events=False)
        self.assert_ok(r)
        self.assertEqual(r.out, "")
        self.assertNotIn(" spin[", r.err)
        self.assertIn("recorded 5", r.err)

    def test_dry_run_touches_nothing(self):
        t = self.target("spin", 0, 1000)
        before, switches = State(t.pid), harness.status(t.pid, "nonvoluntary_ctxt_switches")
        r = self.attach(t, "--function", "foo", "--dry-run")
        self.assert_ok(r)
        self.assertEqual(r.events, [])
        self.assertEqual(before.differences(State(t.pid)), {})
        self.assertIsNotNone(switches)
        self.assertIn("foo", r.err + r.out + str(r.lines))

    def test_two_processes_at_once(self):
        a, b = self.target("spin", 0, 1000), self.target("spin-nopie", 0, 1000)
        r = self.dynprobe("--pid", a.pid, "--pid", b.pid, "--function", "foo", "-d", 1)
        self.assert_ok(r)
        self.assertEqual({e["pid"] for e in r.events}, {a.pid, b.pid})
        self.assert_clean(a.pid)
        self.assert_clean(b.pid)

    def test_a_thread_id_names_its_process(self):
        t = self.target("threads", 8)
        tid = max(int(x) for x in os.listdir(f"/proc/{t.pid}/task"))
        r = self.dynprobe("--pid", tid, "--function", "foo", "-n", 5)
        self.assert_ok(r)
        self.assertEqual({e["pid"] for e in r.events}, {t.pid})
        self.assert_result_ok(t)

    def test_attach_again_and_again(self):
        t = self.target("spin", 0, 200)
        before = State(t.pid)
        for i in range(5):
            with self.subTest(i):
                r = self.attach(t, "--function", "foo" if i % 2 else "caller", "-n", 3)
                self.assert_ok(r)
                self.assert_hits(r, 3)
                self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    def test_probe_that_is_never_hit_detaches_at_once(self):
        t = self.target("spin", 0, 1000)
        p = self.start_attached(t, "--function", "main")
        r = self.finish(p)
        self.assertEqual(r.events, [])
        self.assert_clean(t.pid)

    def test_demo_server(self):
        t = harness.Target(harness.DEMO_SERVER, 3, 200)
        self.addCleanup(t.close)
        r = self.attach(t, "--function", "handle_request", "-t", "reg:rdi", "-t", "backtrace", "-n", 20)
        self.assert_ok(r)
        self.assertGreater(len({e["tid"] for e in r.events}), 0)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_mappings_while_attached_are_never_writable_and_executable(self):
        t = self.target("spin", 0, 1000)
        p = self.start_attached(t, "--function", "foo")
        ours = [m for m in maps(t.pid) if m.is_ours]
        self.assertTrue(ours)
        self.assertEqual([m.key() for m in maps(t.pid) if "w" in m.perms and "x" in m.perms], [])
        self.finish(p)


if __name__ == "__main__":
    harness.main()
