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
            p = subprocess.run(["scdoc"], input=self.source(name), capture_output=True, text=True, timeout=300)
            self.assertEqual((p.returncode, p.stderr), (0, ""), name)
            self.assertIn(".SH NAME", p.stdout)

    @staticmethod
    def blocks_of(source):
        """Literal blocks: what is to be copied. In them scdoc takes a backslash as an escape."""
        return [block.replace("\\\\", "\\").splitlines() for block in re.findall(r"^```\n(.*?)^```$", source, re.M | re.S)]

    @needs("scdoc")
    @needs("man")
    @needs("col")
    def test_examples_can_be_copied_from_the_page(self):
        for name in PAGES:
            source = self.source(name)
            blocks = self.blocks_of(source)
            self.assertGreater(len(blocks), 1, name)
            self.assertEqual(re.findall(r"^\t(?:dynprobe|lttng) .*\+\+$", source, re.M), [], name)
            page = self.written(f"{name}.{PAGES[name]}", subprocess.run(["scdoc"], input=source, capture_output=True, text=True, timeout=300).stdout)
            env = dict(harness.environment(), MANWIDTH="80", LC_ALL="C.UTF-8")
            shown = subprocess.run(f"man -l '{page}' | col -bx", shell=True, capture_output=True, text=True, timeout=300, env=env).stdout.splitlines()
            for block in blocks:
                wanted = [line and " " * 11 + line for line in block]
                with self.subTest(page=name, block=block[0]):
                    same = [line.lstrip() for line in block], [line.lstrip() for line in shown]  # a tab's width is the page's
                    at = [i for i in range(len(shown)) if same[1][i:i + len(block)] == same[0]]
                    self.assertTrue(at, block)
                    if "\t" not in "".join(block):
                        self.assertIn(wanted, [shown[i:i + len(block)] for i in at])
                if block[0].startswith("dynprobe"):
                    self.assertEqual([line for line in wanted if len(line) > 80], [], name)
                    for line, following in zip(block, block[1:] + ["dynprobe"]):
                        self.assertEqual(line.endswith(" \\"), following.startswith("    "), line)

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
