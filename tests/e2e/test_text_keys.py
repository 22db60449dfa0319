# SPDX-License-Identifier: MIT
"""Tests keys that are strings: a live run counts equal texts together, wherever they lie, as `dynprobe view` does afterwards."""

import collections
import os
import re
import tempfile

import harness
import process
from harness import Case, needs, needs_root
from test_view import untimed

PROGRAM = r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
struct text { unsigned char *data; long len; };
struct req { const char *name; char fixed[12]; struct text counted; };
static char y[200], *edge;
static const char *nothing;
__attribute__((noinline)) const char *take(const char *s, const struct req *r, int i)
{
	__asm__ volatile("" : : "r"(s), "r"(r) : "memory");
	return s;
}
static void some(int i)
{
	char one[100], other[100], bytes[] = "counted and more";
	struct req r = {i % 3 ? "GET" : "POST", "fixed", {(unsigned char *)bytes, i % 8}};
	strcpy(one, "alpha");
	strcpy(other, "alpha");
	const char *all[] = {one, other, "beta\n\x1b[31m\"x\"\\", "", (char *)16, "\xc3\xa4\xff", edge, edge - 5, y, y + 64, y + 67, y + 68, y + 69, y + 132, nothing};
	take(all[i % 15], i % 5 == 4 ? (struct req *)8 : &r, i);
}
static void *thread(void *a)
{
	for (int i = 0; i < atoi(a); i++)
		some(i);
	return NULL;
}
static char many[100];
static void on_signal(int sig) { take("handler", NULL, sig); }
int main(int argc, char **argv)
{
	const int n = atoi(argv[2]);
	long page = sysconf(_SC_PAGESIZE);
	char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(two + page, page);
	edge = two + page - 4;
	memcpy(edge - 5, "edge\0run", 9); /* the last one has no NUL before the end of its page */
	edge[0] = 'r'; edge[1] = 'u'; edge[2] = 'n'; edge[3] = '!';
	memset(y, 'y', 132);
	if (!strcmp(argv[1], "threads")) {
		pthread_t t[4];
		for (int k = 0; k < 4; k++)
			pthread_create(&t[k], NULL, thread, argv[2]);
		for (int k = 0; k < 4; k++)
			pthread_join(t[k], NULL);
	} else if (!strcmp(argv[1], "many")) {
		for (int i = 0; i < n; i++) {
			snprintf(many, sizeof(many), "string number %d", i);
			take(many, NULL, i);
		}
	} else if (!strcmp(argv[1], "children")) {
		for (int k = 0; k < 3; k++) {
			if (!fork()) {
				thread(argv[2]);
				_exit(0);
			}
		}
		while (wait(NULL) > 0);
		thread(argv[2]);
	} else if (!strcmp(argv[1], "signals")) {
		signal(SIGALRM, on_signal);
		struct itimerval { struct timeval i, v; } every = {{0, 200}, {0, 200}};
		extern int setitimer(int, const void *, void *);
		setitimer(0, &every, NULL); /* by the clock: on a busy machine it may be off its processor at each tick */
		thread(argv[2]);
	} else {
		thread(argv[2]);
	}
	if (argc > 3) {
		puts("READY");
		fflush(stdout);
		for (;;) {
			thread("15");
			usleep(1000);
		}
	}
	return 0;
}
"""
Y = "y" * 64
TEXTS = ["alpha", "alpha", 'beta\n\x1b[31m"x"\\', "", "<unreadable>", "ä\udcff", "<unreadable>", "edge", Y + "...", Y + "...", Y + "...", Y, "y" * 63, "", None]
CALLS, SIGNALLED = (15000, 300000) if harness.FULL else (4500, 150000)
KEYS = [
    ("--count", "--by", "str(s)"), ("--count", "--by", "str(s, 3)"), ("--count", "--by", "str(s, 128)"), ("--count", "--by", "str(r->name)"),
    ("--count", "--by", "str(r->fixed)"), ("--count", "--by", "str(r->counted)"), ("--count", "--by", "str(s, i % 4)"),
    ("--sum", "i", "--min", "i", "--by", "str(s), i % 2"), ("--hist", "i", "--by", "str(s), str(r->name, 2)"), ("--avg", "i", "--hist", "i,0,100,9", "--by", "i % 3,str(r->name)"),
    ("--count", "--by", "str(s),caller"), ("--count", "--by", "str(s),backtrace:2"), ("--count", "--by", "str(s),str(r->name),i % 2,backtrace:3"),
    ("--count", "--by", "comm,str(s, 2)"), ("--count", "--by", "str(s)", "--top", "3"),
]  # fmt: skip


class WithProgram(Case):
    @classmethod
    def setUpClass(cls):
        built = tempfile.TemporaryDirectory(prefix="dp-e2e-")
        cls.addClassCleanup(built.cleanup)
        cls.program = harness.compiled(os.path.join(built.name, "prog"), "gcc", "-g", "-O1", "-w", "-pthread", text=PROGRAM)

    def run_live(self, *args, mode="one", calls=300, form="json", status=0):
        shown = self.path("shown")
        p = harness.tool("-f", form, "-o", shown, *args, "--", self.program, mode, calls, status=status)
        with open(shown, newline="", errors="surrogateescape") as f:
            return f.read(), p.stderr

    def rows(self, *args, **kw):
        text, _ = self.run_live("--function", "take", *args, **kw)
        lines = harness.objects(text)
        return [o for o in lines if o["type"] == "answer" and o["final"]], [o for o in lines if o["type"] == "summary"][0]

    def by_key(self, *args, **kw):
        rows, summary = self.rows("--count", *args, **kw)
        self.assertEqual(summary["recorded"], sum(r["hits"] for r in rows))
        return {r["key"] if "key" in r else tuple(r["keys"].values()): r["hits"] for r in rows}, summary


def truth(text, calls=300):
    return dict(collections.Counter(text(i) for i in range(calls)))


def plain(text):
    """As JSON writes it: bytes that are no text become the replacement character."""
    return text and text.replace("\udcff", "\ufffd")


def name(i):
    return "<unreadable>" if i % 5 == 4 else ("GET" if i % 3 else "POST")


class Texts(WithProgram):
    def test_equal_texts_are_one_row(self):
        got, summary = self.by_key("--by", "str(s)")
        self.assertEqual(got, truth(lambda i: plain(TEXTS[i % 15])))
        self.assertEqual(summary["lost"]["total"], 0)

    def test_pointer_as_a_key_counts_addresses_and_says_so(self):
        _, said = self.run_live("--function", "take", "--count", "--by", "r->name,i % 2,s")
        self.assertIn("--by 'r->name' is a pointer and counts addresses: --by 'str(r->name)' counts the texts", said)
        self.assertEqual(said.count("counts addresses"), 2, said)
        _, said = self.run_live("--function", "take", "--count", "--by", "str(s),r,i")
        self.assertNotIn("counts addresses", said)

    def test_by_system_calls_too(self):
        for args in (("--no-trap",), ("--tactic", "jump,trap")):
            with self.subTest(args):
                self.assertEqual(self.by_key("--by", "str(s)", *args)[0], truth(lambda i: plain(TEXTS[i % 15])))

    def test_by_loads_while_the_fault_handler_is_there(self):
        t = self.target(self.program, "one", 0, "on")
        caught = lambda: process.caught(t.pid) >> 10 & 1  # SIGSEGV, the agent's alone
        self.assertEqual(caught(), 0)
        p = self.start("--pid", t.pid, "--function", "take", "--count", "--by", "str(s)", "--interval", "50ms")
        harness.wait_until(lambda: p.poll() is not None or "<unreadable>" in self.said(p), what="a bad pointer")
        self.assertEqual(caught(), 1)
        self.assert_ok(self.finish(p))
        self.assertEqual((caught(), t.alive()), (0, True))

    def test_in_a_trap(self):
        rows, summary = self.rows("--count", "--by", "str(s)", "--tactic", "trap")
        self.assertEqual(summary["tactics"], {"trap": 1})
        self.assertEqual({r["key"]: r["hits"] for r in rows}, truth(lambda i: plain(TEXTS[i % 15])))

    def test_address_that_cannot_be_computed(self):
        got, summary = self.by_key("--by", "str(r->name)")
        self.assertEqual(got, truth(name))
        self.assertEqual(summary["lost"]["total"], 0)

    def test_strings_that_know_their_length(self):
        want = lambda i: "<unreadable>" if i % 5 == 4 else "counted and more"[: i % 8]
        for key in ("str(r->counted)", "str(r->counted.data, r->counted.len)"):
            self.assertEqual(self.by_key("--by", key)[0], truth(want), key)

    def test_table_shows_controls_escaped_and_says_what_was_cut(self):
        text, _ = self.run_live("--function", "take", "--count", "--by", "str(s)", form="text")
        self.assertIn('20 take  beta\\n\\x1b[31m"x"\\\n', text)
        self.assertIn(f"60 take  {Y}...\n", text)
        self.assertNotIn("\x1b", text)

    def test_is_what_view_counts_of_the_same_hits(self):
        for n, args in enumerate(KEYS):
            fields = ["i", "backtrace", *re.findall(r"str\((?:[^()]|\([^()]*\))*\)", " ".join(args))]
            self.run_live("--record", self.path(f"t{n}"), "--function", "take", *(a for f in fields for a in ("-t", f)))
            for form in ("text", "json") if harness.FULL else (("text", "json")[n % 2],):
                with self.subTest(args, form=form):
                    live, _ = self.run_live("--function", "take", *args, form=form)
                    seen = harness.tool("view", self.path(f"t{n}"), "-f", form, *args, status=0).stdout
                    self.assertEqual(self.comparable(live), self.comparable(seen))
                    self.assertRegex(seen, "GET|POST|co|fixed|al|yyy")

    @staticmethod
    def comparable(text):
        """Without what is of the run, the times, and the addresses of the frames."""
        lines = [line for line in untimed(text).splitlines() if not line.startswith(('{"type":"summary"', '{"type":"header"'))]
        return [re.sub(r'"(seconds|pid)":[\d.e-]+|0x[0-9a-f]{8,}', "", line) for line in lines]


class Combined(WithProgram):
    def test_with_pid_and_numbers(self):
        rows, _ = self.rows("--sum", "i", "--by", "str(s),pid,i % 2")
        got = {tuple(r["keys"][k] for k in ("str(s)", "i % 2")): (r["hits"], r["sum"]) for r in rows}
        want = collections.defaultdict(list)
        for i in range(300):
            want[plain(TEXTS[i % 15]), i % 2].append(i)
        self.assertEqual(got, {k: (len(v), sum(v)) for k, v in want.items()})
        self.assertEqual(len({r["keys"]["pid"] for r in rows}), 1)

    def test_at_returns_with_durations(self):
        text, _ = self.run_live("--return", "take", "--hist", "duration", "--sum", "duration", "--by", "str(retval),str($rax, 2)")
        rows = [o for o in harness.objects(text) if o["type"] == "answer"]
        got = {r["keys"]["str(retval)"]: r["hits"] for r in rows}
        self.assertEqual(got, truth(lambda i: plain(TEXTS[i % 15])))

    def test_several_probes(self):
        text, _ = self.run_live("--function", "take", "--return", "take", "--count", "--by", "str($rax),str($rdi)" )
        rows = [o for o in harness.objects(text) if o["type"] == "answer"]
        back = collections.Counter()
        for r in rows:
            if r["probe"] == "take_return":
                back[r["keys"]["str($rax)"]] += r["hits"]
        self.assertEqual(dict(back), truth(lambda i: plain(TEXTS[i % 15])))
        self.assertEqual(sum(r["hits"] for r in rows if r["probe"] == "take"), 300)

    def test_under_a_condition(self):
        got, _ = self.by_key("--by", "str(s)", "--when", 'r->name == "GET"')
        self.assertEqual(sum(got.values()), sum(name(i) == "GET" for i in range(300)))

    def test_threads(self):
        got, summary = self.by_key("--by", "str(s)", mode="threads", calls=CALLS)
        self.assertEqual(got, {k: 4 * n for k, n in truth(lambda i: plain(TEXTS[i % 15]), CALLS).items()})
        self.assertEqual(summary["lost"]["total"], 0)

    def test_signal_handlers_in_between(self):
        got, summary = self.by_key("--by", "str(s)", mode="signals", calls=SIGNALLED)
        self.assertGreater(got.pop("handler", 0), 0)
        self.assertEqual(got, truth(lambda i: plain(TEXTS[i % 15]), SIGNALLED))

    def test_children_count_too(self):
        got, summary = self.by_key("--follow", "--by", "str(s)", mode="children")
        self.assertEqual(got, {k: 4 * n for k, n in truth(lambda i: plain(TEXTS[i % 15])).items()})
        got, summary = self.by_key("--follow", "--by", "str(s),pid", mode="children")
        self.assertEqual(len({k[1] for k in got}), 4)
        self.assertEqual(got[("edge", max(k[1] for k in got))], 20)

    @needs_root
    def test_processes_that_end_leave_their_texts(self):
        p = self.start("--program", self.program, "--count", "--by", "str(r->name),comm", "--function", "take")
        harness.wait_until(lambda: p.poll() is not None or "waiting for" in self.said(p), what="dynprobe to watch")
        for _ in range(3):
            self.assertEqual(os.spawnv(os.P_WAIT, self.program, ["prog", "one", "300"]), 0)
        r = self.finish(p)
        rows = {a["keys"]["str(r->name)"]: a["hits"] for a in r.answers}
        self.assertEqual(rows, {k: 3 * n for k, n in truth(name).items()}, str(r))

    def test_more_strings_than_there_is_room_for_are_counted(self):
        rows, summary = self.rows("--count", "--by", "str(s)", mode="many", calls=20000)
        hits = sum(r["hits"] for r in rows)
        self.assertGreater(len(rows), 3500)
        self.assertTrue(all(r["hits"] == 1 for r in rows))
        self.assertEqual((summary["recorded"], summary["recorded"] + summary["lost"]["crowded"]), (hits, 20000))
        self.assertEqual(summary["lost"]["total"], summary["lost"]["crowded"])

    def test_attached_with_intervals_and_metrics(self):
        t = self.target(self.program, "one", 0, "on")
        metrics = self.path("m.prom")
        for args in (("-f", "json", "--interval", "100ms", "--top", "2", "-d", "1s"), ("-f", "openmetrics", "-o", metrics, "-d", "300ms")):
            shown = harness.tool("--pid", t.pid, "--function", "take", "--count", "--by", "str(s),str(r->name)", *args, status=0).stdout
        with open(metrics) as f:
            text = f.read()
        self.assertRegex(text, r'key_str_s_="alpha",key_str_r__name_="GET"')
        self.assertRegex(text, r'"beta\\\\n\\\\x1b\[31m\\"x\\"')
        self.assertTrue(t.alive())


class Refused(WithProgram):
    def refused(self, tag, *args):
        p = harness.tool("--function", "take", "--count", *args, "--", self.program, "one", 10)
        self.assertNotIn(p.returncode, (0,), args)
        self.assertIn(f"[{tag}]", p.stderr)
        return p.stderr

    def test_too_long(self):
        self.assertIn("at most 128 characters", self.refused("DP-USAGE", "--by", "str(s, 129)"))
        self.assertIn("256 characters together", self.refused("DP-USAGE", "--by", "str(s, 128),str(r->name, 128),str(r->fixed, 1)"))

    def test_what_is_no_string(self):
        self.refused("DP-SYNTAX", "--by", "str(i)")
        self.refused("DP-NO-VARIABLE", "--by", "str(nosuch)")
        self.assertIn("count by str(r->counted)", self.refused("DP-SYNTAX", "--by", "r->counted"))
        self.assertIn("values are numbers", self.refused("DP-SYNTAX", "--sum", "str(s)", "--by", "str(s)"))


class RealPrograms(Case):
    @needs("python3")
    def test_files_that_python_opens(self):
        p = harness.tool("-f", "json", "--function", "libc.so.6!open64", "--count", "--by", "str($rdi, 100)", "--", "python3", "-S", "-c",
                         "for k in range(7): open('/etc/passwd').close()", status=0)  # fmt: skip
        rows = {r["key"]: r["hits"] for r in harness.objects(p.stderr) if r["type"] == "answer" and r["final"]}
        self.assertEqual(rows["/etc/passwd"], 7)

    @needs("fzf")
    def test_strings_of_go(self):
        """A goroutine's stack is too small for them."""
        for key, also in (("str($rax, $rbx)", ()), ("str($rax, $rbx),backtrace:2", ()), ("str($rax, $rbx)", ("--hist", "$rbx"))):
            p = harness.tool("-f", "json", "--function", "os.Getenv", "--count", *also, "--by", key, "--", "fzf", "--version", status=0)
            lines = harness.objects(p.stderr)
            rows = collections.Counter(r.get("key") or r["keys"]["str($rax, $rbx)"] for r in lines if r["type"] == "answer" and r["final"])
            self.assertIn("GODEBUG", rows, p.stderr)
            self.assertEqual(lines[-1]["lost"]["total"], 0)

    @needs("sqlite3")
    def test_statements_of_sqlite(self):
        sql = "create table t(a); insert into t values(1); insert into t values(1); select a from t;"
        p = harness.tool("-f", "json", "--function", "libsqlite3.so.0!sqlite3_prepare_v2", "--count", "--by", "str($rsi, 21)", "--", "sqlite3", ":memory:", sql)
        rows = {r["key"]: r["hits"] for r in harness.objects(p.stderr) if r["type"] == "answer" and r["final"]}
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(rows["insert into t values(..."], 2, rows)


if __name__ == "__main__":
    harness.main()
