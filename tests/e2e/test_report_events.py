# SPDX-License-Identifier: MIT
"""Tests dynprobe report for traces and runs: the page has all events, says what the events say, and never blocks the browser for long."""

import json
import os
import random
import re

import browser
import harness

PROGRAM = r"""
#include <pthread.h>
#include <stdlib.h>
__attribute__((noinline)) int leaf(int n, const char *s) { __asm__ volatile("" ::: "memory"); return n; }
__attribute__((noinline)) int mid(int n, const char *s) { int r = 0; for (int k = 0; k < 3; k++) r += leaf(n + k, s); __asm__ volatile(""); return r; }
__attribute__((noinline)) int outer(int n, const char *s) { int r = mid(n, s) + mid(n, "plain"); __asm__ volatile(""); return r; }
static const char *nasty = "</script><img src=x onerror='window.broken=1'>\xe2\x80\xae\x1b[31m";
static void *run(void *a) { for (int i = 0; i < 20; i++) outer(i, nasty); return a; }
int main(void) { pthread_t t[3]; for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, run, NULL); for (int i = 0; i < 3; i++) pthread_join(t[i], NULL); }
"""
PROBES = ("--function", "leaf", "-t", "n", "-t", "str(s)", "--return", "leaf", "-t", "duration", "-t", "backtrace", "--return", "outer", "-t", "duration")
MANY = 1000000 if harness.FULL else 150000


class Events(harness.Case):
    def report(self, *args, **kw):
        return harness.tool("report", *args, **{"status": 0, **kw})

    def browse(self, page, **size):
        b = browser.Browser()
        self.addCleanup(b.close)
        if size:
            b.call("Emulation.setDeviceMetricsOverride", deviceScaleFactor=1, mobile=False, **size)
        b.open(page)
        self.until(b, "document.body.dataset.ready === 'yes'")
        return b

    def until(self, b, condition):
        b.run("(async () => { for (let i = 0; i < 3000 && !(%s); i++) await new Promise((r) => setTimeout(r, 10)); })()" % condition)
        self.assertTrue(b.run(condition), condition)

    def drawn(self, b, key, tab):
        b.run("delete document.body.dataset.drawn")
        b.key(key)
        self.until(b, f"(document.body.dataset.drawn || '').startsWith('{tab} ')")

    def text(self, b):
        return b.run("document.getElementById('body').innerText")

    def recorded(self):
        """A page of a recorded trace, and one of the same program's NDJSON."""
        program = harness.compiled(self.path("prog"), "gcc", "-g", "-O1", "-w", "-pthread", text=PROGRAM)
        for args in (("-q", "--record", self.path("trace")), ("-f", "json", "-o", self.path("run.json"))):
            harness.tool(*PROBES, *args, "--", program, status=0)
        self.assertEqual(self.report(self.path("trace") + "/").stdout, self.path("trace.html") + "\n")
        self.report(self.path("run.json"))
        return self.path("trace.html"), self.path("run.html")

    def test_the_page_has_every_event_of_a_trace_and_of_a_run(self):
        for page in self.recorded():
            b = self.browse(page)
            self.assertRegex(b.run("document.title"), r"^dynprobe: prog \(pid \d+\): (leaf|leaf:return|outer:return)(, (leaf|leaf:return|outer:return)){2}$")
            self.assertIn("780 events · of 3 probes · in 3 threads", b.run("document.getElementById('facts').textContent"))
            rows = dict(re.findall(r"^(leaf:return|outer:return|leaf)\s+([\d,]+)\s", self.text(b), re.M))
            self.assertEqual(rows, {"leaf": "360", "leaf:return": "360", "outer:return": "60"})
            self.assertRegex(self.text(b), r"(?s)Threads.*Callers.*\bmid\s+360\s")
            self.drawn(b, "2", "latency")
            self.assertRegex(self.text(b), r"Latency of all calls over time · p50 .* longest ")
            counts = b.run("[...document.querySelectorAll('.hist span:nth-child(3n+2)')].map((e) => Number(e.textContent))")
            self.assertEqual(sum(counts), 420)
            steps = b.run("[...document.querySelectorAll('.hist span:nth-child(3n+1)')].map((e) => e.textContent)")
            self.assertTrue(all(re.fullmatch(r"(0|[125]0{0,2}) .?s – [125]0{0,2} .?s", s) for s in steps), steps)
            self.drawn(b, "3", "flame")
            self.assertEqual(b.run("document.querySelector('.flame').dataset.said"), "all360 events · 100.0% of all · self 0 events")
            for _ in range(3):
                b.run("document.querySelector('.flame canvas').focus()")
                b.key("ArrowDown")
            b.run("document.getElementById('lanes').focus()")
            self.drawn(b, "1", "summary")
            b.run("[...document.querySelectorAll('#body tr[data-probe]')].find((row) => row.textContent.startsWith('leaf:return')).click()")
            self.drawn(b, "4", "events")
            b.key("n")
            self.until(b, "document.getElementById('detail').innerText.includes('leaf:return')")
            detail = b.run("document.getElementById('detail').innerText")
            self.assertRegex(detail, r"(?s)took \d.* [nµ]s.*Stack\s+leaf\+0x.*mid\+0x.*outer\+0x.*run\+0x")
            self.assertEqual(b.errors, [])

    def test_the_page_stands_alone_and_takes_no_data_for_markup(self):
        for page in self.recorded():
            with open(page) as f:
                self.assertNotIn("<img", f.read())
            b = self.browse(page)
            self.assertEqual([u for u in b.requests if not u.startswith("file://" + self.dir)], [])
            self.drawn(b, "4", "events")
            self.until(b, "document.querySelectorAll('#listed .row').length > 3")
            shown = self.text(b)
            self.assertIn("</script><img src=x onerror='window.broken=1'>", shown)
            for mark in "\u202e", "\x1b":
                self.assertNotIn(mark, shown)
            self.assertIsNone(b.run("window.broken"))

    def test_search_finds_steps_and_filters(self):
        page, _ = self.recorded()
        b = self.browse(page)
        b.run("(() => { const s = document.getElementById('search'); s.focus(); s.value = 'n=21 '; s.dispatchEvent(new Event('input')); })()")
        self.until(b, "document.body.dataset.found === '6'")  # leaf(19 + 2), twice in outer, in three threads
        self.assertIn("6 found", b.run("document.getElementById('facts').textContent"))
        b.key("Enter")
        first = int(b.run("document.body.dataset.picked"))
        b.key("n")
        self.assertGreater(int(b.run("document.body.dataset.picked")), first)
        self.until(b, "document.querySelectorAll('.row.pick').length === 1")
        b.key("Escape")
        b.key("f")  # only events like the picked one
        self.assertIn("only leaf", b.run("document.getElementById('range').textContent"))
        self.drawn(b, "1", "summary")
        self.assertNotIn("outer:return", self.text(b))

    def test_zooming_counts_what_is_shown(self):
        _, page = self.recorded()
        b = self.browse(page)
        shown = lambda: int(re.search(r"([\d,]+) events?\)", b.run("document.getElementById('range').textContent"))[1].replace(",", ""))
        self.assertEqual(shown(), 780)
        b.key("+")
        b.key("+")
        part = shown()
        self.assertLess(part, 780)
        self.until(b, f"[...document.querySelectorAll('#body tr[data-probe] td:nth-child(2)')].reduce((n, e) => n + Number(e.textContent), 0) === {part}")
        b.key("ArrowRight")
        b.key("0")
        self.assertEqual(shown(), 780)

    def test_light_dark_wide_and_narrow(self):
        page, _ = self.recorded()
        for width in (1280, 400):
            b = self.browse(page, width=width, height=800)
            for scheme in ("light", "dark"):
                b.scheme(scheme)
                for key, tab in (("1", "summary"), ("2", "latency"), ("3", "flame"), ("4", "events")):
                    self.drawn(b, key, tab)
                    self.assertEqual(b.run(browser.TOO_PALE), [], (width, scheme, tab))
                    self.assertLessEqual(b.run("document.documentElement.scrollWidth"), width, (width, tab))
                for i in range(8):
                    self.assertGreaterEqual(b.run(browser.CONTRAST % (f"--e{i}", "--eink")), 4.5, (scheme, i))
            b.key("?")
            self.assertTrue(b.run("document.getElementById('keys').open"))
            b.key("Escape")
            b.run("document.getElementById('theme').click()")
            self.assertEqual(b.run("document.documentElement.dataset.theme"), "light")

    def test_a_system_call_is_one_event_that_lasts(self):
        text = self.written("hello", "hello")
        harness.tool("--syscall", "*", "-q", "--record", self.path("calls"), "--", "/bin/cat", text, status=0)
        self.report(self.path("calls"))
        b = self.browse(self.path("calls.html"))
        lines = harness.tool("view", self.path("calls"), status=0).stdout.splitlines()
        self.assertIn(f"{len(lines)} events", b.run("document.getElementById('facts').textContent"))
        self.drawn(b, "4", "events")
        b.run("(() => { const s = document.getElementById('search'); s.focus(); s.value = '%s'; s.dispatchEvent(new Event('input')); })()" % text)
        self.until(b, "document.body.dataset.found === '1'")
        b.key("Enter")
        self.until(b, "document.getElementById('detail').innerText.includes('took')")
        self.assertRegex(b.run("document.getElementById('detail').innerText"), r'(?s)^openat\n.*took .*\] openat\(AT_FDCWD, ".*/hello", O_RDONLY\) = 3')

    def test_a_part_of_a_trace(self):
        self.recorded()
        self.report(self.path("trace"), "--when", "probe == \"outer_return\"", "-o", self.path("part.html"))
        b = self.browse(self.path("part.html"))
        self.assertIn("60 events · of 1 probe ", b.run("document.getElementById('facts').textContent"))
        p = self.report(self.path("run.json"), "--last", "1s", status=harness.OWN_FAILURE)
        self.assertIn("are for recorded traces", p.stderr)

    def test_what_is_no_run_is_refused_and_a_damaged_one_is_shown_with_a_note(self):
        for name, text, tag in (("a.json", "{}\n", "DP-BAD-TRACE"), ("b.json", "nonsense\n", "DP-BAD-SNAPSHOT")):
            self.assertIn(tag, self.report(self.written(name, text), status=harness.OWN_FAILURE).stderr)
        os.mkdir(self.path("empty"))
        self.assertIn("DP-BAD-TRACE", self.report(self.path("empty"), status=harness.OWN_FAILURE).stderr)
        event = {"type": "event", "mono": 5, "pid": 1, "tid": 2, "comm": "x", "probe": "f", "fields": {"duration": -1, "s": None, "b": [1]}}
        lines = ['{"type":"header","probes":[]}', json.dumps(event), '{"type":"event","mono":', json.dumps({**event, "mono": 3}),
                 '{"type":"unknown"}', '{"type":"summary","lost":{"total":7}}']  # fmt: skip
        self.report(self.written("c.json", "\n".join(lines)), "-o", self.path("c.html"))
        b = self.browse(self.path("c.html"))
        self.assertIn("2 events", b.run("document.getElementById('facts').textContent"))
        self.assertIn("some lines of the file are damaged and left out", self.text(b))
        self.assertIn("7 hits were lost", self.text(b))
        self.report(self.written("d.json", lines[0]), "-o", self.path("d.html"))
        b = self.browse(self.path("d.html"))
        self.assertIn("no events", self.text(b))
        for key in "1234+n0":
            b.key(key)
        self.assertEqual(b.errors, [])

    def many(self):
        r = random.Random(1)
        frames = [{"addr": hex(0x1000 + i), "symbol": f"f{i}+0x{i:x}/0x100 [prog]"} for i in range(200)]
        stacks = [[frames[r.randrange(200)] for _ in range(r.randrange(3, 12))] for _ in range(500)]
        packed = [json.dumps(s) for s in stacks]
        with open(self.path("many.json"), "w") as f:
            f.write('{"type":"header","clock":{"offset_ns":1700000000000000000},"probes":[]}\n')
            for i in range(MANY):
                f.write('{"type":"event","mono":%d,"pid":7,"tid":%d,"comm":"w","probe":"p%d","fields":{"n":%d,"duration":%d,"backtrace":%s}}\n'
                        % (i * 977 + r.randrange(900), 10 + r.randrange(24), i % 5, i, 10 ** r.randrange(2, 6) + r.randrange(100), packed[r.randrange(500)]))  # fmt: skip
        self.report(self.path("many.json"))
        return self.path("many.html")

    def test_no_task_is_long(self):
        """
        Of processor time, and beside work of the same kind, which needs about 50 ms where a page's task may need 100: other programs
        hold the browser up and slow it down. DP_FULL=1: with a million events.
        """
        page = self.many()
        b = browser.Browser()
        self.addCleanup(b.close)
        self.assertLess(os.path.getsize(page), MANY * 30)
        work = browser.work_ms(b)
        tasks = browser.Tasks(b)
        b.open(page)
        self.until(b, "document.body.dataset.ready === 'yes'")
        for key, tab in (("2", "latency"), ("3", "flame"), ("4", "events"), ("1", "summary")):
            self.drawn(b, key, tab)
        for key in "++0-+n":
            b.key(key)
        b.run("(() => { const s = document.getElementById('search'); s.focus(); s.value = 'n=%d '; s.dispatchEvent(new Event('input')); })()" % (MANY - 1))
        self.until(b, "document.body.dataset.found === '1'")
        longest, task = max(tasks.end())
        work = max(work, browser.work_ms(b))
        self.assertLess(longest, max(100, 2 * work), task)
        self.assertEqual(b.errors, [])


if browser.PROGRAM is None:
    raise RuntimeError("no Chromium: sh scripts/install-packages.sh")

if __name__ == "__main__":
    harness.main()
