# SPDX-License-Identifier: MIT
"""Gives gdb names and backtraces for dynprobe's code in a process.

    gdb -x dynprobe-gdb.py -p PID        or, inside gdb:  source dynprobe-gdb.py

When the process stops and dynprobe's mappings have changed since the last stop, `dynprobe stubs` describes them in an ELF file,
which add-symbol-file loads. dynprobe is taken from $DYNPROBE, from this file's installation prefix, or from $PATH.
"""

import os
import shutil
import subprocess
import tempfile

import gdb


class DynprobeStubs(gdb.Command):
    """Look for dynprobe's code in the process again. gdb does this by itself at each stop."""

    def __init__(self):
        super().__init__("dynprobe-stubs", gdb.COMMAND_FILES)
        self.directory = tempfile.TemporaryDirectory(prefix="dynprobe-gdb-")
        self.known = {}  # pid: its mappings, and the file that describes them
        self.count = 0
        gdb.events.stop.connect(lambda event: self.look())
        gdb.events.exited.connect(lambda event: self.forget(event.inferior.pid))

    @staticmethod
    def program():
        beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bin", "dynprobe")
        return os.environ.get("DYNPROBE") or (beside if os.path.exists(beside) else shutil.which("dynprobe"))

    @staticmethod
    def mappings(pid):
        try:
            with open(f"/proc/{pid}/maps") as maps:
                return tuple(line for line in maps if "/memfd:dynprobe (deleted)" in line and "x" in line.split()[1])
        except OSError:
            return ()

    def forget(self, pid):
        path = self.known.pop(pid, ((), None))[1]
        if path:
            gdb.execute(f"remove-symbol-file {path}", to_string=True)
            os.unlink(path)

    def look(self):
        """Loads symbols if the mappings have changed; returns whether they have."""
        pid = gdb.selected_inferior().pid
        now = self.mappings(pid) if pid else ()
        if not pid or now == self.known.get(pid, ((), None))[0]:
            return False
        self.forget(pid)
        if now:
            self.load(pid, now)
        return True

    def load(self, pid, now):
        program = self.program()
        if not program:
            print("cannot name dynprobe's code in this process: dynprobe is not in $PATH (set DYNPROBE)")
            return
        self.count += 1
        path = os.path.join(self.directory.name, f"stubs-{pid}-{self.count}.so")
        made = subprocess.run([program, "stubs", "--pid", str(pid), "-o", path], capture_output=True, text=True)
        self.known[pid] = (now, path if made.returncode == 0 else None)
        if made.returncode == 0:
            gdb.execute(f"add-symbol-file {path}", to_string=True)
        else:
            print(made.stderr.strip())

    def invoke(self, argument, from_tty):
        self.known[gdb.selected_inferior().pid] = self.known.pop(gdb.selected_inferior().pid, ((), None))
        if not self.look() and from_tty:
            print("nothing has changed")


DynprobeStubs().look()
