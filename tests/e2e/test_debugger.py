# SPDX-License-Identifier: MIT
"""Tests gdb on a probed process: at every instruction of a stub the backtrace is the program's own, and stubs have names."""

import json
import os
import re
import signal
import subprocess

import binutils
import harness
from harness import Case, needs, wait_until

SCRIPT = os.path.join(harness.ROOT, "share", "dynprobe-gdb.py")
STEPPER = os.path.join(harness.ROOT, "tests", "e2e", "gdb_steps.py")
CHAIN = ["third", "second", "first", "main"]
# No traps: a debugger that steps over a trap swallows its signal, and the program dies (docs/guarantees.md, a later debugger).
PROBES = ("--no-trap", "--probe", "first:*", "--probe", "second:*", "--probe", "third:*")


@needs("gdb")
class Debugger(Case):
    def gdb(self, t, *args, stubs=True, timeout=300, **env):
        argv = ["gdb", "-q", "-nx", "-batch", "-p", str(t.pid), *(["-x", SCRIPT] if stubs else []), *args]
        p = subprocess.run(argv, capture_output=True, text=True, timeout=timeout,
                           env=harness.environment(DYNPROBE=harness.DYNPROBE, DEBUGINFOD_URLS="", **env))
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        return p.stdout

    def steps(self, t, n, **kw):
        """The backtraces at n instructions in a row."""
        out = self.path("steps")
        self.gdb(t, "-x", STEPPER, STEPS=str(n), OUT=out, **kw)
        with open(out) as f:
            return [json.loads(line) for line in f]

    def places(self, t):
        """The program's instructions, {address: (function, whether a call is in front of it)}, and {function: address}."""
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", t.path], capture_output=True, text=True, check=True).stdout
        bias = t.site("main") - harness.symbol_address(t.path, "main")
        function, found, called = None, {}, False
        for line in text.splitlines():
            head, insn = re.match(r"([0-9a-f]+) <(.*)>:", line), re.match(r" +([0-9a-f]+):\t(\S+)", line)
            if head:
                function, called = head[2], False
                found[function] = int(head[1], 16) + bias
            elif insn:
                found[int(insn[1], 16) + bias] = (function, called)
                called = insn[2] == "call"
        return found

    def check(self, t, at_ret, frames, places):
        """Checks that a backtrace equals the program's own. Returns the names of our frames in it."""
        ours = [name for name, pc in frames if name and "[dynprobe" in name]
        program = frames[len(ours):]
        if not ours and program[0][1] not in places:  # at an embedded jump between two instructions (docs/debuggers.md)
            return ours
        names = [name for name, pc in program]
        self.assertEqual([name for name, pc in frames[:len(ours)]], ours, frames)
        self.assertIn(names, [CHAIN[i:] for i in range(len(CHAIN))], frames)
        for name, pc in program[1:]:
            self.assertEqual(places[pc], (name, True), frames)
        if ours:
            function, offset = re.match(r"(\w+)\+0x([0-9a-f]+) \[dynprobe( jump)?\]$", ours[-1]).groups()[:2]
            site, caller = places[function] + int(offset, 16), program[0]
            if at_ret and len(ours) == 1 and names[0] != function:  # a displaced ret: gdb recognises it, and omits the function
                self.assertEqual((names, places[caller[1]]), (CHAIN[CHAIN.index(function) + 1:], (caller[0], True)), frames)
            else:  # the displaced instruction, or the next one if that has run
                self.assertIn(caller[1] - site, range(16), frames)
                self.assertEqual((caller[0], places[caller[1]][0]), (function, function), frames)
        return ours

    def check_all(self, t, steps):
        places = self.places(t)
        return [ours for ours in (self.check(t, at_ret, frames, places) for at_ret, frames in steps) if ours]

    def attached(self, *args):
        t = self.target("stops")
        p = harness.tool("attach", "--pid", t.pid, *args)
        self.assertIn(p.returncode, (0, harness.EXIT_PARTIAL), p.stderr)
        return t

    def hold(self, n, *args):
        """dynprobe drains the events meanwhile, so that the functions that stubs call take few steps."""
        t = self.target("stops")
        p = self.start_attached(t, *args, "-o", "/dev/null", json_events=False)
        seen = self.check_all(t, self.steps(t, n))
        r = self.finish(p)
        self.assertIn(r.status, (0, harness.EXIT_PARTIAL), str(r))
        self.assertGreater(len(seen), n // 2)  # in named code: most steps must be there
        self.assert_clean(t.pid)
        self.assert_result_ok(t)
        return seen

    def test_every_instruction_of_stubs(self):
        sites = set()  # a tool without a processor drains no events: then the functions that stubs call take most of the steps
        for _ in range(8):
            sites |= {ours[-1] for ours in self.hold(700, *PROBES, "-t", "reg:rdi", "-t", "reg:rsp")}
            if len(sites) > 4:
                break
        self.assertGreater(len(sites), 4)

    def test_stubs_with_conditions(self):
        self.hold(300, *PROBES, "-t", "reg:rdi", "--when", "(rdi & 3) == 1 && rax != 5")

    def test_the_code_that_stubs_call(self):
        seen = self.hold(700, *PROBES, "-t", "regs", "-t", "backtrace:3")
        self.assertIn("dp_agent_backtrace [dynprobe]", {name for ours in seen for name in ours})

    def test_two_groups_and_several_probes_at_a_place(self):
        t = self.attached(*PROBES, "--return", "third", "--name", "again", "--function", "third")
        subprocess.run([harness.DYNPROBE, "attach", "--pid", str(t.pid), "--function", "main", "--return", "first"], capture_output=True, timeout=300)
        self.assertGreater(len(self.check_all(t, self.steps(t, 400))), 100)

    def test_source_lines_of_what_is_probed(self):
        """The frame after the stub's is the function itself, with its line and its arguments."""
        t = self.target("stops")
        p = self.start_attached(t, "--function", "third", "-t", "reg:rdi", "-o", "/dev/null", json_events=False)
        for i in range(50):
            lines = [line for line in self.gdb(t, "-ex", "bt").splitlines() if line.startswith("#")]
            if "[dynprobe" in lines[0]:
                break
        while "[dynprobe" in lines[1]:
            lines.pop(0)
        self.assertRegex(lines[0], r"third\+0x0 \[dynprobe( jump)?\] \(\)")
        self.assertRegex(lines[1], r"third \(a=.*stops\.c:\d+")
        self.assertRegex(lines[2], r"second \(a=.*stops\.c:\d+")
        self.assert_ok(self.finish(p))

    def test_names_come_and_go_with_the_probes(self):
        t = self.target("stops")
        count = "python print('files', gdb.execute('info files', to_string=True).count('stubs-'))"
        self.assertIn("files 0", self.gdb(t, "-ex", count))
        subprocess.run([harness.DYNPROBE, "attach", "--pid", str(t.pid), *PROBES], capture_output=True, timeout=300)
        self.assertNotIn("files 0", self.gdb(t, "-ex", count))

    def test_without_the_file_walks_end_or_go_astray_but_nothing_breaks(self):
        t = self.attached(*PROBES, "-t", "reg:rdi")
        steps = self.steps(t, 200, stubs=False)
        self.assertIn(None, {frames[0][0] for at_ret, frames in steps})
        subprocess.run([harness.DYNPROBE, "detach", "--pid", str(t.pid)], capture_output=True, timeout=300)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    # -- breakpoints on what dynprobe watches

    def test_breakpoint_on_a_watched_probe_does_not_retire_it(self):
        t = self.target("spin", 0, 1000, prefix=("setarch", "-R"))  # at every address a jump would not fit, and gdb kills at traps
        p = self.start_attached(t, "--no-trap", "--return", "caller")
        ret = binutils.offsets(t.path, "caller")[-1]  # one byte: nothing of the jump is left but what gdb restores
        gdb = self.spawn("gdb", "-q", "-nx", "-p", t.pid, "-ex", f"break *((char *)caller + {ret}) if 0", "-ex", "continue",
                         stdin=subprocess.PIPE, env=harness.environment(DEBUGINFOD_URLS=""))
        wait_until(lambda: harness.read_memory(t.pid, t.site("caller") + ret, 1) == b"\xcc", what="the breakpoint")
        rounds = lambda: int(harness.status(p.pid, "voluntary_ctxt_switches"))
        before = rounds()
        wait_until(lambda: rounds() > before + 100, what="dynprobe to look several times")
        gdb.send_signal(signal.SIGINT)
        gdb.communicate(b"delete\ndetach\nquit\n", timeout=300)
        if p.poll() is not None:
            self.fail(str(self.finish(p, None)))
        self.await_events(p, "caller_return", 5)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertNotIn("DP-FOREIGN", str(r.told) + r.err)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    # -- under another tracer

    @needs("strace")
    def test_what_only_reads_works_under_another_tracer(self):
        t = self.target("spin", 0, 1000)
        harness.tool("attach", "--pid", t.pid, "--function", "foo", status=0)
        tracer = self.strace(t)
        self.assertIn("enabled", harness.tool("status", "--pid", t.pid, status=0).stdout)
        harness.tool("disable", "foo", "--pid", t.pid, status=0)
        self.assertIn("disabled", harness.tool("status", "--pid", t.pid, status=0).stdout)
        harness.tool("enable", "foo", "--pid", t.pid, status=0)
        self.let_run(t)
        self.assertIn("] foo", harness.tool("record", "--once", "--no-record", "--pid", t.pid, status=0).stdout)
        harness.tool("attach", "--pid", t.pid, "--function", "caller", "--dry-run", status=0)
        p = harness.tool("detach", "--pid", t.pid, status=harness.OWN_FAILURE)
        self.assertIn(f"process {tracer.pid} (strace)", p.stderr)
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
        harness.tool("detach", "--pid", t.pid, status=0)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    # -- the command

    def stubs(self, *args):
        p = harness.tool("stubs", *args)
        return harness.Result(p.returncode, p.stdout, p.stderr)

    def test_DP_NO_PROBE_without_probes(self):
        t = self.target("stops")
        self.assert_refused(self.stubs("--pid", t.pid, "-o", self.path("x")), "DP-NO-PROBE")
        self.assertFalse(os.path.exists(self.path("x")))

    def test_wrong_usage(self):
        self.assert_refused(self.stubs("--pid", os.getpid()), "DP-USAGE", "-o")
        self.assert_refused(self.stubs("-o", "x"), "DP-USAGE", "--pid")

    def test_nothing_is_stopped_or_changed(self):
        t = self.attached(*PROBES)
        os.kill(t.pid, 19)
        wait_until(lambda: t.state() == "T", what="the stop")
        before = harness.State(t.pid)
        r = self.stubs("--pid", t.pid, "-o", self.path("stubs.so"))
        self.assert_ok(r)
        self.assertEqual(before.differences(harness.State(t.pid)), {})
        self.assertEqual(t.state(), "T")
        names = binutils.said("nm", self.path("stubs.so"))
        self.assertIn("third+0x0 [dynprobe]", names)
        frames = subprocess.run(["readelf", "--debug-dump=frames", self.path("stubs.so")], capture_output=True, text=True)
        self.assertEqual((frames.returncode, frames.stderr), (0, ""))


if __name__ == "__main__":
    harness.main()
