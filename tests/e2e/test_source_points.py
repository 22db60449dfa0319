# SPDX-License-Identifier: MIT
"""Tests sites that the source names: lines, functions of a file, inlined copies, overloads, PLT entries. The programs count for themselves.
"""

import json
import os
import re
import shutil
import subprocess

import harness
from harness import Case, needs

# It is easy to see what each of these lines and functions does in one round, and how often main reports it.
LAYERS = """\
#include <stdio.h>
#define KEEP(x) __asm__ volatile("incl %0" : "+r"(x) : : "memory")

static inline __attribute__((always_inline)) int inner(int x)
{
	KEEP(x); /* inner */
	return x;
}

static __attribute__((noinline)) int first(int a)
{
	KEEP(a); /* first */
	return inner(a) + 1;
}

static __attribute__((noinline)) int second(int a)
{
	int b = inner(a);
	KEEP(b); /* second */
	b += inner(b);
	return b;
}

/* nothing here */
__attribute__((noinline)) int own(int a);

int main(void)
{
	int sum = 0;
	for (int i = 0; i < 30; i++)
		sum += first(i);
	for (int i = 0; i < 20; i++)
		sum += second(i) + own(i);
	printf("%d\\n", sum);
	return 0;
}
"""
OTHER = """\
#define KEEP(x) __asm__ volatile("incl %0" : "+r"(x) : : "memory")
static __attribute__((noinline)) int first(int a)
{
	KEEP(a);
	return a * 3;
}
__attribute__((noinline)) int own(int a) { return first(a) + first(a + 1); }
"""
VARIABLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "variables")
LINE = {word: i + 1 for i, text in enumerate(LAYERS.split("\n")) for word in re.findall(r"/\* ([a-z ]+) \*/", text)}
HITS = {"inner": 30 + 2 * 20, "first": 30, "second": 20, "other": 2 * 20}

CXX = """\
#include <cstdio>
#include <vector>
namespace ns {
struct Klass {
	int state = 1;
	__attribute__((noinline)) int method(int a);
	__attribute__((noinline)) int method(const char *s);
	__attribute__((noinline)) bool operator<(const Klass &k) const;
	__attribute__((always_inline)) int small(int x) { asm volatile("" : "+r"(x)); return x + state; }
};
int Klass::method(int a) { asm volatile(""); return small(a) * 3; }
int Klass::method(const char *s) { asm volatile(""); return small(s[0]) * 5; }
bool Klass::operator<(const Klass &k) const { asm volatile(""); return state < k.state; }
template <typename T> __attribute__((noinline)) T twice(T x) { asm volatile(""); return x + x; }
}
namespace other { __attribute__((noinline)) int method(int a) { asm volatile(""); return a * 9; } }
namespace { __attribute__((noinline)) int hidden(int a) { asm volatile(""); return a; } }
int main()
{
	ns::Klass k, l;
	long sum = 0;
	for (int i = 0; i < 7; i++)
		sum += k.method(i);
	for (int i = 0; i < 5; i++)
		sum += k.method("x") + (k < l);
	for (int i = 0; i < 3; i++)
		sum += ns::twice(i) + other::method(i) + hidden(i);
	sum += (long)ns::twice(1.5);
	printf("%ld\\n", sum);
	return 0;
}
"""

WAYS = {
    "gcc-O0": ("gcc", "-O0"),
    "gcc-O2": ("gcc", "-O2"),
    "gcc-O2-dwarf4": ("gcc", "-O2", "-gdwarf-4"),
    "gcc-O2-compressed": ("gcc", "-O2", "-gz"),
    "gcc-O2-split": ("gcc", "-O2", "-gsplit-dwarf"),
    "gcc-O2-lto": ("gcc", "-O2", "-flto", "-ffat-lto-objects"),
    "gcc-O2-nopie": ("gcc", "-O2", "-no-pie", "-fno-pie"),
    "clang-O0": ("clang", "-O0"),
    "clang-O2": ("clang", "-O2", "-gdwarf-5"),
    "clang-O2-split": ("clang", "-O2", "-gsplit-dwarf", "-gdwarf-4"),
}
SOME = ("gcc-O0", "gcc-O2-dwarf4", "gcc-O2-split", "gcc-O2-lto", "clang-O2")  # for the default form


class SourceCase(Case):
    def build(self, compiler, *flags, name="prog", sources=None):
        os.makedirs(self.path("src"), exist_ok=True)
        files = []
        for file, text in (sources or {"src/layers.c": LAYERS, "src/other.c": OTHER}).items():
            files.append(self.written(file, text))
        return harness.compiled(self.path(name), compiler, "-g", *flags, "-Wl,--build-id", *files, cwd=self.dir)

    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(harness.tempfile.TemporaryDirectory(prefix="dp-points-"))

    def build_once(self, *command, **kw):
        """For all tests of the class; each has a copy."""
        made = os.path.join(self.folder, "prog")
        if not os.path.exists(made):
            shutil.copy(self.build(*command, **kw), made)
        return shutil.copy(made, self.path("prog"))

    def hits(self, program, *args, status=0):
        r = self.dynprobe(*args, "--", program)
        self.assert_ok(r, status)
        self.last = r
        return {p["name"]: p["hits"] for p in r.summary["probes"]}

    def total(self, program, *args):
        return sum(self.hits(program, *args).values())


class Ways(SourceCase):
    """Compiled in any way: a line, an inlined function, and a function of that file if two files have one of that name."""

    def check(self, way):
        compiler = WAYS[way][0]
        if not harness.have(compiler):
            self.skipTest(f"{compiler} is not installed")
        program = self.build(*WAYS[way])
        got = self.hits(program, "--name", "l", "--probe", f"layers.c:{LINE['inner']}", "--name", "i", "--function", "inner",
                        "--name", "s", "--probe", f"src/layers.c:{LINE['second']}", "--name", "f", "--function", "first@layers.c",
                        "--name", "o", "--function", "first@src/other.c", "--name", "r", "--probe", "second:3")
        sums = {}
        for name, n in got.items():
            sums[name[0]] = sums.get(name[0], 0) + n
        line = HITS["second"]
        self.assertEqual(sums, {"l": HITS["inner"], "i": HITS["inner"], "s": line, "r": line, "f": HITS["first"], "o": HITS["other"]}, (way, got))
        copies = [name for name in got if name[0] == "i"]
        self.assertEqual(len(copies), 3, got)


for way in WAYS if harness.FULL else SOME:
    setattr(Ways, "test_" + way.replace("-", "_"), lambda self, way=way: self.check(way))


class Entries(SourceCase):
    """Copies whose entry is not their lowest address: each function reports how often it was called."""

    def check(self, *command):
        program = harness.compiled(self.path("entries"), *command, "-g", os.path.join(VARIABLES, "entries.c"))
        names = ("early", "branch", "loop")
        got = self.hits(program, *(x for name in names for x in ("--name", name, "--function", name)))
        sums = {name: sum(n for probe, n in got.items() if probe.startswith(name)) for name in names}
        printed = next(line for line in self.last.out.splitlines() if line.startswith("{"))
        self.assertEqual(sums, json.loads(printed), (command, got))

    @needs("clang")
    def test_clang_says_ranges_alone(self):
        for command in (["clang", "-O2"], ["clang", "-O3", "-gdwarf-4"], ["clang", "-O2", "-gsplit-dwarf"])[:3 if harness.FULL else 1]:
            self.check(*command)

    def test_gcc(self):
        self.check("gcc", "-O2")


class Lines(SourceCase):
    def setUp(self):
        super().setUp()
        self.program = self.build_once("gcc", "-O2")

    def refused(self, tag, *args, words=()):
        self.assert_refused(self.dynprobe(*args, "--", self.program), tag, *words)

    def test_a_line_without_code_names_its_neighbours(self):
        at = LINE["nothing here"]
        self.refused("DP-NO-SYMBOL", "--probe", f"layers.c:{at}", words=("has no code", "nearest ones with code are"))
        self.refused("DP-NO-SYMBOL", "--probe", "layers.c:9999", words=("has no code", "the nearest one with code is"))

    def test_a_file_that_is_not_there(self):
        self.refused("DP-NO-SYMBOL", "--probe", "players.c:10", words=("no source file", "players.c"))
        self.refused("DP-NO-SYMBOL", "--function", "first@third.c", words=("there is no function 'first' of third.c",))
        self.refused("DP-NO-SYMBOL", "--probe", "nobody:3")

    def test_without_debug_information_it_is_said_what_to_install(self):
        subprocess.run(["strip", "-g", self.program], check=True)
        self.refused("DP-NO-DEBUG-INFO", "--probe", "prog!layers.c:10", words=("build-id", "/usr/lib/debug/.build-id/", "-dbgsym"))

    def test_a_separate_file_does(self):
        debug = self.program + ".debug"
        subprocess.run(f"objcopy --only-keep-debug {self.program} {debug}; strip {self.program}; objcopy --add-gnu-debuglink={debug} {self.program}",
                       shell=True, check=True, cwd=self.dir)
        self.assertEqual(self.total(self.program, "--function", "inner"), HITS["inner"])

    def test_the_caret_shows_what_is_wrong(self):
        def caret(option, text, column, words):
            r = self.dynprobe(option, text, "--", self.program)
            self.assert_refused(r, "DP-SYNTAX", words)
            self.assertIn(f"\n  {text}\n  {' ' * column}^", r.err.split(" [DP-")[0] + "\n", r.err)
        caret("--probe", "layers.c:0", 9, "count from 1")
        caret("--probe", "layers.c:123456789012", 9, "line number is too large")
        caret("--probe", "layers.c:12:entry", 11, "the name of a function only")
        caret("--usdt", "provider", 8, "PROVIDER:NAME")
        caret("--usdt", "provider:", 9, "name is missing")

    def test_returns_are_those_of_functions(self):
        self.refused("DP-USAGE", "--return", "layers.c:10", words=("whole function",))

    def test_lists_hold_all_of_it(self):
        self.written("list", f"# what to look at\nlayers.c:{LINE['second']}   # a line\n\nfirst@other.c\n")
        self.assertEqual(self.hits(self.program, "--probe", "@" + self.path("list")), {f"layers_c_{LINE['second']}": 20, "first": 40})
        self.written("list", "own\nlayers.c:0\n")
        r = self.dynprobe("--probe", "@" + self.path("list"), "--", self.program)
        self.assert_refused(r, "DP-SYNTAX", "list, line 2", "\n  layers.c:0\n           ^")

    def test_a_plain_name_is_the_function_and_its_inlined_copies(self):
        program = self.build("gcc", "-O2", sources={"src/both.c": """
#include <stdio.h>
inline int both(int a) { __asm__ volatile("incl %0" : "+r"(a)); return a; }
extern int both(int a);
int (*volatile pointer)(int) = both;
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 9; i++)
		sum += both(i);
	for (int i = 0; i < 4; i++)
		sum += pointer(i);
	printf("%d\\n", sum);
	return 0;
}
"""}, name="both")
        self.assertEqual(self.hits(program, "--function", "both"), {"both": 4, "both_inlined_in_main": 9})
        self.assertIn("dynprobe: both: the function, and 1 place: both (inlined in main)\n", self.last.err)
        self.assertEqual(self.hits(program, "--probe", "both"), {"both": 4})

    def test_listed_instructions_have_their_lines(self):
        p = harness.tool("list", "-v", "-f", "json", self.program, "second")
        f, = map(json.loads, p.stdout.splitlines())
        sources = [site["source"] for site in f["sites"]]
        self.assertIn(f"layers.c:{LINE['second']}", sources)
        self.assertEqual(sources.count(None), 0, sources)
        text = harness.tool("list", "-v", self.program, "second").stdout
        self.assertIn(f" layers.c:{LINE['second']} ", text)

    def test_plt_entries(self):
        program = self.build("gcc", "-O0", "-fno-builtin", "-fcf-protection=none", "-Wl,-z,lazy", name="plt")
        self.assertEqual(self.hits(program, "--probe", "printf@plt"), {"printf_plt": 1})
        program = self.build("gcc", "-O0", "-fno-builtin", "-fcf-protection=full", name="plt")
        self.assertEqual(self.hits(program, "--probe", "plt!printf@plt"), {"printf_plt": 1})

    def test_versions_are_no_files(self):
        self.assertEqual(self.hits(self.program, "--function", "printf@GLIBC_2.2.5"), {"printf_GLIBC_2_2_5": 1})
        self.assertEqual(self.hits(self.program, "--function", "libc.so.6!printf@@GLIBC_2.2.5"), {"printf__GLIBC_2_2_5": 1})


@needs("g++")
class Cxx(SourceCase):
    def setUp(self):
        super().setUp()
        self.program = self.build_once("g++", "-O2", sources={"src/klass.cc": CXX})

    def test_overloads_and_instances(self):
        for spec, wanted in {
                "ns::Klass::method": 12, "method": 15, "other::method": 3, "ns::Klass::method(const char*)": 5,
                "ns::twice": 4, "twice<double>(double)": 1, "hidden": 3, "Klass::operator<": 5, "ns::Klass::small": 12}.items():
            with self.subTest(spec):
                self.assertEqual(self.total(self.program, "--function", spec), wanted)

    def test_returns_by_readable_names(self):
        self.assertEqual(self.total(self.program, "--return", "ns::Klass::method"), 12)
        self.assertEqual(self.total(self.program, "--probe", "Klass::method(const char*):return"), 5)
        r = self.dynprobe("--return", "Klass::nothing", "--", self.program)
        self.assert_refused(r, "DP-NO-SYMBOL", "Klass::nothing")

    def test_what_was_found_is_said(self):
        self.hits(self.program, "--function", "ns::Klass::method")
        self.assertIn("ns::Klass::method: 2 places: ns::Klass::method(int), ns::Klass::method(char const*)", self.last.err)
        self.assertEqual(set(self.hits(self.program, "--function", "ns::twice")), {"ns_twice_int", "ns_twice_double"})

    def test_patterns_know_readable_names(self):
        self.assertEqual(self.total(self.program, "--function", "ns::Klass::m*"), 12)
        self.assertEqual(self.total(self.program, "--function", "ns::twice<*>"), 4)

    def test_a_line_of_a_template_is_in_all_instances(self):
        line = next(i + 1 for i, text in enumerate(CXX.split("\n")) if "T twice(T x)" in text)
        self.assertEqual(len(self.hits(self.program, "--probe", f"klass.cc:{line}")) >= 2, True)


if __name__ == "__main__":
    harness.main()
