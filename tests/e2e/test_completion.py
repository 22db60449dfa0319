# SPDX-License-Identifier: MIT
"""Tests the completion script in a real shell: verbs, options of the typed verb, tags."""

import subprocess

import harness

COMPLETE = """
eval "$(%s completion)"
COMP_WORDS=(%s)
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_dynprobe
printf '%%s\\n' "${COMPREPLY[@]}"
"""


class Completion(harness.Case):
    def offers(self, words):
        p = subprocess.run(["bash", "--norc", "-c", COMPLETE % (harness.DYNPROBE, words)], capture_output=True, text=True, timeout=30)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        return p.stdout.split()

    def test_verbs_are_offered_once_and_first(self):
        self.assertEqual(self.offers("dynprobe li"), ["list"])
        self.assertEqual(self.offers("dynprobe ex"), ["explain"])
        self.assertNotIn("list", self.offers("dynprobe --pid ''"))

    def test_options_are_those_of_the_verb(self):
        self.assertEqual(set(self.offers("dynprobe list --")), {"--pid", "--format", "--tactic", "--no-trap", "--verbose", "--help"})
        self.assertIn("--dry-run", self.offers("dynprobe --d"))
        self.assertEqual(self.offers("dynprobe --prog"), ["--program"])
        self.assertEqual(set(self.offers("dynprobe --fol")), {"--folded", "--follow", "--follow-exec"})
        self.assertEqual(self.offers("dynprobe attach --prog"), [])
        self.assertEqual(self.offers("dynprobe list --dry"), [])

    def test_tags_are_offered(self):
        self.assertEqual(self.offers("dynprobe explain DP-TOO"), ["DP-TOO-SHORT"])
        self.assertEqual(self.offers("dynprobe explain --"), ["--all"])


if __name__ == "__main__":
    harness.main()
