# SPDX-License-Identifier: MIT
"""Programs under their own load, for run_snapshot.py --program; their answers are checked all the time."""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.request

PYTHON = "/usr/bin/python3"
PYTHON_SCRIPT = r"""
import hashlib, json, sys, threading
def work(seed):
    d = {str(i): [i * 0.5, "x" * (i % 17), {"k": i ^ seed}] for i in range(2000)}
    return hashlib.sha256(json.dumps(d, sort_keys=True).encode()).hexdigest()
def rounds(seed):
    while not ended.is_set():
        sys.stdout.write(f"{seed} {work(seed)}\n")  # at once: print() would let the others in between
        sys.stdout.flush()
ended = threading.Event()
threads = [threading.Thread(target=rounds, args=(seed,)) for seed in range(4)]
[t.start() for t in threads]
sys.stdin.read()
ended.set()
"""
SQLITE_SCRIPT = """CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 20000) INSERT INTO t SELECT i, printf('row %d', i * 7919 % 10007), i / 3.0 FROM n;
CREATE INDEX ti ON t(b);
SELECT count(*), sum(a), total(c), min(b), max(b) FROM t;
SELECT a, upper(b), round(c, 3) FROM t WHERE b LIKE 'row 1%' ORDER BY c DESC LIMIT 500;
DELETE FROM t WHERE a % 3 = 0;
SELECT count(*), sum(length(b)) FROM t;
DROP TABLE t;
"""
PAGE = "".join(f"{n * 7919 % 10007} " for n in range(20000)).encode()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def patiently(what, look):
    for _ in range(200):
        try:
            found = look()
            if found:
                return found
        except OSError:
            pass
        time.sleep(0.05)
    raise SystemExit(f"{what} did not start")


class Program:
    """A program to take snapshots of: `pid`. finish() ends it and returns what was wrong; `checked`: the number of compared answers."""

    def __init__(self, directory):
        self.directory, self.wrong, self.checked, self.ending, self.load = directory, [], 0, False, None

    def start(self, *command, **more):
        self.process = subprocess.Popen(command, cwd=self.directory, **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **more})
        self.pid = self.process.pid

    def watch(self, one):
        """Calls one() repeatedly; it returns the number of compared answers, and raises an error for a wrong one."""

        def work():
            while not self.ending and not self.wrong:
                try:
                    self.checked += one()
                except Exception as e:  # any exception: the program's answer was wrong
                    if not self.ending:
                        self.wrong.append(f"{type(e).__name__}: {e}")

        self.watcher = threading.Thread(target=work, daemon=True)
        self.watcher.start()

    def finish(self):
        self.ending = True
        self.watcher.join(60)
        if self.load:
            if self.load.poll() is not None:
                self.wrong.append(f"its load ended early, with {self.load.returncode}")
            self.load.terminate()
            self.load.wait()
        if self.process.poll() is not None:
            self.wrong.append(f"it ended early, with {self.process.returncode}")
        status = self.end()
        if status:
            self.wrong.append(f"it ended with {status}")
        if not self.checked:
            self.wrong.append("nothing was compared")
        return self.wrong

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def same(what, found, wanted):
    if found != wanted:
        raise ValueError(f"{what}: {found!r:.200} instead of {wanted!r:.200}")


class Redis(Program):
    """redis-benchmark, and a client that checks each answer."""

    def __init__(self, build, directory):
        super().__init__(directory)
        port = free_port()
        self.start("redis-server", "--port", str(port), "--save", "")
        self.socket = patiently("redis-server", lambda: socket.create_connection(("127.0.0.1", port), timeout=30))
        self.file, self.n = self.socket.makefile("rwb"), 0
        self.load = subprocess.Popen(["redis-benchmark", "-p", str(port), "-c", "20", "-l", "-q", "-t", "set,get,lpush,lpop,sadd,zadd"], stdout=subprocess.DEVNULL)
        self.watch(self.ask)

    def ask(self):
        self.n += 1
        value = hashlib.sha256(str(self.n).encode()).hexdigest()
        self.file.write(f"SET checked {value}\r\nGET checked\r\nINCR counted\r\n".encode())
        self.file.flush()
        same("answers", [self.file.readline().strip().decode() for _ in range(4)], ["+OK", "$64", value, f":{self.n}"])
        return 3


class Python3(Program):
    """Four threads print checksums."""

    def __init__(self, build, directory):
        super().__init__(directory)
        self.wanted = {}
        self.start(PYTHON, "-c", PYTHON_SCRIPT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.watch(self.line)

    @staticmethod
    def work(seed):
        d = {str(i): [i * 0.5, "x" * (i % 17), {"k": i ^ seed}] for i in range(2000)}
        return hashlib.sha256(json.dumps(d, sort_keys=True).encode()).hexdigest()

    def line(self):
        seed, found = self.process.stdout.readline().split()
        if seed not in self.wanted:
            self.wanted[seed] = self.work(int(seed))
        same("checksum", found, self.wanted[seed])
        return 1

    def end(self):
        self.process.stdin.close()
        self.process.stdout.read()
        return self.process.wait(60)


class Server(Program):
    """demo/server compares its answers itself."""

    def __init__(self, build, directory):
        super().__init__(directory)
        self.start(os.path.abspath(f"{build}/demo/server"), "8", "2000", stdout=subprocess.PIPE, text=True)
        same("first line", self.process.stdout.readline()[:5], "READY")
        self.watch(lambda: time.sleep(0.05) or 0)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        result = self.process.stdout.read()
        if not result.startswith("RESULT OK: ") or not result.endswith(", 0 wrong\n"):
            self.wrong.append(result)
        else:
            self.checked = int(result.split()[2])
        return self.process.wait(60)

    def finish(self):
        self.checked = 0
        return super().finish()


class Sqlite3(Program):
    """Runs the same script repeatedly; the output must not change."""

    def __init__(self, build, directory):
        super().__init__(directory)
        self.wanted = subprocess.run(["sqlite3", "-batch", ":memory:"], input=SQLITE_SCRIPT, capture_output=True, text=True, check=True).stdout
        self.start("sqlite3", "-batch", ":memory:", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.watch(self.script)

    def script(self):
        self.process.stdin.write(SQLITE_SCRIPT)
        self.process.stdin.flush()
        same("output", self.process.stdout.read(len(self.wanted)), self.wanted)
        return 1

    def end(self):
        self.process.stdin.close()
        if self.process.stdout.read():
            self.wrong.append("there is more output than there must be")
        return self.process.wait(60)


class Nginx(Program):
    """wrk, and a client that compares pages; snapshots are taken of the worker."""

    def __init__(self, build, directory):
        super().__init__(directory)
        port = free_port()
        os.chmod(directory, 0o755)
        with open(f"{directory}/page", "wb") as f:
            f.write(PAGE)
        with open(f"{directory}/nginx.conf", "w") as f:
            f.write(f"daemon off; worker_processes 1; pid {directory}/pid; error_log {directory}/error.log; events {{}}\n"
                    f"http {{ access_log off; gzip on; gzip_types *; server {{ listen 127.0.0.1:{port}; root {directory}; }} }}\n")
        self.start("nginx", "-p", directory, "-c", f"{directory}/nginx.conf")
        self.url = f"http://127.0.0.1:{port}/page"
        patiently("nginx", self.page)
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
            self.pid = int(f.read().split()[0])
        self.load = subprocess.Popen(["wrk", "-t", "1", "-c", "20", "-d", "1h", "-H", "Accept-Encoding: gzip", self.url], stdout=subprocess.DEVNULL)
        self.watch(self.page)

    def page(self):
        same("page", urllib.request.urlopen(self.url, timeout=30).read(), PAGE)
        return 1


PROGRAMS = {"redis": Redis, "python3": Python3, "server": Server, "sqlite3": Sqlite3, "nginx": Nginx}
NEEDS = {"redis": ("redis-server", "redis-benchmark"), "python3": (PYTHON,), "server": (), "sqlite3": ("sqlite3",), "nginx": ("nginx", "wrk")}


def start(name, build, directory):
    missing = [n for n in NEEDS[name] if not shutil.which(n)]
    if missing:
        raise SystemExit(f"--program {name} needs {', '.join(missing)}")
    return PROGRAMS[name](build, directory)
