# SPDX-License-Identifier: MIT
"""Runs that only record read each ring by itself, in batches: every call is in the trace, or counted as lost."""

import collections
import glob
import os
import re
import signal

import harness
from harness import FULL, Case, babeltrace, needs, tool, wait_until
from test_follow import Families, called


def values(lines):
    return [int(re.search(r"\brdi = (\w+)", line)[1], 0) for line in lines]


def by_thread(lines):
    seen = collections.defaultdict(list)
    for line, value in zip(lines, values(lines)):
        seen[re.search(r"vpid = (\d+), vtid = (\d+)", line).groups()].append(value)
    return seen


def streams(trace):
    return glob.glob(os.path.join(trace, "events_*"))


@needs("babeltrace2")
class RecordOnly(Case):
    def tally(self, mode, n, *words, **kw):
        """Runs the program; returns the result, the trace's lines, and what the program counted: {name: (calls, sum of arguments)}."""
        trace = self.path(f"trace-{self.count}")
        r = self.dynprobe("-q", "--function", "foo", "-t", "reg:rdi", *words, "--", harness.target_path("tally"), mode, n, record=trace, **kw)
        self.assert_ok(r)
        said = {name: (int(hits), int(total)) for name, hits, total in re.findall(r"(\w+) (\d+) (\d+)", r.out)}
        return r, babeltrace(trace), said, trace

    def totals(self, r):
        return sum(p["recorded"] for p in r.summary["probes"]), r.summary["lost"]["total"]

    def test_each_call_of_threads_that_come_and_go(self):
        for mode, n in (("threads", 4000), ("churn", 2000 if FULL else 200)):
            with self.subTest(mode):
                r, lines, said, trace = self.tally(mode, n)
                self.assertEqual(self.totals(r), (said["foo"][0], 0), str(r))
                self.assertEqual((len(lines), sum(values(lines))), said["foo"])
                for thread, seen in by_thread(lines).items():
                    self.assertEqual(seen[: n if mode == "threads" else 100], list(range(n if mode == "threads" else 100)), thread)
                self.assertGreater(len(streams(trace)), 1)

    def test_same_counts_as_with_the_events_shown(self):
        shown = self.dynprobe("--function", "foo", "-t", "reg:rdi", "--", harness.target_path("tally"), "threads", 2000, record=self.path("shown"))
        self.assert_ok(shown)
        _, lines, said, _ = self.tally("threads", 2000)
        self.assertEqual(len(shown.events), said["foo"][0])
        self.assertEqual(sorted(values(lines)), sorted(int(str(e["fields"]["rdi"]), 0) for e in shown.events))
        self.assertEqual(len(babeltrace(self.path("shown"))), len(lines))

    def test_handlers_that_hit_in_the_middle_of_hits(self):
        r, lines, said, _ = self.tally("signals", 20000)
        recorded, lost = self.totals(r)
        self.assertEqual(recorded + lost, said["foo"][0], str(r))
        self.assertEqual(len(lines), recorded)

    def test_what_does_not_fit_is_counted_and_the_trace_says_so(self):
        """One small ring, and a thread that is faster than any reader."""
        r, lines, said, trace = self.tally("threads", 300000, "--buffer-size", "16K")
        recorded, lost = self.totals(r)
        self.assertEqual(recorded + lost, said["foo"][0], str(r))
        self.assertEqual(len(lines), recorded)
        self.assertGreater(lost, 0)
        p = harness.subprocess.run(["babeltrace2", trace], capture_output=True, text=True, check=True)
        self.assertEqual(sum(map(int, re.findall(r"discarded (\d+) events", p.stderr))), lost, p.stderr[:2000])
        for thread, seen in by_thread(lines).items():
            self.assertEqual(seen, sorted(seen), thread)

    def test_strings_and_backtraces(self):
        t = self.target("spin", 0, 300)
        trace = self.path("trace")
        p = self.start_attached(t, "-q", "--function", "foo", "-t", "str(arg1)", "-t", "backtrace", record=trace)
        self.let_run(t)
        r = self.finish(p)
        self.assert_ok(r)
        lines = babeltrace(trace)
        self.assertEqual((len(lines), 0), self.totals(r))
        self.assertGreater(len(lines), 10)
        self.assertRegex(lines[0], r'arg1 = "[a-z]*", _backtrace_length = \d+, backtrace = \[ \[0\] = 0x[0-9A-F]+')
        self.assertTrue(all(int(pc, 16) < 1 << 48 for pc in re.findall(r"\] = (0x\w+)", "\n".join(lines))), "frames without marks")
        self.assert_clean(t.pid)

    def test_several_processes_have_streams_of_their_own(self):
        a, b = self.target("spin", 0, 300), self.target("spin", 0, 300)
        trace = self.path("trace")
        p = self.start_attached(a, "--pid", b.pid, "-q", "--function", "foo", "-t", "reg:rdi", record=trace)
        self.await_armed(p, b.pid)
        self.let_run(a, b)
        r = self.finish(p)
        self.assert_ok(r)
        lines = babeltrace(trace)
        seen = collections.Counter(int(re.search(r"vpid = (\d+)", line)[1]) for line in lines)
        self.assertEqual(dict(seen), {x["pid"]: x["recorded"] for x in r.summary["probes"]})
        self.assertEqual(set(seen), {a.pid, b.pid})
        self.assertEqual(len(streams(trace)), 2)

    def test_killed_at_full_speed_leaves_whole_packets(self):
        for i in range(20 if FULL else 3):
            t = self.target("tally", "loop")
            trace = self.path(f"killed-{i}")
            p = self.start_attached(t, "-q", "--function", "foo", "-t", "reg:rdi", record=trace)
            wait_until(lambda: sum(map(os.path.getsize, streams(trace))) > 1000000, what="a trace")  # noqa: B023
            p.kill()
            p.wait()
            t.process.send_signal(signal.SIGTERM)
            lines = babeltrace(trace)
            self.assertGreater(len(lines), 10000)

    def test_resident_probes(self):
        t = self.target("spin", 0, 300)
        tool("attach", "--sink", "ring", "--pid", t.pid, "--function", "foo", "-t", "reg:rdi", status=0)
        self.let_run(t)
        out = [self.path("once.json"), self.path("then.json")]
        tool("record", "--pid", t.pid, "--once", "-q", "-f", "json", "-o", out[0], "--record", self.path("once"), status=0)
        tool("record", "--pid", t.pid, "-d", "0.5", "-q", "-f", "json", "-o", out[1], "--record", self.path("then"), status=0)
        tool("detach", "--pid", t.pid, status=0)
        seen = []
        for path, trace in zip(out, ("once", "then")):
            r = harness.Result(0, "", "", path)
            lines = babeltrace(self.path(trace))
            self.assertEqual(len(lines), sum(p["recorded"] for p in r.summary["probes"]))
            self.assertGreater(len(lines), 0, trace)
            seen += values(lines)
        self.assertEqual(seen, sorted(seen), "one recording after the other, each event once")
        self.assertEqual(len(seen), len(set(seen)))
        self.assert_clean(t.pid)


@needs("babeltrace2")
class RecordOnlyChildren(Families):
    def test_children_that_are_followed(self):
        t = self.family("tree", 100)
        r = self.follow(t, "-q", record=self.path("trace"))
        self.assert_ok(r)
        self.assertEqual(r.summary["lost"]["total"], 0, str(r.summary))
        pids = collections.Counter(int(re.search(r"vpid = (\d+)", line)[1]) for line in babeltrace(self.path("trace")))
        self.assertEqual(dict(pids), {pid: n for pid, n in called(t).items() if n})
        self.assertEqual(t.process.wait(300), 0, t.output())


if __name__ == "__main__":
    harness.main()
