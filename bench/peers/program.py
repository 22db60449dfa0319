# SPDX-License-Identifier: MIT
"""The probed program (program.c) as an object, and what it measured."""

import collections
import os
import select
import statistics
import subprocess
import time

from . import tools

THREADS = (1, 8)
PAIRS, SLICE_MS = 16, 5
# A tool that writes events gets bursts that its buffers hold, with rests in between: what is measured are kept events.
BURST, TEXT_BURST, EVENT_PAIRS, REST_US = {1: 40000, 8: 10000}, {1: 10000, 8: 2500}, 12, 30000

Run = collections.namedtuple("Run", "bare probed calls")  # ns of a call in each slice, twice; how often each thread called
Gaps = collections.namedtuple("Gaps", "changed at gaps")  # places; ns of CLOCK_MONOTONIC, 0: never; (end, length, waited for a processor)


class Silent(Exception):
    """The program did not answer in time, or has ended."""


class Program:
    def __init__(self, *argv, env=None):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, start_new_session=True)
        self.buffer = b""
        try:
            words = self.read(20).split()
            self.pid, self.address = int(words[1]), {"work": int(words[2], 16), "wide": int(words[3], 16)}
        except (Silent, IndexError, ValueError):
            self.close()
            raise Silent("the program did not start under the tool") from None
        self.first = {}
        for name in self.address:
            self.remember(name)

    def read(self, seconds):
        """The next line, as bytes: the program may be stopped, so every wait has an end."""
        until = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            if not select.select([self.process.stdout], [], [], max(0, until - time.monotonic()))[0]:
                raise Silent(f"the program did not answer in {seconds} s")
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                raise Silent("the program ended")
            self.buffer += more
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode()

    def ask(self, line, seconds=20):
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Silent("the program ended") from None
        return self.read(seconds)

    def run(self, kinds, threads, pairs, calls=1 << 40, ms=10, rest_us=0, places=1):
        words = self.ask(f"run {kinds[0]} {kinds[1]} {threads} {pairs} {calls} {ms} {rest_us} {places}").split()
        at = words.index("calls")
        figures = [float(w) for w in words[1:at]]
        return Run(figures[::2], figures[1::2], [int(w) for w in words[at + 1:]])

    def watch(self, places=0):
        """Begins to watch; returns the addresses of the first and the last place."""
        return [int(word, 16) for word in self.ask(f"watch {places}").split()[1:]]

    def gaps(self):
        words = self.ask("gaps").split()
        n = [int(w) for w in words[5:]]
        return Gaps(int(words[1]), int(words[3]), list(zip(n[::3], n[1::3], n[2::3])))

    def byte(self, place):
        """The first byte of a function (its name or address) as it is now."""
        with open(f"/proc/{self.pid}/mem", "rb", 0) as f:
            f.seek(self.address.get(place, place))
            return f.read(1)

    def heads(self, first, last, places):
        """The first byte of each of equal functions, which lie at equal distances."""
        with open(f"/proc/{self.pid}/mem", "rb", 0) as f:
            f.seek(first)
            return f.read(last - first + 1)[::(last - first) // (places - 1) if places > 1 else 1]

    def remember(self, place):
        self.first[place] = self.byte(place)

    def changed(self, place):
        return self.byte(place) != self.first[place]

    def status(self, key):
        with open(f"/proc/{self.pid}/status") as f:
            return next(line.split(":", 1)[1].strip() for line in f if line.startswith(key + ":"))

    def alive(self):
        return self.process.poll() is None

    def close(self):
        """Ends it; says whether it ended by itself and without an error."""
        try:
            self.process.stdin.close()
            return self.process.wait(20) == 0
        except (subprocess.TimeoutExpired, OSError):
            self.process.kill()
            self.process.wait()
            return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def loops(program, way, ret):
    """Both loops of a way: {threads: Run}, as far as they get if the tool is too slow for the rest."""
    for threads in THREADS:
        calls = (TEXT_BURST if way.question == "text" else BURST)[threads] if way.events else 1 << 40
        pairs, rest = (EVENT_PAIRS, REST_US) if way.events else (PAIRS, 0)
        ret[threads] = program.run(tools.KINDS[way.function], threads, pairs, calls, SLICE_MS, rest)


def over_bare(run):
    """The median of the pairs: what a call costs over one of the bare function beside it."""
    return statistics.median(p - b for b, p in zip(run.bare, run.probed))


def costs(alone, during):
    """{threads: ns}; alone: the loops before the tool came, and after it had gone."""
    return {threads: over_bare(run) - statistics.mean(over_bare(a[threads]) for a in alone if threads in a) for threads, run in during.items()}


def longest(gaps, begin, end):
    """The longest pause in ms in a time: a gap, less the wait for a processor."""
    return max([0] + [length - waited for at, length, waited in gaps if at > begin and at - length < end]) / 1e6
