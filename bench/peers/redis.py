# SPDX-License-Identifier: MIT
"""redis-server under redis-benchmark, with and without each tool on processCommand, in turn."""

import collections
import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from . import attach, parse, places, tools
from .attach import Failed
from .hits import result
from .program import Silent

LOAD = ["-P", "16", "-c", "8", "-t", "set", "--csv"]
PILOT, LEAST, LOAD_S = 2000, 2000, 0.5
SETTLE_S = 0.3
NAME = "processCommand"

# As tools.Way, without a question.
Way = collections.namedtuple("Way", "tool command read how after", defaults=("attach", ""))
WAYS = [
    Way("dynprobe, count", "dynprobe --pid PID -q -f json -o OUT --no-record --function processCommand --count", parse.dynprobe),
    Way("dynprobe, duration histogram", "dynprobe --pid PID -q -f json -o OUT --no-record --return processCommand --hist duration", parse.dynprobe),
    Way("dynprobe, record", "dynprobe --pid PID -f ctf --record OUT --buffer-size 16M --function processCommand -t reg:rdi", parse.dynprobe_trace,
        after=tools.COUNT_TRACE),
    Way("bpftrace, count", "bpftrace -p PID -f json -o OUT -e 'uprobe:PROGRAM:processCommand { @ = count(); }'", parse.bpftrace),
    Way("bpftrace, duration histogram", "bpftrace -p PID -f json -o OUT -e 'uprobe:PROGRAM:processCommand { @t[tid] = nsecs; } "
        "uretprobe:PROGRAM:processCommand /@t[tid]/ { @ = hist(nsecs - @t[tid]); delete(@t[tid]); }'", parse.bpftrace),
    Way("perf stat", "perf stat -x , -o OUT -e EVENT -p PID", parse.perf_stat, "perf"),
    Way("perf record", "perf record -q -m 16M -o OUT -e EVENT -p PID", parse.perf_script, "perf", tools.PERF_SCRIPT),
    Way("gdb breakpoint", "break *processCommand\ncommands\nsilent\ncontinue\nend", parse.gdb_breakpoint, "gdb"),
    Way("ltrace", "ltrace -f -L -c -x processCommand -p PID -o OUT", parse.call_table("processCommand")),
    Way("uftrace", "uftrace record -d OUT --no-libcall --no-event -P ^processCommand$ redis-server", parse.uftrace, "launch", "uftrace report -d OUT"),
    Way("dynprobe, system calls", "dynprobe --pid PID -q -f json -o OUT --no-record --syscall '*' --count", None),
    Way("strace, system calls", "strace -f -c -p PID -o OUT", None),
]


class Server:
    """A redis-server at a socket, as what attach.text_changed() asks for; with its load."""

    def __init__(self, *tool):
        self.dir = tempfile.mkdtemp(prefix="peers-redis-")
        self.socket = os.path.join(self.dir, "socket")
        self.path = os.path.realpath(shutil.which("redis-server"))
        argv = [*(tool or ["redis-server"]), "--port", "0", "--unixsocket", self.socket, "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.dir, env=attach.ENV, start_new_session=True)
        try:
            self.await_start()
            self.pid = int(self.cli("info", "server", r"process_id:(\d+)"))
            self.address = self.place()
            self.first = self.byte()
        except BaseException:
            self.close()
            raise

    def await_start(self):
        until = time.monotonic() + 10
        while subprocess.run(["redis-cli", "-s", self.socket, "ping"], capture_output=True, check=False, timeout=20).returncode:
            if time.monotonic() > until or self.process.poll() is not None:
                raise Silent("redis-server did not start")
            time.sleep(0.02)

    def cli(self, *words):
        """What redis-cli finds; the last word is what to look for."""
        said = subprocess.run(["redis-cli", "-s", self.socket, *words[:-1]], capture_output=True, text=True, check=True, timeout=20).stdout
        return re.search(words[-1], said)[1]

    def place(self):
        """Where the function is: the executable is position-independent."""
        offset = int(places.symbols(self.path, NAME, "-D")[0][0], 16)
        with open(f"/proc/{self.pid}/maps") as maps:
            return int(next(line for line in maps if line.rstrip().endswith(self.path)).split("-")[0], 16) + offset

    def byte(self):
        with open(f"/proc/{self.pid}/mem", "rb", 0) as f:
            f.seek(self.address)
            return f.read(1)

    def changed(self, _):
        return self.byte() != self.first

    def status(self, key):
        with open(f"/proc/{self.pid}/status") as f:
            return next(line.split(":", 1)[1].strip() for line in f if line.startswith(key + ":"))

    def commands(self):
        """How many commands it has processed, this one included."""
        return int(self.cli("info", "stats", r"total_commands_processed:(\d+)")) + 1

    def rate(self, requests):
        """SETs a second."""
        p = subprocess.run(["redis-benchmark", "-s", self.socket, "-n", str(int(requests)), *LOAD], capture_output=True, text=True, check=False,
                           timeout=60)
        found = re.search(r'^"SET","([\d.]+)"', p.stdout, re.MULTILINE)
        if not found:
            raise Silent("redis-benchmark: " + attach.reason(p.stdout + p.stderr))
        return float(found[1])

    def load(self):
        return self.rate(max(LEAST, self.rate(PILOT) * LOAD_S))

    def shut_down(self):
        subprocess.run(["redis-cli", "-s", self.socket, "shutdown", "nosave"], capture_output=True, check=False, timeout=20)
        self.process.wait(20)

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


@contextlib.contextmanager
def tool_of(way, bench, server):
    with contextlib.ExitStack() as stack:
        event = stack.enter_context(places.uprobes_at(server.path, places.symbols(server.path, NAME, "-D"))) if way.how == "perf" else ""
        ready = attach.traces(server) if way.tool.startswith("strace") else attach.text_changed(server, None)
        if way.tool == "dynprobe, system calls":
            ready = attach.maps_dynprobe(server)
        if way.how == "gdb":
            yield stack.enter_context(attach.Gdb(["gdb", "-q", "-nx", "-p", str(server.pid)], ready, way.command.split("\n")))
        else:
            yield stack.enter_context(attach.Attached(bench.words(way.command, PID=server.pid, PROGRAM=server.path, EVENT=event), ready))


def turn(way, bench, server):
    """Without, with: two rates, what the tool said, and the truth."""
    alone = server.load()
    before = server.commands()
    with tool_of(way, bench, server) as tool:
        tool.start()
        time.sleep(SETTLE_S)
        probed = server.load()
        notes = [] if tool.stop() else ["did not end by itself"]
        text = result(tool, way)
    return alone, probed, text, server.commands() - before - 1, notes


def turn_launched(way, bench, server):
    """The same with a tool that starts the program: two servers."""
    alone = server.load()
    with attach.Attached([], None) as tool:
        probed = Server(*(word.replace("OUT", tool.out) for word in bench.words(way.command)))
        try:
            rate, truth = probed.load(), probed.commands()
            probed.shut_down()
        finally:
            probed.close()
        text = result(tool, way)
    if not way.read(text).count:
        raise Failed("recorded nothing: " + attach.reason(text))
    return alone, rate, text, truth + 1, []  # shutdown is a command, too


def measure(way, bench):
    """{"alone": rates, "probed": rates, "equal":, "answer":, "notes":}, or {"failed": why}."""
    server = None
    try:
        server = Server()
        alone, probed, text, truth, notes = (turn_launched if way.how == "launch" else turn)(way, bench, server)
        equal, words = parse.verdict(way.read(text), truth) if way.read else (None, "not compared")
        return {"alone": alone, "probed": probed, "equal": equal, "answer": words, "notes": notes}
    except (Failed, Silent, OSError, subprocess.SubprocessError) as e:
        return {"failed": str(e)}
    finally:
        if server:
            server.close()


def missing():
    absent = [p for p in ("redis-server", "redis-benchmark", "redis-cli", "nm") if not shutil.which(p)]
    return f"not installed: {', '.join(absent)}" if absent else None
