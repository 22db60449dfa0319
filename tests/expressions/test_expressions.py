# SPDX-License-Identifier: MIT
"""Generated expressions in a live program: it prints C's answers before each call, and the probe has to agree with every one of them."""

import json
import math
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]

from diff import build
import harness
from harness import FULL, Case

CASES, ROUNDS, CONDITIONS = 40, 60, 3


class Expressions(Case):
    def texts(self, source):
        lines = open(source).read().split("const struct one_case cases[] = {")[1].splitlines()
        return [json.loads(x.strip()[1:].rsplit(", case_", 1)[0]) for x in lines if ", case_" in x]

    def run_program(self, program, *args):
        r = self.dynprobe("--buffer-size", "8M", "--function", "site", *args, "--", program, str(ROUNDS), "1")
        self.assertEqual(r.status, 0, r.err[-3000:])
        said = [json.loads(x) for x in r.out.splitlines() if x.startswith("[")]
        self.assertEqual(len(said), ROUNDS)
        return said, r.events

    def same(self, c, value):
        if isinstance(c, str) or (isinstance(value, float) and not math.isfinite(value)):  # JSON has no such numbers
            return value is None or isinstance(value, str) or not math.isfinite(value)
        return c == value

    def check(self, seed, level):
        program = self.path(f"cases-{seed & 0xffffffff}")
        build(program, seed, CASES, level, "-DPROGRAM", options=("--no-registers", "--numbers"))
        texts = self.texts(program + ".c")
        self.assertEqual(len(texts), CASES)
        contexts = [x for i, t in enumerate(texts) for x in ("-t", f"e{i}={t}")]
        said, events = self.run_program(program, *contexts)
        self.assertEqual(len(events), ROUNDS)
        gone = set()
        for row, e in zip(said, events):
            for i, text in enumerate(texts):
                value = e["fields"][f"e{i}"]
                if e.get("absent", {}).get(f"e{i}") == "optimized out":  # gcc removes what C never reads
                    self.assertNotEqual(level, "-O0", text)
                    gone.add(i)
                    continue
                self.assertEqual(row[i] is None, f"e{i}" in e.get("unreadable", []), f"seed {seed} {level}: {text} is {value}, C says {row[i]}")
                self.assertTrue(self.same(row[i], value), f"seed {seed} {level}: {text} is {value}, C says {row[i]}")
        self.check_conditions(program, said, texts, gone)

    def check_conditions(self, program, said, texts, gone):
        """Conditions that are true for some of the calls, but not for all."""
        chosen = lambda said, i: [r for r in said if r[i] is not None and (r[i] != 0)]
        choosing = [i for i in range(len(texts)) if i not in gone and 0 < len(chosen(said, i)) < len(said)]
        for i in choosing[:CONDITIONS]:
            said, events = self.run_program(program, "--when", texts[i], "-t", "pi", "-t", f"it={texts[i]}")
            self.assertEqual(len(events), len(chosen(said, i)), texts[i])  # of this run: other runs have other addresses
            for row, e in zip(chosen(said, i), events):
                self.assertTrue(self.same(row[i], e["fields"]["it"]), f"{texts[i]} is {e['fields']['it']}, C says {row[i]}")

    def test_a_probe_computes_what_c_does(self):
        self.check(1, "-O0")
        self.check(random.randrange(1 << 32), "-O2")
        for _ in range(40 if FULL else 0):
            self.check(random.randrange(1 << 32), random.choice(["-O0", "-O2"]))


if __name__ == "__main__":
    harness.main()
