# SPDX-License-Identifier: MIT
"""Tests the LTTng sink in a process of a container, with the session daemon outside, inside, or out of its sight."""

import os

import containers
import harness
import lttng_env
from harness import tool, wait_until
from test_containers import Containers

UST = "/usr/lib/x86_64-linux-gnu/liblttng-ust.so.1"
SOCKETS = [("/run", "/run"), ("/run", "/var/run"), ("/dev/shm", "/dev/shm")]


@harness.unittest.skipUnless(os.path.exists(UST), "liblttng-ust is not installed")
class LttngContainers(lttng_env.Case, Containers):
    def ust_container(self, **spec):
        """A container with liblttng-ust in its image."""
        return self.container("spin", 0, 500, more=[(f, f) for f in {UST, *containers.needed_files(UST)}], **spec)

    def probed(self, t, **kw):
        return tool("--pid", t.pid, "--function", "foo", "-t", "reg:rdi", "--session", "mine", "--set-url", "file://" + self.path("mine"), "-d", 1, **kw)

    def assert_events(self, t):
        before = harness.State(t.pid)
        self.probed(t, status=0)
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
