# SPDX-License-Identifier: MIT
"""Tests dynprobe show: text and JSON of a real snapshot and of a hand-made one; and the file's layout, read by independent code."""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import tempfile
import termios
import zlib

import jsonschema

import binutils
import harness

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
GOLDEN = os.path.join(ROOT, "tests/unit/pmodules/golden-1.dps")  # every member of the model, with a NaN and invalid UTF-8


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """The fields of a record, as docs/snapshot-format.md has them: {number: [value, ...]}."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = data[at:at + 8], at + 8
        else:
            assert key & 7 == 2
            n, at = varint(data, at)
            value, at = data[at:at + n], at + n
        found.setdefault(key >> 3, []).append(value)
    return found


def sections(path):
    data = open(path, "rb").read()
    magic, version, _, n, crc, zero = struct.unpack_from("<8sHHIII", data)
    assert magic == b"\x89DPS\r\n\x1a\n" and version == 1 and zero == 0
    assert zlib.crc32(data[:16] + bytes(8) + data[24:24 + 40 * n]) == crc
    found = {}
    for i in range(n):
        tag, flags, offset, size, raw, crc, _ = struct.unpack_from("<4sIQQQII", data, 24 + 40 * i)
        stored = data[offset:offset + size]
        assert len(stored) == size and zlib.crc32(stored) == crc and flags == 1
        found[tag.decode()] = subprocess.run(["zstd", "-dc"], input=stored, capture_output=True, check=True).stdout
        assert len(found[tag.decode()]) == raw
    return found


class Show(harness.Case):
    def show(self, *args, **env):
        p = harness.tool("show", *args, errors="strict", env=harness.environment(**env))
        return harness.Result(p.returncode, p.stdout, p.stderr)

    @classmethod
    def setUpClass(cls):
        """Takes one snapshot for all tests."""
        cls.scratch = tempfile.TemporaryDirectory(prefix="dp-show-")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.threads = harness.Target("threads", 4)
        cls.addClassCleanup(cls.threads.close)
        cls.file = os.path.join(cls.scratch.name, "threads.dps")
        cls.taken = harness.tool("snapshot", cls.threads.pid, "-o", cls.file)

    def snapshot(self):
        self.assertEqual(self.taken.returncode, 0, self.taken.stderr)
        return self.threads, self.file

    def json(self, path):
        r = self.show("--json", path)
        self.assert_ok(r)
        self.assertEqual(r.err, "")
        return json.loads(r.out)

    def validator(self):
        with open(os.path.join(ROOT, "share/snapshot.schema.json")) as f:
            schema = json.load(f)
        jsonschema.Draft202012Validator.check_schema(schema)
        return jsonschema.Draft202012Validator(schema)

    def test_json_is_what_the_schema_says(self):
        _, path = self.snapshot()
        for snapshot in self.json(path), self.json(GOLDEN):
            self.validator().validate(snapshot)
        small = {**snapshot, "threads": [], "globals": []}
        self.validator().validate(small)
        for wrong in {"pid": "1"}, {"threads": None}, {"surprise": 1}:
            with self.assertRaises(jsonschema.ValidationError):
                self.validator().validate({**small, **wrong})

    def test_json_of_what_json_cannot_say(self):
        text = json.dumps(self.json(GOLDEN))
        self.assertIn('"number": "18446744073709551613"', text)
        self.assertIn('"real": "nan"', text)
        self.assertIn('"imaginary": "-inf"', text)
        self.assertIn('"text_hex": "610062ff"', text)
        self.assertNotIn("NaN", text)

    def test_a_real_process(self):
        t, path = self.snapshot()
        tids = sorted(map(int, os.listdir(f"/proc/{t.pid}/task")))
        found = self.json(path)
        self.assertEqual(sorted(thread["tid"] for thread in found["threads"]), tids)
        self.assertEqual(found["pid"], t.pid)
        r = self.show(path)
        self.assert_ok(r)
        self.assertTrue(r.out.startswith(f"threads (pid {t.pid}), {len(tids)} threads, "), r.out)
        self.assertIn(" in main (", r.out)
        self.assertNotIn("Maps:", r.out)
        for tid in tids:
            self.assertIn(str(tid), r.out)
        r = self.show(path, "--all", "-v")
        self.assertRegex(r.out, r"(?m)^  taken .*, by dynprobe [0-9.]+$")
        for wanted in "Maps:", "Files:", "Limits", "rip 0x", "[stack]", "/dev/null":
            self.assertIn(wanted, r.out)
        r = self.show(path, "--thread", t.pid, "-q")
        self.assertTrue(r.out.startswith(f"Thread {t.pid} "), r.out)
        self.assertNotIn(" = ", r.out)
        self.assertLess(os.path.getsize(path), 200 << 10)

    def test_the_file_is_as_documented(self):
        _, path = self.snapshot()
        found, parts = self.json(path), sections(path)
        texts = [text.decode(errors="replace") for text in fields(parts["STRS"])[1]]
        head, threads = fields(parts["HEAD"]), fields(parts["THRD"])[40]
        self.assertEqual(head[5], [2 * found["pid"]])
        self.assertEqual(texts[head[6][0] - 1], found["application"])
        self.assertEqual([fields(thread)[1][0] // 2 for thread in threads], [thread["tid"] for thread in found["threads"]])
        self.assertEqual([len(fields(thread).get(16, [])) for thread in threads], [len(thread["frames"]) for thread in found["threads"]])
        self.assertEqual(len(set(texts)), len(texts), "a string occurs twice")

    KINDS = "bottom ll ull flt dbl ldbl cflt cdbl cldbl string enum tuple array fn reference".split()
    PLACES = "local parameter global tls child".split()

    def same_variables(self, types, texts, shown, kept, usual_place, owner=None):
        """JSON omits what the rules of docs/snapshot-format.md can restore; the file contains everything."""
        text = lambda record, number: texts[record[number][0] - 1] if number in record else ""
        self.assertEqual(len(shown), len(kept))
        for v, record in zip(shown, map(fields, kept)):
            of_type = types[v["type"]]
            whole = {**of_type, "size": 0, "base_type": "", "place": usual_place, "index": -1, **of_type, **v}
            plain = "state" not in v and "summary" not in v
            number = int(v.get("number", "0"))
            if "number" not in v and plain and whole["kind"] in ("ll", "ull", "reference") and "is_bool" not in v:
                number = int(v["value"].split()[0], 0)
            address = int(v.get("address", "0x0"), 16)
            if "address" not in v and owner and owner["kind"] == "reference" and v["name"] == "*":
                address = owner["number"]
            elif "address" not in v and owner and owner["kind"] == "array" and owner["address"] and whole["index"] >= 0:
                address = owner["address"] + whole["index"] * whole["size"]
            real = v.get("real", 0.0)
            if "real" not in v and plain and whole["kind"] == "dbl" and "text" not in v:
                real = float(v["value"])
            found = (v["name"], v["type"], whole["base_type"], whole["kind"], whole["place"], whole["index"], address, whole["size"], number % 2 ** 64, struct.pack("<d", float(real) + 0.0))
            index = record.get(8, [1])[0]
            self.assertEqual(found, (text(record, 1), text(record, 2), text(record, 3), self.KINDS[record.get(4, [0])[0]], self.PLACES[record.get(6, [0])[0]],
                                     index >> 1 ^ -(index & 1), record.get(9, [0])[0], record.get(10, [0])[0], record.get(11, [0])[0], struct.pack("<d", struct.unpack("<d", record.get(12, [bytes(8)])[0])[0] + 0.0)))
            self.same_variables(types, texts, v.get("children", []), record.get(30, []), "child", {**whole, "address": address, "number": number})

    def test_what_json_leaves_out_can_be_had_back(self):
        for path in self.snapshot()[1], GOLDEN:
            found, parts = self.json(path), sections(path)
            texts = [text.decode(errors="replace") for text in fields(parts["STRS"])[1]]
            for thread, kept in zip(found["threads"], map(fields, fields(parts["THRD"])[40]), strict=True):
                self.same_variables(found["types"], texts, thread.get("variables", []), kept.get(18, []), "tls")
                for frame, record in zip(thread["frames"], map(fields, kept.get(16, [])), strict=True):
                    self.same_variables(found["types"], texts, frame["variables"], record.get(22, []), "local")
            self.same_variables(found["types"], texts, found["globals"], fields(parts.get("GLOB", b"")).get(50, []), "global")

    def test_attributes_may_be_called_anything(self):
        t, _ = self.snapshot()
        path, key = self.path("kv.dps"), 'a "quoted\\ \x1b[31m\n\u202ekey {['
        done = harness.tool("snapshot", t.pid, "-o", path, "--kv", f"{key}:1", "--kv", "b:2", status=0)
        found = self.json(path)
        self.validator().validate(found)
        self.assertEqual(str(found["attributes"][key]), "1")
        self.assertIn("b", found["attributes"])

    def test_the_innermost_frame_has_a_number_as_well(self):
        self.assertTrue(self.show(GOLDEN, "--frame", 0).out.startswith("#0 "))
        self.assertTrue(self.show(GOLDEN, "--frame", 1).out.startswith("#1 "))
        for wrong in "-1", "one", "":
            self.assert_refused(self.show(GOLDEN, f"--frame={wrong}"), "DP-USAGE", "--frame")

    def test_what_is_asked_wrongly(self):
        cut = self.path("cut.dps")
        with open(GOLDEN, "rb") as whole, open(cut, "wb") as part:
            part.write(whole.read()[:-1])
        self.assert_refused(self.show(cut), "DP-BAD-SNAPSHOT", cut, "byte ")
        self.assert_refused(self.show(harness.DYNPROBE), "DP-BAD-SNAPSHOT", "byte 0")
        self.assert_refused(self.show(self.path("none")), "DP-SYS", "No such file")
        self.assert_refused(self.show(self.dir), "DP-SYS", "directory")
        self.assert_refused(self.show(), "DP-USAGE", "which snapshot")
        self.assert_refused(self.show(GOLDEN, GOLDEN), "DP-USAGE", "one file")
        self.assert_refused(self.show(GOLDEN, "--json", "--thread", 100), "DP-USAGE", "exclude")
        self.assert_refused(self.show(GOLDEN, "-f", "ctf"), "DP-USAGE")
        self.assert_refused(self.show(GOLDEN, "--thread", "-1"), "DP-USAGE")
        self.assert_refused(self.show(GOLDEN, "--thread", 7), "DP-NO-VARIABLE", "no thread 7")
        self.assert_refused(self.show(GOLDEN, "--var", "x->y"), "DP-NO-VARIABLE", "x")

    def test_colour_is_for_those_who_want_it(self):
        self.assertNotIn("\033", self.show(GOLDEN).out)
        self.assertIn("\033[", self.show(GOLDEN, "--color", "always", NO_COLOR="1").out)
        self.assertNotIn("\033", self.show(GOLDEN, "--color", "never").out)

    def test_a_reader_that_has_enough(self):
        p = subprocess.run(f"'{harness.DYNPROBE}' show -v --all '{GOLDEN}' | head -n 1; echo ${{PIPESTATUS[0]}}", shell=True,
                           executable="/bin/bash", capture_output=True, text=True, timeout=300)
        self.assertEqual(p.stdout.splitlines()[1:], ["0"])
        self.assertEqual(p.stderr, "")


    def on_a_terminal(self, *args, **env):
        """What a terminal of 24 lines and 100 columns shows, and the exit status."""
        at_terminal, there = pty.openpty()
        fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        variables = {k: v for k, v in {**harness.environment(), "TERM": "dumb", **env}.items() if v is not None}
        p = subprocess.Popen([harness.DYNPROBE, "show", *args], stdin=there, stdout=there, stderr=there, env=variables)
        os.close(there)
        shown = b""
        while True:
            try:
                piece = os.read(at_terminal, 65536)
            except OSError:  # the last writer has gone
                break
            if not piece:
                break
            shown += piece
        os.close(at_terminal)
        return shown.decode(errors="replace").replace("\r\n", "\n"), p.wait()

    def test_a_pager_on_a_terminal_only(self):
        _, file = self.snapshot()
        pager = self.path("pager")
        with open(pager, "w") as f:
            f.write('#!/bin/sh\necho "paged, LESS=$LESS"\nhead -n 1\n')
        os.chmod(pager, 0o755)
        shown, status = self.on_a_terminal(file, DYNPROBE_PAGER=pager, PAGER="false", LESS=None)
        self.assertRegex(shown, r"^paged, LESS=FRX\n.*threads\S* \(pid", "the pager that reads one line is no failure")
        self.assertEqual((status, shown.count("\n")), (0, 2))
        shown, _ = self.on_a_terminal(file, DYNPROBE_PAGER=None, PAGER=pager)
        self.assertIn("paged", shown)
        self.assertNotIn("paged", self.show(file, DYNPROBE_PAGER=pager).out)
        shown, _ = self.on_a_terminal("--no-pager", file, DYNPROBE_PAGER=pager)
        self.assertNotIn("paged", shown)
        self.assertIn("Thread ", shown)

    def test_a_pager_that_cannot_be_started(self):
        _, file = self.snapshot()
        for nothing in ("/nonexistent/pager", "no-such-pager-program -x", "", "cat"):
            shown, status = self.on_a_terminal(file, DYNPROBE_PAGER=nothing)
            self.assertEqual(status, 0)
            self.assertIn("Thread ", shown, nothing)

    def test_lines_fit_the_terminal(self):
        _, file = self.snapshot()
        shown, _ = self.on_a_terminal("--no-pager", "--color", "never", file)
        frames = [line for line in shown.splitlines() if line.startswith("#")]
        self.assertTrue(frames)
        self.assertLessEqual(max(map(len, frames)), 100)

    def calls_of(self, pid):
        """The numbers of the system calls that the process's threads wait in."""
        calls = []
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/syscall") as f:
                calls.append(f.read().split()[0])
        return sorted(calls)

    @harness.needs("gcc")
    def test_idle_workers_are_one_group_though_they_wait(self):
        """The module that looks for deadlocks by itself says nothing of them."""
        source = """
            #define _GNU_SOURCE
            #include <pthread.h>
            #include <unistd.h>
            static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
            static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
            static void *worker(void *p) { pthread_mutex_lock(&lock); for (;;) pthread_cond_wait(&work, &lock); return p; }
            int main(void) {
                pthread_t t;
                for (int i = 0; i < 5; i++) {
                    pthread_create(&t, 0, worker, 0);
                    pthread_setname_np(t, i % 2 ? "odd" : "even");
                }
                write(1, "r", 1);
                pause();
            }"""
        program = harness.compiled(self.path("pool"), "gcc", "-g", "-pthread", text=source)
        p = subprocess.Popen([program], stdout=subprocess.PIPE)
        self.addCleanup(lambda: (p.kill(), p.wait(), p.stdout.close()))
        p.stdout.read(1)
        harness.wait_until(lambda: self.calls_of(p.pid) == ["202"] * 5 + ["34"], what="the workers wait, and main pauses")
        file = self.path("pool.dps")
        harness.tool("snapshot", p.pid, "-o", file, status=0)
        brief = self.show("--brief", file).out
        self.assertRegex(brief, r'(?m)^Thread \d+ "pool": \w*pause < main\n5 threads "even", "odd": \w+ < worker$')
        shown = self.show(file).out
        self.assertRegex(shown, r'(?m)^5 threads "even", "odd" with this stack: \d+')
        worker = re.search(r'"odd" with this stack: (\d+)', shown)[1]
        self.assertRegex(self.show("--thread", worker, file).out, r"(?m)^    in futex\(0x[0-9a-f]+, FUTEX_WAIT_BITSET_PRIVATE\|FUTEX_CLOCK_REALTIME, 0, NULL, FUTEX_BITSET_MATCH_ANY\)$")
        self.assertNotIn("condition variable", brief)

    @harness.needs("gcc")
    def test_the_first_screen_says_why_it_crashed(self):
        source = """
            #include <stdlib.h>
            #include <string.h>
            struct user { const char *name; struct user *next; };
            static int by_name(const void *a, const void *b) { return strcmp((*(struct user **)a)->name, (*(struct user **)b)->name); }
            int main(void) {
                struct user u[40], *all[40];
                for (int i = 0; i < 40; i++) { u[i] = (struct user){i == 17 ? NULL : "somebody", i ? &u[i - 1] : 0}; all[i] = &u[i]; }
                qsort(all, 40, sizeof(*all), by_name);
                return 0;
            }"""
        program = harness.compiled(self.path("sorts"), "gcc", "-g", "-O0", "-fno-builtin", text=source)
        core = binutils.core_of_crash(self.path("core"), program)
        harness.tool("snapshot", "--core", core, program, "-o", self.path("s.dps"), status=0)
        shown = self.show(self.path("s.dps")).out
        screen = "\n".join(shown.splitlines()[:24])
        self.assertRegex(screen, r"why +read of \d+ bytes? at 0x[0-9a-f]+: a null pointer")
        self.assertRegex(screen, r"where +\S*strcmp\S*, called by by_name at ")
        self.assertRegex(screen, r"#1 .* in by_name \(a=")
        self.assertRegex(screen, r"(?m)^#2-#\d+  .* \d+ frames \[libc")
        self.assertLess(len(shown.splitlines()), 120)
        brief = self.show("--brief", self.path("s.dps")).out
        self.assertLess(len(brief.splitlines()), 24, brief)


if __name__ == "__main__":
    harness.main()
