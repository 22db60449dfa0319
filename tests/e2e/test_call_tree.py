# SPDX-License-Identifier: MIT
"""--calls and --self: the tree of calls of a program that is known to make so many of each, with recursion, longjmp, exceptions, tail
calls and threads."""

import base64
import json
import re
import zlib

import harness
from harness import Case

ROUNDS = 200
THREADS = 3
EACH = ROUNDS * THREADS
LEFT = THREADS * sum(1 for i in range(ROUNDS) if i % 3 == 0 or i % 5 == 0)
WHOLE = harness.target_path("whole")


class CallTree(Case):
    def tree(self, *args):
        """The nodes by their path, and standard error."""
        p = harness.tool("-f", "json", "-o", self.path("tree"), *args, "--", WHOLE, ROUNDS, status=0)
        self.assertIn("RESULT OK", p.stdout)
        with open(self.path("tree")) as f:
            found = [x for x in harness.objects(f.read()) if x["type"] == "calls"]
        return {tuple(x["path"]) if "path" in x else x["function"]: x for x in found}, p.stderr

    def test_counts_are_exact(self):
        tree, err = self.tree("--calls", "work")
        calls = {path[1:]: node["calls"] for path, node in tree.items() if len(path) < 4}
        self.assertEqual(calls[()], THREADS)
        for name in ("handle", "tail", "nothing", "attempt", "down"):
            self.assertEqual(calls[(name,)], EACH, name)
        self.assertEqual(calls[("tail", "last")], EACH)  # by a jump
        self.assertEqual(calls[("attempt", "leave")], EACH)
        for depth in range(1, 6):
            path = ("work",) + ("down",) * (depth + 1)
            self.assertEqual(tree[path]["calls"], THREADS * sum(1 for i in range(ROUNDS) if i % 6 >= depth))
        self.assertIn(f"{LEFT} calls ended without a return", err)
        self.assertNotIn("lost, and", err)
        self.assertIn("work reaches 7 functions", err)

    def test_own_times_add_up_to_the_total(self):
        tree, _ = self.tree("--calls", "work")
        self.assertEqual(sum(node["self_ns"] for node in tree.values()), tree[("work",)]["total_ns"])
        for path, node in tree.items():
            below = sum(n["total_ns"] for p, n in tree.items() if p[:-1] == path)
            self.assertEqual(node["self_ns"], node["total_ns"] - below)

    def test_a_function_that_several_reach_counts_once(self):
        calls = lambda tree: {path: node["calls"] for path, node in tree.items() if path[0] == "work"}
        once = calls(self.tree("--calls", "work")[0])
        for names in (("work", "attempt"), ("attempt", "work"), ("down", "work", "work"), ("whole!*",)):
            with self.subTest(names):
                tree, err = self.tree(*(w for name in names for w in ("--calls", name)))
                self.assertEqual(calls(tree), once)
                self.assertIn(f"{LEFT} calls ended without a return", err)
                self.assertNotIn("was not entered", err)
        rows, _ = self.tree("--return", "work", "--return", "whole!*", "--self")
        self.assertEqual(rows["work"]["calls"], THREADS)
        self.assertEqual(rows["attempt"]["calls"], EACH)

    def test_only_what_is_below_counts(self):
        tree, _ = self.tree("--calls", "attempt")
        self.assertEqual(set(tree), {("attempt",), ("attempt", "leave")})

    def test_excluded_functions_are_their_callers_time(self):
        tree, _ = self.tree("--calls", "work", "-x", "down", "-x", "ha*")
        self.assertEqual({path[1] for path in tree if len(path) > 1}, {"attempt", "tail", "nothing"})

    def test_a_row_for_each_function(self):
        rows, _ = self.tree("--return", "whole!*", "--self")
        self.assertEqual(rows["down"]["calls"], THREADS * sum(i % 6 + 1 for i in range(ROUNDS)))
        self.assertEqual(rows["handle"]["calls"], EACH)
        self.assertGreaterEqual(rows["work"]["total_ns"], rows["work"]["self_ns"] + rows["attempt"]["total_ns"])
        own = [row["self_ns"] for row in rows.values()]
        self.assertEqual(own, sorted(own, reverse=True))

    def test_text_and_folded(self):
        p = harness.tool("--calls", "work", "-o", self.path("text"), "--", WHOLE, ROUNDS, status=0)
        with open(self.path("text")) as f:
            text = f.read()
        self.assertRegex(text, r"(?m)^ +total +self +calls  function$")
        self.assertRegex(text, rf"(?m)^ +\S+ +\S+ +{THREADS}  work$")
        self.assertRegex(text, rf"(?m)^ +\S+ +\S+ +{EACH}      leave$")
        p = harness.tool("--calls", "work", "--folded", "-o", self.path("folded"), "--", WHOLE, ROUNDS, status=0)
        with open(self.path("folded")) as f:
            folded = f.read()
        self.assertEqual([], [x for x in folded.splitlines() if not re.fullmatch(r"work(;\w+)* \d+", x)], p.stderr)
        self.assertIn("work;attempt;leave ", folded)

    def test_a_running_program(self):
        t = self.target("whole")
        p = self.start("--pid", t.pid, "--calls", "attempt", "--interval", "100ms")
        self.await_output(p, 200)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertIn(["attempt", "leave"], [x.get("path") for x in r.lines])
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_a_flame_graph_of_own_times(self):
        p = harness.tool("--calls", "work", "--flame", self.path("f.html"), "--", WHOLE, ROUNDS, status=0)
        self.assertRegex(p.stderr, r"flame graph of \d+ stacks: .*f.html")
        self.assertNotIn("self      calls", p.stderr, "the picture is what was asked for")
        with open(self.path("f.html")) as f:
            tree = json.loads(zlib.decompress(base64.b64decode(re.search(r'id="data">\s*([A-Za-z0-9+/=]+)', f.read())[1])))
        self.assertRegex(tree["title"], r"^whole \(pid \d+\): own time of calls below work$")
        self.assertEqual(tree["unit"], "ns")
        self.assertLessEqual({"work", "attempt", "leave"}, set(tree["names"]))
        p = harness.tool("--calls", "work", "--self", "--flame", self.path("g.svg"), "--", WHOLE, 1, status=125)
        self.assertIn("omit --self", p.stderr)

    def test_a_function_that_does_not_return_is_explained(self):
        t = self.target("spin", 0, 200)
        for option in ("-q", "-v"):  # with -q nothing is said
            p = harness.tool("--pid", t.pid, "--calls", "main", "-d", "300ms", option, status=0)
            said = "dynprobe: main was not entered while it was probed: a call that had begun before is not measured; try what it calls: --calls "
            self.assertEqual(said in p.stderr, option == "-v", p.stderr)
        self.assertRegex(p.stderr, r"--calls 'spin!caller' \(entered \d+ times?\)")
        self.assertRegex(p.stderr, r"main reaches (\d+) functions? of its module")
        reached, measured, probes = map(int, re.search(r"main reaches (\d+) (?s:.*)measuring (\d+) functions, with (\d+) probes at their entries and returns", p.stderr).groups())
        self.assertEqual(measured, reached + 1)
        self.assertIn(f"dynprobe: {probes} probes placed", p.stderr)
        self.assertNotIn("matched", p.stderr)

    def test_tables_of_intervals_say_their_time(self):
        t = self.target("spin", 0, 200)
        p = harness.tool("--pid", t.pid, "--calls", "caller", "-d", "1s", "--interval", "100ms", status=0)
        times = [float(x) for x in re.findall(r"(?m)^in ([\d.]+) s\n +total +self +calls  function$", p.stdout)]
        self.assertGreater(len(times), 1)
        self.assertEqual(times, sorted(times))

    def test_refusals_name_the_option(self):
        for args, word in ((("-n", 3), "-n"), (("--count",), "aggregation"), (("-t", "args"), "-t"), (("--function", "last"), "functions only"),
                           (("--record", self.path("r")), "--record"), (("--self", "--folded"), "--folded")):
            p = harness.tool("--calls", "work", *args, "--", WHOLE, 1, status=125)
            self.assertIn(word, p.stderr)
            self.assertIn("DP-USAGE", p.stderr)


if __name__ == "__main__":
    harness.main()
