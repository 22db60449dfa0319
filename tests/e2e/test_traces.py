# SPDX-License-Identifier: MIT
"""Tests dynprobe traces: it lists what runs have recorded, and removes only that."""

import os
import time

import harness
from harness import Case, EXIT_PARTIAL, OWN_FAILURE, wait_until


class Traces(Case):
    def setUp(self):
        super().setUp()
        self.env = harness.environment(HOME=self.dir, LTTNG_HOME=self.dir)
        self.room = self.path("lttng-traces")

    def traces(self, *args, status=0):
        return harness.tool("traces", *args, env=self.env, status=status)

    def listed(self, *args):
        return harness.objects(self.traces("-f", "json", *args).stdout)

    def recorded(self, t, *args):
        """Records some events into the default place; returns the trace's name."""
        before = set(os.listdir(self.room)) if os.path.exists(self.room) else set()
        harness.tool("-q", "--pid", t.pid, "--function", "foo", "-n", 5, *args, env=self.env, status=0)
        return (set(os.listdir(self.room)) - before).pop()

    def test_a_list_newest_first(self):
        self.assertIn("no recorded traces in " + self.room, self.traces().stderr)
        t = self.target("spin", 0, 1000)
        first = self.recorded(t)
        second = self.recorded(t, "--rotate", "64K")
        os.utime(os.path.join(self.room, first), (time.time() - 3600,) * 2)
        os.mkdir(os.path.join(self.room, "dynprobe-something-else"))
        a, b = self.listed()
        self.assertEqual([a["name"], b["name"]], [second, first])
        self.assertEqual((b["program"], b["events"], b["pieces"], b["events_more"], b["damaged"]), ("spin", 5, 0, False, False))
        self.assertEqual((a["pieces"], a["events"], a["path"]), (1, 5, os.path.join(self.room, second)))
        self.assertGreater(b["length_ns"], 0)
        self.assertGreater(b["bytes"], 1000)
        text = self.traces().stdout.splitlines()
        self.assertIn(f"no trace in {self.room} is named 'spin'", self.traces("spin").stderr)
        self.assertEqual(self.traces("*spin*").stderr, "")
        self.assertRegex(text[0], r"^NAME +PROGRAM +BEGINS +LENGTH +EVENTS +SIZE$")
        self.assertRegex(text[1], rf"^{second} +spin +20\d\d-\d\d-\d\d \d\d:\d\d:\d\d +\S+ \w+ +5 +\S+ KiB$")
        self.assertEqual([x["name"] for x in self.listed(first[:-3] + "*")], [x["name"] for x in (a, b) if x["name"].startswith(first[:-3])])

    def test_record_without_a_directory_goes_there(self):
        t = self.target("spin", 0, 1000)
        harness.tool("--pid", t.pid, "--function", "foo", "-n", 5, "--record", "-d", "60s", cwd=self.dir, env=self.env, status=0)
        self.assertEqual([(x["program"], x["events"]) for x in self.listed()], [("spin", 5)])
        self.assertNotIn("-d", os.listdir(self.dir))

    def test_removal_by_name_pattern_path_and_age(self):
        t = self.target("spin", 0, 1000)
        one, two, old = self.recorded(t), self.recorded(t), self.recorded(t)
        elsewhere = self.path("elsewhere")
        harness.tool("-q", "--pid", t.pid, "--function", "foo", "-n", 5, "--record", elsewhere, "--rotate", "64K", env=self.env, status=0)
        os.utime(os.path.join(self.room, old), (time.time() - 8 * 86400,) * 2)
        self.assertEqual(self.traces("--older-than", "7d").stdout, f"removed {os.path.join(self.room, old)}\n")
        self.assertIn("no trace is so old", self.traces("--older-than", "7d").stderr)
        self.assertEqual(self.traces("--remove", one).stdout, f"removed {os.path.join(self.room, one)}\n")
        self.assertEqual(self.traces("--remove", elsewhere).stdout, f"removed {elsewhere}\n")
        self.assertFalse(os.path.exists(elsewhere))
        self.assertEqual(os.listdir(self.room), [two])
        self.assertIn("there is no trace 'dynprobe-x'", self.traces("--remove", "dynprobe-x", status=OWN_FAILURE).stderr)
        self.assertIn(two, self.traces("--remove", "dynprobe-x", "dynprobe-spin-*", status=EXIT_PARTIAL).stdout)
        self.assertEqual(os.listdir(self.room), [])

    def test_what_is_not_a_trace_stays(self):
        t = self.target("spin", 0, 1000)
        name = self.recorded(t)
        path = os.path.join(self.room, name)
        kept = lambda what, *words: [self.assertIn(w, self.traces("--remove", what, status=OWN_FAILURE).stderr) for w in words]
        os.mkdir(self.path("mine"))
        self.written("mine/metadata", "x")
        kept(self.path("mine"), "[DP-BAD-TRACE]", "no directory of a trace")
        os.symlink(path, self.path("link"))
        kept(self.path("link"), "[DP-BAD-TRACE]", "no directory of a trace")
        with open(os.path.join(path, "notes.txt"), "w"):
            pass
        kept(name, "[DP-BAD-TRACE]", "a file that is not the trace's, notes.txt")
        os.unlink(os.path.join(path, "notes.txt"))
        self.assertTrue(os.path.exists(os.path.join(path, "metadata")) and os.path.exists(self.path("mine/metadata")))
        self.traces("--remove", name)

    def test_a_trace_that_is_being_recorded_stays(self):
        t = self.target("spin", 0, 1000)
        p = self.start_attached(t, "--function", "foo", record=self.path("now"))
        wait_until(lambda: os.path.exists(self.path("now/metadata")), what="the recording")
        err = self.traces("--remove", self.path("now"), status=OWN_FAILURE).stderr
        self.assertIn(f"process {p.pid} has it open", err)
        self.assertIn("[DP-LOCKED]", err)
        self.assert_ok(self.finish(p))
        self.traces("--remove", self.path("now"))
        self.assertFalse(os.path.exists(self.path("now")))


if __name__ == "__main__":
    harness.main()
