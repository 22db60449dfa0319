# SPDX-License-Identifier: MIT
"""Lets gdb and dynprobe work on one process.

    gdb -x dynprobe-gdb.py -p PID        or, inside gdb:  source dynprobe-gdb.py

- Names and backtraces for dynprobe's code: when the process stops and dynprobe's mappings have changed since the last stop,
  `dynprobe stubs` describes them in an ELF file, which add-symbol-file loads.
- Breakpoints on and behind probes: where dynprobe's jumps cover or rely on the program's bytes, gdb uses the processor's breakpoints
  (there are four) instead of writing an int3, which would make a jump lead elsewhere. gdb shows the program's own text.
- `dynprobe attach ARGS`, `dynprobe detach`, `dynprobe status` and more inside of gdb: gdb lets the process go, dynprobe works, gdb
  takes the process again (`help dynprobe`).

dynprobe is taken from `set dynprobe program`, from $DYNPROBE, from this file's installation prefix, or from $PATH.
"""

import contextlib
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile

import gdb
from gdb.FrameDecorator import FrameDecorator

OURS = "/memfd:dynprobe (deleted)"
BESIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bin", "dynprobe")  # in an installation


def quietly(command):
    return gdb.execute(command, to_string=True)


def change(name, value):
    """Takes what gdb.parameter() returns: an automatic setting is None, on and off are booleans."""
    quietly(f"set {name} " + {None: "auto", True: "on", False: "off"}.get(value, str(value)))


@contextlib.contextmanager
def setting(name, value):
    was = gdb.parameter(name)
    change(name, value)
    try:
        yield
    finally:
        change(name, was)


@contextlib.contextmanager
def silence():
    """gdb prints stops even where a command's output goes to a string."""
    gdb.flush()
    out, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    try:
        yield
    finally:
        gdb.flush()
        os.dup2(out, 1)
        os.close(out)


# ---- settings --------------------------------------------------------------------------------------------------------------


class Prefix(gdb.Command):
    def __init__(self, name, doc):
        self.__doc__ = doc
        super().__init__(name, gdb.COMMAND_DATA, gdb.COMPLETE_COMMAND, True)


class Program(gdb.Parameter):
    """The dynprobe that gdb's dynprobe commands run."""

    set_doc = "Set the path of dynprobe (empty: $DYNPROBE, the one of this installation, or the one in $PATH)."
    show_doc = "Show the path of dynprobe."

    def __init__(self):
        super().__init__("dynprobe program", gdb.COMMAND_FILES, gdb.PARAM_OPTIONAL_FILENAME)
        self.value = ""

    def get_set_string(self):
        return ""

    def path(self):
        return self.value or os.environ.get("DYNPROBE") or (BESIDE if os.path.exists(BESIDE) else shutil.which("dynprobe"))


class Hold(gdb.Parameter):
    """Whether the process stays stopped (SIGSTOP) while dynprobe works, so that gdb finds it where it let it go.

    auto: yes, unless the process is the foreground job of a terminal and gdb did not start it: its shell would take the terminal."""

    set_doc = "Set whether the process stays stopped while dynprobe works: auto, on or off."
    show_doc = "Show whether the process stays stopped while dynprobe works."

    def __init__(self):
        super().__init__("dynprobe hold", gdb.COMMAND_RUNNING, gdb.PARAM_ENUM, ["auto", "on", "off"])
        self.value = "auto"

    def get_set_string(self):
        return ""

    def wanted(self, pid):
        if self.value != "auto":
            return self.value == "on"
        with open(f"/proc/{pid}/stat") as stat:
            parent, group, session, terminal, foreground = map(int, stat.read().rpartition(")")[2].split()[1:6])
        return parent == os.getpid() or not terminal or group != foreground


Prefix("set dynprobe", "Settings of the dynprobe commands.")
Prefix("show dynprobe", "Show settings of the dynprobe commands.")
PROGRAM = Program()
HOLD = Hold()


def run_dynprobe(*args):
    program = PROGRAM.path()
    if not program:
        raise gdb.GdbError("dynprobe is not in $PATH: type 'set dynprobe program PATH'")
    try:
        return subprocess.run([program, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    except OSError as e:
        raise gdb.GdbError(f"cannot run {program}: {e.strerror}; type 'set dynprobe program PATH'") from None


# ---- what dynprobe has put into the process --------------------------------------------------------------------------------


def section(path, wanted):
    """The text of a section of an ELF file; empty if it has none of that name (an older dynprobe)."""
    with open(path, "rb") as f:
        data = f.read()
    table, size, n, names = (*struct.unpack_from("<Q", data, 40), *struct.unpack_from("<HHH", data, 58))
    headers = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(n)]
    strings = headers[names][4]
    for name, kind, flags, addr, offset, length in headers:
        if data[strings + name:].startswith(wanted.encode() + b"\0"):
            return data[offset:offset + length].decode()
    return ""


def ranges_of(items):
    """[start, end) ranges, ascending; overlapping ones are one."""
    merged = []
    for start, end in sorted(items):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(end, merged[-1][1])
        else:
            merged.append([start, end])
    return merged


class Protected:
    """Keeps gdb from writing to probed text, and shows it the program's own.

    Probed bytes are read-only to gdb, so there it uses the processor's breakpoints (four): an int3 in the bytes that a jump relies on
    would send threads elsewhere. dynprobe's own code is shared memory, which cannot be written. And gdb reads text from the files: it
    looks for the ends of prologues there, for each breakpoint and each step into a function. (It would put back a file's byte when it
    removes an int3, so the first byte of a jump must be read-only, too. And it would run a copy of the file's instruction, not the
    jump, to get over a breakpoint: so no displaced stepping.)"""

    SETTINGS = {"trust-readonly-sections": "on", "displaced-stepping": "off"}

    def __init__(self):
        self.ours = False
        self.before = {}  # the user's own settings

    def clear(self):
        if self.ours:
            quietly("mem auto")
            for name, value in self.before.items():
                change(name, value)
        self.ours = False

    def set(self, ranges):
        self.clear()
        if re.search(r"^\d", quietly("info mem"), re.M):
            change("trust-readonly-sections", False)
            print("dynprobe: you have defined memory regions ('mem auto' drops them, 'dynprobe-stubs' then defines those of the probes): "
                  "do not set breakpoints in the 8 bytes behind the first byte of a probed instruction")
            return
        quietly("set mem inaccessible-by-default off")
        for start, end in ranges:
            quietly(f"mem {start:#x} {end:#x} ro")
        self.before = {name: gdb.parameter(name) for name in self.SETTINGS}
        for name, value in self.SETTINGS.items():
            change(name, value)
        self.ours = True


class Moved(gdb.Breakpoint):
    """Stands for a breakpoint on an instruction that runs at another address now."""

    def __init__(self, original, address, copy):
        super().__init__(f"*{copy:#x}", internal=True)
        self.silent = True
        self.original, self.address = original, address

    def stop(self):
        b = self.original
        if not b.is_valid() or not b.enabled or (b.thread and b.thread != gdb.selected_thread().global_num):
            return False
        if b.condition and not gdb.parse_and_eval(b.condition):
            return False
        print(f"\nBreakpoint {b.number}, at {self.address:#x}, which runs in dynprobe's code now")
        return True


class DynprobeStubs(gdb.Command):
    """Look for dynprobe's code in the process again. gdb does this by itself at each stop."""

    def __init__(self):
        super().__init__("dynprobe-stubs", gdb.COMMAND_FILES)
        self.directory = tempfile.TemporaryDirectory(prefix="dynprobe-gdb-")
        self.known = {}  # pid: its mappings, and the file that describes them
        self.count = 0
        self.protected = Protected()
        self.moving = False
        self.copies, self.moved = {}, {}  # instruction: its copy; (breakpoint, instruction): its stand-in
        gdb.events.stop.connect(lambda event: self.look())
        gdb.events.exited.connect(lambda event: self.forget(event.inferior.pid))
        gdb.events.breakpoint_created.connect(lambda b: self.move_breakpoints())
        gdb.events.breakpoint_modified.connect(lambda b: self.move_breakpoints())

    @staticmethod
    def mappings(pid):
        try:
            with open(f"/proc/{pid}/maps") as maps:
                return tuple(line for line in maps if OURS in line and "x" in line.split()[1])
        except OSError:
            return ()

    def forget(self, pid):
        path = self.known.pop(pid, ((), None))[1]
        if path:
            quietly(f"remove-symbol-file {path}")
            os.unlink(path)
            self.protect((), "")

    def look(self, pid=None):
        """Loads symbols if the mappings have changed; returns whether they have."""
        pid = pid or gdb.selected_inferior().pid
        now = self.mappings(pid) if pid else ()
        if not pid or now == self.known.get(pid, ((), None))[0]:
            return False
        self.forget(pid)
        if now:
            self.load(pid, now)
        return True

    def load(self, pid, now):
        self.count += 1
        path = os.path.join(self.directory.name, f"stubs-{pid}-{self.count}.so")
        try:
            made = run_dynprobe("stubs", "--pid", str(pid), "-o", path)
        except gdb.GdbError as e:
            print(f"cannot name dynprobe's code in this process: {e}")
            return
        self.known[pid] = (now, path if made.returncode == 0 else None)
        if made.returncode == 0:
            quietly(f"add-symbol-file {path}")
            self.protect(now, section(path, ".dynprobe.sites"))
        else:
            print(made.stderr.strip())

    def protect(self, mappings, sites):
        """Takes the lines of .dynprobe.sites: `site ADDRESS LENGTH`, `moved ADDRESS COPY`."""
        lines = [(word, int(a, 0), int(b, 0)) for word, a, b in map(str.split, sites.splitlines())]
        probed = [(at, at + size) for word, at, size in lines if word == "site"]
        code = [tuple(int(end, 16) for end in line.split()[0].split("-")) for line in mappings]
        traps = sum(word == "site" and size == 1 for word, at, size in lines)
        if traps:
            print(f"dynprobe: {traps} of the places are traps (int3), whose signals gdb does not pass on: the program would die. Type "
                  "'dynprobe detach' before it continues")
        self.copies = {at: copy for word, at, copy in lines if word == "moved"}
        if probed or code:
            self.protected.set(ranges_of(probed + code))
        else:
            self.protected.clear()
        self.move_breakpoints()

    def move_breakpoints(self):
        """Keeps a stand-in for each location that runs at another address now."""
        if self.moving:
            return
        self.moving = True
        try:
            self.move(self.wanted())
        finally:
            self.moving = False

    def wanted(self):
        wanted = {}
        for b in gdb.breakpoints() if self.copies else ():
            if b.type in (gdb.BP_BREAKPOINT, gdb.BP_HARDWARE_BREAKPOINT):
                for location in getattr(b, "locations", ()):  # gdb 13 has them
                    if location.address in self.copies:
                        wanted[b.number, location.address] = (b, self.copies[location.address])
        return wanted

    def move(self, wanted):
        for key in [key for key, moved in self.moved.items() if key not in wanted or not moved.is_valid()]:
            moved = self.moved.pop(key)
            if moved.is_valid():
                moved.delete()
        for (number, address), (b, copy) in wanted.items():
            if (number, address) not in self.moved:
                self.moved[number, address] = Moved(b, address, copy)

    def invoke(self, argument, from_tty):
        pid = gdb.selected_inferior().pid
        self.known[pid] = (None, self.known.get(pid, ((), None))[1])
        self.look()


STUBS = DynprobeStubs()


# ---- names of frames -------------------------------------------------------------------------------------------------------


def name_of(frame):
    """The name of a frame in dynprobe's code, or None. All of them are signal frames, so that step, next and until pass them."""
    if frame.type() != gdb.SIGTRAMP_FRAME:
        return None
    name = frame.name()
    return name if name and "[dynprobe" in name else None


class Named(FrameDecorator):
    def function(self):
        return name_of(self.inferior_frame())


class Names:
    """gdb prints `<signal handler called>` for signal frames; backtraces show the names instead."""

    def __init__(self):
        self.name, self.priority, self.enabled = "dynprobe", 100, True
        gdb.frame_filters[self.name] = self
        gdb.events.stop.connect(lambda event: self.say())

    @staticmethod
    def filter(frames):
        return (Named(f) if name_of(f.inferior_frame()) else f for f in frames)

    @staticmethod
    def say():
        name = name_of(gdb.newest_frame())
        if name:
            print(f"in {name}")


Names()


# ---- gdb lets the process go, and takes it again ---------------------------------------------------------------------------


class Held:
    """Keeps a process stopped while nobody traces it. If gdb dies meanwhile, a helper lets the process continue."""

    def __init__(self, pid):
        self.pid = pid
        self.helper = subprocess.Popen(["sh", "-c", 'read -r over || kill -s CONT "$0"', str(pid)], stdin=subprocess.PIPE,
                                       start_new_session=True)
        os.kill(pid, signal.SIGSTOP)  # takes effect before any thread runs an instruction, as soon as gdb lets it go

    @staticmethod
    def accepts_continue(thread):
        with open(f"/proc/{thread.ptid[0]}/task/{thread.ptid[1]}/status") as status:
            blocked = int(re.search(r"^SigBlk:\s*(\w+)", status.read(), re.M)[1], 16)
        return not blocked & 1 << signal.SIGCONT - 1

    def undo(self):
        """gdb has the process again: ends the stop, whose SIGCONT gdb takes before any thread runs an instruction."""
        threads = gdb.selected_inferior().threads()
        thread = next((t for t in threads if self.accepts_continue(t)), None)
        os.kill(self.pid, signal.SIGCONT)
        if thread:
            thread.switch()
            how = quietly("info signals SIGCONT").splitlines()[-1].split()[1:4]
            quietly("handle SIGCONT stop nopass")
            with setting("scheduler-locking", "on"):
                quietly("stepi")
            quietly("queue-signal 0")  # or gdb would pass it on when the thread continues
            quietly("handle SIGCONT " + " ".join(word if yes == "Yes" else "no" + word
                                                 for word, yes in reversed(list(zip(("stop", "print", "pass"), how)))))
        self.done(b"over\n")

    def done(self, message=b""):
        with contextlib.suppress(BrokenPipeError):
            self.helper.communicate(message)


def check_may_go(inferior, thread):
    """Errors are raised while nothing has changed."""
    if not inferior.pid or not thread:
        raise gdb.GdbError("there is no process")
    connection = getattr(inferior, "connection", None)
    if connection and connection.type != "native":
        raise gdb.GdbError(f"gdb reaches this process by 'target {connection.type}': run dynprobe where the process runs, while "
                           "nobody traces it")
    if any(t.is_running() for t in inferior.threads()):
        raise gdb.GdbError("the process runs: interrupt it first")
    if "Active record" in quietly("info record"):
        raise gdb.GdbError("gdb records the execution: type 'record stop' first")
    stopped_by = re.search(r"It stopped (?:with|by|at a?) ?signal (SIG\w+)", quietly("info program"))
    if stopped_by and quietly(f"info signals {stopped_by[1]}").splitlines()[-1].split()[3] == "Yes":
        raise gdb.GdbError(f"the thread has not received {stopped_by[1]} yet: let it ('stepi'), or drop the signal ('queue-signal 0')")


class Place:
    """The selected thread and frame, and the breakpoints that may not survive."""

    def __init__(self):
        self.tid = gdb.selected_thread().ptid[1]
        self.level = gdb.selected_frame().level() if hasattr(gdb.Frame, "level") else 0
        self.breakpoints = {b.number: b.expression or b.location for b in gdb.breakpoints()}

    def select(self, held):
        for thread in gdb.selected_inferior().threads():
            if thread.ptid[1] == self.tid:
                thread.switch()
                if held and self.level:
                    with contextlib.suppress(gdb.error):
                        quietly(f"frame {self.level}")

    def say_lost(self):
        now = {b.number for b in gdb.breakpoints()}
        for number, what in self.breakpoints.items():
            if number not in now:
                print(f"breakpoint {number} ({what}) belonged to a thread or a frame, and ended when gdb let the process go: set it again")


def between(work):
    """gdb lets the process go, `work` runs, gdb takes the process again, whatever happens."""
    inferior = gdb.selected_inferior()
    check_may_go(inferior, gdb.selected_thread())
    pid, place = inferior.pid, Place()
    held = Held(pid) if HOLD.wanted(pid) else None
    try:
        with silence():
            quietly("detach")
    except gdb.error:
        if held:
            os.kill(pid, signal.SIGCONT)
            held.done(b"over\n")
        raise
    try:
        return work(pid)
    finally:
        retake(pid, held, place)


def retake(pid, held, place):
    try:
        STUBS.look(pid)  # before gdb can insert a breakpoint
        with silence():
            quietly(f"attach {pid}")
    except gdb.error as e:
        if held:
            held.done()  # lets the process continue
        raise gdb.GdbError(f"gdb cannot take process {pid} again: {e}") from None
    with silence():
        if held:
            held.undo()
        place.select(held)
    place.say_lost()


# ---- the commands ----------------------------------------------------------------------------------------------------------


class Verb(gdb.Command):
    def __init__(self, name, doc, lets_go):
        self.__doc__, self.name, self.lets_go = doc, name, lets_go
        super().__init__("dynprobe " + name, gdb.COMMAND_RUNNING)

    def invoke(self, argument, from_tty):
        self.dont_repeat()
        words = gdb.string_to_argv(argument)
        if self.lets_go:
            made = between(lambda pid: self.run(pid, words))
        else:
            made = self.run(gdb.selected_inferior().pid, words)
        gdb.write(made.stdout + made.stderr)
        if self.lets_go:
            gdb.write(quietly("frame"))
        if made.returncode not in (0, 121):
            raise gdb.GdbError(f"dynprobe {self.name} failed; gdb has the process")

    def run(self, pid, words):
        if not pid:
            raise gdb.GdbError("there is no process")
        return run_dynprobe(self.name, "--pid", str(pid), *words)


Prefix("dynprobe", """Probes of dynprobe in the process that gdb debugs.

gdb lets the process go, dynprobe works, and gdb takes the process again, with its breakpoints, the selected thread and frame. The
process stays stopped meanwhile, unless 'set dynprobe hold' or its shell are against it. What follows the command is what
'dynprobe COMMAND --pid PID' takes: dynprobe attach --function handle_request -t args""")
Verb("attach", "Insert probes that stay in the process: dynprobe attach --function NAME ...", True)
Verb("detach", "Remove all probes from the process.", True)
Verb("remove", "Remove some of the probes: dynprobe remove NAME...", True)
Verb("enable", "Enable probes: dynprobe enable NAME...", False)
Verb("disable", "Disable probes: dynprobe disable NAME...", False)
Verb("add-context", "Make a probe record more: dynprobe add-context -e NAME -t CONTEXT", True)
Verb("status", "List the probes in the process.", False)
Verb("list", "List functions of the process: dynprobe list [-v] [GLOB]", False)


class Events(Verb):
    def run(self, pid, words):
        return super().run(pid, ["--once", *words])


Events("record", "Print the events that the probes have left in the process: dynprobe record [-f json]", False)

STUBS.look()
