# SPDX-License-Identifier: MIT
"""Several processes in one run: by list and by name; what is wrong with one costs the others nothing."""

import os
import shutil
import subprocess

import harness
from harness import Case, State, needs_root


class Processes(Case):
    def two(self):
        return self.target("spin", 0, 1000), self.target("spin", 0, 1000)

    def dead(self):
        p = subprocess.Popen(["true"])
        p.wait()
        return p.pid

    def assert_others_hit(self, r, left_out, tag, *targets):
        self.assert_ok(r, status=121)
        self.assertIn(str(left_out), r.err)
        self.assertEqual({p["pid"]: p["tag"] for p in r.summary["probes"] if p.get("tag")}, {left_out: tag}, r)
        pids = {e["pid"] for e in r.events}
        self.assertEqual(pids, {t.pid for t in targets}, r)

    def test_list_is_all_of_them(self):
        a, b = self.two()
        r = self.dynprobe("--pid", f"{a.pid},{b.pid}", "--function", "foo", "-d", 1)
        self.assert_ok(r)
        self.assertEqual({e["pid"] for e in r.events}, {a.pid, b.pid})
        for t in (a, b):
            self.assert_result_ok(t)

    def test_summary_has_the_counts_of_each_process(self):
        a, b = self.two()
        args = "--pid", f"{a.pid},{b.pid},{self.dead()}", "--function", "foo", "--return", "foo", "-n", 40
        r = self.dynprobe(*args)
        self.assert_ok(r, status=121)
        rows = {p["pid"]: p for p in r.summary["processes"]}
        self.assertEqual(len(rows), 3)
        for t in a, b:
            self.assertEqual(rows[t.pid]["comm"], "spin")
            for what in "hits", "recorded":
                self.assertEqual(rows[t.pid][what], sum(p[what] for p in r.summary["probes"] if p["pid"] == t.pid))
        r = self.dynprobe(*args, json_events=False)
        self.assertRegex(r.err, r"(?m)^    pid     process +hits +recorded +lost$")
        for t in a, b:
            self.assertRegex(r.err, rf"(?m)^    {t.pid} +spin +\d+ +\d+ +\d+$")

    def test_process_named_twice_is_probed_once(self):
        a, _ = self.two()
        r = self.dynprobe("--pid", f"{a.pid},{a.pid}", "--pid", a.pid, "--function", "foo", "-n", 10)
        self.assert_ok(r)
        self.assertEqual([p["pid"] for p in r.summary["probes"]], [a.pid])

    def test_name_is_all_processes_of_that_name(self):
        name = f"dpn{os.getpid() % 10000}"
        link = self.path(name)
        os.symlink(harness.target_path("spin"), link)
        a, b = (self.spawn(link, "0", "1000") for _ in range(2))
        r = self.dynprobe("--pid", name, "--function", "foo", "-d", 1)
        self.assert_ok(r)
        self.assertEqual({e["pid"] for e in r.events}, {a.pid, b.pid})

    def test_name_is_that_of_a_replaced_executable_too(self):
        name = f"dynprobe-replaced-{os.getpid()}"
        shutil.copy(harness.target_path("spin"), self.path(name))
        a = self.spawn(self.path(name), "0", "1000")
        os.unlink(self.path(name))
        r = self.dynprobe("--pid", name, "--function", "foo", "-n", 10)
        self.assert_ok(r)
        self.assertEqual({e["pid"] for e in r.events}, {a.pid})

    def test_process_whose_first_thread_has_ended_has_its_name(self):
        name = f"dpl{os.getpid()}"
        os.symlink(harness.target_path("odd"), self.path(name))
        t = self.target(self.path(name), "leaderless")
        r = self.dynprobe("--pid", name, "--function", "foo", "-n", 10)
        self.assert_ok(r)
        self.assertEqual({e["pid"] for e in r.events}, {t.pid})

    def test_one_that_ends_after_it_was_found_by_name_costs_nothing(self):
        """A parent and its short-lived children, most of which have ended when their turn comes."""
        name = f"dpc{os.getpid()}"
        os.symlink(harness.target_path("forkload"), self.path(name))
        t = self.target(self.path(name), "2")
        for _ in range(25 if harness.FULL else 6):
            r = self.dynprobe("--pid", name, "--function", "foo", "-d", "50ms")
            self.assert_ok(r)
            harness.tool("status", "--pid", name, status=0)
            taken = harness.tool("snapshot", "--pid", name, "-o", self.path("x"), status=0).stdout.split()
            self.assertIn(self.path(f"x.{t.pid}"), [*taken, *(f"{path}.{t.pid}" for path in taken)], "the parent is one of them, or the only one")
        self.assert_result_ok(t)

    def test_zombie_has_no_name(self):
        name = f"dynprobe-zombie-{os.getpid()}"[:15]
        os.symlink("/bin/true", self.path(name))
        dead = subprocess.Popen([self.path(name)])
        self.addCleanup(dead.wait)
        os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
        self.assert_refused(self.dynprobe("--pid", name, "--function", "foo"), "DP-NO-PROCESS", f"no process is named '{name}'")

    def test_vfork_child_does_not_count_as_a_process_of_that_name(self):
        name = f"dpv{os.getpid() % 10000}"
        os.symlink(harness.target_path("vforker"), self.path(name))
        t = self.target(self.path(name), 3600000)
        harness.wait_until(lambda: t.state() == "D", what="the vfork")
        (child,) = harness.children(t.pid)
        self.assertEqual(harness.status(child, "Name"), name)
        p = harness.tool("status", "--pid", name, "-f", "json", status=0)
        self.assertEqual([x["pid"] for x in harness.objects(p.stdout)], [t.pid])
        t.process.kill()

    def test_name_that_no_process_has_is_refused(self):
        self.assert_refused(self.dynprobe("--pid", "no-such-name", "--function", "foo"), "DP-NO-PROCESS", "no-such-name")

    def remove_groups(self, *folders):
        def gone(folder):
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                return True
            except OSError:  # its last process is still ending
                return False
            return True

        for folder in folders:
            harness.wait_until(lambda: gone(folder), what=f"an empty {folder}")

    def group(self):
        """A control group of our own, with another one in it."""
        for base in "/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified":
            outer = f"{base}/dynprobe-test-{os.getpid()}"
            try:
                os.makedirs(outer + "/inner")
            except OSError:
                continue
            self.addCleanup(self.remove_groups, outer + "/inner", outer)
            if os.path.exists(outer + "/cgroup.procs"):
                return outer
        self.skipTest("no control group can be made here")

    @needs_root
    def test_control_group_is_its_processes_and_those_below(self):
        outer = self.group()
        a, b = self.two()
        c, _ = self.two()
        for t, folder in (a, outer), (b, outer + "/inner"):
            with open(folder + "/cgroup.procs", "w") as f:
                f.write(str(t.pid))
        r = self.dynprobe("--cgroup", outer, "--function", "foo", "-d", 1)
        harness.tool("snapshot", "--cgroup", outer, "-o", self.path("x"), status=0)
        self.assertEqual(sorted(f for f in os.listdir(self.dir) if f.startswith("x.")), sorted(f"x.{t.pid}" for t in (a, b)))
        for t in (a, b):
            self.assert_result_ok(t)
        self.assert_ok(r)
        self.assertEqual({e["pid"] for e in r.events}, {a.pid, b.pid})
        self.assert_result_ok(c)

    def test_folder_that_is_no_control_group_is_refused(self):
        self.assert_refused(self.dynprobe("--cgroup", "/tmp", "--function", "foo"), "DP-NO-PROCESS", "cgroup.procs")

    def test_folder_that_cannot_be_read_is_refused_with_the_reason(self):
        os.mkdir(self.path("group"))
        os.symlink("cgroup.procs", self.path("group/cgroup.procs"))
        self.assert_refused(self.dynprobe("--cgroup", self.path("group"), "--function", "foo"), "DP-SYS", "Too many levels of symbolic links")
        os.unlink(self.path("group/cgroup.procs"))
        os.mkdir(self.path("group/cgroup.procs"))
        self.assert_refused(self.dynprobe("--cgroup", self.path("group"), "--function", "foo"), "DP-SYS", "Is a directory")

    def test_control_group_without_others_is_refused(self):
        a, _ = self.two()
        os.mkdir(self.path("group"))
        for text in "", f"{a.pid}\n":
            with open(self.path("group/cgroup.procs"), "w") as f:
                f.write(text)
            r = self.dynprobe("--pid", a.pid, "--cgroup", self.path("group"), "--function", "foo")
            self.assert_refused(r, "DP-NO-PROCESS", "has no processes, or only ones that are already named")
        self.assertIn("check the pid, the name or the control group", r.err)

    def test_one_that_has_ended_costs_the_others_nothing(self):
        a, b = self.two()
        dead = self.dead()
        r = self.dynprobe("--pid", f"{a.pid},{dead},{b.pid}", "--function", "foo", "-d", 1)
        self.assert_others_hit(r, dead, "DP-NO-PROCESS", a, b)
        for t in (a, b):
            self.assert_result_ok(t)

    def test_one_without_the_function_costs_the_others_nothing(self):
        a, b = self.two()
        other = self.spawn("sleep", "60")
        harness.wait_until(lambda: harness.status(other.pid, "State")[0] == "S" and harness.status(other.pid, "Name") == "sleep", what="sleep")
        before = State(other.pid)
        r = self.dynprobe("--pid", f"{other.pid},{a.pid},{b.pid}", "--function", "foo", "-d", 1)
        self.assert_others_hit(r, other.pid, "DP-STRIPPED", a, b)
        self.assertEqual(before.differences(State(other.pid)), {})

    def test_first_one_without_the_function_costs_the_others_nothing_with_patterns(self):
        a, b = self.two()
        other = self.spawn("sleep", "60")
        harness.wait_until(lambda: harness.status(other.pid, "State")[0] == "S" and harness.status(other.pid, "Name") == "sleep", what="sleep")
        for probe in ("--return", "foo"), ("--function", "fo[o]"):
            r = self.dynprobe("--pid", f"{other.pid},{a.pid},{b.pid}", *probe, "-d", 1)
            self.assert_others_hit(r, other.pid, "DP-STRIPPED", a, b)

    def test_error_is_that_of_the_last_processes(self):
        a, b = self.two()
        dead = self.dead()
        r = self.dynprobe("--pid", f"{dead},{a.pid},{b.pid}", "--function", "no_such_function")
        self.assert_refused(r, "DP-NO-SYMBOL", "no_such_function")
        self.assertIn(f"process {dead} is left out", r.err)
        self.assertIn(f"process {b.pid} is left out", r.err)

    def test_reason_of_the_one_that_is_left_out_has_its_causes(self):
        a, _ = self.two()
        other = self.spawn("sleep", "60")
        r = self.dynprobe("--pid", f"{other.pid},{a.pid}", "--function", "foo", "-n", 10)
        (reason,) = (p["reason"] for p in r.summary["probes"] if p["pid"] == other.pid)
        self.assertRegex(reason, r"probe 'foo' in .*: .*foo")

    def test_one_that_has_the_probe_already_costs_the_others_nothing(self):
        a, b = self.two()
        harness.tool("attach", "--pid", a.pid, "--function", "foo", status=0)
        r = harness.tool("attach", "--pid", f"{a.pid},{b.pid}", "--function", "foo", status=121)
        self.assertRegex(r.stderr, rf"process {a.pid} is left out: .*\[DP-STANDING\]")
        status = harness.tool("status", "--pid", b.pid, status=0)
        self.assertIn("foo", status.stdout)
        harness.tool("detach", "--pid", f"{a.pid},{b.pid}", status=0)
        for t in (a, b):
            self.assert_result_ok(t)

    def test_one_that_cannot_wait_for_snapshots_costs_the_others_nothing(self):
        a, _ = self.two()
        caged = self.target("caged", ready="CAGED")
        r = harness.tool("--pid", f"{caged.pid},{a.pid}", "--allow-seccomp", "--snapshot", "--function", "foo", "-n", 1, "--no-record",
                         cwd=self.path("."), status=121)
        self.assertRegex(r.stderr, rf"process {caged.pid} is left out: .*\[DP-SECCOMP\]")
        self.assertIn("1 snapshot taken", r.stderr)

    def test_one_that_a_plan_cannot_be_made_for_costs_the_others_nothing(self):
        a, _ = self.two()
        caged = self.target("caged", ready="CAGED")
        r = harness.tool("--pid", f"{caged.pid},{a.pid}", "--allow-seccomp", "--follow", "--function", "foo", "--dry-run", status=121)
        self.assertRegex(r.stderr, rf"process {caged.pid} is left out: .*\[DP-FOLLOW\]")
        self.assertRegex(r.stdout, rf"(?m)^{a.pid} spin: 1 of 1 placed")
        dead = self.dead()
        r = harness.tool("--pid", f"{dead},{a.pid}", "--function", "foo", "--dry-run", "-f", "json", status=121)
        self.assertEqual({p["pid"]: p["tag"] for p in harness.objects(r.stdout) if p["type"] == "plan"}, {dead: "DP-NO-PROCESS", a.pid: None})

    def test_one_with_a_seccomp_filter_costs_the_others_nothing(self):
        a, b = self.two()
        caged = self.target("caged", ready="CAGED")
        before = State(caged.pid)
        r = self.dynprobe("--pid", f"{caged.pid},{a.pid},{b.pid}", "--function", "foo", "-d", 1)
        self.assert_others_hit(r, caged.pid, "DP-SECCOMP", a, b)
        self.assertEqual(before.differences(State(caged.pid)), {})
        self.assert_result_ok(caged)

    def test_one_that_cannot_be_stopped_costs_the_others_nothing(self):
        a, b = self.two()
        stuck = self.target("vforker", 3600000)
        harness.wait_until(lambda: stuck.state() == "D", what="the vfork")
        r = self.dynprobe("--pid", f"{stuck.pid},{a.pid},{b.pid}", "--function", "foo", "-d", 1)
        self.assert_others_hit(r, stuck.pid, "DP-VFORK", a, b)
        for t in (a, b):
            self.assert_result_ok(t)
        stuck.process.kill()

    def test_pending_probes_that_none_can_have_are_an_error(self):
        stuck = [self.target("vforker", 3600000) for _ in range(2)]
        for t in stuck:
            harness.wait_until(lambda t=t: t.state() == "D", what="the vfork")
        r = self.dynprobe("--pid", f"{stuck[0].pid},{stuck[1].pid}", "--pending", "--function", "foo", "-d", 1)
        self.assert_refused(r, "DP-VFORK", "none of the probes could be placed")
        for t in stuck:
            t.process.kill()

    def test_aggregations_are_totals_over_all_processes(self):
        a, b = self.two()
        r = self.dynprobe("--pid", f"{a.pid},{b.pid}", "--function", "foo", "--count", "-n", 2000)
        self.assert_ok(r)
        self.assertEqual([x["pid"] for x in r.answers], [None])
        hits = {p["pid"]: p["recorded"] for p in r.summary["probes"]}
        self.assertEqual(r.answers[0]["hits"], sum(hits.values()))
        self.assertTrue(all(hits.values()), hits)

    def test_aggregations_by_pid_have_a_row_for_each_process(self):
        a, b = self.two()
        r = self.dynprobe("--pid", f"{a.pid},{b.pid}", "--function", "foo", "--count", "--by", "pid", "-n", 2000)
        self.assert_ok(r)
        self.assertEqual({x["key"]: x["hits"] for x in r.answers}, {p["pid"]: p["recorded"] for p in r.summary["probes"]})

    @needs_root
    def test_aggregations_by_pid_are_by_the_pid_that_the_user_sees(self):
        """Both know themselves as process 1."""
        outer = [harness.Target("/usr/bin/unshare", "--pid", "--fork", "--kill-child", harness.target_path("spin"), "0", "300") for _ in range(2)]
        for t in outer:
            self.addCleanup(t.close)
        a, b = (harness.wait_until(lambda t=t: harness.children(t.pid), what="the child")[0] for t in outer)
        for pid in a, b:
            harness.wait_until(lambda pid=pid: harness.status(pid, "Name") == "spin", what="spin")
        r = self.dynprobe("--pid", f"{a},{b}", "--function", "foo", "--count", "--by", "pid", "-n", 2000)
        self.assert_ok(r)
        self.assertEqual({x["pid"]: x["key"] for x in r.answers}, {a: a, b: b})
        self.assertEqual({x["key"]: x["hits"] for x in r.answers}, {p["pid"]: p["recorded"] for p in r.summary["probes"]})

    def test_aggregations_by_name_and_executable(self):
        """Two of one executable with two names, and one of another executable with one of these names."""
        os.mkdir(self.path("other"))
        one, two, copy = (self.path(x) for x in ("dpone", "dptwo", "other/dptwo"))
        for link in one, two:
            os.symlink(harness.target_path("spin"), link)
        shutil.copy(harness.target_path("spin"), copy)
        a, b, c = (self.spawn(path, "0", "1000") for path in (one, two, copy))
        for t, name in (a, "dpone"), (b, "dptwo"), (c, "dptwo"):
            harness.wait_until(lambda t=t, name=name: harness.status(t.pid, "Name") == name, what=name)
        spin = os.path.realpath(harness.target_path("spin"))
        for by, groups in ("comm", {"dpone": {a.pid}, "dptwo": {b.pid, c.pid}}), ("exe", {spin: {a.pid, b.pid}, copy: {c.pid}}):
            for what in ("--count",), ("--hist", "arg0", "--interval", "100ms"):
                r = self.dynprobe("--pid", f"{a.pid},{b.pid},{c.pid}", "--function", "foo", *what, "--by", by, "-n", 2000)
                self.assert_ok(r)
                hits = {p["pid"]: p["recorded"] for p in r.summary["probes"]}
                self.assertEqual({x["key"]: x["hits"] for x in r.answers if x["final"]}, {k: sum(hits[pid] for pid in v) for k, v in groups.items()})
        r = self.dynprobe("--pid", f"{a.pid},{b.pid}", "--function", "foo", "--count", "--by", "comm", "-n", 200, json_events=False)
        self.assertRegex(r.out, r"(?m)^ +\d+ foo  dpone$")

    def test_backtraces_as_keys_stay_those_of_a_process(self):
        a, b = self.two()
        r = self.dynprobe("--pid", f"{a.pid},{b.pid}", "--function", "foo", "--count", "--by", "backtrace", "-n", 2000)
        self.assert_ok(r)
        self.assertEqual({x["pid"] for x in r.answers}, {a.pid, b.pid})

    def test_each_command_goes_on_after_one_that_has_ended(self):
        a, b = self.two()
        dead = self.dead()
        pids = f"{a.pid},{dead},{b.pid}"
        for words in ("attach", "--function", "foo"), ("status",), ("disable", "foo"), ("enable", "foo"), ("remove", "foo"), ("detach",):
            r = harness.tool(*words, "--pid", pids, status=121)
            self.assertRegex(r.stderr, rf"there is no process {dead} \[DP-NO-PROCESS\]", words)
            for t in (a, b):
                self.assertIn(str(t.pid), r.stdout + r.stderr, words)
                self.assertEqual(bool(harness.changed_text(t.pid)), words[0] not in ("remove", "detach"), words)
        for t in (a, b):
            self.assert_result_ok(t)

    def test_one_that_ends_during_the_run_costs_the_others_nothing(self):
        a, b = self.two()
        c, _ = self.two()
        p = self.start_attached(a, "--pid", f"{b.pid},{c.pid}", "--function", "foo")
        for t in (b, c):
            self.await_armed(p, t.pid)
        b.process.kill()
        b.process.wait()
        before = self.said(p).count('"type":"event"')
        harness.wait_until(lambda: self.said(p).count('"type":"event"') > before + 100, what="events of the others")
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual(len(r.summary["processes"]), 3)
        for t in (a, c):
            self.assert_clean(t.pid)
            self.assert_result_ok(t)

    def test_commands_for_one_process_say_which_are_named(self):
        a, b = self.two()
        for words in ("list",), ("stubs", "-o", self.path("x")):
            r = harness.tool(*words, "--pid", f"{a.pid},{b.pid}", status=125)
            self.assertIn(f"dynprobe {words[0]} takes one process at a time, and 2 are named: {a.pid},{b.pid} [DP-USAGE]", r.stderr)

    def test_function_that_none_has_is_an_error_and_changes_nothing(self):
        a, b = self.two()
        before = State(a.pid), State(b.pid)
        r = self.dynprobe("--pid", f"{a.pid},{b.pid}", "--function", "no_such_function")
        self.assert_refused(r, "DP-NO-SYMBOL", "no_such_function")
        for t, state in zip((a, b), before):
            self.assertEqual(state.differences(State(t.pid)), {})

    def test_all_that_have_ended_are_an_error(self):
        self.assert_refused(self.dynprobe("--pid", f"{self.dead()},{self.dead()}", "--function", "foo"), "DP-NO-PROCESS")


if __name__ == "__main__":
    harness.main()
