# SPDX-License-Identifier: MIT
"""Tests dynprobe doctor: it says what a machine, a user and a process allow, agrees with attach, and touches nothing."""

import os

import harness
from harness import Case, EXIT_PARTIAL, OWN_FAILURE, State, needs, needs_root


class Doctor(Case):
    def findings(self, *args, status=0, **kw):
        return harness.objects(harness.tool("doctor", "-f", "json", *args, status=status, **kw).stdout)

    def of_process(self, pid, status=0, **kw):
        """Subject to finding."""
        return {f["subject"]: f for f in self.findings(pid, status=status, **kw) if f.get("pid") == pid}

    def agrees(self, t, tag, **kw):
        """Doctor and attach refuse the process with the same tag."""
        found = self.of_process(t.pid, status=OWN_FAILURE if tag else 0, **kw)["attach"]
        self.assertEqual((found["health"], found.get("tag")), ("no", tag) if tag else ("ok", None))
        p = harness.tool("--no-record", "--pid", t.pid, "--function", "foo", "-n", 1, **kw)
        self.assertEqual(p.returncode, OWN_FAILURE if tag else 0, p.stderr)
        self.assertEqual(f"[{tag}]" in p.stderr, bool(tag), p.stderr)

    def test_the_machine(self):
        found = {f["subject"]: f for f in self.findings()}
        self.assertEqual(found["kernel"]["health"], "ok")
        self.assertLessEqual({"user", "ptrace_scope", "seccomp", "profile", "off_cpu", "program", "memfd", "lttng", "tsc", "debuginfod"}, set(found))
        for f in found.values():
            self.assertIn(f["health"], ("ok", "note", "no"))
            self.assertTrue(f["health"] == "ok" or "remedy" in f or "tag" in f or f["subject"] == "seccomp", f)
        text = harness.tool("doctor", status=0).stdout
        self.assertRegex(text, r"\Athis machine and user\n  ok    kernel +Linux ")
        self.assertEqual(len([line for line in text.splitlines() if line[2:6].strip() in ("ok", "note", "no")]), len(found))

    @needs_root
    @needs("setpriv")
    def test_off_cpu_as_profile_has_it(self):
        """Root may, an ordinary user at level 2 may not: doctor and the profile agree."""
        nobody = {"prefix": harness.NOBODY, "binary": self.for_nobody("dynprobe"), "env": harness.environment(HOME=self.dir)}
        t = self.target(self.for_nobody("spin"), 0, 1000, prefix=harness.NOBODY)
        found = {f["subject"]: f for f in self.findings(**nobody)}
        p = harness.tool("--pid", t.pid, "--profile", "off-cpu", "-d", "0.2", **nobody)
        self.assertEqual(found["off_cpu"]["health"], "ok" if p.returncode == 0 else "note", (found["off_cpu"], p.stderr))
        self.assertEqual({f["subject"]: f for f in self.findings()}["off_cpu"]["health"], "ok")

    def test_a_process_that_is_as_it_should_be(self):
        t = self.target("spin", 0, 1000)
        before = State(t.pid)
        found = self.of_process(t.pid)
        self.assertEqual({f["health"] for f in found.values()}, {"ok"}, found)
        self.assertLessEqual({"attach", "user", "seccomp", "shadow_stack", "memory", "profile", "dynprobe", "program", "symbols", "debug_info", "text"}, set(found))
        self.assertIn("spin, build ID ", found["program"]["text"])
        self.assertEqual(before.differences(State(t.pid)), {})
        log = self.path("calls")
        harness.tool("doctor", t.pid, prefix=("strace", "-f", "-o", log, "-e", "trace=ptrace,process_vm_writev"), env=harness.environment(ASAN_OPTIONS="detect_leaks=0"), status=0)
        with open(log) as f:
            self.assertNotIn("PTRACE_SEIZE", f.read())
        self.agrees(t, None)
        self.assert_result_ok(t)

    def test_a_stripped_and_a_static_program(self):
        source = '#include <stdio.h>\n#include <unistd.h>\nint main(void) { puts("READY"); fflush(stdout); for (;;) pause(); }\n'
        bare = self.of_process(self.target(harness.compiled(self.path("bare"), "gcc", "-s", text=source)).pid)
        self.assertEqual([bare[k]["health"] for k in ("attach", "symbols", "debug_info")], ["ok", "note", "note"])
        self.assertEqual(bare["debug_info"]["tag"], "DP-NO-DEBUG-INFO")
        static = self.of_process(self.target(harness.compiled(self.path("static"), "gcc", "-static", text=source)).pid)
        self.assertIn("no dynamic loader", static["static"]["text"])

    @needs("strace")
    def test_a_traced_process(self):
        t = self.target("spin", 0, 1000)
        self.strace(t)
        self.agrees(t, "DP-TRACED")

    def test_a_process_that_another_dynprobe_works_on(self):
        t = self.target("spin", 0, 1000)
        first = self.start_attached(t, "--function", "foo")
        self.agrees(t, "DP-LOCKED")
        self.assert_ok(self.finish(first))

    def test_a_process_under_a_strict_filter(self):
        t = self.target("caged", ready="CAGED")
        found = self.of_process(t.pid, status=None)
        self.assertIn(found["seccomp"]["health"], ("note", "no"))
        self.assertIn("DP-SECCOMP", found["seccomp"].get("tag", "") + found["seccomp"]["text"])
        self.assert_refused(self.attach(t, "--function", "foo"), "DP-SECCOMP")

    @needs_root
    @needs("setpriv")
    def test_what_another_user_may(self):
        nobody = {"prefix": harness.NOBODY, "binary": self.for_nobody("dynprobe"), "env": harness.environment(HOME=self.dir)}
        self.agrees(self.target("spin", 0, 1000), "DP-PERMISSION", **nobody)
        own = self.target(self.for_nobody("spin"), 0, 1000, prefix=harness.NOBODY)
        if not os.path.exists("/proc/sys/kernel/yama/ptrace_scope"):
            self.agrees(own, None, **nobody)
        found = {f["subject"]: f for f in self.findings(**nobody)}
        self.assertEqual((found["user"]["health"], found["program"]["tag"]), ("note", "DP-PERMISSION"))
        self.assertIn("nobody (uid 65534), capabilities: none", found["user"]["text"])

    def test_probes_of_an_earlier_command(self):
        t = self.target("spin", 0, 1000)
        harness.tool("attach", "--pid", t.pid, "--function", "foo", "--sink", "ring", status=0)
        found = self.of_process(t.pid)["dynprobe"]
        self.assertEqual(found["health"], "note")
        self.assertIn(f"dynprobe detach --pid {t.pid}", found["remedy"])
        harness.tool("detach", "--pid", t.pid, status=0)
        self.assertEqual(self.of_process(t.pid)["dynprobe"]["health"], "ok")

    def test_several_processes_and_none(self):
        a, b = self.target("spin", 0, 1000), self.target("spin", 0, 1000)
        first = self.start_attached(b, "--function", "foo")
        found = self.findings(f"{a.pid},{b.pid}", status=EXIT_PARTIAL)
        self.assertEqual([f["health"] for f in found if f["subject"] == "attach"], ["ok", "no"])
        self.assert_ok(self.finish(first))
        a.stop()
        self.assertIn("DP-NO-PROCESS", harness.tool("doctor", a.pid, status=OWN_FAILURE).stdout)


if __name__ == "__main__":
    harness.main()
