# SPDX-License-Identifier: MIT
"""--program: processes that run a program, and those that start it while dynprobe runs."""

import collections
import os
import re
import shutil
import signal
import subprocess
import unittest

from harness import EXIT_PARTIAL, FULL, NOBODY, OWN_FAILURE, Case, armed, compiled, environment, main, needs_root, status, target_path, tool, wait_until


def called(text):
    """{pid: number of calls}, as the processes themselves counted."""
    return {int(pid): int(n) for pid, n in re.findall(r"CALLED (\d+) (\d+)", text)}


def recorded(r):
    return dict(collections.Counter(e["pid"] for e in r.events))


class Program(Case):
    def setUp(self):
        super().setUp()
        self.started = shutil.copy(target_path("started"), self.path("started"))

    def watch(self, *args, program=None, probe=("--function", "foo"), said="waiting for"):
        """Starts dynprobe, and returns when it watches."""
        p = self.start("--program", program or self.started, *probe, *args)
        wait_until(lambda: p.poll() is not None or said in self.said(p), what="dynprobe to watch")
        self.assertIsNone(p.poll(), self.said(p))
        return p

    def run_all(self, *argv):
        r = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=300, env=environment())
        return r.stdout + r.stderr

    def starts(self, how, n, *command):
        """Starts a command n times; {exit status: how often}, and the whole output."""
        text = self.run_all(target_path("starter"), how, n, *command)
        self.assertIn("RESULT OK", text)
        return {int(s): int(k) for s, k in re.findall(r"STATUS (\d+) (\d+)", text)}, text

    def assert_all(self, r, text, n):
        """Each call of each of the n processes was recorded."""
        self.assert_ok(r)
        self.assertEqual(len(called(text)), n, text)
        self.assertEqual(recorded(r), called(text), str(r))
        self.assertEqual((r.summary["started"], r.summary["late"], r.summary["unprobed"]), (n, 0, 0), str(r.summary))
        self.assertEqual(r.summary["lost"]["total"], 0, str(r.summary))


@needs_root
class Starts(Program):
    def check(self, how, n=10 if FULL else 4, command=None):
        p = self.watch()
        got, text = self.starts(how, n, *(command or (self.started, 3)))
        r = self.finish(p)
        self.assertEqual(got, {0: n}, text)
        self.assert_all(r, text, n)
        return r

    def test_many_starts_first_call_of_each(self):
        n = 100 if FULL else 25
        r = self.check("fork", n)
        self.assertEqual(sum(x.get("processes", 1) for x in r.summary["probes"]), n)
        self.assertEqual(sum(x["hits"] for x in r.summary["probes"]), 3 * n)

    def test_vfork(self):
        self.check("vfork")

    def test_posix_spawn(self):
        self.check("spawn")

    def test_exec_by_a_second_thread(self):
        self.check("thread")

    def test_exec_on_a_descriptor(self):
        self.check("at")

    def test_many_at_once(self):
        p = self.watch()
        got, text = self.starts("many", 20, self.started, 2)
        r = self.finish(p)
        self.assertEqual(got, {0: 20}, text)
        self.assertEqual(len(called(text)), 20)
        self.assertEqual(r.summary["started"], 20)
        self.assertEqual({pid: n for pid, n in called(text).items() if pid in recorded(r)}, recorded(r), "all of a process, or nothing")
        self.assertLessEqual(20 - len(recorded(r)), r.summary["late"] + r.summary["unprobed"], str(r))

    def test_shell_env_and_scripts(self):
        script = self.written("script", f"#!/bin/sh\n{self.started} 5\nexec {self.started} 6\n")
        os.chmod(script, 0o755)
        p = self.watch()
        text = self.run_all("sh", "-c", f"{self.started} 3; true")
        text += self.run_all("env", "-i", self.started, 4)
        text += self.run_all(script)
        self.assert_all(self.finish(p), text, 4)

    def test_script_whose_interpreter_is_watched(self):
        """exec opens the interpreter under a lock that ptrace needs: the process is held in time, or counted; never stuck."""
        script = self.written("script", f"#!{self.started} 3\n")
        os.chmod(script, 0o755)
        p = self.watch()
        _, text = self.starts("fork", 1, self.started, 3)
        n = 20 if FULL else 8
        got, more = self.starts("fork", n, script)
        self.assertEqual(got, {0: n}, more)
        r = self.finish(p)
        whole, s = {pid: n for pid, n in called(text + more).items() if pid in recorded(r)}, r.summary
        self.assertEqual(recorded(r), whole, "all of a process, or nothing")
        self.assertEqual(s["started"], n + 1)
        self.assertGreaterEqual(len(whole), n + 1 - s["late"] - s["unprobed"], str(r))

    def test_name_in_path(self):
        """A name without a slash means every process of the machine that has it: one of its own for this test."""
        name = f"started{os.getpid()}"
        started = shutil.copy(self.started, self.path(name))
        path = os.environ["PATH"]
        try:
            os.environ["PATH"] = self.dir + ":" + path
            p = self.watch(program=name)
        finally:
            os.environ["PATH"] = path
        _, text = self.starts("fork", 3, started, 3)
        self.assert_all(self.finish(p), text, 3)

    def test_running_processes_and_new_ones(self):
        t = self.target(self.started, 1, "wait")
        p = self.watch(said="are probed when they start")
        self.await_armed(p, t.pid)
        self.await_events(p, n=1, after=lambda: os.kill(t.pid, signal.SIGUSR1))
        _, text = self.starts("fork", 3, self.started, 3)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual(recorded(r), {t.pid: 1, **called(text)}, str(r))
        self.assert_clean(t.pid)

    def test_process_that_executes_it_again(self):
        again = self.written("again", f"#!/bin/sh\n{self.started} 1\nexec {self.started} 2 \n")
        os.chmod(again, 0o755)
        p = self.watch()
        text = "".join(self.run_all(again) for _ in range(3))
        self.assert_all(self.finish(p), text, 6)

    def test_file_that_is_replaced(self):
        p = self.watch()
        _, text = self.starts("fork", 2, self.started, 3)
        shutil.copy(target_path("started"), self.path("new"))
        os.rename(self.path("new"), self.started)
        while len(called(text)) < 20:  # the directory is watched from a thread: the first start may come before it has looked
            text += self.starts("fork", 1, self.started, 3)[1]
        r = self.finish(p)
        self.assert_ok(r)
        missing = set(called(text)) - set(recorded(r))
        self.assertLessEqual(len(missing), 5, str(r))
        self.assertEqual(recorded(r), {pid: n for pid, n in called(text).items() if pid not in missing})

    def test_file_that_is_replaced_by_one_with_other_addresses(self):
        """What was read of the first file must not be used for the second, whose foo() is elsewhere and has another first instruction."""
        for name, before, body in (("one", "", "return a + 1;"), ("two", "int f(int a) { return a * a * 7; }", "return f(a) ? a : 3;")):
            compiled(self.path(name), "cc", "-O1", text="#include <stdio.h>\n#include <unistd.h>\n"
                     f"__attribute__((noipa)) {before or 'int f(int a);'}\n__attribute__((noipa)) int foo(int a) {{ {body} }}\n"
                     'int main(void) { for (int i = 0; i < 4; i++) foo(i); printf("CALLED %d 4\\n", (int)getpid()); return 0; }\n')
        os.rename(self.path("one"), self.started)
        p = self.watch()
        text = self.starts("fork", 3, self.started)[1]
        os.rename(self.path("two"), self.started)
        while len(called(text)) < 12:  # as above
            text += self.starts("fork", 1, self.started)[1]
        r = self.finish(p)
        self.assert_ok(r)
        missing = set(called(text)) - set(recorded(r))
        self.assertLessEqual(len(missing), 5, str(r))
        self.assertEqual(recorded(r), {pid: n for pid, n in called(text).items() if pid not in missing})

    def test_first_process_of_a_pid_namespace(self):
        """It has another number there, and the kernel drops signals that it sends itself, unless it is traced."""
        p = self.watch()
        text = "".join(self.run_all("unshare", "--pid", "--fork", self.started, 3) for _ in range(5))
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual(re.findall(r"CALLED (\d+) (\d+)", text), 5 * [("1", "3")])
        self.assertEqual(list(recorded(r).values()), 5 * [3], str(r))
        self.assertEqual((r.summary["started"], r.summary["late"], r.summary["unprobed"]), (5, 0, 0), str(r.summary))

    def test_exec_that_fails(self):
        p = self.watch()
        self.written("empty", "")
        os.chmod(self.started, 0o644)
        self.assertEqual(self.starts("fork", 3, self.started, 1)[0], {200 + 13: 3})
        os.chmod(self.started, 0o755)
        with open(self.started, "r+b") as f:
            head = f.read(4)
            f.seek(0)
            f.write(b"none")
        for how in ("fork", "vfork", "spawn", "thread"):
            self.assertEqual(self.starts(how, 3, self.started, 1)[0], {200 + 8: 3}, how)
        with open(self.started, "r+b") as f:
            f.write(head)
        got, text = self.starts("fork", 3, self.started, 2)
        self.assertEqual(got, {0: 3})
        self.assert_all(self.finish(p), text, 3)

    def test_other_programs_are_not_touched(self):
        p = self.watch()
        n = 50 if FULL else 10
        got, _ = self.starts("fork", n, "/bin/true")
        self.assertEqual(got, {0: n})
        _, text = self.starts("fork", 1, self.started, 1)
        self.assert_all(self.finish(p), text, 1)

    def test_number_of_hits_and_duration_end_it(self):
        p = self.watch("-n", 7)
        self.starts("fork", 5, self.started, 3)
        r = self.finish(p, None)
        self.assertEqual((len(r.events), r.summary["ended_by"]), (7, "hits"), str(r))
        r = self.dynprobe("--program", self.started, "--function", "foo", "-d", "50ms")
        self.assert_refused(r, "DP-NO-PROCESS", "while dynprobe waited")

    def test_traced_by_another_is_let_go(self):
        if not shutil.which("strace"):
            self.skipTest("strace is not installed")
        p = self.watch()
        text = self.run_all("strace", "-f", "-o", "/dev/null", self.started, 2)
        self.assertEqual(list(called(text).values()), [2], text)
        _, text = self.starts("fork", 1, self.started, 3)
        r = self.finish(p)
        self.assert_ok(r, EXIT_PARTIAL)
        self.assertIn("DP-TRACED", r.err)
        self.assertEqual(recorded(r), called(text))

    def test_one_that_is_refused_does_not_end_the_others(self):
        p = self.watch()
        shutil.copy("/bin/true", self.path("new"))
        _, text = self.starts("fork", 2, self.started, 3)
        self.assertEqual(self.run_all("python3", "-c", "import os, sys; os.execve(sys.argv[1], ['x'], {'LD_PRELOAD': '/none'})", self.started).count("CALLED"), 1)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual(r.summary["started"], 3)
        self.assertEqual({pid: n for pid, n in recorded(r).items() if pid in called(text)}, called(text))


@needs_root
class Killed(Program):
    def test_killed_tool_leaves_nobody_stuck(self):
        for i in range(8) if FULL else (0, 2, 5):
            p = self.watch()
            t = self.target("starter", "many", 30, self.started, 3)
            if i:
                wait_until(lambda: self.said(p).count('"event"') >= 3 * i or t.process.poll() is not None, what="starts")  # noqa: B023
            p.kill()
            p.wait()
            self.assertEqual(t.process.wait(300), 0)
            self.assertEqual(re.findall(r"STATUS (\d+) (\d+)", t.output()), [("0", "30")], t.output())


    def test_stopped_tool_is_continued(self):
        p = self.watch("--max-wait", "1s")
        os.kill(p.pid, signal.SIGSTOP)
        got, text = self.starts("fork", 3, self.started, 3)
        self.assertEqual(got, {0: 3}, text)
        self.assertEqual(len(called(text)), 3)
        self.assertEqual(self.finish(p).summary["started"], 3)


class Refused(Program):
    def test_without_privilege_DP_PERMISSION(self):
        binary, program = self.for_nobody("dynprobe"), self.for_nobody("spin")
        prefix = NOBODY if os.geteuid() == 0 else ()
        p = tool("--program", program, "--function", "foo", binary=binary, prefix=prefix, status=OWN_FAILURE)
        self.assertIn("DP-PERMISSION", p.stderr)
        self.assertIn("CAP_SYS_ADMIN", p.stderr)
        self.assertIn("--pid NAME", p.stderr)

    def test_without_timers_that_guard_it_DP_LIMIT(self):
        r = self.dynprobe("--program", self.started, "--function", "foo", "-d", 1, prefix=["prlimit", "--sigpending=0"])
        self.assert_refused(r, "DP-LIMIT", "RLIMIT_SIGPENDING", "ulimit -i")

    def test_wrong_programs_DP_EXEC(self):
        for program in ("no-such-program-anywhere", "/none/of/this", "/tmp"):
            r = self.dynprobe("--program", program, "--function", "foo")
            if os.geteuid() == 0 or "/" not in program:
                self.assertIn("DP-EXEC", r.err, str(r))

    @needs_root
    def test_wrong_probe_ends_the_run_at_the_first_process(self):
        p = self.watch(probe=("--function", "no_such_function"))
        got, text = self.starts("fork", 1, self.started, 3)
        self.assertEqual(got, {0: 1}, "it goes on")
        self.assertEqual(list(called(text).values()), [3])
        self.assert_refused(self.finish(p, None), "DP-NO-SYMBOL")

    def test_what_it_excludes(self):
        for other in (("-c", "true"),):
            r = self.dynprobe("--program", self.started, "--function", "foo", *other)
            self.assertIn("DP-USAGE", r.err, str(r))


if __name__ == "__main__":
    main()
