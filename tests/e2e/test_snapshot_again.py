# SPDX-License-Identifier: MIT
"""Tests several snapshots of one process: data kept from one for the next is never stale."""

import os
import re
import subprocess
import time

from harness import DYNPROBE, Case, environment, main, shown

GROWS = """
import sys
print("READY", flush=True)
sys.stdin.readline()
import sqlite3
print("LOADED", flush=True)
sys.stdin.readline()
"""


class Again(Case):
    def series(self, pid, *args):
        words = ("snapshot", pid, "-q", "-o", self.path("series.dps"), *args)
        return self.spawn(DYNPROBE, *words, stdout=subprocess.PIPE, stderr=None, text=True, env=environment())

    def test_each_snapshot_has_the_values_of_its_own_moment(self):
        t = self.target("crowd", 4, 5, 0)
        tids = {int(tid) for tid in re.findall(r"THREAD \d+ (\d+)", t.output())}
        p = self.series(t.pid, "--iterations", 3, "--interval", "50ms", "--global", "crowd")
        paths = p.communicate(timeout=300)[0].split()
        self.assertEqual((p.returncode, len(paths)), (0, 3))
        ticks = []
        for path in paths:
            s = shown(path)
            self.assertEqual({x["tid"] for x in s["threads"]}, tids | {t.pid})
            self.assertTrue(all(x["frames"][1]["symbol"] == "descend" for x in s["threads"] if x["tid"] in tids))
            members = {v["name"]: v for v in s["globals"][0]["children"]}
            self.assertEqual(members["motto"]["text"], "known by heart")
            ticks.append(int(members["ticks"]["value"]))
            self.assertTrue(any(f["symbol"] == "main" for x in s["threads"] for f in x["frames"]))
        self.assertEqual(ticks, sorted(set(ticks)), "the program ran between them")

    def test_a_module_that_came_between_two_snapshots_is_in_the_second(self):
        t = self.spawn("python3", "-c", GROWS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual(t.stdout.readline(), "READY\n")
        p = self.series(t.pid, "--iterations", 1000000, "--interval", "1ms")
        first = p.stdout.readline().strip()
        t.stdin.write("\n")
        t.stdin.flush()
        self.assertEqual(t.stdout.readline(), "LOADED\n")
        loaded, late = time.time_ns(), 0
        while late < 2:  # skips those that were already on their way
            path = p.stdout.readline().strip()
            late += os.stat(path).st_mtime_ns > loaded
        before, after = (["libsqlite3" in o["path"] for o in shown(f)["objects"]] for f in (first, path))
        self.assertEqual((any(before), any(after)), (False, True))


if __name__ == "__main__":
    main()
