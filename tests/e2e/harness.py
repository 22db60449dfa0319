# SPDX-License-Identifier: MIT
"""Shared by all end-to-end tests: programs to probe, dynprobe itself, and checks of what it left behind.

Each test file runs alone: python3 tests/e2e/test_attach.py -v [TestClass.test_name]
Environment: DYNPROBE (the binary), TARGETS (directory of tests/targets), DEMO_SERVER. Default: those of ../../build.
"""

import contextlib
import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

# Tests import these from here, too.
from process import (  # noqa: F401
    Mapping, State, armed, assert_memory_exists, caught, changed_bytes, changed_text, children, cpu_ticks, has_processor, holders, live_address,
    maps, private_text_kib, read_memory, status, status_fields, symbol_address, text_mappings,
    waits_for_events,
)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DYNPROBE = os.environ.get("DYNPROBE", os.path.join(ROOT, "build", "dynprobe"))
TARGETS = os.environ.get("TARGETS", os.path.join(ROOT, "build", "tests", "targets"))
DEMO_SERVER = os.environ.get("DEMO_SERVER", os.path.join(ROOT, "build", "demo", "server"))
os.environ.setdefault("DYNPROBE_MAX_WAIT", "30s")  # tests that hit the limit say which: --max-wait 1s
FULL = bool(os.environ.get("DP_FULL"))  # run the long form of tests that have two

OWN_FAILURE = 125  # dynprobe's own failures, including wrong usage
NOT_RUN = 77  # a test file's status: nothing failed, but a test was skipped because this machine lacks something; ctest's summary lists it
EXIT_PARTIAL = 121  # some probes were refused, the others ran
KEPT_TEXT_KIB = 8  # pages of text that borrowed threads ran in stay private copies, with the file's own bytes (docs/guarantees.md, G6)
OPTIONAL_TARGETS = ("spin-musl", "spin-musl-static", "cxxthrow", "tiny32", "usttrace")  # need a compiler or library of their own
CALM = "(edi & 0x80000000) == 0 || (edi & 0xffff) == 5"  # for `threads`: all calls of sleepers, a few of the spinners'
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"]  # runs a command as a user without privileges
REGISTERS = "rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15".split()


def target_path(name):
    return os.path.join(TARGETS, name)


def have(program):
    return shutil.which(program) is not None


def needs(program):
    """Skips a test, with a message, if a program is not installed."""
    return unittest.skipUnless(have(program), f"{program} is not installed")


def long_form(test):
    """Marks a test of the long form only. Otherwise it does not exist, so it does not count as skipped."""
    return test if FULL else None


needs_root = unittest.skipUnless(os.geteuid() == 0, "needs root")


def wait_until(condition, seconds=180.0, what="condition"):
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for: {what() if callable(what) else what}")
        time.sleep(0.005)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(port):
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex(("127.0.0.1", port)) == 0


# ---- programs to probe ---------------------------------------------------------------------------------------------------


class Target:
    """A program of tests/targets (or any command), started and READY."""

    def __init__(self, name, *args, ready="READY", prefix=(), **popen):
        path = name if os.path.isabs(name) else target_path(name)
        self.path = path
        self.out = tempfile.TemporaryFile()
        self.err = tempfile.TemporaryFile()
        self.process = subprocess.Popen([*prefix, path, *map(str, args)], stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err, **popen)
        self.pid = self.process.pid
        if ready:
            wait_until(lambda: ready in self.output() or self.process.poll() is not None, what=f"{name} to print {ready}")

    def output(self):
        return os.pread(self.out.fileno(), 1 << 24, 0).decode(errors="replace")

    def errors(self):
        return os.pread(self.err.fileno(), 1 << 20, 0).decode(errors="replace")

    def alive(self):
        return self.process.poll() is None

    def state(self):
        return status(self.pid, "State")[0]

    def steps(self):
        """A counter that grows while its threads work: how often they slept, plus milliseconds of processor time. (How often others took
        their processor says nothing of their work.)"""
        switches = 0
        for tid in os.listdir(f"/proc/{self.pid}/task"):
            task = status_fields(f"{self.pid}/task/{tid}")
            if not task.get("Name", "-ust").endswith("-ust") and not task["Name"].startswith("dynprobe"):
                switches += int(task["voluntary_ctxt_switches"])
        return switches + self.cpu_ticks() * 1000 // os.sysconf("SC_CLK_TCK")

    def cpu_ticks(self):
        """The processor time that it has used."""
        return cpu_ticks(self.pid)

    def blocked_in(self, number):
        """Is its main thread blocked in that system call?"""
        with open(f"/proc/{self.pid}/syscall") as f:
            return f.read().split()[0] == str(number)

    def site(self, symbol="foo"):
        return live_address(self.pid, self.path, symbol)

    def patched(self):
        return bool(changed_text(self.pid))

    def stop(self, sig=signal.SIGTERM, seconds=300):
        """Ends it and returns its exit status (negative: killed by a signal)."""
        if self.alive():
            self.process.send_signal(sig)
            self.process.send_signal(signal.SIGCONT)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"{self.path} did not end after {sig!r}") from None

    def close(self):
        if self.alive():
            self.process.kill()
            self.process.wait()
        self.out.close()
        self.err.close()


# ---- dynprobe ------------------------------------------------------------------------------------------------------------


class Result:
    """What a run said. Its events may be millions, so they are read when a test asks for them."""

    def __init__(self, status, out, err, events_path=None):
        self.status, self.out, self.err, self.path = status, out, err, events_path

    def read(self, wanted=lambda line: True):
        if not self.path or not os.path.exists(self.path):
            return []
        with open(self.path, errors="surrogateescape") as f:
            return [json.loads(line) for line in f if line.strip() and wanted(line)]

    @functools.cached_property
    def lines(self):
        return self.read()

    @functools.cached_property
    def told(self):
        """All lines but the events."""
        return self.read(lambda line: not line.startswith('{"type":"event"'))

    def of_type(self, name):
        return [x for x in self.told if x.get("type") == name]

    @functools.cached_property
    def events(self):
        return [x for x in self.lines if x.get("type") == "event"]

    header = property(lambda self: next(iter(self.of_type("header")), None))
    answers = property(lambda self: self.of_type("answer"))
    summary = property(lambda self: next(iter(self.of_type("summary")), None))

    def tags(self):
        return set(re.findall(r"DP-[A-Z0-9-]+", self.err + json.dumps(self.summary or {})))

    def __str__(self):
        return f"status {self.status}\n--- stdout\n{self.out}\n--- stderr\n{self.err[-6000:]}"


def has_event(path, begin):
    """Is there an event in that file of a run, behind byte `begin`?"""
    if not path or not os.path.exists(path):
        return False
    with open(path, "rb") as f:
        f.seek(begin)
        return b'"type":"event"' in f.read(1 << 22)


def environment(**extra):
    env = dict(os.environ, LC_ALL="C.UTF-8", **extra)
    env["PATH"] = f"{os.path.dirname(sys.executable)}:{env['PATH']}"  # python3 is a program, not a script that chooses one
    env.setdefault("ASAN_OPTIONS", "exitcode=99")  # differs from dynprobe's own statuses
    return env


def tool(*args, status=None, prefix=(), binary=None, **popen):
    """Runs dynprobe to its end; returns what subprocess.run() does. `status`: the expected exit status; `binary`: another dynprobe."""
    popen = {"stdin": subprocess.DEVNULL, "errors": "replace", "timeout": 180, "env": environment(), **popen}
    p = subprocess.run([*prefix, binary or DYNPROBE, *map(str, args)], capture_output=True, text=True, **popen)
    if "Sanitizer" in p.stderr or status not in (None, p.returncode):
        raise AssertionError(f"{args}: {p.returncode}\n{p.stdout}\n{p.stderr}")
    return p


def objects(text):
    """The lines of a mixed output that are JSON objects."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def number(value):
    """A number in NDJSON, where addresses and registers are strings."""
    return int(value, 0) if isinstance(value, str) else value


def shown(path):
    """The contents of a snapshot file."""
    return json.loads(tool("show", "--json", path, status=0).stdout)


def compiled(output, *command, text=None, **popen):
    """Compiles files, or the C `text`, with `command`; returns the program's path."""
    source = [] if text is None else ["-x", "c", "-"]
    p = subprocess.run([*command, *source, "-o", output], input=text or "", capture_output=True, text=True, timeout=300, **popen)
    if p.returncode != 0:
        raise AssertionError(f"{p.args}: {p.stderr}")
    return output


class Case(unittest.TestCase):
    """A test with a scratch directory. Ends all processes that it started."""

    maxDiff = 4000

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="dp-e2e-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.count, self.targets = 0, []

    def path(self, name):
        return os.path.join(self.dir, name)

    def written(self, name, text):
        """Writes a file of that name into the scratch directory; returns its path."""
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def target(self, name, *args, **kw):
        if name in OPTIONAL_TARGETS and not os.path.exists(target_path(name)):
            self.skipTest(f"target {name} was not built on this machine")
        t = Target(name, *args, **kw)
        self.addCleanup(t.close)
        self.targets.append(t)
        return t

    def spawn(self, *argv, **popen):
        """Starts another program, which ends with the test."""
        nowhere = subprocess.DEVNULL
        p = subprocess.Popen([*map(str, argv)], **{"stdin": nowhere, "stdout": nowhere, "stderr": nowhere, **popen})

        def end():
            if p.poll() is None:
                p.kill()
            for pipe in (p.stdin, p.stdout, p.stderr):
                if pipe:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
            p.wait()

        self.addCleanup(end)
        return p

    def strace(self, t, *options, log=os.devnull):
        """strace on all threads of a target, or of a running dynprobe."""
        tracer = self.spawn("strace", "-qq", "-f", "-o", log, *options, "-p", t.pid)
        traced = lambda tid: status(f"{t.pid}/task/{tid}", "TracerPid") in (str(tracer.pid), None)
        wait_until(lambda: all(map(traced, os.listdir(f"/proc/{t.pid}/task"))), what="strace to attach")
        return tracer

    def core(self, pid):
        """The path of a core file of a process, which continues."""
        p = subprocess.run(["gcore", "-o", self.path("core"), str(pid)], capture_output=True, text=True, timeout=300)
        self.assertTrue(os.path.exists(self.path(f"core.{pid}")), p.stdout + p.stderr)
        return self.path(f"core.{pid}")

    def system_calls(self, calls, *args):
        """Runs dynprobe under strace; returns strace's output."""
        log = self.path("calls")
        env = environment(ASAN_OPTIONS="detect_leaks=0")  # leak detection uses ptrace, as strace does
        tool(*args, prefix=("strace", "-f", "-o", log, "-e", "trace=" + calls), env=env, status=0)
        with open(log) as f:
            return f.read()

    def for_nobody(self, name):
        """Copies a target, or dynprobe, to a place where every user may run it."""
        os.chmod(self.dir, 0o777)
        if not os.path.exists(self.path(name)):
            shutil.copy(DYNPROBE if name == "dynprobe" else target_path(name), self.path(name))
        return self.path(name)

    def let_run(self, *targets, steps=150):
        """Waits until each of these programs (default: all that the test started and that still run) has worked for so many steps."""
        for t, before in [(t, t.steps()) for t in targets or self.targets if t.alive()]:
            wait_until(lambda: not t.alive() or t.steps() >= before + steps, what=f"{t.path} to continue")  # noqa: B023
            self.assertTrue(t.alive(), f"the target ended: {t.process.returncode}\n{t.output()[-500:]}\n{t.errors()[-500:]}")

    # -- running dynprobe

    def command(self, *args, record=None, json_events=True):
        """The command line, and the path of its NDJSON. Nothing is recorded by default."""
        argv = [DYNPROBE]
        self.count += 1
        events = self.path(f"events-{self.count}.json") if json_events else None
        if events:
            argv += ["-f", "json", "-o", events]
        argv += ["--record", record] if record else ["--no-record"]
        return argv + [str(a) for a in args], events

    def dynprobe(self, *args, timeout=180, record=None, json_events=True, prefix=(), stdin=subprocess.DEVNULL, env=None, **popen):
        """Runs dynprobe to its end."""
        argv, events = self.command(*args, record=record, json_events=json_events)
        try:
            p = subprocess.run([*prefix, *argv], capture_output=True, timeout=timeout, stdin=stdin, env=env or environment(), **popen)
        except subprocess.TimeoutExpired as e:
            self.fail(f"dynprobe did not end within {timeout} s: {argv}\n{(e.stderr or b'').decode(errors='replace')}")
        r = Result(p.returncode, p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace"), events)
        self.assertNotIn("Sanitizer", r.err)
        return r

    def attach(self, target, *args, **kw):
        return self.dynprobe("--pid", target.pid, *args, **kw)

    def start(self, *args, cwd=None, **kw):
        """Starts dynprobe; end it with self.finish()."""
        argv, events = self.command(*args, **kw)
        self.count += 1
        err = open(self.path(f"stderr-{self.count}"), "w+b")
        self.addCleanup(err.close)
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err, env=environment(), cwd=cwd)
        p.events, p.err_file = events, err
        self.addCleanup(lambda: (p.poll() is None and p.kill(), p.wait(), p.stdout.close()))
        return p

    def start_attached(self, target, *args, **kw):
        """Starts dynprobe on a target and returns when its text is patched."""
        others = changed_text(target.pid)  # probes of another run
        p = self.start("--pid", target.pid, *args, **kw)
        if others:
            with contextlib.suppress(AssertionError):
                wait_until(lambda: p.poll() is not None or changed_text(target.pid) != others, 10)
        self.await_armed(p, target.pid)
        if p.poll() is not None:
            self.fail("dynprobe ended early:\n" + str(self.finish(p, None)))
        return p

    def finish(self, p, sig=signal.SIGINT, timeout=300):
        if sig is not None and p.poll() is None:
            p.send_signal(sig)
        try:
            out, _ = p.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
            self.fail(f"dynprobe did not end after {sig!r}: {p.args}")
        p.err_file.seek(0)
        return Result(p.returncode, out.decode(errors="replace"), p.err_file.read().decode(errors="replace"), p.events)

    def said(self, p):
        """The output of a running dynprobe so far, events too."""
        text = ""
        for path in filter(os.path.exists, (p.err_file.name, p.events)):
            with open(path, errors="surrogateescape") as f:
                text += f.read()
        return text

    def await_armed(self, p, pid):
        """Waits until probes are installed, or dynprobe has ended. On a slow machine it may pause between two of them, so that it looks
        installed: then it is not yet in the loop in which it waits for events. Where there are too many of them for it to wait, it
        writes them there."""
        wait_until(lambda: p.poll() is not None or armed(pid), what=lambda: f"probes in {pid}; dynprobe said: {self.said(p)[-3000:]}")
        path = getattr(p, "events", None)
        begin = os.path.getsize(path) if path and os.path.exists(path) else 0
        with contextlib.suppress(AssertionError):
            wait_until(lambda: p.poll() is not None or waits_for_events(p.pid) or has_event(path, begin), 10)

    def await_output(self, p, size=2000):
        """Waits until a running dynprobe has written so many more bytes of events."""
        written = lambda: os.path.getsize(p.events) if os.path.exists(p.events) else 0
        wanted = written() + size
        wait_until(lambda: p.poll() is not None or written() > wanted, what="events")
        self.assertGreater(written(), wanted, "dynprobe ended early")

    def await_events(self, p, probe="foo", n=1, after=lambda: None):
        """Waits until a running dynprobe has written n more events of that probe, `after` something that makes them."""
        seen = lambda: len(re.findall(f'"probe": ?"{re.escape(probe)}"', self.said(p)))
        wanted = seen() + n
        after()
        wait_until(lambda: p.poll() is not None or seen() >= wanted, what=f"{n} events of {probe}")
        self.assertGreaterEqual(seen(), wanted, "dynprobe ended early")

    # -- checks

    def assert_ok(self, r, status=0):
        self.assertEqual(r.status, status, str(r))

    def assert_refused(self, r, tag, *words):
        self.assertEqual(r.status, OWN_FAILURE, str(r))
        self.assertIn(tag, r.err, str(r))
        for word in words:
            self.assertIn(str(word), r.err, str(r))

    def assert_hits(self, r, at_least=1):
        self.assertGreaterEqual(len(r.events), at_least, str(r))

    def assert_clean(self, pid, before=None):
        """Nothing of ours is left in the process."""
        self.assertEqual([m.key() for m in maps(pid) if m.is_ours], [])
        self.assertEqual(changed_text(pid), [])
        self.assertEqual(status(pid, "TracerPid"), "0")
        if before:
            # a handler may change a signal mask for a moment, a new stack the mappings: only lasting differences count
            differences = lambda: before.differences(State(pid))
            wait_until(lambda: not differences(), 20, lambda: f"none of these differences: {differences()}")

    def assert_cleaned(self, t):
        """A later dynprobe removes what a killed one left; this may take several runs."""
        for _ in range(20):
            self.attach(t, "--function", "main", "-d", "0.1")
            if not t.patched():
                break
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def assert_result_ok(self, target, status=0):
        """The target ends by itself or at SIGTERM, and its own results are correct."""
        got = target.stop()
        self.assertEqual(got, status, f"{target.output()[-1500:]}\n{target.errors()[-1500:]}")
        self.assertIn("RESULT OK", target.output())


def babeltrace(*directories):
    """Events of CTF traces as lines of text, in time order."""
    p = subprocess.run(["babeltrace2", "--clock-seconds", *directories], capture_output=True, text=True)
    if p.returncode != 0:
        raise AssertionError(f"babeltrace2 {directories}: {p.stderr}")
    return p.stdout.splitlines()


def main():
    if not os.access(DYNPROBE, os.X_OK):
        sys.exit(f"there is no dynprobe at {DYNPROBE}: set DYNPROBE, or build first")
    result = unittest.main(exit=False).result
    for test, why in result.skipped:
        print(f"not run: {test}: {why}", flush=True)
    sys.exit(not result.wasSuccessful() or (NOT_RUN if result.skipped else 0))
