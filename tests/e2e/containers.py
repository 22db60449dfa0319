# SPDX-License-Identifier: MIT
"""Containers for end-to-end tests, made with unshare(1) alone: no daemon, no image.

A container has namespaces of its own (mount, pid, ipc, uts, net, cgroup, and user if asked), an overlay as its root with copies of
the program and its libraries (not the host's inodes), and what its options say. This file is also the program that runs inside,
before the contained one.
"""

import ctypes
import functools
import json
import os
import re
import shutil
import struct
import subprocess
import sys

import binutils

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND = 1, 2, 4, 8, 32, 4096
MNT_DETACH, SYS_PIVOT_ROOT, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_CAPBSET_READ, PR_CAPBSET_DROP = 2, 155, 38, 22, 23, 24

# ---- seccomp filters ----------------------------------------------------------------------------------------------------

ALLOW, ERRNO, TRAP, KILL, LOG, TRACE = 0x7FFF0000, 0x00050001, 0x00030000, 0x80000000, 0x7FFC0000, 0x7FF00000
ENOSYS = 0x00050026
X86_64 = 0xC000003E
# What docker's default profile denies a container without added capabilities: administration of the machine, other namespaces,
# key rings, performance counters, and old calls. All other calls are allowed.
DOCKER_DENIES = (
    134, 136, 139, 153, 155, 156, *range(163, 184), 185, 205, 211, 212, 227, 236, 237, 238, 239, 246, 248, 249, 250, 256, 272, 279, 298, 300, 303, 304,
    308, 312, 313, 320, 321, 323, 425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 443,
)


def stmt(code, k):
    return struct.pack("=HBBI", code, 0, 0, k & 0xFFFFFFFF)


def jump(code, k, yes, no):
    return struct.pack("=HBBI", code, yes, no, k & 0xFFFFFFFF)


LOAD_NR, LOAD_ARCH, RETURN, JEQ, JGE = 0, 4, 0x06, 0x15, 0x35


def load(offset):
    return stmt(0x20, offset)


def denies(rules, otherwise=ALLOW, foreign=KILL):
    """A filter: rules are (number, action); calls of another architecture get `foreign`."""
    program = [load(LOAD_ARCH), jump(JEQ, X86_64, 1, 0), stmt(RETURN, foreign), load(LOAD_NR)]
    for number, action in rules:
        program += [jump(JEQ, number, 0, 1), stmt(RETURN, action)]
    return b"".join([*program, stmt(RETURN, otherwise)])


def docker_default():
    """Like docker's default profile: EPERM for what it denies, clone3 does not exist, clone makes no namespaces."""
    rules = b"".join(jump(JEQ, n, 0, 1) + stmt(RETURN, ERRNO) for n in DOCKER_DENIES)
    clone3 = jump(JEQ, 435, 0, 1) + stmt(RETURN, ENOSYS)
    clone = jump(JEQ, 56, 0, 4) + load(16) + jump(0x45, 0x7E020000, 0, 1) + stmt(RETURN, ERRNO) + stmt(RETURN, ALLOW)
    head = load(LOAD_ARCH) + jump(JEQ, X86_64, 1, 0) + stmt(RETURN, KILL) + load(LOAD_NR) + jump(JGE, 0x40000000, 0, 1) + stmt(RETURN, ENOSYS)
    return head + rules + clone3 + clone + stmt(RETURN, ALLOW)


# ---- capabilities ---------------------------------------------------------------------------------------------------------

CAP_SYS_PTRACE, CAP_SYS_ADMIN = 19, 21
# chown, dac_override, fowner, fsetid, kill, setgid, setuid, setpcap, net_bind_service, net_raw, sys_chroot, mknod, audit_write, setfcap
DOCKER_CAPABILITIES = [0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31]

# ---- outside -------------------------------------------------------------------------------------------------------------


@functools.cache
def needed_files(program):
    """The program's libraries, as ldd lists them, and its loader."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return {*re.findall(r"(/\S+) \(0x", listed), *re.findall(r"interpreter: (/[^]]+)", binutils.readelf("-l", program))}


def copied(case, name, programs, more=()):
    """A folder with copies of programs (in /app) and of what they need: the lowest layer of a root."""
    root = case.path(f"image-{name}")
    for folder in ("app", "proc", "dev", "etc", "tmp", "data", "old"):
        os.makedirs(f"{root}/{folder}")
    for program in programs:
        shutil.copy(program, f"{root}/app/{os.path.basename(program)}")
        for f in needed_files(program):
            os.makedirs(root + os.path.dirname(f), exist_ok=True)
            shutil.copy(f, root + f)
    for source, to in more:
        os.makedirs(os.path.dirname(root + to), exist_ok=True)
        shutil.copy(source, root + to)
    return root


def command(spec):
    """The command that runs spec["argv"] in a container; in the pid namespace of spec["beside"], if given, as a sidecar does."""
    new = ["--mount", "--fork", "--kill-child", "--ipc", "--uts", "--net", "--cgroup"]
    new += [] if spec.get("beside") else ["--pid"]
    if spec.get("user"):
        new += ["--user", "--map-root-user"]
    joined = [shutil.which("nsenter"), f"--pid=/proc/{spec['beside']}/ns/pid"] if spec.get("beside") else []
    return [*joined, shutil.which("unshare"), *new, sys.executable, "-B", os.path.abspath(__file__), json.dumps(spec)]


def remount_noexec(pid):
    """Forbids, in a running container, to map files of its root as code."""
    child = os.fork()
    if child == 0:
        inside = Inside({})
        ns, root = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY), os.open(f"/proc/{pid}/root", os.O_RDONLY)
        failed = inside.libc.setns(ns, 0) or os.fchdir(root) or os.chroot(".") or inside.libc.mount(None, b"/", None, MS_REMOUNT | MS_BIND | MS_NOEXEC, None)
        os._exit(bool(failed))
    if os.waitpid(child, 0)[1]:
        raise OSError("cannot mount the root noexec")


# ---- inside --------------------------------------------------------------------------------------------------------------


class Inside:
    def __init__(self, spec):
        self.spec = spec
        self.libc = ctypes.CDLL(None, use_errno=True)

    def check(self, result, what):
        if result != 0:
            raise OSError(ctypes.get_errno(), what)

    def mount(self, source, target, kind, flags=0, options=None):
        encoded = [None if x is None else os.fsencode(x) for x in (source, target, kind, options)]
        self.check(self.libc.mount(*encoded[:3], ctypes.c_ulong(flags), encoded[3]), f"mount {target}")

    def overlay(self, base):
        self.mount("layers", base, "tmpfs")
        for folder in ("upper", "work", "root"):
            os.mkdir(f"{base}/{folder}")
        root = f"{base}/root"
        self.mount("overlay", root, "overlay", 0, f"lowerdir={self.spec['image']},upperdir={base}/upper,workdir={base}/work")
        return root

    def fill(self, root):
        s = self.spec
        if s.get("proc", True):
            self.mount("proc", root + "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        if not s.get("tmp", True):
            os.rmdir(root + "/tmp")
        elif s.get("noexec"):
            for folder in ("/tmp", "/data"):
                self.mount("tmpfs", root + folder, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        if s.get("run"):
            for folder in ("/run", "/dev/shm"):
                os.makedirs(root + folder, exist_ok=True)
                self.mount("tmpfs", root + folder, "tmpfs", MS_NOSUID | MS_NODEV)
            os.makedirs(root + "/var", exist_ok=True)
            os.symlink("/run", root + "/var/run")
        for source, to in s.get("binds", []):
            os.makedirs(root + to, exist_ok=True)
            self.mount(source, root + to, None, MS_BIND | 16384)

    def enter(self, root):
        os.chdir(root)
        self.check(self.libc.syscall(SYS_PIVOT_ROOT, b".", b"."), "pivot_root")
        self.check(self.libc.umount2(b".", MNT_DETACH), "umount")
        os.chdir("/")
        if self.spec.get("readonly"):
            self.mount(None, "/", None, MS_REMOUNT | MS_RDONLY)

    def restrict(self):
        if self.spec.get("uid"):
            os.setgroups([])
            os.setresgid(*[self.spec["uid"]] * 3)
            os.setresuid(*[self.spec["uid"]] * 3)
        if self.spec.get("filters") or self.spec.get("no_new_privs"):
            self.check(self.libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
        for program in self.spec.get("filters", []):
            code = bytes.fromhex(program)
            buffer = ctypes.create_string_buffer(code, len(code))
            fprog = struct.pack("=H6xQ", len(code) // 8, ctypes.addressof(buffer))
            self.check(self.libc.prctl(PR_SET_SECCOMP, 2, fprog, 0, 0), "seccomp filter")

    def keep_capabilities(self, kept):
        """The next execve as root has these alone."""
        for n in range(64):
            if n not in kept and self.libc.prctl(PR_CAPBSET_READ, n, 0, 0, 0) == 1:
                self.check(self.libc.prctl(PR_CAPBSET_DROP, n, 0, 0, 0), "capability")

    def run(self):
        root = self.overlay(self.spec["base"])
        self.fill(root)
        self.enter(root)
        if "capabilities" in self.spec:
            self.keep_capabilities(self.spec["capabilities"])
        self.restrict()
        argv = self.spec["argv"]
        os.execve(argv[0], argv, {})


if __name__ == "__main__":
    Inside(json.loads(sys.argv[1])).run()
