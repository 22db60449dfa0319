# SPDX-License-Identifier: MIT
"""Tests docs/cookbook-snapshots.md: each command runs as printed there, and its output must be true of the program."""

import glob
import os
import base64
import re
import zlib
import shutil

import binutils
import harness
import test_cookbook

DEPOTS = {"stuck": "stuck", "leak": "leak", "freed": "freed"}
FUTEX = "202"


def calls_of(pid):
    """The system calls that its threads are blocked in."""
    calls = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/syscall") as f:
            calls.append(f.read().split()[0])
    return calls


class Snapshots(test_cookbook.Pages):
    pages = [os.path.join(harness.ROOT, "docs", "cookbook-snapshots.md")]

    @classmethod
    def prepare(cls):
        """As installed: modules are found by name."""
        os.unlink(os.path.join(cls.bin, "dynprobe"))
        shutil.copy2(harness.DYNPROBE, os.path.join(cls.bin, "dynprobe"))
        os.makedirs(os.path.join(cls.dir, "share", "dynprobe"))
        os.symlink(os.path.join(harness.ROOT, "pmodules", "scripts"), os.path.join(cls.dir, "share", "dynprobe", "pmodules"))
        source = os.path.join(harness.ROOT, "tests", "e2e", "cookbook", "depot.c")
        cls.depot = harness.compiled(os.path.join(cls.bin, "depot"), "gcc", "-g", "-O1", "-pthread", source)
        cls.core = binutils.core_of_crash(os.path.join(cls.dir, "core"), cls.depot, "crash")

    @classmethod
    def start(cls, name, directory):
        if name == "core":
            shutil.copy(cls.core, os.path.join(directory, "core"))
            os.symlink(cls.depot, os.path.join(directory, "depot"))
            return None
        if name == "job":
            return harness.Target(test_cookbook.PYTHON, os.path.join(harness.ROOT, "tests", "e2e", "cookbook", "job.py"))
        t = harness.Target(cls.depot, name) if name in DEPOTS else super().start(name, directory)
        if name == "stuck":  # it says READY before the two clerks wait for each other
            harness.wait_until(lambda: calls_of(t.pid) == [FUTEX, FUTEX], what="the clerks to wait")
        return t

    # ---- the page

    def test_each_command_of_the_page_is_asked_for_here(self):
        asked = {b.name for b in test_cookbook.blocks(self.pages)}
        self.assertGreaterEqual(len(asked), 15)
        self.assertEqual(asked, {n[5:] for n in dir(self) if n.startswith("test_") and n[5:] in asked})

    # ---- who

    def test_now(self):
        a = self.ask("now")
        self.assertRegex(a.out, r"\), 13 threads,")
        self.assertEqual(len(re.findall(r" in (?:main|worker|client|handle_request) ", a.out)) >= 3, True, a.out)

    def test_groups(self):
        groups = [int(n) for n in self.ask("groups").rows(r"# (\d+) threads have this stack")]
        self.assertTrue(groups and sum(groups) <= 13, groups)

    def test_lock(self):
        a = self.ask("lock")
        found = a.rows(r"critical: deadlock: thread (\d+) \(depot\) waits for mutex (\w+) \(0x\w+\), held by thread (\d+) \(depot\); "
                       r"thread (\d+) \(depot\) waits for mutex (\w+) \(0x\w+\), held by thread (\d+) \(depot\)")
        self.assertEqual(len(found), 1, a.out)
        one, first, holder, other, second, holds = found[0]
        self.assertEqual((one, other, {first, second}), (holds, holder, {"ledger", "shelf"}))

    def test_python(self):
        """Both threads wait for the lock, in the same method."""
        a = self.ask("python")
        orders = a.rows(r"in Cart\.order \(\) at .*/job\.py:(\d+)[^\n]*\n +self = <Cart object at 0x\w+>\n +wanted = (\{.*\})\n +total = (\d+)$")
        self.assertEqual({o[1:] for o in orders}, {("{'apple': 3, 'pear': 12}", "15"), ("{'plum': 1}", "1")}, a.out)
        self.assertEqual(len({line for line, _, _ in orders}), 1)

    def test_files(self):
        a = self.ask("files")
        self.assertRegex(a.out, r"\n +\d+ socket:\[\d+\]")
        self.assertRegex(a.out, r"Max open files +\d+")

    # ---- that moment

    def test_slow(self):
        a = self.ask("slow")
        rows = a.rows(r"shop\[(\d+)\] shop::Desk::serve:return: duration=([\d.]+)m?s snapshot_id=0x(\w+)")
        self.assertGreaterEqual(min(float(duration) for _, duration, _ in rows), 1)
        (tid, _, digits), = [row for row in rows if row[2] != "0"]
        self.assertIn(f"snapshot_id 0x{digits}", a.out)
        self.assertRegex(a.out, rf'Thread {tid} "shop"[^\n]*\n#0 +0x\w+ in shop::Desk::serve ')

    def test_python_hit(self):
        a = self.ask("python_hit")
        names = a.rows(r"^#\d+ +(?:0x\w+ )?in ([\w.<>]+) ")
        self.assertEqual(names[0], "malloc")
        self.assertIn(["Shop.fill", "work", "<module>", "_PyEval_EvalFrameDefault"], [names[i:i + 4] for i in range(len(names))])
        self.assertRegex(a.out, r"in Shop\.fill \(\) at <string>:2 [^\n]*\n +self = <Shop object at 0x\w+>\n +size = 5000000\n")

    def test_request(self):
        a = self.ask("request")
        number, client, operand, verb = a.rows(r'^\*request = \{id = (\d+), client = (\d+), operand = (\d+), verb = "(\w+)"')[0]
        self.assertEqual((int(number) * 7 + int(client), verb), (int(operand), "negate"))
        self.assertIn(f"request = {{id = {number}, client = {client}, operand = {operand}, verb", a.out[a.out.index("#1 "):])

    def test_three(self):
        a = self.ask("three")
        taken = set(a.rows(r"^dynprobe: snapshot (\S+\.dps): "))
        self.assertIn(len(taken), (1, 2, 3), a.out)
        self.assertEqual({os.path.basename(p) for p in glob.glob(os.path.join(self.dir, "three", "*.dps"))}, taken)
        self.assertEqual(a.rows(r"^dynprobe: (\d) snapshots? taken"), [str(len(taken))])

    def test_event(self):
        a = self.ask("event")
        taken = a.rows(r"^dynprobe: snapshot \S+\.(\w+)\.dps: ")
        self.assertEqual((len(taken), a.rows(r"snapshot_id 0x(\w+), when request->operand > 100")), (1, taken))

    def test_global(self):
        a = self.ask("global")
        self.assertIn(int(a.rows(r"^stock = (\d+)")[0]), range(0, 21))
        self.assertEqual(len(a.rows(r"__owner = (\d+)")), 1)

    def test_strings(self):
        self.assertEqual(len(self.ask("strings").rows(r'^order->customer = "customer [AB]"$')), 1)

    # ---- what goes wrong

    def test_crash(self):
        a = self.ask("crash")
        self.assertIn("why          read of 4 bytes at 0x18: a null pointer", a.out)
        self.assertRegex(a.out, r"in weigh \(parcel=0x\w+\)")
        self.assertIn("{number = 3, label = 0x0, next = 0x0}", a.out)
        self.assertTrue(a.out.endswith('first.next->label->town = "Lyon"\n'), a.out)

    def test_compare(self):
        a = self.ask("compare")
        found = [tuple(map(int, row)) for row in a.rows(r"^[<>] book = \{parcels = (\d+), kept = (\d+), bytes = (\d+)\}")]
        self.assertEqual(len(found), 2, a.out)
        for parcels, kept, size in found:
            self.assertLessEqual(abs(parcels // 100 - kept) + abs(kept * 4000 - size) // 4000, 2)
        self.assertGreater(found[1][0], found[0][0])

    def test_leak(self):
        a = self.ask("leak")
        self.assertEqual(int(a.rows(r"^number = (\d+)")[0]) % 100, 0)
        self.assertRegex(a.out, r"#0 .* in malloc .*\n(?: .*\n)*#1 .* in pack ")

    def test_lost(self):
        """The address of the newest block may still be in a register or on the stack; malloc may have returned it, but nobody counted it yet."""
        a = self.ask("lost")
        kept = int(a.rows(r"^book = \{parcels = \d+, kept = (\d+),")[0])
        found = a.rows(r"^  # (\d+) blocks? of (\d+) bytes \(")
        self.assertTrue(all(size == "4008" for _, size in found) and len(found) <= 1, a.out)
        self.assertIn(kept - sum(int(n) for n, _ in found), (-1, 0, 1, 2), a.out)
        self.assertEqual(a.out.count("no leak candidates:"), 0 if found else 1, a.out)

    def test_freed(self):
        self.assertRegex(self.ask("freed").out, r"classifiers  use-after-free")

    def test_copy(self):
        self.assertIn("mode fork", self.ask("copy").out)

    # ---- what comes of it

    def test_module(self):
        found = self.ask("module").rows(r"# order (\d+) is (\w+) \(orders\)")
        self.assertEqual([what for n, what in found], ["refused" if int(n) % 10 == 9 else "served" for n, what in found])
        self.assertGreaterEqual(len(found), 1)

    def test_script(self):
        self.assertEqual(len(self.ask("script").rows(r"^(\d+) .+")), 13)

    def test_page(self):
        data = re.search('id="data">(.*?)</script>', self.ask("page").files["now.html"], re.S).group(1)
        self.assertIn("4711", "".join(zlib.decompress(base64.b64decode(part)).decode() for part in data.split()))


if __name__ == "__main__":
    harness.main()
