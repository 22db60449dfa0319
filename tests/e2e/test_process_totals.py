# SPDX-License-Identifier: MIT
"""Aggregations over processes that come and go: --program, and --follow across exec; what --follow-exec leaves out."""

import os
import re
import shutil
import signal

from harness import FULL, NOBODY, OWN_FAILURE, Case, long_form, main, maps, needs_root, status, target_path, tool, wait_until
from test_program import Program as Programs
from test_program import called, recorded

SHORT = 1000 if FULL else 60  # short processes


class Totals(Programs):
    def final(self, r):
        """{key: row}; what was lost is nothing, and the summary agrees."""
        rows = [x for x in r.answers if x["final"]]
        self.assertEqual(r.summary["lost"]["total"], 0, str(r.summary))
        self.assertEqual(r.summary["recorded"], sum(x["hits"] for x in rows), f"{r.summary}\n{rows}")
        keys = [x.get("key") for x in rows]
        self.assertEqual(len(keys), len(set(keys)), f"one row for each key: {rows}")
        return {x.get("key"): x for x in rows}

    def only(self, r):
        rows = self.final(r)
        self.assertEqual(list(rows), [None], str(rows))
        self.assertIsNone(rows[None]["pid"], "of no one process")
        return rows[None]

    def hits(self, r):
        return {key: x["hits"] for key, x in self.final(r).items()}


@needs_root
class Program(Totals):
    def aggregate(self, *words, n=10, calls=3, how="fork", probe=("--function", "foo")):
        """Starts n processes while dynprobe aggregates."""
        p = self.watch(*words, probe=probe)
        got, text = self.starts(how, n, self.started, calls)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual((got, len(called(text))), ({0: n}, n), text)
        self.assertEqual((r.summary["started"], r.summary["late"], r.summary["unprobed"]), (n, 0, 0), str(r.summary))
        return r, called(text)

    def test_total_over_many_short_processes(self):
        r, truth = self.aggregate("--count", n=SHORT)
        self.assertEqual(self.only(r)["hits"], sum(truth.values()))

    def test_as_many_as_events(self):
        counted, _ = self.aggregate("--count", n=12)
        events, truth = self.aggregate(n=12)
        self.assertEqual(self.only(counted)["hits"], len(events.events))
        self.assertEqual(recorded(events), truth)

    def test_row_for_each_process(self):
        r, truth = self.aggregate("--count", "--by", "pid", n=SHORT)
        self.assertEqual(self.hits(r), truth)
        r, truth = self.aggregate("--count", "--by", "pid", "--follow")
        self.assertEqual(self.hits(r), truth)

    def test_histogram_and_statistics(self):
        r, truth = self.aggregate("--hist", "arg0,0,10,1", calls=5)
        row = self.only(r)
        self.assertEqual((row["hits"], [b["hits"] for b in row["buckets"]]), (sum(truth.values()), [10] * 5))
        r, truth = self.aggregate("--sum", "arg0", "--avg", "arg0", "--min", "arg0", "--max", "arg0", calls=5)
        row = self.only(r)
        self.assertEqual([row[x] for x in ("hits", "sum", "avg", "min", "max")], [50, 100, 2, 0, 4])
        r, _ = self.aggregate("--count", "--by", "arg0", "--top=2", calls=3)
        self.assertEqual([(x["key"], x["hits"]) for x in r.answers], [(0, 10), (1, 10)])

    def test_durations(self):
        family = shutil.copy(target_path("family"), self.path("family"))
        p = self.watch("--follow", "--hist", "duration", program=family, probe=("--return", "foo"))
        got, text = self.starts("fork", 4, family, "tree", 5, "now")
        r = self.finish(p)
        self.assert_ok(r)
        row = self.only(r)
        self.assertEqual((got, len(called(text))), ({0: 4}, 28))
        self.assertEqual((row["hits"], sum(b["hits"] for b in row["buckets"])), (sum(called(text).values()),) * 2)

    def test_name_and_executable(self):
        other = shutil.copy(self.started, self.path("other"))
        for by, names in ("comm", ("started", "other")), ("exe", (self.started, other)):
            p = self.watch("--count", "--by", by, "--program", other)
            text = "".join(self.starts("spawn", 6, path, calls)[1] for path, calls in ((self.started, 2), (other, 5), (self.started, 1)))
            r = self.finish(p)
            self.assert_ok(r)
            self.assertEqual(len(called(text)), 18)
            self.assertEqual(self.hits(r), dict(zip(names, (18, 30))))

    def test_backtraces_are_one_by_name_wherever_the_program_is_mapped(self):
        r, truth = self.aggregate("--count", "--by", "backtrace", n=20)
        self.assertEqual([x["hits"] for x in r.answers], [sum(truth.values())], str(r.answers))
        self.assertEqual(r.summary["lost"]["total"], 0)
        stack = r.answers[0]["stack"]
        self.assertTrue(stack[0]["symbol"].startswith("foo+0x0/") and stack[1]["symbol"].startswith("main+"), stack)
        self.assertEqual({x["pc"] for x in stack}, {None}, "they are of several processes")

    def test_intervals_add_up(self):
        p = self.watch("--count", "--by", "pid", "--interval", "30ms")
        t = self.target(self.started, 4, "wait")
        self.starts("fork", 10, self.started, 2)
        os.kill(t.pid, signal.SIGUSR1)
        wait_until(lambda: re.search(rf'"final":false[^\n]*"key":{t.pid},"hits":[1-5]', self.said(p)), what="an interval with that process")
        _, text = self.starts("fork", 10, self.started, 3)
        lines = self.said(p).count("final")
        wait_until(lambda: self.said(p).count("final") > lines + 30, what="an interval")
        r = self.finish(p)
        self.assert_ok(r)
        final, parts = self.hits(r), {}
        for x in r.answers:
            if not x["final"]:
                parts[x["key"]] = parts.get(x["key"], 0) + x["hits"]
        self.assertEqual(parts, final)
        self.assertEqual((len(final), final[t.pid], sum(final.values())), (21, 5, 5 + 20 + 30))
        self.assert_clean(t.pid)

    def test_process_that_is_killed_keeps_its_counts(self):
        p = self.watch("--count", "--by", "pid")
        victims = [self.target(self.started, 4 + k, "wait") for k in range(3)]
        for t in victims:
            t.process.kill()
            t.process.wait()
        _, text = self.starts("fork", 5, self.started, 3)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual(self.hits(r), {**called(text), **{t.pid: 4 + k for k, t in enumerate(victims)}})

    def test_running_processes_and_new_ones(self):
        t = self.target(self.started, 1, "wait")
        p = self.watch("--count", said="are probed when they start")
        self.await_armed(p, t.pid)
        os.kill(t.pid, signal.SIGUSR1)
        _, text = self.starts("fork", 3, self.started, 3)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertIn(self.only(r)["hits"], (9, 10), "its call, if it was made before Ctrl-C")
        self.assert_clean(t.pid)

    def test_memory_and_descriptors_do_not_add_up(self):
        p = self.watch("--count")
        size = lambda: (len(os.listdir(f"/proc/{p.pid}/fd")), int(status(p.pid, "VmRSS").split()[0]), int(status(p.pid, "VmSize").split()[0]))
        self.starts("fork", 20, self.started, 1)
        before = size()
        self.starts("fork", SHORT, self.started, 1)
        wait_until(lambda: size()[0] <= before[0] + 20, what="the last one to be forgotten")
        after = size()
        self.assertLess(after[1], before[1] + 16384, "KiB")
        self.assertLess(after[2], 2 * before[2] + 1048576, "KiB")
        self.assertEqual(self.only(self.finish(p))["hits"], 20 + SHORT)

    @long_form
    def test_more_keys_than_there_is_room_for_are_counted(self):
        """No process has more keys than it can count, but all together do."""
        r, truth = self.aggregate("--count", "--by", "pid * 100000 + arg0", n=100, calls=4000)
        hits, s = sum(x["hits"] for x in r.answers), r.summary
        self.assertGreater(s["lost"]["crowded"], 0)
        self.assertEqual((hits, hits + s["lost"]["crowded"]), (s["recorded"], sum(truth.values())), str(s))
        self.assertEqual(s["lost"]["total"], s["lost"]["crowded"])

    def test_number_of_hits_ends_it(self):
        p = self.watch("--count", "-n", 7)
        self.starts("fork", 5, self.started, 3)
        r = self.finish(p, None)
        self.assertEqual(r.summary["ended_by"], "hits")
        self.assertGreaterEqual(self.only(r)["hits"], 7)

    def test_children_of_a_program_that_executes_itself_go_on_counting(self):
        family = shutil.copy(target_path("family"), self.path("family"))
        p = self.watch("--follow", "--count", "--by", "pid", program=family)
        text = self.run_all(family, "leaves", 50, "now", family, "leaves", 7, "now", "/bin/true")
        r = self.finish(p)
        self.assert_ok(r)
        by_pid = {}
        for pid, n in re.findall(r"CALLED (\d+) (\d+)", text):
            by_pid[int(pid)] = by_pid.get(int(pid), 0) + int(n)
        self.assertEqual((sum(by_pid.values()), len(by_pid)), (114, 3), text)
        self.assertEqual(self.hits(r), by_pid)

    def test_wrong_expression_ends_the_run_at_the_first_process_DP_NO_VARIABLE(self):
        p = self.watch("--sum", "no_such_variable")
        got, _ = self.starts("fork", 1, self.started, 3)
        self.assertEqual(got, {0: 1}, "it goes on")
        self.assert_refused(self.finish(p, None), "DP-NO-VARIABLE", "no_such_variable")


@needs_root
class Killed(Totals):
    def test_killed_tool_leaves_nobody_stuck(self):
        for n in (1, 4, 9):
            p = self.watch("--count", "--by", "pid", "--interval", "10ms")
            t = self.target("starter", "fork", 20, self.started, 3)
            wait_until(lambda: len(set(re.findall(r'"key":(\d+)', self.said(p)))) >= n or t.process.poll() is not None, what="rows")  # noqa: B023
            p.kill()
            p.wait()
            self.assertEqual(t.process.wait(300), 0)
            self.assertIn("STATUS 0 20", t.output())
            self.assertEqual(len(called(t.output())), 20)


@needs_root
class Follow(Totals):
    def follow(self, *words, command, probe=("--function", "foo")):
        r = self.dynprobe("--follow", *probe, *words, "--", *command)
        self.assert_ok(r)
        self.assertEqual((r.summary.get("late", 0), r.summary.get("unprobed", 0)), (0, 0), str(r.summary))
        return r, called(r.out)

    def script(self):
        path = self.written("script", f"#!/bin/sh\n{self.started} 2\nexec {self.started} 3\n")
        os.chmod(path, 0o755)
        return ["sh", "-c", f"{self.started} 4; env A=1 {self.started} 5; {path}; /bin/true; exec {self.started} 6"]

    def test_total_through_shell_env_and_script(self):
        r, truth = self.follow("--count", command=self.script())
        self.assertEqual(sorted(truth.values()), [2, 3, 4, 5, 6], str(r))
        self.assertEqual(self.only(r)["hits"], 20)

    def test_row_for_each_process(self):
        r, truth = self.follow("--count", "--by", "pid", command=self.script())
        self.assertEqual(self.hits(r), truth)

    def test_ways_to_start(self):
        for how in ("fork", "vfork", "spawn", "thread", "at"):
            r, truth = self.follow("--hist", "arg0", command=[target_path("starter"), how, 8, self.started, 3])
            row = self.only(r)
            self.assertEqual((row["hits"], sum(b["hits"] for b in row["buckets"]), len(truth)), (24, 24, 8), how)

    def test_backtraces_by_name(self):
        r, truth = self.follow("--count", "--by", "backtrace", command=self.script())
        self.assertEqual([x["hits"] for x in r.answers], [20], str(r.answers))

    def test_folded_backtraces(self):
        r = self.dynprobe("--follow", "--function", "foo", "--count", "--by", "backtrace", "--folded", "--", *self.script(), json_events=False)
        self.assertRegex(r.out + r.err, r"(?m)^(\S+;)?main;foo 20$")

    def test_fork_children_of_what_is_executed(self):
        r, truth = self.follow("--count", "--by", "pid", command=["sh", "-c", f"{target_path('family')} tree 40 now; {self.started} 3; true"])
        self.assertEqual(len(truth), 8)
        self.assertEqual(self.hits(r), truth)

    def test_children_that_their_parents_program_leaves_behind(self):
        family = target_path("family")
        r, _ = self.follow("--count", command=["sh", "-c", f"{family} leaves 50 now {family} leaves 7 now {self.started} 3; {family} orphans 20 now"])
        self.assertEqual(self.only(r)["hits"], sum(map(int, re.findall(r"CALLED \d+ (\d+)", r.out))), r.out)
        self.assertEqual(len(re.findall("CALLED", r.out)), 7)

    def test_process_that_runs_already(self):
        t = self.target("execer", 0, self.started, 5)
        p = self.start_attached(t, "--follow", "--function", "foo", "--count", "--by", "exe")
        os.kill(t.pid, signal.SIGUSR1)
        self.assertEqual(t.process.wait(300), 0)
        r = self.finish(p, None)
        self.assert_ok(r)
        rows = self.hits(r)
        self.assertEqual(set(rows), {os.path.realpath(target_path("execer")), self.started})
        self.assertEqual(rows[self.started], 5)

    def test_process_of_the_command_that_is_killed(self):
        out = self.path("out")
        line = f"{self.started} 7 wait >{out} & until grep -q READY {out}; do :; done; kill -9 $!; wait; {self.started} 3; true"
        r, _ = self.follow("--count", command=["sh", "-c", line])
        self.assertEqual(self.only(r)["hits"], 10)


@needs_root
class FollowExec(Totals):
    def setUp(self):
        super().setUp()
        self.other = shutil.copy(self.started, self.path("other-with-a-long-name"))
        self.link = self.path("linked")
        os.symlink(self.started, self.link)
        self.line = ["sh", "-c", f"{self.started} 3; {self.other} 50; env {self.link} 700; {self.started} 1"]

    def run_only(self, *only, words=("--count",)):
        return self.dynprobe("--follow", *(w for x in only for w in ("--follow-exec", x)), "--function", "foo", *words, "--", *self.line)

    def test_names_paths_links_and_several(self):
        long_name = os.path.basename(self.other)
        for only, hits in ((("started",), 704), ((self.started,), 704), ((self.link,), 704), (("linked",), 700), ((long_name,), 50), ((long_name[:15],), 50),
                           (("linked", self.other), 750), ((self.other, self.started), 754), (("nobody", "started", "linked"), 704)):
            r = self.run_only(*only)
            self.assertEqual(r.status, 0, f"{only}: {r}\n{r.summary}")
            self.assertEqual(self.only(r)["hits"], hits, only)
            self.assertEqual(len(called(r.out)), 4)

    def test_events_and_no_others(self):
        r = self.run_only("linked", words=())
        self.assert_ok(r)
        self.assertEqual(recorded(r), {pid: n for pid, n in called(r.out).items() if n == 700})
        self.assertEqual(r.summary["started"], 1)

    def test_durations_of_a_program_that_only_a_shell_starts(self):
        """What returns and patterns stand for is looked up in its file."""
        family, path = target_path("family"), os.environ["PATH"]
        command = ("sh", "-c", f"{family} tree 5 now; {self.other} 50; env {family} tree 6 now; true")
        for only in (family,), ("/bin/true", family), ("family",):
            for words in ("--return", "foo", "--hist", "duration"), ("--function", "fo[o]", "--count"), ("--return", "foo"):
                try:
                    os.environ["PATH"] = os.path.dirname(family) + ":" + path
                    r = self.dynprobe("--follow", *(w for x in only for w in ("--follow-exec", x)), *words, "--", *command)
                finally:
                    os.environ["PATH"] = path
                self.assert_ok(r)
                hits = sum(called(r.out).values()) - 50
                self.assertEqual((r.summary["recorded"], len(called(r.out))), (hits, 15), f"{only} {words} {r}")
                self.assertEqual(sum(b["hits"] for x in r.answers for b in x.get("buckets", [])), hits if "--hist" in words else 0)
        r = self.dynprobe("--follow", "--follow-exec", "/bin/true", "--return", "foo", "--", *command)
        self.assert_refused(r, "DP-NO-SYMBOL", "--follow-exec PATH")

    def test_script_by_its_own_name(self):
        script = self.written("script", "#!/bin/sh\nexec 3</dev/null\n:\n")
        os.chmod(script, 0o755)
        words = ("--function", "libc.so.6!open64", "--count", "--by", "comm")
        r = self.dynprobe("--follow", "--follow-exec", "script", *words, "--", "env", "sh", "-c", f"sh {script}; {script}; true")
        self.assert_ok(r)
        self.assertEqual(r.summary["started"], 1, str(r.summary))

    def test_others_run_without_probes(self):
        t = self.target("execer", 0, self.other, 1, "wait")
        p = self.start_attached(t, "--follow", "--follow-exec", "started", "--function", "foo", "--count")
        os.kill(t.pid, signal.SIGUSR1)
        wait_until(lambda: os.readlink(f"/proc/{t.pid}/exe") == self.other, what="the exec")
        os.kill(t.pid, signal.SIGUSR1)
        self.assertEqual([m for m in maps(t.pid) if m.is_ours], [])
        os.kill(t.pid, signal.SIGTERM)
        r = self.finish(p, None)
        self.assertEqual(r.summary.get("started", 0), 0)

    def test_program_that_was_probed_executes_another(self):
        """The end of its probes is not the end of the run, nor of the process."""
        family = target_path("family")
        r = self.dynprobe("--follow", "--follow-exec", "family", "--function", "foo", "--count", "--", "sh", "-c",
                          f"{family} leaves 50 now {self.started} 3; {family} leaves 7 now /bin/true; true")
        self.assert_ok(r)
        self.assertEqual(self.only(r)["hits"], 114)

    def test_usage_DP_USAGE(self):
        for words in (("--follow-exec", "x", "-c", "true"), ("--follow", "--follow-exec", "x", "--program", "sh"), ("--program", "sh", "-c", "true"),
                      ("--follow", "--follow-exec", "", "-c", "true")):
            r = self.dynprobe("--function", "foo", *words)
            self.assert_refused(r, "DP-USAGE")
        self.assertIn("--follow --follow-exec sh", self.dynprobe("--function", "foo", "--program", "sh", "-c", "true").err, "what to use instead")

    def test_path_that_leads_nowhere_DP_USAGE(self):
        r = self.dynprobe("--follow", "--follow-exec", "/none/of/this", "--function", "foo", "--", self.started, 1)
        self.assert_refused(r, "DP-USAGE", "/none/of/this", "No such file")


class Unprivileged(Case):
    def test_follow_exec_without_privilege_DP_PERMISSION(self):
        binary, program = self.for_nobody("dynprobe"), self.for_nobody("started")
        prefix = NOBODY if os.geteuid() == 0 else ()
        p = tool("--no-record", "--follow", "--follow-exec", "started", "--function", "foo", "--", program, 2, binary=binary, prefix=prefix,
                 status=OWN_FAILURE)
        self.assertIn("DP-PERMISSION", p.stderr)
        self.assertIn("CAP_SYS_ADMIN", p.stderr)


if __name__ == "__main__":
    main()
