# SPDX-License-Identifier: MIT
"""Tests resident probes: left by attach, found again in the process, and removed; as root and as an ordinary user."""

import json
import os
import signal
import subprocess

import harness
from harness import Case, State, changed_text, needs, needs_root, wait_until

PROGRAMS = ("spin", "threads", "forker", "execer")


class Standing(Case):
    """`prefix` runs both the programs and dynprobe as a certain user."""

    prefix = []

    def setUp(self):
        super().setUp()
        self.tool_path = self.for_nobody("dynprobe") if self.prefix else harness.DYNPROBE

    def program(self, name, *args):
        return self.target(self.for_nobody(name) if self.prefix else name, *args, prefix=self.prefix)

    def spin(self, delay=300):
        return self.program("spin", 0, delay)

    def environment(self):
        return harness.environment(HOME=self.dir, LTTNG_HOME=self.dir)

    def tool(self, *args, status=0, timeout=300):
        return harness.tool(*args, status=status, prefix=self.prefix, binary=self.tool_path, timeout=timeout, env=self.environment())

    def start_tool(self, *args, **popen):
        return self.spawn(*self.prefix, self.tool_path, *args, stderr=subprocess.PIPE, text=True, env=self.environment(), **popen)

    def start_recorder(self, t, form="json"):
        """Starts a recorder and waits until it works."""
        self.count += 1
        events = self.path(f"recorded-{self.count}.{form}")
        recorder = self.start_tool("record", "--pid", t.pid, "--no-record", "-f", form, "-o", events)
        recorder.events = events
        self.await_output(recorder)
        return recorder

    def leave(self, t, *args, **kw):
        return self.tool("attach", "--sink", "ring", "--pid", t.pid, *args, **kw)

    def probes(self, t):
        """The probes in status's output: {name: probe}; the installed one if several have the name."""
        lines = map(json.loads, self.tool("status", "--pid", t.pid, "-f", "json").stdout.splitlines())
        (listing,) = (x for x in lines if x["pid"] == t.pid)  # its children of this moment have lines of their own
        self.assertEqual(listing["type"], "status")
        self.assertIsNone(listing["trouble"])
        return {p["name"]: p for p in sorted(listing["probes"], key=lambda p: p["state"] != "removed")}

    def states(self, t):
        return {name: p["state"] for name, p in self.probes(t).items()}

    def record(self, t, *args):
        self.count += 1
        events = self.path(f"recorded-{self.count}.json")
        p = self.tool("record", "--pid", t.pid, "--no-record", "-f", "json", "-o", events, *args)
        return harness.Result(p.returncode, p.stdout, p.stderr, events)

    def end(self, t, before=None):
        """Nothing of ours is left, and the program's own checks passed."""
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)


class Verbs:
    """The tests of the two classes at the end."""

    def test_probes_stay_when_the_tool_is_gone_and_detach_leaves_a_clean_process(self):
        t = self.spin()
        before = State(t.pid)
        p = self.leave(t, "--function", "foo", "-t", "reg:edi", "-t", "backtrace:4", "--when", "edi != 1")
        self.assertIn("uprobe", p.stderr)
        self.assertTrue(changed_text(t.pid))
        foo = self.probes(t)["foo"]
        self.assertEqual((foo["state"], foo["sink"], foo["contexts"], foo["when"]), ("enabled", "ring", ["reg:edi", "backtrace:4"], "edi != 1"))
        self.assertEqual(int(foo["addr"], 16), t.site("foo"))
        self.assertIn("[spin]", foo["where"])
        r = self.record(t, "-n", 20)
        self.assertEqual(len(r.events), 20)
        self.assertEqual(r.events[0]["fields"]["backtrace"][1]["symbol"].split("+")[0], "caller")
        self.assertTrue(changed_text(t.pid))
        self.tool("detach", "--pid", t.pid)
        self.end(t, before)

    def test_no_hit_between_attach_and_record_is_missing(self):
        t = self.spin()
        self.leave(t, "--function", "foo", "-t", "reg:edi")
        self.let_run(t)
        first, second = self.record(t, "--once"), self.record(t, "-n", 50)
        self.assertGreater(len(first.events), 50)
        calls = [int(e["fields"]["edi"], 16) for r in (first, second) for e in r.events]
        self.assertEqual(calls, list(range(calls[0], calls[0] + len(calls))))
        self.assertEqual(first.summary["lost"]["total"], 0)
        self.assertEqual(first.summary["ended_by"], "once")

    def test_flight_recorder_keeps_the_newest_and_counts_what_gave_way(self):
        t = self.spin(delay=20)
        self.leave(t, "--function", "foo", "-t", "reg:edi", "--buffer-size", "16K")
        wait_until(lambda: self.probes(t)["foo"]["lost"]["overwritten"] > 2000, what="records to be overwritten")
        self.tool("disable", "foo", "--pid", t.pid)
        lost = self.probes(t)["foo"]["lost"]
        r = self.record(t, "--once")
        calls = [int(e["fields"]["edi"], 16) for e in r.events]
        self.assertGreater(len(calls), 100)
        self.assertLess(len(calls), 1000)
        self.assertEqual(calls, list(range(calls[0], calls[0] + len(calls))))
        self.assertEqual(r.summary["lost"]["overwritten"], lost["overwritten"])
        self.assertEqual(lost["total"], lost["overwritten"])
        self.assertGreaterEqual(calls[0], lost["overwritten"])
        self.assertEqual(self.record(t, "-d", "0s").events, [])
        self.tool("detach", "--pid", t.pid)
        self.end(t)

    def test_disabled_probes_record_nothing_until_they_are_enabled(self):
        t = self.spin()
        self.leave(t, "--function", "foo", "--function", "caller")
        self.tool("disable", "f*", "--pid", t.pid)
        self.assertEqual(self.states(t), {"foo": "disabled", "caller": "enabled"})
        self.record(t, "--once")
        r = self.record(t, "-d", "1s")
        self.assertEqual({e["probe"] for e in r.events}, {"caller"})
        self.tool("enable", "*", "--pid", t.pid)
        self.assertEqual(self.states(t), {"foo": "enabled", "caller": "enabled"})
        r = self.record(t, "-d", "1s")
        self.assertEqual({e["probe"] for e in r.events}, {"caller", "foo"})
        self.tool("detach", "--pid", t.pid)
        self.end(t)

    def test_add_context_lets_a_probe_record_more(self):
        t = self.spin()
        before = State(t.pid)
        self.leave(t, "--name", "mine", "--function", "foo", "-t", "reg:edi", "--when", "edi != 1", "--function", "caller")
        greeting = t.site("greeting")
        self.tool("add-context", "--pid", t.pid, "-e", "mine", "-t", "backtrace", "-t", f"string:s:{greeting:#x}")
        mine = self.probes(t)["mine"]
        self.assertEqual((mine["state"], mine["when"]), ("enabled", "edi != 1"))
        self.assertEqual(mine["contexts"], ["reg:edi", "backtrace", f"string:s:{greeting:#x}"])
        r = self.record(t, "-d", "1s")
        new = [e for e in r.events if "s" in e["fields"]]
        self.assertGreater(len(new), 10)
        self.assertEqual(new[0]["fields"]["s"], "hello from the target")
        self.assertEqual(list(new[0]["fields"]), ["edi", "backtrace", "s"])
        self.assertEqual({e["probe"] for e in r.events}, {"caller", "mine", "mine_2"})
        calls = [int(e["fields"]["edi"], 16) for e in r.events if e["probe"] != "caller"]
        self.assertEqual(calls, list(range(calls[0], calls[0] + len(calls))), "a hit is missing or repeated")
        self.tool("detach", "--pid", t.pid)
        self.end(t, before)

    def test_add_context_to_a_disabled_probe_leaves_it_disabled(self):
        t = self.spin()
        self.leave(t, "--function", "foo")
        self.tool("disable", "foo", "--pid", t.pid)
        self.tool("add-context", "--pid", t.pid, "-e", "foo", "-t", "reg:rsi")
        foo = self.probes(t)["foo"]
        self.assertEqual((foo["state"], foo["contexts"]), ("disabled", ["reg:rsi"]))

    def test_add_context_that_is_refused_changes_nothing(self):
        t = self.spin()
        self.leave(t, "--function", "foo", "-t", "int:x:0x10")
        before = changed_text(t.pid)
        for words in (("-e", "foo", "-t", "double:x:0x10"), ("-e", "f*", "-t", "regs"), ("-e", "bar", "-t", "regs")):
            self.tool("add-context", "--pid", t.pid, *words, status=harness.OWN_FAILURE)
        self.assertEqual(self.probes(t)["foo"]["contexts"], ["int:x:0x10"])
        self.assertEqual(changed_text(t.pid), before)

    @staticmethod
    def press_ctrl_c():
        """Runs in the child that becomes dynprobe: the signal is pending before its first step."""
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        os.kill(os.getpid(), signal.SIGINT)

    def test_DP_INTERRUPTED_ctrl_c_before_the_probes_stand_leaves_none(self):
        t = self.spin()
        before = State(t.pid)
        p = self.start_tool("attach", "--sink", "ring", "--pid", t.pid, "--function", "foo", preexec_fn=self.press_ctrl_c)
        self.assertEqual(p.wait(300), 128 + signal.SIGINT)
        self.assertIn("DP-INTERRUPTED", p.stderr.read())
        self.assertEqual(self.states(t), {})
        p = self.start_tool("--sink", "ring", "--no-record", "--pid", t.pid, "--function", "foo", preexec_fn=self.press_ctrl_c)
        self.assertEqual(p.wait(300), 128 + signal.SIGINT)
        self.assertIn("DP-INTERRUPTED", p.stderr.read())
        self.leave(t, "--function", "foo", "-t", "reg:edi")
        p = self.start_tool("add-context", "--pid", t.pid, "-e", "foo", "-t", "reg:rsi", preexec_fn=self.press_ctrl_c)
        self.assertEqual(p.wait(300), 128 + signal.SIGINT)
        self.assertEqual(self.probes(t)["foo"]["contexts"], ["reg:edi"])
        self.tool("detach", "--pid", t.pid)
        self.end(t, before)

    def test_ctrl_c_between_two_processes_takes_the_first_ones_probes_out_again(self):
        targets = [self.spin(delay=2000) for _ in range(6)]
        before = [State(t.pid) for t in targets]
        pids = [x for t in targets for x in ("--pid", t.pid)]
        interrupted = 0
        for _ in range(50):
            p = self.start_tool("attach", "--sink", "ring", *pids, "--function", "foo")
            wait_until(lambda: p.poll() is not None or changed_text(targets[0].pid), what="the first process to be patched")
            p.send_signal(signal.SIGINT)
            interrupted = p.wait(300) == 128 + signal.SIGINT
            if interrupted:
                break
            self.tool("detach", *pids)
        self.assertTrue(interrupted, "50 signals without effect")
        self.assertIn("DP-INTERRUPTED", p.stderr.read())
        for t, state in zip(targets, before):
            self.assertEqual(self.states(t), {})
            self.end(t, state)

    def test_remove_takes_out_what_it_names(self):
        t = self.spin()
        before = State(t.pid)
        self.leave(t, "--function", "foo", "-t", "reg:edi", "--function", "caller")
        p = self.tool("remove", "nobody", "--pid", t.pid, status=harness.OWN_FAILURE)
        self.assertIn("DP-NO-PROBE", p.stderr)
        self.assertIn("foo, caller", p.stderr)
        self.tool("remove", "foo", "--pid", t.pid)
        self.assertEqual(self.states(t), {"foo": "removed", "caller": "enabled"})
        text = self.tool("status", "--pid", t.pid).stdout
        self.assertIn("caller", text)
        self.assertNotIn("foo ", text)
        r = self.record(t, "-d", "1s")
        self.assertIn("caller", {e["probe"] for e in r.events})
        self.tool("disable", "foo", "--pid", t.pid, status=harness.OWN_FAILURE)
        self.tool("remove", "c*", "--pid", t.pid)
        self.assertIn("no resident probes", self.tool("detach", "--pid", t.pid).stderr)
        self.end(t, before)

    def test_groups_are_independent(self):
        t = self.spin()
        before = State(t.pid)
        self.leave(t, "--function", "foo", "-t", "reg:edi")
        self.leave(t, "--function", "caller", "-t", "reg:edi")
        r = self.record(t, "-d", "1s")
        self.assertEqual({e["probe"] for e in r.events}, {"foo", "caller"})
        times = [e["mono"] for e in r.events]
        self.assertEqual(times, sorted(times))
        self.tool("remove", "foo", "--pid", t.pid)
        self.assertEqual({e["probe"] for e in self.record(t, "-n", 5).events}, {"caller"})
        self.tool("detach", "--pid", t.pid)
        self.end(t, before)

    def test_DP_STANDING(self):
        t = self.spin()
        self.leave(t, "--function", "foo")
        for words in (("--function", "foo"), ("--name", "foo", "--function", "caller"), ("--name", "other", "--function", "foo")):
            p = self.leave(t, *words, status=harness.OWN_FAILURE)
            self.assertIn("DP-STANDING", p.stderr, words)
        self.assertEqual(self.states(t), {"foo": "enabled"})
        self.assertEqual(len(self.record(t, "-n", 5).events), 5)
        self.tool("detach", "--pid", t.pid)
        self.end(t)

    def test_a_run_in_the_foreground_goes_by_and_leaves_them(self):
        t = self.spin()
        self.leave(t, "--function", "foo", "-t", "reg:edi")
        p = self.tool("--sink", "ring", "--no-record", "--pid", t.pid, "--function", "caller", "-n", 10)
        self.assertGreaterEqual(p.stdout.count("] caller"), 10)
        self.assertEqual(self.states(t), {"foo": "enabled"})
        calls = [int(e["fields"]["edi"], 16) for e in self.record(t, "-n", 20).events]
        self.assertEqual(calls, list(range(calls[0], calls[0] + 20)))
        self.tool("detach", "--pid", t.pid)
        self.end(t)

    def test_DP_LOCKED_keeps_two_tools_apart(self):
        t = self.spin()
        self.leave(t, "--function", "foo")
        recorder = self.start_recorder(t, "text")
        for words in (("disable", "foo"), ("status",), ("detach",), ("record", "--once", "--no-record")):
            p = self.tool(*words, "--pid", t.pid, status=harness.OWN_FAILURE)
            self.assertIn("DP-LOCKED", p.stderr)
        self.assertRegex(self.tool("status").stdout, f"(?m)^{t.pid} .*another dynprobe")
        recorder.send_signal(signal.SIGINT)
        self.assertEqual(recorder.wait(300), 0)
        self.assertIn("interrupt", recorder.stderr.read())
        self.assertEqual(self.states(t), {"foo": "enabled"})
        self.tool("detach", "--pid", t.pid)
        self.end(t)

    def test_a_killed_recorder_leaves_a_flight_recorder(self):
        t = self.spin(delay=20)
        self.leave(t, "--function", "foo", "-t", "reg:edi", "--buffer-size", "16K")
        recorder = self.start_recorder(t)
        recorder.kill()
        recorder.wait()
        first = self.probes(t)["foo"]["lost"]["overwritten"]
        wait_until(lambda: self.probes(t)["foo"]["lost"]["overwritten"] > first, what="the rings to overwrite themselves again")
        self.assertGreater(len(self.record(t, "--once").events), 100)
        self.tool("detach", "--pid", t.pid)
        self.end(t)

    def test_many_threads(self):
        t = self.program("threads", 8)
        before = State(t.pid)
        few = () if harness.FULL else ("--when", harness.CALM)  # a flood is recorded in the flight recorder's tests
        self.leave(t, "--function", "foo", "-t", "reg:edi", *few)
        self.let_run(t, steps=1000)
        r = self.record(t, "-d", "500ms")
        self.assertGreater(len({e["tid"] for e in r.events}), 4)
        self.tool("detach", "--pid", t.pid)
        self.end(t, before)

    def test_fork_children_run_right_and_status_names_their_parent(self):
        t = self.program("forker")
        self.leave(t, "--function", "foo", "--function", "in_child")
        wait_until(lambda: self.probes(t)["in_child"]["lost"]["forked"] > 100, what="children to hit the probe")
        for _ in range(10):
            for line in self.tool("status", "-f", "json").stdout.splitlines():
                listed = json.loads(line)
                if listed["comm"] == "forker" and listed["pid"] != t.pid:
                    self.assertEqual(listed["probes"], [], line)
                    if not os.path.exists(f"/proc/{listed['pid']}/exe"):
                        continue  # its memory could not be read any more
                    self.assertEqual([(left["of"], left["fork_of"]) for left in listed["leftovers"]], [("fork", t.pid)], line)
        self.tool("detach", "--pid", t.pid)
        self.end(t)

    def test_exec_ends_them(self):
        t = self.program("execer", 0, "/bin/sleep", 300)
        self.leave(t, "--function", "foo")
        os.kill(t.pid, signal.SIGUSR1)
        wait_until(lambda: not any(m.is_ours for m in harness.maps(t.pid)), what="the program to call exec")
        self.assertEqual(self.states(t), {})
        self.assertIn("DP-NO-PROBE", self.tool("record", "--pid", t.pid, "--once", status=harness.OWN_FAILURE).stderr)

    def test_a_process_that_ends_while_it_is_recorded(self):
        t = self.spin()
        self.leave(t, "--function", "foo", "-t", "reg:edi")
        recorder = self.start_recorder(t)
        self.assert_result_ok(t)
        self.assertEqual(recorder.wait(300), 0, recorder.stderr.read())
        r = harness.Result(0, "", "", recorder.events)
        self.assertEqual(r.summary["ended_by"], "target exited")
        calls = [int(e["fields"]["edi"], 16) for e in r.events]
        self.assertEqual(calls, list(range(calls[0], calls[0] + len(calls))))

    def test_DP_MANIFEST_what_the_process_overwrites_costs_names_only(self):
        t = self.spin()
        before = State(t.pid)
        self.leave(t, "--function", "foo")
        self.assertEqual(self.scribble(t.pid, b'"probes":[', b'"probes":7,'), 1)
        self.assertIn("damaged", self.tool("status", "--pid", t.pid).stdout)
        for words in (("disable", "foo"), ("remove", "*"), ("add-context", "-e", "foo", "-t", "regs"), ("record", "--once")):
            p = self.tool(*words, "--pid", t.pid, status=harness.OWN_FAILURE)
            self.assertIn("DP-MANIFEST", p.stderr)
        self.tool("detach", "--pid", t.pid)
        self.end(t, before)

    def scribble(self, pid, old, new):
        """Overwrites the contents of our mappings in the process; returns how often."""
        done = 0
        for m in harness.maps(pid):
            if not m.is_ours or "w" not in m.perms:
                continue
            with open(f"/proc/{pid}/mem", "r+b", buffering=0) as f:
                f.seek(m.start)
                at = f.read(4 << 20).find(old)
                if at >= 0:
                    f.seek(m.start + at)
                    f.write(new)
                    done += 1
        return done

    def test_bytes_of_another_patcher_are_shown_and_left_alone(self):
        t = self.spin()
        self.leave(t, "--function", "main", "--function", "foo")  # main will not run again
        self.patch(t.pid, t.site("main"), b"\xcc")
        self.assertEqual(self.states(t), {"main": "retired", "foo": "enabled"})
        self.assertIn("DP-NO-PROBE", self.tool("add-context", "--pid", t.pid, "-e", "main", "-t", "regs", status=harness.OWN_FAILURE).stderr)
        self.tool("remove", "foo", "--pid", t.pid)
        self.tool("detach", "--pid", t.pid)
        self.assertEqual(harness.read_memory(t.pid, t.site("main"), 1), b"\xcc")
        self.assertEqual({a - t.site("main") for _, a in self.changed_addresses(t)} - set(range(5)), set())
        self.assert_result_ok(t)

    def changed_addresses(self, t):
        """Changed places in the program's own text, as addresses in the process."""
        first = next(m for m in harness.maps(t.pid) if m.path == os.path.realpath(t.path))
        return [(path, first.start - first.offset + offset) for path, offset in changed_text(t.pid)]

    def patch(self, pid, address, contents):
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as f:
            f.seek(address)
            f.write(contents)

    def test_a_recording_on_disk(self):
        if not harness.have("babeltrace2"):
            self.skipTest("babeltrace2 is not installed")
        t = self.spin()
        self.leave(t, "--function", "foo", "-t", "reg:edi", "--function", "caller")
        trace = self.path("trace")
        self.tool("record", "--pid", t.pid, "-q", "--record", trace, "-n", 100)
        self.assertEqual(len(harness.babeltrace(trace)), 100)

    def test_several_processes_at_once(self):
        a, b = self.spin(), self.spin()
        self.tool("attach", "--sink", "ring", "--pid", a.pid, "--pid", b.pid, "--function", "foo")
        self.assertEqual((self.states(a), self.states(b)), ({"foo": "enabled"}, {"foo": "enabled"}))
        seen = [json.loads(line)["pid"] for line in self.tool("status", "-f", "json").stdout.splitlines()]
        self.assertLessEqual({a.pid, b.pid}, set(seen))
        self.tool("remove", "foo", "--pid", b.pid)
        p = self.tool("remove", "foo", "--pid", a.pid, "--pid", b.pid, status=121)
        self.assertIn("DP-NO-PROBE", p.stderr)
        for t in (a, b):
            self.end(t)

    def test_a_process_in_which_nothing_could_be_placed_keeps_nothing(self):
        a, b = self.spin(), self.spin()
        before = State(b.pid)
        byte = harness.read_memory(b.pid, b.site(), 1)
        os.kill(b.pid, signal.SIGSTOP)
        wait_until(lambda: b.state() == "T", what="stop")
        self.patch(b.pid, b.site(), b"\xcc")
        p = self.tool("attach", "--sink", "ring", "--pid", b.pid, "--pid", a.pid, "--function", "foo", status=121)
        self.assertIn("DP-FOREIGN", p.stderr)
        self.assertIn(f"1 probe left in {a.pid}", p.stderr)
        self.assertIn(f"could be placed in {b.pid}", p.stderr)
        self.assertNotIn("0 probes left", p.stderr)
        self.assertIn("no resident probes", self.tool("detach", "--pid", b.pid).stderr)
        self.patch(b.pid, b.site(), byte)
        os.kill(b.pid, signal.SIGCONT)
        self.assertEqual(self.states(a), {"foo": "enabled"})
        self.tool("detach", "--pid", a.pid)
        self.end(a)
        self.end(b, before)

    def test_nothing_was_left(self):
        t = self.spin()
        before = State(t.pid)
        self.tool("attach", "--sink", "ring", "--pid", t.pid, "--function", "foo", "--dry-run")
        self.assertIn("0 probes", self.tool("status", "--pid", t.pid).stdout)
        self.tool("detach", "--pid", t.pid)
        for words in (("enable", "*"), ("record", "--once"), ("add-context", "-e", "foo", "-t", "regs")):
            p = self.tool(*words, "--pid", t.pid, status=harness.OWN_FAILURE)
            self.assertIn("DP-NO-PROBE", p.stderr)
        self.end(t, before)


@needs_root
class AsRoot(Verbs, Standing):
    def test_every_function_is_left_at_once_and_too_many_are_refused_untouched(self):
        t = self.spin()
        before = State(t.pid)
        private = harness.private_text_kib(t.pid)
        registers = [word for name in harness.REGISTERS for word in ("-t", f"reg:{name}")]
        p = self.leave(t, "--function", "*", *registers, "-t", "backtrace:16", "-t", "regs", status=harness.OWN_FAILURE, timeout=300)
        self.assertIn("too many", p.stderr)
        self.assertEqual((State(t.pid).differences(before), harness.private_text_kib(t.pid)), ({}, private))
        self.leave(t, "--function", "*", timeout=300)
        self.assertGreater(len(self.probes(t)), 2000)
        self.tool("detach", "--pid", t.pid, timeout=300)
        self.end(t, before)


@needs_root
@needs("setpriv")
class AsNobody(Verbs, Standing):
    prefix = harness.NOBODY


# The default form runs each test as one of the two users: as nobody what needs another system call on the process. One runs as both.
AS_NOBODY = """probes_stay_when_the_tool_is_gone_and_detach_leaves_a_clean_process disabled_probes_record_nothing_until_they_are_enabled
 add_context_lets_a_probe_record_more remove_takes_out_what_it_names many_threads fork_children_run_right_and_status_names_their_parent
 exec_ends_them a_killed_recorder_leaves_a_flight_recorder several_processes_at_once bytes_of_another_patcher_are_shown_and_left_alone
 ctrl_c_between_two_processes_takes_the_first_ones_probes_out_again DP_INTERRUPTED_ctrl_c_before_the_probes_stand_leaves_none
 a_process_that_ends_while_it_is_recorded a_process_in_which_nothing_could_be_placed_keeps_nothing""".split()
for test in () if harness.FULL else [name for name in vars(Verbs) if name.startswith("test_")]:
    if test.removeprefix("test_") not in AS_NOBODY:
        setattr(AsNobody, test, None)
    elif test.removeprefix("test_") != AS_NOBODY[0]:
        setattr(AsRoot, test, None)


if __name__ == "__main__":
    harness.main()
