# SPDX-License-Identifier: MIT
"""Tests every form of executable and every kind of container and directory that a process can run in."""

import os
import shutil
import subprocess

import binutils
import harness
from harness import Case, State, needs, needs_root, wait_until


class Variants(Case):
    def check(self, name, probe=("--function", "foo")):
        t = self.target(name, 0, 300)
        before = State(t.pid)
        r = self.attach(t, *probe, "-t", "regs", "-n", 20)
        self.assert_ok(r)
        self.assert_hits(r, 20)
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    def test_pie(self):
        self.check("spin")

    def test_non_pie(self):
        self.check("spin-nopie")

    def test_static(self):
        self.check("spin-static")

    def test_static_pie(self):
        self.check("spin-static-pie")

    def test_musl(self):
        self.check("spin-musl")

    def test_refuse_DP_RSEQ_where_musl_cancels_and_ends_threads(self):
        """Cancellation compares the pc up to the system call, and after munmap() of its own stack a thread has none."""
        t = self.target("spin-musl", 0, 300)
        libc = next(m for m in harness.text_mappings(t.pid) if "libc.so" in m.path or "ld-musl" in m.path)
        code = harness.read_memory(t.pid, libc.start, libc.end - libc.start)
        call = code.find(bytes.fromhex("4889f04889d74889ce4c89c24d89ca4c8b442408")) - 3
        unmap = code.find(bytes.fromhex("b80b0000000f054831ffb83c0000000f05"))
        self.assertGreater(call, 0)
        self.assertGreater(unmap, 0)
        for at in (call - 6, call + 33, unmap + 7, unmap + 15):
            self.assert_refused(self.attach(t, "--probe", hex(libc.start + at), "-n", 1), "DP-RSEQ")
        self.assert_result_ok(t)

    def test_musl_static(self):
        self.check("spin-musl-static")

    def test_indirect_branch_tracking(self):
        self.check("spin-cet")

    def test_stripped_by_address(self):
        t = self.target("spin-stripped", 0, 300)
        whole = self.target("spin", 0, 300)
        offset = harness.symbol_address(whole.path, "foo") - harness.symbol_address(whole.path, "_start")
        entry = int(next(x for x in binutils.readelf("-h", t.path).splitlines() if "Entry" in x).split()[-1], 16)
        first = next(m for m in harness.maps(t.pid) if m.path == os.path.realpath(t.path))
        r = self.attach(t, "--probe", f"{first.start + entry + offset:#x}", "-t", "reg:rdi", "-n", 10)
        self.assert_ok(r)
        self.assert_hits(r, 10)
        self.assert_result_ok(t)

    def test_stripped_with_a_debug_file_beside_it(self):
        program, debug = self.path("prog"), self.path("prog.debug")
        shutil.copy(harness.target_path("spin"), program)
        subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
        subprocess.run(["strip", program], check=True)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program], check=True)
        t = harness.Target(program, 0, 300)
        self.addCleanup(t.close)
        r = self.attach(t, "--function", "foo", "-n", 10)
        self.assert_ok(r)
        self.assert_hits(r, 10)

    def test_executable_that_was_deleted(self):
        program = self.path("prog")
        shutil.copy(harness.target_path("spin"), program)
        t = harness.Target(program, 0, 300)
        self.addCleanup(t.close)
        os.unlink(program)
        r = self.attach(t, "--function", "foo", "-n", 10)
        self.assert_ok(r)
        self.assert_hits(r, 10)
        self.assertEqual(t.stop(), 0)

    @needs_root
    @needs("unshare")
    def test_another_mount_namespace(self):
        """The same path is another file there: symbols come from the process's file."""
        inner = self.path("inner")
        os.mkdir(inner)
        shutil.copy(harness.target_path("spin"), os.path.join(inner, "prog"))
        place = self.path("place")
        os.mkdir(place)
        shutil.copy(harness.target_path("recurse"), os.path.join(place, "prog"))
        script = f"mount --bind {inner} {place} && exec {place}/prog 0 300"
        t = harness.Target("/usr/bin/unshare", "--mount", "sh", "-c", script)
        self.addCleanup(t.close)
        r = self.attach(t, "--function", "foo", "-n", 10)
        self.assert_ok(r)
        self.assert_hits(r, 10)
        self.assert_clean_elsewhere(t.pid)
        self.assertEqual(t.stop(), 0)
        self.assertIn("RESULT OK", t.output())

    def assert_clean_elsewhere(self, pid):
        self.assertEqual([m.key() for m in harness.maps(pid) if m.is_ours], [])
        self.assertEqual(harness.changed_text(pid), [])

    @needs_root
    @needs("unshare")
    def test_another_pid_namespace(self):
        t = harness.Target("/usr/bin/unshare", "--pid", "--fork", "--kill-child", harness.target_path("spin"), "0", "300")
        self.addCleanup(t.close)
        child = wait_until(lambda: harness.children(t.pid), what="the child")[0]
        r = self.dynprobe("--pid", child, "--function", "foo", "-n", 10)
        self.assert_ok(r)
        self.assert_hits(r, 10)
        self.assertEqual({e["pid"] for e in r.events}, {child})
        self.assertEqual({e["tid"] for e in r.events} - {1, child}, set())
        self.assert_clean_elsewhere(child)

    @needs_root
    @needs("unshare")
    def test_no_proc_and_no_tmp_inside(self):
        """dynprobe needs nothing of the target's own file system: an empty root with one static program in it."""
        root = self.path("root")
        os.mkdir(root)
        shutil.copy(harness.target_path("spin-static"), os.path.join(root, "prog"))
        t = harness.Target("/usr/sbin/chroot", root, "/prog", "0", "300")
        self.addCleanup(t.close)
        r = self.attach(t, "--function", "foo", "-n", 10)
        self.assert_ok(r)
        self.assert_hits(r, 10)
        self.assert_clean_elsewhere(t.pid)

    def test_program_on_which_execution_is_long_under_way(self):
        t = self.target("recurse")
        r = self.attach(t, "--function", "fib", "-t", "reg:edi", "-n", 1000)
        self.assert_ok(r)
        self.assert_hits(r, 1000)
        self.assert_result_ok(t)


if __name__ == "__main__":
    harness.main()
