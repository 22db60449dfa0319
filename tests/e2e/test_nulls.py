# SPDX-License-Identifier: MIT
"""Tests that a string whose pointer is NULL is told from one that cannot be read, and from the text NULL, in every output."""

import json
import os

import browser
import harness

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "variables", "nulls.c")
# Four calls: strings, empty ones, NULL, and what cannot be read. The array is at the address of the struct.
FIELDS = ("-t", "s", "-t", "long=str(s, 200)", "-t", "v", "-t", "t->name", "-t", "t->text", "-t", "array=str(t->text)")
SHOWN = (
    's="text" long="text" v="view" t->name=NULL t->text="array" array="array"',
    's="NULL" long="NULL" v="" t->name=NULL t->text="array" array="array"',
    's=NULL long=NULL v=NULL t->name=NULL t->text="array" array="array"',
    "s=<unreadable> long=<unreadable> v=<unreadable> t->name=<unreadable> t->text=<unreadable> array=<unreadable>",
)


def fields_of(line):
    return line.split("handle: ")[1]


class Nulls(harness.Case):
    def setUp(self):
        super().setUp()
        self.program = harness.compiled(self.path("prog"), "gcc", "-g", "-O1", SOURCE)

    def run_with(self, *args, probe="handle"):
        return harness.tool("--function", probe, *args, "--", self.program, status=0)

    def shown(self, *args, probe="handle"):
        self.run_with("--no-record", "-o", self.path("out"), *args, probe=probe)
        with open(self.path("out")) as f:
            return [fields_of(line) for line in f.read().splitlines()]

    def recorded(self):
        if not os.path.exists(self.path("t")):
            self.run_with("-q", "--record", self.path("t"), *FIELDS)
        return self.path("t")

    def view(self, *args):
        return harness.tool("view", self.recorded(), *args, status=0).stdout.splitlines()

    def test_text(self):
        """The stub copies short strings itself; the agent fetches the others, and all beside a long one."""
        self.assertEqual(self.shown(*FIELDS), list(SHOWN))
        self.assertEqual(self.shown("-t", "s=str(s, 30)"), ['s="text"', 's="NULL"', "s=NULL", "s=<unreadable>"])
        self.assertEqual(self.shown("-t", "s=str(s, 1)", "--when", "!s")[0], "s=NULL")

    def test_text_with_traps_and_the_fault_handler(self):
        self.assertEqual(self.shown("--tactic", "jump,trap", "-t", "s=str(s, 30)", "-t", "t->name"), [f"{a} t->name={b}" for a, b in (
            ('s="text"', "NULL"), ('s="NULL"', "NULL"), ("s=NULL", "NULL"), ("s=<unreadable>", "<unreadable>"))])  # fmt: skip

    def test_a_view_of_a_trace(self):
        self.assertEqual([fields_of(line) for line in self.view()], list(SHOWN))
        self.assertEqual([fields_of(line) for line in self.view("--when", 's == "NULL"')], [SHOWN[1]])

    def test_json(self):
        live = self.run_with("--no-record", "-f", "json", "-o", self.path("out.json"), *FIELDS)
        with open(self.path("out.json")) as f:
            events = [e for e in harness.objects(f.read()) if e["type"] == "event"]
        self.assertEqual([e["fields"]["s"] for e in events], ["text", "NULL", None, None], live.stderr)
        self.assertEqual([e["fields"]["v"] for e in events], ["view", "", None, None])
        self.assertEqual([e.get("unreadable") for e in events], [None] * 3 + [["s", "long", "v", "t_name", "t_text", "array"]])
        again = [e for e in harness.objects("\n".join(self.view("-f", "json"))) if e["type"] == "event"]
        self.assertEqual([(e["fields"], e.get("unreadable")) for e in again], [(e["fields"], e.get("unreadable")) for e in events])

    def test_rows_of_a_view(self):
        rows = harness.objects("\n".join(self.view("-f", "json", "--count", "--by", "s")))
        self.assertEqual({(r["key"], r["hits"]) for r in rows}, {("text", 1), ("NULL", 1), (None, 1), ("<unreadable>", 1)})
        rows = harness.objects("\n".join(self.view("-f", "json", "--count", "--by", "t->name, t->text")))
        self.assertEqual({(*r["keys"].values(), r["hits"]) for r in rows}, {(None, "array", 3), ("<unreadable>", "<unreadable>", 1)})
        self.assertEqual([line.split() for line in self.view("--count", "--by", "t->name")[2:]], [["3", "handle", "NULL"], ["1", "handle", "<unreadable>"]])

    def test_a_format(self):
        self.assertEqual(self.shown(probe='handle "%s %6s|%-6s|", s, s, t->name'),
                         ["text   text|NULL  |", "NULL   NULL|NULL  |", "NULL   NULL|NULL  |", "<unreadable> <unreadable>|<unreadable>|"])  # fmt: skip

    def test_perfetto(self):
        self.run_with("--no-record", "-f", "perfetto", "-o", self.path("p.json"), *FIELDS)
        with open(self.path("p.json")) as f:
            args = [e["args"] for e in json.load(f)["traceEvents"] if e["ph"] == "i"]
        self.assertEqual([(a["s"], a["t->name"]) for a in args], [("text", "NULL"), ("NULL", "NULL"), ("NULL", "NULL"), ("<unreadable>", "<unreadable>")])

    def test_arguments_at_the_entry(self):
        r = self.run_with("--no-record", "-o", self.path("out"), "--return", "handle", "-t", "args")
        with open(self.path("out")) as f:
            calls = [line.split("] ")[1].split(", t=")[0] for line in f.read().splitlines() if "(" in line]
        self.assertEqual(calls, ['handle(s="text"', 'handle(s="NULL"', "handle(s=NULL", "handle(s=<unreadable>"], r.stderr)

    def test_pages_of_a_trace_and_of_a_run(self):
        self.run_with("--no-record", "-f", "json", "-o", self.path("run.json"), *FIELDS)
        for source in (self.recorded(), self.path("run.json")):
            harness.tool("report", source, "-o", self.path("page.html"), status=0)
            b = browser.Browser()
            self.addCleanup(b.close)
            b.open(self.path("page.html"))
            self.until(b, "document.body.dataset.ready === 'yes'")
            b.key("4")
            self.until(b, "document.querySelectorAll('#listed .row').length > 3")
            text = b.run("document.getElementById('body').innerText")
            name = "t->name=" if "t->name=" in text else "t_name="
            self.assertEqual((text.count(name + "NULL"), text.count(name + "<unreadable>")), (3, 1), text)
            self.assertIn("s=NULL", text)
            self.assertIn('s="NULL"', text)

    def until(self, b, condition):
        b.run("(async () => { for (let i = 0; i < 3000 && !(%s); i++) await new Promise((r) => setTimeout(r, 10)); })()" % condition)
        self.assertTrue(b.run(condition), condition)


if __name__ == "__main__":
    harness.main()
