# SPDX-License-Identifier: MIT
"""Tests output/lttng/lttng.h with real session daemons: sessions found, created, refused, hung, killed, another user's, remote.

The program `ustevents` has compiled-in events dynprobe:foo and dynprobe:bar; tests/targets/lttng_ctl_driver is the header as a command.
"""

import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time

import harness
import lttng_env
from harness import wait_until

DRIVER = harness.target_path("lttng_ctl_driver")
SHORT = 700  # ms that a daemon gets in tests where it does not answer
ANSWERS = 2500  # ms where it answers first, also on a busy machine
PATIENCE = 20  # s after which a command that should have given up after SHORT counts as hung


class Answer:
    def __init__(self, status, out):
        self.status, self.out = status, out
        self.verbs = [line.split(" ", 1)[0] for line in out.splitlines()]

    def state(self, verb):
        """The verb's output line as a dictionary; view and where may contain spaces."""
        line = next(x for x in self.out.splitlines() if x.startswith(verb + " session="))
        return re.fullmatch(
            r"\w+ session=(?P<session>.*?) created=(?P<created>\d) active=(?P<active>\d) where=(?P<where>.*?) view=(?P<view>.*)", line
        ).groupdict()

    def __str__(self):
        return f"status {self.status}\n{self.out}"


class SessionCase(lttng_env.Case):
    def setUp(self):
        super().setUp()
        self.driver_path = self.path("driver")  # a copy that every user may read
        shutil.copy(DRIVER, self.driver_path)
        os.chmod(self.driver_path, 0o755)

    def driver(self, *args, user=None, env=(), seconds=60):
        kw = (user or self.root).popen()
        kw["env"].update(env)
        p = subprocess.run(
            [self.driver_path, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, cwd=self.dir, **kw
        )
        self.assertNotIn("Sanitizer", p.stderr)
        return Answer(p.returncode, p.stdout + p.stderr)

    def ok(self, *args, **kw):
        a = self.driver(*args, **kw)
        self.assertEqual(a.status, 0, str(a))
        return a

    def refused(self, *args, says=(), **kw):
        a = self.driver(*args, **kw)
        self.assertEqual(a.status, 1, str(a))
        self.assertIn("[DP-LTTNG]", a.out)
        for word in says:
            self.assertIn(word, a.out)
        return a

    def start_driver(self, *args, user=None):
        """Starts a driver that waits for a line at its `wait` verbs."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return self.spawn(self.driver_path, *args, **pipes, cwd=self.dir, **(user or self.root).popen())

    def await_waiting(self, p):
        """Reads up to the next wait."""
        text = ""
        for line in p.stdout:
            if line == "waiting\n":
                return text
            text += line
        self.fail("the driver ended:\n" + text)

    def go(self, p):
        p.stdin.write("go\n")
        p.stdin.flush()

    def program(self, user=None):
        t = self.target("ustevents", **(user or self.root).popen())
        self.wait_listed(t.pid, "dynprobe:foo", "dynprobe:bar", user=user)
        return t

    def assert_gapless(self, events):
        """Checks that no event is missing between the first and the last."""
        self.assertGreater(len(events), 10)
        n = [e.fields["n"] for e in events]
        self.assertEqual(n, list(range(n[0], n[0] + len(n))))

    def run_and_read(self, before, after, directory=None):
        """Runs driver verbs, lets events happen, runs more verbs; returns the trace's events."""
        p = self.start_driver(*before, "wait", *after)
        state = Answer(0, self.await_waiting(p)).state("start")
        self.let_run()
        self.go(p)
        self.assertEqual(p.wait(300), 0, p.stdout.read())
        return state, self.read(directory or state["where"])


class New(SessionCase):
    def test_a_session_of_our_own_from_start_to_end(self):
        self.sessiond()
        t = self.program()
        state, events = self.run_and_read(["open", "enable", "foo", "context", "vpid", "start"], ["destroy"])
        self.assertRegex(state["session"], r"^dynprobe-driver-\d{8}-\d{6}$")
        self.assertEqual((state["created"], state["active"]), ("1", "1"))
        self.assertEqual(state["where"], f"{self.root.home}/lttng-traces/{state['session']}")
        self.assertEqual(state["view"], f"lttng view -t {state['where']}")
        self.assertEqual({e.name for e in events}, {"dynprobe:foo"})
        self.assertEqual({e.context["vpid"] for e in events}, {t.pid})
        self.assert_gapless(events)
        self.assertEqual(self.sessions(), {})
        shown = subprocess.run(state["view"].split(), capture_output=True, text=True, timeout=300, env=self.root.env())
        self.assertEqual(shown.stdout.count("dynprobe:foo"), len(events), shown.stderr)
        self.assert_result_ok(t)

    def test_names_do_not_collide(self):
        self.sessiond()
        names = {self.ok("--name", "a/b c", "open").state("open")["session"] for _ in range(4)}
        self.assertEqual(len(names), 4)
        for name in names:
            self.assertRegex(name, r"^dynprobe-a_b_c-")
        self.assertEqual(set(self.sessions()), names)

    def test_a_name_is_free_again_at_once(self):
        self.sessiond()
        self.program()
        for i in range(5):
            _, events = self.run_and_read(["--session", "again", "--output", self.path(f"t{i}"), "open", "enable", "foo", "start"], ["destroy"])
            self.assert_gapless(events)
            self.assertEqual(self.sessions(), {})

    def test_close_leaves_the_session_and_stops_it(self):
        self.sessiond()
        self.program()
        state, events = self.run_and_read(["--session", "mine", "open", "enable", "foo", "start"], ["close"])
        self.assertEqual(self.sessions(), {"mine": False})
        self.assert_gapless(events)
        self.assertTrue(state["where"].startswith(self.root.home + "/lttng-traces/mine-"), state)

    def test_the_directory_that_was_asked_for(self):
        self.sessiond()
        self.program()
        state, events = self.run_and_read(["--output", "sub/trace", "open", "enable", "foo", "start"], ["destroy"])
        self.assertEqual(state["where"], self.path("sub/trace"))
        self.assert_gapless(events)
        state, events = self.run_and_read(["--set-url", "file://" + self.path("b"), "open", "enable", "foo", "start"], ["destroy"])
        self.assertEqual(state["where"], self.path("b"))
        self.assert_gapless(events)

    def test_buffers_per_process(self):
        self.sessiond()
        t = self.program()
        state, events = self.run_and_read(["--per-pid", 1, "--subbuf", 65536, "open", "enable", "foo", "start"], ["destroy"])
        self.assert_gapless(events)
        kinds = os.listdir(os.path.join(state["where"], "ust"))
        self.assertEqual(kinds, ["pid"])
        self.assertIn(str(t.pid), os.listdir(os.path.join(state["where"], "ust", "pid"))[0])

    def test_rules_before_the_program_is_there(self):
        self.sessiond()
        p = self.start_driver("open", "enable", "foo", "start", "wait", "destroy")
        state = Answer(0, self.await_waiting(p)).state("start")
        t = self.program()
        self.let_run()
        self.assert_result_ok(t)
        self.go(p)
        self.assertEqual(p.wait(300), 0)
        self.assert_gapless(self.read(state["where"]))

    def test_a_filter_and_a_wrong_one(self):
        self.sessiond()
        self.program()
        _, events = self.run_and_read(["--filter", "(n & 1) == 0", "open", "enable", "foo", "start"], ["destroy"])
        self.assertGreater(len(events), 10)
        self.assertEqual({e.fields["n"] % 2 for e in events}, {0})
        self.refused("--session", "f", "--filter", 'n == "', "open", "enable", "foo", says=["filter", 'n == "', "syntax error"])

    def test_all_rules_or_none(self):
        self.sessiond()
        self.ok("--session", "s", "open", "enable", "kept")
        self.refused("--session", "s", "open", "enable", "kept,new," + "x" * 300, says=["too long"])
        self.assertEqual(self.rules("s"), {"dynprobe": {"dynprobe:kept": True, "dynprobe:new": False}})

    def test_what_cannot_be(self):
        self.sessiond()
        self.refused("--set-url", "nonsense", "open", says=["nonsense", "net://HOST"])
        self.refused("--session", "a/b", "open", says=["a/b"])
        self.refused("--session", "x" * 300, "open", says=["too long"])
        self.refused("--subbuf", 5000, "open", says=["power of two", "5000"])
        self.refused("--live", 1000000, "--set-url", "file:///tmp/x", "open", says=["relay daemon"])
        self.refused("open", "context", "perf:thread:instructions", says=["perf:thread:instructions"])
        # a session that cannot have its channel must not stay
        self.refused("--session", "gone", "--channel", "c" * 300, "open", says=["too long"])
        self.assertEqual([s for s in self.sessions() if not s.startswith("dynprobe-driver")], [])


class Existing(SessionCase):
    def test_a_users_session_is_only_given_rules_and_its_first_start(self):
        self.sessiond()
        self.program()
        self.lttng("create", "user", "--output=" + self.path("user"))
        self.lttng("enable-channel", "-u", "his")
        self.lttng("enable-event", "-u", "-c", "his", "my:*")
        a = self.ok("--session", "user", "open", "enable", "foo", "start", "destroy")
        self.assertEqual(a.state("open")["created"], "0")
        self.assertEqual(a.state("start")["active"], "1")
        self.assertEqual(a.state("start")["where"], self.path("user"))
        self.assertEqual(self.rules("user"), {"his": {"my:*": True, "dynprobe:foo": True}})
        self.assertEqual(self.sessions(), {"user": True}, "it is neither stopped nor destroyed")
        self.let_run()
        self.lttng("stop", "user")
        self.assert_gapless(self.read(self.path("user")))

    def test_one_that_its_user_stopped_stays_stopped(self):
        self.sessiond()
        self.lttng("create", "user")
        self.lttng("enable-event", "-u", "my:*")
        self.lttng("start")
        self.lttng("stop")
        a = self.ok("--session", "user", "open", "enable", "foo", "start", "close")
        self.assertEqual(a.state("start")["active"], "0")
        self.assertEqual(self.sessions(), {"user": False})
        self.assertEqual(self.rules("user")["channel0"], {"my:*": True, "dynprobe:foo": True})

    def test_one_that_runs_already(self):
        self.sessiond()
        self.program()
        self.lttng("create", "user", "--output=" + self.path("user"))
        self.lttng("enable-event", "-u", "my:*")
        self.lttng("start")
        a = self.ok("--session", "user", "open", "enable", "bar", "start")
        self.assertEqual(a.state("open")["active"], "1")
        self.let_run()
        self.lttng("stop")
        events = self.read(self.path("user"))
        self.assertEqual({e.name for e in events}, {"dynprobe:bar"})
        self.assert_gapless(events)

    def test_without_a_channel_one_is_made_before_the_first_start_only(self):
        self.sessiond()
        self.lttng("create", "empty")
        self.ok("--session", "empty", "open", "enable", "foo", "start")
        self.assertEqual(self.rules("empty"), {"dynprobe": {"dynprobe:foo": True}})
        self.refused("--session", "empty", "--channel", "other", "open", says=["other", "already been started"])
        self.assertEqual(self.rules("empty"), {"dynprobe": {"dynprobe:foo": True}})

    def test_the_channel_that_was_asked_for(self):
        self.sessiond()
        self.lttng("create", "s")
        self.lttng("enable-channel", "-u", "one")
        self.ok("--session", "s", "--channel", "two", "open", "enable", "foo")
        self.assertEqual(self.rules("s"), {"one": {}, "two": {"dynprobe:foo": True}})

    def test_a_disabled_channel_would_swallow_the_events(self):
        self.sessiond()
        self.lttng("create", "s")
        self.lttng("enable-channel", "-u", "off")
        self.lttng("disable-channel", "-u", "off")
        self.refused("--session", "s", "open", says=["off", "lttng enable-channel -u -s s off"])
        self.lttng("enable-channel", "-u", "on")
        self.ok("--session", "s", "open", "enable", "foo")
        self.assertEqual(self.rules("s"), {"on": {"dynprobe:foo": True}, "off": {}})

    def test_buffers_are_those_of_the_session(self):
        self.sessiond()
        self.program()
        self.lttng("create", "s", "--output=" + self.path("s"))
        self.lttng("enable-channel", "-u", "--buffers-pid", "c")
        self.ok("--session", "s", "--channel", "second", "open", "enable", "foo", "start")
        self.let_run()
        self.lttng("stop")
        self.assert_gapless(self.read(self.path("s")))

    def test_its_place_cannot_be_changed(self):
        self.sessiond()
        self.lttng("create", "s", "--output=" + self.path("s"))
        for option in (("--set-url", "net://127.0.0.1"), ("--live", 1000000), ("--output", self.path("t"))):
            self.refused("--session", "s", *option, "open", says=["already exists", self.path("s")])

    def test_contexts_come_before_the_first_start(self):
        self.sessiond()
        self.lttng("create", "s")
        self.ok("--session", "s", "open", "context", "vtid", "context", "vtid", "context", "procname", "start")
        self.refused("--session", "s", "open", "context", "ip", says=["already been started", "ip"])

    def test_rules_go_twice_and_away_again(self):
        self.sessiond()
        self.ok("--session", "s", "open", "enable", "foo,bar", "enable", "foo", "disable", "foo,never", "disable", "foo")
        self.assertEqual(self.rules("s"), {"dynprobe": {"dynprobe:foo": False, "dynprobe:bar": True}})
        self.ok("--session", "s", "open", "enable", "foo")
        self.assertEqual(self.rules("s"), {"dynprobe": {"dynprobe:foo": True, "dynprobe:bar": True}})

    def test_two_sessions_at_once(self):
        self.sessiond()
        self.program()
        drivers = []
        for name, event in (("one", "foo"), ("two", "foo"), ("three", "bar")):
            p = self.start_driver("--session", name, "--output", self.path(name), "open", "enable", event, "start", "wait", "destroy")
            self.await_waiting(p)
            drivers.append(p)
        self.let_run()
        for p in drivers:
            self.go(p)
            self.assertEqual(p.wait(300), 0)
        for name, event in (("one", "foo"), ("two", "foo"), ("three", "bar")):
            events = self.read(self.path(name))
            self.assertEqual({e.name for e in events}, {"dynprobe:" + event})
            self.assert_gapless(events)

    def test_snapshot_sessions_say_how_to_look(self):
        self.sessiond()
        self.lttng("create", "snap", "--snapshot")
        a = self.ok("--session", "snap", "open", "enable", "foo", "start")
        self.assertIn("lttng snapshot record -s snap", a.state("start")["view"])


class Listed(SessionCase):
    def test_the_daemon_has_heard_of_the_events(self):
        self.sessiond()
        t = self.program()
        a = self.ok("open", "listed", t.pid, "foo,bar", 20000)
        self.assertIn("listed 1\n", a.out)
        a = self.ok("open", "listed", t.pid, "foo,baz", 200)
        self.assertIn("listed 0\n", a.out)
        a = self.ok("open", "listed", os.getpid(), "foo", 200)
        self.assertIn("listed 0\n", a.out)

    def test_it_waits_for_them(self):
        self.sessiond()
        late = self.path("late")
        os.mkfifo(late)
        shell = self.spawn("sh", "-c", f'read x <{late}; exec "$0"', harness.target_path("ustevents"), **self.root.popen())
        p = self.start_driver("open", "wait", "listed", shell.pid, "foo", 30000)
        self.await_waiting(p)
        self.go(p)
        with open(late, "w") as f:
            f.write("go\n")
        self.assertIn("listed 1\n", p.communicate(timeout=300)[0])

    def test_a_program_in_a_pid_namespace_of_its_own(self):
        """LTTng lists it by its pid in its own namespace."""
        self.sessiond()
        outer = self.spawn("unshare", "--pid", "--fork", "--kill-child", harness.target_path("ustevents"), **self.root.popen())
        (inner,) = wait_until(lambda: harness.children(outer.pid), 20, "the program in its namespace")
        self.assertIn("listed 1\n", self.ok("open", "listed", inner, "foo", 20000).out)


class Ill(SessionCase):
    """A daemon that is missing, hangs, dies or sends nonsense: an error in time, and never a tool that hangs or crashes."""

    def test_none(self):
        self.refused("open", says=["no LTTng session daemon is running", "lttng-sessiond --daemonize"])
        with open(self.root.home + "/.lttngrc", "w") as f:
            f.write("session=foo\n")
        self.assertEqual(self.ok("current").out, "current - 0\n")

    def test_killed_before(self):
        daemon = self.sessiond()
        daemon.kill()
        self.refused("open", says=["no LTTng session daemon is running any more", "lttng-sessiond --daemonize"])

    def test_hung_from_the_start(self):
        daemon = self.sessiond()
        self.lttng("create", "cur")
        daemon.freeze()
        for verb in ("open", "current"):
            self.refused("--timeout", SHORT, verb, says=[f"pid {daemon.pid}", "it is stopped", "kill -CONT"], seconds=PATIENCE)
        daemon.thaw()
        self.assertEqual(set(self.sessions()), {"cur"})
        self.ok("open", "destroy")

    def test_hung_in_between(self):
        daemon = self.sessiond()
        for verb in (["enable", "foo"], ["disable", "foo"], ["context", "vpid"], ["start"], ["destroy"]):
            p = self.start_driver("--timeout", ANSWERS, "open", "wait", *verb)
            self.await_waiting(p)
            daemon.freeze()
            self.go(p)
            out, _ = p.communicate(timeout=PATIENCE)
            daemon.thaw()
            self.assertEqual(p.returncode, 1, out)
            self.assertIn("it is stopped", out)
            self.lttng("list")
        p = self.start_driver("--timeout", ANSWERS, "open", "wait", "listed", os.getpid(), "foo", SHORT)
        self.await_waiting(p)
        daemon.freeze()
        self.go(p)
        self.assertIn("listed 0\n", p.communicate(timeout=PATIENCE)[0])

    def test_a_hung_daemon_wakes_up_in_time(self):
        daemon = self.sessiond()
        p = self.start_driver("--timeout", 60000, "open", "wait", "enable", "foo", "start")
        self.await_waiting(p)
        daemon.freeze()
        self.go(p)
        wait_until(lambda: harness.children(p.pid), 20, "the conversation")
        self.assertIsNone(p.poll())
        daemon.thaw()
        out, _ = p.communicate(timeout=300)
        self.assertEqual(p.returncode, 0, out)

    def test_killed_in_between(self):
        daemon = self.sessiond()
        p = self.start_driver("open", "enable", "foo", "start", "wait", "enable", "bar")
        self.await_waiting(p)
        daemon.kill()
        self.go(p)
        out, _ = p.communicate(timeout=300)
        self.assertEqual(p.returncode, 1, out)
        self.assertIn("no LTTng session daemon is running any more", out)

    def test_restarted_in_between(self):
        daemon = self.sessiond()
        p = self.start_driver("--session", "s", "open", "enable", "foo", "start", "wait", "destroy")
        self.await_waiting(p)
        daemon.kill()
        daemon.start()
        self.await_sessiond(daemon)
        self.go(p)
        out, _ = p.communicate(timeout=300)
        self.assertEqual(p.returncode, 1, out)
        self.assertIn("'s'", out)
        self.assertIn("restarted", out)
        self.assertIn(self.root.home, out, "it says where the trace so far is")

    def test_destroyed_by_its_user_in_between(self):
        self.sessiond()
        p = self.start_driver("--session", "s", "open", "enable", "foo", "start", "wait", "enable", "bar")
        self.await_waiting(p)
        self.lttng("destroy", "s")
        self.go(p)
        out, _ = p.communicate(timeout=300)
        self.assertEqual(p.returncode, 1, out)
        self.assertIn("'s'", out)

    def impostor(self, reply):
        """A fake daemon behind the session daemon's socket."""
        os.makedirs("/run/lttng", exist_ok=True)
        server = socket.socket(socket.AF_UNIX)
        server.bind("/run/lttng/client-lttng-sessiond")
        server.listen(8)
        self.addCleanup(server.close)

        def serve():
            while True:
                try:
                    c, _ = server.accept()
                except OSError:
                    return
                with c:
                    c.settimeout(5)
                    try:
                        c.recv(1 << 16)
                        c.sendall(reply)
                    except OSError:
                        pass

        threading.Thread(target=serve, daemon=True).start()

    def test_one_that_hangs_up(self):
        self.impostor(b"")
        self.refused("--timeout", SHORT, "open", seconds=PATIENCE)

    def test_one_that_talks_nonsense(self):
        for reply in (b"\0" * 64, b"\xff" * 4096, b"\x0a\0\0\0" * 4, os.urandom(64), b"HTTP/1.1 400 Bad Request\r\n\r\n"):
            with self.subTest(reply[:16]):
                shutil.rmtree("/run/lttng", ignore_errors=True)
                self.impostor(reply)
                a = self.driver("--timeout", SHORT, "open", seconds=PATIENCE)
                self.assertEqual(a.status, 1, str(a))
                self.assertRegex(a.out, r"\[DP-")

    def test_ctrl_c_while_waiting_leaves_no_child(self):
        daemon = self.sessiond()
        p = self.start_driver("--timeout", 60000, "open", "wait", "enable", "foo")
        self.await_waiting(p)
        daemon.freeze()
        self.go(p)
        (child,) = wait_until(lambda: harness.children(p.pid), 20, "the conversation")
        os.kill(child, signal.SIGINT)
        time.sleep(0.05)  # long enough to end
        self.assertEqual(harness.children(p.pid), [child], "Ctrl-C must not end the child before the tool")
        p.kill()
        p.wait()
        wait_until(lambda: not os.path.exists(f"/proc/{child}") or (harness.status(child, "State") or "Z")[0] == "Z", 20, "the child to end with its tool")


class Users(SessionCase):
    def test_root_s_daemon_and_somebody_outside_its_group(self):
        self.sessiond()
        self.refused("open", user=self.nobody, says=["nobody is not in its tracing group 'tracing'", "usermod -aG tracing nobody"])
        with open(self.nobody.home + "/.lttngrc", "w") as f:
            f.write("session=foo\n")
        self.assertEqual(self.ok("current", user=self.nobody).out, "current - 0\n")

    def test_root_s_daemon_and_a_member_of_its_group(self):
        self.sessiond()
        user = self.tracer()
        t = self.program(user=user)
        p = self.start_driver("open", "enable", "foo", "start", "wait", "destroy", user=user)
        state = Answer(0, self.await_waiting(p)).state("start")
        self.assertEqual(list(self.sessions(user=user)), [state["session"]])
        self.assertEqual(list(self.sessions()), [state["session"]], "it is with root's daemon")
        self.let_run()
        self.go(p)
        self.assertEqual(p.wait(300), 0)
        self.assert_gapless(self.read(state["where"]))
        self.assertTrue(state["where"].startswith(user.home), state)
        self.assertEqual(os.stat(state["where"]).st_uid, user.entry.pw_uid)
        self.assert_result_ok(t)

    def test_a_users_own_daemon(self):
        self.sessiond(user=self.nobody)
        self.program(user=self.nobody)
        p = self.start_driver("open", "enable", "foo", "start", "wait", "destroy", user=self.nobody)
        state = Answer(0, self.await_waiting(p)).state("start")
        self.let_run()
        self.go(p)
        self.assertEqual(p.wait(300), 0)
        self.assert_gapless(self.read(state["where"]))

    def test_a_users_own_daemon_beside_root_s(self):
        self.sessiond()
        self.sessiond(user=self.nobody)
        self.ok("--session", "his", "open", user=self.nobody)
        self.ok("--session", "root-s", "open")
        self.assertEqual((set(self.sessions(user=self.nobody)), set(self.sessions())), ({"his"}, {"root-s"}))

    def test_a_users_own_daemon_hangs(self):
        daemon = self.sessiond(user=self.nobody)
        daemon.freeze()
        self.refused("--timeout", SHORT, "open", user=self.nobody, says=[f"pid {daemon.pid}", "it is stopped"], seconds=PATIENCE)

    def test_root_does_not_see_a_users_daemon(self):
        self.sessiond(user=self.nobody)
        self.refused("open", says=["no LTTng session daemon is running"])

    def test_sudo(self):
        """The passwd file names his home directory: the test mounts a copy with another one over it."""
        entry = self.nobody.entry
        copy = self.path("passwd")
        with open("/etc/passwd") as f, open(copy, "w") as g:
            g.write(f.read().replace(f":{entry.pw_dir}:", f":{self.nobody.home}:"))
        subprocess.run(["mount", "--bind", copy, "/etc/passwd"], check=True)
        self.addCleanup(subprocess.run, ["umount", "/etc/passwd"], check=True)
        self.sessiond(user=self.nobody)
        self.refused("open", env={"SUDO_UID": str(entry.pw_uid)}, says=["run dynprobe as nobody"])

    def test_no_home(self):
        self.assertNotEqual(pwd.getpwuid(os.getuid()).pw_dir, "")
        self.assertEqual(self.ok("current", env={"HOME": "", "LTTNG_HOME": ""}).out, "current - 0\n")


class Current(SessionCase):
    def covers(self, *rules):
        self.count += 1
        name = f"s{self.count}"
        self.lttng("create", name)
        for rule in rules:
            self.lttng("enable-event", "-u", *rule)
        a = self.ok("current")
        m = re.fullmatch(r"current (\S+) ([01])\n", a.out)
        self.assertEqual(m[1], name)
        return m[2] == "1"

    def test_whether_its_rules_want_our_events(self):
        self.sessiond()
        self.assertFalse(self.covers())
        self.assertTrue(self.covers(["-a"]))
        self.assertTrue(self.covers(["my:*"], ["dyn*"]))
        self.assertTrue(self.covers(["dynprobe:foo"]))
        self.assertTrue(self.covers(["dynprobe:*", "--filter", 'n < 3 && msg == "*"']))
        self.assertFalse(self.covers(["my:*", "--filter", 'name == "dynprobe:*"']))
        self.assertFalse(self.covers(["dynprobes:*"]))
        self.assertFalse(self.covers(["dyn*", "--loglevel=TRACE_INFO"]))

    def test_disabled_rules_and_channels_do_not(self):
        self.sessiond()
        self.lttng("create", "s")
        self.lttng("enable-event", "-u", "dynprobe:*")
        self.lttng("disable-event", "-u", "dynprobe:*")
        self.assertEqual(self.ok("current").out, "current s 0\n")
        self.lttng("enable-event", "-u", "dynprobe:*")
        self.assertEqual(self.ok("current").out, "current s 1\n")
        self.lttng("disable-channel", "-u", "channel0")
        self.assertEqual(self.ok("current").out, "current s 0\n")

    def test_a_rule_with_an_exclusion_does_not_cost_the_user_his_daemon(self):
        daemon = self.sessiond()
        self.assertTrue(self.covers(["dyn*", "--exclude", "dynprobe:a*"]))
        self.assertFalse(self.covers(["dyn*", "--exclude", "dynprobe:*"]))
        self.ok("--session", f"s{self.count}", "open", "enable", "foo", "disable", "foo")
        self.assertTrue(daemon.alive())

    def test_a_session_that_the_daemon_does_not_know(self):
        self.sessiond()
        for text in ("session=foo\n", "", "junk\n", "session=\n"):
            with open(self.root.home + "/.lttngrc", "w") as f:
                f.write(text)
            self.assertEqual(self.ok("current").out, "current - 0\n")

    def test_where_the_file_is(self):
        self.sessiond()
        self.lttng("create", "s")
        home = self.path("other")
        os.mkdir(home)
        self.assertEqual(self.ok("current", env={"LTTNG_HOME": "", "HOME": self.root.home}).out, "current s 0\n")
        self.assertEqual(self.ok("current", env={"LTTNG_HOME": home, "HOME": self.root.home}).out, "current - 0\n")

    def test_a_file_that_is_none(self):
        self.sessiond()
        os.mkfifo(self.root.home + "/.lttngrc")
        self.assertTrue(stat.S_ISFIFO(os.stat(self.root.home + "/.lttngrc").st_mode))
        self.assertEqual(self.ok("current", seconds=PATIENCE).out, "current - 0\n")

    def test_nothing_is_left_behind(self):
        self.sessiond()
        before = set(os.listdir("/tmp"))
        self.assertTrue(self.covers(["-a"]))
        # Another test's dynprobe has such a directory for a moment; what was left behind would stay.
        new = {x for x in set(os.listdir("/tmp")) - before if x.startswith("dynprobe-")}
        wait_until(lambda: not new & set(os.listdir("/tmp")), what=lambda: f"none of {new} to exist")


class Network(SessionCase):
    def relayed(self):
        return self.read(self.path("relay"))

    def test_a_session_on_a_relay_daemon(self):
        self.relayd()
        self.sessiond()
        self.program()
        state, events = self.run_and_read(
            ["--session", "far", "--set-url", "net://localhost", "open", "enable", "foo", "start"], ["destroy"], self.path("relay")
        )
        self.assertEqual(state["where"], "net://localhost")
        self.assertEqual({e.name for e in events}, {"dynprobe:foo"})
        self.assert_gapless(events)
        # "on HOST, where lttng-relayd writes it: lttng view -t ~/lttng-traces/US/far-*"
        self.assertIn("on localhost", state["view"])
        place = re.search(r"~/lttng-traces/(\S+?)-\*$", state["view"])[1]
        self.assertTrue(any(d.startswith(place.split("/")[1]) for d in os.listdir(self.path("relay/" + place.split("/")[0]))))

    def test_a_path_in_the_url(self):
        self.relayd()
        self.sessiond()
        self.program()
        url = f"net://127.0.0.1:{lttng_env.RELAY['control']}:{lttng_env.RELAY['data']}/some/place"
        state, events = self.run_and_read(["--set-url", url, "open", "enable", "foo", "start"], ["destroy"], self.path("relay"))
        self.assert_gapless(events)
        place = re.search(r"~/lttng-traces/(\S+)$", state["view"])[1]
        self.assertTrue(os.path.isdir(self.path("relay/" + place)), state["view"])

    def test_live(self):
        self.relayd()
        self.sessiond()
        self.program()
        p = self.start_driver("--session", "l", "--live", 100000, "--set-url", "net://localhost", "open", "enable", "foo", "start", "wait", "destroy")
        state = Answer(0, self.await_waiting(p)).state("start")
        url = state["view"].removeprefix("babeltrace2 --input-format=lttng-live ")
        self.assertEqual(url, f"net://localhost/host/{socket.gethostname()}/l")
        reader = lttng_env.LiveReader(url, self.path("live.txt"))
        self.addCleanup(reader.stop)
        wait_until(lambda: len(reader.events("dynprobe:foo")) > 20, 60, "events to come live")
        self.go(p)
        self.assertEqual(p.wait(300), 0)
        self.assert_gapless(reader.events())

    def test_live_without_a_url_is_on_this_machine(self):
        self.relayd()
        self.sessiond()
        a = self.ok("--session", "l", "--live", 1000000, "open", "enable", "foo", "start", "destroy")
        self.assertIn("--input-format=lttng-live net://127.0.0.1/host/", a.state("start")["view"])

    def test_a_live_session_of_the_users(self):
        self.relayd()
        self.sessiond()
        self.lttng("create", "his", "--live", "--set-url=net://localhost")
        a = self.ok("--session", "his", "open", "enable", "foo", "start")
        self.assertRegex(a.state("start")["view"], r"lttng-live net://(127\.0\.0\.1|localhost)/host/[^/]+/his$")

    def test_no_relay_daemon(self):
        self.sessiond()
        self.refused("--session", "s", "--set-url", "net://127.0.0.1", "open", "enable", "foo", "start", says=["start lttng-relayd", "net://127.0.0.1"])
        self.refused("--session", "s", "--live", 1000000, "open", "enable", "foo", "start", says=["start lttng-relayd", "127.0.0.1"])
        self.assertEqual(self.sessions(), {}, "the unused session is destroyed")

    def test_a_hung_relay_daemon(self):
        relay = self.relayd()
        daemon = self.sessiond()
        relay.freeze()
        self.refused("--timeout", SHORT, "--session", "s", "--set-url", "net://127.0.0.1", "open", says=["waits for a relay daemon"], seconds=PATIENCE)
        relay.thaw()
        wait_until(lambda: self.lttng("list", check=False, timeout=300).returncode == 0, 60, "the session daemon to answer again")
        self.assertTrue(daemon.alive())


if __name__ == "__main__":
    lttng_env.main(network=True)
