# SPDX-License-Identifier: MIT
"""Tests dynprobe explain: it explains every tag, in every spelling."""

import os
import re

import harness


class Explain(harness.Case):
    def explain(self, *words):
        return harness.tool("explain", *words)

    def all_tags(self):
        with open(os.path.join(harness.ROOT, "base", "tags.def")) as f:
            return re.findall(r'^DP_TAG\(\w+, "(DP-[A-Z0-9-]+)"', f.read(), re.M)

    def test_every_tag_has_meaning_remedy_and_origin(self):
        tags = self.all_tags()
        self.assertGreater(len(tags), 40)
        p = self.explain(*tags)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        entries = p.stdout.split("\n\n")
        self.assertEqual([e.split("\n")[0] for e in entries], tags)
        for e in entries:
            self.assertRegex(e, r"\A\S+\n  \S.*\.\n  What to do: \S.*\.\n  Comes from: \S.*\.\n?\Z")

    def test_a_tag_may_be_typed_as_it_is_remembered(self):
        wanted = self.explain("DP-TOO-SHORT").stdout
        self.assertIn("placing a probe", wanted)
        for word in ("too-short", "TOO_SHORT", "dp-Too-Short"):
            self.assertEqual(self.explain(word).stdout, wanted, word)

    def test_without_a_word_each_has_one_line(self):
        p, q = self.explain(), self.explain("--all")
        self.assertEqual([line.split()[0] for line in p.stdout.splitlines()], self.all_tags())
        self.assertEqual((p.stdout, p.returncode), (q.stdout, 0))

    def test_an_unknown_tag_names_the_nearest(self):
        for word, near in (("DP-FORIEGN", "DP-FOREIGN"), ("short", "DP-TOO-SHORT"), ("stack", "DP-SHADOW-STACK")):
            p = self.explain(word)
            self.assertEqual((p.returncode, p.stdout), (harness.OWN_FAILURE, ""))
            self.assertRegex(p.stderr, f"unknown tag '{word}'; did you mean .*{near}")
        p = self.explain("qqqqqqqqqqqq")
        self.assertEqual(p.returncode, harness.OWN_FAILURE)
        self.assertNotIn("did you mean", p.stderr)

    def test_of_several_tags_the_known_ones_are_explained(self):
        p = self.explain("busy", "nonsense-tag", "vdso")
        self.assertEqual(p.returncode, harness.OWN_FAILURE)
        self.assertIn("DP-BUSY\n", p.stdout)
        self.assertIn("DP-VDSO\n", p.stdout)
        self.assertIn("nonsense-tag", p.stderr)


if __name__ == "__main__":
    harness.main()
