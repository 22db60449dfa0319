# SPDX-License-Identifier: MIT
"""A process as /proc shows it: mappings, text, threads, and what an attach and detach must not change."""

import array
import contextlib
import os
import re
import time

import binutils
from binutils import symbol_address


class Mapping:
    def __init__(self, line):
        fields = line.rstrip("\n").split(None, 5)
        self.start, self.end = (int(x, 16) for x in fields[0].split("-"))
        self.perms, self.offset = fields[1], int(fields[2], 16)
        self.inode, self.path = int(fields[4]), fields[5] if len(fields) > 5 else ""

        self.is_ours = "dynprobe" in os.path.basename(self.path)  # only the file name: the checkout's folder may be called dynprobe

    def key(self):
        return (self.start, self.end, self.perms, self.path)


def maps(pid):
    with open(f"/proc/{pid}/maps") as f:
        return [Mapping(line) for line in f]


def our_files(pid):
    """The inodes of dynprobe's files that are mapped: each run makes its own, and those of a killed run stay until the next one has cleaned up."""
    return {m.inode for m in maps(pid) if m.is_ours}


def has_processor(feature):
    """Is this name among the flags in /proc/cpuinfo?"""
    with open("/proc/cpuinfo") as f:
        return any(feature in line.split() for line in f if line.startswith("flags"))


def cpu_ticks(pid):
    """The processor time that it has used."""
    with open(f"/proc/{pid}/stat") as f:
        return sum(map(int, f.read().rpartition(")")[2].split()[11:13]))


def status_fields(pid):
    """{} if the process does not exist any more."""
    try:
        with open(f"/proc/{pid}/status") as f:
            return {name: value.strip() for name, _, value in (line.partition(":") for line in f)}
    except (FileNotFoundError, ProcessLookupError):
        return {}


def status(pid, field):
    """None if the process or the field does not exist any more."""
    return status_fields(pid).get(field)


def caught(pid):
    """The signals that a process handles, one bit each. Without 32 and 33: glibc catches these from the first thread on."""
    return int(status(pid, "SigCgt"), 16) & ~(3 << 31)


def read_memory(pid, address, size):
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as f:
        f.seek(address)
        return f.read(size)


def text_mappings(pid):
    return [m for m in maps(pid) if "x" in m.perms and m.path.startswith("/") and "memfd" not in m.path]


PAGE = 4096
FILE_PAGE, PRESENT_OR_SWAPPED = 1 << 61, 1 << 63 | 1 << 62


def private_pages(pid, m):
    """The addresses of a mapping's pages that are no longer the file's own. See Documentation/admin-guide/mm/pagemap.rst in Linux."""
    with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as f:
        f.seek(m.start // PAGE * 8)
        entries = array.array("Q", f.read((m.end - m.start) // PAGE * 8))
    return [m.start + i * PAGE for i, entry in enumerate(entries) if entry & PRESENT_OR_SWAPPED and not entry & FILE_PAGE]


def changed_bytes(pid, m):
    """Reads only pages that can differ: a browser's text has 160 MB."""
    pages = private_pages(pid, m)
    if not pages:
        return []
    changed = []
    with open(f"/proc/{pid}/map_files/{m.start:x}-{m.end:x}", "rb") as f:
        for page in pages:
            at = page - m.start + m.offset
            f.seek(at)
            memory, contents = read_memory(pid, page, PAGE), f.read(PAGE).ljust(PAGE, b"\0")
            changed += [(m.path, at + i) for i in range(PAGE) if memory[i] != contents[i]] if memory != contents else []
    return changed


def changed_text(pid):
    """[(path, file offset)] where executable memory differs from its file: empty in a process without probes."""
    for tries in range(200):
        try:
            return [place for m in text_mappings(pid) for place in changed_bytes(pid, m)]
        except OSError:  # the program unloaded a library between two reads
            if tries == 199 or not os.path.exists(f"/proc/{pid}/maps"):
                raise
            time.sleep(0.01)
    return None


def armed(pid):
    """Are probes installed? Our code is mapped, the text is changed, and no thread is being borrowed (which changes text too)."""
    look = lambda: status(pid, "TracerPid") == "0" and any(m.is_ours for m in maps(pid)) and changed_text(pid)
    return look() and (time.sleep(0.01), look())[1]  # twice: between two borrowed threads it looks the same


def waits_for_events(tool):
    """Is dynprobe in ppoll(), or for libraries in futex()? True also if that may not be read."""
    try:
        with open(f"/proc/{tool}/syscall") as f:
            return f.read().split()[0] in ("271", "202")
    except OSError:
        return True


def private_text_kib(pid):
    """Size of the copies of text pages that patching made and did not give back."""
    total, counting = 0, False
    with open(f"/proc/{pid}/smaps") as f:
        for line in f:
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                m = Mapping(line)
                counting = "x" in m.perms and m.path.startswith("/")
            elif counting and line.startswith("Anonymous:"):
                total += int(line.split()[1])
    return total


def live_address(pid, path, symbol):
    """The address of a symbol in the running process."""
    address = symbol_address(path, symbol)
    first = next(m for m in maps(pid) if m.path == os.path.realpath(path))
    pie = "DYN (" in binutils.readelf("-h", path)
    return address + (first.start - first.offset if pie else 0)


def assert_memory_exists(case, pid):
    """Checks that all mapped pages of our memory file exist: a first write to them needs no allocation."""
    ours = [m for m in maps(pid) if m.is_ours]
    case.assertTrue(ours)
    for m in ours:
        s = os.stat(f"/proc/{pid}/map_files/{m.start:x}-{m.end:x}")
        case.assertGreaterEqual(s.st_blocks * 512, s.st_size)
        case.assertGreater(s.st_size, 0)


def joined(mappings):
    """Joins neighbouring mappings of one file: after page replacement the kernel lists replaced pages separately."""
    found = []
    for m in sorted(mappings, key=lambda m: m.start):
        last = found[-1] if found else None
        if last and m.path.startswith("/") and (m.path, m.perms, m.start) == (last.path, last.perms, last.end) and m.offset == last.offset + last.end - last.start:
            last.end = m.end
        else:
            found.append(m)
    return found


def holders(session):
    """The processes of that session (a process that was started with start_new_session) that have memory of dynprobe."""
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with contextlib.suppress(OSError):
            if os.getsid(pid) == session and any(m.is_ours for m in maps(pid)):
                found.append(pid)
    return found


class State:
    """What an attach and detach must not change."""

    def __init__(self, pid):
        moving = ("[heap]", "[stack]", "[uprobes]")
        self.maps = sorted(m.key() for m in joined(maps(pid)) if m.path not in moving)
        self.fds = {}
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                self.fds[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
            except OSError:
                pass
        self.tasks = sorted(os.listdir(f"/proc/{pid}/task"))
        self.status = {f: status(pid, f) for f in ("TracerPid", "SigBlk", "SigIgn", "Seccomp", "NoNewPrivs")}
        self.caught = caught(pid)
        self.changed_text = changed_text(pid)

    def differences(self, other):
        return {k: (v, getattr(other, k)) for k, v in vars(self).items() if v != getattr(other, k)}


def children(pid):
    """The pids of its children."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and status(entry, "PPid") == str(pid):
            found.append(int(entry))
    return found
