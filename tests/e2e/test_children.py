# SPDX-License-Identifier: MIT
"""What forks leave behind: children that carry probes, at the end of a run, of resident probes, and of a killed tool."""

import contextlib
import os
import shutil
import signal

from harness import EXIT_PARTIAL, FULL, NOBODY, Case, armed, changed_text, children, holders, main, maps, needs, needs_root, objects, status, target_path, tool, wait_until
from servers import Nginx


class Brood(Case):
    def brood(self, mode, n=4, **kw):
        t = self.target("brood" if "path" not in kw else kw.pop("path"), mode, n, start_new_session=True, **kw)

        def end():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(t.pid, signal.SIGKILL)

        self.addCleanup(end)
        return t

    def grow(self, t, n=4):
        """Lets it fork; returns the children."""
        os.kill(t.pid, signal.SIGUSR1)
        wait_until(lambda: "GROWN" in t.output(), what="children")
        found = children(t.pid)
        self.assertEqual(len(found), n)
        return found

    def assert_all_clean(self, t, young):
        for pid in [t.pid, *young]:
            self.assert_clean(pid)
        self.assertEqual(holders(t.pid), [])


def is_in_a_probe(pid):
    """The process is stopped, and stays where it is."""
    with open(f"/proc/{pid}/syscall", encoding="ascii") as f:
        pc = int(f.read().split()[-1], 16)
    return any(m.start <= pc < m.end for m in maps(pid) if m.is_ours)


def stop_outside_probes(pid):
    """What is stopped in a probe is lawfully left alone, so that it would not be cleaned."""

    def is_stopped():
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: status(pid, "State")[0] == "T", what="a stopped child")
        if not is_in_a_probe(pid):
            return True
        os.kill(pid, signal.SIGCONT)
        return False

    wait_until(is_stopped, what="a child that is stopped outside a probe")


class Runs(Brood):
    def run_and_grow(self, mode, n=4, *options, **kw):
        t = self.brood(mode, n, **kw)
        p = self.start_attached(t, "--function", "foo", *options)
        return t, p, self.grow(t, n)

    def test_interrupt_cleans_children_that_hit_and_those_that_did_not(self):
        for mode in ("work", "idle"):
            t, p, young = self.run_and_grow(mode)
            r = self.finish(p)
            self.assert_ok(r)
            self.assertEqual((r.summary["children_cleaned"], r.summary["children_left"]), (4, []))
            self.assert_all_clean(t, young)
            self.let_run(t)
            self.assert_result_ok(t)

    def test_other_ends_of_a_run(self):
        for options in (("-n", 2000), ("-d", 10)) if FULL else (("-n", 2000),):
            t, p, young = self.run_and_grow("work", 4, *options)
            r = self.finish(p, None)
            self.assert_ok(r)
            self.assertEqual(r.summary["children_cleaned"], 4)
            self.assert_all_clean(t, young)
            self.assert_result_ok(t)

    def test_children_outlive_the_target(self):
        t = self.brood("orphans")
        p = self.start_attached(t, "--function", "foo")
        os.kill(t.pid, signal.SIGUSR1)
        r = self.finish(p, None)
        self.assert_ok(r)
        self.assertEqual((r.summary["ended_by"], r.summary["children_cleaned"]), ("target exited", 4))
        self.assertEqual(holders(t.pid), [])
        os.killpg(t.pid, signal.SIGTERM)
        wait_until(lambda: t.output().count("WORKER") == 4, what="the results of four children")
        self.assertEqual(t.output().count("OK"), 4)

    def test_text_summary_says_it(self):
        t = self.brood("work")
        p = self.start_attached(t, "--function", "foo", json_events=False)
        self.grow(t)
        r = self.finish(p)
        self.assertRegex(r.err, r"cleaned +4 fork children, which had inherited the probes")
        self.assert_result_ok(t)

    def test_many_children(self):
        n = 200 if FULL else 40
        t, p, young = self.run_and_grow("idle", n)
        r = self.finish(p)
        self.assertEqual((r.summary["children_cleaned"], r.summary["children_left"]), (n, []))
        self.assert_all_clean(t, young)
        self.assert_result_ok(t)

    def test_second_interrupt_says_how_to_clean_the_rest(self):
        t, p, young = self.run_and_grow("idle", 200)
        p.send_signal(signal.SIGINT)
        # one look at one of them, the first to be cleaned: dynprobe cleans on meanwhile
        wait_until(lambda: not any(m.is_ours for m in maps(min(young))), what="the first child to be cleaned")
        r = self.finish(p)
        left = r.summary["children_left"]
        self.assertGreater(len(left), 0, str(r))
        for child in left:
            self.assertEqual((child["tag"], child["reason"]), ("DP-BUSY", f"dynprobe ended before its turn; dynprobe detach --pid {child['pid']} removes them"))
        for child in left[:3]:
            tool("detach", "--pid", child["pid"])
            self.assert_clean(child["pid"])
        tool("detach", "--pid", t.pid)
        self.assert_all_clean(t, young)
        self.assert_result_ok(t)

    def test_children_that_are_stopped_stay_stopped(self):
        t, p, young = self.run_and_grow("work")
        for pid in young:
            stop_outside_probes(pid)
        r = self.finish(p)
        self.assertEqual((r.summary["children_cleaned"], r.summary["children_left"]), (4, []))
        self.assertEqual([status(pid, "State")[0] for pid in young], ["T"] * 4)
        self.assert_all_clean(t, young)
        for pid in young:
            os.kill(pid, signal.SIGCONT)
        self.assert_result_ok(t)

    @needs("strace")
    def test_traced_child_is_named_and_the_others_are_cleaned(self):
        t, p, young = self.run_and_grow("work")
        tracer = self.spawn("strace", "-qq", "-o", os.devnull, "-p", young[1])
        wait_until(lambda: status(young[1], "TracerPid") == str(tracer.pid), what="strace to attach")
        r = self.finish(p)
        self.assert_ok(r, EXIT_PARTIAL)
        self.assertEqual(r.summary["children_cleaned"], 3)
        [left] = r.summary["children_left"]
        self.assertEqual((left["pid"], left["comm"], left["tag"]), (young[1], "brood", "DP-TRACED"))
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
        self.assertTrue(armed(young[1]))
        self.assertIn(f"fork of {t.pid}", tool("detach", "--pid", young[1], status=0).stderr)
        self.assert_all_clean(t, young)
        self.assert_result_ok(t)

    def test_child_that_waits_for_its_vfork_child(self):
        t, p, young = self.run_and_grow("vfork", 2)
        wait_until(lambda: all(children(pid) for pid in young), what="vfork children")
        r = self.finish(p)
        self.assert_ok(r, EXIT_PARTIAL)
        self.assertEqual({(x["pid"], x["tag"]) for x in r.summary["children_left"]}, {(pid, "DP-VFORK") for pid in young})
        self.assert_result_ok(t)

    @needs_root
    @needs("strace")
    def test_traced_child_of_a_parent_that_has_gone(self):
        t = self.brood("work", 2, path=shutil.copy(target_path("brood"), self.path("brood")))
        p = self.start("--program", self.path("brood"), "--function", "foo")
        self.await_armed(p, t.pid)
        young = self.grow(t, 2)
        tracer = self.spawn("strace", "-qq", "-o", os.devnull, "-p", young[1])
        wait_until(lambda: status(young[1], "TracerPid") == str(tracer.pid), what="strace to attach")
        t.process.kill()
        wait_until(lambda: not changed_text(young[0]), what="the other child to be cleaned")
        r = self.finish(p)
        self.assert_ok(r, EXIT_PARTIAL)
        self.assertEqual([x["pid"] for x in r.summary["children_left"]], [young[1]])
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
        tool("detach", "--pid", young[1], status=0)
        self.assert_clean(young[1])

    @needs_root
    def test_child_in_a_pid_namespace_of_its_own(self):
        t, p, young = self.run_and_grow("namespace", 1)
        r = self.finish(p)
        self.assertEqual((r.summary["children_cleaned"], r.summary["children_left"]), (1, []))
        self.assert_all_clean(t, young)
        self.assert_result_ok(t)

    @needs_root
    def test_children_of_another_user(self):
        t, p, young = self.run_and_grow("nobody")
        wait_until(lambda: all(status(pid, "Uid").startswith("65534") for pid in young), what="another user")
        r = self.finish(p)
        self.assertEqual((r.summary["children_cleaned"], r.summary["children_left"]), (4, []))
        self.assert_all_clean(t, young)
        self.assert_result_ok(t)

    @needs_root
    def test_user_without_privileges_is_told_of_children_that_may_not_be_read(self):
        brood, binary = self.for_nobody("brood"), self.for_nobody("dynprobe")
        for mode, cleaned in (("work", 4), ("hidden", 0)):
            t = self.brood(mode, path=brood, prefix=NOBODY)
            p = self.spawn(*NOBODY, binary, "--no-record", "-f", "json", "-o", self.path(mode), "--pid", t.pid, "--function", "foo")
            wait_until(lambda: p.poll() is not None or armed(t.pid), what="probes")  # noqa: B023
            young = self.grow(t)
            wait_until(lambda: all(os.stat(f"/proc/{pid}/maps").st_uid == (0 if mode == "hidden" else 65534) for pid in young), what="their mode")  # noqa: B023
            p.send_signal(signal.SIGINT)
            p.wait(300)
            with open(self.path(mode)) as f:
                summary = [x for x in objects(f.read()) if x["type"] == "summary"][0]
            self.assertEqual(summary["children_cleaned"], cleaned)
            self.assertEqual([x["tag"] for x in summary["children_left"]], ["DP-PERMISSION"] * (4 - cleaned))
            tool("detach", *(f"--pid={pid}" for pid in young), status=0)  # as root
            self.assert_all_clean(t, young)
            self.assert_result_ok(t)

    def test_storm_of_short_children_ends_and_goes_on_right(self):
        t = self.brood("storm", 3)
        p = self.start_attached(t, "--function", "foo")
        os.kill(t.pid, signal.SIGUSR1)
        wait_until(lambda: "GROWN" in t.output(), what="children")
        self.finish(p)
        self.let_run(t)
        self.assert_result_ok(t)
        self.assertEqual(holders(t.pid), [])

    @needs("nginx")
    @needs_root
    def test_nginx_reloaded_under_load(self):
        server = Nginx(self)
        master = server.process.pid
        old = children(master)
        p = self.start("--pid", master, "--function", "libc.so.6!str*", "--function", "ngx_*")
        self.await_armed(p, master)
        os.kill(master, signal.SIGHUP)
        wait_until(lambda: len(children(master)) == 2 and not set(old) & set(children(master)), what="new workers")
        young = children(master)
        self.assertTrue(all(armed(pid) for pid in young))
        before = server.answers
        r = self.finish(p)
        self.assertEqual((r.summary["children_cleaned"], r.summary["children_left"]), (2, []))
        for pid in [master, *young]:
            self.assert_clean(pid)
        wait_until(lambda: server.answers > before + 50 or server.wrong, what="answers")
        self.assertEqual(server.wrong, [])
        server.end()


class Residents(Brood):
    def left_in(self, *pids):
        """What status lists as leftovers: {pid: [(of, fork_of, fork_of_lives)]}."""
        args = [f"--pid={pid}" for pid in pids]
        found = {}
        for x in objects(tool("status", "-f", "json", *args, status=0).stdout):
            if x["leftovers"]:
                found[x["pid"]] = [(o["of"], o["fork_of"], o["fork_of_lives"]) for o in x["leftovers"]]
        return found

    def attached(self, mode="work", n=4, **kw):
        t = self.brood(mode, n, **kw)
        tool("attach", "--pid", t.pid, "--function", "foo", "--function", "main", status=0)
        return t, self.grow(t, n) if mode != "orphans" else None

    def test_status_lists_children_below_the_process_and_by_themselves(self):
        t, young = self.attached()
        wanted = {pid: [("fork", t.pid, True)] for pid in young}
        self.assertEqual(self.left_in(t.pid), wanted)
        self.assertEqual(self.left_in(young[2]), {young[2]: wanted[young[2]]})
        everywhere = self.left_in()
        self.assertEqual({pid: everywhere.get(pid) for pid in young}, wanted)
        text = tool("status", "--pid", t.pid, status=0).stdout
        self.assertRegex(text, rf"{t.pid} brood: 2 probes")
        self.assertRegex(text, rf"{young[0]} brood: 0 probes\n  leftover of a fork of {t.pid}: 2 changed places of text, \d+ KiB")
        self.assertTrue(all(map(armed, young)), "status changes nothing")
        tool("detach", "--pid", t.pid, status=0)
        self.assert_result_ok(t)

    def test_detach_and_remove_of_the_process_clean_its_children(self):
        for command in (("detach",), ("remove", "foo"), ("remove", "*")):
            t, young = self.attached()
            r = tool(*command, "--pid", t.pid, status=0)
            self.assertRegex(r.stderr, rf"removed from 4 fork children of {t.pid}")
            for pid in young:
                self.assert_clean(pid)
            self.assertEqual(bool(armed(t.pid)), command[-1] == "foo")
            tool("detach", "--pid", t.pid)
            self.assert_all_clean(t, young)
            self.let_run(t)
            self.assert_result_ok(t)

    def test_detach_and_remove_of_a_child_say_what_was_there(self):
        t, young = self.attached()
        for command, pid in ((("detach",), young[0]), (("remove", "foo"), young[1])):
            r = tool(*command, "--pid", pid, status=0)
            self.assertRegex(r.stderr, rf"removed from {pid} \(brood\) the leftover of a fork of {t.pid}: 2 changed places of text")
            self.assert_clean(pid)
        r = tool("disable", "foo", "--pid", young[2])
        self.assertIn("is a fork of a probed process; what it inherited records nothing", r.stderr)
        self.assertEqual(self.left_in(t.pid).keys(), {young[2], young[3]})
        self.assertTrue(armed(t.pid), "the parent keeps its probes")
        self.assertIn("no resident probes", tool("detach", "--pid", young[0], status=0).stderr)
        tool("detach", "--pid", t.pid, status=0)
        self.assert_all_clean(t, young)
        self.assert_result_ok(t)

    def test_children_with_probes_that_others_replaced_since(self):
        t, young = self.attached()
        tool("add-context", "--pid", t.pid, "-e", "foo", "-t", "reg:rdi", status=0)
        tool("remove", "main", "--pid", young[0], status=0)
        self.assertEqual(self.left_in(t.pid).keys(), set(young[1:]))
        self.assertRegex(tool("detach", "--pid", t.pid, status=0).stderr, rf"removed from 3 fork children of {t.pid}")
        self.assert_all_clean(t, young)
        self.assert_result_ok(t)

    @needs("strace")
    def test_detach_names_the_child_that_it_cannot_clean(self):
        t, young = self.attached()
        tracer = self.spawn("strace", "-qq", "-o", os.devnull, "-p", young[1])
        wait_until(lambda: status(young[1], "TracerPid") == str(tracer.pid), what="strace to attach")
        r = tool("detach", "--pid", t.pid, status=EXIT_PARTIAL)
        self.assertRegex(r.stderr, rf"fork child {young[1]} \(brood\) still has the probes of {t.pid}: .*\[DP-TRACED\]")
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
        tool("detach", "--pid", young[1], status=0)
        self.assert_all_clean(t, young)
        self.assert_result_ok(t)

    def test_children_of_a_process_that_has_ended(self):
        t, _ = self.attached("orphans")
        os.kill(t.pid, signal.SIGUSR1)
        t.process.wait()
        young = [pid for pid, left in self.left_in().items() if left == [("fork", t.pid, False)]]
        self.assertEqual(len(young), 4)
        self.assertIn(f"leftover of a fork of {t.pid}, which has ended", tool("status", "--pid", young[0]).stdout)
        tool("detach", *(f"--pid={pid}" for pid in young), status=0)
        for pid in young:
            self.assert_clean(pid)
        os.killpg(t.pid, signal.SIGTERM)
        wait_until(lambda: t.output().count("WORKER") == 4, what="the results of four children")
        self.assertEqual(t.output().count("OK"), 4)


class Killed(Residents):
    """What a tool that is killed leaves in children."""

    def attached(self, mode="work", n=4, **kw):
        t = self.brood(mode, n, **kw)
        p = self.start_attached(t, "--function", "foo", "--function", "main")
        young = self.grow(t, n) if mode != "orphans" else None
        p.kill()
        p.wait()
        return t, young

    def test_status_lists_children_below_the_process_and_by_themselves(self):
        t, young = self.attached()
        wanted = {pid: [("fork", t.pid, True)] for pid in young}
        self.assertEqual(self.left_in(t.pid), {t.pid: [("killed", None, False)], **wanted})
        self.assertIn("leftover of an earlier dynprobe", tool("status", "--pid", t.pid).stdout)
        self.assertEqual(self.left_in(young[2]), {young[2]: wanted[young[2]]})
        r = tool("detach", "--pid", t.pid, status=0)
        self.assertRegex(r.stderr, rf"removed from {t.pid} \(brood\) the leftover of an earlier dynprobe: 2 changed places")
        self.assertRegex(r.stderr, rf"removed from 4 fork children of {t.pid}")
        self.assert_all_clean(t, young)
        self.assert_result_ok(t)

    def test_detach_and_remove_of_the_process_clean_its_children(self):
        t, young = self.attached()
        r = tool("remove", "foo", "--pid", t.pid, status=0)
        self.assertRegex(r.stderr, rf"removed from 4 fork children of {t.pid}")
        self.assert_all_clean(t, young)
        self.assert_result_ok(t)

    test_children_with_probes_that_others_replaced_since = None

    def test_the_next_run_cleans_them_too(self):
        t, young = self.attached()
        r = self.attach(t, "--function", "foo", "-n", 10)
        self.assertEqual((r.summary["children_cleaned"], r.summary["children_left"]), (4, []))
        self.assert_all_clean(t, young)
        self.assert_result_ok(t)

    def test_detach_and_remove_of_a_child_say_what_was_there(self):
        t, young = self.attached()
        for command, pid in ((("detach",), young[0]), (("remove", "foo"), young[1])):
            r = tool(*command, "--pid", pid, status=0)
            self.assertRegex(r.stderr, rf"removed from {pid} \(brood\) the leftover of a fork of {t.pid}: 2 changed places of text")
            self.assert_clean(pid)
        t.process.kill()
        t.process.wait()
        self.assertEqual(self.left_in(young[2]), {young[2]: [("fork", t.pid, False)]})
        tool("detach", "--pid", f"{young[2]},{young[3]}", status=0)
        for pid in young:
            self.assert_clean(pid)


if __name__ == "__main__":
    main()
