# SPDX-License-Identifier: MIT
"""Drives gdb through scripts on a probed and on an unprobed program: it says the same, and the program's result is right."""

import functools
import os
import re
import shutil
import subprocess
import tempfile

import harness
from harness import Case, needs, wait_until

SCRIPT = os.path.join(harness.ROOT, "share", "dynprobe-gdb.py")
PROGRAM = """#include <stdio.h>
#define NOINLINE __attribute__((noinline))
volatile long total;
NOINLINE int leaf(int n)
{
	int twice = n * 2;
	total += twice;
	return twice + 1;
}
NOINLINE int middle(int n)
{
	int sum = leaf(n);
	sum += leaf(n + 1);
	return sum;
}
NOINLINE long recurse(int n)
{
	if (n == 0)
		return leaf(0);
	return n + recurse(n - 1);
}
NOINLINE int loop(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += leaf(i);
	return sum;
}
NOINLINE int through(int (*f)(int), int n)
{
	int got = f(n);
	return got + 1;
}
int main(void)
{
	long sum = 0;
	for (int i = 0; i < 20; i++) {
		sum += middle(i);
		sum += loop(3);
		sum += recurse(4);
		sum += through(leaf, i);
	}
	printf("RESULT %s\\n", sum == 1660 && total == 1300 ? "OK" : "BAD");
	return 0;
}
"""
EVERY = ("--no-trap --probe leaf:* --probe middle:* --function recurse --return recurse --function loop --return loop --probe through:* "
         "-t reg:rdi")
ENTRIES = "--function leaf --function middle --function recurse --function loop --function through"
# PROBE is where dynprobe attaches, in one of the two runs. After it, both say the same.
SCRIPTS = {
    "next": "PROBE; break leaf; c; next; next; next; next; next; next",
    "step": "PROBE; break middle; c; step; step; step; step; step; step; step",
    "step_out_of_a_line_with_calls": "PROBE; break main; next; step; step; step; step; step; finish; next; next",
    "breakpoints_set_before": "break leaf; break 13; break *leaf; c; PROBE; c; c; c; c; info break",
    "breakpoints_set_after": "PROBE; break leaf; break 13; break *leaf; c; c; c; c; info break",
    "probes_come_in_the_middle_of_a_function": "break 7; c; PROBE; next; next; next; next; c; bt",
    "probes_come_at_each_instruction": "break leaf; c; stepi; PROBE; bt; stepi; stepi; stepi; delete; next; bt",
    "conditions_and_counts": "PROBE; break leaf if n == 3; ignore 2 2; c; bt; c; info break",
    "temporary_breakpoints": "PROBE; tbreak 8; tbreak through; c; bt; c; bt; info break",
    "finish": "PROBE; break leaf; c; finish; c; finish; delete; break recurse if n == 1; c; finish; finish",
    "finish_of_an_outer_frame": "PROBE; break leaf; c; up; finish; next",
    "call": "PROBE; call leaf(5); call middle(3); print through(leaf, 2) + loop(4); print recurse(6); set var total = 0",
    "call_into_a_breakpoint": "PROBE; break leaf; call middle(1); bt; finish; delete; finish; bt; set var total = 0",
    "backtrace_and_frames": "PROBE; break leaf if n == 2; c; bt full; up; info locals; frame function main; info locals; down",
    "watchpoint": "PROBE; watch total; c; c; c; c; info watchpoints",  # where the write is not displaced: see below
    "watchpoint_on_a_local": "PROBE; break 7; c; watch twice; delete 2; c; c; c",
    "until_and_advance": "PROBE; break loop; c; next; next; until; until; next; advance 26; bt; until 9; delete; advance through; bt",
    "recursion": "PROBE; break 19; c; bt; finish; finish; up; up; info locals",
    "threads": "PROBE; break leaf; c; thread apply all bt; thread apply 1 next; thread 1; bt",
    "text_is_the_programs_own": "PROBE; disassemble middle; x/4i leaf; info line leaf; info symbol leaf; list leaf",
    "system_calls": "PROBE; catch syscall write; c; c; bt -3",
    "return": "PROBE; break through; c; return; bt",
    "probes_go_again": "PROBE; break leaf; break *middle; c; c; UNPROBE; next; next; c; bt; info break",
    "probes_change": "PROBE; break leaf; c; UNPROBE; PROBE; finish; next; c; bt",
}


AT_ENTRIES = ("watchpoint", "probes_come_at_each_instruction", "probes_come_in_the_middle_of_a_function")
# In these gdb needs no breakpoint of the processor's.
SOFTWARE = ("probes_come_in_the_middle_of_a_function", "probes_come_at_each_instruction", "call", "text_is_the_programs_own", "system_calls")
# The default form: of what gdb does in several scripts, one.
SHORT = (*SOFTWARE, "step_out_of_a_line_with_calls", "breakpoints_set_before", "breakpoints_set_after", "finish", "call_into_a_breakpoint", "watchpoint_on_a_local",
         "until_and_advance", "recursion", "probes_change")


def plain(text):
    """What two runs have in common."""
    text = re.sub(r"0x[0-9a-f]+", "0x", text[text.rindex("=====\n"):])
    text = re.sub(r"process \d+|LWP \d+", "process", text)
    return "".join(line for line in text.splitlines(True) if not line.startswith("Note: automatically using hardware"))


NO_HARDWARE = "programs here do not stop at the processor's breakpoints (some hypervisors, such as PVM, do not pass them on)"


@functools.cache
def hardware_breakpoints():
    """Whether a program stops at a breakpoint of the processor's, where dynprobe has no part in it."""
    with tempfile.TemporaryDirectory(prefix="dp-e2e-") as where:
        program = harness.compiled(os.path.join(where, "program"), "gcc", "-g", "-O0", text="int foo(void) { return 3; } int main(void) { return foo(); }")
        ex = [word for line in ("break main", "run", "hbreak foo", "continue") for word in ("-ex", line)]
        run = subprocess.run(["gdb", "-q", "-nx", "-batch", *ex, program], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=170,
                             env=harness.environment(DEBUGINFOD_URLS="", HOME=where))
        return "Breakpoint 2, foo" in run.stdout


@needs("gdb")
class GdbSession(Case):
    def start_gdb(self, *argv, **popen):
        env = harness.environment(DYNPROBE=harness.DYNPROBE, DEBUGINFOD_URLS="", HOME=self.dir, TMPDIR=self.dir)  # a killed gdb leaves files
        return subprocess.Popen(["gdb", "-q", "-nx", *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, env=env, **popen)

    def gdb(self, *argv):
        p = self.start_gdb("-batch", *argv)
        return p.communicate(timeout=170)[0]

    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp(prefix="dp-e2e-")
        cls.addClassCleanup(shutil.rmtree, cls.shared)

    def compiled(self, option):
        """The program, which all tests share."""
        program, source = os.path.join(self.shared, f"program{option}"), os.path.join(self.shared, "program.c")
        if not os.path.exists(program):
            with open(source, "w") as f:
                f.write(PROGRAM)
            harness.compiled(program, "gcc", "-g", option, source)
        return program

    def needs_hardware(self):
        if not hardware_breakpoints():
            self.skipTest(NO_HARDWARE)

    def session(self, program, commands, probes):
        """Starts gdb on the program, up to main; then come the commands."""
        lines = ["set width 0", "set python print-stack full", "break main", "run", "delete", "echo =====\\n"]
        for command in commands.split("; "):
            attach = [f"dynprobe attach {probes}", "echo =====\\n"]
            lines += {"PROBE": attach if probes else ["echo =====\\n"],
                      "UNPROBE": ["dynprobe detach", "echo =====\\n"] if probes else ["echo =====\\n"]}.get(command, [command])
        ex = [word for line in [*lines, "delete", "continue"] for word in ("-ex", line)]
        return self.start_gdb("-batch", "-x", SCRIPT, *ex, program)

    def both(self, commands, probes, option):
        program = self.compiled(option)
        sessions = [self.session(program, commands, p) for p in (None, probes)]
        without, probed = [p.communicate(timeout=170)[0] for p in sessions]
        self.assertIn("RESULT", without)
        if "UNPROBE" not in commands:
            self.assertRegex(probed, r"probes? left in \d+")
        if "automatically using hardware" in probed:
            self.needs_hardware()
        self.assertEqual(plain(without), plain(probed), probed)
        if "set var" not in commands and not commands.endswith("return; bt"):
            self.assertIn("RESULT OK", probed)

    def test_without_debug_information_of_the_probes_nothing_is_written_behind_a_jump(self):
        self.needs_hardware()
        program = self.compiled("-O0")
        out = self.gdb("-x", SCRIPT, "-ex", "break main", "-ex", "run", "-ex", "dynprobe attach " + EVERY, "-ex", "break leaf",
                       "-ex", "continue", "-ex", "info mem", "-ex", "delete", "-ex", "continue", program)
        self.assertRegex(out, r"(?m)^\d+ +y\s+0x\w+ 0x\w+ ro")
        self.assertIn("RESULT OK", out)

    def test_watchpoint_hit_by_a_displaced_instruction(self):
        """gdb stops behind the write, in the stub, and says whose. The values and the callers are the program's."""
        self.needs_hardware()
        out = self.gdb("-x", SCRIPT, "-ex", "break main", "-ex", "run", "-ex", "dynprobe attach --no-trap --probe leaf:*", "-ex", "watch total",
                       "-ex", "continue", "-ex", "continue", "-ex", "bt", "-ex", "next", "-ex", "delete", "-ex", "continue", self.compiled("-O0"))
        self.assertRegex(out, r"Old value = 0\nNew value = 2\n")
        self.assertRegex(out, r"in leaf\+0x\w+ \[dynprobe\]\n#0 .*leaf\+0x\w+ \[dynprobe\] \(\)\n#1 .*leaf \(n=\d\) at .*:\d\n#2 .*(middle|loop) \(")
        self.assertIn("RESULT OK", out)

    def test_five_breakpoints_on_probed_text_are_refused_by_gdb_and_the_program_goes_on(self):
        program = self.compiled("-O0")
        breaks = [word for f in ("leaf", "middle", "recurse", "loop", "through") for word in ("-ex", f"break *{f}")]
        out = self.gdb("-x", SCRIPT, "-ex", "break main", "-ex", "run", "-ex", "delete", "-ex", "dynprobe attach " + ENTRIES, *breaks,
                       "-ex", "continue", "-ex", "delete", "-ex", "continue", program)
        self.assertIn("too many hardware breakpoints", out)
        self.assertIn("RESULT OK", out)

    def test_breakpoint_on_an_instruction_that_runs_elsewhere(self):
        """In a window, the instructions behind the first one run in the stub only."""
        self.needs_hardware()
        text = "volatile int g; __attribute__((noinline)) int foo(int a) { int l = a * 3; g = l; return l + 1; }\n" \
               "int main(void) { int sum = 0; for (int i = 0; i < 9; i++) sum += foo(i); return sum != 117; }"
        program = harness.compiled(self.path("program"), "gcc", "-g", "-O0", text=text)
        out = self.gdb("-x", SCRIPT, "-ex", "break main", "-ex", "run", "-ex", "delete",
                       "-ex", "dynprobe attach --function foo --tactic window,jump -v", "-ex", "break *foo+4 if $edi == 3",
                       "-ex", "continue", "-ex", "print $edi", "-ex", "bt", "-ex", "delete", "-ex", "continue", program)
        self.assertIn("window", out)
        self.assertRegex(out, r"Breakpoint \d+, at 0x\w+, which runs in dynprobe's code now")
        self.assertIn("$1 = 3", out)
        self.assertRegex(out, r"foo\+0x0 \[dynprobe\] \(\)\n#1 .*foo \(.*\n#2 .*main \(")
        self.assertIn("exited normally", out)

    # -- a process that runs already

    def test_attached_gdb_works_around_probes_and_lets_go(self):
        """Each crossing of a breakpoint on a probe is a hit."""
        self.needs_hardware()
        t = self.target("spin", 0, 1000)
        commands = ("dynprobe attach --function foo -t reg:rdi", "break *foo", "ignore 1 20", "continue", "dynprobe status", "delete",
                    "dynprobe record --no-record", "detach")
        out = self.gdb("-p", str(t.pid), "-x", SCRIPT, *[word for c in commands for word in ("-ex", c)])
        self.assertRegex(out, r"Breakpoint 1, foo")
        self.assertRegex(out, r"foo +enabled")
        self.assertRegex(out, r"foo: rdi=")
        self.assertRegex(out, r"hits +20 +recorded 20 ")
        self.let_run(t)
        harness.tool("detach", "--pid", t.pid, status=0)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_many_threads(self):
        self.needs_hardware()
        t = self.target("threads")
        commands = ("dynprobe attach --function foo", "break foo", "continue", "continue", "continue", "delete", "dynprobe detach", "detach")
        out = self.gdb("-p", str(t.pid), "-x", SCRIPT, *[word for c in commands for word in ("-ex", c)])
        self.assertEqual(len(re.findall("hit Breakpoint 1, foo", out)), 3, out)
        self.let_run(t)
        self.assert_clean(t.pid)
        t.stop()
        self.assertIn("wrong 0", t.output())  # "interrupted" counts what any debugger interrupts

    def test_thread_and_frame_stay_selected_where_they_were(self):
        t = self.target("threads")
        where = ("thread", "frame", "print $pc")
        commands = ("thread 3", "up", *where, "echo =====\\n", "dynprobe attach --function foo", "echo =====\\n", *where)
        out = self.gdb("-p", str(t.pid), "-x", SCRIPT, *[word for c in commands for word in ("-ex", c)])
        before, _, after = (re.sub(r"\$\d+", "$", part) for part in out.split("=====\n"))
        after = re.sub(r"\[Inferior 1.*\n", "", after)
        self.assertTrue(after.strip() and before.endswith(after), out)

    def test_gdb_killed_while_dynprobe_works_does_not_leave_the_process_stopped(self):
        t = self.target("spin", 0, 1000)
        killer = self.written("killer", "#!/bin/sh\ncase $1 in attach) grep State /proc/$3/status >&2; kill -9 $PPID;; esac\n")
        os.chmod(killer, 0o755)
        p = self.start_gdb("-batch", "-p", str(t.pid), "-x", SCRIPT, "-ex", f"set dynprobe program {killer}", "-ex", "dynprobe attach")
        p.communicate(timeout=300)
        self.assertEqual(p.returncode, -9)
        wait_until(lambda: t.state() in "RS", what="the process to continue")
        self.let_run(t)
        self.assert_ok(self.attach(t, "--function", "foo", "-n", 1))
        self.assert_result_ok(t)

    def test_gdb_killed_in_a_probe_does_not_harm_the_program(self):
        t = self.target("stops")
        harness.tool("attach", "--pid", t.pid, "--no-trap", "--probe", "first:*", "--probe", "third:*", status=0)
        p = self.spawn("gdb", "-q", "-nx", "-p", t.pid, "-x", SCRIPT, "-ex", f"shell touch {self.path('done')}",
                       stdin=subprocess.PIPE, env=harness.environment(DYNPROBE=harness.DYNPROBE, DEBUGINFOD_URLS="", TMPDIR=self.dir))
        wait_until(lambda: os.path.exists(self.path("done")), what="gdb to stop it")
        p.kill()
        p.wait()
        self.let_run(t)
        harness.tool("detach", "--pid", t.pid, status=0)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_traps_are_said_before_they_kill(self):
        t = self.target("spin", 0, 100000)  # rare hits: gdb swallows that of the moment at which it attaches
        harness.tool("attach", "--pid", t.pid, "--function", "foo", "--tactic", "trap", status=0)
        out = self.gdb("-p", str(t.pid), "-x", SCRIPT, "-ex", "dynprobe detach", "-ex", "tbreak foo", "-ex", "continue")
        self.assertRegex(out, r"\d+ of the places are traps")
        self.assertIn("Temporary breakpoint 1, ", out)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    # -- what is refused leaves gdb with the process

    def refusal(self, *commands):
        t = self.target("spin", 0, 1000)
        out = self.gdb("-p", str(t.pid), "-x", SCRIPT, *[word for c in (*commands, "info inferiors") for word in ("-ex", c)])
        self.assertIn(f"process {t.pid}", out)
        self.assertFalse(t.patched())
        self.assert_clean(t.pid)
        self.assert_result_ok(t)
        return out

    def test_errors_of_dynprobe(self):
        out = self.refusal("dynprobe attach --function nosuch", "dynprobe status", "dynprobe attach --nosuch", "set dynprobe program /nosuch",
                           "dynprobe attach --function foo")
        self.assertIn("DP-NO-SYMBOL", out)
        self.assertIn("0 probes", out)
        self.assertIn("dynprobe attach failed; gdb has the process", out)
        self.assertIn("cannot run /nosuch", out)

    def test_signal_that_the_program_has_not_received(self):
        t = self.target("spin", 0, 1000)
        out = self.gdb("-p", str(t.pid), "-x", SCRIPT, "-ex", f"shell kill -WINCH {t.pid}", "-ex", "handle SIGWINCH stop", "-ex", "continue",
                       "-ex", "dynprobe attach --function foo", "-ex", "queue-signal 0", "-ex", "stepi", "-ex", "dynprobe attach --function foo")
        self.assertIn("has not received SIGWINCH yet", out)
        self.assertRegex(out, "1 probe left")

    def test_no_process_and_cores(self):
        self.assertIn("there is no process", self.gdb("-x", SCRIPT, "-ex", "dynprobe attach --function foo", "-ex", "dynprobe status"))

    def test_hold_off_lets_the_process_run_meanwhile(self):
        self.needs_hardware()
        t = self.target("spin", 0, 1000)
        out = self.gdb("-p", str(t.pid), "-x", SCRIPT, "-ex", "set dynprobe hold off", "-ex", "dynprobe attach --function foo",
                       "-ex", "break foo", "-ex", "continue")
        self.assertRegex(out, r"Breakpoint 1, foo")
        harness.tool("detach", "--pid", t.pid, status=0)
        self.assert_result_ok(t)


def script_test(name, option):
    def test(self):
        if name not in SOFTWARE:
            self.needs_hardware()
        self.both(SCRIPTS[name], ENTRIES if name in AT_ENTRIES else EVERY, option)

    return test


for name in SCRIPTS if harness.FULL else SHORT:
    setattr(GdbSession, "test_script_" + name, script_test(name, "-O0"))
for name in ("breakpoints_set_after", "finish") if harness.FULL else ("finish",):
    setattr(GdbSession, f"test_script_{name}_of_optimized_code", script_test(name, "-O2"))


if __name__ == "__main__":
    harness.main()
