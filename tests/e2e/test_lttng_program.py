# SPDX-License-Identifier: MIT
"""--program with LTTng: each process that starts the program emits through a sink of its own, from its first call on."""

import collections
import os
import re
import shutil
import signal
import subprocess
import time

import harness
import lttng_env
import lttng_probe
from harness import EXIT_PARTIAL, target_path, wait_until


def called(text):
    """{pid: number of calls}, as the processes themselves counted."""
    return {int(pid): int(n) for pid, n in re.findall(r"CALLED (\d+) (\d+)", text)}


class Program(lttng_probe.WithDaemon):
    def setUp(self):
        super().setUp()
        self.started = shutil.copy(target_path("started"), self.path("started"))

    def watch(self, *args, said="waiting for", probe=("--function", "foo", "-t", "pid", "-t", "edi=(unsigned)$rdi")):
        argv = [harness.DYNPROBE, "--program", self.started, *probe, *map(str, args)]
        with open(self.path("tool.err"), "wb") as err:
            p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=err, stderr=err, **self.user.popen())
        self.addCleanup(lambda: (p.poll() is None and p.kill(), p.wait()))
        wait_until(lambda: p.poll() is not None or said in self.said(), what="dynprobe to watch")
        self.assertIsNone(p.poll(), self.said())
        return p

    def said(self):
        with open(self.path("tool.err"), errors="replace") as f:
            return f.read()

    def starts(self, how, n, *args):
        r = subprocess.run([target_path("starter"), how, str(n), self.started, *map(str, args)], capture_output=True, text=True, timeout=300,
                           **self.user.popen())
        self.assertIn(f"STATUS 0 {n}", r.stdout, r.stderr)
        return called(r.stdout)

    def finish(self, p, status=0):
        p.send_signal(signal.SIGINT)
        p.wait(300)
        if status is not None:
            self.assertEqual(p.returncode, status, self.said())
        return self.said()

    def recorded(self, url):
        return self.read(url, name="dynprobe:foo")

    def assert_all(self, events, calls):
        """Each call of each process, in order."""
        found = collections.defaultdict(list)
        for e in events:
            found[e.fields["pid"]].append(e.fields["edi"])
        self.assertEqual(dict(found), {pid: list(range(n)) for pid, n in calls.items()})


class Starts(Program):
    def test_first_call_of_each_process(self):
        p = self.watch("--set-url", "file://" + self.path("t"))
        calls = {}
        for how in ("fork", "spawn", "vfork"):
            calls.update(self.starts(how, 4, 5))
        said = self.finish(p)
        self.assert_all(self.recorded(self.path("t")), calls)
        self.assertEqual(len(calls), 12)
        self.assertIn("not emitted 0", said)
        self.assertIn("started   12 processes", said)
        self.assertNotIn("retired", said)

    @harness.long_form
    def test_many_starts_lose_nothing(self):
        p = self.watch("--set-url", "file://" + self.path("t"))
        calls = self.starts("fork", 30, 3)
        said = self.finish(p)
        self.assert_all(self.recorded(self.path("t")), calls)
        self.assertNotIn("retired", said)

    def test_process_that_runs_already_and_new_ones(self):
        t = self.program(self.started, 1, "wait")
        self.session("s")
        p = self.watch("--session", "s", said="are probed when they start")
        self.await_armed(p, t.pid)
        self.wait_listed(t.pid, "dynprobe:foo")
        for _ in range(200 if harness.FULL else 50):
            os.kill(t.pid, signal.SIGUSR1)
            time.sleep(0.005)  # signals that come together are one call
        calls = self.starts("fork", 3, 4)
        t.process.terminate()
        t.process.wait()
        self.finish(p)
        events = self.events("s")
        own = [e.fields["edi"] for e in events if e.fields["pid"] == t.pid]
        self.assertTrue(own)
        self.assertEqual(own, list(range(own[0], called(t.output())[t.pid])), "from the moment when the session records them")
        self.assert_all([e for e in events if e.fields["pid"] != t.pid], calls)

    def test_processes_of_another_user_go_to_the_same_session(self):
        p = self.watch("--set-url", "file://" + self.path("t"))
        os.chmod(self.started, 0o755)
        calls = self.starts("fork", 2, 3)
        self.user = self.tracer()
        calls.update(self.starts("fork", 2, 3))
        self.user = self.root
        self.finish(p)
        self.assert_all(self.recorded(self.path("t")), calls)

    def test_events_that_the_session_does_not_record_are_counted(self):
        self.session("s", "other:*")
        p = self.watch("--session", "s")
        self.starts("fork", 1, 3)
        wait_until(lambda: "are probed when" in self.said(), what="the first process")
        self.lttng("disable-event", "-u", "-s", "s", "-c", "c", "-a")
        self.starts("fork", 3, 3)
        said = self.finish(p, EXIT_PARTIAL)
        self.assertIn("not emitted 9 (not enabled in the LTTng session 9)", said)

    def test_rule_of_the_current_session_is_enough(self):
        self.session("s", "dynprobe:*")
        self.set_current("s")
        p = self.watch()
        calls = self.starts("fork", 3, 4)
        self.assertIn("its rules already include", self.finish(p))
        self.assert_all(self.events("s"), calls)

    def check_forks(self, **env):
        self.started = shutil.copy(target_path("family"), self.path("family"))
        p = self.watch("--set-url", "file://" + self.path("t"))
        r = subprocess.run([self.started, "tree", "20", "now"], capture_output=True, text=True, timeout=300, env=self.user.env(**env), check=True)
        calls = called(r.stdout)
        said = self.finish(p)
        events = self.recorded(self.path("t"))
        first = {e.fields["pid"] for e in events}
        self.assertEqual((len(calls), len(first)), (7, 1))
        self.assertEqual(len(events), calls[first.pop()])
        self.assertIn(f"fork children {sum(calls.values()) - len(events)}", said)

    def test_program_that_forks(self):
        """Children that do not execute have no LTTng of their own: their hits are counted, not recorded as their parent's."""
        self.check_forks()

    def test_program_that_forks_and_preloads_LTTngs_own_helper(self):
        """That registers the children again. They have LTTng then, but none of our sink's threads: they are counted, too."""
        helper = "/usr/lib/x86_64-linux-gnu/liblttng-ust-fork.so.1"
        if not os.path.exists(helper):
            self.skipTest("needs liblttng-ust-fork")
        self.check_forks(LD_PRELOAD=helper)

    def test_one_that_cannot_have_the_sink_is_refused_alone(self):
        p = self.watch("--set-url", "file://" + self.path("t"))
        calls = self.starts("fork", 1, 3)
        wait_until(lambda: "are probed when" in self.said(), what="the first process")
        shutil.copy(target_path("spin-static"), self.path("new"))
        os.rename(self.path("new"), self.started)
        wait_until(lambda: subprocess.run([self.started, "1", "0"], capture_output=True, timeout=300).returncode == 0 and "DP-" in self.said(), what="a refusal")
        self.finish(p, EXIT_PARTIAL)
        self.assert_all(self.recorded(self.path("t")), calls)


class Ends(Program):
    def sessiond(self, *args, **kw):
        self.daemon = super().sessiond(*args, **kw)
        return self.daemon

    def test_killed_tool_leaves_nobody_held(self):
        for _ in range(3 if harness.FULL else 1):
            p = self.watch("--sink", "lttng")
            t = subprocess.Popen([target_path("starter"), "many", "10", self.started, "3"], stdout=subprocess.PIPE, text=True, **self.user.popen())
            wait_until(lambda: "are probed when" in self.said(), what="the first process")
            p.kill()
            p.wait()
            self.assertIn("STATUS 0 10", t.communicate(timeout=300)[0])

    def test_daemon_that_hangs_holds_a_start_for_a_bounded_time(self):
        p = self.watch("--set-url", "file://" + self.path("t"))
        self.starts("fork", 1, 3)
        wait_until(lambda: "are probed when" in self.said(), what="the first process")
        self.daemon.freeze()
        calls = self.starts("fork", 2, 3)
        self.assertEqual(len(calls), 2)
        self.daemon.thaw()
        self.finish(p, EXIT_PARTIAL)

    def test_daemon_that_hangs_at_the_first_start_ends_the_run_and_not_the_program(self):
        p = self.watch("--set-url", "file://" + self.path("t"))
        self.daemon.freeze()
        self.assertEqual(list(self.starts("fork", 1, 3).values()), [3])
        self.assertEqual(p.wait(300), harness.OWN_FAILURE, self.said())
        self.assertIn("DP-LTTNG", self.said())
        self.daemon.thaw()


if __name__ == "__main__":
    lttng_env.main()
