# SPDX-License-Identifier: MIT
"""--follow: the programs that a followed process, or a fork child of it, executes."""

import collections
import os
import re
import shutil
import signal
import subprocess
import sys

from harness import EXIT_PARTIAL, NOBODY, Case, environment, main, needs_root, status, target_path, tool, wait_until


def called(text):
    """{pid: number of calls}, as the processes themselves counted."""
    return {int(pid): int(n) for pid, n in re.findall(r"CALLED (\d+) (\d+)", text)}


def recorded(r):
    return dict(collections.Counter(e["pid"] for e in r.events))


@needs_root
class FollowExec(Case):
    def setUp(self):
        super().setUp()
        self.started = shutil.copy(target_path("started"), self.path("started"))

    def run_command(self, *command, probe=("--function", "foo"), status=0):
        """Follows a command; each call of each process must be recorded."""
        r = self.dynprobe("--follow", *probe, "--", *command)
        said = f"{r}\n{r.told}"
        self.assertEqual(r.status, status, said)
        self.assertEqual(recorded(r), called(r.out), said)
        self.assertEqual(r.summary["lost"]["total"], 0, str(r.summary))
        self.assertEqual((r.summary.get("late", 0), r.summary.get("unprobed", 0)), (0, 0), str(r.summary))
        return r

    def shell(self, text, **kw):
        return self.run_command("sh", "-c", text, **kw)

    def test_shell_env_script_and_exec_in_place(self):
        script = self.written("script", f"#!/bin/sh\n{self.started} 2\nexec {self.started} 3\n")
        os.chmod(script, 0o755)
        r = self.shell(f"{self.started} 4; env A=1 {self.started} 5; {script}; /bin/true; exec {self.started} 6")
        self.assertEqual(sorted(called(r.out).values()), [2, 3, 4, 5, 6])
        self.assertEqual(r.summary["started"], 5, str(r.summary))

    def test_name_that_the_first_program_lacks_has_suggestions_at_once(self):
        said = tool("--follow", "--function", "calller", "--", target_path("spin"), 1, 1).stderr
        self.assertRegex(said, r"'calller' is not in \d+ \(spin\); did you mean caller\b.*\? looking for it in programs that it executes")
        said = tool("--follow", "--function", "foo", "--", "sh", "-c", f"{self.started} 2").stderr
        self.assertRegex(said, r"'foo' is not in \d+ \(sh\): looking for it in programs that it executes")

    def test_ways_to_start(self):
        for how in ("fork", "vfork", "spawn", "thread", "at"):
            r = self.run_command(target_path("starter"), how, 8, self.started, 3)
            self.assertEqual(r.summary["started"], 8, how)

    def test_many_at_once(self):
        """They wait for each other; who waits for a second runs without probes, and is counted."""
        r = self.dynprobe("--follow", "--function", "foo", "--", target_path("starter"), "many", 20, self.started, 3)
        s = r.summary
        self.assertIn("STATUS 0 20", r.out)
        self.assertEqual(s["started"], 20, f"{r}\n{s}")
        self.assertEqual({pid: n for pid, n in called(r.out).items() if pid in recorded(r)}, recorded(r), "all of a process, or nothing")
        self.assertLessEqual(20 - len(recorded(r)), s["late"] + s["unprobed"], f"{r}\n{s}")

    def assert_found(self, *command):
        """The program runs until dynprobe has seen it: it is probed, in time or late, and counted."""
        p = self.start("--follow", "--function", "foo", "-n", 20, "--", *command)
        r = self.finish(p, None)
        self.assert_ok(r)
        self.assertEqual((r.summary["started"], r.summary["unprobed"]), (1, 0), str(r.summary))

    def test_forks_of_others_keep_no_thread_of_the_tool_awake(self):
        """The kernel tells of every fork on the machine: that must be read, whichever programs are wanted."""
        for only in ((), ("--follow-exec", "started"), ("--follow-exec", self.started)):
            with self.subTest(only):
                t = self.target("family", "on")
                p = self.start("--pid", t.pid, "--follow", *only, "--function", "foo")
                self.await_armed(p, t.pid)
                for _ in range(5):
                    tool_is_asleep = lambda: {status(f"{p.pid}/task/{tid}", "State") for tid in os.listdir(f"/proc/{p.pid}/task")} == {"S (sleeping)"}  # noqa: B023
                    subprocess.run(["true"], check=True)
                    wait_until(lambda: p.poll() is not None or tool_is_asleep(), what="the tool to sleep")  # noqa: B023
                self.assert_ok(self.finish(p))

    def test_program_on_a_file_system_that_is_mounted_later(self):
        spin, there = target_path("spin"), os.path.join(self.dir, "later")
        os.mkdir(there)
        self.assert_found("unshare", "-m", "sh", "-c", f"mount -t tmpfs none {there} && cp {spin} {there}/it && timeout 60 {there}/it 3000 1000")

    def test_absolute_link_of_another_root(self):
        """Only from that root does the link lead to a file."""
        there, opt = self.path("root"), self.path("opt")
        os.mkdir(there)
        os.mkdir(opt)
        shutil.copy(self.started, os.path.join(opt, "it"))
        os.symlink("/opt/it", os.path.join(opt, "link"))
        os.symlink("/opt", os.path.join(opt, "folder"))
        calls = "; ".join(["/opt/link 2", "cd /opt; ./link 2", "cd /; opt/folder/it 2"] * 10)
        r = self.run_command("unshare", "-m", "sh", "-c", f"mount --bind / {there} && mount --bind {opt} {there}/opt && exec chroot {there} sh -c '{calls}'")
        self.assertEqual((len(called(r.out)), r.summary["started"]), (30, 30), str(r.summary))

    def test_program_in_a_memfd(self):
        for program in ("spin", "spin-static"):
            text = f"""
import os
fd = os.memfd_create("program")
with open({target_path(program)!r}, "rb") as f:
    os.write(fd, f.read())
if not os.fork():
    os.execve(fd, ["program", "3000", "1000"], {{}})
os.wait()
"""
            with self.subTest(program=program):
                self.assert_found(sys.executable, "-c", text)

    def test_program_whose_interpreter_has_the_probe(self):
        script = self.written("script", f"#!{self.started} 3\n")
        os.chmod(script, 0o755)
        r = self.run_command(target_path("starter"), "spawn", 8, script)
        self.assertEqual(r.summary["started"], 8)

    def test_program_that_has_the_probe_executes_itself_again(self):
        r = self.dynprobe("--follow", "--function", "foo", "--", target_path("execer"), 100)
        self.assertEqual(r.status, 7, str(r))
        self.assertEqual(r.summary["started"], 1, str(r.summary))
        self.assertEqual(r.out.count("RESULT OK"), 1)

    def test_summary_is_json_when_a_process_comes_again_after_another(self):
        r = self.dynprobe("--follow", "-n", 3, "--function", "libc.so.6!clock_nanosleep", "--", "sh", "-c", "sleep 3 & sleep 0.1; exec sleep 3")
        self.assert_ok(r)
        pids = [x["pid"] for x in r.summary["processes"]]
        self.assertEqual(pids.count(pids[0]), 2, "this test is of a process that has two rows")

    def test_its_own_fork_children(self):
        r = self.dynprobe("--follow", "--function", "foo", "--", "sh", "-c", f"{target_path('family')} tree 20 now; true")
        self.assert_ok(r)
        self.assertEqual(recorded(r), called(r.out), str(r))
        self.assertEqual(len(called(r.out)), 7)
        self.assertEqual((r.summary["started"], r.summary["followed"]), (1, 6), str(r.summary))

    def test_process_that_runs_already(self):
        t = self.target("execer", 0, self.started, 5)
        p = self.start_attached(t, "--follow", "--function", "foo")
        os.kill(t.pid, signal.SIGUSR1)
        self.assertEqual(t.process.wait(300), 0)
        r = self.finish(p, None)
        self.assert_ok(r)
        self.assertEqual(r.summary["started"], 1, str(r.summary))
        self.assertEqual(sum(x["hits"] for x in r.summary["probes"] if x["pid"] == 0 or x["hits"] == 5), 5)

    def test_child_whose_parent_has_ended(self):
        r = self.shell(f"(sleep 0.1; {self.started} 3)& exit 0")
        self.assertEqual(list(called(r.out).values()), [3], "the run goes on until the last of them has ended")

    def test_fields_that_only_the_later_program_knows(self):
        r = self.shell(f"{self.started} 3; true", probe=("--function", "foo", "-t", "a"))
        self.assertEqual([e["fields"]["a"] for e in r.events], [0, 1, 2], str(r.events))

    def test_probe_that_no_program_has_DP_NO_SYMBOL(self):
        r = self.dynprobe("--follow", "--function", "no_such_function", "--function", "foo", "--", "sh", "-c", f"{self.started} 2; true")
        self.assert_ok(r, EXIT_PARTIAL)
        self.assertEqual(recorded(r), called(r.out))
        self.assertEqual([x["tag"] for x in r.summary["probes"] if x["state"] == "refused"], ["DP-NO-SYMBOL"], str(r.summary))

    def test_exec_that_fails(self):
        empty = self.written("empty", "none")
        os.chmod(empty, 0o755)
        r = self.run_command(target_path("starter"), "fork", 3, empty, status=EXIT_PARTIAL)
        self.assertIn("STATUS 208 3", r.out)
        r = self.run_command(target_path("starter"), "fork", 3, "/etc/passwd", status=EXIT_PARTIAL)
        self.assertIn("STATUS 213 3", r.out)

    def test_others_are_not_touched(self):
        t = self.target("execer", 0)
        p = self.start_attached(t, "--follow", "--function", "foo")
        out = subprocess.run([target_path("starter"), "spawn", "20", self.started, "2"], capture_output=True, text=True, timeout=300, env=environment())
        self.assertIn("STATUS 0 20", out.stdout)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual(set(recorded(r)), {t.pid})

    def test_killed_tool_leaves_nobody_stuck(self):
        for n in (0, 3, 9, 15):
            t = self.target("starter", "fork", 40, self.started, 1, ready="READY")
            p = self.start("--follow", "--function", "foo", "--pid", t.pid)
            wait_until(lambda: p.poll() is not None or t.process.poll() is not None or self.said(p).count('"event"') >= n, what="events")  # noqa: B023
            p.kill()
            p.wait()
            self.assertEqual(t.process.wait(300), 0)
            self.assertIn("STATUS 0 40", t.output())


class Unprivileged(Case):
    def test_without_privilege_it_says_what_is_missed(self):
        binary, program = self.for_nobody("dynprobe"), self.for_nobody("started")
        prefix = NOBODY if os.geteuid() == 0 else ()
        p = tool("--no-record", "--follow", "--function", "foo", "--", program, 2, binary=binary, prefix=prefix, status=0)
        self.assertIn("not probed: that needs CAP_SYS_ADMIN", p.stderr)


if __name__ == "__main__":
    main()
