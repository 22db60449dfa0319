# SPDX-License-Identifier: MIT
"""A tool at work: started, armed, ended. Whatever happens, nothing of it is left."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

ENV = {**os.environ, "LC_ALL": "C", "BPFTRACE_PERF_RB_PAGES": "4096", "BPFTRACE_MAX_PROBES": "30000", "DEBUGINFOD_URLS": ""}
START_S, END_S = 20, 20


class Failed(Exception):
    """The tool did not do what it was asked; the text says why."""


def reason(text):
    """The first line that looks like an error, or the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"error|fail|cannot|can't|denied|refused|not ", line, re.IGNORECASE)]
    return (errors or lines[-1:] or ["it said nothing"])[0][:160]


class Attached:
    """A tool's process. `ready` says whether it is armed; its output is in files that read() returns."""

    def __init__(self, argv, ready, directory=None):
        self.dir, self.ready, self.argv = directory or tempfile.mkdtemp(prefix="peers-"), ready, argv
        self.out = os.path.join(self.dir, "out")
        self.process = None

    def spawn(self, argv, **popen):
        with open(os.path.join(self.dir, "said"), "ab") as said:
            return subprocess.Popen(argv, stdout=said, stderr=subprocess.STDOUT, env=ENV, start_new_session=True, **popen)

    def start(self, seconds=START_S):
        self.process = self.spawn([word.replace("OUT", self.out) for word in self.argv], stdin=subprocess.DEVNULL)
        self.await_ready(seconds)

    def await_ready(self, seconds):
        until = time.monotonic() + seconds
        while not self.ready(self):
            if self.process.poll() is not None:
                raise Failed(reason(self.read()))
            if time.monotonic() > until:
                raise Failed(f"not armed after {seconds} s")
            time.sleep(0.002)

    def stop(self, seconds=END_S):
        """Ends it as Ctrl-C does; False: it had to be killed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.ended(seconds)

    def ended(self, seconds):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
            return True
        return False

    def close(self):
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(300)  # the kernel removes uprobes one by one, also those of a killed tool
        shutil.rmtree(self.dir, ignore_errors=True)

    def read(self):
        """All that it wrote."""
        texts = []
        for name in ("out", "said"):
            with contextlib.suppress(OSError), open(os.path.join(self.dir, name), errors="replace") as f:
                texts.append(f.read())
        return "\n".join(texts)

    def holds(self, kind):
        """Whether it has an open descriptor of a kind, as /proc names it."""
        directory = f"/proc/{self.process.pid}/fd"
        with contextlib.suppress(OSError):
            return any(kind in os.readlink(os.path.join(directory, fd)) for fd in os.listdir(directory))
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Gdb(Attached):
    """gdb, told what to do through its standard input: prompts come back when the program stops."""

    def __init__(self, argv, ready, commands, at_end=("info breakpoints",), directory=None):
        super().__init__(argv, ready, directory)
        self.commands, self.at_end = commands, at_end

    def start(self, seconds=START_S):
        self.process = self.spawn(self.argv, stdin=subprocess.PIPE, text=True)
        self.tell("set confirm off", "set pagination off", "set width 0", *self.commands, "continue")
        self.await_ready(seconds)

    def tell(self, *lines):
        with contextlib.suppress(BrokenPipeError, ValueError):
            self.process.stdin.write("".join(line + "\n" for line in lines))
            self.process.stdin.flush()

    def stop(self, seconds=END_S):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.tell(*self.at_end, "detach", "quit")
        return self.ended(seconds)


# ---- when a tool is armed ----


def text_changed(program, place):
    """The first byte of the function is another one, and no thread is stopped to change it."""
    def ready(_):
        return program.changed(place)
    return ready


def maps_dynprobe(program):
    def ready(_):
        with open(f"/proc/{program.pid}/maps") as maps:
            return "dynprobe" in maps.read() and program.status("TracerPid") == "0"
    return ready


def holds_perf_event(attached):
    return attached.holds("perf_event")


def traces(program):
    def ready(_):
        return program.status("TracerPid") != "0"
    return ready
