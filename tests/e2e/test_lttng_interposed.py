# SPDX-License-Identifier: MIT
"""Tests a program that defines functions of the C library itself, as allocators and sandboxes do: LTTng's libraries call the C library's.
"""

import os
import re
import signal
import subprocess

import harness
import lttng_env
import lttng_probe
from harness import needs, wait_until

# Not called by name, or not chosen by the program: data, ld.so's own functions, the compiler's.
NEVER_THE_PROGRAMS = {"__cxa_finalize", "__gmon_start__", "__libc_stack_end", "__stack_chk_fail", "__tls_get_addr", "_r_debug", "stderr", "stdout", "environ"}
LIBRARIES = ("liblttng-ust.so.1", "liblttng-ust-common.so.1", "liblttng-ust-tracepoint.so.1", "libnuma.so.1")


def loaded_path(name):
    """The path at which the dynamic loader finds a library."""
    out = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    return re.search(rf"^\s*{re.escape(name)} .*=> (\S+)$", out, re.M).group(1)


def imports(path):
    """The functions that an object imports from the C library, not from LTTng or libnuma."""
    out = subprocess.run(["nm", "-D", "--undefined-only", path], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1] for line in out.splitlines()}
    return {n.split("@")[0] for n in names if "@GLIBC" in n} - NEVER_THE_PROGRAMS


class Interposed(lttng_probe.Case):
    def known(self):
        with open(os.path.join(harness.ROOT, "tests", "targets", "interposed.h")) as f:
            return set(re.findall(r"^INTERPOSED\((\w+),", f.read(), re.M))

    @needs("nm")
    def test_every_import_is_known(self):
        """A newer liblttng-ust may call another function: does it return memory, does it take a descriptor? Then see redirect.c."""
        sink = os.path.join(os.path.dirname(harness.DYNPROBE), "agent", "lttng", "libdynprobe-lttng.so")
        wanted = set().union(*(imports(loaded_path(name)) for name in LIBRARIES), imports(sink) if os.path.exists(sink) else set())
        self.assertGreater(len(wanted), 100)
        self.assertEqual(wanted - self.known(), set())

    def test_no_call_of_the_guest_reaches_the_program(self):
        """From the guest's first line to the program's end, through sessions that come and go."""
        self.sessiond()
        self.session("s", "dynprobe:*", channel=["--subbuf-size=4K", "--num-subbuf=4"])
        t = self.program("interposer")
        for turn in range(2):
            self.leave(t, "--function", "foo", "-t", "reg:edi", "-t", "reg:rsi")
            self.let_run()
            self.session(f"later{turn}", "dynprobe:foo", contexts=["vtid", "procname"])
            self.let_run()
            self.lttng("destroy", f"later{turn}")
            self.tool("detach", "--pid", t.pid)
        self.assertGreater(len(self.events()), 100)
        self.end(t)

    def test_a_program_ends_with_the_guest_in_it(self):
        self.sessiond()
        self.session("s", "dynprobe:*")
        t = self.program("interposer")
        self.leave(t, "--function", "foo", "-t", "reg:edi")
        self.let_run()
        t.process.send_signal(signal.SIGTERM)
        wait_until(lambda: t.process.poll() is not None, what="the program to end")
        self.assertEqual(t.process.returncode, 0)


if __name__ == "__main__":
    lttng_env.main()
