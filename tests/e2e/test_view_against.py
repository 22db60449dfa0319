# SPDX-License-Identifier: MIT
"""Tests `dynprobe view --against`: what changed since an earlier period of a trace, or since another trace; and --changes of a run."""

import os
import re

import harness
from harness import Case, needs

# In its second half serve() is slow, so that it takes most of the time, and store() is called as well, leave() no more.
PROGRAM = r"""
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#ifdef LATER /* all code is elsewhere */
__attribute__((noinline, used)) int unused(int n) { return n * 7 % 5 + n * 11 % 3; }
#endif
static int tick(void) { __asm__ volatile("" ::: "memory"); return 0; }
__attribute__((noinline)) int common(const char *path) { __asm__ volatile("" :: "r"(path)); return 0; }
__attribute__((noinline)) int serve(const char *path, int us) { common(path); usleep(us); return us + tick(); }
__attribute__((noinline)) int store(const char *path) { common(path); usleep(100); return tick(); }
__attribute__((noinline)) int leave(const char *path) { common(path); return tick(); }
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
int main(int argc, char **argv)
{
	const double begin = now(), half = atof(argv[1]);
	for (int i = 0; now() < begin + 2 * half; i++) {
		const int slow = now() > begin + half;
		serve(i % 3 ? "/list" : "/one", slow ? 20000 : 2000);
		if (slow) {
			store("/one");
		} else {
			leave("/list");
			usleep(8000);
		}
	}
	return 0;
}
"""
SECOND = 10**9


@needs("gcc")
class Against(Case):
    def setUp(self):
        super().setUp()
        self.program = harness.compiled(self.path("prog"), "gcc", "-g", "-O1", "-w", text=PROGRAM)

    def record(self, trace, *args, half=1, program=None):
        self.assert_ok(self.dynprobe(*args, "-q", "--buffer-size", "8M", "--", program or self.program, half, record=self.path(trace)))

    def view(self, *args, status=0):
        return harness.tool("view", *args, status=status, cwd=self.dir)

    def rows(self, *args):
        return harness.objects(self.view(*args, "-f", "json").stdout)

    def functions(self):
        return [word for name in ("serve", "store", "leave") for word in ("--return", name)]

    def test_rows_are_the_events_of_each_period(self):
        self.record("t", *self.functions(), "-t", "path", "-t", "duration")
        events = [e for e in self.rows("t") if e["type"] == "event"]
        begin, end = min(e["mono"] for e in events), max(e["mono"] for e in events)
        for last, earlier in ((1.0, 1.0), (0.5, 1.25)):
            late, early = (lambda e, by=by: 0 <= end - int(by * SECOND) - e["mono"] <= last * SECOND for by in (0, earlier))
            count = lambda period, of: sum(period(e) and (e["probe"], e["fields"]["path"]) == of for e in events)  # noqa: B023
            rows = self.rows("t", "--last", f"{last}s", "--against", f"{earlier}s", "--count", "--by", "path")
            found = {(r["probe"], r["key"]): (r["before"]["hits"], r["after"]["hits"]) for r in rows}
            expected = {of: (count(early, of), count(late, of)) for of in {(e["probe"], e["fields"]["path"]) for e in events}}
            for of, (before, after) in found.items():  # the first event of the later period is not in the earlier one
                self.assertEqual(after, expected[of][1], of)
                self.assertIn(expected[of][0] - before, (0, 1), of)
            self.assertEqual({of for of, n in expected.items() if sum(n)} - set(found), set())
            self.assertEqual([r["type"] for r in rows], ["comparison"] * len(rows))
            for r in rows:
                self.assertEqual(r["after"]["seconds"], last)
                whole = (end - begin) / SECOND - earlier  # the trace may begin within that period
                self.assertAlmostEqual(r["before"]["seconds"], min(last, whole), delta=0.1)

    def test_what_changed_most_is_first(self):
        self.record("t", *self.functions(), "-t", "duration", half=2)  # each period is half a second away from where that changes
        lines = self.view("t", "--last", "1s", "--against", "2500ms").stdout.splitlines()
        self.assertRegex(lines[0], r"^before: 1\.000 s from \d{4}-\d\d-\d\d [\d:.]+; after: 1\.000 s from \d{4}-\d\d-\d\d [\d:.]+$")
        self.assertRegex(lines[1], r"^ +hits +~p50 +~p99$")
        self.assertRegex(lines[2], r"^( +before +after +change){3} of duration$")
        rows = [line.split() for line in lines[3:]]
        names = [r[-1].removesuffix(":return") for r in rows]
        self.assertEqual((names[0], set(names)), ("serve", {"serve", "store", "leave"}))
        changes = {name: (r[2], r[5], r[8]) for name, r in zip(names, rows)}
        self.assertEqual(changes["store"], ("new",) * 3)
        self.assertEqual(changes["leave"], ("gone",) * 3)
        self.assertRegex(changes["serve"][1], r"^(\+\d+%|x\d+)$")
        self.assertRegex(changes["serve"][0], r"^-\d+%$")

    def test_periods_of_other_lengths_are_compared_per_second(self):
        self.record("old", *self.functions(), half=0.5)
        self.record("new", *self.functions(), half=1.5)
        shown = self.view("new", "--against", "old").stdout
        self.assertRegex(shown, r"\n +hits/s\n")
        rate = {r[-1].removesuffix(":return"): [float(n) for n in r[:2]] for r in (line.split() for line in shown.splitlines()[3:])}
        for row in self.rows("new", "--against", "old"):
            per_second = [row[k]["hits"] / row[k]["seconds"] for k in ("before", "after")]
            for expected, found in zip(per_second, rate[row["probe"].removesuffix("_return")]):
                self.assertAlmostEqual(found, expected, delta=1 + expected / 100)
        self.assertIn("1 more row", self.view("new", "--against", "old", "--count", "--top=2").stdout)

    def test_backtraces_of_two_builds_are_compared_by_function(self):
        other = harness.compiled(self.path("other"), "gcc", "-g", "-O1", "-w", "-DLATER", text=PROGRAM)
        for trace, program in (("old", self.program), ("new", other)):
            self.record(trace, "--function", "common", "-t", "backtrace", half=0.3, program=program)
        rows = self.rows("new", "--against", "old", "--count", "--by", "backtrace:2")
        callers = {re.split(r"[+@ ]", r["stack"][1]["symbol"])[0]: (r["before"]["hits"], r["after"]["hits"]) for r in rows}
        self.assertEqual(set(callers), {"serve", "store", "leave"})
        for hits in callers.values():
            self.assertTrue(all(hits), callers)

    def test_sums_and_extremes(self):
        self.record("t", "--return", "serve", "-t", "us", "-t", "duration")
        row, = self.rows("t", "--against", "1s", "--sum", "us", "--min", "us", "--max", "us", "--avg", "duration")
        parts = [{p["value"]: p for p in row[k]["aggregations"]} for k in ("before", "after")]
        self.assertEqual([p["us"]["max"] for p in parts], [20000, 20000] if parts[0]["us"]["max"] == 20000 else [2000, 20000])
        self.assertEqual([p["us"]["min"] for p in parts][0], 2000)
        shown = self.view("t", "--against", "1s", "--sum", "us", "--min", "us").stdout
        self.assertRegex(shown, r"\n +hits(?:/s)? +sum(?:/s)? +min\n( +before +after +change){3} of us\n( +[\d.]+ +[\d.]+ +\S+){3} serve:return\n$")

    def test_what_there_is_nothing_to_compare_with_is_refused(self):
        self.record("t", "--function", "serve", half=0.3)
        for args, tag, said in (
            (("--against", "1h"), "DP-BAD-TRACE", "before the first event"),
            (("--against", "nosuch"), "DP-BAD-TRACE", "there is no trace 'nosuch'"),
            (("--against", "1s", "--flame", "x.svg"), "DP-USAGE", "--against"),
            (("--against", "1s", "-f", "perfetto"), "DP-USAGE", "--against"),
            (("--against", "1s", "--count", "--by", "backtrace", "--folded"), "DP-USAGE", "--against"),
            (("--against", "t", "--sum", "nosuch"), "DP-NO-VARIABLE", "nosuch"),
        ):
            r = self.view("t", *args, status=harness.OWN_FAILURE)
            self.assertIn(f"[{tag}]", r.stderr)
            self.assertIn(said, r.stderr)
            self.assertEqual(r.stdout, "")
        self.assertFalse(os.path.exists(self.path("x.svg")))


@needs("gcc")
class Changes(Case):
    """Each interval of a run beside the one before."""

    def run_it(self, *args, half=1.5, **kw):
        program = harness.compiled(self.path("prog"), "gcc", "-g", "-O1", "-w", text=PROGRAM)
        return self.dynprobe(*args, "--interval", 0.5, "--changes", "--", program, half, **kw)

    def test_each_interval_follows_the_one_before(self):
        r = self.run_it("--return", "serve", "--return", "store", "--sum", "duration", "--count")
        self.assert_ok(r)
        for name in ("serve", "store"):
            rows = [x for x in r.of_type("comparison") if x["probe"].startswith(name)]
            final, = (x for x in r.answers if x["probe"].startswith(name))
            self.assertGreater(len(rows), 1)
            for one, next_one in zip(rows, rows[1:]):
                if name == "serve":  # which has a row each time
                    self.assertEqual(one["after"], next_one["before"])
                self.assertGreater(one["before"]["seconds"], 0.4)
            seen = rows[0]["before"]["hits"] + sum(x["after"]["hits"] for x in rows)
            self.assertLessEqual(seen, final["hits"])
            self.assertGreater(seen, final["hits"] / 2)
        self.assertFalse([x for x in r.answers if not x["final"]], "intervals have no rows of their own")

    def test_as_text_by_keys(self):
        r = self.run_it("--return", "serve", "--hist", "duration", "--by", "us,comm", json_events=False)
        self.assert_ok(r)
        tables = re.findall(r"^before: .* s from .*; after: .* s from .*\n +hits(?:/s)? +~p50 +~p99\n( +before +after +change){3} of duration, by us,comm\n((?: +\S+.* prog\n)+)", r.out + r.err, re.M)
        self.assertGreater(len(tables), 2, r.out + r.err)
        self.assertRegex("".join(rows for _, rows in tables), r" new .*serve:return +20000 +prog\n")

    def test_what_cannot_be_compared_is_refused(self):
        for args in (
            ("--function", "serve", "--changes"),
            ("--function", "serve", "--count", "--changes"),
            ("--function", "serve", "--max", "us", "--interval", 1, "--changes"),
            ("--function", "serve", "--count", "--by", "backtrace", "--interval", 1, "--changes"),
            ("--calls", "serve", "--interval", 1, "--changes"),
            ("--profile", "--by", "pid", "--interval", 1, "--changes"),
        ):
            r = harness.tool(*args, "--", "true", status=harness.OWN_FAILURE)
            self.assertIn("[DP-USAGE]", r.stderr)
            self.assertIn("--changes", r.stderr)


if __name__ == "__main__":
    harness.main()
