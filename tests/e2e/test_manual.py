# SPDX-License-Identifier: MIT
"""Tests the manual pages: they can be formatted, know each other, and have every option and command."""

import glob
import os
import re
import subprocess

import harness
from harness import Case, needs

PAGES = {"dynprobe": 1, "dynprobe-snapshot": 1, "dynprobe-language": 7, "dynprobe-pmodule": 7}


class Manual(Case):
    def source(self, name):
        with open(os.path.join(harness.ROOT, "docs", f"{name}.{PAGES[name]}.scd")) as f:
            return f.read()

    def test_the_pages_refer_to_each_other(self):
        self.assertEqual({os.path.basename(p)[:-4] for p in glob.glob(os.path.join(harness.ROOT, "docs", "*.[1-8].scd"))}, {f"{n}.{s}" for n, s in PAGES.items()})
        for name in PAGES:
            text = self.source(name)
            self.assertTrue(text.startswith(f"{name}({PAGES[name]})"), name)
            referred = {(n, int(s)) for n, s in re.findall(r"\*(dynprobe(?:-\w+)?)\*\((\d)\)", text)}
            self.assertLessEqual(referred, set(PAGES.items()), name)
        self.assertLessEqual(set(PAGES) - {"dynprobe"}, {n for n, _ in re.findall(r"\*(dynprobe-\w+)\*\((\d)\)", self.source("dynprobe"))})

    @needs("scdoc")
    def test_they_can_be_formatted(self):
        for name in PAGES:
            p = subprocess.run(["scdoc"], input=self.source(name), capture_output=True, text=True, timeout=30)
            self.assertEqual((p.returncode, p.stderr), (0, ""), name)
            self.assertIn(".SH NAME", p.stdout)

    def test_they_have_every_option_and_command(self):
        all_text = "".join(map(self.source, PAGES))
        first = harness.tool("--help", status=0).stdout
        commands = set(re.findall(r"^  ([a-z-]+) {2,}", first, re.M)) - set(re.findall(r"^  (\w+) ", first.split("Commands")[0], re.M))
        self.assertGreater(len(commands), 12)
        self.assertEqual([c for c in commands if not re.search(rf"\*dynprobe [^*]*\b{c}\b|\*dynprobe\* \*{c}\*|\|\*{c}\*", all_text)], [])
        shown = "\n".join(harness.tool(*words, status=0).stdout for words in (["help", "all"], *([c, "--help"] for c in commands - {"explain", "completion"})))
        options = re.findall(r"^  (?:(-\w), |    )(--[a-z-]+)", shown, re.M)
        self.assertEqual([o for letter, o in options if f"*{o}" not in all_text and not (letter and f"*{letter}*" in all_text)], [])


if __name__ == "__main__":
    harness.main()
