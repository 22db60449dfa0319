# SPDX-License-Identifier: MIT
"""Tests events over the network: LTTng's relay daemon writes them, or serves them live while the probe runs."""

import os
import re
import subprocess

import harness
import lttng_env
import lttng_probe
from harness import wait_until


class Relay(lttng_probe.WithDaemon):
    def relayed(self):
        """The trace directories that the relay daemon has written."""
        return [d for d, _, files in os.walk(self.path("relay")) if "metadata" in files]

    def said(self, text):
        return re.search(r"(?m)^dynprobe: to view them: (.*)$", text)[1]

    def test_a_run_is_streamed_and_complete(self):
        self.relayd()
        p = self.tool("-c", f"{harness.target_path('spin')} 2000 50", "--function", "foo", "-t", "reg:edi", "-t", "backtrace", "--set-url", "net://127.0.0.1")
        self.assertIn("RESULT OK", p.stdout)
        self.assertIn("127.0.0.1, where lttng-relayd writes it", self.said(p.stderr))
        self.assertEqual(self.calls(self.read(*self.relayed(), name="dynprobe:foo")), list(range(2000)))
        self.assertEqual(self.sessions(), {})

    def test_attach_and_rotate(self):
        self.relayd()
        t = self.spin()
        self.leave(t, "--function", "foo", "-t", "reg:edi", "--set-url", "net://127.0.0.1/here", session="far")
        self.let_run()
        self.lttng("rotate", "far")
        self.let_run()
        self.end(t)
        self.lttng("stop", "far")
        self.lttng("destroy", "far")
        self.assertTrue(all("/here" in d for d in self.relayed()), self.relayed())
        self.assert_contiguous(self.calls(self.read(*self.relayed(), name="dynprobe:foo")))

    def test_read_live_while_the_probe_runs(self):
        self.relayd()
        t = self.spin(delay=1000)
        with self.running(t, "--function", "foo", "-t", "reg:edi", "--session", "now", "--live=200ms") as r:
            wait_until(lambda: "to view them" in self.so_far(), 30, "dynprobe to print how to read the session")
            url = re.search(r"babeltrace2 --input-format=lttng-live (\S+)", self.said(self.so_far()))[1]
            reader = lttng_env.LiveReader(url, self.path("live.txt"))
            self.addCleanup(reader.stop)
            wait_until(lambda: len(reader.events("dynprobe:foo")) > 200, 60, "events, live:\n")
            during = len(reader.events("dynprobe:foo"))
            wait_until(lambda: len(reader.events("dynprobe:foo")) > during + 200, 60, "more of them")
        self.assert_ok(r)
        wait_until(lambda: reader.process.poll() is not None, 60, "the reader to see the end of the session")
        self.assertEqual(reader.process.returncode, 0, reader.text()[-2000:])
        live = self.calls(reader.events("dynprobe:foo"))
        stored = self.calls(self.read(*self.relayed(), name="dynprobe:foo"))
        self.assert_contiguous(stored)
        self.assertEqual(live, stored[-len(live) :])
        self.assert_result_ok(t)

    def so_far(self):
        with open(self.path("foreground.err"), errors="replace") as f:
            return f.read()

    def test_live_with_a_probe_that_comes_and_goes(self):
        """The reader connects first; the event class that it learns of later is new in the trace."""
        self.relayd()
        self.session("now", "dynprobe:*", create=["--live=200000", "--set-url=net://127.0.0.1"])
        t = self.spin(delay=1000)
        reader = self.live_reader("now")
        listed = lambda: subprocess.run(["babeltrace2", "-i", "lttng-live", "net://localhost"], capture_output=True, text=True, timeout=300).stdout
        wait_until(lambda: re.search(r"/now \(.*\b1 client\(s\) connected", listed()), what=lambda: f"the reader to connect:\n{listed()}")
        for name, field in (("foo", "edi"), ("caller", "esi"), ("foo", "rdi")):
            seen = len(reader.events("dynprobe:" + name))
            self.leave(t, "--function", name, "-t", "reg:" + field, session="now")
            wait_until(lambda: len([e for e in reader.events("dynprobe:" + name)[seen:] if field in e.fields]) > 100, 60, f"{name} with {field}, live")
            self.tool("remove", name, "--pid", t.pid)
        self.end(t)
        self.lttng("stop", "now")
        self.lttng("destroy", "now")
        reader.process.wait(300)
        live = reader.events()
        first = self.calls([e for e in live if e.name == "dynprobe:foo" and "edi" in e.fields])
        self.assert_contiguous(first)
        self.assert_contiguous([e.fields["rdi"] & 0xFFFFFFFF for e in live if "rdi" in e.fields])
        self.assertEqual(len(live), len(self.read(*self.relayed())))

    def test_DP_LTTNG_no_relay_daemon(self):
        t = self.spin()
        before = harness.State(t.pid)
        for verb in ([], ["attach"]):
            for options in (["--set-url", "net://127.0.0.1"], ["--live"]):
                p = self.tool(*verb, "--pid", t.pid, "--function", "foo", *options, status=harness.OWN_FAILURE)
                self.assertIn("DP-LTTNG", p.stderr)
                self.assertIn("lttng-relayd", p.stderr)
        self.assertEqual(self.sessions(), {})
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    def test_a_relay_daemon_that_dies_harms_nobody(self):
        relayd = self.relayd()
        t = self.spin()
        with self.running(t, "--function", "foo", "-t", "reg:edi", "--session", "far", "--set-url", "net://127.0.0.1") as r:
            self.let_run()
            relayd.kill()
            self.let_run()
        self.assertIn(r.status, (0, harness.OWN_FAILURE), str(r))
        self.assertEqual(harness.changed_text(t.pid), [])
        self.session("near")
        self.leave(t, "--function", "foo", "-t", "reg:edi", session="near")
        self.let_run()
        self.end(t)
        self.assert_contiguous(self.calls(self.events("near")))


if __name__ == "__main__":
    lttng_env.main(network=True)
