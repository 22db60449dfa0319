# SPDX-License-Identifier: MIT
"""Tests a program after LTTng was in it: debuggers and other probes work, and every loss was reported."""

import os
import pwd
import resource
import signal
import subprocess

import harness
import lttng_env
import lttng_probe
from harness import needs

POINTER = "str((char*)$rsi, 8)"


class After(lttng_probe.WithDaemon):
    def setUp(self):
        super().setUp()
        self.session("s", "dynprobe:*")

    def run_for_a_moment(self, t, *args, sink=("--session", "s")):
        with self.running(t, "--function", "foo", *args, *sink) as r:
            if sink:
                self.wait_listed(t.pid, "dynprobe:foo")
            self.let_run(t)
        self.assert_ok(r)

    def looks_in(self, t, *argv):
        """A debugger on this machine that has a pipe open at every low descriptor number."""
        ends = [os.pipe() for _ in range(8)]
        fds = [fd for pair in ends for fd in pair]
        try:
            p = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, pass_fds=fds, cwd=self.path(""))
        finally:
            for fd in fds:
                os.close(fd)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        return p.stdout

    @needs("gdb")
    def test_debuggers_attach_and_let_go(self):
        t = self.spin()
        self.run_for_a_moment(t, "-t", "reg:edi")
        self.assertIn("main (argc", self.looks_in(t, "gdb", "-nx", "-batch", "-p", str(t.pid), "-ex", "thread apply all bt"))
        self.looks_in(t, "gcore", "-o", self.path("core"), str(t.pid))
        for other in (["eu-stack", "-p"], ["lsof", "-p"]):
            if harness.have(other[0]):
                self.looks_in(t, *other, str(t.pid))
        self.assertNotEqual(self.events(), [])
        self.assert_result_ok(t)

    def test_pointer_probes_and_lttng_in_turns(self):
        """The guest's threads, too, have the signals that a fault handler takes."""
        t = self.spin()
        for _ in range(2):
            self.run_for_a_moment(t, "-t", "reg:edi")
            self.run_for_a_moment(t, "-t", POINTER, sink=())
            self.assertEqual(harness.changed_text(t.pid), [])
            self.run_for_a_moment(t, "-t", POINTER)
        self.assertEqual(harness.changed_text(t.pid), [])
        self.assertNotEqual(self.events(), [])
        self.assert_result_ok(t)

    def test_nothing_is_left_in_a_program_whose_frames_cannot_be_followed(self):
        """As in a JIT's code: the threads' own counters show that they are in no hit."""
        t = self.target("generated")
        with self.running(t, "--function", "foo", "-t", "reg:edi", "--session", "s") as r:
            self.let_run(t)
            os.kill(t.pid, signal.SIGUSR1)
            self.let_run(t)
        self.assertNotIn("stay in the target", r.err)
        self.assertEqual(harness.changed_text(t.pid), [])
        self.assertNotEqual(self.events(), [])
        self.assert_result_ok(t)


class Limits(lttng_probe.WithDaemon):
    """What does not fit into the program is refused or counted, and is undone."""

    def setUp(self):
        super().setUp()
        self.session("s", "dynprobe:*")

    def alone(self):
        """A user without other processes."""
        uid = 60000 + os.getpid() % 5000
        return lttng_env.User(self.path("alone"), pwd.struct_passwd(("alone", "x", uid, uid, "", "/", "/bin/sh")))

    def run_within(self, kind, soft, user=None):
        """Returns the run, and the mappings that it left in the program."""
        hard = resource.getrlimit(kind)[1]
        t = self.spin(user=user, **({"preexec_fn": lambda: resource.setrlimit(kind, (soft, hard))} if user else {}))
        before = {m.key() for m in harness.maps(t.pid)}
        if not user:
            was = resource.prlimit(t.pid, kind, (soft, hard))
        p = self.run_tool("--pid", t.pid, "--function", "foo", "-t", "reg:edi", "--session", "s", "-d", 1)
        if not user:  # its final output goes to a file
            resource.prlimit(t.pid, kind, was)
        self.assertEqual(harness.changed_text(t.pid), [])
        left = {m.path or m.perms for m in harness.maps(t.pid) if m.key() not in before and (m.is_ours or (m.perms == "r--p" and not m.path))}
        self.assert_result_ok(t)
        return p, left

    def assert_counted(self, p, *why):
        """No event reaches the session, and dynprobe reports that, with the reason."""
        self.assertEqual(p.returncode, harness.EXIT_PARTIAL, p.stderr)
        self.assertRegex(p.stderr, r"not enabled in the LTTng session [1-9][0-9]{2}")
        for word in why:
            self.assertIn(word, p.stderr)

    def test_no_descriptor_for_lttng(self):
        p, _ = self.run_within(resource.RLIMIT_NOFILE, 12)
        self.assert_counted(p, "12 descriptors", "RLIMIT_NOFILE")

    def test_no_thread_for_lttng(self):
        """The sink's own thread can be created, LTTng's cannot."""
        p, _ = self.run_within(resource.RLIMIT_NPROC, 2, self.alone())
        self.assert_counted(p, "RLIMIT_NPROC")

    def test_no_thread_at_all(self):
        p, left = self.run_within(resource.RLIMIT_NPROC, 1, self.alone())
        self.assertEqual((p.returncode, left), (harness.OWN_FAILURE, set()), p.stderr)

    def test_no_file_may_grow(self):
        p, left = self.run_within(resource.RLIMIT_FSIZE, 0)
        self.assertEqual((p.returncode, left), (harness.OWN_FAILURE, set()), p.stderr)


if __name__ == "__main__":
    lttng_env.main()
