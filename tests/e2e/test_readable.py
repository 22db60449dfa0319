# SPDX-License-Identifier: MIT
"""Tests that output reads as people write: names and places, durations, NULL, the program's name, source lines and inlined functions."""

import os
import re
import subprocess

import harness
from harness import Case

SOURCE = """
#include <stdio.h>
#include <unistd.h>
#define ALONE __attribute__((noinline))
struct K { int n; int f(int x); int f(double x); };
ALONE int K::f(int x) { asm volatile(""); return n += x; }
ALONE int K::f(double x) { asm volatile(""); return n += (int)x; }
static inline __attribute__((always_inline)) int twice(int x) { asm volatile("nop; nop; nop; nop; nop; nop; nop; nop"); return 2 * x; }
extern "C" ALONE int take(void *p, const char *s) {
  asm volatile("");
  return (p != 0) + (s != 0);
}
extern "C" ALONE int once(int n) { int r = take(&n, "s") + take(NULL, "t"); asm volatile(""); return r; }
extern "C" ALONE int work(int n) {
  K k = {n};
  int r = once(n);
  r += twice(n);
  return r + k.f(n) + k.f(2.0);
}
#include <string>
namespace deep {
template <class T> struct Box { ALONE size_t get(const T &t) { asm volatile(""); return t.size(); } };
ALONE size_t greet(const std::string &s) { asm volatile(""); return s.size(); }
}
int main() {
  deep::Box<std::string> box;
  for (int i = 0; i < 20; i++)
    work(i), usleep(2000), box.get("abc") + deep::greet("ab");
  puts("RESULT OK");
}
"""


class Readable(Case):
    @classmethod
    def setUpClass(cls):
        cls.place = cls.enterClassContext(harness.tempfile.TemporaryDirectory(prefix="dp-readable-"))
        source = os.path.join(cls.place, "calls.cc")
        with open(source, "w") as f:
            f.write(SOURCE)
        cls.program = harness.compiled(os.path.join(cls.place, "calls"), "g++", "-g", "-O2", source)

    def text(self, *args, program=None, record=None):
        """What is printed on standard output when the program is run to its end, without the time."""
        r = self.dynprobe("-o", self.path("out"), "-f", "text", *args, "--", program or self.program, record=record, json_events=False)
        self.assert_ok(r)
        self.assertIn("RESULT OK", r.out)
        self.err = r.err
        with open(self.path("out")) as f:
            return re.sub(r"(?m)^\d\d:\d\d:\d\d\.\d{9} ", "", f.read())

    def heads(self, *args):
        return set(re.findall(r"(?m)^calls\[\d+\] (.*)$", self.text(*args)))

    def test_names_are_those_of_the_source(self):
        self.assertEqual(self.heads("--function", "K::f"), {"K::f(int)", "K::f(double)"})
        self.assertRegex(self.err, r"(?m)^    K::f\(int\) +20 ")
        self.assertEqual(self.heads("--function", "take", "--return", "once", "--probe", "work+0x0"), {"take", "once:return", "work+0x0"})
        self.assertEqual(self.heads("--probe", "calls.cc:17"), {"calls.cc:17"})
        self.assertEqual(self.heads("--function", "twice"), {"twice (inlined in work)"})
        self.assertEqual(self.heads("--name", "mine", "--function", "take"), {"mine"})
        self.assertEqual(set(re.findall(r"(?m)^ +\d+ (\S.*)$", self.text("--function", "K::f", "--return", "take", "--count"))) - {"row without a hit"},
                         {"K::f(int)", "K::f(double)", "take:return"})

    def test_patterns_with_a_scope_match_readable_names(self):
        self.assertEqual(self.heads("--function", "K::f*"), {"K::f(int)", "K::f(double)"})
        self.assertEqual(self.heads("--function", "Box::g*"), {"deep::Box<std::string>::get"})
        self.assertEqual(self.heads("--function", "deep::*", "-x", "Box::g*"), {"deep::greet"})
        self.assertEqual(self.heads("--function", "gree*"), {"deep::greet"})

    def test_the_standard_librarys_names_are_short_and_typed_in_both_spellings(self):
        string = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
        for typed in ("std::string", string):
            self.assertEqual(self.heads("--function", f"deep::greet({typed} const&)"), {"deep::greet"})
            self.assertEqual(self.heads("--function", f"deep::Box<{typed}>::g*"), {"deep::Box<std::string>::get"})
            self.assertEqual(self.heads("--function", f"deep::Box<{typed}>::get"), {"deep::Box<std::string>::get"})
        self.assertIn("deep::Box<std::string>::get", self.text("--function", "Box::get", "--count", "--by", "backtrace"))
        listed = harness.tool("list", self.program, "deep::*").stdout
        self.assertIn("calls!deep::greet(std::string const&)\n", listed)

    def test_notes_and_refusals_have_readable_names(self):
        r = self.dynprobe("--function", "K::f", "-t", "retval", "--return", "take", "--", self.program, json_events=False)
        self.assertIn("refused calls!K::f(int) in ", r.err)
        self.assertIn("--return 'K::f(int)' -t retval", r.err)
        self.assertNotIn("_ZN1K1f", r.err)

    def test_json_has_both_names(self):
        r = self.dynprobe("--function", "K::f", "--", self.program)
        self.assert_ok(r)
        self.assertEqual({(e["probe"], e["title"]) for e in r.events}, {("K_f", "K::f(int)"), ("K_f_2", "K::f(double)")})
        r = self.dynprobe("--function", "K::f", "--count", "--", self.program)
        self.assertEqual({(a["probe"], a["title"]) for a in r.answers if a["final"]}, {("K_f", "K::f(int)"), ("K_f_2", "K::f(double)")})

    def test_values(self):
        heads = self.heads("--function", "take", "-t", "p", "--return", "work", "-t", "duration")
        self.assertIn("take: p=NULL", heads)
        self.assertTrue(any(re.fullmatch(r"take: p=0x[0-9a-f]+", h) for h in heads), heads)
        self.assertTrue(any(re.fullmatch(r"work:return: duration=[\d.]{1,4}(ns|us|ms|s)", h) for h in heads), heads)

    def test_backtraces_have_lines_and_inlined_functions(self):
        shown = self.text("--function", "twice", "-t", "backtrace:2")
        self.assertRegex(shown, r"""(?m)^    #0  twice \(inlined\) calls\.cc:8
    #1  work\+0x[0-9a-f]+/0x[0-9a-f]+ \[calls\] calls\.cc:17
    #2  main\+0x[0-9a-f]+/0x[0-9a-f]+ \[calls\] calls\.cc:2\d
    #3  \.\.\.$""")
        self.assertNotIn("calls.cc", self.text("--function", "twice", "-t", "backtrace:2", "--no-lines"))
        frame = self.dynprobe("--function", "twice", "-t", "backtrace", "--", self.program).events[0]["fields"]["backtrace"][0]
        place = os.path.join(self.place, "calls.cc")
        self.assertEqual((frame["file"], frame["line"], frame["inlined"]), (place, 17, [{"function": "twice", "file": place, "line": 8}]))

    def test_rows_have_lines_and_folded_stacks_of_the_same_functions_are_one(self):
        rows = self.text("--function", "take", "--count", "--by", "backtrace")
        self.assertEqual(len(re.findall(r"(?m)^ +20 take\n +take\+0x0/0x\w+ \[calls\] calls\.cc:\d+\n +once\+0x\w+/0x\w+ \[calls\] calls\.cc:13$", rows)), 2, rows)
        folded = self.text("--function", "take", "--function", "twice", "--count", "--by", "backtrace", "--folded")
        self.assertRegex(folded, r"(?m)^\S+;main;work;once;take 40$")
        self.assertRegex(folded, r"(?m)^\S+;main;work;twice 20$")
        self.assertNotIn("twice", self.text("--function", "twice", "--count", "--by", "backtrace", "--folded", "--no-lines"))

    def test_a_recorded_trace_reads_the_same(self):
        live = self.text("--function", "K::f", "--return", "work", "-t", "duration", "-t", "backtrace", record=self.path("trace"))
        self.assertIn("calls.cc:18", live)
        p = subprocess.run([harness.DYNPROBE, "view", self.path("trace")], capture_output=True, text=True, timeout=300)
        self.assertEqual(re.sub(r"(?m)^\d\d:\d\d:\d\d\.\d{9} ", "", p.stdout), live)

    def test_the_program_has_the_name_of_the_link_that_started_it(self):
        os.symlink("calls", os.path.join(self.place, "linked"))
        self.assertRegex(self.text("--function", "work", "-t", "backtrace:1", program=os.path.join(self.place, "linked")),
                         r"#0  work\+0x0/0x[0-9a-f]+ \[linked\]")


if __name__ == "__main__":
    harness.main()
