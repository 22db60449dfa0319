# SPDX-License-Identifier: MIT
"""Tests loading the LTTng sink, on a thread of its own, with one call on a thread of the program: no deadlock, no crash, no wait for a
daemon.
"""

import json
import os
import random
import re
import signal
import subprocess
import time
import unittest

import harness
import lttng_env
from harness import wait_until

DRIVER = harness.target_path("sink_driver")
STORMS = 1000 if harness.FULL else 3  # of six kinds
READS_INPUT = "0 0x0 "  # read(0, ...)
KILLS = 300 if harness.FULL else 2


def thread_names(pid):
    names = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/comm") as f:
                names.append(f.read().strip())
        except OSError:
            pass
    return names


def descriptors(pid):
    return {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}


class SinkCase(lttng_env.Case):
    def drive(self, *args, timeout=300, **popen):
        return subprocess.run([DRIVER, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, **popen)

    def load(self, pid, *args):
        run = self.drive(*args, pid)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def refused(self, pid, *args):
        run = self.drive(*args, pid)
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn("[DP-SINK]", run.stderr)
        return run.stderr

    def good_end(self, target):
        status = target.stop()
        self.assertEqual(status, 0, target.output() + target.errors())
        self.assertIn("RESULT OK", target.output())


LISTENERS = 2  # threads that LTTng starts


class Program(SinkCase):
    def assert_primed(self, said, n):
        """Those n threads of the program. A listener that does not have its name yet cannot be told from them: it is primed, too."""
        self.assertEqual((said["fresh"], said["unprimed"]), (True, 0))
        self.assertIn(said["primed"], range(n, n + LISTENERS + 1))

    def test_load_register_prime_and_find_again(self):
        target = self.target("threads")
        before = descriptors(target.pid)
        first = self.load(target.pid)
        self.assertTrue(first["fresh"])
        self.assertEqual(first["unprimed"], 0)
        self.assertNotIn(0, first["events"])
        self.assertEqual(descriptors(target.pid), before)
        again = self.load(target.pid)
        self.assertFalse(again["fresh"])
        self.assertGreaterEqual(thread_names(target.pid).count("dynprobe-sink"), 1)
        self.good_end(target)

    def test_all_threads_spin(self):
        target = self.target("spin")
        self.assertEqual(self.load(target.pid)["unprimed"], 0)
        self.good_end(target)

    def test_launched_command(self):
        run = self.drive("launch", harness.target_path("spin"), "1", timeout=300)
        self.assertEqual(run.returncode, 0, run.stderr)
        said = json.loads(next(line for line in run.stdout.splitlines() if line.startswith("{")))
        self.assert_primed(said, 1)

    def test_threads_of_io_uring_are_neither_primed_nor_stopped(self):
        for polled in (0, 1):
            target = self.target("uring", polled)
            if "NO IO_URING" in target.output():
                self.skipTest("this kernel has no io_uring")
            first = self.load(target.pid)
            self.assert_primed(first, 3)
            self.good_end(target)

    def test_job_stopped_is_refused_and_unharmed(self):
        target = self.target("libcstorm", 1, 0, 1, 0)
        os.kill(target.pid, signal.SIGSTOP)
        wait_until(lambda: harness.status(target.pid, "State").startswith("T"), what="the target to stop")
        self.assertIn("is stopped", self.refused(target.pid))
        os.kill(target.pid, signal.SIGCONT)
        self.assertTrue(self.load(target.pid)["fresh"])
        self.good_end(target)

    def test_stopped_while_it_loads(self):
        target = self.target("libcstorm", 1, 0, 1, 0)
        for i in range(5 if harness.FULL else 3):
            with subprocess.Popen([DRIVER, "-l", "500", str(target.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as driver:
                time.sleep(0.004 * (i + 1))  # another moment of the loading each time
                os.kill(target.pid, signal.SIGSTOP)
                time.sleep(0.05)  # the loading thread gets the stop
                os.kill(target.pid, signal.SIGCONT)
                driver.wait(300)
        self.load(target.pid)
        self.good_end(target)

    def test_vforking(self):
        """A thread that waits for its vfork child cannot be stopped: dynprobe waits for it, with a limit."""
        target = self.target("vforker", 150)
        self.load(target.pid)
        self.good_end(target)
        target = self.target("vforker", 3600000)
        wait_until(lambda: harness.status(target.pid, "State").startswith("D"), what="the vfork")
        run = self.drive(target.pid)
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn("[DP-VFORK]", run.stderr)

    def test_signals_all_the_time(self):
        target = self.target("sigstorm")
        self.load(target.pid)
        self.good_end(target)


class Refusals(SinkCase):
    def test_static(self):
        target = self.target("spin-static")
        self.assertIn("glibc", self.refused(target.pid))
        self.good_end(target)

    @unittest.skipUnless(os.path.exists(harness.target_path("spin-musl")), "musl-gcc is not installed")
    def test_musl(self):
        target = self.target("spin-musl")
        self.refused(target.pid)
        self.good_end(target)


class RealPrograms(SinkCase):
    """Their stacks contain stale addresses of malloc and the dynamic loader: only frames show that none of them is active."""

    def run_and_load(self, argv, waits_in, least=1):
        """`waits_in`: the start of /proc/PID/syscall when the program is idle."""
        def idle():
            with open(f"/proc/{p.pid}/syscall") as f:
                return f.read().startswith(waits_in)

        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
            self.addCleanup(p.kill)
            wait_until(idle, what="the program to be idle")
            said = self.load(p.pid)
            self.assertGreaterEqual(said["primed"], least)
            self.assertIsNone(p.poll())
            p.kill()

    @harness.needs("python3")
    def test_python(self):
        self.run_and_load(["/usr/bin/python3", "-c", "import json, re, time\nwhile True: time.sleep(0.01)"], "230 ")

    @harness.long_form
    @harness.needs("bash")
    def test_bash(self):
        self.run_and_load(["bash", "-c", "while read x; do :; done"], READS_INPUT)

    @harness.needs("redis-server")
    def test_redis(self):
        self.run_and_load(["redis-server", "--port", "0", "--unixsocket", self.path("redis"), "--save", ""], "232 ")

    @harness.long_form
    @harness.needs("sqlite3")
    def test_sqlite3(self):
        self.run_and_load(["sqlite3", self.path("db")], READS_INPUT)


class Daemons(SinkCase):
    def test_none_then_one(self):
        target = self.target("gaps")
        self.load(target.pid)
        self.sessiond()
        self.wait_listed(target.pid, "dynprobe:driven_one")
        self.good_end(target)

    def test_one_that_answers(self):
        self.sessiond()
        target = self.target("gaps")
        self.load(target.pid)
        self.wait_listed(target.pid, "dynprobe:driven_one")
        self.good_end(target)

    def test_one_that_hangs(self):
        daemon = self.sessiond()
        daemon.freeze()
        popen = self.root.popen()
        popen["env"] = {**popen["env"], "LTTNG_UST_REGISTER_TIMEOUT": "60000"}  # LTTng's own wait would take this long
        target = self.target("gaps", **popen)
        said = self.load(target.pid, "-l", "50000")
        self.assertTrue(said["fresh"])
        daemon.thaw()
        self.wait_listed(target.pid, "dynprobe:driven_one")
        self.good_end(target)


class Storm(SinkCase):
    def load_at_last(self, target):
        """On a busy machine an attempt may be refused; the program must not notice, and a later attempt must find or load the sink."""
        for _ in range(5):
            run = self.drive("-p", "200", target.pid)
            if run.returncode == 0:
                return
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertTrue({"DP-SINK", "DP-NO-THREAD", "DP-UNSTOPPABLE"} & set(re.findall(r"DP-[A-Z-]+", run.stderr)), run.stderr)
        self.fail(run.stderr)

    def one(self, arguments, before=lambda target: None):
        target = self.target("libcstorm", *arguments)
        try:
            before(target)
            self.load_at_last(target)
            self.good_end(target)
        finally:
            target.close()

    def test_threads_in_malloc_dlopen_stdio_and_pthread_create(self):
        for i in range(STORMS):
            with self.subTest(round=i):
                self.one((1 + i % 3, i % 2, 1, 1))

    def test_tool_killed_at_any_moment(self):
        rng = random.Random(42)

        def kill_one(target):
            with subprocess.Popen([DRIVER, "-p", "100", str(target.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as driver:
                time.sleep(rng.uniform(0, 0.15))  # any moment
                driver.kill()

        for i in range(KILLS):
            with self.subTest(round=i):
                self.one((1, 1, 1, 1), kill_one)


if __name__ == "__main__":
    lttng_env.main()
