# SPDX-License-Identifier: MIT
"""Tests `dynprobe view`: a recorded trace is shown as the live run showed it, and aggregated as a run would have counted."""

import json
import os
import re
import shutil
import subprocess
import tempfile

import harness
from harness import Case, needs

PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
enum kind { GET, POST, PUT };
struct req { int len; enum kind kind; const char *name; double d; unsigned char raw[6]; };
__attribute__((noinline)) int work(struct req *r, int i, const char *s) { __asm__ volatile("" ::: "memory"); return r->len + i; }
__attribute__((noinline)) int outer(struct req *r, int i, const char *s) { return work(r, i, s) + 1; }
static void *thread(void *a)
{
	static const char *names[] = {"alpha", "beta\n", "gamma \"quoted\" and longer than the others"};
	for (int i = 0; i < atoi(a); i++) {
		struct req r = {i * 7 % 1000 - 50, i % 3, i % 5 ? names[i % 3] : (char *)16, i / 3.0, {1, 2, 3, 4, 5, i}};
		i % 3 == 1 ? outer(&r, i, names[i % 3]) : work(&r, i, names[i % 3]);
	}
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t t[8];
	int n = atoi(argv[2]);
	for (int i = 0; i < n; i++)
		pthread_create(&t[i], NULL, thread, argv[1]);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	if (argc > 3) {
		puts("READY");
		fflush(stdout);
	}
	for (int i = 0; argc > 3; i++) { /* until it is killed */
		struct req r = {i, GET, "late", 0, {0}};
		outer(&r, i, "late");
		usleep(1000);
	}
	return 0;
}
"""
FIELDS = ("-t", "args", "-t", "*r", "-t", "str(s, 5)", "-t", "twice=i * 2")
AGGREGATIONS = [
    ("--count",), ("--count", "--by", "r->kind"), ("--hist", "r->len"), ("--hist", "i,0,200,7"), ("--sum", "i", "--avg", "i"),
    ("--min", "r->len", "--max", "r->len", "--by", "i % 7"), ("--max", "r->d"), ("--hist", "i * 2", "--by", "r->kind == POST"),
    ("--count", "--by", "comm"), ("--count", "--by", "backtrace"), ("--count", "--by", "backtrace", "--folded"),
    ("--sum", "i", "--by", "i", "--top", "5"), ("--count", "--by", "r->kind,caller"), ("--count", "--by", "caller"),
    ("--count", "--by", "comm, i % 3, backtrace:2"), ("--count", "--by", "backtrace:2"),
    ("--sum", "i", "--hist", "r->len", "--max", "r->len", "--hist", "i,0,200,7", "--by", "i % 2"),
]  # fmt: skip
STEPS = [0, *(digit * 10**k for k in range(12) for digit in (1, 2, 5))]  # of durations


def untimed(text):
    """Without what differs between two runs: times, process numbers, addresses, the length of the period."""
    text = re.sub(r"^\d\d:\d\d:\d\d\.\d{9} (\S+)\[[\d/]+\]", r"\1", text, flags=re.M)
    text = re.sub(r"\b0x7[0-9a-f]{11}", "POINTER", text)
    return re.sub(r"^in \d+\.\d{3} s$", "in", text, flags=re.M)


def in_order(text):
    """The events, those of the same nanosecond by thread: a run has the cycle counter to order them."""
    events = re.split(r"^(?=\d\d:\d\d:\d\d\.|\{)", text, flags=re.M)
    return sorted(events, key=lambda e: re.match(r"\{.*?\"mono\":(\d+).*?\"tid\":(\d+)|([\d:.]+) \S+\[([\d/]+)\]|", e, flags=re.S).groups(""))


class WithProgram(Case):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="dp-e2e-")
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.shared = harness.compiled(os.path.join(folder, "prog"), "gcc", "-g", "-O1", "-w", "-pthread", text=PROGRAM)

    def setUp(self):
        super().setUp()
        self.program = shutil.copy(self.shared, self.path("prog"))  # some tests replace it

    def record(self, trace, *args, calls=300, threads=2, form="text"):
        """Runs the program under probes; returns what the run showed."""
        shown = self.path(trace + ".shown")
        argv = ("-f", form, "-o", shown, "--record", self.path(trace), "--buffer-size", "4M", *args, "--", self.program, calls, threads)
        self.assertNotIn("ring full", harness.tool(*argv, status=0).stderr)
        with open(shown, newline="") as f:
            return f.read()

    def view(self, *args, status=0, **kw):
        args = [self.path(a) if isinstance(a, str) and os.path.exists(self.path(a)) else a for a in args]
        return harness.tool("view", *args, status=status, **kw)

    def same(self, trace, shown, *args):
        p = self.view(trace, *args)
        if p.stdout != shown:
            self.assertEqual(in_order(p.stdout), in_order(shown))
        self.assertEqual(p.stderr, "")


class Shown(WithProgram):
    def test_text_is_that_of_the_live_run(self):
        for contexts in ((*FIELDS, "-t", "backtrace"), ("-t", "regs", "-t", "backtrace:2"), (), *([FIELDS] if harness.FULL else [])):
            with self.subTest(contexts):
                name = f"t{len(contexts)}"
                shown = self.record(name, "--function", "work", *contexts, "--return", "outer", "-t", "retval")
                self.assertEqual(len(re.findall(r"\] work\b", shown)), 600)
                self.same(name, shown)

    def test_json_is_that_of_the_live_run(self):
        shown = self.record("t", "--function", "work", *FIELDS, "-t", "backtrace", "--return", "outer", form="json")
        lines = shown.splitlines(keepends=True)
        self.assertEqual([json.loads(line)["type"] for line in lines[-1:]], ["summary"])
        self.same("t", "".join(lines[:-1]), "-f", "json")

    def test_a_format_is_used_again(self):
        shown = self.record("t", "--probe", 'work "%5d of %-12s|%s", i, str(s), r->kind', "-t", "r->len")
        self.assertRegex(shown, r"work:     7 of beta\\n       \|POST r->len=-1")
        self.same("t", shown)

    def test_many_classes(self):
        """Event numbers above 30 have another header."""
        shown = self.record("t", *(x for i in range(40) for x in ("--name", f"p{i}", "--function", "work", "-t", f"i+{i}")), calls=40, threads=1)
        self.assertIn(" p39: ", shown)
        self.same("t", shown)

    def test_system_calls_have_their_titles(self):
        shown = self.record("t", "--syscall", "write", "--syscall", "openat")
        self.same("t", shown)

    def test_generated_code_and_frames_found_by_frame_pointer(self):
        t = self.target("jit")
        self.addCleanup(lambda: os.path.lexists(f"/tmp/perf-{t.pid}.map") and os.remove(f"/tmp/perf-{t.pid}.map"))
        shown = self.path("shown")
        harness.tool("-o", shown, "--record", self.path("t"), "--pid", t.pid, "--function", "foo", "-t", "backtrace", "-n", 20, status=0)
        with open(shown) as f:
            live = f.read()
        self.assertRegex(live, r"jit_inner\+0x10.*\n.*jit_outer a;b .*\(by frame pointer\)")
        os.remove(f"/tmp/perf-{t.pid}.map")
        self.same("t", live)

    def test_a_run_that_only_records(self):
        """Its events go from ring to file without order; the same names come with them."""
        args = ("--function", "work", *FIELDS, "-t", "backtrace")
        harness.tool("-q", "--record", self.path("t"), *args, "--", self.program, 300, 1, status=0)
        live = self.record("live", *args, threads=1)
        self.assertEqual(untimed(self.view("t").stdout), untimed(live))
        harness.tool("-q", "--record", self.path("plain"), "--function", "work", "-t", "i", "--", self.program, 300, 4, status=0)
        lines = self.view("plain").stdout.splitlines()
        self.assertEqual((len(lines), lines), (1200, sorted(lines, key=lambda line: line.split()[0])))

    def test_names_need_no_file(self):
        shown = self.record("t", "--function", "work", "-t", "backtrace", "--no-lines")
        self.assertIn("#1  outer+", shown)
        os.unlink(self.program)
        self.same("t", shown, "--no-lines")
        with open(self.program, "w") as f: # built again
            f.write("something else")
        shutil.move(self.path("t"), self.path("elsewhere"))
        self.same("elsewhere", shown, "--no-lines")

    def test_a_reader_that_leaves_is_no_error(self):
        self.record("t", "--function", "work", "-t", "i", calls=20000 if harness.FULL else 5000, threads=1)
        p = subprocess.run(f"{harness.DYNPROBE} view {self.path('t')} | head -n 2; echo ${{PIPESTATUS[0]}}", shell=True, executable="/bin/bash",
                           capture_output=True, text=True, timeout=300)  # fmt: skip
        self.assertEqual(len(p.stdout.splitlines()), 3)
        self.assertEqual(p.stdout.splitlines()[-1], "0")
        self.assertEqual(p.stderr, "")

    def test_without_a_directory_the_last_one(self):
        env = harness.environment(HOME=self.dir, LTTNG_HOME=self.dir)
        harness.tool("-q", "--function", "work", "-t", "i", "--", self.program, 5, 1, env=env, status=0)
        self.assertEqual(self.view(env=env).stdout.count(" work: i="), 5)

    def test_options_that_exclude_each_other(self):
        self.record("t", "--function", "work", "-t", "i", calls=5)
        for args in (("-f", "xml"), ("--last", "1", "--to", "2"), ("--by", "i"), ("-f", "folded", "--sum", "i"), ("--folded", "--count"), ("--pid", "1")):
            self.assertIn("[DP-USAGE]", self.view("t", *args, status=harness.OWN_FAILURE).stderr, args)
        for args in (("--when", "nosuch == 1"), ("--sum", "s"), ("--count", "--by", "backtrace"), ("--count", "--by", "i,caller")):
            self.assertIn("[DP-NO-VARIABLE]", self.view("t", *args, status=harness.OWN_FAILURE).stderr, args)
        self.assertIn("[DP-SYNTAX]", self.view("t", "--when", "i ==", status=harness.OWN_FAILURE).stderr)


class Wanted(WithProgram):
    def test_conditions_choose_what_the_probe_would_have_chosen(self):
        self.record("all", "--function", "work", *FIELDS, threads=1)
        for condition in ("r->len > 100", "r->kind == POST && i % 7 == 3", 's =~ "b*" || r->d > 60.5', 'r->name != "alpha"', "i * 2 - r->len > 0 ? i & 1 : i > 290",
                          "(char)r->len < -20", "r->raw[5] == 7", "i / (i - 7) == 1", "sizeof(i) == 4")[::1 if harness.FULL else 2]:  # fmt: skip
            with self.subTest(condition):
                shutil.rmtree(self.path("chosen"), ignore_errors=True)
                live = self.record("chosen", "--function", "work", *FIELDS, "--when", condition, threads=1)
                self.assertEqual(untimed(self.view("all", "--when", condition).stdout), untimed(live))
                self.assertNotEqual(live, "")

    def test_equal_strings_are_one_key(self):
        """Their addresses differ, and an address may have held several strings."""
        self.record("t", "--function", "work", "-t", "s", "-t", "i", "-t", "r->name", threads=1)
        rows = {r["key"]: r["hits"] for r in harness.objects(self.view("t", "-f", "json", "--count", "--by", "str(s)").stdout)}
        long = 'gamma "quoted" and longer than the others'
        self.assertEqual(rows, {"alpha": 100, "beta\n": 100, long: 100})
        rows = {r["key"]: (r["hits"], r["sum"]) for r in harness.objects(self.view("t", "-f", "json", "--sum", "i", "--by", "r->name").stdout)}
        want = {k: [i for i in range(300) if i % 5 and i % 3 == n] for n, k in enumerate(("alpha", "beta\n", long))}
        want["<unreadable>"] = range(0, 300, 5)
        self.assertEqual(rows, {k: (len(v), sum(v)) for k, v in want.items()})
        rows = {tuple(r["keys"].values()): r["hits"] for r in harness.objects(self.view("t", "-f", "json", "--count", "--by", "s, i % 2").stdout)}
        self.assertEqual(rows, {(k, n): 50 for k in ("alpha", "beta\n", long) for n in (0, 1)})
        self.assertIn("100 work  beta\\n\n", self.view("t", "--count", "--by", "s").stdout)
        self.assertIn("[DP-SYNTAX]", self.view("t", "--sum", "s", status=harness.OWN_FAILURE).stderr)

    def test_a_part_of_a_string_stands_for_no_other(self):
        self.record("t", "--function", "work", "-t", "str(s, 3)", "-t", "str(s)", "-t", "str(s, 2)", threads=1)
        for key, want in (("str(s)", {"alpha", "beta\n", 'gamma "quoted" and longer than the others'}), ("str(s, 3)", {"alp...", "bet...", "gam..."}),
                          ("str(s, 2)", {"al...", "be...", "ga..."})):  # fmt: skip
            with self.subTest(key):
                self.assertEqual({r["key"] for r in harness.objects(self.view("t", "-f", "json", "--count", "--by", key).stdout)}, want)
        by_name = self.view("t", "--count", "--by", "s").stdout
        self.assertEqual(by_name.replace("by s\n", "by str(s)\n"), self.view("t", "--count", "--by", "str(s)").stdout)
        self.record("cut", "--function", "work", "-t", "str(s, 3)", threads=1)
        self.assertEqual(self.view("cut", "--count", "--by", "str(s)").stdout.count("..."), 3, "what is cut looks so")
        for trace, key in (("t", "str(s, 4)"), ("cut", "str(s, 2)")):
            with self.subTest(key):
                p = self.view(trace, "--count", "--by", key, status=harness.OWN_FAILURE)
                self.assertIn("the string was not recorded with this limit; there are", p.stderr)
                self.assertIn("[DP-NO-VARIABLE]", p.stderr)

    def test_facts_and_fields_by_name(self):
        self.record("t", "--function", "work", "-t", "i", "-t", "reg:rsi", "--return", "outer", "-t", "retval", threads=1)
        for condition, count in (('probe == "work"', 300), ("$rsi == i && i < 10", 10), ("rsi >= 290", 10), ("retval < 0", 2), ('comm == "prog" && pid == tid', 0),
                                 ("twice", None), ("time > 0", 400)):  # fmt: skip
            with self.subTest(condition):
                p = self.view("t", "--when", condition, status=None)
                if count is None:
                    self.assertIn("'twice' was not recorded; there are i, rsi, pid,", p.stderr)
                else:
                    self.assertEqual(len(p.stdout.splitlines()), count)
        self.assertIn("events of work are left out", self.view("t", "--when", "retval < 0").stderr)

    def test_aggregations_are_those_of_a_run(self):
        self.record("t", "--function", "work", *FIELDS, "-t", "backtrace")
        for args in AGGREGATIONS if harness.FULL else AGGREGATIONS[1::3]:
            with self.subTest(args):
                live = harness.tool("--no-record", "-o", "-", "--function", "work", *args, "--", self.program, 300, 2, status=0).stdout
                self.assertEqual(untimed(self.view("t", *args).stdout), untimed(live))
                self.assertIn("work", live)

    def test_durations_have_the_buckets_of_a_run(self):
        shown = self.record("t", "--return", "work", "-t", "duration", form="json")
        taken = [e["fields"]["duration"] for e in map(json.loads, shown.splitlines()) if e["type"] == "event"]
        (row,) = harness.objects(self.view("t", "-f", "json", "--hist", "duration").stdout)
        self.assertEqual({(b["from"], b["to"]): b["hits"] for b in row["buckets"]},
                         {(a, b): n for a, b in zip(STEPS, STEPS[1:]) if (n := sum(a <= d < b for d in taken))})
        live = harness.tool("--no-record", "-o", "-", "-f", "json", "--return", "work", "--hist", "duration", "--", self.program, 300, 2, status=0).stdout
        (row,) = [o for o in harness.objects(live) if o["type"] == "answer"]
        self.assertEqual(sum(b["hits"] for b in row["buckets"]), len(taken))
        self.assertLessEqual({(b["from"], b["to"]) for b in row["buckets"]}, set(zip(STEPS, STEPS[1:])))

    def test_aggregations_as_json(self):
        self.record("t", "--function", "work", *FIELDS)
        rows = harness.objects(self.view("t", "-f", "json", "--sum", "i", "--by", "r->kind").stdout)
        self.assertEqual([(r["key"], r["hits"], r["sum"]) for r in rows], [(k, 200, 2 * sum(range(k, 300, 3))) for k in (2, 1, 0)])

    def test_returns_of_one_function_are_one_row(self):
        self.record("t", "--return", "thread", "--return", "outer", "-t", "retval")
        self.assertEqual(len(harness.objects(self.view("t", "-f", "json", "--count").stdout)), 2)

    def test_folded_stacks(self):
        shown = self.record("t", "--function", "work", "-t", "backtrace")
        folded = self.view("t", "-f", "folded").stdout
        self.assertEqual(folded, self.view("t", "--count", "--by", "backtrace", "--folded").stdout)
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()), shown.count("#0  work"))
        self.assertRegex(folded, r"(?m)^\S*thread;outer;work 200$")

    def test_parts_by_time(self):
        self.record("t", "--function", "work", "-t", "i", calls=3000, threads=1)
        events = [json.loads(line) for line in self.view("t", "-f", "json").stdout.splitlines()[1:]]
        first, last = events[0]["mono"], events[-1]["mono"]
        early, late = (events[i]["mono"] - first for i in (1000, 2000))  # of two events: the program may have rested between any two
        for args, wanted in ((("--last", f"{last - first - late}ns"), lambda ns: ns >= late), (("--from", f"{late}ns"), lambda ns: ns >= late),
                             (("--to", f"{early}ns"), lambda ns: ns <= early),
                             (("--from", f"{early}ns", "--to", f"{late}ns"), lambda ns: early <= ns <= late)):  # fmt: skip
            with self.subTest(args):
                part = [json.loads(line) for line in self.view("t", "-f", "json", *args).stdout.splitlines()[1:]]
                self.assertEqual(part, [e for e in events if wanted(e["mono"] - first)])
                self.assertNotIn(len(part), (0, len(events)))
        self.assertEqual(len(self.view("t", "--last", "1h").stdout.splitlines()), 3000)


class Several(WithProgram):
    def test_traces_are_merged_by_time(self):
        for name in "one", "two":
            self.record(name, "--function", "work", "-t", "i", threads=1, calls=100)
        self.record("three", "--function", "work", "-t", "s", threads=1, calls=100)
        lines = self.view("two", "three", "one", "-f", "json").stdout.splitlines()
        header, events = json.loads(lines[0]), [json.loads(line) for line in lines[1:]]
        self.assertEqual(len(events), 300)
        self.assertEqual([e["mono"] for e in events], sorted(e["mono"] for e in events))
        self.assertEqual(len({e["pid"] for e in events}), 3)
        self.assertEqual(len(header["probes"]), 2)  # two traces have the same class
        rows = harness.objects(self.view("two", "three", "one", "-f", "json", "--count").stdout)
        self.assertEqual([r["hits"] for r in rows], [300])  # of one name

    def test_the_pieces_of_a_rotated_trace(self):
        args = ("-q", "--record", self.path("r"), "--rotate", "128K", "--buffer-size", "16M", "--function", "work", "-t", "i", "-t", "backtrace")
        harness.tool(*args, "--", self.program, 10000, 1, status=0)
        self.assertGreater(len(os.listdir(self.path("r"))), 2)
        events = [json.loads(line) for line in self.view("r", "-f", "json").stdout.splitlines()[1:]]
        self.assertEqual([e["fields"]["i"] for e in events], list(range(10000)))
        self.assertEqual({e["fields"]["backtrace"][0]["symbol"] for e in events}, {events[0]["fields"]["backtrace"][0]["symbol"]})
        piece = os.path.join(self.path("r"), sorted(os.listdir(self.path("r")))[1])
        self.assertIn("    #0  work+", self.view(piece).stdout)


class Damaged(WithProgram):
    def setUp(self):
        super().setUp()
        self.shown = self.record("t", "--function", "work", *FIELDS, "-t", "backtrace", threads=1)
        self.stream = self.path("t/events_1")

    def test_a_stream_that_is_cut_off_is_read_up_to_there(self):
        whole = os.path.getsize(self.stream)
        for size in (whole - 1, whole // 2, 4097, 100, 0):
            os.truncate(self.stream, size)
            p = self.view("t", status=None)
            self.assertTrue(self.shown.startswith(p.stdout), size)
            self.assertEqual((p.returncode, "events_1: " in p.stderr), (121, True) if size else (0, False), (size, p.stderr))

    def test_a_page_of_something_else(self):
        with open(self.stream, "r+b") as f:
            f.seek(8192)
            f.write(os.urandom(4096))
        p = self.view("t", status=121)
        self.assertRegex(p.stderr, r"the trace is damaged; it was read up to there: events_1: no packet begins at byte 8192")
        self.assertTrue(self.shown.startswith(p.stdout))
        self.assertNotEqual(p.stdout, "")

    def test_every_byte_of_a_page_changed(self):
        """Any damage: the tool neither crashes nor waits. (The unit test has every byte with several values.)"""
        with open(self.stream, "rb") as f:
            page = f.read(4096)
        for at in range(0, 4096, 137 if harness.FULL else 411):
            with open(self.stream, "r+b") as f:
                f.write(page[:at] + bytes([page[at] ^ 0x81]) + page[at + 1 :])
            self.assertIn(self.view("t", status=None).returncode, (0, 121), at)

    def test_damaged_descriptions_are_refused(self):
        classes = self.path("t/dynprobe/classes.json")
        with open(classes) as f:
            text = f.read()
        for what, damaged in (("cut", text[:200]), ("later version", text.replace('"dynprobe":1', '"dynprobe":2')), ("size", text.replace('"size":4', '"size":5')),
                              ("type", text.replace('"type":0', '"type":77')), ("not JSON", "\0\1"), ("list", "[]"), ("uuid", text.replace('"uuid":"', '"uuid":"x'))):  # fmt: skip
            with open(classes, "w") as f:
                f.write(damaged)
            self.assertIn("[DP-BAD-TRACE]", self.view("t", status=harness.OWN_FAILURE).stderr, what)
        with open(classes, "w") as f: # of another trace
            f.write(re.sub(r'"uuid":"\w{4}', '"uuid":"0123', text))
        self.assertIn("a packet of another trace", self.view("t", status=121).stderr)

    def test_damaged_names_leave_addresses_or_files(self):
        names = self.path("t/dynprobe/names")
        with open(names) as f:
            text = f.read()
        for damaged in ("", "{", text[: len(text) // 2], text.replace('"pc"', '"pq"'), "\0" * 100):
            with open(names, "w") as f:
                f.write(damaged)
            out = self.view("t").stdout
            self.assertEqual(len(out.splitlines()), len(self.shown.splitlines()))
            self.assertIn("    #0  ", out)
        os.unlink(names)
        self.assertRegex(self.view("t").stdout, r"    #0  0x[0-9a-f]+\n")

    def test_pipes_in_place_of_files(self):
        """Opening them must not wait for a writer."""
        for name in "t/dynprobe/names", "t/events_1", "t/dynprobe/classes.json":
            os.unlink(self.path(name))
            os.mkfifo(self.path(name))
            p = self.view("t", status=None, timeout=300)
            self.assertIn(p.returncode, (0, harness.OWN_FAILURE), p.stderr)
        self.assertIn("[DP-BAD-TRACE]", p.stderr)

    def test_no_trace(self):
        for path in (self.path("nosuch"), self.dir + "/prog", "/proc/self"):
            self.assertRegex(self.view(path, status=harness.OWN_FAILURE).stderr, r"\[DP-BAD-TRACE\]")


class Killed(WithProgram):
    def killed(self, *contexts):
        """A recorder that was killed; the trace it left."""
        target = self.target(self.program, 0, 0, "on")  # not in its loader any more: all modules are there
        p = self.start("--pid", target.pid, "--function", "work", *contexts, record=self.path("t"))
        self.await_events(p, "work", 50)
        self.finish(p, harness.signal.SIGKILL)
        return target

    def test_events_and_names_of_a_killed_recorder(self):
        self.killed("-t", "i", "-t", "backtrace")
        out = self.view("t", status=None).stdout
        self.assertGreaterEqual(out.count(" work: i="), 50)
        self.assertEqual(out.count("#0  work+0x0/"), out.count(" work: i="))
        self.assertIn("#1  outer+0x", out)

    def test_names_that_are_missing_come_from_the_same_files_only(self):
        self.killed("-t", "backtrace")
        names = self.path("t/dynprobe/names")
        with open(names) as f:
            lines = [line for line in f if '"frame"' not in line]
        with open(names, "w") as f:
            f.writelines(lines)
        before = self.view("t", status=None).stdout
        self.assertIn("#1  outer+0x", before)
        self.assertIn("[libc.so.6]", before)
        other = harness.compiled(self.path("other"), "gcc", "-g", "-O0", "-w", "-pthread", text=PROGRAM)
        os.replace(other, self.program)  # built again: another build-id
        after = self.view("t", status=None).stdout
        self.assertNotIn("outer", after)
        self.assertIn("[libc.so.6]", after)
        self.assertEqual(len(after.splitlines()), len(before.splitlines()))


@needs("babeltrace2")
class Foreign(WithProgram):
    def test_a_trace_without_its_description(self):
        self.record("t", "--function", "work", "-t", "i", "-t", "s", threads=1)
        shutil.rmtree(self.path("t/dynprobe"))
        p = self.view("t", status=None)
        if "DP-NO-BABELTRACE" in p.stderr:
            self.skipTest("built without libbabeltrace2")
        self.assertEqual(p.stdout.count("] dynprobe:work: "), 300)
        self.assertIn(' i=1 s="beta\\n"', p.stdout)
        rows = harness.objects(self.view("t", "-f", "json", "--count", "--by", "i % 3", "--when", 'i < 30 && s == "alpha"').stdout)
        self.assertEqual([(r["key"], r["hits"]) for r in rows], [(0, 10)])

    def test_without_libbabeltrace2(self):
        self.record("t", "--function", "work", "-t", "i", threads=1)
        shutil.rmtree(self.path("t/dynprobe"))
        self.written("libbabeltrace2.so.0", "no library")
        env = harness.environment(LD_LIBRARY_PATH=self.dir)
        self.assertIn("[DP-NO-BABELTRACE]", self.view("t", env=env, status=harness.OWN_FAILURE).stderr)


if __name__ == "__main__":
    harness.main()
