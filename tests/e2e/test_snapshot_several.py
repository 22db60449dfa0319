# SPDX-License-Identifier: MIT
"""--snapshot in runs whose processes come and go: with --program each process's hits wait, with --follow those of fork children."""

import collections
import glob
import os
import re
import signal
import subprocess

import harness
from harness import EXIT_PARTIAL, Case, needs_root, number, shown, target_path, wait_until

SOON = ("--snapshot-interval", "1ms", "--max-pause", 30000)


def shot_of(event):
    """The digits that the file's name has; 0: none."""
    n = number(event["fields"]["snapshot_id"])
    return f"{n:012x}" if n else None


class Snapshots(Case):
    def files(self):
        return sorted(glob.glob(self.path("*.dps")))

    def assert_files(self, r, n):
        """Each event with an id has the one file of that id, which is of the event's process, at its thread; each hit is accounted for."""
        wanted = {shot_of(e): e for e in r.events if shot_of(e)}
        found = {path.split(".")[-2]: path for path in self.files()}
        self.assertEqual(set(found), set(wanted), str(r))
        self.assertEqual(len(found), n, str(r))
        said = [x["text"] for x in r.lines if x["type"] == "note"]
        for digits, path in found.items():
            shot, event = shown(path), wanted[digits]
            self.assertEqual((shot["pid"], shot["threads"][0]["tid"]), (event["pid"], event["tid"]), path)
            self.assertEqual(shot["threads"][0]["frames"][0].get("symbol"), "foo")
            self.assertIn(f".{shot['pid']}.", os.path.basename(path))
            self.assertTrue(any(re.match(rf"snapshot {re.escape(os.path.basename(path))}: \d+ threads? of {shot['pid']},", text) for text in said), said)
        counts = r.summary["snapshots"]
        self.assertEqual(counts["taken"], n)
        self.assertEqual(counts["taken"] + counts["beyond_limits"] + counts["while_another"] + counts["in_vain"], r.summary["hits"], str(r.summary))
        return collections.Counter(e["pid"] for e in wanted.values())

    # -- --program

    def starts(self, n, *words):
        p = subprocess.run([target_path("starter"), "fork", str(n), target_path("started"), *map(str, words)], capture_output=True, text=True, timeout=300)
        self.assertIn(f"STATUS 0 {n}", p.stdout)
        return {int(pid): int(k) for pid, k in re.findall(r"CALLED (\d+) (\d+)", p.stdout)}

    def watch(self, *words):
        p = self.start("--program", target_path("started"), "--function", "foo", "--snapshot", *words, cwd=self.dir)
        wait_until(lambda: p.poll() is not None or "waiting for" in self.said(p), what="dynprobe to watch")
        return p

    @needs_root
    def test_processes_of_a_program_share_one_number_of_snapshots(self):
        p = self.watch("--max-snapshots", 3, *SOON)
        calls = self.starts(10, 3)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual(collections.Counter(e["pid"] for e in r.events), calls)
        self.assertLessEqual(sum(self.assert_files(r, 3).values()), 3)

    @needs_root
    def test_first_call_of_each_process_of_a_program_has_its_snapshot(self):
        p = self.watch("--max-snapshots", 100, "--snapshot-interval", "1ns", "--max-pause", 30000, "--when", "edi == 0")
        calls = self.starts(10, 3)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual(self.assert_files(r, 10), dict.fromkeys(calls, 1))

    @needs_root
    def test_interval_holds_over_the_processes_of_a_program(self):
        p = self.watch("--max-snapshots", 100, "--snapshot-interval", "1h", "--max-pause", 30000)
        self.starts(5, 3)
        r = self.finish(p)
        self.assert_ok(r)
        self.assert_files(r, 1)
        self.assertEqual(r.summary["snapshots"]["beyond_limits"] + r.summary["snapshots"]["while_another"], 14)

    # -- --follow

    def family(self, *words):
        t = self.target("family", *words, start_new_session=True)
        self.addCleanup(self.kill_all, t.pid)
        return t

    def kill_all(self, group):
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def follow(self, t, *words):
        p = self.start_attached(t, "--follow", "--function", "foo", "--snapshot", *words, cwd=self.dir)
        os.kill(t.pid, signal.SIGUSR1)
        return p

    def test_fork_children_wait_for_their_snapshots(self):
        t = self.family("on")
        p = self.follow(t, "--max-snapshots", 30, *SOON)
        wait_until(lambda: len(self.files()) == 30, what="30 snapshots")
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual(r.summary["lost"]["total"], 0)
        self.assertEqual(set(self.assert_files(r, 30)), {e["pid"] for e in r.events}, "of the parent and of both children")
        self.assertEqual(r.summary["followed"], 2)
        for pid in (t.pid, *harness.children(t.pid)):
            self.assert_clean(pid)
        self.assert_result_ok(t)

    @needs_root
    def test_fork_child_in_a_pid_namespace_of_its_own_waits_too(self):
        t = self.family("namespace", 400)
        p = self.follow(t, "--max-snapshots", 2, *SOON)
        r = self.finish(p, None)
        self.assert_ok(r)
        shots = [shown(path) for path in self.files()]
        self.assertEqual(len(shots), 2, str(r))
        for shot in shots:
            self.assertNotEqual(shot["pid"], t.pid)
            self.assertEqual(shot["inner_pid"], 1)
            self.assertTrue(shot["threads"][0]["is_fault"])
        self.assertEqual(t.process.wait(300), 0, t.output())

    def test_fork_child_that_enters_a_seccomp_filter_ends_the_waiting_of_children_and_that_is_said(self):
        t = self.family("filtered", 1000)
        r = self.finish(self.follow(t, "--max-snapshots", 100000, "--snapshot-interval", "1ns"), None)
        self.assert_ok(r)
        notes = [x["text"] for x in r.lines if x["type"] == "note" and "seccomp" in x["text"]]
        self.assertEqual(len(notes), 1, str(r))
        self.assertRegex(notes[0], rf"process \d+, a fork child of {t.pid}, is now under a seccomp filter: hits of fork children do not wait")
        self.assertFalse(shot_of(r.events[-1]))
        self.assertEqual(t.process.wait(300), 0, t.output())

    @needs_root
    def test_fork_child_that_may_not_be_read_does_not_wait_and_takes_nothing_from_the_others(self):
        tool, program = self.for_nobody("dynprobe"), self.for_nobody("family")
        t = self.target(program, "hidden", 1000, prefix=harness.NOBODY)
        out = self.path("hidden.json")
        p = self.spawn(*harness.NOBODY, "env", f"HOME={self.dir}", tool, "--pid", t.pid, "--follow", "--function", "foo", "--snapshot", "--max-snapshots", 4, *SOON,
                       "--no-record", "-f", "json", "-o", out, stderr=subprocess.PIPE, text=True, cwd=self.dir)
        wait_until(lambda: p.poll() is not None or harness.armed(t.pid), what="probes")
        os.kill(t.pid, signal.SIGUSR1)
        _, err = p.communicate(timeout=300)
        self.assertEqual(p.returncode, 0, err)
        r = harness.Result(p.returncode, "", err, out)
        self.assertEqual(dict(self.assert_files(r, 4)), {t.pid: 4})
        self.assertEqual(len({e["pid"] for e in r.events}), 2)
        self.assertEqual(r.summary["snapshots"]["in_vain"], 0, "the child's threads went on at once")
        self.assertEqual(t.process.wait(300), 0, t.output())

    def test_killed_fork_child_gives_its_place_to_the_others(self):
        t = self.family("on")
        p = self.follow(t, "--max-snapshots", 100000, "--snapshot-interval", "1ns", "--max-pause", 30000)
        victim = wait_until(lambda: harness.children(t.pid), what="children")[0]
        wait_until(lambda: [f for f in self.files() if f".{victim}." in f], what="a snapshot of the victim")
        os.kill(victim, signal.SIGKILL)
        others = lambda: len([f for f in self.files() if f".{victim}." not in f])
        before = others()
        wait_until(lambda: others() > before + 5, what="snapshots of the others")
        r = self.finish(p)
        self.assert_ok(r)
        self.kill_all(t.pid)

    def test_tool_killed_in_the_middle_leaves_no_child_waiting(self):
        t = self.family("on")
        p = self.follow(t, "--max-snapshots", 100000, "--snapshot-interval", "1ns")
        wait_until(lambda: len(self.files()) > 5, what="snapshots")
        p.kill()
        p.wait()
        for pid in (t.pid, *harness.children(t.pid)):
            switches = lambda pid=pid: int(harness.status(pid, "voluntary_ctxt_switches"))
            before = switches()
            wait_until(lambda: switches() > before + 20, what="each process to work on")  # noqa: B023
        self.assert_result_ok(t)

    @needs_root
    def test_program_that_a_followed_process_executes_has_its_snapshots(self):
        r = self.dynprobe("--follow", "--function", "foo", "--snapshot", "--max-snapshots", 4, *SOON, "--when", "edi == 0", "--", target_path("starter"), "fork", 4,
                          target_path("started"), 2, cwd=self.dir)
        self.assert_ok(r)
        self.assertEqual(sorted(self.assert_files(r, 4).values()), [1, 1, 1, 1])


if __name__ == "__main__":
    harness.main()
