# SPDX-License-Identifier: MIT
"""Tests the LTTng sink alone, in a program that replaces dynprobe (tests/sinkhost): its events in LTTng, and what a guest must not do."""

import os
import re
import subprocess

import harness
import lttng_env
from harness import wait_until

HOST = harness.target_path("sinkhost")


class Host(lttng_env.Conversation):
    def end(self):
        """Returns its exit status and its last output."""
        return self.exit(), self.process.stdout.read()

    def tasks(self):
        """{name: [tid]} of all threads but the first."""
        found = {}
        for tid in os.listdir(f"/proc/{self.pid}/task"):
            if int(tid) != self.pid:
                with open(f"/proc/{self.pid}/task/{tid}/comm") as f:
                    found.setdefault(f.read().strip(), []).append(int(tid))
        return found

    def fds(self, tid=None):
        directory = f"/proc/{self.pid}/task/{tid or self.pid}/fd"
        return {fd: os.readlink(f"{directory}/{fd}") for fd in os.listdir(directory)}


class Sink(lttng_env.Case):
    def host(self, user=None):
        return Host(self, HOST, stderr=subprocess.STDOUT, **(user or self.root).popen())

    def session(self, name, *rules, **kw):
        super().session(name, *(rules or ["dynprobe:*"]), **kw)

    def recorded(self, command, event, user=None, **session):
        """A program with an event that session "s" records. The session is created last: otherwise the event would be enabled a moment before the
        session records."""
        h = self.host(user)
        self.assertEqual(h(command), "registered")
        self.wait_listed(h.pid, event)
        self.session("s", **session)
        self.assertEqual(h("wait"), "wanted 1")
        return h


class Events(Sink):
    def test_a_field_of_every_type_arrives(self):
        self.sessiond()
        h = self.recorded("kinds", "dynprobe:kinds", contexts=("vpid", "vtid", "procname", "ip"))
        self.assertEqual(h("hit 4"), "hit 4")
        events = self.last_events("s", name="dynprobe:kinds")
        self.assertEqual(len(events), 4)
        for n, e in enumerate(events):
            self.assertEqual(e.context, {"vpid": h.pid, "vtid": h.pid, "procname": "sinkhost", "ip": 0x1234})
            want = {
                "unreadable": 0x10 * (n & 1), "i8": -n, "i16": -1000 - n, "i32": -100000 - n, "i64": -10000000000 - n,
                "u8": 200 + n, "u16": 60000 + n, "u32": 4000000000 + n, "u64": 0xFEDCBA9876543210 + n, "f": 1.5 + n, "d": -2.25 - n,
                "s": f"text {n}", "b": [n + i for i in range(5)], "_backtrace_length": n % 4,
                "backtrace": [0x400000 + i for i in range(n % 4)], "last": 7 * n,
            }  # fmt: skip
            self.assertEqual(e.fields, want)
        self.assertIn("u16 = 0xEA60", events[0].line)
        self.assertIn("[0] = 0x400000", events[1].line)

    def test_a_filter_on_every_type_of_field(self):
        """Each filter matches another hit."""
        texts = []
        for form in (
            "i8 == {-n}", "i16 == {-1000 - n}", "i32 == {-100000 - n}", "i64 == {-10000000000 - n}", "u8 == {200 + n}", "u16 == {60000 + n}",
            "u32 == {4000000000 + n}", "(u64 & 31) == {16 + n}", "f == {1.5 + n}", "d == {-2.25 - n}", 's == "*t {n}"', "b[1] == {n + 1}",
            "last == {7 * n}", "unreadable == {16 * (n & 1)} && i8 == {-n}", "backtrace[1] == 0x400001 && i8 == {-n}",
            's == "text {n}" && d < 0.0 && backtrace[0] == 0x400000', '$ctx.procname == "sinkhost" && i8 == {-n}',
        ):  # fmt: skip
            n = len(texts)
            texts.append(re.sub(r"\{(.*?)\}", lambda m: str(eval(m[1], {"n": n})), form))
        self.sessiond()
        h = self.host()
        self.assertEqual(h("kinds"), "registered")
        self.wait_listed(h.pid, "dynprobe:kinds")
        self.session("s", *(["dynprobe:kinds", "--filter", text] for text in texts))
        self.assertEqual((h("wait"), h("hit 25")), ("wanted 1", "hit 25"))
        got = {e.fields["last"] // 7 for e in self.last_events("s")}
        self.assertEqual([texts[n] for n in range(len(texts)) if n not in got], [])
        self.assertEqual(got, set(range(len(texts))))

    def test_trigger_with_captures_starts_a_session(self):
        self.sessiond()
        h = self.host()
        self.assertEqual(h("kinds"), "registered")
        self.wait_listed(h.pid, "dynprobe:kinds")
        self.session("s")
        self.lttng("stop", "s")
        capture = [x for f in ("i64", "u64", "d", "s", "b[2]", "backtrace[0]") for x in ("--capture", f)]
        self.lttng(
            "add-trigger", "--name=t", "--condition=event-rule-matches", "--type=user", "--name=dynprobe:kinds", "--filter=last == 21", *capture,
            "--action=start-session", "s", "--action=notify",
        )  # fmt: skip
        self.assertEqual((h("wait"), h("closeall")[:6]), ("wanted 1", "closed"))
        h("hit 3")
        self.assertFalse(self.sessions()["s"])
        h("hit 4")
        wait_until(lambda: self.sessions()["s"], 20, "the trigger to start the session")
        wait_until(lambda: h("hit 4") and self.lttng("rotate", "s", check=False).returncode == 0, 20, "a rotation")
        self.assertGreater(len(self.last_events("s")), 0)
        self.assertEqual(h.end()[0], 0)

    def test_twins_and_namesakes(self):
        """With per-process buffers, the daemon refuses to register an event twice."""
        self.sessiond()
        h = self.recorded("one foo", "dynprobe:foo", channel=["--buffers-pid"])
        self.assertEqual(h("hit 3"), "hit 3")
        self.assertEqual((h("one foo"), h("wait"), h("hit 5")), ("registered", "wanted 1", "hit 5"))
        self.assertEqual(h("park"), "parked")
        self.assertEqual((h("one foo"), h("wait"), h("hit 7")), ("registered", "wanted 1", "hit 7"))
        values = [e.fields["value"] for e in self.last_events("s", name="dynprobe:foo")]
        self.assertEqual(values, [*range(3), *range(5), *range(7)])
        self.assertEqual(len([x for x in self.listed()[h.pid] if x == "dynprobe:foo"]), 1)

    def test_names_that_would_break_the_trace_are_refused(self):
        self.sessiond()
        h = self.recorded("one first", "dynprobe:first")
        for name in ('a"b', "a\\b", "a*", "x" * 247):
            self.assertTrue(h(f"one {name}").startswith("refused"), name)
        for name in ("foo+0x10", "libc.so.6!malloc", "a@b$c<d>é", "x" * 246):
            self.assertEqual((h(f"one {name}"), h("wait"), h("hit 1")), ("registered", "wanted 1", "hit 1"), name)
        self.assertEqual(len(self.last_events("s")), 4)


class Guest(Sink):
    def test_a_program_that_closes_everything_goes_on(self):
        self.sessiond()
        h = self.recorded("one foo", "dynprobe:foo")
        self.assertEqual(h("hit 3"), "hit 3")
        self.assertEqual(sorted(h.fds()), ["0", "1", "2"])
        h("closeall")
        self.assertEqual(h("hit 3"), "hit 3")
        self.lttng("list", "-u")
        self.assertEqual(len(self.last_events("s")), 6)
        self.session("again")
        self.assertEqual((h("wait"), h("hit 2")), ("wanted 1", "hit 2"))
        self.assertEqual(len(self.last_events("again")), 2)
        self.assertEqual(h.end(), (0, ""))

    def check_wakeups(self, user):
        """2 MiB of buffers, 8 MiB of events: without wake-ups the consumer would come too late. How many events it takes in time depends on the
        machine's load."""
        self.sessiond()
        h = self.recorded("bulk", "dynprobe:bulk", user, channel=["--subbuf-size=256K", "--num-subbuf=8"])
        self.assertEqual(h("closeall")[:6], "closed")
        self.assertEqual(h("pace 8000"), "hit 8000")
        self.assertGreater(len(self.last_events("s")), 2 * 2048)
        self.assertEqual(h.end(), (0, ""))

    def test_the_consumer_is_woken(self):
        self.check_wakeups(self.root)

    @harness.long_form  # lttng_sessiond.Others has programs of other users
    def test_the_consumer_of_another_user_is_woken(self):
        self.check_wakeups(self.nobody)

    def test_exit_in_a_fork_child_and_in_the_program(self):
        self.sessiond()
        h = self.recorded("one foo", "dynprobe:foo")
        self.assertEqual(h("hit 1"), "hit 1")
        for _ in range(20):
            self.assertEqual(h("fork"), "child 0")
        self.assertEqual(h("vfork"), "child 0")
        self.assertEqual(h("hit 1"), "hit 1")
        self.assertEqual(h.end(), (0, ""))
        self.assertEqual([e.fields["value"] for e in self.last_events("s")], [0, 1000, 0])

    def test_no_daemon_no_child(self):
        """Without a daemon, liblttng-ust creates its shared memory in a child."""
        h = self.host()
        wait_until(lambda: any(x.startswith("lttng-ust-wait") for x in os.listdir("/dev/shm")), 20, "LTTng's shared memory")
        self.assertEqual(h("children"), "children 0 sigchld 0 forks 0")
        self.assertEqual((h("one foo"), h("hit 3")), ("registered", "hit 3"))
        self.sessiond()
        self.wait_listed(h.pid, "dynprobe:foo")
        self.session("s")
        self.assertEqual((h("wait"), h("hit 3")), ("wanted 1", "hit 3"))
        self.assertEqual(len(self.last_events("s")), 3)

    def test_daemon_killed_and_started_again(self):
        daemon = self.sessiond()
        h = self.recorded("one foo", "dynprobe:foo")
        self.assertEqual(h("hit 3"), "hit 3")
        daemon.kill()
        self.assertEqual(h("hit 1000"), "hit 1000")
        daemon.stop()
        daemon.start()
        self.await_sessiond(daemon)
        self.wait_listed(h.pid, "dynprobe:foo")
        self.session("t")
        self.assertEqual((h("wait"), h("hit 5")), ("wanted 1", "hit 5"))
        self.assertEqual(len(self.last_events("t")), 5)
        self.assertEqual(h.end(), (0, ""))

    def test_sessions_come_and_go_in_a_storm_of_hits(self):
        self.sessiond()
        h = self.host()
        self.assertEqual(h("one foo"), "registered")
        self.wait_listed(h.pid, "dynprobe:foo")
        self.session("all", channel=["--subbuf-size=1M", "--num-subbuf=8"])
        h.process.stdin.write("storm 60000\n")
        for i in range(4 if harness.FULL else 2):
            name = f"s{i}"
            self.session(name, ["dynprobe:*", "--filter", "value == 3"], channel=["--buffers-pid"] if i % 2 else [])
            self.lttng("stop", name)
            self.lttng("start", name)
            self.assertEqual({e.fields["value"] for e in self.last_events(name)}, {3})
        self.assertRegex(h("lost"), r"^hit [1-9]\d+$")
        self.assertRegex(h.process.stdout.readline(), r"^lost ")
        self.assertEqual({e.fields["value"] for e in self.last_events("all")}, {1, 2, 3})
        self.assertEqual(h.end(), (0, ""))

    def test_its_threads_take_no_signals(self):
        self.sessiond()
        h = self.host()
        wait_until(lambda: sorted(h.tasks()) == ["dynprobe-sink", "sinkhost-ust"], 20, "the threads to have their names")
        names = h.tasks()
        for name in ("dynprobe-sink", "sinkhost-ust"):
            for tid in names[name]:
                with open(f"/proc/{h.pid}/task/{tid}/status") as f:
                    blocked = int(next(line for line in f if line.startswith("SigBlk:")).split()[1], 16)
                self.assertEqual(~blocked & 0xFFFFFFFF7FFBFEFF & ~(1 << 31 | 1 << 32), 0, name)
                self.assertEqual(h.fds(tid)["1"], "/dev/null")


if __name__ == "__main__":
    lttng_env.main()
