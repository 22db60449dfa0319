# SPDX-License-Identifier: MIT
"""Commands on several processes, of which one is under strace and one has ended: each names them, and does its work in the others."""

import collections
import glob
import os
import re
import subprocess

import harness
from harness import EXIT_PARTIAL, Case, needs, needs_root, shown, tool, wait_until


class Several(Case):
    def spins(self, n=4):
        return [self.target("spin", 0, 1000) for _ in range(n)]

    def pids(self, *targets):
        return ",".join(str(t.pid) for t in targets)

    def killed(self, t):
        t.process.kill()
        t.process.wait()
        return t

    def dps(self):
        return sorted(glob.glob(self.path("*.dps*")))

    def of(self, files):
        """The processes of snapshot files, by what is in them; their names say the same."""
        found = {}
        for path in files:
            shot = shown(path)
            self.assertIn(f".{shot['pid']}", os.path.basename(path))
            found[shot["pid"]] = shot
        self.assertEqual(len(found), len(files), files)
        return found

    # -- resident probes

    def assert_consecutive(self, events):
        """Each process's calls are numbered: none is missing between its first and its last event."""
        seen = collections.defaultdict(list)
        for e in events:
            seen[e["pid"]].append(harness.number(e["fields"]["rdi"]))
        for pid, numbers in seen.items():
            self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))), pid)
        return {pid: len(numbers) for pid, numbers in seen.items()}

    @needs("strace")
    def test_one_that_is_traced_and_one_that_has_ended_cost_the_others_nothing(self):
        a, traced, dead, b = self.spins()
        everyone = self.pids(a, traced, dead, b)
        self.strace(traced)
        self.killed(dead)
        for words in ("attach", "--function", "foo"), ("add-context", "-e", "foo", "-t", "reg:rdi"), ("remove", "foo"), ("detach",):
            r = tool(*words, "--pid", everyone, status=EXIT_PARTIAL)
            self.assertRegex(r.stderr, rf"there is no process {dead.pid}\b.*\[DP-NO-PROCESS\]", words)
            traced_tag = "DP-NO-PROBE" if words[0] == "add-context" else "DP-TRACED"
            self.assertRegex(r.stderr, rf"\b{traced.pid}\b.*\[{traced_tag}\]", words)
            for t in a, b:
                self.assertIn(f"{t.pid} (spin)", r.stderr, words)
                self.assertEqual(t.patched(), words[0] in ("attach", "add-context"), words)
        for t in a, b, traced:
            self.assert_clean_of_probes(t)
            self.assert_result_ok(t)

    def assert_clean_of_probes(self, t):
        self.assertEqual(harness.changed_text(t.pid), [])

    @needs("babeltrace2")
    @needs("strace")
    def test_record_has_the_events_of_all_in_one_order(self):
        a, b, dead, bare = self.spins()
        tool("attach", "--pid", self.pids(a, b, dead), "--function", "foo", "-t", "reg:rdi", status=0)
        self.strace(b)  # recording needs no stop
        self.killed(dead)
        self.let_run(a, b)
        r = self.record(self.pids(a, b, dead, bare), "--once", status=EXIT_PARTIAL, trace=self.path("trace"))
        self.assertRegex(r.err, rf"there is no process {dead.pid} \[DP-NO-PROCESS\]")
        self.assertRegex(r.err, rf"no resident probes in {bare.pid} \(spin\) \[DP-NO-PROBE\]")
        counts = self.assert_consecutive(r.events)
        self.assertEqual(set(counts), {a.pid, b.pid})
        self.assertEqual([c["name"] for c in r.header["probes"]], ["foo"], "one class for all")
        times = [e["ts"] for e in r.events]
        self.assertEqual(times, sorted(times))
        self.assertEqual({p["pid"]: p["recorded"] for p in r.summary["probes"]}, counts)
        self.assertEqual(len(harness.babeltrace(self.path("trace"))), len(r.events))
        tool("detach", "--pid", self.pids(a), status=0)

    def record(self, pids, *words, status=0, trace=None):
        out = self.path("recorded.json")
        p = tool("record", "--pid", pids, *words, "-f", "json", "-o", out, *(("--record", trace) if trace else ("--no-record",)), status=status)
        return harness.Result(p.returncode, p.stdout, p.stderr, out)

    def test_record_goes_on_when_a_process_ends_and_ends_with_the_last(self):
        a, b, c = self.spins(3)
        tool("attach", "--pid", self.pids(a, b, c), "--function", "foo", "-t", "reg:rdi", status=0)
        out = self.path("recorded.json")
        p = self.spawn(harness.DYNPROBE, "record", "--pid", self.pids(a, b, c), "--no-record", "-f", "json", "-o", out, stderr=subprocess.PIPE)

        def events(pid):
            if not os.path.exists(out):
                return 0
            with open(out, errors="replace") as f:
                return f.read().count(f'"pid":{pid},')

        for t in a, b, c:
            wait_until(lambda t=t: events(t.pid) > 10, what="events of each")
        self.killed(b)
        before = events(a.pid)
        wait_until(lambda: events(a.pid) > before + 100, what="events after one has ended")
        self.killed(a)
        before = events(c.pid)
        wait_until(lambda: events(c.pid) > before + 100, what="events of the last")
        self.killed(c)
        self.assertEqual(p.wait(300), 0, p.stderr.read())
        r = harness.Result(0, "", "", out)
        self.assertEqual(self.assert_consecutive(r.events), {x["pid"]: x["recorded"] for x in r.summary["probes"]})
        self.assertEqual(r.summary["ended_by"], "target exited")

    def test_record_gives_probes_that_differ_their_own_classes(self):
        a, b = self.spins(2)
        tool("attach", "--pid", a.pid, "--function", "foo", "-t", "reg:rdi", status=0)
        tool("attach", "--pid", b.pid, "--function", "foo", "-t", "reg:edi", status=0)
        self.let_run(a, b)
        r = self.record(self.pids(a, b), "--once")
        self.assertEqual({(p["name"], tuple(f["name"] for f in p["fields"])) for p in r.header["probes"]}, {("foo", ("rdi",)), ("foo_2", ("edi",))})
        self.assertEqual({(e["pid"], e["probe"]) for e in r.events}, {(a.pid, "foo"), (b.pid, "foo_2")})
        tool("detach", "--pid", self.pids(a, b), status=0)

    def test_record_takes_its_number_of_events_from_all(self):
        a, b = self.spins(2)
        tool("attach", "--pid", self.pids(a, b), "--function", "foo", "-t", "reg:rdi", status=0)
        r = self.record(self.pids(a, b), "-n", 100)
        self.assertEqual(len(r.events), 100)
        self.assertLessEqual({e["pid"] for e in r.events}, {a.pid, b.pid})  # one may have waited for a processor
        self.let_run(a, b)
        self.assertEqual({e["pid"] for e in self.record(self.pids(a, b), "--once").events}, {a.pid, b.pid})
        tool("detach", "--pid", self.pids(a, b), status=0)

    def test_processes_of_which_none_can_be_recorded_are_an_error(self):
        a, b = self.spins(2)
        r = tool("record", "--pid", self.pids(a, b), "--no-record", "--once", status=harness.OWN_FAILURE)
        for t in a, b:
            self.assertIn(f"no resident probes in {t.pid} (spin) [DP-NO-PROBE]", r.stderr)

    # -- snapshots

    @needs("strace")
    def test_snapshot_writes_a_file_for_each_process(self):
        a, traced, dead, b = self.spins()
        self.strace(traced)
        self.killed(dead)
        r = tool("snapshot", "--pid", self.pids(a, traced, dead, b), "--application", "shop", status=EXIT_PARTIAL, cwd=self.dir)
        self.assertRegex(r.stderr, rf"no snapshot of {traced.pid} \[DP-TRACED\]")
        self.assertRegex(r.stderr, rf"no snapshot of {dead.pid} \[DP-NO-PROCESS\]")
        self.assertEqual(sorted(self.path(name) for name in r.stdout.split()), self.dps())
        found = self.of(self.dps())
        self.assertEqual(set(found), {a.pid, b.pid})
        for shot in found.values():
            self.assertEqual((shot["application"], shot["comm"], shot["exe"]), ("shop", "spin", os.path.realpath(harness.target_path("spin"))))
        text = tool("show", "-q", self.dps()[0], status=0).stdout
        self.assertRegex(text, rf"(?m)^shop \(pid {min(found)}\), 1 thread")
        self.assertRegex(text, r"(?m)^  name +spin$")
        self.assertRegex(text, r"(?m)^  executable +/.*/spin$")

    def test_snapshots_of_a_list_have_the_pid_behind_the_name_that_was_given(self):
        a, b = self.spins(2)
        r = tool("snapshot", a.pid, b.pid, "-o", self.path("x.dps"), "--iterations", 2, status=0)
        self.assertEqual(r.stdout.split(), [self.path(f"x.dps.{t.pid}{n}") for n in ("", ".2") for t in (a, b)])
        for t in a, b:
            self.assertEqual(shown(self.path(f"x.dps.{t.pid}.2"))["pid"], t.pid)

    def test_one_that_ends_between_two_snapshots_is_named_once(self):
        a, b = self.spins(2)
        p = self.spawn(harness.DYNPROBE, "snapshot", self.pids(a, b), "-o", self.path("x"), "--iterations", 4, "--interval", "300ms", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: os.path.exists(self.path(f"x.{b.pid}")), what="the first snapshots")
        self.killed(a)
        out, err = p.communicate(timeout=300)
        self.assertEqual(p.returncode, EXIT_PARTIAL, err)
        self.assertEqual([name for name in out.split() if f".{b.pid}" in name], [self.path(f"x.{b.pid}{n}") for n in ("", ".2", ".3", ".4")])
        self.assertEqual(len(re.findall(rf"no snapshot of {a.pid}\b", err)), 1, err)

    def test_processes_of_which_none_can_be_taken_are_an_error(self):
        a, b = (self.killed(t) for t in self.spins(2))
        r = tool("snapshot", self.pids(a, b), status=harness.OWN_FAILURE, cwd=self.dir)
        for t in a, b:
            self.assertRegex(r.stderr, rf"no snapshot of {t.pid} \[DP-NO-PROCESS\]")
        self.assertEqual(self.dps(), [])

    @needs_root
    def test_process_in_another_pid_namespace_is_named_by_both_pids(self):
        outer = harness.Target("/usr/bin/unshare", "--pid", "--fork", "--kill-child", harness.target_path("spin"), "0", "300")
        self.addCleanup(outer.close)
        (pid,) = wait_until(lambda: harness.children(outer.pid), what="the child")
        wait_until(lambda: harness.status(pid, "Name") == "spin", what="spin")
        tool("snapshot", pid, "-o", self.path("x.dps"), status=0)
        shot = shown(self.path("x.dps"))
        self.assertEqual((shot["pid"], shot["inner_pid"]), (pid, 1))
        self.assertRegex(tool("show", "-q", self.path("x.dps"), status=0).stdout, rf"(?m)^spin \(pid {pid}, inner 1\)")

    @needs("strace")
    def test_run_takes_its_number_of_snapshots_from_all_its_processes(self):
        a, traced, dead, b = self.spins()
        self.strace(traced)
        self.killed(dead)
        p = self.start("--pid", self.pids(a, traced, dead, b), "--function", "foo", "-t", "reg:rdi", "--snapshot", "--max-snapshots", 5, "--snapshot-interval", "1ms",
                       "--max-pause", 30000, cwd=self.dir)
        said = lambda pattern: set(re.findall(pattern, self.said(p)))
        wait_until(lambda: p.poll() is not None or len(said(r"snapshot (\S+): 1 thread of")) >= 5, what="5 snapshots")
        wait_until(lambda: p.poll() is not None or {str(t.pid) for t in (a, b)} <= said(r'(?m)^{"type":"event".*?"pid":(\d+)'), what="events of both")
        r = self.finish(p)
        self.assert_ok(r, status=EXIT_PARTIAL)
        self.assertEqual({p["pid"]: p["tag"] for p in r.summary["probes"] if p.get("tag")}, {traced.pid: "DP-TRACED", dead.pid: "DP-NO-PROCESS"})
        self.assertEqual(len(self.dps()), 5, str(r))
        self.assertEqual(r.summary["snapshots"]["taken"], 5)
        ids = {f"{harness.number(e['fields']['snapshot_id']):012x}": e["pid"] for e in r.events if harness.number(e["fields"]["snapshot_id"])}
        for path in self.dps():
            shot = shown(path)
            self.assertEqual(ids[path.split(".")[-2]], shot["pid"], "the event's process is the file's")
            self.assertRegex(r.err + str(r.lines), rf"snapshot {re.escape(os.path.basename(path))}: 1 thread of {shot['pid']}")
        self.assertEqual(set(self.assert_consecutive(r.events)), {a.pid, b.pid})


if __name__ == "__main__":
    harness.main()
