# SPDX-License-Identifier: MIT
"""-f openmetrics: each version of the file is whole and valid, and the last one has the program's own counts."""

import os
import re
import subprocess
import tempfile
import unittest

import harness

BOXES = """
volatile long sink;
template <typename T> struct Box { T v; __attribute__((noinline)) T get() { sink += v; return v; } };
static inline __attribute__((always_inline)) long twice(long x) { sink += x; return sink * 2; }
__attribute__((noinline)) long two(long x) { return twice(x + 1) + twice(x * 3); }
int main() { Box<int> b{3}; for (int i = 0; i < 10; i++) { b.get(); two(i); } }
"""

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[0-9]+(?:\.[0-9]+)?)")


def family_of(name, types):
    for end in ("_bucket", "_sum", "_count"):
        if name.endswith(end) and types.get(name[: -len(end)]) == "histogram":
            return name[: -len(end)]
    return name


def parse(text):
    """{(name, labels): value} of the text format 0.0.4; an AssertionError if it breaks a rule."""
    assert text.endswith("\n# EOF\n"), "cut"
    text = text.removesuffix("# EOF\n")
    types, helped, samples, current, done = {}, set(), {}, None, set()
    for line in text.splitlines():
        head = re.fullmatch(rf"# (HELP|TYPE) ({NAME}) (.+)", line)
        if head:
            kind, name, rest = head.groups()
            assert name not in done, f"{name} in two places"
            if kind == "HELP":
                assert name not in helped
                helped.add(name)
            else:
                assert name not in types and rest in ("counter", "gauge", "histogram"), line
                types[name] = rest
            if current not in (None, name):
                done.add(current)
            current = name
            continue
        m = SAMPLE.fullmatch(line)
        assert m, f"not a sample: {line}"
        name, labels, value = m.groups()
        assert family_of(name, types) == current and current in types, f"out of its family: {line}"
        names = [label.split("=")[0] for label in re.findall(LABEL, labels or "")]
        assert len(names) == len(set(names)), f"a label twice: {line}"
        key = (name, tuple(sorted(re.findall(LABEL, labels or ""))))
        assert key not in samples, f"twice: {line}"
        assert types[current] != "counter" or (name.endswith("_total") and float(value) >= 0), line
        samples[key] = float(value)
    check_buckets(samples)
    return samples


def check_buckets(samples):
    rows = {}
    for (name, labels), value in samples.items():
        if name.endswith("_bucket"):
            le = next(label for label in labels if label.startswith("le="))[4:-1]
            rows.setdefault((name[:-7], tuple(label for label in labels if not label.startswith("le="))), []).append((float(le), value))
    for (name, labels), row in rows.items():
        row.sort()
        assert row[-1][0] == float("inf") and row[-1][1] == samples[name + "_count", labels], row
        assert all(a[1] <= b[1] for a, b in zip(row, row[1:])), row


class Metrics(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.file = os.path.join(self.dir.name, "shop.prom")

    def read(self):
        with open(self.file) as f:
            return parse(f.read())

    def test_counts_sums_and_histograms_are_the_programs(self):
        done = harness.tool("--function", "foo", "--count", "--sum", "$rdi & 7", "--hist", "$rdi & 7", "--by", "$rdi & 1", "-f", "openmetrics", "-o", self.file,
                            "--", harness.target_path("tally"), "threads", "20000")
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = next(int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("foo "))
        samples = self.read()
        self.assertEqual(sum(v for (name, _), v in samples.items() if name == "dynprobe_hits_total"), calls)
        self.assertEqual(sum(v for (name, _), v in samples.items() if name == "dynprobe_value_count"), calls)
        self.assertEqual(len({labels for (name, labels) in samples if name == "dynprobe_sum"}), len({labels for (name, labels) in samples if name == "dynprobe_hits_total"}))
        self.assertEqual(os.listdir(self.dir.name), ["shop.prom"], "nothing is left beside it")

    def run_tally(self, *args, mode="threads", n="20000"):
        """The calls of foo(), the sum of its arguments, the metrics, what dynprobe said."""
        done = harness.tool(*args, "-f", "openmetrics", "-o", self.file, "--", harness.target_path("tally"), mode, n)
        self.assertEqual(done.returncode, 0, done.stderr)
        calls, arguments = next(map(int, line.split()[1:]) for line in done.stdout.splitlines() if line.startswith("foo "))
        return calls, arguments, self.read(), done.stderr

    def of(self, samples, name):
        return [v for (n, _), v in samples.items() if n == name]

    def test_a_histogram_has_its_sum(self):
        calls, arguments, samples, said = self.run_tally("--function", "foo", "--hist", "$rdi")
        self.assertEqual(self.of(samples, "dynprobe_value_count"), [calls])
        self.assertEqual(self.of(samples, "dynprobe_value_sum"), [arguments])
        self.assertEqual({n for n, _ in samples if not n.startswith("dynprobe_value_")}, {"dynprobe_hits_total"}, "its part is no metric of its own")
        self.assertNotIn("sum", said)

    def test_a_linear_histogram_and_keys(self):
        calls, _, samples, _ = self.run_tally("--function", "foo", "--hist", "$rdi & 7,2,6,2", "--by", "$rdi & 1")
        self.assertEqual(sum(self.of(samples, "dynprobe_value_count")), calls)
        self.assertEqual(sorted(self.of(samples, "dynprobe_value_sum")), [calls // 2 * 3, calls // 2 * 4])

    def test_durations_have_a_sum_in_seconds(self):
        calls, _, samples, _ = self.run_tally("--return", "foo", "--hist", "duration")
        self.assertEqual(self.of(samples, "dynprobe_duration_seconds_count"), [calls])
        self.assertGreater(self.of(samples, "dynprobe_duration_seconds_sum")[0], 0)
        self.assertEqual(self.of(samples, "dynprobe_duration_sum_seconds"), [])

    def test_a_sum_that_was_asked_for_is_the_same_one(self):
        calls, _, samples, _ = self.run_tally("--return", "foo", "--hist", "duration", "--avg", "duration")
        self.assertEqual(self.of(samples, "dynprobe_duration_seconds_sum"), self.of(samples, "dynprobe_duration_sum_seconds"))
        self.assertEqual(self.of(samples, "dynprobe_duration_seconds_count"), [calls])
        _, arguments, samples, _ = self.run_tally("--function", "foo", "--max", "$rdi", "--hist", "$rdi")
        self.assertEqual(self.of(samples, "dynprobe_value_sum"), [arguments])
        self.assertEqual({n for n, _ in samples if not n.startswith("dynprobe_value_")}, {"dynprobe_hits_total", "dynprobe_max"})

    def test_no_sum_once_a_value_was_below_0(self):
        calls, _, samples, _ = self.run_tally("--function", "foo", "--hist", "$rdi - 1")
        self.assertEqual((self.of(samples, "dynprobe_value_count"), self.of(samples, "dynprobe_value_sum")), ([calls], []))

    def test_no_room_for_all_sums(self):
        hists = [word for i in range(4) for word in ("--hist", f"$rdi + {i}")]
        calls, arguments, samples, said = self.run_tally("--function", "foo", *hists)
        self.assertEqual(self.of(samples, "dynprobe_value_count"), [calls] * 4)
        self.assertEqual(self.of(samples, "dynprobe_value_sum"), [arguments, arguments + calls])
        self.assertIn("no _sum for --hist '$rdi + 2', '$rdi + 3': each is one more aggregation, and a run has at most 6", said)

    def test_hits_in_signal_handlers_are_counted_once(self):
        calls, arguments, samples, _ = self.run_tally("--function", "foo", "--hist", "$rdi", "--interval", "10ms", mode="signals", n="300000")
        self.assertEqual((self.of(samples, "dynprobe_value_count"), self.of(samples, "dynprobe_value_sum")), ([calls], [arguments]))

    def test_a_sum_may_fall_between_two_versions(self):
        calls, arguments, samples, _ = self.run_tally("--function", "foo", "--sum", "1000 - $rdi", "--interval", "10ms", n="200000")
        self.assertEqual(self.of(samples, "dynprobe_sum"), [1000 * calls - arguments])

    def labels(self, name="dynprobe_hits_total"):
        """Of each series of that name."""
        return [dict(label.replace('"', "").split("=", 1) for label in labels) for (n, labels) in self.read() if n == name]

    def test_probes_have_the_names_that_tables_have(self):
        boxes = os.path.join(self.dir.name, "boxes")
        harness.compiled(boxes, "g++", "-g", "-O2", "-x", "c++", "-", text=BOXES)
        done = harness.tool("--return", "Box<int>::get", "--function", "twice", "--hist", "$rdi", "-f", "openmetrics", "-o", self.file, "--", boxes)
        self.assertEqual(done.returncode, 0, done.stderr)
        place = "twice (inlined in two)"
        for name in ("dynprobe_hits_total", "dynprobe_value_sum", "dynprobe_value_count"):
            labels = self.labels(name)
            self.assertEqual(sorted(l["probe"] for l in labels), ["Box<int>::get:return", place, place])
            self.assertEqual({l["comm"] for l in labels}, {"boxes"})
            self.assertEqual(len({l["pid"] for l in labels}), 1)
            self.assertEqual(len({l["event"] for l in labels if l["probe"] == place}), 2, "two places of one name")
            self.assertEqual([l for l in labels if "event" in l and l["probe"] != place], [])

    def two_loops(self):
        programs = [subprocess.Popen([harness.target_path("tally"), "loop"], stdout=subprocess.PIPE) for _ in range(2)]
        for program in programs:
            self.addCleanup(program.stdout.close)
            self.addCleanup(program.wait)
            self.addCleanup(program.kill)
            program.stdout.readline()
        return [str(program.pid) for program in programs]

    def test_series_have_the_process_they_are_of(self):
        pids = self.two_loops()
        for chosen, by, want in ((pids[:1], [], [(pids[0], "tally")]), (pids[:1], ["--by", "comm"], [(pids[0], "tally")]), (pids, [], [(None, None)]),
                                 (pids, ["--by", "pid"], [(pid, "tally") for pid in pids]), (pids, ["--by", "caller,pid"], [(pid, "tally") for pid in pids])):
            args = [word for pid in chosen for word in ("--pid", pid)]
            done = harness.tool(*args, "--function", "foo", "--count", *by, "-d", "1s", "-f", "openmetrics", "-o", self.file)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted((l.get("pid"), l.get("comm")) for l in self.labels()), sorted(want), (chosen, by))

    def test_keys_of_which_the_same_is_left(self):
        done = harness.tool("--function", "foo", "--hist", "$rdi", "--by", "$rdi&1, $rdi|1", "-f", "openmetrics", "-o", self.file, "--",
                            harness.target_path("tally"), "threads", "10")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("dynprobe_value_bucket", {name for name, _ in self.read()})
        self.assertEqual(os.stat(self.file).st_mode & 0o777, 0o644)

    def test_a_reader_never_sees_a_part(self):
        program = subprocess.Popen([harness.target_path("tally"), "loop"], stdout=subprocess.DEVNULL)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        run = subprocess.Popen([harness.DYNPROBE, "--pid", str(program.pid), "--function", "foo", "--hist", "$rdi", "-f", "openmetrics", "-o", self.file,
                                "--interval", "10ms", "-q"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.kill)
        harness.wait_until(lambda: os.path.exists(self.file) or run.poll() is not None, what="the first file")
        seen = []
        while len(set(seen)) < 5 and run.poll() is None:
            seen.append(sum(v for (name, _), v in self.read().items() if name == "dynprobe_hits_total"))
        run.send_signal(2)
        _, said = run.communicate()
        self.assertEqual(run.returncode, 0, said)
        self.assertEqual(seen, sorted(seen))
        self.assertGreaterEqual(sum(v for (name, _), v in self.read().items() if name == "dynprobe_hits_total"), seen[-1])

    def test_refused(self):
        for args, why in ((["-o", self.file], "aggregations"), (["--count"], "writes a file"), (["--count", "--by", "backtrace", "-o", self.file], "--by caller"),
                          (["--count", "-o", self.dir.name + "/none/x.prom"], "No such file")):
            done = harness.tool("--function", "foo", "-f", "openmetrics", *args, "--", harness.target_path("tally"), "threads", "10")
            self.assertEqual(done.returncode, 125, done.stderr)
            self.assertIn(why, done.stderr)
        self.assertEqual(os.listdir(self.dir.name), [])


if __name__ == "__main__":
    harness.main()
