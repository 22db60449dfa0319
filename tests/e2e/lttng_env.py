# SPDX-License-Identifier: MIT
"""A private LTTng for end-to-end tests: they use no daemon of the machine, and several test files can run at the same time.

A test file that uses it derives its cases from lttng_env.Case and ends with `lttng_env.main()`, which runs the file again under
unshare(1): with its own mounts (tmpfs on /run and /dev/shm, where LTTng keeps its sockets and rings), its own pids (whatever a
test leaves behind ends with the file, however that ends), and with main(network=True) its own network, in which only the
loopback device is up.
"""

import collections
import contextlib
import grp
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import harness
from harness import wait_until

ISOLATED = "DP_LTTNG_ISOLATED"
PROGRAMS = ("lttng", "lttng-sessiond", "lttng-relayd", "babeltrace2", "unshare", "ip")
NOBODY = pwd.getpwnam("nobody")
RELAY = {"control": 5342, "data": 5343, "live": 5344}  # LTTng's default ports
LTTNG_VARIABLES = ("LTTNG_HOME", "LTTNG_UST_DEBUG", "LTTNG_UST_REGISTER_TIMEOUT", "LTTNG_UST_ALLOW_BLOCKING", "LTTNG_SESSIOND_PATH")


def missing():
    if os.geteuid() != 0:
        return "needs root, for mounts of its own"
    absent = [p for p in PROGRAMS if not harness.have(p)]
    return f"not installed: {', '.join(absent)}" if absent else None


# ---- namespaces ----------------------------------------------------------------------------------------------------------


def isolated():
    return os.environ.get(ISOLATED) == "1"


def mount_tmpfs(path, mode):
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"mode={mode}", "dp-e2e", path], check=True)


def enter():
    """Called as root inside the new namespaces."""
    mount_tmpfs("/run", "755")
    if os.path.realpath("/var/run") != "/run":
        mount_tmpfs("/var/run", "755")
    mount_tmpfs("/dev/shm", "1777")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=False)


def isolate(network=False):
    """Runs the program again in namespaces of its own, and returns in there."""
    if missing() is None and not isolated():
        again = [sys.executable, "-B", *(f"-W{w}" for w in sys.warnoptions), *sys.argv]
        # A shell is process 1, because it reaps orphans; the test's Python would not.
        shell = ["sh", "-c", '"$@"; exit $?', "sh"]
        new = ["--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"] + (["--net"] if network else [])
        os.environ[ISOLATED] = "1"
        sys.stdout.flush()
        os.execvp("unshare", ["unshare", *new, *shell, *again])
    if isolated():
        enter()


def main(network=False):
    """Replaces harness.main(): runs the tests of this file in namespaces of their own."""
    isolate(network)
    harness.main()


# ---- reading a trace -----------------------------------------------------------------------------------------------------

Enum = collections.namedtuple("Enum", "label value")
Event = collections.namedtuple("Event", "name ns cpu context fields line")

TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[][{}(),=:]|<[^>]*>|[^][{}(),=:"<\s]+)')
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}


class Values:
    """The values that babeltrace2's text output writes: numbers, "strings", { a = 1 }, [ [0] = 1 ], ( "LABEL" : container = 1 )."""

    def __init__(self, text):
        self.tokens, self.at = TOKEN.findall(text), 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self, wanted=None):
        token = self.peek()
        if wanted and token != wanted:
            raise ValueError(f"{wanted!r} expected, found {token!r} in {self.tokens}")
        self.at += 1
        return token

    def value(self):
        token = self.next()
        if token == "{":
            return self.members("}", self.next)
        if token == "[":
            return list(self.members("]", self.index).values())
        if token == "(":
            return self.enum()
        if token.startswith('"'):
            return re.sub(r"\\(.)", lambda m: ESCAPES.get(m[1], m[1]), token[1:-1])
        return number(token)

    def index(self):
        self.next("[")
        i = self.next()
        self.next("]")
        return int(i)

    def members(self, end, key):
        found = {}
        while self.peek() != end:
            k = key()
            self.next("=")
            found[k] = self.value()
            if self.peek() == ",":
                self.next()
        self.next(end)
        return found

    def enum(self):
        labels = []
        while self.peek() != ":":
            token = self.next()
            if token.startswith('"'):
                labels.append(token[1:-1])
        self.next(":")
        self.next("container")
        self.next("=")
        value = self.value()
        self.next(")")
        return Enum("|".join(labels) or None, value)


def number(token):
    try:
        return int(token, 0)
    except ValueError:
        pass
    if re.fullmatch(r"-?0\d+", token):
        return int(token, 8)
    return float(token)


LINE = re.compile(
    r"timestamp = (\d+)\.(\d{9}), .*?\bname = (.*?)(?:, stream\.packet\.context = (\{.*?\}))?"
    r"(?:, stream\.event\.context = (\{.*?\}))?(?:, event\.context = \{.*?\})?(?:, event\.fields = (\{.*\}))?"
)


def parse_event(line):
    m = LINE.fullmatch(line)
    if not m:
        raise ValueError(f"not an event: {line!r}")
    packet, context, fields = (Values(text).value() if text else {} for text in m.group(4, 5, 6))
    return Event(m[3], int(m[1]) * 1_000_000_000 + int(m[2]), packet.get("cpu_id"), context, fields, line)


READ = ["babeltrace2", "--names=all", "--clock-seconds", "--no-delta"]


def read_trace(*inputs, name=None, check=True, timeout=300):
    """The events of traces in time order, or only those called `name`. A complaint by babeltrace2 is a failure."""
    p = subprocess.run([*READ, *inputs], capture_output=True, text=True, errors="surrogateescape", timeout=timeout)
    if check and p.returncode != 0:
        raise AssertionError(f"babeltrace2 {inputs}: {p.stderr[-4000:]}")
    events = [parse_event(line) for line in p.stdout.splitlines() if line.startswith("timestamp = ")]
    return [e for e in events if name is None or e.name == name]


def metadata(directory):
    """All metadata text below a trace directory."""
    p = subprocess.run(["babeltrace2", "-o", "ctf-metadata", directory], capture_output=True, text=True, timeout=300)
    return p.stdout


class LiveReader:
    """babeltrace2 at the relay daemon's live port; collects its events as they arrive."""

    def __init__(self, url, path):
        self.path, self.file = path, open(path, "wb")
        self.process = subprocess.Popen([*READ, "--input-format=lttng-live", url], stdout=self.file, stderr=subprocess.STDOUT)

    def text(self):
        with open(self.path, errors="surrogateescape") as f:
            return f.read()

    def events(self, name=None):
        lines = self.text().splitlines(keepends=True)
        found = [parse_event(x.rstrip("\n")) for x in lines if x.startswith("timestamp = ") and x.endswith("\n")]
        return [e for e in found if name is None or e.name == name]

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.file.close()


# ---- daemons -------------------------------------------------------------------------------------------------------------


class User:
    """A user of LTTng: root, or an ordinary user with a home directory of his own."""

    def __init__(self, home, entry=None, groups=()):
        self.home, self.entry, self.groups = home, entry, groups
        os.makedirs(home, exist_ok=True)
        if entry:
            os.chown(home, entry.pw_uid, entry.pw_gid)

    def env(self, **extra):
        env = {k: v for k, v in harness.environment().items() if k not in LTTNG_VARIABLES}
        return dict(env, HOME=self.home, LTTNG_HOME=self.home, **extra)

    def popen(self):
        """Keyword arguments of subprocess calls that run a program as this user."""
        if not self.entry:
            return {"env": self.env()}
        return {"env": self.env(), "user": self.entry.pw_uid, "group": self.entry.pw_gid, "extra_groups": list(self.groups)}


class Daemon:
    """A daemon in the foreground, with its helpers in a process group of its own."""

    def __init__(self, argv, user, log, cwd="/"):
        self.argv, self.user, self.log, self.cwd = argv, user, log, cwd
        self.process = None
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=self.cwd, **self.user.popen()
            )

    @property
    def pid(self):
        return self.process.pid

    def alive(self):
        return self.process.poll() is None

    def freeze(self):
        """SIGSTOP: it keeps its sockets open and answers no request."""
        os.kill(self.pid, signal.SIGSTOP)
        wait_until(lambda: harness.status(self.pid, "State").startswith("T"), 10, "the daemon to be stopped")

    def thaw(self):
        os.kill(self.pid, signal.SIGCONT)

    def kill(self):
        """Kills the daemon alone with SIGKILL; its consumer daemons notice."""
        self.process.kill()
        self.process.wait()

    def stop(self, seconds=10):
        """Ends it in an orderly way if possible, and in any case."""
        if self.alive():
            self.thaw()
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()

    def output(self):
        with open(self.log, errors="replace") as f:
            return f.read()


class Conversation:
    """A program of tests/targets that answers each line with one line. `case` ends it."""

    def __init__(self, case, *argv, **popen):
        pipe = subprocess.PIPE
        self.process = case.spawn(*argv, **{"stdin": pipe, "stdout": pipe, "stderr": None, "text": True, "bufsize": 1, **popen})
        self.pid = self.process.pid
        case.assertEqual(self.process.stdout.readline(), "READY\n")

    def __call__(self, command):
        self.process.stdin.write(command + "\n")
        return self.process.stdout.readline().rstrip("\n")

    def exit(self):
        self.process.stdin.write("exit\n")
        return self.process.wait(300)


# ---- test cases ----------------------------------------------------------------------------------------------------------


class Case(harness.Case):
    """A test with a root user and an ordinary one, each with an empty home; daemons are started by the test."""

    def setUp(self):
        reason = missing()
        if reason:
            self.skipTest(reason)
        if not isolated():
            self.fail("run this file by itself: it ends with lttng_env.main()")
        super().setUp()
        os.chmod(self.dir, 0o755)
        self.root = User(self.path("root"))
        self.nobody = User(self.path("nobody"), NOBODY)
        for path in ("/run/lttng", *(os.path.join("/dev/shm", x) for x in os.listdir("/dev/shm"))):
            shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)

    def tracer(self, name="tracer"):
        """An ordinary user in root's tracing group."""
        return User(self.path(name), NOBODY, [grp.getgrnam("tracing").gr_gid])

    # -- daemons

    def start_daemon(self, argv, user):
        self.count += 1
        daemon = Daemon(argv, user, self.path(f"daemon-{self.count}.log"), cwd=user.home)
        self.addCleanup(daemon.stop)
        return daemon

    def sessiond(self, *args, user=None):
        """Starts a session daemon and waits until it answers. Root's is the global one (/run/lttng), another user's his own ($LTTNG_HOME/.lttng)."""
        daemon = self.start_daemon(["lttng-sessiond", "--no-kernel", *args], user or self.root)
        self.await_sessiond(daemon)
        return daemon

    def await_sessiond(self, daemon):
        """Waits for the daemon, also after start() of one that was killed."""
        socket_path = "/run/lttng/client-lttng-sessiond" if not daemon.user.entry else daemon.user.home + "/.lttng/client-lttng-sessiond"

        def ready():
            if not daemon.alive():
                raise AssertionError("lttng-sessiond ended: " + daemon.output()[-2000:])
            return answers(socket_path) and self.lttng("list", user=daemon.user, check=False).returncode == 0

        wait_until(ready, 90, "the session daemon to answer")  # its liburcu waits for a grace period of the kernel

    def relayd(self, user=None):
        """A relay daemon on LTTng's default ports: only under main(network=True). It writes traces to self.path('relay')."""
        output = self.path("relay")
        os.makedirs(output, exist_ok=True)
        urls = [x for option, kind in (("-C", "control"), ("-D", "data"), ("-L", "live")) for x in (option, f"tcp://127.0.0.1:{RELAY[kind]}")]
        daemon = self.start_daemon(["lttng-relayd", "-o", output, *urls], user or self.root)
        wait_until(lambda: all(harness.listens(port) for port in RELAY.values()), 30, "the relay daemon to listen")
        return daemon

    # -- the lttng command

    def lttng(self, *args, user=None, check=True, timeout=300):
        """Runs lttng, which here never starts a daemon by itself."""
        p = subprocess.run(["lttng", "-n", *map(str, args)], capture_output=True, text=True, timeout=timeout, **(user or self.root).popen())
        if check and p.returncode != 0:
            self.fail(f"lttng {args}: {p.returncode}\n{p.stdout}\n{p.stderr}")
        return p

    def lttng_xml(self, *args, user=None, check=True):
        """The same with --mi=xml: the output as elements without name spaces, None if it failed."""
        p = self.lttng("--mi=xml", *args, user=user, check=check)
        if p.returncode != 0 or not p.stdout.strip():
            return None
        return ElementTree.fromstring(re.sub(r'\sxmlns(:\w+)?="[^"]*"|\sxsi:\w+="[^"]*"', "", p.stdout))

    def listed(self, fields=False, user=None):
        """The output of `lttng list -u`: {pid: {event: {"type":, "loglevel":, "fields": {name: type}}}}."""
        answer = self.lttng_xml("list", "-u", *(["-f"] if fields else []), user=user, check=False)
        found = {}
        for pid in answer.iter("pid") if answer is not None else ():
            events = found.setdefault(int(pid.findtext("id")), {})
            for event in pid.iter("event"):
                events[event.findtext("name")] = {
                    "type": event.findtext("type"),
                    "loglevel": event.findtext("loglevel"),
                    "fields": {f.findtext("name"): f.findtext("type") for f in event.iter("event_field")},
                }
        return found

    def wait_listed(self, pid, *names, user=None, seconds=60):
        """Waits until the daemon lists these events of the process; returns all of the process."""

        def look():
            events = self.listed(user=user).get(pid, {})
            return events if all(name in events for name in names) else None

        return wait_until(look, seconds, f"lttng list -u to show {names} of {pid}")

    def sessions(self, user=None):
        """{name: active}"""
        answer = self.lttng_xml("list", user=user)
        return {s.findtext("name"): s.findtext("enabled") == "true" for s in answer.iter("session")} if answer is not None else {}

    def session(self, name, *rules, channel=(), contexts=(), create=(), start=True, user=None):
        """Creates a session with its trace at self.path(name); a rule is the arguments of enable-event. Starts it if asked."""
        lttng = lambda *args: self.lttng(*args, user=user)
        lttng("create", name, *(create or [f"--output={self.path(name)}"]))
        lttng("enable-channel", "-u", "-s", name, *channel, "c")
        for rule in rules:
            lttng("enable-event", "-u", "-s", name, "-c", "c", *([rule] if isinstance(rule, str) else rule))
        for context in contexts:
            lttng("add-context", "-u", "-s", name, "-c", "c", "-t", context)
        if start:
            lttng("start", name)

    def last_events(self, session, name=None):
        """Destroys a session and returns its events."""
        self.lttng("stop", session)
        self.lttng("destroy", session)
        return self.read(self.path(session), name=name)

    def rules(self, session, user=None):
        """{channel: {event rule: enabled}} of a session's user-space domain."""
        answer = self.lttng_xml("list", session, user=user)
        return {
            c.findtext("name"): {e.findtext("name"): e.findtext("enabled") == "true" for e in c.iter("event")} for c in answer.iter("channel")
        }

    # -- traces

    def read(self, *inputs, **kw):
        return read_trace(*inputs, **kw)

    def live_reader(self, session, host=None):
        """Reads a live session of this machine from the relay daemon."""
        self.count += 1
        url = f"net://localhost/host/{host or socket.gethostname()}/{session}"
        reader = LiveReader(url, self.path(f"live-{self.count}.txt"))
        self.addCleanup(reader.stop)
        return reader


def answers(path):
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(path)
        except OSError:
            return False
    return True
