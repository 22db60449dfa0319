# SPDX-License-Identifier: MIT
"""Tests dynprobe report: a page that works without a network and by keyboard, and takes no data of the program for markup."""

import os
import re
import stat
import subprocess

import binutils
import browser
import harness

NASTY = "</script><img src=x onerror='window.broken=1'><b>&amp;"


class Report(harness.Case):
    def report(self, *args, **kw):
        return harness.tool("report", *args, **kw, status=0)

    def crowd(self, threads, depth):
        """The page of a snapshot of many threads, each many frames deep."""
        t = self.target("crowd", threads, depth, 1)
        shot, page = self.path("crowd.dps"), self.path("crowd.html")
        done = harness.tool("snapshot", t.pid, "-o", shot, "--kv", f"nasty:{NASTY}", "--global", "crowd", status=0)
        self.report(shot, "-o", page)
        data = harness.shown(shot)
        self.assert_result_ok(t)
        return page, data

    def browse(self, page):
        b = browser.Browser()
        self.addCleanup(b.close)
        b.open(page)
        self.until(b, "document.body.dataset.ready === 'yes'")
        return b

    def until(self, b, condition):
        """Waits for parts of the page, which it unpacks later."""
        b.run("(async () => { for (let i = 0; i < 2000 && !(%s); i++) await new Promise((r) => setTimeout(r, 10)); })()" % condition)
        self.assertTrue(b.run(condition), condition)

    def test_the_page_stands_alone_and_takes_no_data_for_markup(self):
        page, _ = self.crowd(2, 3)
        with open(page) as f:
            text = f.read()
        self.assertNotIn(NASTY, text)
        self.assertEqual(re.findall(r"(?:src|href)\s*=", re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.S)), [])
        b = self.browse(page)
        self.assertEqual([u for u in b.requests if not u.startswith("file://" + self.dir)], [])
        b.run("[...document.querySelectorAll('#tabs button')].find((x) => x.dataset.tab === 'process').click()")
        self.assertIn(NASTY, b.run("document.getElementById('body').textContent"), "it is shown as text")
        self.assertIsNone(b.run("window.broken"))
        self.assertEqual(b.errors, [])

    def test_marks_that_turn_or_hide_text_are_shown_and_not_obeyed(self):
        t = self.target("crowd", 1, 1, 1)
        shot, page = self.path("a.dps"), self.path("a.html")
        turned = "abc\u202etxt.exe\u2066\x1b[31m\u200b"
        done = harness.tool("snapshot", t.pid, "-o", shot, "--application", turned, "--kv", f"{turned}:{turned}", "--classifier", turned, status=0)
        self.report(shot, "-o", page)
        b = self.browse(page)
        b.key("4")
        text = b.run("document.title + document.body.innerText")
        for mark in "\u202e", "\u2066", "\x1b", "\u200b":
            self.assertNotIn(mark, text)
        self.assertGreaterEqual(text.count("abc\\u202etxt.exe\\u2066\\u001b[31m\\u200b"), 4)
        self.assertEqual(b.errors, [])

    def test_frames_of_modules_tell_threads_apart(self):
        """They have no address of their own: threads of one stack, with another frame in each, are several rows and groups."""
        module = self.written("tasks.lua", """pmodule.define { id = "tasks", load = function()
            pmodule.register(pmodule.event.postattach, function(bt)
                for t in bt do
                    local f = pmodule.create_frame()
                    f:set_symbol("task")
                    f:set_path("/tasks/" .. t:tid())
                    t:add_frame(f)
                end
            end) end }""")
        t = self.target("crowd", 5, 3, 1)
        shot, page = self.path("t.dps"), self.path("t.html")
        harness.tool("snapshot", t.pid, "-o", shot, "--module-load", module, "--module-timeout", 20000, status=0)
        self.report(shot, "-o", page)
        text = harness.tool("show", "-q", shot, status=0).stdout
        self.assertEqual(len(re.findall(r"^#0  in task at /tasks/\d+ \(made by a pmodule\)$", text, re.M)), 6, text)
        b = self.browse(page)
        self.assertEqual(b.run("document.querySelectorAll('#threads > .row[data-group]').length"), 6)
        self.assertNotIn("0x0", b.run("document.querySelector('#body .path').textContent"))
        self.assertEqual(b.errors, [])

    def test_a_hundred_threads_are_found_opened_and_followed(self):
        page, data = self.crowd(100, 40)
        b = self.browse(page)
        self.assertEqual(b.errors, [])
        rows = b.run("document.querySelectorAll('#threads > .row[data-group]').length")
        self.assertTrue(1 <= rows < len(data["threads"]), "threads of the same stack are one row")
        self.assertGreater(b.run("document.querySelectorAll('#frames .row[data-frame]').length"), 2)
        # search
        b.run("(() => { const s = document.getElementById('search'); s.focus(); s.value = 'crumb'; s.dispatchEvent(new Event('input')); })()")
        self.until(b, "document.querySelectorAll('#body .found').length > 10")
        # follow a pointer
        b.run("document.querySelector('#body .found').click()")
        self.assertIn("t=", b.run("location.hash"))
        # the search finds a value of one thread only, which must be unpacked, opened and marked
        b.run("(() => { const s = document.getElementById('search'); s.focus(); s.value = '57/3'; s.dispatchEvent(new Event('input')); })()")
        self.until(b, "document.querySelectorAll('#body .found').length > 0")
        b.run("document.querySelector('#body .found').click()")
        self.until(b, "document.querySelectorAll('#body .line.pick').length === 1")
        self.assertIn('"57/3"', b.run("document.querySelector('#body .line.pick').textContent"))
        self.assertEqual(b.run("document.querySelectorAll('#frames .row[aria-selected=true]').length"), 1)
        # the work of a step does not grow with the number of values: only one thread's frames and one frame's values are drawn
        self.assertLess(b.run("document.querySelectorAll('*').length"), 5000)

    def test_a_deadlock_is_drawn_without_being_asked_for(self):
        t = self.target("ailing", "deadlock")
        shot, page = self.path("d.dps"), self.path("d.html")
        harness.tool("snapshot", t.pid, "-o", shot, status=0)
        self.assertNotIn("deadlock", harness.shown(shot).get("classifiers", []), "the file has no results of the module")
        self.assertRegex(harness.tool("show", "--brief", shot, status=0).stdout, r"! critical: deadlock: thread (\d+) .* waits for mutex lock_[ab]")
        self.report(shot, "-o", page)
        b = self.browse(page)
        self.assertFalse(b.run("document.getElementById('verdict').hidden"))
        self.assertEqual(b.run("document.querySelectorAll('#verdict svg.cycle rect').length"), 2)
        self.assertEqual(set(b.run("[...document.querySelectorAll('#verdict .lock title')].map((x) => x.textContent)")), {"mutex lock_a", "mutex lock_b"})
        self.assertIn("2 threads wait for each other", b.run("document.getElementById('verdict').textContent"))
        first, second = b.run("[...document.querySelectorAll('#verdict g[tabindex]')].map((x) => x.getAttribute('aria-label').split(' ')[1])")
        b.run("document.querySelectorAll('#verdict g[tabindex]')[1].dispatchEvent(new MouseEvent('click', { bubbles: true }))")
        self.until(b, f"location.hash.startsWith('#t={second}&')")
        self.assertNotEqual(first, second)
        for scheme in "light", "dark":
            b.scheme(scheme)
            self.assertEqual(b.run(browser.TOO_PALE), [], scheme)
        self.assertEqual(b.errors, [])

    def test_leak_candidates_are_a_table(self):
        t = self.target("leaky")
        shot, page = self.path("l.dps"), self.path("l.html")
        harness.tool("snapshot", t.pid, "-o", shot, "--mode", "fork", "--module-timeout", 20000, "--module-load", os.path.join(harness.ROOT, "pmodules", "scripts", "leaks.lua"), status=0)
        self.report(shot, "-o", page)
        b = self.browse(page)
        rows = b.run("[...document.querySelectorAll('#verdict table.leaks tr')].map((r) => [...r.cells].map((c) => c.textContent))")
        self.assertEqual(len(rows), 8)
        self.assertIn(["100", "88", "8800"], [r[:3] for r in rows])
        self.assertIn(["7", "4008", "28056", "a page of the book"], [r[:3] + r[4:] for r in rows])
        self.assertRegex(b.run("document.getElementById('verdict').textContent"), r"^leak candidates: no pointer was found to 142 blocks")
        for scheme in "light", "dark":
            b.scheme(scheme)
            self.assertEqual(b.run(browser.TOO_PALE), [], scheme)
        self.assertEqual(b.errors, [])
        calm = self.target("leaky", "nothing")
        harness.tool("snapshot", calm.pid, "-o", shot, "--mode", "fork", "--module-timeout", 20000, "--module-load", os.path.join(harness.ROOT, "pmodules", "scripts", "leaks.lua"), status=0)
        self.report(shot, "-o", page)
        b.open(page)
        self.until(b, "document.body.dataset.ready === 'yes'")
        self.assertRegex(b.run("document.getElementById('verdict').textContent"), r"^no leak candidates: a pointer leads to each of .*most of what is in use: 1 block of 303088 bytes")

    def test_a_crash_opens_on_the_code_of_the_program(self):
        core = binutils.core_of_crash(self.path("core"), harness.compiled(self.path("strings"), "gcc", "-g", "-O0", "-fno-builtin", text="""
            #include <string.h>
            static unsigned long measure(const char *s) { return strlen(s) + 1; }
            int main(void) { return (int)measure(0); }"""))
        shot, page = self.path("c.dps"), self.path("c.html")
        harness.tool("snapshot", "--core", core, self.path("strings"), "-o", shot, status=0)
        self.report(shot, "-o", page)
        b = self.browse(page)
        self.assertRegex(b.run("document.getElementById('why').textContent"), r"a null pointer.*in \S*strlen\S*.*, called by measure at ")
        self.assertEqual(b.run("document.querySelector('#body h2.symbol span').textContent"), "measure")
        self.assertTrue(b.run("document.getElementById('verdict').hidden"), "nothing else is known")

    def test_a_module_cannot_draw_what_it_wants(self):
        module = self.written("odd.lua", """pmodule.define { id = "odd", load = function()
            pmodule.register(pmodule.event.postattach, function(bt)
                bt:add_kv_string("deadlock.cycle.1", '[{"tid": "<b>", "name": 1}]')
                bt:add_kv_string("leaks.groups", '[{"size": "<img src=x onerror=window.broken=1>", "count": 1}]')
                bt:add_kv_string("deadlock.cycle.2", '[{"tid": 1, "name": "<img src=x onerror=window.broken=1>", "what": "a", "lock": "b"}]')
                bt:annotate(pmodule.annotation.warning, "<img src=x onerror=window.broken=1>")
            end) end }""")
        t = self.target("crowd", 1, 1, 1)
        shot, page = self.path("o.dps"), self.path("o.html")
        harness.tool("snapshot", t.pid, "-o", shot, "--module-load", module, status=0)
        self.report(shot, "-o", page)
        b = self.browse(page)
        self.assertEqual(b.run("document.querySelectorAll('#verdict svg').length"), 1)
        self.assertIn("onerror", b.run("document.getElementById('verdict').textContent"))
        self.assertIsNone(b.run("window.broken"))
        self.assertEqual(b.errors, [])

    def test_the_keyboard_walks_frames_and_opens_values(self):
        page, data = self.crowd(3, 8)
        b = self.browse(page)
        before = b.run("document.querySelector('#frames .row[aria-selected=true]').dataset.frame")
        b.key("j")
        b.key("ArrowDown")
        self.assertEqual(int(b.run("document.querySelector('#frames .row[aria-selected=true]').dataset.frame")), int(before) + 2)
        b.key("k")
        self.assertEqual(int(b.run("document.querySelector('#frames .row[aria-selected=true]').dataset.frame")), int(before) + 1)
        # the global is a struct: opened by the keyboard it shows its members
        b.key("3")
        b.run("document.getElementById('body').focus()")
        self.until(b, "document.querySelectorAll('#body .line').length > 0")
        b.key("j")
        b.key("Enter")
        self.assertIn("motto", b.run("document.getElementById('body').textContent"))
        self.assertIn("known by heart", b.run("document.getElementById('body').textContent"))
        b.key("Enter")
        self.assertNotIn("motto", b.run("document.getElementById('body').textContent"))

    def test_light_and_dark(self):
        page, _ = self.crowd(1, 2)
        b = self.browse(page)
        seen = set()
        for scheme in ("light", "dark"):
            b.scheme(scheme)
            self.assertEqual(b.run(browser.TOO_PALE), [], scheme)
            seen.add(b.run("getComputedStyle(document.body).backgroundColor + getComputedStyle(document.body).color"))
        self.assertEqual(len(seen), 2)

    def test_every_pane_is_reached_by_keys_and_the_keys_are_told(self):
        page, _ = self.crowd(3, 3)
        b = self.browse(page)
        self.assertEqual(b.run("document.activeElement.id"), "frames")
        b.key("h")
        self.assertEqual(b.run("document.activeElement.id"), "threads")
        b.key("l")
        b.key("l")
        self.assertEqual(b.run("document.activeElement.id"), "body")
        b.key("?")
        self.assertTrue(b.run("document.getElementById('keys').open"))
        b.key("Escape")
        self.assertFalse(b.run("document.getElementById('keys').open"))
        self.assertEqual(b.run("[...document.querySelectorAll('button, input, [role=listbox], [role=tabpanel]')].filter((e) => e.tabIndex < 0 && !e.closest('[role=tablist]')).length"), 0)

    def test_default_name_and_standard_output(self):
        t = self.target("crowd", 1, 1, 1)
        shot = self.path("a.dps")
        subprocess.run([harness.DYNPROBE, "snapshot", str(t.pid), "-o", shot], capture_output=True, check=True, timeout=300)
        self.report(shot)
        self.assertTrue(os.path.exists(self.path("a.html")))
        self.assertIn("<!DOCTYPE html>", self.report(shot, "-o", "-").stdout)
        bad = harness.tool("report", self.path("nothing.dps"), status=harness.OWN_FAILURE)
        self.assertFalse(os.path.exists(self.path("nothing.html")))

    def test_a_pipe_is_written_to_and_a_link_stays_one(self):
        shot = os.path.join(harness.ROOT, "tests", "unit", "pmodules", "golden-1.dps")
        pipe, link, page = self.path("pipe"), self.path("link.html"), self.path("page.html")
        os.mkfifo(pipe)
        reader = self.spawn("cat", pipe, stdout=subprocess.PIPE, text=True)
        self.report(shot, "-o", pipe)
        self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))
        self.assertIn("<!DOCTYPE html>", reader.communicate(timeout=300)[0])
        open(page, "w").close()
        os.symlink("page.html", link)
        self.report(shot, "-o", link)
        self.assertTrue(os.path.islink(link))
        self.assertIn("<!DOCTYPE html>", open(page).read())


if browser.PROGRAM is None:
    raise RuntimeError("no Chromium: sh scripts/install-packages.sh")

if __name__ == "__main__":
    harness.main()
