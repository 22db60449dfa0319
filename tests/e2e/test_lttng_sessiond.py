# SPDX-License-Identifier: MIT
"""Tests probes with session daemons that are started late, killed, restarted, hung or another user's. The program notices none of it."""

import concurrent.futures
import fcntl
import os
import shutil
import struct
import subprocess
import sys
import socket
import time

import harness
import lttng_env
import lttng_probe
from harness import wait_until
from lttng_env import NOBODY

# Calls libm's erf(i), and prints at the end its longest delay that was not a wait for a processor.
GAPS = """
import math, signal, time
stop = False
def end(*_):
    global stop
    stop = True
signal.signal(signal.SIGTERM, end)
schedstat = open("/proc/thread-self/schedstat", "rb", buffering=0)
def present():
    schedstat.seek(0)
    waited = int(schedstat.read().split()[1])
    return time.monotonic() - waited / 1e9
math.erf(0.0)
print("READY", flush=True)
longest, i, last = 0, 0, present()
while not stop:
    i += 1
    math.erf(float(i))
    time.sleep(0.0005)
    now = present()
    longest, last = max(longest, now - last), now
print("RESULT OK longest", int(longest * 1000), "ms of", i, "calls", flush=True)
"""
PATIENCE_MS = 1000  # a client of a hung daemon waits at least 3000


class Daemons(lttng_probe.Case):
    def gaps(self, **kw):
        return self.target(os.path.realpath(sys.executable), "-c", GAPS, **{**self.user.popen(), **kw})

    def assert_not_delayed(self, t):
        self.assert_result_ok(t)
        ms = int(t.output().split("longest ")[1].split()[0])
        self.assertLess(ms, PATIENCE_MS, t.output())

    ERF = ("--name", "foo", "--function", "libm.so.6!erf", "-t", "reg:xmm0")

    def arguments(self, events):
        return [int(struct.unpack("<d", bytes(e.fields["xmm0"][:8]))[0]) for e in events]


def in_write_to_stderr(pid):
    with open(f"/proc/{pid}/syscall") as f:
        return f.read().startswith("1 0x2 ")


class Late(Daemons):
    def test_a_daemon_that_starts_when_the_probes_are_there(self):
        t = self.spin()
        p = self.tool("attach", "--pid", t.pid, "--function", "foo", "-t", "reg:edi", "--sink", "lttng")
        self.assertIn("no LTTng session daemon is running", p.stderr)
        self.assertIn("DP-LTTNG", p.stderr)
        self.assertIn("1 probe left", p.stderr)
        self.assertRegex(self.tool("status", "--pid", t.pid).stdout, r"foo +enabled")
        self.sessiond()
        self.wait_listed(t.pid, "dynprobe:foo")
        self.session("s", "dynprobe:*")
        self.let_run()
        self.end(t)
        self.assert_contiguous(self.calls(self.events("s")))

    def test_in_the_foreground_too(self):
        t = self.spin()
        with self.running(t, "--function", "foo", "-t", "reg:edi", "--sink", "lttng") as r:
            self.sessiond()
            self.wait_listed(t.pid, "dynprobe:foo")
            self.session("s", "dynprobe:*")
            self.let_run()
        self.assert_ok(r)
        self.assertIn("events go to no LTTng session yet", r.err)
        self.assert_contiguous(self.calls(self.events("s")))
        self.assert_clean_text(t)

    def test_a_session_by_name_needs_one(self):
        t = self.spin()
        before = harness.State(t.pid)
        for options in (["--session", "s"], ["--set-url", "file:///tmp/x"], ["--live"], ["--filter", "edi > 1"]):
            for verb in ([], ["attach"]):
                p = self.tool(*verb, "--pid", t.pid, "--function", "foo", *options, status=harness.OWN_FAILURE)
                self.assertIn("DP-LTTNG", p.stderr)
                self.assertIn("lttng-sessiond --daemonize", p.stderr)
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    def test_the_first_hits_of_a_command_are_in_every_session(self):
        self.sessiond()
        spin = f"{harness.target_path('spin')} 40 20"
        for name in ("x", "y"):
            self.session(name, "dynprobe:*")
        n = 12 if harness.FULL else 4
        for i in range(n):
            self.tool("-c", spin, "--function", "foo", "-t", "reg:edi", *(["--session", "x"] if i % 2 else ["--set-url", "file://" + self.path(f"t{i}")]))
        for i in range(0, n, 2):
            self.assertEqual(self.calls(self.read(self.path(f"t{i}"))), list(range(40)))
        for name in ("x", "y"):
            self.assertEqual(self.calls(self.events(name)), list(range(40)) * n)


class Killed(Daemons):
    def test_events_come_again_when_it_is_started_again(self):
        daemon = self.sessiond()
        t = self.gaps()
        self.session("s", channel=["--subbuf-size=16K", "--num-subbuf=2"])
        self.leave(t, *self.ERF)
        self.let_run()
        for name in ("t", "u") if harness.FULL else ("t",):
            daemon.kill()
            self.let_run()
            daemon.stop()
            self.assertRegex(self.tool("status", "--pid", t.pid).stdout, r"foo +enabled")
            daemon.start()
            self.await_sessiond(daemon)
            self.wait_listed(t.pid, "dynprobe:foo")
            self.session(name, "dynprobe:*")
            self.let_run()
            self.assert_contiguous(self.arguments(self.events(name)))
        self.tool("detach", "--pid", t.pid)
        self.assert_not_delayed(t)

    def test_in_the_middle_of_a_run(self):
        daemon = self.sessiond()
        t = self.spin()
        with self.running(t, "--function", "foo", "-t", "reg:edi", "--session", "mine") as r:
            self.let_run()
            daemon.kill()
            self.let_run()
        self.assertEqual(harness.changed_text(t.pid), [])
        self.assertIn("DP-LTTNG", r.err)
        daemon.stop()
        daemon.start()
        self.await_sessiond(daemon)
        self.session("s")
        self.leave(t, "--function", "foo", "-t", "reg:edi")
        self.let_run()
        self.end(t)
        self.assert_contiguous(self.calls(self.events("s")))


class Hung(Daemons):
    def timed(self, *args, status=harness.OWN_FAILURE):
        begin = time.monotonic()
        p = self.tool(*args, status=status)
        return p, time.monotonic() - begin

    def test_before_the_attach(self):
        daemon = self.sessiond()
        programs = [self.gaps(), self.gaps()]
        before = [harness.State(t.pid) for t in programs]
        daemon.freeze()
        with concurrent.futures.ThreadPoolExecutor() as at_once:
            ways = (["attach", "--sink", "lttng"], ["--session", "s"])
            runs = [at_once.submit(self.timed, *words, "--pid", t.pid, *self.ERF) for words, t in zip(ways, programs)]
        for p, seconds in (r.result() for r in runs):
            self.assertIn("DP-LTTNG", p.stderr)
            self.assertIn("it is stopped", p.stderr)
            self.assertLess(seconds, 20)
        for t, state in zip(programs, before):
            self.assert_clean(t.pid, state)
        daemon.thaw()
        for t in programs:
            self.assert_not_delayed(t)

    def test_a_relay_that_says_nothing(self):
        """The session is created, its channel is not: the session is removed, or named."""
        self.sessiond()
        with socket.socket() as relay:
            relay.bind(("127.0.0.1", 0))
            relay.listen()
            t = self.spin()
            p, _ = self.timed("--pid", t.pid, "--session", "begun", "--set-url", f"net://127.0.0.1:{relay.getsockname()[1]}", "--function", "foo")
            self.assertIn("DP-LTTNG", p.stderr)
        if "lttng destroy begun" not in p.stderr:
            self.assertEqual(self.sessions(), {})
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_when_a_current_session_would_decide(self):
        daemon = self.sessiond()
        self.session("cur", "dynprobe:*")
        self.set_current("cur")
        t = self.gaps()
        daemon.freeze()
        p, seconds = self.timed("--pid", t.pid, *self.ERF, "-d", "200ms", status=0)
        self.assertRegex(p.stderr, r"\Adynprobe: recording into .* with the embedded recorder \(not LTTng: .*within 3 s: it is stopped.*DP-LTTNG")
        self.assertLess(seconds, 20)
        daemon.thaw()
        self.assert_not_delayed(t)

    def held_at_its_first_word(self, *args):
        """Starts dynprobe with a full pipe as standard error: it waits with its session open and the program untouched. Returns a function that
        lets it run to its end and returns its status and output."""
        out, err = os.pipe()
        fcntl.fcntl(err, fcntl.F_SETPIPE_SZ, 4096)
        os.write(err, b"." * 4096)
        p = subprocess.Popen([harness.DYNPROBE, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err, **self.user.popen())
        os.close(err)
        reader = os.fdopen(out, errors="replace")
        self.addCleanup(lambda: (p.poll() is None and p.kill(), p.wait(), reader.close()))
        wait_until(lambda: p.poll() is not None or in_write_to_stderr(p.pid), 30, "dynprobe to write its first output")

        def go():
            text = reader.read()
            return p.wait(300), text[4096:]

        return go

    def test_between_session_and_attach(self):
        daemon = self.sessiond()
        self.session("s")
        t = self.gaps()
        go = self.held_at_its_first_word("attach", "--pid", t.pid, *self.ERF, "--session", "s")
        daemon.freeze()
        begin = time.monotonic()
        status, said = go()
        self.assertLess(time.monotonic() - begin, 20, said)
        self.assertEqual(status, 0, said)
        self.assertIn("does not list the events", said)
        self.let_run()
        daemon.thaw()
        self.wait_listed(t.pid, "dynprobe:foo")
        self.let_run()
        self.tool("detach", "--pid", t.pid)
        self.assert_contiguous(self.arguments(self.events("s")))
        self.assert_not_delayed(t)

    def test_while_a_traced_program_gets_another_event(self):
        """LTTng asks its daemon about each new event of a session: the sink's own thread waits for that, the program does not."""
        daemon = self.sessiond()
        self.session("s", "dynprobe:*")
        t = self.gaps()
        self.leave(t, *self.ERF)
        go = self.held_at_its_first_word("attach", "--pid", t.pid, "--name", "other", "--function", "libm.so.6!erfc", "-t", "reg:rdi", "--session", "s")
        daemon.freeze()
        begin = time.monotonic()
        status, said = go()
        self.assertLess(time.monotonic() - begin, 30, said)
        if status:  # the daemon may just have had time to answer
            self.assertIn("DP-LTTNG", said)
            self.assertIn("asks the session daemon", said)
        self.tool("disable", "foo", "--pid", t.pid)
        self.tool("enable", "foo", "--pid", t.pid)
        daemon.thaw()
        wait_until(lambda: self.run_tool("attach", "--pid", t.pid, "--name", "third", "--function", "libm.so.6!erfc", "-t", "reg:rsi", "--session", "s").returncode == 0,
                   40, "the sink to take events again")  # fmt: skip
        self.let_run()
        self.tool("detach", "--pid", t.pid)
        self.assertGreater(len(self.events("s")), 50)
        self.assert_not_delayed(t)

    def test_probes_come_out(self):
        daemon = self.sessiond()
        self.session("s", "dynprobe:*")
        t = self.gaps()
        self.leave(t, *self.ERF)
        self.let_run()
        daemon.freeze()
        self.let_run(steps=1000)
        p = self.tool("add-context", "--pid", t.pid, "-e", "foo", "-t", "reg:rdi", status=harness.OWN_FAILURE)
        self.assertIn("DP-LTTNG", p.stderr)
        _, seconds = self.timed("detach", "--pid", t.pid, status=0)
        self.assertLess(seconds, 8)
        self.assertEqual(harness.changed_text(t.pid), [])
        self.let_run()
        daemon.thaw()
        self.assert_contiguous(self.arguments(self.events("s")))
        self.assert_not_delayed(t)


class Others(Daemons):
    """Whose daemon, whose program, whose dynprobe."""

    def setUp(self):
        super().setUp()
        for name in ("spin", "dynprobe"):
            shutil.copy(harness.target_path(name) if name == "spin" else harness.DYNPROBE, self.path(name))
        mine, harness.DYNPROBE = harness.DYNPROBE, self.path("dynprobe")
        self.addCleanup(setattr, harness, "DYNPROBE", mine)

    def program_of(self, user):
        return self.target(self.path("spin"), 0, 500, **user.popen())

    def traced(self, t, daemon_of, tool_of, name="s", heard_by=()):
        """Attached by one user's dynprobe, recorded by a session of the other's."""
        self.session(name, create=[f"--output={daemon_of.home}/{name}"], user=tool_of)
        self.tool("attach", "--pid", t.pid, "--function", "foo", "-t", "reg:edi", "--session", name, user=tool_of)
        for user in heard_by:
            self.wait_listed(t.pid, "dynprobe:foo", user=user)
        self.let_run()
        self.tool("detach", "--pid", t.pid, user=tool_of)
        self.lttng("stop", name, user=tool_of)
        self.assert_contiguous(self.calls(self.read(f"{daemon_of.home}/{name}", name="dynprobe:foo")))
        self.assert_result_ok(t)

    @harness.long_form  # the next test does the same beside root's
    def test_all_of_one_ordinary_user(self):
        self.sessiond(user=self.nobody)
        self.traced(self.program_of(self.nobody), self.nobody, self.nobody)

    def test_his_own_beside_roots(self):
        self.sessiond()
        self.sessiond(user=self.nobody)
        self.session("roots", "dynprobe:*")
        self.traced(self.program_of(self.nobody), self.nobody, self.nobody, heard_by=[self.root])
        self.assertEqual(list(self.sessions()), ["roots"])
        self.assert_contiguous(self.calls(self.events("roots")))

    @harness.long_form  # test_a_member_of_roots_tracing_group has root's daemon and another user's program
    def test_roots_daemon_and_tool_and_another_users_program(self):
        self.sessiond()
        self.traced(self.program_of(self.nobody), self.root, self.root)
        self.assertTrue(os.path.isdir(f"{self.root.home}/s/ust/uid/{NOBODY.pw_uid}"))

    def test_a_member_of_roots_tracing_group(self):
        self.sessiond()
        tracer = self.tracer()
        self.traced(self.program_of(tracer), tracer, tracer)

    def test_DP_LTTNG_who_is_not_in_roots_tracing_group(self):
        """He may attach probes; only root's sessions may use them."""
        self.sessiond()
        t = self.program_of(self.nobody)
        before = harness.State(t.pid)
        for verb in ([], ["attach"]):
            p = self.tool(*verb, "--pid", t.pid, "--function", "foo", "--session", "s", user=self.nobody, status=harness.OWN_FAILURE)
            self.assertIn("tracing group 'tracing'", p.stderr)
            self.assertIn("DP-LTTNG", p.stderr)
        self.assert_clean(t.pid, before)
        self.session("s", "dynprobe:*")
        p = self.tool("attach", "--pid", t.pid, "--function", "foo", "-t", "reg:edi", "--sink", "lttng", user=self.nobody)
        self.assertIn("tracing group 'tracing'", p.stderr)
        self.wait_listed(t.pid, "dynprobe:foo")
        self.let_run()
        self.tool("detach", "--pid", t.pid, user=self.nobody)
        self.assert_contiguous(self.calls(self.events("s")))
        self.assert_result_ok(t)

    def test_root_sees_no_other_users_daemon(self):
        self.sessiond(user=self.nobody)
        t = self.program_of(self.nobody)
        p = self.tool("attach", "--pid", t.pid, "--function", "foo", "--session", "s", status=harness.OWN_FAILURE)
        self.assertIn("DP-LTTNG", p.stderr)
        self.assertIn("no LTTng session daemon is running", p.stderr)
        p = self.tool("attach", "--pid", t.pid, "--function", "foo", "-t", "reg:edi", "--sink", "lttng")
        self.assertIn("events go to no LTTng session yet", p.stderr)
        self.wait_listed(t.pid, "dynprobe:foo", user=self.nobody)
        self.session("s", "dynprobe:*", user=self.nobody, create=[f"--output={self.nobody.home}/s"])
        self.let_run()
        self.tool("detach", "--pid", t.pid)
        self.lttng("stop", "s", user=self.nobody)
        self.assert_contiguous(self.calls(self.read(self.nobody.home + "/s", name="dynprobe:foo")))
        self.assert_result_ok(t)


if __name__ == "__main__":
    lttng_env.main()
