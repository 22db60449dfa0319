# SPDX-License-Identifier: MIT
"""--return f -t args: one event for each call, with its arguments as they were at the entry. Each result follows from the arguments, so
an event that was joined of two calls shows."""

import collections
import re

import harness
from harness import Case

ROUNDS = 200
THREADS = 3
NAMES = ("x", "yy", "zzz")


class WholeCalls(Case):
    def calls(self, function, *args, rounds=ROUNDS, status=0, **kw):
        """The fields of all events, of a program that was started with the probe."""
        r = self.dynprobe("--return", function, "-t", "args", "-t", "retval", *args, "--", harness.target_path("whole"), rounds, **kw)
        self.assert_ok(r, status)
        self.assertIn("RESULT OK", r.out)
        return r, [(e["tid"], e["fields"]) for e in r.events]

    def test_arguments_are_those_of_the_entry(self):
        r, calls = self.calls("handle", "-t", "duration")
        seen = collections.defaultdict(list)
        for tid, f in calls:
            self.assertEqual(f["name"], NAMES[f["id"] % 3])
            self.assertEqual(f["retval"], 2 * f["id"] + len(f["name"]))
            self.assertGreater(f["duration"], 0)
            seen[tid].append(f["id"])
        self.assertEqual(list(seen.values()), [list(range(ROUNDS))] * THREADS)
        self.assertEqual([p["name"] for p in r.header["probes"]], ["handle_return"])
        self.assertEqual(r.header["probes"][0]["args"], 2)

    def test_recursive_calls_have_their_own(self):
        _, calls = self.calls("down")
        for _, f in calls:
            self.assertEqual(f["retval"], f["depth"] * (f["depth"] + 1) // 2)
        self.assertEqual(len(calls), THREADS * sum(i % 6 + 1 for i in range(ROUNDS)))

    def test_calls_that_longjmp_and_exceptions_leave_are_counted_not_joined(self):
        r, calls = self.calls("leave")
        left = [i for i in range(ROUNDS) if i % 3 == 0 or i % 5 == 0]
        for _, f in calls:
            self.assertEqual(f["retval"], f["how"] + 1)
        self.assertEqual(sorted(f["how"] for _, f in calls), sorted((set(range(ROUNDS)) - set(left)) and [i for i in range(ROUNDS) if i not in left] * THREADS))
        self.assertIn(f"{len(left) * THREADS} calls are not shown: the return was not seen", r.err)

    def test_tail_calls(self):
        _, calls = self.calls("tail", "-t", "duration")
        self.assertEqual(sorted(f["x"] for _, f in calls), sorted(list(range(ROUNDS)) * THREADS))
        p = harness.tool("-n", 3, "--return", "tail", "-t", "args", "-t", "retval", "--", harness.target_path("whole"), ROUNDS, status=0)
        seen = [int(x) for x in re.findall(r"\] tail\(x=(\d)\) = \?$", p.stderr, re.M)]
        self.assertEqual(len(seen), 3, p.stderr)
        for x in seen:  # the first three of all threads: each thread counts from 0
            self.assertLessEqual(seen.count(x), seen.count(x - 1) if x else THREADS, p.stderr)
        _, calls = self.calls("last")
        self.assertEqual({f["retval"] - f["x"] for _, f in calls}, {-1})
        self.assertEqual(len(calls), ROUNDS * THREADS)

    def test_a_condition_on_arguments_means_the_entry(self):
        r, calls = self.calls("handle", "--when", "id == 7")  # 14 + 2 when it returns
        self.assertEqual([f["id"] for _, f in calls], [7] * THREADS)
        self.assertNotIn("not shown", r.err)
        self.assertNotIn("unpaired", r.err)
        _, calls = self.calls("handle", "--when", 'name == "zzz" && id < 10 && retval > 7')
        self.assertEqual(sorted(f["id"] for _, f in calls), sorted([5, 8] * THREADS))
        _, calls = self.calls("handle", "--when", "id == 7 && retval == 0")
        self.assertEqual(calls, [])

    def test_slower_than(self):
        r, calls = self.calls("handle", "--slower-than", "100s")
        self.assertEqual(calls, [])
        self.assertNotIn("not shown", r.err)

    def test_text_and_view_have_a_line_for_a_call(self):
        line = re.compile(r'\] handle\(id=(\d+), name="(x|yy|zzz)"\) = (\d+) <[\d.]+(ns|us|ms|s)>$')
        p = harness.tool("--record", self.path("t"), "-o", self.path("live"), "--return", "handle", "-t", "args", "-t", "duration",
                         "-t", "retval", "--", harness.target_path("whole"), ROUNDS, status=0)
        with open(self.path("live")) as f:
            live = f.read().splitlines()
        self.assertEqual(len(live), ROUNDS * THREADS, p.stderr)
        for text in live:
            found = line.search(text)
            self.assertTrue(found, text)
            self.assertEqual(int(found[3]), 2 * int(found[1]) + len(found[2]))
        shown = harness.tool("view", self.path("t"), status=0).stdout.splitlines()
        self.assertEqual(sorted(shown), sorted(live))  # of two threads' calls in one nanosecond, either may come first
        times = [text.split()[0] for text in shown]
        self.assertEqual(times, sorted(times))
        some = harness.tool("view", self.path("t"), "--when", "id == 7 && retval == 16", status=0)
        self.assertEqual(len(some.stdout.splitlines()), THREADS)
        self.assertEqual(some.stderr, "")
        counted = harness.tool("view", self.path("t"), "--count", status=0)
        self.assertIn(str(ROUNDS * THREADS), counted.stdout)

    def test_a_limit_counts_calls(self):
        t = self.target("whole")
        r = self.attach(t, "--return", "handle", "-t", "args", "-t", "retval", "-n", 50)
        self.assert_ok(r)
        self.assertEqual(len(r.events), 50)
        for e in r.events:
            if e.get("entry_seen", True):  # rings of busy threads may be full: then it says that the entry was lost
                self.assertEqual(e["fields"]["retval"], 2 * e["fields"]["id"] + len(e["fields"]["name"]))
            else:
                self.assertEqual(e["fields"]["id"], None)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_a_name_is_that_of_the_call(self):
        r, _ = self.calls("handle", "--name", "mine")
        self.assertEqual({e["probe"] for e in r.events}, {"mine"})

    def test_a_function_whose_first_instruction_leaves_it(self):
        r = self.dynprobe("--return", "nothing", "-t", "args", "--", harness.target_path("whole"), 10)
        self.assertIn("first instruction leaves it", r.err)


SERVER = """#include <string.h>
struct request { int id; const char *path; };
volatile int busy, seen;
__attribute__((noipa)) int work(struct request *r) { for (volatile int i = 0; i < (r->id == 3 ? 30000000 : 10); i++) ; return r->id; }
__attribute__((noinline)) int serve(struct request *r, int kept, int *out)
{
	seen += strlen(r->path);
	int id = work(r);
	*out = id + 1;
	if (CLEAR)
		r = 0;
	busy = kept;
	return id * 2;
}
int main(void)
{
	static const char *const paths[] = {"/a", "/bb", "/ccc"};
	int out = 0;
	for (int i = 0; i < 12; i++) {
		struct request r = {i, paths[i % 3]};
		struct request *volatile unknown = &r; /* to whoever wants to know at the return what main() passed */
		serve(unknown, i, &out);
	}
	return 0;
}"""


class ValuesOfTheEntry(Case):
    """-t EXPR at a return, where optimized code has reused the register that an argument came in."""

    def server(self, level="-O2"):
        return harness.compiled(self.path("server"), "gcc", "-g", level, f"-DCLEAR={int(level == '-O0')}", text=SERVER)

    def events(self, *args, **kw):
        r = self.dynprobe("--return", "serve", *args, "--", self.server(**kw))
        self.assert_ok(r)
        return r, [e["fields"] for e in r.events]

    def test_members_of_an_argument(self):
        r, events = self.events("-t", "r->path", "-t", "retval", "-t", "who=r->id")
        self.assertEqual(events, [{"r_path": ("/a", "/bb", "/ccc")[i % 3], "who": i, "retval": 2 * i} for i in range(12)], r)
        self.assertEqual(r.header["probes"][0]["args"], 2)

    def test_the_slow_ones_by_name(self):
        p = harness.tool("--return", "serve", "-t", "r->id", "-t", "duration", "--slower-than", "1ms", "--", self.server(), status=0)
        shown = re.findall(r"\] serve\(r->id=(\d+)\) <\d", p.stderr)
        self.assertIn("3", shown, p.stderr)
        self.assertLess(len(shown), 12, p.stderr)  # another call is slow only if it lost its processor

    def test_what_is_there_at_the_return_is_read_there(self):
        _, events = self.events("-t", "seen=*out", "-t", "r", level="-O0")
        self.assertEqual([f["seen"] for f in events], [i + 1 for i in range(12)])
        self.assertEqual({int(str(f["r"]), 0) for f in events}, {0})

    def test_a_local_variable_is_not_read_at_the_entry(self):
        r, events = self.events("-t", "id", "-t", "retval")
        self.assertEqual([f["retval"] for f in events], [2 * i for i in range(12)])
        self.assertNotIn("args", r.header["probes"][0])


if __name__ == "__main__":
    harness.main()
