# SPDX-License-Identifier: MIT
"""Tests events that go to another machine: LTTng's relay daemon has a network namespace of its own, at the other end of a cable.

The test's own namespace is the machine whose programs are probed; a second one, with another host name, is the collector.
"""

import os
import re
import socket
import subprocess

import harness
import lttng_env
import lttng_probe
from harness import wait_until

HERE, COLLECTOR = "10.77.0.1", "10.77.0.2"
LINK, FAR_END = "dp-here", "dp-far"


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True, timeout=300)


class Collector:
    """Another machine as far as its network and its name go."""

    def __init__(self, case):
        self.process = subprocess.Popen(["unshare", "--net", "--uts", "sh", "-c", "hostname collector; echo ready; exec sleep inf"], stdout=subprocess.PIPE)
        case.addCleanup(lambda: (self.process.kill(), self.process.wait(), self.process.stdout.close()))
        self.process.stdout.readline()
        case.addCleanup(lambda: ip("link", "del", LINK))
        made = ip("link", "add", LINK, "type", "veth", "peer", "name", FAR_END, "netns", str(self.process.pid))
        if made.returncode != 0:
            case.skipTest("no virtual ethernet: " + made.stderr.strip())
        for words in (["addr", "add", HERE + "/24", "dev", LINK], ["link", "set", LINK, "up"]):
            ip(*words)
        for words in (["addr", "add", COLLECTOR + "/24", "dev", FAR_END], ["link", "set", FAR_END, "up"], ["link", "set", "lo", "up"]):
            subprocess.run([*self.inside(), "ip", *words], check=True, timeout=300)

    def inside(self):
        """The beginning of a command that runs there."""
        return ["nsenter", "-t", str(self.process.pid), "--net", "--uts"]


class Network(lttng_probe.WithDaemon):
    def setUp(self):
        super().setUp()
        self.collector = Collector(self)

    def relayd(self, user=None):
        output = self.path("relay")
        urls = [x for o, port in (("-C", 5342), ("-D", 5343), ("-L", 5344)) for x in (o, f"tcp://{COLLECTOR}:{port}")]
        daemon = self.start_daemon([*self.collector.inside(), "lttng-relayd", "-o", output, *urls], user or self.root)
        wait_until(lambda: all(self.reached(port) for port in (5342, 5343, 5344)), 30, "the relay daemon to listen")
        return daemon

    def reached(self, port):
        with socket.socket() as s:
            s.settimeout(1)
            return s.connect_ex((COLLECTOR, port)) == 0

    def relayed(self):
        return [d for d, _, files in os.walk(self.path("relay")) if "metadata" in files]

    def there(self, *command):
        p = subprocess.run([*self.collector.inside(), *command], capture_output=True, text=True, timeout=300)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout

    def test_the_machines_are_two(self):
        self.assertEqual(self.there("hostname").strip(), "collector")
        self.relayd()
        self.assertFalse(harness.listens(5342))
        self.assertIn(f"{COLLECTOR}:5342", self.there("ss", "-tln"))

    def test_the_command_of_the_page_of_many_machines(self):
        self.relayd()
        t = self.spin(delay=1000)
        with self.running(t, "--function", "foo", "-t", "args", "--session", "fleet", "--set-url", f"net://{COLLECTOR}") as r:
            self.let_run()
        self.assert_ok(r)
        self.assertIn(COLLECTOR, r.err)
        self.assert_clean_text(t)
        # one directory for each machine that sends
        self.assertTrue(self.relayed())
        self.assertTrue(all(f"/{socket.gethostname()}/fleet" in d for d in self.relayed()), self.relayed())
        self.assert_contiguous(self.calls(self.read(*self.relayed(), name="dynprobe:foo"), "a"))
        self.assertIn("dynprobe:foo", self.there("babeltrace2", self.path("relay")))

    def test_read_live_on_the_collector(self):
        self.relayd()
        t = self.spin(delay=1000)
        seen = self.path("live.txt")
        with self.running(t, "--function", "foo", "-t", "reg:edi", "--session", "now", "--live=200ms", "--set-url", f"net://{COLLECTOR}") as r:
            wait_until(lambda: "to view them" in self.so_far(), 30, "dynprobe to print how to read the session")
            url = re.search(r"to view them: babeltrace2 --input-format=lttng-live (\S+)", self.so_far())[1]
            self.assertIn(COLLECTOR, url)
            with open(seen, "wb") as out:
                reader = subprocess.Popen([*self.collector.inside(), *lttng_env.READ, "--input-format=lttng-live", url], stdout=out, stderr=out)
            self.addCleanup(lambda: (reader.poll() is None and reader.kill(), reader.wait()))
            wait_until(lambda: self.lines(seen) > 200, 60, "events, live")
        self.assert_ok(r)
        reader.wait(300)
        self.assertEqual(reader.returncode, 0)
        with open(seen) as f:
            self.assert_contiguous([int(x, 16) if x.startswith("0x") else int(x) for x in re.findall(r"edi = (\w+)", f.read())])

    def so_far(self):
        with open(self.path("foreground.err"), errors="replace") as f:
            return f.read()

    @staticmethod
    def lines(path):
        with open(path) as f:
            return f.read().count("name = dynprobe:foo")

    def test_a_cable_that_is_pulled_harms_nobody(self):
        """The collector can be reached no more: the program goes on, its text is restored, and dynprobe says what it waited for."""
        self.relayd()
        t = self.spin(delay=1000)
        with self.running(t, "--function", "foo", "-t", "reg:edi", "--session", "far", "--set-url", f"net://{COLLECTOR}") as r:
            self.let_run()
            ip("link", "set", LINK, "down")
            self.let_run()
        self.assertEqual(r.status, harness.OWN_FAILURE, str(r))
        # LTTng's daemon is asked, and answers or is stuck with its own end of the cable
        self.assertRegex(r.err, rf"error: (the data of the session 'far' is still being written to net://{COLLECTOR}|.*waits for a relay daemon).*\[DP-LTTNG\]")
        self.assert_clean_text(t)


if __name__ == "__main__":
    lttng_env.main(network=True)
