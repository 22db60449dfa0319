# SPDX-License-Identifier: MIT
"""--follow: fork children record into rings of their own."""

import collections
import contextlib
import os
import re
import signal
import time

from harness import FULL, NOBODY, Case, armed, babeltrace, children, holders, main, needs_root, status, target_path, tool, wait_until


def called(t):
    """{pid: number of calls}, as the processes themselves counted."""
    return {int(pid): int(n) for pid, n in re.findall(r"CALLED (\d+) (\d+)", t.output())}


def recorded(r):
    return dict(collections.Counter(e["pid"] for e in r.events))


def lost(r):
    return r.summary["lost"]["total"]


MANY = 1500 if FULL else 1100  # children, more than the 1024 rings


class Families(Case):
    def family(self, *args, **kw):
        t = self.target("family", *args, start_new_session=True, **kw)

        def end():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(t.pid, signal.SIGKILL)

        self.addCleanup(end)
        self.families = [*getattr(self, "families", ()), t.pid]
        return t

    def follow(self, t, *args, probe=("--function", "foo"), **kw):
        """Attaches, lets the family run, and waits for dynprobe's end."""
        p = self.start_attached(t, "--follow", *probe, *args, **kw)
        os.kill(t.pid, signal.SIGUSR1)
        return self.finish(p, None)

    def assert_all(self, t, r, extra=()):
        self.assert_ok(r)
        self.assertEqual(lost(r), 0, str(r.summary))
        self.assertEqual(recorded(r), {pid: n for pid, n in called(t).items() if n}, str(r))
        self.assertEqual(t.process.wait(300), 0, t.output())

    def tearDown(self):
        left = {pid: holders(pid) for pid in getattr(self, "families", ())}
        self.assertFalse(any(left.values()), left)


class Follow(Families):
    def test_tree_of_children_with_threads_each_call_of_each_process(self):
        t = self.family("tree", 200)
        r = self.follow(t)
        self.assert_all(t, r)
        self.assertEqual(len(called(t)), 7)
        self.assertEqual(r.summary["followed"], 6, str(r.summary))
        tids = {e["tid"] for e in r.events}
        self.assertEqual(len(tids), 21, "three threads of seven processes")

    def test_condition_on_the_childs_own_pid(self):
        t = self.family("tree", 50)
        r = self.follow(t, "--when", "pid % 2 == 0", "-t", "pid")
        self.assert_ok(r)
        self.assertEqual((recorded(r), lost(r)), ({pid: n for pid, n in called(t).items() if pid % 2 == 0}, 0))
        self.assertTrue(all(e["pid"] == e["fields"]["pid"] for e in r.events))
        t = self.family("tree", 50)
        r = self.follow(t, "--when", f"pid != {t.pid}")
        self.assertEqual((recorded(r), lost(r)), ({pid: n for pid, n in called(t).items() if pid != t.pid}, 0))

    def test_hits_are_numbered_over_all_processes(self):
        t = self.family("tree", 70)
        r = self.follow(t, "-t", "hits")
        self.assert_all(t, r)
        self.assertEqual(sorted(e["fields"]["hits"] for e in r.events), list(range(1, sum(called(t).values()) + 1)))
        t = self.family("tree", 70)
        r = self.follow(t, "--when", "hits > 40 && hits % 7 == 0", "-t", "hits")
        self.assertEqual(sorted(e["fields"]["hits"] for e in r.events), list(range(42, sum(called(t).values()) + 1, 7)))

    def answers(self, t, *words):
        """The final rows, {key: row}; nothing is lost."""
        r = self.follow(t, *words, probe=())
        self.assert_ok(r)
        self.assertEqual(lost(r), 0, str(r.summary))
        self.assertEqual(t.process.wait(300), 0, t.output())
        self.assertEqual(r.summary["recorded"], sum(row["hits"] for row in r.answers if row["final"]))
        return {row.get("key"): row for row in r.answers if row["final"]}

    def test_counts_are_of_all_processes(self):
        t = self.family("tree", 3000)
        rows = self.answers(t, "--count", "--function", "foo")
        self.assertEqual({k: row["hits"] for k, row in rows.items()}, {None: sum(called(t).values())})
        self.assertIsNone(rows[None].get("pid"), "no one process's")

    def test_counts_by_process_and_by_thread(self):
        t = self.family("tree", 200)
        rows = self.answers(t, "--count", "--by", "pid", "--function", "foo")
        self.assertEqual({k: row["hits"] for k, row in rows.items()}, called(t))
        t = self.family("tree", 200)
        rows = self.answers(t, "--count", "--by", "tid", "--function", "foo")
        self.assertEqual((len(rows), sum(row["hits"] for row in rows.values())), (21, sum(called(t).values())))

    def test_statistics_of_all_processes(self):
        t = self.family("tree", 100)
        rows = self.answers(t, "--sum", "arg0", "--min", "arg0", "--max", "arg0", "--function", "foo")
        each = [n // 3 for n in called(t).values() for _ in range(3)]
        row = rows[None]
        self.assertEqual((row["hits"], row["sum"], row["min"], row["max"]), (sum(each), sum(n * (n - 1) // 2 for n in each), 0, max(each) - 1))
        t = self.family("tree", 100)
        rows = self.answers(t, "--max", "hits", "--function", "foo")
        self.assertEqual(rows[None]["max"], sum(called(t).values()))

    def test_counts_by_backtrace(self):
        t = self.family("tree", 50)
        r = self.follow(t, "--count", "--by", "backtrace")
        self.assert_ok(r)
        self.assertEqual((sum(row["hits"] for row in r.answers), lost(r)), (sum(called(t).values()), 0), str(r.summary))
        self.assertEqual(len(r.answers), 4, "threads, and the first thread in each generation")

    def test_counts_after_a_raw_clone(self):
        for words in (("--function", "foo", "--count"), ("--function", "foo", "--count", "--by", "backtrace"), ("--return", "foo", "--hist", "duration")):
            t = self.family("raw", 300)
            r = self.follow(t, *words, probe=())
            self.assert_ok(r)
            self.assertEqual((r.summary["recorded"], lost(r)), (sum(called(t).values()), 0), f"{words}: {r}")

    def test_counts_of_many_short_children(self):
        t = self.family("burst", MANY)
        rows = self.answers(t, "--count", "--function", "foo")
        self.assertEqual(rows[None]["hits"], 3 * MANY)

    def test_counts_while_it_runs(self):
        t = self.family("on")
        p = self.start_attached(t, "--follow", "--function", "foo", "--count", "--by", "pid", "--interval", "50ms")
        os.kill(t.pid, signal.SIGUSR1)
        wait_until(lambda: len(children(t.pid)) == 2, what="children")
        family = [t.pid, *children(t.pid)]
        wait_until(lambda: all(f'"key":{pid},' in self.said(p) for pid in family), what="rows of each")
        r = self.finish(p)
        self.assert_ok(r)
        total = sum(row["hits"] for row in r.answers if row["final"])
        self.assertLessEqual(sum(row["hits"] for row in r.answers if not row["final"]), total)
        self.assertEqual((r.summary["recorded"], lost(r)), (total, 0))
        for pid in family:
            self.assert_clean(pid)

    def test_durations_of_each_call_of_each_process(self):
        t = self.family("tree", 200)
        started = time.monotonic()
        r = self.follow(t, "-t", "duration", probe=("--return", "foo"))
        most = (time.monotonic() - started) * 1e9
        self.assert_all(t, r)
        self.assertTrue(all(0 <= e["fields"]["duration"] < most for e in r.events))
        t = self.family("tree", 200)
        rows = self.answers(t, "--hist", "duration", "--return", "foo")
        self.assertEqual(rows[None]["hits"], sum(called(t).values()))
        t = self.family("tree", 200)
        rows = self.answers(t, "--avg", "duration", "--by", "pid", "--return", "foo")
        self.assertEqual({k: row["hits"] for k, row in rows.items()}, called(t))

    def test_slow_calls_of_each_process(self):
        t = self.family("tree", 200)
        r = self.follow(t, "--slower-than", "1ns", "-t", "duration", probe=("--return", "foo"))
        self.assert_ok(r)
        self.assertEqual(lost(r), 0)
        self.assertTrue(all(e["fields"]["duration"] >= 1 for e in r.events))
        self.assertEqual(set(recorded(r)), set(called(t)))
        t = self.family("tree", 200)
        self.assertEqual(self.follow(t, "--slower-than", "1h", probe=("--return", "foo")).events, [])

    def test_call_that_forks_returns_in_its_child_without_a_duration(self):
        forks = 5 + 5 * 5
        t = self.family("inside", 5)
        r = self.follow(t, "-t", "duration", probe=("--return", "spawn"))
        self.assert_ok(r)
        self.assertEqual((len(r.events), r.summary["lost"]["unpaired"], lost(r)), (forks, forks, forks), str(r.summary))
        self.assertEqual(t.process.wait(300), 0, t.output())
        t = self.family("inside", 5)
        r = self.follow(t, probe=("--return", "spawn"))
        self.assert_ok(r)
        self.assertEqual((len(r.events), lost(r)), (2 * forks, 0))

    def test_command_that_dynprobe_starts(self):
        argv, events = self.command("--follow", "--function", "foo", "--", target_path("family"), "tree", 50, "now")
        r = tool(*argv[1:], status=0)
        self.assertIn("RESULT OK", r.stdout)
        with open(events) as f:
            pids = collections.Counter(re.findall(r'"type":"event".*?"pid":(\d+)', f.read()))
        wanted = {pid: int(n) for pid, n in re.findall(r"CALLED (\d+) (\d+)", r.stdout)}
        self.assertEqual(dict(pids), wanted, r.stderr)

    def test_raw_clone_with_its_parents_thread_id(self):
        t = self.family("raw", 300)
        r = self.follow(t, probe=("--function", "foo", "-t", "str(arg1, 16)"))
        self.assert_all(t, r)
        self.assertIn("family", str(r.events[-1]), "read by its own process")

    def test_children_outlive_their_parent(self):
        t = self.family("orphans", 300)
        r = self.follow(t)
        self.assert_ok(r)
        self.assertEqual(len(called(t)), 2)
        self.assertEqual(recorded(r), called(t))
        self.assertEqual(lost(r), 0)
        self.assertEqual(r.summary["ended_by"], "target exited")
        self.assertIn(f"process {t.pid} has ended; its children are still followed", r.err + str(r.told))

    @needs_root
    def test_child_in_a_pid_namespace_of_its_own(self):
        t = self.family("namespace", 2500)
        r = self.follow(t)
        self.assert_ok(r)
        self.assertEqual((len(r.events), lost(r)), (2501, 0), str(r.summary))
        ids = {(e["pid"], e.get("inner_pid")) for e in r.events}
        self.assertEqual({inner for _, inner in ids}, {1}, "as it knows itself")
        self.assertEqual(len(ids), 1)
        self.assertNotIn(1, {pid for pid, _ in ids}, "as we know it")
        self.assertEqual(t.process.wait(300), 0, t.output())

    def test_child_whose_first_thread_has_ended(self):
        t = self.family("headless", 2500)
        r = self.follow(t)
        self.assert_ok(r)
        self.assertEqual((len(r.events), lost(r)), (2501, 0), str(r.summary))
        self.assertEqual(len({e["tid"] for e in r.events}), 2)
        self.assertEqual(t.process.wait(300), 0, t.output())

    def test_child_that_executes_another_program_is_followed_until_then(self):
        t = self.family("execs", 200)
        r = self.follow(t)
        self.assert_all(t, r)
        self.assertIn("following fork children", r.err)

    def test_children_that_began_before_are_named(self):
        t = self.target("brood", "idle", 3, start_new_session=True)
        self.addCleanup(os.killpg, t.pid, signal.SIGKILL)
        os.kill(t.pid, signal.SIGUSR1)
        wait_until(lambda: "GROWN" in t.output(), what="children")
        said = f"3 children of {t.pid} (brood) that began before are not probed: --pid brood means all processes of that name"
        run = lambda *args: self.dynprobe("--function", "foo", "--count", "-d", 0.1, *args, json_events=False)
        self.assertIn(said, run("--pid", t.pid, "--follow").err)
        self.assertNotIn("began before", run("--pid", t.pid).err, "nobody asked for children")
        self.assertNotIn("began before", run("--pid", ",".join(map(str, [t.pid, *children(t.pid)])), "--follow").err)

    def test_more_children_than_rings_one_after_the_other(self):
        t = self.family("burst", MANY)
        r = self.follow(t)
        self.assert_ok(r)
        counted = recorded(r)
        self.assertEqual(sum(counted.values()) + lost(r), 3 * MANY, "each hit is recorded or counted")
        self.assertEqual(r.summary["lost"]["total"], r.summary["lost"]["no_slot"])
        self.assertEqual(set(counted.values()), {3})
        self.assertEqual(t.process.wait(300), 0, t.output())

    def test_condition_that_reads_memory_and_backtrace(self):
        t = self.family("tree", 20)
        r = self.follow(t, probe=("--function", "foo", "--when", "*(char *)arg1 == 'f'", "-t", "backtrace"))
        self.assert_all(t, r)

    def test_condition_on_a_string_at_a_childs_first_hit(self):
        t = self.family("tree", 20)
        r = self.follow(t, probe=("--function", "foo", "--when", 'str(arg1) == "family"'))
        self.assert_all(t, r)

    def test_pids_in_a_trace(self):
        t = self.family("tree", 5)
        r = self.follow(t, record=self.path("trace"))
        self.assert_all(t, r)
        lines = babeltrace(self.path("trace"))
        self.assertEqual(dict(collections.Counter(int(re.search(r"vpid = (\d+)", x)[1]) for x in lines)), called(t))

    def test_pids_and_summary_in_text(self):
        t = self.family("tree", 5)
        r = self.follow(t, json_events=False)
        self.assert_ok(r)
        shown = collections.Counter(map(int, re.findall(r"family\[(\d+)/\d+\] foo", r.out)))
        self.assertEqual({pid: shown[pid] for pid in called(t) if pid != t.pid}, {pid: n for pid, n in called(t).items() if pid != t.pid}, r.err)
        self.assertRegex(r.err, r"followed +6 fork children")

    def test_two_families_at_once(self):
        a, b = self.family("tree", 40), self.family("tree", 60)
        p = self.start_attached(a, "--pid", b.pid, "--follow", "--function", "foo")
        self.await_armed(p, b.pid)
        for t in (a, b):
            os.kill(t.pid, signal.SIGUSR1)
        r = self.finish(p, None)
        self.assert_ok(r)
        self.assertEqual(recorded(r), {**called(a), **called(b)})
        self.assertEqual((lost(r), r.summary["followed"]), (0, 12))

    @needs_root
    def test_user_without_privileges_follows_own_processes(self):
        family, binary = self.for_nobody("family"), self.for_nobody("dynprobe")
        r = tool("--no-record", "-q", "--follow", "--function", "foo", "--", family, "tree", 50, "now", binary=binary, prefix=NOBODY, status=0)
        calls = sum(int(n) for n in re.findall(r"CALLED \d+ (\d+)", r.stdout))
        self.assertRegex(r.stderr, rf"hits +{calls} +recorded {calls} +lost 0")

    def test_interrupt_leaves_all_processes_clean(self):
        t = self.family("on")
        p = self.start_attached(t, "--follow", "--function", "foo")
        os.kill(t.pid, signal.SIGUSR1)
        wait_until(lambda: len(children(t.pid)) == 2, what="children")
        family = [t.pid, *children(t.pid)]
        wait_until(lambda: all(f'"pid":{pid},' in self.said(p) for pid in family), what="events of each")
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual(lost(r), 0, str(r.summary))
        self.assertEqual(set(recorded(r)), set(family))
        for pid in family:
            self.assert_clean(pid)
        self.assert_result_ok(t)

    def test_killed_dynprobe_leaves_the_family_running(self):
        t = self.family("on")
        p = self.start_attached(t, "--follow", "--function", "foo")
        os.kill(t.pid, signal.SIGUSR1)
        wait_until(lambda: len(children(t.pid)) == 2, what="children")
        family = [t.pid, *children(t.pid)]
        wait_until(lambda: all(f'"pid":{pid},' in self.said(p) for pid in family), what="events of each")
        p.kill()
        p.wait()
        time.sleep(0.3)
        for pid in reversed(family):
            self.assertNotIn(status(pid, "State")[0], "ZX")
            self.assertTrue(armed(pid))
            self.assert_ok(self.dynprobe("--pid", pid, "--function", "foo", "-n", 2))
            self.assert_clean(pid)
        self.assert_result_ok(t)

    def test_killed_while_children_are_born(self):
        for delay in (0.01, 0.05, 0.2, 0.4) if FULL else (0.01, 0.1):
            t = self.family("burst", 2000 if FULL else 1000)
            p = self.start_attached(t, "--follow", "--function", "foo")
            os.kill(t.pid, signal.SIGUSR1)
            time.sleep(delay)
            p.kill()
            p.wait()
            self.assertEqual(t.process.wait(300), 0, t.output())

    def test_parent_that_is_killed_does_not_matter_to_its_children(self):
        t = self.family("on")
        p = self.start_attached(t, "--follow", "--function", "foo")
        os.kill(t.pid, signal.SIGUSR1)
        wait_until(lambda: len(children(t.pid)) == 2, what="children")
        young = children(t.pid)
        wait_until(lambda: all(f'"pid":{pid},' in self.said(p) for pid in young), what="events of each")
        t.process.kill()
        t.process.wait()
        self.await_output(p, 5000)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual(lost(r), 0, str(r.summary))
        for pid in young:
            self.assert_clean(pid)
            os.kill(pid, signal.SIGTERM)

    def test_without_it_children_are_only_counted(self):
        t = self.family("tree", 200)
        p = self.start_attached(t, "--function", "foo")
        os.kill(t.pid, signal.SIGUSR1)
        r = self.finish(p, None)
        self.assert_ok(r)
        self.assertEqual(recorded(r), {t.pid: called(t)[t.pid]})
        self.assertEqual(r.summary["lost"]["forked"], sum(called(t).values()) - called(t)[t.pid])
        self.assertNotIn("followed", r.summary)

    def test_refuse_DP_FOLLOW(self):
        caged = self.target("caged", ready="CAGED")
        for what in ((), ("--dry-run",)):
            r = tool("--pid", caged.pid, "--follow", "--function", "foo", "--allow-seccomp", *what)
            self.assertEqual(r.returncode, 125, r.stderr)
            self.assertIn("DP-FOLLOW", r.stderr)

    def test_options_that_exclude_it(self):
        t = self.family("on")
        for what in (("--sink", "lttng"),):
            r = tool("--pid", t.pid, "--follow", "--function", "foo", *what)
            self.assertEqual(r.returncode, 125, r.stderr)
            self.assertIn("--follow", r.stderr)
        self.assert_clean(t.pid)


if __name__ == "__main__":
    main()
