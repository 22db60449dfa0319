# SPDX-License-Identifier: MIT
"""Tests that LTTng treats a probe like a compiled-in tracepoint: rules, filters, triggers, contexts, sessions, buffers."""

import collections
import contextlib
import ctypes
import os
import re

import harness
import lttng_env
import lttng_probe
from harness import wait_until
from lttng_env import metadata


class Merge(lttng_probe.Case):
    """A trace of ours and one of LTTng-UST, of the same program at the same time: babeltrace2 merges them into one order."""

    def test_our_events_lie_between_the_programs_own(self):
        self.sessiond()
        self.session("ust", "lttng_ust_tracef:*")
        ours = self.path("ours")
        t = self.program("usttrace")
        r = self.attach(t, "--function", "foo", "-t", "reg:edi", "-n", 100, record=ours)
        self.assert_ok(r)
        self.assert_result_ok(t)
        self.lttng("stop", "ust")
        self.assert_between(harness.babeltrace(ours, self.path("ust")))

    def test_events_of_the_sink_in_a_program_with_lttng_of_its_own(self):
        self.sessiond()
        self.session("ust", "lttng_ust_tracef:*", start=False)
        t = self.program("usttrace")
        self.leave(t, "--function", "foo", "-t", "reg:edi", session="ust")
        self.let_run()
        self.end(t)
        self.lttng("stop", "ust")
        self.assert_between(harness.babeltrace(self.path("ust")))

    def assert_between(self, lines):
        order = []
        for line in lines:
            m = re.search(r'msg = "(before|after) (\d+)"', line)
            if m:
                order.append((m[1], int(m[2])))
            elif "dynprobe:foo:" in line:
                order.append(("foo", int(re.search(r"\bedi = (\w+)", line)[1], 0)))
        at = [i for i, (what, _) in enumerate(order) if what == "foo"]
        self.assertGreaterEqual(len(at), 100)
        for i in at:
            n = order[i][1]
            self.assertEqual(order[max(i - 1, 0) : i + 2], [("before", n), ("foo", n), ("after", n)][1 if i == 0 else 0 :])


class Rules(lttng_probe.WithDaemon):
    def test_rules_before_the_probe_and_after_it(self):
        """Wildcards of every kind; each session has each event once, however many of its rules match."""
        kinds = {"all": ["*"], "dyn": ["dyn*"], "ours": ["dynprobe:*"], "name": ["dynprobe:foo"], "part": ["dynprobe:f*"], "twice": ["dynprobe:*", "dynprobe:foo"]}
        for name, rules in kinds.items():
            self.session("before-" + name, *rules)
        t = self.spin()
        self.leave(t, "--function", "foo", "-t", "reg:edi", session="before-ours")
        self.let_run()
        for name, rules in kinds.items():
            self.session("after-" + name, *rules)
        self.let_run()
        self.end(t)
        firsts = {}
        for name in (f"{when}-{kind}" for when in ("before", "after") for kind in kinds):
            calls = self.calls(self.events(name))
            self.assert_contiguous(calls)
            firsts[name] = calls[0]
        before, after = ([v for k, v in firsts.items() if k.startswith(when)] for when in ("before", "after"))
        self.assertGreater(min(after), max(before) + 50)

    def test_each_session_and_channel_gets_what_it_wants(self):
        self.session("a", "dynprobe:foo")
        self.session("b", ["dynprobe:*", "--filter", "(edi & 1) == 0"], channel=["--subbuf-size=64K"])
        self.session("c", "dynprobe:caller", start=False)
        self.lttng("enable-channel", "-u", "-s", "c", "d")
        self.lttng("enable-event", "-u", "-s", "c", "-c", "d", "dynprobe:foo")
        self.lttng("start", "c")
        self.session("none", "other:*")
        t = self.spin()
        self.leave(t, "--function", "foo", "--function", "caller", "-t", "reg:edi", session="a")
        self.let_run()
        self.end(t)
        a, b, c = (self.events(x, None) for x in "abc")
        self.assertEqual(self.events("none", None), [])
        of = lambda events, probe: self.calls([e for e in events if e.name == "dynprobe:" + probe])
        for events in (a, c):
            for probe in ("foo", "caller"):
                self.assert_contiguous(of(events, probe))
        for probe in ("foo", "caller"):
            calls = of(b, probe)
            self.assertEqual(calls, list(range(calls[0], calls[0] + 2 * len(calls), 2)))
            self.assertEqual(calls[0] % 2, 0)

    def test_buffers_per_process(self):
        self.session("s", "dynprobe:*", channel=["--buffers-pid", "--subbuf-size=256K"])
        self.session("shared", "dynprobe:*", channel=["--buffers-uid"], contexts=["vpid"])
        programs = [self.spin(), self.spin()]
        for t in programs:
            self.leave(t, "--function", "foo", "-t", "reg:edi")
        self.let_run()
        first, second = programs
        self.assert_result_ok(first)  # the session of its probe ends; its events stay
        self.let_run()
        self.end(second)
        self.lttng("stop", "s")
        directories = os.listdir(self.path("s/ust/pid"))
        for t in programs:
            mine = [d for d in directories if d.startswith(f"spin-{t.pid}-")]
            self.assertEqual(len(mine), 1, directories)
            self.assert_contiguous(self.calls(self.read(self.path("s/ust/pid/" + mine[0]), name="dynprobe:foo")))
            self.assert_contiguous(self.calls([e for e in self.events("shared") if e.context["vpid"] == t.pid]))

    def test_one_command_and_one_name_in_several_programs(self):
        self.session("s", contexts=["vpid"])
        a, b, other = self.spin(), self.spin(), self.spin()
        self.tool("attach", "--pid", a.pid, "--pid", b.pid, "--function", "foo", "-t", "reg:edi", "--session", "s")
        self.leave(other, "--function", "foo", "-t", f"string:s:{other.site('greeting'):#x}", "-t", "reg:edi")
        self.let_run()
        for t in (a, b, other):
            self.end(t)
        events = self.events("s")
        for t, fields in ((a, ["edi"]), (b, ["edi"]), (other, ["unreadable", "s", "edi"])):
            mine = [e for e in events if e.context["vpid"] == t.pid]
            self.assertEqual({tuple(e.fields) for e in mine}, {tuple(fields)})
            self.assert_contiguous(self.calls(mine))

    def segments(self, calls):
        """Splits the numbers of the calls into runs without a gap."""
        starts = [0, *(i + 1 for i, (a, b) in enumerate(zip(calls, calls[1:])) if b != a + 1)]
        return [calls[a:b] for a, b in zip(starts, [*starts[1:], len(calls)])]

    def test_stop_start_disable_enable(self):
        self.session("s", "dynprobe:foo")
        t = self.spin()
        self.leave(t, "--function", "foo", "-t", "reg:edi")
        pairs = (
            (("stop", "s"), ("start", "s")),
            (("disable-event", "-u", "-s", "s", "-c", "c", "dynprobe:foo"), ("enable-event", "-u", "-s", "s", "-c", "c", "dynprobe:foo")),
            (("disable-channel", "-u", "-s", "s", "c"), ("enable-channel", "-u", "-s", "s", "c")),
            (("stop", "s"), ("start", "s")),
        )
        self.let_run()
        for shut, opened in pairs:
            self.lttng(*shut)
            self.let_run()
            self.lttng(*opened)
            self.let_run()
        self.end(t)
        segments = self.segments(self.calls(self.events("s")))
        self.assertEqual(len(segments), 5)
        self.assertGreater(min(map(len, segments)), 50)
        self.assertEqual(sorted(sum(segments, [])), sum(segments, []))

    def test_rotation(self):
        self.session("s", "dynprobe:*")
        t = self.spin()
        self.leave(t, "--function", "foo", "-t", "reg:edi")
        for _ in range(3):
            self.let_run()
            self.lttng("rotate", "s")
        self.let_run()
        self.end(t)
        self.lttng("stop", "s")
        chunks = sorted(os.listdir(self.path("s/archives")))
        self.assertEqual(len(chunks), 3)
        for chunk in chunks:
            self.assertGreater(len(self.read(self.path("s/archives/" + chunk), name="dynprobe:foo")), 50)
        self.assert_contiguous(self.calls(self.events("s")))

    def test_snapshots(self):
        self.session("s", "dynprobe:*", create=["--snapshot", f"--output={self.path('s')}"], channel=["--subbuf-size=4K", "--num-subbuf=4"])
        t = self.spin(delay=100)
        p = self.leave(t, "--function", "foo", "-t", "reg:edi")
        self.assertIn("lttng snapshot record", p.stderr)
        self.let_run(steps=3000)
        for _ in range(2):
            self.lttng("snapshot", "record", "-s", "s")
            self.let_run()
        self.end(t)
        taken = [self.calls(self.read(self.path("s/" + d), name="dynprobe:foo")) for d in sorted(os.listdir(self.path("s")))]
        self.assertEqual(len(taken), 2)
        self.assertGreater(taken[1][-1], taken[0][-1])
        for calls in taken:
            self.assertGreater(len(calls), 50)
            self.assertEqual(calls, sorted(set(calls)))

    def attached_again(self, channel):
        self.session("s", "dynprobe:*", channel=channel)
        t = self.spin()
        asked = (["edi"], ["edi"], ["edi", "rsi"], ["edi"], ["rsi", "edi"], ["edi", "rsi"])
        for names in asked:
            self.leave(t, "--function", "foo", *(x for n in names for x in ("-t", "reg:" + n)), session="s")
            self.let_run()
            self.tool("remove", "foo", "--pid", t.pid)
            self.let_run(steps=50)
        self.end(t)
        events = self.events("s")
        segments = self.segments(self.calls(events))
        self.assertEqual(len(segments), len(asked))
        at = 0
        for names, calls in zip(asked, segments):
            self.assertEqual({tuple(e.fields) for e in events[at : at + len(calls)]}, {tuple(names)})
            at += len(calls)
        classes = re.findall(r'event \{\s*name = "dynprobe:foo"', metadata(self.trace_directory("s")))
        self.assertEqual(len(classes), 3, "one for each different field table")

    def trace_directory(self, session):
        return next(d for d, _, files in os.walk(self.path(session)) if "metadata" in files)

    def test_attached_again_with_the_same_and_with_other_fields(self):
        self.attached_again([])

    def test_attached_again_with_the_same_and_with_other_fields_per_process(self):
        self.attached_again(["--buffers-pid", "--subbuf-size=256K"])


class Filters(lttng_probe.WithDaemon):
    def fields(self, t):
        """Contexts of every type, and for each a filter that matches and one that does not."""
        counter, greeting = t.site("counter"), t.site("greeting")
        text = int.from_bytes(b"hello fr", "little")
        contexts = ["reg:edi", "reg:rdi", "reg:di", "backtrace", "reg:xmm0", f"string:s:{greeting:#x}", f"bytes[6]:b:{greeting:#x}"]
        contexts += [f"int{n}:i{n}:{counter if n <= 32 else greeting:#x}" for n in (8, 16, 32, 64)]
        contexts += [f"uint{n}:u{n}:{greeting:#x}" for n in (8, 16, 32, 64)]
        contexts += [f"{kind}:{kind[0]}:{greeting:#x}" for kind in ("float", "double", "pointer")]
        filters = {
            **{f"i{n}": (f"i{n} == -7", f"i{n} == -8") for n in (8, 16, 32)},
            **{f"u{n}": (f"u{n} == {text & (1 << n) - 1}", f"u{n} != {text & (1 << n) - 1:#x}") for n in (8, 16, 32, 64)},
            "i64": (f"i64 == {text}", f"i64 < {text}"),
            "p": (f"p == {text:#x}", "p == 0"),
            "f": ("f > 1.0e20", "f < 0.0"), "d": ("d > 1.0e50", "d < 0.0"),
            "s": ('s == "hello*target"', 's == "*nobody"'), "s2": ('s != "hello"', 's == "ello*"'),
            "b": ("b[1] == 0x65", "b[1] == 0x66"),
            "backtrace": (f"backtrace[0] == {t.site():#x}", f"backtrace[0] == {t.site('caller'):#x}"),
            "rdi": ("rdi >= 0", "rdi > 0xffffffff"),
            "di": ("di <= 65535", "di > 65535"),
            "context": ("$ctx.procname == \"sp*\"", "$ctx.vpid == 1"),
        }  # fmt: skip
        return [x for c in contexts for x in ("-t", c)], filters

    def test_lttngs_filter_on_every_type_of_field(self):
        t = self.spin()
        contexts, filters = self.fields(t)
        for name, (holds, _) in filters.items():
            self.session(name, ["dynprobe:foo", "--filter", f"({holds}) && (edi & 3) == 2"], channel=["--subbuf-size=64K"])
        never = [["dynprobe:foo", "--filter", fails] for _, fails in filters.values()]
        self.session("never", *never)
        self.session("whole")
        self.leave(t, "--function", "foo", *contexts, session="whole")
        self.let_run()
        self.end(t)
        self.assertEqual(self.events("never"), [])
        self.assert_contiguous(self.calls(self.events("whole")))
        for name in filters:
            calls = self.calls(self.events(name))
            self.assertGreater(len(calls), 20, name)
            self.assertEqual(calls, list(range(calls[0], calls[-1] + 1, 4)), name)
            self.assertEqual(calls[0] & 3, 2, name)

    def test_dynprobes_filter_goes_to_lttng_as_it_is(self):
        spin = f"{harness.target_path('spin')} 200 200"
        for i, (text, holds) in enumerate({
            "edi >= 100 && edi < 120": lambda n: 100 <= n < 120,
            "(edi & 7) == 3 || di == 8": lambda n: n & 7 == 3 or n == 8,
            "$ctx.procname == \"spin\" && edi == 199": lambda n: n == 199,
            "edi < 0": lambda n: False,
        }.items()):  # fmt: skip
            url = "file://" + self.path(f"t{i}")
            self.tool("-c", spin, "--function", "foo", "-t", "reg:edi", "-t", "reg:di", "--filter", text, "--set-url", url)
            self.assertEqual(self.calls(self.read(self.path(f"t{i}"))), [n for n in range(200) if holds(n)], text)

    def test_both_a_filter_and_a_condition(self):
        self.tool("-c", f"{harness.target_path('spin')} 200 200", "--function", "foo", "-t", "reg:edi", "--when", "(edi & 1) == 0",
                  "--filter", "edi < 50", "--set-url", "file://" + self.path("t"))  # fmt: skip
        self.assertEqual(self.calls(self.read(self.path("t"))), list(range(0, 50, 2)))

    def test_DP_LTTNG_a_wrong_filter_changes_nothing(self):
        t = self.spin()
        before = harness.State(t.pid)
        for verb in ([], ["attach"]):
            p = self.tool(*verb, "--pid", t.pid, "--function", "foo", "--filter", "edi ==", status=harness.OWN_FAILURE)
            self.assertIn("DP-LTTNG", p.stderr)
            self.assertIn("ilter", p.stderr)
        self.assertEqual(self.sessions(), {}, "an automatic session is left")
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)


class Triggers(lttng_probe.WithDaemon):
    def listen(self, trigger):
        """Subscribes to a trigger's notifications; returns a function that counts further ones."""
        ctl = ctypes.CDLL("liblttng-ctl.so.0")
        for f in ("lttng_triggers_get_at_index", "lttng_trigger_get_const_condition", "lttng_notification_channel_create"):
            getattr(ctl, f).restype = ctypes.c_void_p
        triggers, name = ctypes.c_void_p(), ctypes.c_char_p()
        self.assertGreaterEqual(ctl.lttng_list_triggers(ctypes.byref(triggers)), 0)
        endpoint = ctypes.c_void_p.in_dll(ctl, "lttng_session_daemon_notification_endpoint")
        channel = ctypes.c_void_p(ctl.lttng_notification_channel_create(endpoint))
        count = ctypes.c_uint()
        ctl.lttng_triggers_get_count(triggers, ctypes.byref(count))
        for i in range(count.value):
            at = ctypes.c_void_p(ctl.lttng_triggers_get_at_index(triggers, i))
            ctl.lttng_trigger_get_name(at, ctypes.byref(name))
            if name.value == trigger.encode():
                condition = ctypes.c_void_p(ctl.lttng_trigger_get_const_condition(at))
                self.assertEqual(ctl.lttng_notification_channel_subscribe(channel, condition), 0)

        def more():
            pending, notification, n = ctypes.c_bool(), ctypes.c_void_p(), 0
            while ctl.lttng_notification_channel_has_pending_notification(channel, ctypes.byref(pending)) == 0 and pending.value:
                n += ctl.lttng_notification_channel_get_next_notification(channel, ctypes.byref(notification)) == 0
            return n

        self.addCleanup(ctl.lttng_notification_channel_destroy, channel)
        return more

    def trigger(self, name, text, *actions, captures=()):
        capture = [x for c in captures for x in ("--capture", c)]
        self.lttng("add-trigger", f"--name={name}", "--condition=event-rule-matches", "--type=user", "--name=dynprobe:foo", f"--filter={text}", *capture, *actions)

    def test_a_trigger_notifies_starts_a_session_and_takes_a_snapshot(self):
        self.session("started", "dynprobe:*", start=False)
        self.session("shot", "dynprobe:*", create=["--snapshot", f"--output={self.path('shot')}"])
        t = self.spin(delay=10000)  # the triggers, for later calls, have ten seconds to be there
        self.leave(t, "--function", "foo", "-t", "reg:edi", "-t", f"string:s:{t.site('greeting'):#x}", session=None)
        now = self.next_call(t)
        self.trigger("wake", f'edi == {now + 1000} && s == "hello*"', "--action=start-session", "started", "--action=notify", captures=["edi", "s"])
        self.trigger("picture", f"edi == {now + 1200}", "--action=snapshot-session", "shot")
        self.trigger("never", f"edi == {now + 1000} && s == \"bye\"", "--action=stop-session", "shot", "--action=notify")
        notified, notified_wrongly = self.listen("wake"), self.listen("never")
        self.assertFalse(self.sessions()["started"])
        wait_until(lambda: self.sessions()["started"], what="the trigger to start the session")
        wait_until(lambda: os.path.isdir(self.path("shot")) and os.listdir(self.path("shot")), what="the trigger to take a snapshot")
        wait_until(notified, what="the trigger's notification")
        self.let_run()
        self.assertEqual((notified(), notified_wrongly()), (0, 0))
        self.assertTrue(self.sessions()["shot"])
        self.end(t)
        calls = self.calls(self.events("started"))
        self.assert_contiguous(calls)
        self.assertGreater(calls[0], now + 1000)

    def next_call(self, t):
        """The approximate number of the current call of foo."""
        r = self.attach_elsewhere(t)
        return int(r.events[-1]["fields"]["edi"], 0)

    def attach_elsewhere(self, t):
        r = self.dynprobe("--pid", t.pid, "--sink", "ring", "--name", "now", "--function", "caller", "-t", "reg:edi", "-n", 1)
        self.assert_ok(r)
        return r


class Refused(lttng_probe.WithDaemon):
    """What a command has changed in the program and in LTTng before it fails."""

    @contextlib.contextmanager
    def patched(self, t, symbol="main"):
        """Another tool's trap in code that does not run any more."""
        byte = harness.read_memory(t.pid, t.site(symbol), 1)
        self.write(t, symbol, b"\xcc")
        yield
        self.write(t, symbol, byte)

    def write(self, t, symbol, contents):
        with open(f"/proc/{t.pid}/mem", "r+b", buffering=0) as f:
            f.seek(t.site(symbol))
            f.write(contents)

    def registered(self, t):
        """How often LTTng lists each event of the program."""
        answer = self.lttng_xml("list", "-u")
        mine = [p for p in answer.iter("pid") if p.findtext("id") == str(t.pid)]
        return collections.Counter(e.findtext("name") for p in mine for e in p.iter("event"))

    def test_events_of_probes_that_were_refused_are_used_again(self):
        self.session("s")
        t = self.spin()
        with self.patched(t):
            for verb in ([], ["attach"]):
                for _ in range(3):
                    p = self.tool(*verb, "--pid", t.pid, "--function", "main", "--session", "s", status=harness.OWN_FAILURE)
                    self.assertIn("DP-FOREIGN", p.stderr)
                    self.assertIn("none of the probes could be placed", p.stderr)
                    self.assertIn("has the LTTng sink loaded", p.stderr)
                    self.assertNotIn("unchanged [", p.stderr)
            p = self.tool("attach", "--pid", t.pid, "--function", "main", "--function", "foo", "-t", "reg:edi", "--session", "s", status=121)
        # Another address with the same name: the refused probe's stub occupies the place that main's jump would need.
        self.leave(t, "--name", "main", "--probe", "libc.so.6!getpid")
        self.leave(t, "--name", "bar", "--probe", "libc.so.6!getppid")
        names = self.registered(t)
        self.assertEqual((names["dynprobe:main"], names["dynprobe:foo"]), (2, 1), names)  # with a field, and without
        self.end(t)
        self.assert_contiguous(self.calls(self.events("s")))


    def enabled_rules(self, session):
        """{rule: how many of them are enabled}"""
        events = self.lttng_xml("list", session).iter("event")
        return collections.Counter(e.findtext("name") for e in events if e.findtext("enabled") == "true")

    def test_process_that_cannot_have_the_sink_costs_the_others_nothing(self):
        self.session("s")
        caged, t = self.program("caged", ready="CAGED"), self.spin()
        with self.running(t, "--allow-seccomp", "--function", "foo", "--session", "s", pids=f"{caged.pid},{t.pid}") as r:
            self.wait_listed(t.pid, "dynprobe:foo")
            self.let_run(t)
        self.assert_ok(r, 121)
        self.assertRegex(r.err, rf"process {caged.pid} is left out: .*\[DP-SINK\]")
        self.assertTrue(self.events())

    def test_a_run_that_fails_leaves_the_users_sessions_as_they_were(self):
        main = ["dynprobe:main", "--filter", "edi == 1"]
        self.session("new", "my:*", start=False)
        self.session("running", "my:*")
        self.session("stopped", "my:*")
        self.lttng("stop", "stopped")
        self.session("his", "dynprobe:main", start=False)
        self.session("filtered", main, start=False)
        self.session("disabled", "dynprobe:main", "my:*", start=False)
        self.lttng("disable-event", "-u", "-s", "disabled", "-c", "c", "dynprobe:main")
        before = self.sessions(), {s: self.enabled_rules(s) for s in self.sessions()}
        t = self.spin()
        with self.patched(t):
            for verb in ([], ["attach"]):
                for session in before[0]:
                    self.tool(*verb, "--pid", t.pid, "--function", "main", "-t", "reg:edi", "--session", session, status=harness.OWN_FAILURE)
        after = self.sessions(), {s: self.enabled_rules(s) for s in self.sessions()}
        after[1]["filtered"]["dynprobe:main"] = 1  # ours stays too: LTTng disables by name
        self.assertEqual(after, before)
        self.assert_result_ok(t)

    def test_a_run_that_leaves_some_of_its_probes_keeps_all_of_its_rules(self):
        self.session("s", "my:*", start=False)
        t = self.spin()
        with self.patched(t):
            self.tool("attach", "--pid", t.pid, "--function", "main", "--function", "foo", "-t", "reg:edi", "--session", "s", status=121)
        self.assertEqual(self.enabled_rules("s"), {"my:*": 1, "dynprobe:main": 1, "dynprobe:foo": 1})
        self.let_run()
        self.end(t)
        self.assert_contiguous(self.calls(self.events("s")))


class Contexts(lttng_probe.Case):
    def test_of_every_thread_its_own(self):
        """rsp identifies the thread independently of LTTng."""
        self.sessiond()
        self.session("s", contexts=["vpid", "vtid", "procname", "ip", "pthread_id"])
        t = self.program("threads", 16)
        site = t.site()
        stacks = wait_until(lambda: self.stacks(t.pid), what="all sleepers to sleep")
        self.leave(t, "--function", "foo", "-t", "reg:rsp", "-t", "reg:edi", "--when", harness.CALM)
        self.let_run(steps=3000)
        self.end(t)
        events = self.events("s")
        seen = {}
        for e in events:
            c = e.context
            self.assertEqual((c["vpid"], c["procname"], c["ip"]), (t.pid, "threads", site))
            owner = [tid for tid, (start, end) in stacks.items() if start <= e.fields["rsp"] < end]
            self.assertEqual(owner, [c["vtid"]] if c["vtid"] in stacks else [])
            seen.setdefault(c["vtid"], set()).add(c["pthread_id"])
        self.assertGreater(len(seen), 6)
        self.assertEqual({len(v) for v in seen.values()}, {1})

    def stacks(self, pid):
        """{tid: (start, end)} of the mapping with its stack, for all threads except the two that spin."""
        found = {}
        maps = harness.maps(pid)
        for tid in map(int, os.listdir(f"/proc/{pid}/task")):
            with open(f"/proc/{pid}/task/{tid}/syscall") as f:
                sp = f.read().split()[-2:][0]  # "running" has none
            if sp.startswith("0x"):
                m = next(m for m in maps if m.start <= int(sp, 16) < m.end)
                found[tid] = (m.start, m.end)
        return found if len(found) >= 15 else None


if __name__ == "__main__":
    lttng_env.main()
