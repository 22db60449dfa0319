# SPDX-License-Identifier: MIT
"""A private redis-server, at a port or at a socket, and redis-cli to query it."""

import re
import subprocess

from harness import free_port, wait_until


class RedisServer:
    def __init__(self, case, *args, socket=None, directory=None, **popen):
        self.case, self.dir = case, directory or case.dir
        port = 0 if socket else free_port()
        self.at = ("-s", socket) if socket else ("-p", str(port))
        where = ("--unixsocket", socket) if socket else ("--bind", "127.0.0.1")
        self.process = case.spawn("redis-server", "--port", port, *where, "--save", "", "--dir", self.dir, "--logfile", self.dir + "/log", *args, **popen)
        self.pid = self.process.pid
        case.addCleanup(self.say_how_it_ended)
        wait_until(lambda: self.process.poll() is not None or self.cli("ping") == "PONG", 30, "redis to answer")
        case.assertIsNone(self.process.poll(), "redis-server ended at once")

    def cli(self, *args, stdin=""):
        return subprocess.run(["redis-cli", *self.at, *args], capture_output=True, text=True, input=stdin, timeout=600).stdout.strip()

    def say_how_it_ended(self):
        if self.process.poll():
            with open(self.dir + "/log", errors="replace") as f:
                print(f"redis-server ended with {self.process.returncode}:\n{f.read()[-20000:]}", flush=True)

    def info(self, section, field):
        return re.search(rf"^{field}:(.*?)\r?$", self.cli("info", section), re.M)[1]
