# SPDX-License-Identifier: MIT
"""Tests the LTTng sink in a process of a container, with the session daemon outside, inside, or out of its sight."""

import os
import signal
import subprocess

import containers
import harness
import lttng_env
import lttng_probe
from harness import tool, wait_until
from test_containers import Containers

UST = "/usr/lib/x86_64-linux-gnu/liblttng-ust.so.1"
DAEMON = ["/usr/bin/lttng-sessiond", "/usr/bin/lttng", "/usr/lib/x86_64-linux-gnu/lttng/libexec/lttng-consumerd"]
XSD = "/usr/share/xml/lttng/session.xsd"
SOCKETS = [("/run", "/run"), ("/run", "/var/run"), ("/dev/shm", "/dev/shm")]


@harness.unittest.skipUnless(os.path.exists(UST), "liblttng-ust is not installed")
class LttngContainers(lttng_probe.Case, Containers):
    def ust_container(self, also=(), **spec):
        """A container with liblttng-ust in its image."""
        return self.container("spin", 0, 500, more=[(f, f) for f in {UST, *containers.needed_files(UST), *also}], **spec)

    def words(self):
        return "--function", "foo", "-t", "reg:rdi", "--session", "mine", "--set-url", "file://" + self.path("mine")

    def probed(self, t, **kw):
        return tool("--pid", t.pid, *self.words(), "-d", 1, **kw)

    def assert_events(self, t):
        before = harness.State(t.pid)
        with self.running(t, *self.words()) as r:
            wait_until(lambda: any("dynprobe:foo" in events for events in self.listed().values()), what="the event")  # of the program's own pid inside
            self.let_run(t)
        self.assert_ok(r)
        events = self.read(self.path("mine"), name="dynprobe:foo")
        self.assertGreater(len(events), 0)
        self.assertIn("rdi", events[0].fields)
        self.assertEqual(before.changed_text, harness.changed_text(t.pid))
        self.let_run(t)

    def test_daemon_outside_whose_sockets_are_mounted(self):
        self.sessiond()
        self.assert_events(self.ust_container(binds=SOCKETS))

    def test_daemon_outside_and_docker_s_seccomp_filter(self):
        self.sessiond()
        self.assert_events(self.ust_container(binds=SOCKETS, filters=[containers.docker_default()]))

    def inside(self, t, *command, **kw):
        """Runs a command in the container's namespaces."""
        argv = ["env", "-i", "HOME=/tmp", "PATH=/usr/bin:/bin", "nsenter", "-t", str(t.pid), "-a", *command]
        return subprocess.run(argv, capture_output=True, text=True, timeout=300, **kw)

    @harness.unittest.skipUnless(all(map(os.path.exists, DAEMON)), "the session daemon is not installed")
    def test_daemon_inside(self):
        files = {f for program in DAEMON for f in [program, *containers.needed_files(program)]} | {XSD, "/etc/passwd", "/etc/group"}
        t = self.ust_container(also=files, run=True, binds=[("/dev", "/dev")])
        self.spawn("env", "-i", "HOME=/tmp", "nsenter", "-t", t.pid, "-a", DAEMON[0], "--no-kernel")
        lttng = lambda *args: self.inside(t, DAEMON[1], *args)
        wait_until(lambda: lttng("list").returncode == 0, what="the session daemon")
        p = self.spawn(harness.DYNPROBE, "--pid", t.pid, "--function", "foo", "-t", "reg:rdi", "--sink", "lttng")
        wait_until(lambda: "dynprobe:foo" in lttng("list", "-u").stdout or p.poll() is not None, what="the event")
        for args in ["create", "mine", "--output=/tmp/mine"], ["enable-event", "-u", "dynprobe:*"], ["start"]:
            self.assertEqual(lttng(*args).returncode, 0)
        self.let_run(t)
        self.assertEqual(lttng("destroy").returncode, 0)
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(300), 0)
        self.assertGreater(len(self.read(f"/proc/{t.pid}/root/tmp/mine", name="dynprobe:foo")), 0)

    def test_daemon_out_of_its_sight_is_named(self):
        self.sessiond()
        p = self.probed(self.ust_container())
        self.assertIn("lttng-ust-sock", p.stderr)
        self.assertIn("mount /var/run/lttng", p.stderr)

    def test_refuse_DP_SINK_filter_that_may_kill_lttng_s_threads(self):
        self.sessiond()
        t = self.ust_container(binds=SOCKETS, filters=[containers.denies([(101, containers.KILL)])])
        p = self.probed(t, status=harness.OWN_FAILURE)
        self.assertIn("DP-SINK", p.stderr)
        self.assertIn("some call kills the process", p.stderr)
        wait_until(lambda: t.alive(), what="the program to be there")
        self.let_run(t)


if __name__ == "__main__":
    lttng_env.main()
