# SPDX-License-Identifier: MIT
"""Tests dynprobe report for the JSON of aggregations, call trees and profiles: the page says what the rows say, sorts, and draws them."""

import json
import re

import browser
import harness

PROGRAM = r"""
__attribute__((noinline)) int leaf(int n, const char *s) { __asm__ volatile("" ::: "memory"); return n; }
__attribute__((noinline)) int few(int n, const char *s) { int r = leaf(n, s); __asm__ volatile(""); return r; }
__attribute__((noinline)) int many(int n, const char *s) { int r = leaf(100, s) + leaf(200, s) + leaf(300, s); __asm__ volatile(""); return r; }
__attribute__((noinline)) int idle(int n) { return n + 1; }
static const char *nasty = "</script><img src=x onerror='window.broken=1'>\xe2\x80\xae\x1b[31m";
int main(void) { for (int i = 0; i < 40; i++) { few(i, "plain"); many(i, nasty); } }
"""


class Totals(harness.Case):
    def ran(self, *args):
        """The page of a run whose rows are JSON, in a browser."""
        program = harness.compiled(self.path("prog"), "gcc", "-g", "-O1", "-w", text=PROGRAM)
        harness.tool("-f", "json", "-o", self.path("run.json"), *args, "--", program, status=0)
        return self.shown(self.path("run.json"))

    def shown(self, rows):
        self.assertEqual(harness.tool("report", rows, status=0).stdout, self.path("run.html") + "\n")
        return self.browse()

    def browse(self):
        b = browser.Browser()
        self.addCleanup(b.close)
        b.open(self.path("run.html"))
        self.until(b, "document.body.dataset.ready === 'yes'")
        return b

    def until(self, b, condition):
        b.run("(async () => { for (let i = 0; i < 3000 && !(%s); i++) await new Promise((r) => setTimeout(r, 10)); })()" % condition)
        self.assertTrue(b.run(condition), condition)

    def cells(self, b, key="rows"):
        return b.run(f"[...document.querySelectorAll('table[data-key={key}] tr')].map((tr) => [...tr.children].map((c) => c.innerText.trim()))")

    def tab(self, b, title):
        b.run("[...document.querySelectorAll('#tabs button')].find((x) => x.textContent === '%s').click()" % title)

    def test_a_table_sorts_by_each_column_and_the_title_names_program_and_question(self):
        b = self.ran("--function", "leaf", "--sum", "arg0", "--max", "arg0", "--by", "caller,arg0 % 3")
        title = b.run("document.title")
        self.assertRegex(title, r"^dynprobe: prog \(pid \d+\): sum, maximum of arg0 at leaf by caller, arg0 % 3$")
        head, *rows = self.cells(b)
        self.assertEqual([head[i] for i in (0, 1, 2, 3, 5, 6)], ["probe", "caller", "arg0 % 3", "hits", "sum", "max"])
        self.assertEqual({(r[1], r[2]): (r[3], r[5], r[6]) for r in rows},
                         {("few", "0"): ("14", "273", "39"), ("few", "1"): ("13", "247", "37"), ("few", "2"): ("13", "260", "38"),
                          ("many", "0"): ("40", "12,000", "300"), ("many", "1"): ("40", "4,000", "100"), ("many", "2"): ("40", "8,000", "200")})  # fmt: skip
        for column, order in ((5, ["12,000", "8,000", "4,000", "273", "260", "247"]), (1, ["few"] * 3 + ["many"] * 3)):
            b.run(f"document.querySelectorAll('table[data-key=rows] th button')[{column}].click()")
            self.assertEqual([r[column] for r in self.cells(b)[1:]], order)
            self.assertIsNotNone(b.run(f"document.querySelectorAll('table[data-key=rows] th')[{column}].getAttribute('aria-sort')"))
        b.run(f"document.querySelectorAll('table[data-key=rows] th button')[5].click()")
        b.key("Enter")
        self.assertEqual([r[5] for r in self.cells(b)[1:]], ["247", "260", "273", "4,000", "8,000", "12,000"])
        b.run("(() => { const s = document.getElementById('search'); s.focus(); s.value = 'FEW'; s.dispatchEvent(new Event('input')); })()")
        self.until(b, "document.querySelectorAll('table[data-key=rows] tr').length === 4")
        self.tab(b, "Run")
        self.assertRegex(b.run("document.getElementById('body').innerText"), r"(?s)asked\s+1\s+placed\s+1\s+refused\s+0.*Processes.*prog\s+\d+\s+1\s+160")
        self.assertEqual(b.errors, [])

    def test_rows_without_a_hit_are_there_when_asked_for(self):
        b = self.ran("--function", "leaf", "--function", "idle", "--count")
        self.assertEqual([r[0] for r in self.cells(b)[1:]], ["leaf"])
        b.run("[...document.querySelectorAll('#body button.more')].find((x) => x.textContent === '1 more row without a hit').click()")
        self.assertEqual({r[0]: r[1] for r in self.cells(b)[1:]}, {"leaf": "160", "idle": "0"})
        self.assertEqual(b.errors, [])

    def test_histograms_have_bars_with_percentiles(self):
        b = self.ran("--function", "leaf", "--hist", "arg0")
        self.assertEqual(b.run("document.body.dataset.drawn"), "histograms", "one row: its histogram comes first")
        heading = b.run("document.querySelector('#body h2').textContent")
        self.assertRegex(heading, r"^leaf · arg0 · 160 hits · p50 [\d.]+ · p90 [\d.]+ · p99 [\d.]+$")
        rows = b.run("[...document.querySelector('.hist').children].map((x) => x.tagName === 'I' ? x.style.width : x.textContent)")
        bars = {rows[i]: rows[i + 1 : i + 4] for i in range(0, len(rows), 4)}
        self.assertEqual({k: v[0] for k, v in bars.items()},
                         {"0 – 1": "1", "1 – 2": "1", "2 – 4": "2", "4 – 8": "4", "8 – 16": "8", "16 – 32": "16", "32 – 64": "8", "64 – 128": "40", "128 – 256": "40", "256 – 512": "40"})  # fmt: skip
        self.assertEqual({k: v[2] for k, v in bars.items() if v[2]}, {"64 – 128": "p50", "256 – 512": "p90 p99"})
        self.assertEqual((bars["64 – 128"][1], bars["16 – 32"][1]), ("100%", "40%"))

    def test_steps_between_times_are_those_of_the_run(self):
        """Decimal ones, and powers of two in files of older versions."""
        for buckets, want in ((((1000, 2000), (10000, 20000)), ["1 µs – 2 µs", "2 µs – 5 µs", "5 µs – 10 µs", "10 µs – 20 µs"]),
                              (((64, 128), (256, 512)), ["64 ns – 128 ns", "128 ns – 256 ns", "256 ns – 512 ns"])):  # fmt: skip
            rows = {"type": "answer", "final": True, "seconds": 1, "probe": "p", "pid": 1, "value": "duration", "unit": "ns", "hits": 2,
                    "buckets": [{"from": a, "to": b, "hits": 1} for a, b in buckets]}  # fmt: skip
            b = self.shown(self.written("run.json", json.dumps(rows)))
            self.assertEqual(b.run("[...document.querySelectorAll('.hist span:nth-child(4n+1)')].map((x) => x.textContent)"), want)

    def test_backtraces_are_a_flame_graph_by_hits_and_by_sum(self):
        b = self.ran("--function", "leaf", "--sum", "arg0", "--by", "backtrace")
        self.assertIn("leaf ← many ← main", b.run("document.querySelector('#body summary').textContent"))
        self.tab(b, "Flame graph")
        said = lambda: b.run("document.querySelector('.flame').dataset.said")
        self.assertIn("160 hits", said())
        self.assertRegex(b.run("document.querySelector('.flame-bar h1').textContent"), r"^prog \(pid \d+\): hits by stack$")
        b.run("[...document.querySelectorAll('.flame-bar button')].find((x) => x.textContent === 'By sum of arg0').click()")
        self.assertIn("24,780 in all", said())
        self.assertEqual(b.errors, [])

    def test_a_tree_of_calls_and_intervals(self):
        b = self.ran("--calls", "many")
        self.assertEqual([[r[0], r[3]] for r in self.cells(b, "calls")], [["function", "calls"], ["many", "40"], ["leaf", "120"]])
        self.tab(b, "Flame graph")
        self.assertIn("own time by stack", b.run("document.querySelector('.flame-bar h1').textContent"))
        row = {"type": "answer", "probe": "f", "pid": 7, "hits": 3}
        lines = [{"type": "header", "probes": []}, *({**row, "final": False, "seconds": 1, "hits": n} for n in (1, 0, 2)), {**row, "final": True, "seconds": 3}]
        b = self.shown(self.written("run.json", "".join(json.dumps(x) + "\n" for x in lines)))
        self.tab(b, "Over time")
        self.assertEqual(b.run("document.querySelector('#body h2').textContent"), "f (7) · 3 intervals · 0 to 2 hits/s")
        self.assertEqual(b.run("[...document.querySelectorAll('.strip i')].map((x) => x.style.height)"), ["50%", "0%", "100%"])

    def test_the_page_stands_alone_and_takes_no_data_for_markup(self):
        b = self.ran("--function", "leaf", "--count", "--by", "str(s)")
        with open(self.path("run.html")) as f:
            self.assertNotIn("<img", f.read())
        self.assertEqual([u for u in b.requests if not u.startswith("file://" + self.dir)], [])
        text = b.run("document.getElementById('body').innerText")
        self.assertIn("</script><img src=x onerror='window.broken=1'>\\u202e\\u001b[31m", text)
        self.assertIsNone(b.run("window.broken"))

    def test_big_keys_are_exact_names_readable_and_damage_is_said(self):
        lines = ['{"type":"answer","final":true,"seconds":1,"probe":"p","pid":1,"by":"k","key":9007199254740993,"hits":1,"unpaired":2}',
                 '{"type":"answer","final":true,"seconds":1,"probe":"p","pid":1,"stack":[{"pc":"0x1","symbol":"_ZN1K1fEi+0x1/0x2 [m]"}],"hits":4}',
                 '{"type":"answer","final', '{"type":"answer"}', '{"type":"unknown"}',
                 '{"type":"summary","lost":{"total":7},"refused":1,"probes":[{"name":"q","spec":"q","state":"refused","tag":"DP-TOO-SHORT","reason":"no room"}]}']  # fmt: skip
        b = self.shown(self.written("run.json", "\n".join(lines)))
        self.assertIn("9007199254740993", b.run("document.getElementById('body').innerText"))
        for note in ("some lines of the file are damaged", "7 hits were lost", "2 returns without their entry", "1 place could not be probed"):
            self.assertIn(note, b.run("document.getElementById('body').innerText"))
        self.tab(b, "Run")
        self.assertIn("no room [DP-TOO-SHORT]", b.run("document.getElementById('body').innerText"))
        self.tab(b, "Flame graph")
        b.key("/")
        b.run("(() => { const s = document.querySelector('.flame-bar input'); s.value = 'K::f.int.'; s.dispatchEvent(new Event('input')); })()")
        self.until(b, "document.querySelector('.flame').dataset.matched === '100.0'")
        self.assertEqual(b.errors, [])

    def test_light_dark_wide_and_narrow(self):
        b = self.ran("--function", "leaf", "--hist", "arg0", "--sum", "arg0", "--by", "backtrace", "--interval", "1h")
        for width in (1280, 400):
            b.call("Emulation.setDeviceMetricsOverride", deviceScaleFactor=1, mobile=False, width=width, height=800)
            b.open(self.path("run.html"))
            self.until(b, "document.body.dataset.ready === 'yes'")
            for scheme in ("light", "dark"):
                b.scheme(scheme)
                for title in ("Table", "Histograms", "Flame graph", "Run"):
                    self.tab(b, title)
                    self.assertEqual(b.run(browser.TOO_PALE), [], (width, scheme, title))
                    self.assertLessEqual(b.run("document.documentElement.scrollWidth"), width, (width, title))
            b.key("?")
            self.assertTrue(b.run("document.getElementById('keys').open"))
            b.key("Escape")
            b.key("t")
            self.assertEqual(b.run("document.documentElement.dataset.theme"), "light")
            b.key("1")
            self.assertEqual(b.run("document.body.dataset.drawn"), "table")

    def test_options_of_traces_are_refused(self):
        rows = self.written("run.json", '{"type":"answer","final":true,"seconds":1,"probe":"p","pid":1,"hits":1}\n')
        self.assertIn("are for recorded traces", harness.tool("report", rows, "--last", "1s", status=harness.OWN_FAILURE).stderr)


if browser.PROGRAM is None:
    raise RuntimeError("no Chromium: sh scripts/install-packages.sh")

if __name__ == "__main__":
    harness.main()
