# SPDX-License-Identifier: MIT
"""Tests flame graphs: the same stacks as --folded, one file that stands alone, walked by mouse and keys, safe with any name."""

import base64
import json
import os
import re
import xml.dom.minidom
import zlib

import browser
import harness

PROGRAM = r"""
#include <stdlib.h>
__attribute__((noinline)) void *take(unsigned long n) { __asm__ volatile("" ::: "memory"); return (void *)n; }
__attribute__((noinline)) void few(int i) { for (int k = 0; k < 10; k++) take(100); __asm__ volatile(""); }
__attribute__((noinline)) void many(int i) { for (int k = 0; k < 30; k++) take(1); __asm__ volatile(""); }
int main(void) { for (int i = 0; i < 20; i++) { few(i); many(i); } return 0; }
"""
NASTY = "</script><img src=x onerror='window.broken=1'>]]>\u202e\x1b[31m&amp"


def data(path):
    """The tree in a file: { stack: total }, and all of the object."""
    with open(path) as f:
        packed = re.search(r'id="data">\s*([A-Za-z0-9+/=]+)', f.read())[1]
    tree, stack, found = json.loads(zlib.decompress(base64.b64decode(packed))), [], {}
    for name, depth, total in zip(*[iter(tree["nodes"])] * 3):
        stack[depth:] = [tree["names"][name]]
        found[";".join(stack)] = total
    return found, tree


class Flame(harness.Case):
    def program(self):
        return harness.compiled(self.path("prog"), "gcc", "-g", "-O1", "-w", text=PROGRAM)

    def made(self, folded, name="f.html", *args):
        harness.tool("flame", self.written("in.folded", folded), "-o", self.path(name), *args, status=0)
        return self.path(name)

    def browse(self, page):
        b = browser.Browser()
        self.addCleanup(b.close)
        b.open(page)
        b.run("(async () => { for (let i = 0; i < 2000 && document.documentElement.dataset.ready !== 'yes'; i++) await new Promise((r) => setTimeout(r, 10)); })()")
        self.assertEqual(b.errors, [])
        return b

    def attribute(self, b, name):
        return b.run(f"document.querySelector('.flame').dataset.{name}")

    def test_a_run_draws_its_backtraces_by_hits_or_by_a_sum(self):
        p = harness.tool("--function", "take", "--flame", self.path("a.svg"), "--", self.program(), status=0)
        self.assertRegex(p.stderr, r"flame graph of 2 stacks: \S+/a.svg")
        self.assertNotIn("take+0x", p.stderr, "the table is left out")
        stacks, tree = data(self.path("a.svg"))
        totals = {s.rsplit(";", 2)[1]: n for s, n in stacks.items() if s.endswith(";take")}
        self.assertEqual((totals, tree["total"], tree["unit"]), ({"few": 200, "many": 600}, 800, "hits"))
        self.assertRegex(tree["title"], r"^prog \(pid \d+\): hits at take$")
        p = harness.tool("--function", "take", "--sum", "arg0", "--folded", "--flame", self.path("b.html"), "--title", "bytes", "--", self.path("prog"), status=0)
        stacks, tree = data(self.path("b.html"))
        totals = {s.rsplit(";", 2)[1]: n for s, n in stacks.items() if s.endswith(";take")}
        self.assertEqual((totals, tree["title"]), ({"few": 20000, "many": 600}, "bytes"))
        self.assertEqual(dict(re.findall(r";(few|many);take (\d+)$", p.stderr, re.M)), {"few": "20000", "many": "600"}, "folded lines have the same weight")

    def test_durations_are_times_and_a_recorded_trace_has_them_too(self):
        harness.tool("--return", "few", "-t", "duration", "-t", "backtrace", "-q", "--record", self.path("t"), "--", self.program(), status=0)
        harness.tool("view", self.path("t"), "--sum", "duration", "--flame", self.path("d.svg"), status=0)
        stacks, tree = data(self.path("d.svg"))
        self.assertEqual(tree["unit"], "ns")
        self.assertGreater(tree["total"], 20)
        harness.tool("view", self.path("t"), "--flame", self.path("c.svg"), status=0)
        self.assertEqual(data(self.path("c.svg"))[1]["total"], 20)

    def test_samples_are_drawn_as_they_are_folded(self):
        p = harness.tool("--profile", 999, "--folded", "--flame", self.path("p.svg"), "--", "/usr/bin/python3", "-c", "sum(i * i for i in range(1500000))")
        if "DP-PERF" in p.stderr:
            self.skipTest("perf events are refused here")
        folded = [line.rsplit(" ", 1) for line in p.stderr.splitlines() if re.match(r"(?!dynprobe: )\S.* \d+$", line)]
        self.assertEqual(data(self.path("p.svg"))[1]["total"], sum(int(n) for _, n in folded))

    def test_an_empty_picture_says_why(self):
        t = self.spawn("sleep", 600)
        p = harness.tool("--pid", t.pid, "--profile", 99, "--flame", self.path("e.svg"), "-d", "200ms")
        if "DP-PERF" in p.stderr:
            self.skipTest("perf events are refused here")
        self.assertIn("e.svg is empty: no sample was taken: it used hardly any processor time; --profile off-cpu shows where it waits", p.stderr)
        self.assertRegex(data(self.path("e.svg"))[1]["title"], rf"^sleep \(pid {t.pid}\): samples of processor time \(no sample was taken")

    def test_refusals_before_anything_is_touched(self):
        t = self.target("spin")
        for args, words in (
            (("--function", "foo", "--flame", "x.png"), "must end in .svg or .html"),
            (("--function", "foo", "--flame", "x.svg", "--hist", "arg0"), "one number for each stack"),
            (("--function", "foo", "--flame", "x.svg", "--avg", "arg0"), "one number for each stack"),
            (("--function", "foo", "--flame", "x.svg", "--count", "--by", "arg0"), "needs stacks"),
            (("--function", "foo", "--title", "x"), "also give --flame"),
            (("--function", "foo", "--flame", self.path("missing/x.svg")), "cannot write the flame graph"),
        ):
            p = harness.tool("--pid", t.pid, *args, status=harness.OWN_FAILURE)
            self.assertIn(words, p.stderr)
        for name, words in ((self.written("bad", "no stacks\n"), "not in folded form"), (self.written("empty", ""), "empty"), (self.path("none"), "cannot read")):
            p = harness.tool("flame", name, "-o", self.path("x.svg"), status=harness.OWN_FAILURE)
            self.assertIn("DP-BAD-FOLDED", p.stderr)
            self.assertIn(words, p.stderr)
        self.assertFalse(os.path.exists(self.path("x.svg")))
        self.assert_result_ok(t)

    def test_folded_input_of_any_tool(self):
        p = harness.tool("flame", "-", "-o", self.path("f.svg"), "--unit", "ns", input="a;b 1500000\nrubbish\na;c 500000\n", stdin=None, status=0)
        self.assertIn("flame graph of 2 stacks", p.stderr)
        self.assertIn("1 lines or stacks without a weight", p.stderr)
        self.assertEqual(data(self.path("f.svg"))[0], {"a": 2000000, "a;b": 1500000, "a;c": 500000})
        b = self.browse(self.path("f.svg"))
        self.assertIn("2 ms", self.attribute(b, "said"))

    def test_names_are_text_in_both_files_and_nothing_is_fetched(self):
        for name in ("n.svg", "n.html"):
            page = self.made(f"main;{NASTY} 7\n", name)
            with open(page) as f:
                text = f.read()
            self.assertNotIn(NASTY, text)
            if name == "n.svg":
                shown = xml.dom.minidom.parseString(text)
                self.assertEqual([s.getAttribute("src") for s in shown.getElementsByTagName("script")], [""])
                self.assertIn("</script><img", "".join(n.firstChild.data for n in shown.getElementsByTagName("title")))
            self.assertEqual(re.findall(r"https?://(?!www\.w3\.org/(?:2000/svg|1999/xhtml)\b)", text), [])
            b = self.browse(page)
            self.assertEqual([u for u in b.requests if not u.startswith("file://" + self.dir)], [])
            b.key("ArrowUp")
            b.key("ArrowUp")
            said = self.attribute(b, "said")
            self.assertIn("</script><img src=x onerror='window.broken=1'>]]>\\u202e\\u001b[31m&amp", said)
            self.assertIsNone(b.run("window.broken"))

    def test_an_svg_is_a_picture_without_a_script(self):
        page = self.made("main;wide 90\nmain;f(int) 10\n", "p.svg")
        with open(page) as f:
            shown = xml.dom.minidom.parseString(f.read())
        boxes = {g.getElementsByTagName("title")[0].firstChild.data: float(g.getElementsByTagName("rect")[0].getAttribute("width"))
                 for g in shown.getElementsByTagName("g") if g.getElementsByTagName("title") and not g.getAttribute("id")}  # fmt: skip
        self.assertEqual({k: round(w / boxes["all 100 (100.00%)"], 2) for k, w in boxes.items()},
                         {"all 100 (100.00%)": 1, "main 100 (100.00%)": 1, "wide 90 (90.00%)": 0.9, "f(int) 10 (10.00%)": 0.1})  # fmt: skip

    def test_keys_walk_zoom_and_search(self):
        b = self.browse(self.made("main;a;x 10\nmain;b;x 20\nmain;b;y 30\nmain;c 40\n"))
        keys = lambda *names: [b.key(k) for k in names]
        keys("ArrowUp", "ArrowUp")
        self.assertRegex(self.attribute(b, "said"), r"^b50 samples · 50.0% of all · self 0 samples$")
        keys("ArrowUp", "ArrowLeft")
        self.assertRegex(self.attribute(b, "said"), r"^x20 samples")
        keys("ArrowDown", "Enter")
        self.assertEqual((self.attribute(b, "zoomed"), self.attribute(b, "shown")), ("b", "5"))
        keys("Escape")
        self.assertEqual(self.attribute(b, "zoomed"), "all")
        keys("/", "x", "Enter")
        self.assertEqual(self.attribute(b, "matched"), "30.0")
        self.assertIn("x10 samples", self.attribute(b, "said"))
        keys("n")
        self.assertIn("x20 samples", self.attribute(b, "said"))
        keys("Escape", "?")
        self.assertFalse(b.run("document.querySelector('.flame-keys').hidden"))
        keys("Escape", "i")
        self.assertTrue(b.run("document.querySelector('.flame-view').classList.contains('hanging')"))

    def test_a_click_zooms_and_the_colours_change(self):
        b = self.browse(self.made("main;a 50\nmain;b 50\n"))
        point = b.run("(() => { const r = document.querySelector('canvas').getBoundingClientRect(); return [r.left + r.width * 0.75, r.bottom - 6 - 2.5 * 18]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            b.call("Input.dispatchMouseEvent", type=kind, x=point[0], y=point[1], button="left", clickCount=1)
        self.assertEqual(self.attribute(b, "zoomed"), "b")
        seen = set()
        for scheme in ("light", "dark"):
            b.scheme(scheme)
            self.assertEqual(b.run(browser.TOO_PALE), [], scheme)
            seen.add(b.run("getComputedStyle(document.querySelector('.flame')).backgroundColor"))
            for i in range(9):  # the colours of frames, with their text
                self.assertEqual(b.run(browser.CONTRAST % (f"--f{i}", "--ink")) >= 4.5, True, (scheme, i))
            self.assertEqual(b.run(browser.CONTRAST % ("--match", "--match-ink")) >= 4.5, True, scheme)
        self.assertEqual(len(seen), 2)
        b.key("t")
        self.assertEqual(b.run("document.documentElement.dataset.theme"), "light")

    def test_stacks_without_any_weight(self):
        page = self.made("\n".join(f"f{i} 0" for i in range(250000)), "zero.svg")
        self.assertLess(os.path.getsize(page), 1 << 20)

    def test_a_hundred_thousand_stacks_are_a_small_file(self):
        lines = [f"main;f{i % 300};g{i % 7919};h{i} 1" for i in range(100000)]
        page = self.made("\n".join(lines), "big.svg")
        self.assertLess(os.path.getsize(page), 4 << 20)
        self.assertGreater(data(page)[1]["narrow"], 7000)
        b = self.browse(page)
        self.assertIn("frames narrower than a tenth of a pixel are left out", b.run("document.querySelector('.flame-foot').textContent"))


if browser.PROGRAM is None:
    raise RuntimeError("no Chromium: sh scripts/install-packages.sh")

if __name__ == "__main__":
    harness.main()
