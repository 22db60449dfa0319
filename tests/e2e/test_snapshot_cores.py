# SPDX-License-Identifier: MIT
"""Tests snapshot --core with cores of other programs: a file that was rebuilt since is not used, and the snapshot says so; unusable cores
are refused.
"""

import json
import os
import resource
import shutil
import struct
import subprocess

import test_snapshot
from harness import DYNPROBE, OWN_FAILURE, Case, compiled, environment, main, tool

PROGRAM = """
#include <stdio.h>
#include <unistd.h>
struct box { int first, second; } box = {11, 22};
__attribute__((noinline)) int inner(struct box *b) { puts("READY"); fflush(stdout); for (;;) pause(); return b->first; }
int main(void) { int local = 4711; return inner(&box) + local; }
"""
PAGE = 4096


def align(data, size=4):
    return data + bytes(-len(data) % size)


def note(kind, desc):
    return struct.pack("<III", 5, len(desc), kind) + align(b"CORE\0") + align(desc)


def made_core(files, loads=(), extra_notes=b""):
    """A core of one thread; files: [(start, end, page offset, path)]; loads: [(start, size, flags, bytes)]."""
    prstatus = bytearray(336)
    struct.pack_into("<h", prstatus, 12, 11)
    struct.pack_into("<i", prstatus, 32, 4242)
    names = b"".join(path.encode() + b"\0" for *_, path in files)
    table = struct.pack("<QQ", len(files), PAGE) + b"".join(struct.pack("<QQQ", *f[:3]) for f in files) + names
    notes = note(1, bytes(prstatus)) + note(0x46494C45, table) + extra_notes
    headers, body = b"", b""
    at = 64 + 56 * (1 + len(loads))
    headers += struct.pack("<IIQQQQQQ", 4, 0, at, 0, 0, len(notes), 0, 0)
    at = (at + len(notes) + PAGE - 1) // PAGE * PAGE
    for start, size, flags, data in loads:
        headers += struct.pack("<IIQQQQQQ", 1, flags, at + len(body), start, 0, len(data), size, PAGE)
        body += data
    elf = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, 1 + len(loads), 0, 0, 0)
    return (elf + headers + notes).ljust(at, b"\0") + body


class Cores(Case):
    take, read = test_snapshot.Snapshot.take, test_snapshot.Snapshot.read

    def build(self, path, source):
        compiled(path, "gcc", "-g", "-O0", "-Wl,--build-id", text=source)

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)
        return self.path(name)

    def frames(self, s):
        return [f.get("symbol") for f in s["threads"][0]["frames"]]

    def test_a_program_that_was_rebuilt_since_is_named_and_its_values_are_not_shown_DP_BAD_CORE(self):
        program, kept = self.path("prog"), self.path("prog.then")
        self.build(program, PROGRAM)
        shutil.copy(program, kept)
        core = self.core(self.target(program).pid)
        before = self.read(self.take("--core", core))
        self.assertIn("inner", self.frames(before))
        self.assertNotIn("rebuilt", str(before.get("notes")))
        os.unlink(program)
        self.build(program, PROGRAM.replace("4711", "4712").replace("int first, second", "int second, first"))
        r = self.take("--core", core)
        s = self.read(r)
        self.assertIn("was rebuilt since", r.err)
        self.assertIn("snapshot --core CORE EXE", r.err)
        self.assertNotIn("inner", self.frames(s), "the names of another program")
        self.assertTrue(any("another build" in o["path"] for o in s["objects"]), s["objects"])
        for frame in s["threads"][0]["frames"]:
            if "another build" in frame.get("module", ""):
                self.assertFalse(frame.get("variables"))
        self.assert_refused(self.take("--core", core, program), "DP-BAD-CORE", "is not the program", "build-id")
        then = self.read(self.take("--core", core, kept))
        self.assertEqual(self.frames(then), self.frames(before))
        self.assertIn("4711", str(then["threads"][0]["frames"]))

    def test_show_and_report_take_a_core(self):
        program, other = self.path("program"), self.path("other")
        self.build(program, PROGRAM)
        self.build(other, PROGRAM.replace("4711", "4712"))
        core = self.core(self.target(program).pid)
        self.read(self.take("--core", core, "-o", self.path("as.dps")))
        untimed = lambda text: text.partition("\n")[2]
        shown = tool("show", core, status=0).stdout
        self.assertEqual(untimed(shown), untimed(tool("show", self.path("as.dps"), status=0).stdout))
        self.assertIn("4711", shown)
        self.assertEqual(tool("show", core, program, "--var", "local", status=0).stdout, "local = 4711\n")
        self.assertEqual(json.loads(tool("show", "--json", core, status=0).stdout)["mode"], "core")
        pages = [tool("report", of, "-o", "-", status=0).stdout for of in (core, self.path("as.dps"))]
        self.assertTrue(all('id="data"' in page for page in pages))
        self.assertLess(abs(len(pages[0]) - len(pages[1])), 500)
        for args, tag, words in (
            (("show", core, other), "DP-BAD-CORE", "is not the program"),
            (("show", program), "DP-BAD-SNAPSHOT", "an ELF file"),
            (("show", self.path("as.dps"), program), "DP-USAGE", "only a core file has an executable"),
            (("report", core, program, "third"), "DP-USAGE", "third"),
            (("report", self.dir, program), "DP-USAGE", "one file at a time"),
        ):
            r = tool(*args, status=OWN_FAILURE)
            self.assertIn(f"[{tag}]", r.stderr)
            self.assertIn(words, r.stderr)

    def test_what_is_no_core_of_this_machine_is_said_in_words_DP_BAD_CORE(self):
        core = made_core([])
        aarch64 = bytearray(core)
        struct.pack_into("<H", aarch64, 18, 183)
        i386 = bytearray(core)
        i386[4] = 1
        struct.pack_into("<H", i386, 18, 3)
        for name, data, words in (
            ("arm", aarch64, "64-bit ARM"),
            ("i386", i386, "32-bit x86"),
            ("zst", b"\x28\xb5\x2f\xfd" + bytes(100), "zstd -d"),
            ("lz4", b"\x04\x22\x4d\x18" + bytes(100), "lz4 -d"),
            ("gz", b"\x1f\x8b" + bytes(100), "gzip -d"),
            ("xz", b"\xfd7zXZ\0" + bytes(100), "xz -d"),
            ("empty", b"", "it is empty"),
            ("text", b"hello", "is not an ELF file"),
            ("short", core[:40], "ELF header is truncated"),
            ("notes", core[:500], "notes are truncated"),
        ):
            with self.subTest(name=name):
                self.assert_refused(self.take("--core", self.write(name, data)), "DP-BAD-CORE", words)

    def test_pipes_and_devices_are_refused_and_not_opened_DP_BAD_CORE(self):
        os.mkfifo(self.path("fifo"))
        for path in (self.path("fifo"), "/dev/null", "-", "/dev/stdin"):
            with self.subTest(path=path):
                r = self.take("--core", path, stdin=subprocess.PIPE)
                self.assert_refused(r, "DP-BAD-CORE", "not a regular file", "save it")
        # a path in the core itself: if dynprobe opened the fifo to read, this writer's open would succeed
        page = bytes(PAGE)
        core = made_core([(0x400000, 0x401000, 0, self.path("fifo"))], [(0x400000, PAGE, 5, b""), (0x600000, PAGE, 6, page)])
        self.read(self.take("--core", self.write("core", core)))
        trace = subprocess.run(["strace", "-f", "-e", "trace=open,openat", DYNPROBE, "snapshot", "--core", self.path("core"), "-o", self.path("x.dps")], capture_output=True, text=True, env=environment()).stderr if shutil.which("strace") else ""
        for line in trace.splitlines():
            if "/fifo" in line:
                self.assertIn("O_PATH", line)

    def test_one_that_is_cut_off_says_so_and_one_without_files_too(self):
        whole = made_core([(0x400000, 0x401000, 0, "/no/such/file")], [(0x7F0000000000, 8 * PAGE, 6, bytes(8 * PAGE))])
        cut = self.take("--core", self.write("cut", whole[: -5 * PAGE]))
        self.read(cut)
        self.assertIn("truncated", cut.err)
        self.assertIn("20 KiB", cut.err)
        bare = self.take("--core", self.write("bare", whole.replace(struct.pack("<I", 0x46494C45), struct.pack("<I", 0x46494C46), 1)))
        self.read(bare)
        self.assertIn("does not name the mapped files", bare.err)

    def cost(self, core):
        """The processor time of one snapshot."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        r = self.take("--core", core)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assert_ok(r)
        self.assertLess(after.ru_maxrss, 2 << 20, "KiB")
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def test_a_huge_sparse_core_and_endless_lists_of_files_cost_no_more_than_what_they_hold(self):
        one = self.cost(self.write("one", made_core([], [(0x7F0000000000, 1 << 40, 6, bytes(PAGE))])))
        path = self.write("huge", made_core([], [(0x7F0000000000, 1 << 40, 6, b"")]))
        os.truncate(path, 1 << 40)
        self.assertLess(self.cost(path), 20 * one + 0.5)
        many = lambda n: self.write("many", made_core([(0x10000000 + i * 8192, 0x10001000 + i * 8192, 0, f"/no/such/{i}") for i in range(n)]))
        self.assertLess(self.cost(many(60_000)), 40 * self.cost(many(6_000)), "ten times as much; quadratic would be a hundred times")


if __name__ == "__main__":
    main()
