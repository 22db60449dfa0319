# SPDX-License-Identifier: MIT
"""Tests what dynprobe refuses: with a tag and a remedy, before anything changes."""

import os
import signal
import subprocess

import harness
from harness import Case, State, needs, needs_root, wait_until


class Refusals(Case):
    def spin(self, *args, **kw):
        return self.target("spin", *(args or (0, 1000)), **kw)

    def test_no_process(self):
        p = subprocess.Popen(["true"])
        p.wait()
        self.assert_refused(self.dynprobe("--pid", p.pid, "--function", "foo"), "DP-NO-PROCESS", p.pid)

    def test_zombie(self):
        p = subprocess.Popen(["true"])
        wait_until(lambda: harness.status(p.pid, "State")[0] == "Z", what="zombie")
        self.assert_refused(self.dynprobe("--pid", p.pid, "--function", "foo"), "DP-ZOMBIE")
        p.wait()

    @needs_root
    def test_kernel_thread(self):
        if harness.status(2, "Name") != "kthreadd":
            self.skipTest("pid 2 is not a kernel thread here")
        self.assert_refused(self.dynprobe("--pid", 2, "--function", "foo"), "DP-KERNEL-THREAD")

    def test_32_bit_process(self):
        try:
            t = self.target("tiny32")
        except OSError:
            self.skipTest("this kernel does not run 32-bit programs")
        before = State(t.pid)
        self.assert_refused(self.attach(t, "--probe", "0x8049000"), "DP-32BIT")
        self.assertEqual(before.differences(State(t.pid)), {})

    def assert_traced(self, t, tracer, *words):
        before = harness.status(t.pid, "TracerPid")
        self.assertEqual(before, str(tracer.pid))
        self.assert_refused(self.attach(t, "--function", "foo"), "DP-TRACED", tracer.pid, *words)
        self.assertEqual(harness.status(t.pid, "TracerPid"), before)
        self.assertFalse(t.patched())

    @needs("strace")
    def test_already_traced_names_the_tracer(self):
        t = self.spin()
        tracer = self.strace(t)
        self.assert_traced(t, tracer, "(strace): end it with Ctrl-C")
        tracer.send_signal(signal.SIGINT)  # as the message says
        tracer.wait()
        self.assert_ok(self.attach(t, "--function", "foo", "-n", 1))
        self.assert_result_ok(t)

    @needs("gdb")
    def test_traced_by_gdb_says_what_to_type_there(self):
        t = self.spin()
        tracer = self.spawn("gdb", "-q", "-nx", "-p", t.pid, stdin=subprocess.PIPE, env=harness.environment(DEBUGINFOD_URLS=""))
        wait_until(lambda: harness.status(t.pid, "TracerPid") == str(tracer.pid), what="gdb to attach")
        self.assert_traced(t, tracer, "(gdb): type 'dynprobe attach' there", "dynprobe-gdb.py", "'detach'")
        tracer.stdin.write(b"detach\n")
        tracer.stdin.flush()
        wait_until(lambda: harness.status(t.pid, "TracerPid") == "0", what="gdb to detach")
        self.assert_ok(self.attach(t, "--function", "foo", "-n", 1))
        self.assert_result_ok(t)

    @needs_root
    @needs("strace")
    def test_DP_TRACED_from_another_pid_namespace(self):
        outer = self.target("spin", prefix=("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"))
        pid = int(harness.children(outer.pid)[0])
        tracer = self.spawn("strace", "-qq", "-f", "-o", os.devnull, "-p", pid)
        wait_until(lambda: harness.status(pid, "TracerPid") == str(tracer.pid), what="strace to attach")
        inside = ("nsenter", "--target", str(pid), "--pid", "--mount")
        self.assert_refused(self.dynprobe("--pid", 1, "--function", "foo", prefix=inside), "DP-TRACED", "namespace", "reads as 0")
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
        self.assert_ok(self.dynprobe("--pid", 1, "--function", "foo", "-n", 1, prefix=inside))

    def test_seccomp_filter(self):
        t = self.target("caged", ready="CAGED")
        before = State(t.pid)
        self.assert_refused(self.attach(t, "--function", "foo"), "DP-SECCOMP", "--allow-seccomp")
        self.assertEqual(before.differences(State(t.pid)), {})
        self.assert_result_ok(t)

    @needs_root
    def test_seccomp_filter_with_allow_seccomp(self):
        t = self.target("caged", ready="CAGED")
        before = State(t.pid)
        r = self.attach(t, "--function", "foo", "--allow-seccomp", "-n", 20)
        self.assert_ok(r)
        self.assert_hits(r, 20)
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    @needs_root
    def test_seccomp_filter_is_asked_for_nothing_by_a_condition(self):
        t = self.target("caged", ready="CAGED")
        before = State(t.pid)
        for when in ("*(int *)rsi == 1", 'comm == "caged"'):
            self.assert_refused(self.attach(t, "--function", "foo", "--allow-seccomp", "--when", when, "-n", 1), "DP-SECCOMP", "memory")
        self.assertEqual(before.differences(State(t.pid)), {})
        self.assert_result_ok(t)

    @needs_root
    @needs("setpriv")
    def test_no_permission_names_the_rule(self):
        t = self.spin()
        before = State(t.pid)
        p = harness.tool("--no-record", "--pid", t.pid, "--function", "foo", "-n", 1, prefix=harness.NOBODY, binary=self.for_nobody("dynprobe"),
                         env=harness.environment(HOME=self.dir), status=harness.OWN_FAILURE)
        self.assertIn("DP-PERMISSION", p.stderr)
        self.assertRegex(p.stderr, r"uid|owner|user")
        self.assertEqual(before.differences(State(t.pid)), {})

    @needs_root
    @needs("setpriv")
    def test_a_process_that_proc_hides_is_not_said_to_be_missing(self):
        t = self.spin()
        mount = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"'
        prefix = ["unshare", "--mount", "sh", "-c", mount, "sh", *harness.NOBODY]
        for pid, tag, words in ((t.pid, "DP-PERMISSION", f"process {t.pid} exists"), (0x3FFFFFFF, "DP-NO-PROCESS", "there is no process")):
            p = harness.tool("--no-record", "--pid", pid, "--function", "foo", "-n", 1, prefix=prefix, binary=self.for_nobody("dynprobe"),
                             env=harness.environment(HOME=self.dir), status=harness.OWN_FAILURE)
            self.assertIn(tag, p.stderr)
            self.assertIn(words, p.stderr)

    @needs_root
    @needs("setpriv")
    def test_unprivileged_user_probes_own_process(self):
        t = self.target(self.for_nobody("spin"), 0, 500, prefix=harness.NOBODY)
        p = harness.tool("--no-record", "--pid", t.pid, "--function", "foo", "-n", 10, prefix=harness.NOBODY, binary=self.for_nobody("dynprobe"),
                         env=harness.environment(HOME=self.dir), status=0)
        self.assertGreaterEqual(p.stdout.count("] foo"), 10)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_a_second_dynprobe_is_told_of_the_first(self):
        t = self.spin()
        first = self.start_attached(t, "--function", "foo")
        self.assert_refused(self.attach(t, "--function", "caller", "-n", 1), "DP-LOCKED", first.pid)
        r = self.finish(first)
        self.assert_hits(r)
        self.assert_clean(t.pid)
        self.assert_ok(self.attach(t, "--function", "caller", "-n", 1))

    @needs_root
    def test_foreign_bytes(self):
        """Another tool's breakpoint at the site: its bytes stay as they are."""
        t = self.spin()
        site = t.site()
        byte = harness.read_memory(t.pid, site, 1)
        os.kill(t.pid, signal.SIGSTOP)
        wait_until(lambda: t.state() == "T", what="stop")
        with open(f"/proc/{t.pid}/mem", "r+b", buffering=0) as f:
            f.seek(site)
            f.write(b"\xcc")
            self.assert_refused(self.attach(t, "--function", "foo", "-n", 1), "DP-FOREIGN")
            self.assertEqual(harness.read_memory(t.pid, site, 1), b"\xcc")
            f.seek(site)
            f.write(byte)
        os.kill(t.pid, signal.SIGCONT)
        self.assert_result_ok(t)

    def test_vfork_parent_is_waited_for_with_a_bound(self):
        t = self.target("vforker", 3600000)
        wait_until(lambda: t.state() == "D", what="the vfork")
        r = self.attach(t, "--function", "foo", "-n", 1)
        self.assert_refused(r, "DP-VFORK")
        t.process.kill()

    def test_vfork_parent_is_not_waited_for_at_the_end_either(self):
        """Another thread's hits are recorded; what cannot be unmapped while the parent waits is left for the next dynprobe."""
        t = self.target("vforker", 3600000, "calls")
        wait_until(lambda: t.state() == "D", what="the vfork")
        r = self.attach(t, "--function", "foo", "-n", 5)
        self.assertEqual(len(r.events), 5, str(r))
        self.assertIn("DP-VFORK", r.err)
        self.assertIn("waits for its vfork child and cannot be stopped; dynprobe waited 10 s for that", r.err)
        t.process.kill()

    def test_what_cannot_be_removed_is_not_called_unchanged(self):
        """A trap needs all threads, and so does the removal of what was mapped for it. Each process is named with its own reason."""
        first, second = (self.target("vforker", 3600000, "calls") for _ in range(2))
        wait_until(lambda: first.state() == second.state() == "D", what="the vforks")
        r = self.dynprobe("--pid", f"{first.pid},{second.pid}", "--function", "foo", "--tactic", "trap", "-n", 5)
        self.assert_refused(r, "DP-TRAP-UNSAFE", "none of the probes could be placed; what was mapped for them does nothing, but cannot be removed yet")
        self.assertNotIn("unchanged", r.err)
        for t in (first, second):
            self.assertIn(f"what dynprobe mapped in process {t.pid} cannot be removed yet: thread {t.pid} of process {t.pid} ", r.err)
            self.assertIn(f"dynprobe detach --pid {t.pid} removes it later", r.err)
            self.assertTrue([m for m in harness.maps(t.pid) if m.is_ours], "nothing is left")
            t.process.kill()

    def test_vfork_parent_that_returns_in_time_is_probed(self):
        t = self.target("vforker", 150)
        for _ in range(3):
            r = self.attach(t, "--function", "foo", "-n", 2)
            self.assert_ok(r)
            self.assert_hits(r, 2)
        self.assert_result_ok(t)

    def test_wrong_usage(self):
        for argv in (["--pid", "1"], ["--function", "main"], ["--pid", "x", "--function", "f"], ["--pid", str(os.getpid()), "--wrong"], ["-n"],
                     ["--pid", "1", "--function", "main", "-c", "ls", "-f", "xml"]):
            with self.subTest(argv):
                p = harness.tool(*argv, status=harness.OWN_FAILURE)
                self.assertIn("DP-", p.stderr)

    def test_help_and_version(self):
        for option, word in (("--help", "--function"), ("--version", "dynprobe")):
            p = harness.tool(option, status=0)
            self.assertIn(word, p.stdout)

    def test_explain(self):
        p = harness.tool("explain", "DP-FOREIGN", status=0)
        self.assertIn("detach the other tool", p.stdout)

    def test_DP_STRIPPED_for_a_name_that_the_program_has_lost(self):
        """The reason and the way to symbols, not the advice for libraries that are loaded later."""
        program = harness.compiled(self.path("bare"), "gcc", "-s", text="#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
        bare = self.target(program, ready=None)
        wait_until(lambda: bare.blocked_in(34), what="pause()")
        for probe in (("--function", "exec_simple_query"), ("--return", "exec_simple_query"), ("--function", "bare!exec_simple_query")):
            r = self.dynprobe("--pid", bare.pid, *probe)
            self.assert_refused(r, "DP-STRIPPED", "bare (build-id", "is stripped", "DEBUGINFOD_URLS")
            self.assertNotIn("--pending", r.err)
        r = self.dynprobe("--pid", bare.pid, "--function", "mallok")
        self.assert_refused(r, "DP-STRIPPED", "did you mean libc.so.6!malloc", "? bare (build-id")


if __name__ == "__main__":
    harness.main()
