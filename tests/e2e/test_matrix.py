# SPDX-License-Identifier: MIT
"""Tests every way to probe, in both orders, on servers under load: answers are right, and nothing is left behind."""

import itertools
import os
import signal
import subprocess

import harness
import lttng_env
import lttng_probe
import servers
from harness import wait_until

WAYS = {
    "register": lambda f: ("--function", f, "-t", "reg:rsi", "--sink", "ring"),
    "pointer": lambda f: ("--function", f, "-t", "str((char*)$rsi, 8)", "--sink", "ring"),
    "duration": lambda f: ("--return", f, "-t", "duration", "--sink", "ring"),
    "wildcard": lambda f: ("--function", "libc.so.6!mem*", "--count"),
    "syscalls": lambda f: ("--syscall", "*", "--count"),
    "snapshot": lambda f: ("--function", f, "--snapshot", "--max-snapshots", "1", "--sink", "ring"),
    "session": lambda f: ("--function", f, "-t", "reg:rsi", "--session", "s"),
}
ENDS = ("by itself", "interrupted", "killed")
ROUNDS = len(ENDS) if harness.FULL else 1
SERVERS = servers.ALL if harness.FULL else servers.SOME
PLAN = (*WAYS, "pointer", "register")  # the default form: each server has a part of it, and each entry is in one server at least
PART = 3


class Felt:
    """What a run must leave unchanged. A server's threads, mappings and files come and go: ours must not stay."""

    def __init__(self, pid):
        self.text = harness.changed_text(pid)
        self.signals = {f: harness.status(pid, f) for f in ("SigIgn", "TracerPid")}
        self.caught = harness.caught(pid)
        self.ours = sorted(m.path + m.perms for m in harness.maps(pid) if m.is_ours)
        self.threads = sorted(n for n in self.names(pid) if n.startswith("dynprobe") or n.endswith("-ust"))
        self.fds = sorted(f for f in self.files(pid) if "dynprobe" in f or "lttng" in f)

    @staticmethod
    def names(pid):
        for tid in os.listdir(f"/proc/{pid}/task"):
            name = harness.status(f"{pid}/task/{tid}", "Name")
            if name:
                yield name

    @staticmethod
    def files(pid):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                yield os.readlink(f"/proc/{pid}/fd/{fd}")
            except OSError:
                pass


class Matrix(lttng_probe.WithDaemon):
    def setUp(self):
        super().setUp()
        self.session("s", "dynprobe:*", channel=("--subbuf-size=64K", "--num-subbuf=4", "--tracefile-size=512K", "--tracefile-count=2"))

    def run_one(self, server, pid, words, end):
        """One run, during which the server answers; returns its output."""
        argv = [harness.DYNPROBE, "--pid", str(pid), *words, *(["-d", "0.4"] if end == "by itself" else [])]
        with open(self.path("run.err"), "w+b") as err:
            p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err, cwd=self.dir, env=self.root.env())
            if end != "by itself":
                self.await_armed(p, pid)
                self.await_answers(server)
                p.send_signal(signal.SIGKILL if end == "killed" else signal.SIGINT)
            status = p.wait(300)
            err.seek(0)
            said = err.read().decode(errors="replace")
        if end == "killed" and status < 0:
            done = harness.tool("detach", "--pid", pid, status=0)
        else:
            self.assertIn(status, (0, 130, -signal.SIGINT), said)
        return said

    def await_answers(self, server):
        before = server.answers
        wait_until(lambda: server.answers > before + 3 or server.wrong, 60, "answers")

    def debuggers_come_and_go(self, pid):
        size_kib = int(harness.status(pid, "VmSize").split()[0])
        for argv in (["gdb", "-nx", "-batch", "-p", str(pid), "-ex", "bt 1"], ["gcore", "-o", self.path("core"), str(pid)]):
            if harness.have(argv[0]) and (argv[0] == "gdb" or size_kib < 1 << 24):  # a browser reserves a tebibyte of addresses
                subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, cwd=self.dir)
                self.assertEqual(harness.status(pid, "TracerPid"), "0")

    def all_ways(self, server):
        ends = itertools.cycle(ENDS)
        first = SERVERS.index(type(server)) * PART % len(PLAN)
        for way in itertools.chain(*([*WAYS, *reversed(WAYS)] for _ in range(ROUNDS))) if harness.FULL else PLAN[first:first + PART]:
            pid, end = server.pid(), next(ends)
            before = Felt(pid)
            with self.subTest(server=type(server).__name__, way=way, end=end):
                said = self.run_one(server, pid, WAYS[way](server.hot), end)
                self.assertIsNone(server.process.poll(), f"the server ended\n{server.said()}\n{said}")
                self.assertEqual(server.wrong, [], said)
                after = Felt(pid)
                if way == "session":
                    after.ours, after.threads, after.fds = before.ours, before.threads, before.fds  # the guest stays
                self.assertEqual(vars(after), vars(before), said)
        self.debuggers_come_and_go(server.pid())
        self.await_answers(server)
        self.assertEqual(server.wrong, [])
        self.assertIn(server.end(), server.ended_well, server.said())


def test_of(kind):
    def test(self):
        missing = kind.missing()
        if missing:
            self.skipTest(f"{', '.join(missing)} not installed")
        self.all_ways(kind(self))

    return test


for kind in SERVERS:
    setattr(Matrix, f"test_{kind.__name__.lower()}", test_of(kind))

if __name__ == "__main__":
    lttng_env.main()
