# SPDX-License-Identifier: MIT
"""Tests --snapshot with each kind of probe, condition and target: the limits are those of the run, the frames those of the hit, and no
thread is missing.
"""

import glob
import os
import re

import harness


class Combinations(harness.Case):
    def shots(self):
        found = []
        for path in sorted(glob.glob(self.path("*.dps")), key=os.path.getmtime):
            found.append(harness.shown(path))
            os.unlink(path)
        return found

    def hit(self, t, *args):
        """The frames of the thread whose hit came first."""
        p = self.start("--pid", t.pid, *args, "--snapshot", "--max-pause", "30000", cwd=self.dir)
        harness.wait_until(lambda: p.poll() is not None or glob.glob(self.path("*.dps")), what="a snapshot")
        harness.wait_until(lambda: p.poll() is not None or re.search('"snapshot_id": ?"?(0x)?[1-9a-f]', self.said(p)), what="its event")
        r = self.finish(p)
        self.assert_ok(r)
        shots = self.shots()
        self.assertEqual(len(shots), 1, str(r))
        thread = shots[0]["threads"][0]
        self.assertEqual([x["tid"] for x in shots[0]["threads"] if x.get("is_fault")], [thread["tid"]], "one thread has hit; our trap in another is not a fault")
        (event,) = [e for e in r.events if int(str(e["fields"]["snapshot_id"]), 0)]
        self.assertEqual((thread["tid"], int(shots[0]["id"][-12:], 16)), (event["tid"], int(str(event["fields"]["snapshot_id"]), 0)))
        self.assertFalse([f for f in thread["frames"] if "dynprobe" in f.get("module", "")], "no frame may be ours")
        return thread["frames"]

    def test_the_number_of_snapshots_is_of_the_run_and_each_hit_is_accounted_for(self):
        targets = [self.target("threads", 1) for _ in range(3)]
        pids = [x for t in targets for x in ("--pid", t.pid)]
        p = self.start(*pids, "--function", "foo", "--when", harness.CALM, "--snapshot", "--max-snapshots", 2, "--snapshot-interval", "1ms", "--max-pause", "30000", cwd=self.dir)
        harness.wait_until(lambda: p.poll() is not None or len(glob.glob(self.path("*.dps"))) >= 2, what="two snapshots")
        self.await_events(p, n=100)  # of all three probes
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual(len(self.shots()), 2, "of all processes together")
        counts = r.summary["snapshots"]
        self.assertEqual(counts["taken"], 2)
        self.assertEqual(counts["hits"], sum(v for k, v in counts.items() if k != "hits"))
        self.assertGreater(counts["beyond_limits"], 0)
        for t in targets:
            self.assert_clean(t.pid)
            self.assert_result_ok(t)

    def test_no_thread_is_missing_where_processors_are_scarce(self):
        t = self.target("threads", 6)
        hogs = [self.target("spin", 0, 0) for _ in range(4 * (os.cpu_count() or 1))]
        n = 12 if harness.FULL else 2
        p = self.start("--pid", t.pid, "--function", "foo", "--snapshot", "--max-snapshots", n, "--snapshot-interval", "1ms", "--max-pause", "30000", "-q", cwd=self.dir)
        harness.wait_until(lambda: p.poll() is not None or len(glob.glob(self.path("*.dps"))) >= n, what=f"{n} snapshots")
        r = self.finish(p)
        self.assert_ok(r)
        shots = self.shots()
        for hog in hogs:
            hog.close()
        self.assertTrue(shots, str(r))
        tids = {int(x) for x in os.listdir(f"/proc/{t.pid}/task")}
        for shot in shots:
            self.assertEqual({x["tid"] for x in shot["threads"]}, tids)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_conditions_of_the_return_and_of_the_number_of_hits(self):
        t = self.target("threads", 3 if harness.FULL else 1)
        for when in ("$duration > 1 && hits % 500 == 0", "hits % 500 == 0 && $retval != 12345"):
            with self.subTest(when=when):
                self.assertEqual(self.hit(t, "--return", "foo", "--when", when)[0]["symbol"], "foo")
        self.assertEqual(self.attach(t, "--return", "foo", "--when", "$duration > 100000000000", "--snapshot", "-d", "300ms", cwd=self.dir).summary["recorded"], 0)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_traps_that_other_threads_are_about_to_meet_are_no_faults(self):
        t = self.target("threads", 12)
        for _ in range(10 if harness.FULL else 3):
            self.assertEqual(self.hit(t, "--function", "foo", "--tactic", "trap", "--when", "hits % 500 == 0")[0]["symbol"], "foo")
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_each_kind_of_place(self):
        t = self.target("threads", 3 if harness.FULL else 1)
        for args in (("--function", "foo", "--tactic", "trap"), ("--probe", "threads.c:18"), ("--function", "foo", "--mode", "fork"), ("--function", "foo", "--mode", "quick")):
            with self.subTest(args=args):
                frames = self.hit(t, *args, "--when", "hits % 500 == 0")
                self.assertEqual(frames[0]["symbol"], "foo")
                self.assertEqual(frames[-1]["symbol"], "clone3")
        self.assert_clean(t.pid)
        self.assert_result_ok(t)
        t = self.target("sigstorm")
        self.assertIn("on_realtime", [f.get("symbol") for f in self.hit(t, "--function", "on_realtime")])
        self.assert_result_ok(t)
        t = self.target("markers")
        self.assertEqual(self.hit(t, "--usdt", "work:plain")[0]["symbol"], "plain")
        self.assert_clean(t.pid)
        t = self.target("churn")
        self.assertEqual(self.hit(t, "--function", "libc.so.6!start_thread")[0]["symbol"], "start_thread")
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_a_directory_that_cannot_be_written_is_said_before_anybody_waits_DP_OUTPUT(self):
        t = self.target("threads", 1)
        r = self.attach(t, "--function", "foo", "--snapshot", "-n", 1, cwd="/proc")
        self.assert_refused(r, "DP-OUTPUT", "current directory")
        self.assert_clean(t.pid)
        self.assert_result_ok(t)


if __name__ == "__main__":
    harness.main()
