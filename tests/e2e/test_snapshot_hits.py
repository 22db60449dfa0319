# SPDX-License-Identifier: MIT
"""Tests --snapshot: the thread of a hit waits at its probe for the snapshot, and resumes whatever happens to dynprobe."""

import glob
import os
import shutil
import signal
import subprocess
import time

import harness


class Hits(harness.Case):
    def files(self):
        return sorted(glob.glob(self.path("*.dps")))

    def file_of(self, event):
        digits = f"{event['fields']['snapshot_id']:012x}" if isinstance(event["fields"]["snapshot_id"], int) else event["fields"]["snapshot_id"][2:]
        found = [f for f in self.files() if f.endswith(f".{digits}.dps")]
        self.assertEqual(len(found), 1, f"{digits} of {self.files()}")
        return found[0], digits

    def test_the_snapshot_is_of_the_hit_and_the_event_leads_to_it(self):
        t = self.target("threads", 8)
        p = self.start_attached(t, "--function", "foo", "--when", "(a & 0xffff) == 5", "--snapshot", "--max-pause", "30000", "-t", "a", cwd=self.dir)
        harness.wait_until(self.files, what="the snapshot")
        r = self.finish(p)
        self.assert_ok(r)
        [event] = [e for e in r.events if int(str(e["fields"]["snapshot_id"]), 0)]  # other threads may have hit the probe meanwhile
        path, digits = self.file_of(event)
        shot = harness.shown(path)
        self.assertTrue(shot["id"].endswith(digits))
        self.assertEqual((shot["probe"], shot["condition"]), ("foo", "(a & 0xffff) == 5"))
        thread = shot["threads"][0]
        self.assertTrue(thread["is_fault"])
        self.assertEqual(thread["tid"], event["tid"])
        self.assertNotIn("kernel_frames", thread, "it waits in our code, not in the program's")
        names = [f.get("symbol") for f in thread["frames"]]
        self.assertEqual(names[0], "foo", "no frame above it may be ours")
        self.assertEqual(int(thread["frames"][0]["pc"], 16), t.site("foo"))
        self.assertIn("start_thread", names)
        self.assertFalse(thread["frames"][0]["instruction"].startswith("jmp"), "the program's own instruction, not our jump")
        values = {v["name"]: v for v in thread["frames"][0]["variables"]}
        self.assertEqual(int(values["a"]["value"]), event["fields"]["a"])
        self.assertEqual(values["s"]["text"], "thread")
        self.assertEqual(len(shot["threads"]), 9)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_limits_of_number_and_interval_are_kept_and_what_went_without_is_counted(self):
        t = self.target("threads", 8)
        p = self.start_attached(t, "--function", "foo", "--when", harness.CALM, "--snapshot", "--max-snapshots", 2, "--snapshot-interval", "1ms", "--max-pause", "30000", cwd=self.dir)
        harness.wait_until(lambda: len(self.files()) == 2, what="two snapshots")
        self.await_events(p, n=50)
        r = self.finish(p)
        self.assert_ok(r)
        ids = [e["fields"]["snapshot_id"] for e in r.events]
        taken = [i for i in ids if int(str(i), 0)]
        self.assertEqual(len(taken), 2, str(r))
        self.assertEqual(len(self.files()), 2)
        self.assertIn("2 snapshots taken", r.err)
        self.assertRegex(r.err, r"[1-9]\d* beyond the limits")
        self.assertGreater(len(ids), 2, "hits without a snapshot must still be events")
        self.assert_result_ok(t)

    def test_a_tool_killed_in_the_middle_leaves_nobody_waiting(self):
        t = self.target("threads", 8)
        for delay in (0.0, 0.02, 0.05, 0.1, 0.2):
            p = self.start_attached(t, "--function", "foo", "--snapshot", "--max-snapshots", 100000, "--snapshot-interval", "1ns", cwd=self.dir)
            time.sleep(delay)  # any moment
            p.kill()
            p.wait()
        if t.stop() != 0:  # the exception stated under G1: a wait that the kernel ended in the instant of a kill
            self.assertRegex(t.output(), r"RESULT BAD interrupted [1-5] wrong 0\b", t.errors()[-1500:])

    def test_a_tool_that_stands_still_is_not_waited_for_beyond_the_pause(self):
        t = self.target("threads", 8)
        p = self.start_attached(t, "--function", "foo", "--snapshot", "--max-snapshots", 100000, "--snapshot-interval", "1ns", "--max-pause", "50", cwd=self.dir)
        p.send_signal(signal.SIGSTOP)
        self.addCleanup(p.kill)
        before = t.cpu_ticks()
        harness.wait_until(lambda: t.cpu_ticks() > before + 20, what="the program to continue")
        p.send_signal(signal.SIGCONT)
        r = self.finish(p)
        failed = r.summary["snapshots"]["failed"]  # of a thread that waited no longer, or could not be stopped within 50 ms
        self.assert_ok(r, harness.EXIT_PARTIAL if failed else 0)
        self.assertGreaterEqual(sum("no snapshot of" in str(line) for line in r.told), failed)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_signals_of_the_program_are_not_lost_on_a_thread_that_waits(self):
        t = self.target("sigstorm")
        r = self.attach(t, "--function", "foo", "--snapshot", "--max-snapshots", 20, "--snapshot-interval", "1ns", "-d", "2s", cwd=self.dir)
        self.assert_ok(r)
        self.assertTrue(self.files())
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_what_cannot_go_together_is_refused(self):
        t = self.target("threads", 2)
        for more in (("--count",), ("--pending",)):
            r = self.attach(t, "--function", "foo", "--snapshot", *more, json_events=False)
            self.assertEqual(r.status, harness.OWN_FAILURE)
            self.assertIn("DP-USAGE", r.err)
        done = harness.tool("--pid", t.pid, "--function", "foo", "--max-snapshots", "2", status=harness.OWN_FAILURE)
        self.assertIn("--snapshot", done.stderr)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def stripped(self, name):
        """A program whose debug information is in a separate file: the paths of both."""
        os.mkdir(self.path(name))
        program, debug = self.path(f"{name}/{name}"), self.path(f"{name}/{name}.debug")
        shutil.copy(os.path.join(harness.TARGETS, "threads"), program)
        for command in (["--only-keep-debug", program, debug], ["--strip-debug", program], [f"--add-gnu-debuglink={debug}", program]):
            subprocess.run(["objcopy", *command], check=True, cwd=self.path(name))
        return program, debug

    def test_of_several_processes_each_is_rehearsed_before_its_first_hit(self):
        made = [self.stripped(name) for name in ("one", "two")]
        targets = [harness.Target(program, 1) for program, _ in made]
        for t in targets:
            self.addCleanup(t.stop)
        pids = [x for t in targets for x in ("--pid", t.pid)]
        p = self.start(*pids, "-v", "--function", "libc.so.6!printf", "--snapshot", "--max-snapshots", 2, "--snapshot-interval", "1ns", "--max-pause", "30000", cwd=self.dir)
        harness.wait_until(lambda: p.poll() is not None or (os.path.exists(p.events) and self.said(p).count("[libc.so.6]  ") == 2), what="the plan, which is shown when all probes are installed")
        for _, debug in made:
            os.unlink(debug)  # a later search for it fails
        for t in targets:
            self.assert_result_ok(t)
        r = self.finish(p)
        self.assertEqual(len(self.files()), 2, str(r))
        for path in self.files():
            shot = harness.shown(path)
            lines = [f.get("line") for thread in shot["threads"] for f in thread["frames"] if f.get("symbol") == "main"]
            self.assertTrue(lines and all(lines), [(f.get("symbol"), f.get("file"), f.get("line")) for thread in shot["threads"] for f in thread["frames"]])

    def test_an_event_whose_snapshot_could_not_be_written_makes_it_a_failure_in_part(self):
        t = self.target("threads", 1)  # the event of another thread would be without a snapshot
        os.mkdir(self.path("full"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", self.path("full")], check=True)
        self.addCleanup(subprocess.run, ["umount", self.path("full")])
        r = self.attach(t, "--function", "foo", "--snapshot", "--max-pause", "30000", "-n", 1, cwd=self.path("full"))
        self.assertEqual(r.status, 121, str(r))
        self.assertEqual(r.summary["snapshots"]["failed"], 1)
        self.assertEqual(os.listdir(self.path("full")), [])
        self.assert_clean(t.pid)
        self.assert_result_ok(t)


if __name__ == "__main__":
    harness.main()
