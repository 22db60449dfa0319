# SPDX-License-Identifier: MIT
"""Tests docs/cookbook-services.md: each command runs as printed there, and its output must be true of the service."""

import collections
import os
import re

import harness
import test_cookbook
from harness import needs_root


class Service(harness.Target):
    """The parent; its workers end with it."""

    def close(self):
        workers = harness.children(self.pid)
        self.process.kill()
        self.process.wait()
        for pid in workers:  # the next service has the same name
            harness.wait_until(lambda pid=pid: (harness.status(pid, "State") or "X")[0] in "ZX", what="the workers to end")
        super().close()


class Services(test_cookbook.Pages):
    pages = [os.path.join(harness.ROOT, "docs", "cookbook-services.md")]
    at_once = 1  # names mean all processes of that name

    @classmethod
    def prepare(cls):
        source = lambda name: os.path.join(harness.ROOT, "tests", "e2e", "cookbook", f"{name}.c")
        library = os.path.join(cls.bin, "libtax.so.1")
        harness.compiled(library, "gcc", "-g", "-O1", "-shared", "-fPIC", "-Wl,-soname,libtax.so.1", source("tax"))
        for name in ("bookings", "invoice"):
            harness.compiled(os.path.join(cls.bin, name), "gcc", "-g", "-O1", source(name), "-Wl,--no-as-needed", library, f"-Wl,-rpath,{cls.bin}")

    @classmethod
    def start(cls, name, directory):
        """One that is `steady` starts no programs and no more workers: on a busy machine, some might end before dynprobe has looked at them."""
        return Service(os.path.join(cls.bin, "bookings"), *(["steady"] if name == "steady" else []))

    def test_each_command_of_the_page_is_asked_for_here(self):
        asked = {b.name for b in test_cookbook.blocks(self.pages)}
        self.assertGreaterEqual(len(asked), 7)
        self.assertEqual(asked, {n[5:] for n in dir(self) if n.startswith("test_") and n[5:] in asked})

    def test_workers(self):
        rows = [(int(n), pid) for n, pid in self.ask("workers").rows(r"^ +(\d+) book  (\d+)$")]
        self.assertGreaterEqual(len(rows), 4)
        self.assertEqual(len({pid for _, pid in rows}), len(rows))

    def test_total(self):
        a = self.ask("total")
        self.assertEqual(a.rows(r"^ +(\d+) book$"), [str(a.hits())])
        self.assertGreater(a.hits(), 0)
        self.assertRegex(a.out, r"lost 0\b")

    def test_slow(self):
        """One booking in seven takes four milliseconds, the others less than one."""
        a = self.ask("slow")
        rows = [int(n) for n in a.rows(r"^\[.*?\) +(\d+) \|")]
        self.assertEqual(sum(rows), int(re.search(r"duration, (\d+) hits", a.out)[1]))

    def test_large(self):
        found = self.ask("large").rows(r'book: seats=(\d+) hall="(\w+)"')
        self.assertEqual((len(found), {seats for seats, _ in found}), (4, {"7"}))
        self.assertLessEqual({hall for _, hall in found}, {"north", "south"})

    def test_moment(self):
        a = self.ask("moment")
        files = a.rows(r"snapshot (bookings\.(\d+)\.\S+\.dps): 1 thread of (\d+)")
        self.assertEqual(len(files), 2, a.out)
        self.assertEqual([named for _, named, _ in files], [pid for _, _, pid in files])
        self.assertEqual(sorted(a.rows(r"^bookings \(pid (\d+)\), 1 thread")), sorted(pid for _, _, pid in files))

    @needs_root
    def test_invoices(self):
        items = collections.defaultdict(list)
        for pid, item, price in self.ask("invoices").rows(r"invoice\[(\d+)[/\]].*total: item=(\d+) price=(\d+)"):
            items[pid].append(int(item))
            self.assertEqual(int(price) % 100, 0)
        self.assertEqual(sum(map(len, items.values())), 6)
        self.assertTrue(all(got == sorted(got) and got[0] == 1 for got in items.values()), items)

    @needs_root
    def test_taxes(self):
        amounts = collections.defaultdict(list)
        for pid, amount in self.ask("taxes").rows(r"invoice\[(\d+)[/\]].*tax: amount=(\d+)"):
            amounts[pid].append(int(amount))
        self.assertEqual(sum(map(len, amounts.values())), 6)
        self.assertTrue(all(got == sorted(got) and got[-1] % got[0] == 0 for got in amounts.values()), amounts)

    @needs_root
    def test_script(self):
        self.assertIn("/etc/passwd", self.ask("script").rows(r'sort\[\d+.*open64: str\(\$rdi\)="(.*)"'))

    @needs_root
    def test_later(self):
        self.assertEqual([os.path.basename(path) for path in self.ask("later").rows(r'python3[\d.]*\[\d+.*sqlite3_open_v2: str\(\$rdi\)="(.*)"')], ["shop.db"])

    @needs_root
    def test_invoiced(self):
        """Each invoice has the items 1, 2 and 3, in this order; the run may end between two of them, in each of the four workers' invoices."""
        a = self.ask("invoiced")
        rows = {int(item): (int(n), int(of)) for n, of, item in a.rows(r"^ +(\d+) +(\d+) +[\d.]+ total  (\d)$")}
        self.assertEqual(set(rows), {1, 2, 3}, a.out)
        self.assertTrue(rows[1][0] >= rows[2][0] >= rows[3][0] >= rows[1][0] - 4, a.out)
        started = int(re.search(r"started +(\d+) process", a.out)[1])
        self.assertGreater(started, 1)
        self.assertLessEqual(rows[1][0], started)
        self.assertEqual(sum(n for n, _ in rows.values()), int(re.search(r"recorded (\d+)", a.out)[1]))

    @needs_root
    def test_callers(self):
        rows = {name: int(n) for n, name in self.ask("callers").rows(r"^ +(\d+) open64  (\S+)$")}
        self.assertGreater(rows["sort"], 0)
        self.assertLessEqual(set(rows), {"sh", "sort", "tail"})

    @needs_root
    def test_one(self):
        a = self.ask("one")
        self.assertIn("/etc/passwd", a.rows(r'sort\[\d+.*open64: str\(\$rdi\)="(.*)"'))
        self.assertEqual(a.rows(r"tail\[\d+.*(open64)"), [])
        self.assertIn("started   1 process", a.out)

    def test_stay(self):
        a = self.ask("stay")
        left = set(a.rows(r"1 probe left in (\d+)"))
        self.assertGreaterEqual(len(left), 1)
        self.assertLessEqual(set(a.rows(r"^(\d+) bookings: 1 probe")), left)


if __name__ == "__main__":
    harness.main()
