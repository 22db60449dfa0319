#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Tests a signal at any moment of a run with 20,000 probes: dynprobe reports it at once, ends, and leaves nothing behind.

"At once" is a second on an idle machine. The load is measured beside each signal: how much longer than its processor time a
computation takes.
"""

import os
import signal
import socket
import subprocess
import threading
import time

import harness
from harness import Case, State, wait_until

ANSWER = 1.0  # seconds, on an idle machine
MOMENTS = 4 if not harness.FULL else 120
STEP = 2 if not harness.FULL else 6  # each of so many passes over the run takes its share of them
ENOUGH = 45 if not harness.FULL else 3600  # seconds: where placing 20,000 probes takes long, fewer moments are tried
HEARD = ("DP-INTERRUPTED", "dynprobe: interrupted: removing the probes placed so far", "dynprobe: removing ")


class Crowding:
    """Measures how many times longer than its processor time work takes, while the with-block runs."""

    def __init__(self):
        self.worst, self.over = 1.0, False
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.over:
            wall, cpu = time.monotonic(), time.thread_time()
            while time.thread_time() - cpu < 0.02:
                pass
            self.worst = max(self.worst, (time.monotonic() - wall) / 0.02)
            time.sleep(0.05)  # takes samples, but makes no load

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()


class Tool:
    """A run whose lines on standard error get the time at which they arrived."""

    def __init__(self, *args, env=None):
        self.begin = time.monotonic()
        self.process = subprocess.Popen([harness.DYNPROBE, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True, env=env or harness.environment())
        self.lines = []
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.lines.append((time.monotonic(), line))

    def said(self, *words):
        return next((at for at, line in list(self.lines) if any(w in line for w in words)), None)

    def text(self):
        return "".join(line for _, line in self.lines)

    def takes_signals(self):
        return int(harness.status(self.process.pid, "SigBlk"), 16) >> (signal.SIGTERM - 1) & 1

    def end(self, seconds):
        try:
            self.process.wait(seconds)
        finally:
            self.kill()
        return time.monotonic()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.reader.join()
        self.process.stderr.close()


class Phases(Case):
    speed = None

    def tool(self, t, *args, **kw):
        tool = Tool("--pid", t.pid, "--return", "*", "--count", "--no-record", *args, **kw)
        self.addCleanup(tool.kill)
        wait_until(lambda: tool.process.poll() is not None or tool.takes_signals(), what="the command to block signals")
        return tool

    def thousands(self):
        t = self.target("thousands", 3, 0)
        return t, State(t.pid)

    def answered(self, tool, sent, crowding, removal):
        """The tool reacts in time, and ends as soon as the probes can be removed."""
        end = tool.end(120)
        heard = tool.said(*HEARD)
        self.assertIsNotNone(heard, f"exit status {tool.process.returncode}: {tool.text()[-2000:]}")
        self.assertLess(heard - sent, ANSWER * crowding.worst, tool.text()[-2000:])
        self.assertLess(end - sent, (ANSWER + removal) * crowding.worst, tool.text()[-2000:])

    def reference(self, t):
        """Seconds until armed and for the removal, undisturbed: the machine's speed, measured once."""
        if not Phases.speed:
            r = self.attach(t, "--return", "*", "--count", "-d", "0.1", "-q")
            self.assert_ok(r)
            self.assertGreater(r.summary["placed"], 20000)
            Phases.speed = r.summary["attach_ns"] / 1e9, r.summary["detach_ns"] / 1e9
        return Phases.speed

    def clean(self, t, before):
        self.assert_clean(t.pid, before)
        self.assertTrue(t.alive())

    def test_at_many_moments(self):
        t, before = self.thousands()
        armed, removal = self.reference(t)
        seen, begin = set(), time.monotonic()
        for n, k in enumerate(sorted(range(MOMENTS), key=lambda k: (k % STEP, k))):  # from all over the run, also if they are fewer
            if n >= MOMENTS // STEP and time.monotonic() - begin > ENOUGH:
                break
            with Crowding() as crowding:
                tool = self.tool(t, "-d", "0.2")
                time.sleep(max(0, tool.begin + (armed + removal + 0.2) * k / MOMENTS - time.monotonic()))
                sent = time.monotonic()
                tool.process.send_signal(signal.SIGTERM)
                if tool.end(120) and tool.said("ended by  duration"):
                    continue  # it was ending already
                self.answered(tool, sent, crowding, removal)
            status = tool.process.returncode
            self.assertIn(status, (0, 128 + signal.SIGTERM), tool.text()[-2000:])
            self.assertEqual(status == 0, not tool.said("DP-INTERRUPTED"), tool.text()[-2000:])
            seen.add(status)
            self.clean(t, before)
        self.assertIn(128 + signal.SIGTERM, seen)
        self.assert_result_ok(t)

    def test_while_the_probes_are_placed(self):
        """As soon as one of our mappings exists."""
        t, before = self.thousands()
        _, removal = self.reference(t)
        for _ in range(5 if harness.FULL else 1):
            with Crowding() as crowding:
                tool = self.tool(t)
                wait_until(lambda: any(m.is_ours for m in harness.maps(t.pid)), what="the first mapping")
                sent = time.monotonic()
                tool.process.send_signal(signal.SIGINT)
                self.answered(tool, sent, crowding, removal)
            self.assertIn(tool.process.returncode, (0, 128 + signal.SIGINT), tool.text()[-2000:])
            if tool.process.returncode:
                self.assertRegex(tool.text(), "interrupted while installing probes in .* none was left")
            self.clean(t, before)
        self.assert_result_ok(t)

    def test_further_signals_while_they_go(self):
        t, before = self.thousands()
        _, removal = self.reference(t)
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if harness.FULL else (signal.SIGTERM,):
            with Crowding() as crowding:
                tool = self.tool(t)
                self.await_armed(tool.process, t.pid)
                sent = time.monotonic()
                tool.process.send_signal(signal.SIGINT)
                wait_until(lambda: tool.said(*HEARD), what="the message that it detaches")
                while tool.process.poll() is None:
                    tool.process.send_signal(sig)
                    time.sleep(0.01)  # a hundred signals a second
                self.answered(tool, sent, crowding, removal)
            # on a busy machine the first probes are installed long before the last ones
            self.assertIn(tool.process.returncode, (0, 128 + signal.SIGINT, 128 + sig), tool.text()[-2000:])
            self.clean(t, before)
        self.assert_result_ok(t)

    def test_a_command_that_waits_to_be_armed_dies_with_its_run(self):
        before = set(harness.children(os.getpid()))
        tool = Tool("--return", "*", "--count", "--no-record", "--", harness.target_path("thousands"), "5", "0")
        self.addCleanup(tool.kill)
        wait_until(lambda: tool.process.poll() is not None or tool.takes_signals(), what="the command to block signals")
        command = wait_until(lambda: harness.children(tool.process.pid), what="the command")[0]
        sent = time.monotonic()
        with Crowding() as crowding:
            tool.process.send_signal(signal.SIGTERM)
            self.answered(tool, sent, crowding, 0)
        self.assertEqual(tool.process.returncode, 128 + signal.SIGTERM)
        wait_until(lambda: not os.path.exists(f"/proc/{command}"), what="the end of the command, for which the tool does not wait")
        self.assertEqual(set(harness.children(os.getpid())), before)

    @harness.needs("gcc")
    def test_a_step_that_does_not_end(self):
        """A debuginfod server that accepts the request and never answers."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            source = self.written("bare.c", '#include <stdio.h>\n#include <unistd.h>\nint main(void)\n{\n\tputs("READY"), fflush(stdout);\n\tfor (;;)\n\t\tpause();\n}\n')
            t = self.target(harness.compiled(self.path("bare"), "gcc", "-s", "-Wl,--build-id", source))
            before = State(t.pid)
            env = harness.environment(DEBUGINFOD_URLS=f"http://127.0.0.1:{server.getsockname()[1]}", DEBUGINFOD_CACHE_PATH=self.path("cache"))
            tool = Tool("--pid", t.pid, "--probe", "bare.c:5", "--no-record", env=env)
            self.addCleanup(tool.kill)
            server.settimeout(60)
            connection, _ = server.accept()
            with connection, Crowding() as crowding:
                sent = time.monotonic()
                tool.process.send_signal(signal.SIGTERM)
                self.answered(tool, sent, crowding, 0)
        self.assertEqual(tool.process.returncode, 128 + signal.SIGTERM)
        self.clean(t, before)


if __name__ == "__main__":
    harness.main()
