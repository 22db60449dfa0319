# SPDX-License-Identifier: MIT
"""-f openmetrics: each version of the file is whole and valid, and the last one has the program's own counts."""

import os
import re
import subprocess
import tempfile
import unittest

import harness

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
