# SPDX-License-Identifier: MIT
"""Tests completion in real shells: a line is typed with a tab at its end, and run."""

import os
import pty
import select
import subprocess
import unittest

import harness
from harness import have, wait_until

PROGRAM = """
#include <unistd.h>
#include <cstdio>
namespace zone { __attribute__((noinline)) int handle(int item_count) { asm volatile("" ::: "memory"); return item_count + 1; } }
int main() { puts("READY"); fflush(stdout); for (int i = 0;; i++) { zone::handle(i); usleep(1000); } }
"""

# Each defines a function in the place of dynprobe: completion asks the real one, and a line that is run shows its words.
BASH = """
PS1='' HISTFILE=
bind 'set bell-style none' 2>/dev/null
dynprobe() { if [ "$1" = completion ]; then command '%(tool)s' "$@"; else printf '%%s\\n' "$@" >'%(out)s.new'; mv '%(out)s.new' '%(out)s'; fi; }
source <('%(tool)s' completion bash)
"""
ZSH = """
PS1='' RPS1=''
autoload -U compinit
compinit -u -D
dynprobe() { if [ "$1" = completion ]; then command '%(tool)s' "$@"; else printf '%%s\\n' "$@" >'%(out)s.new'; mv '%(out)s.new' '%(out)s'; fi; }
source <('%(tool)s' completion zsh)
"""
FISH = """
function fish_prompt; end
function fish_greeting; end
function dynprobe
    if test "$argv[1]" = completion
        command '%(tool)s' $argv
    else
        printf '%%s\\n' $argv >'%(out)s.new'
        mv '%(out)s.new' '%(out)s'
    end
end
command '%(tool)s' completion fish | source
"""


class Shell:
    """An interactive shell on a terminal of its own."""

    def __init__(self, case, argv, init, **more_env):
        self.out = case.path("out")
        text = init % {"tool": harness.DYNPROBE, "out": self.out}
        env = dict(harness.environment(), HOME=case.dir, TERM="dumb", **more_env)
        self.master, slave = pty.openpty()
        path = case.written("init", text)
        self.process = subprocess.Popen(["setsid", "--ctty", *(a.replace("INIT", path) for a in argv)], stdin=slave, stdout=slave, stderr=slave, cwd=case.dir, env=env)
        os.close(slave)
        case.addCleanup(self.close)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)

    def has_ended(self):
        while select.select([self.master], [], [], 0)[0]:
            try:
                os.read(self.master, 65536)
            except OSError:
                return True
        return os.path.exists(self.out)

    def run(self, keys):
        """Types the keys; the words that the command got."""
        if os.path.exists(self.out):
            os.unlink(self.out)
        os.write(self.master, keys.encode())
        wait_until(self.has_ended, what=f"the line {keys!r} to run")
        with open(self.out) as f:
            return f.read().splitlines()

    def completed(self, line):
        return self.run(line + "\t\n")


class Words(harness.Case):
    """What dynprobe itself answers to the scripts."""

    def offers(self, *words):
        out = harness.tool("completion", "--words", *words, status=0).stdout
        return [line.split("\t")[0] for line in out.splitlines()]

    def test_options_are_those_of_the_verb(self):
        self.assertEqual(set(self.offers("list", "--")), {"--pid", "--format", "--tactic", "--no-trap", "--verbose", "--help"})
        self.assertIn("--dry-run", self.offers("--d"))
        self.assertEqual(self.offers("--prog"), ["--program"])
        self.assertEqual(self.offers("attach", "--prog"), [])
        self.assertEqual(self.offers("list", "--dry"), [])
        self.assertEqual(self.offers("--function", "f", "--", "ls", "--"), [])

    def test_verbs_topics_and_tags(self):
        self.assertEqual(self.offers("li"), ["list"])
        self.assertNotIn("list", self.offers("--pid", "1", ""))
        self.assertEqual(self.offers("explain", "DP-TOO"), ["DP-TOO-SHORT"])
        self.assertEqual(self.offers("help", "cou"), ["counts"])
        self.assertEqual(self.offers("--help", "cou"), ["counts"])
        self.assertEqual(self.offers("completion", ""), ["bash", "zsh", "fish"])

    def test_words_of_options(self):
        self.assertEqual(self.offers("--pid", "1", "-f", "j"), ["json"])
        self.assertEqual(self.offers("--format=j"), ["--format=json"])
        self.assertEqual(self.offers("--tactic", "jump,w"), ["jump,window"])
        self.assertEqual(self.offers("--syscall", "opena"), ["openat", "openat2"])
        self.assertIn("root", self.offers("--user", "roo"))

    def test_processes_with_their_names(self):
        t = self.target("spin", 0, 1000)
        line = next(x for x in harness.tool("completion", "--words", "--pid", t.pid).stdout.splitlines() if x.split("\t")[0] == str(t.pid))
        self.assertEqual(line, f"{t.pid}\tspin")
        self.assertIn(f"1,{t.pid}", self.offers("--pid", f"1,{t.pid}"))
        self.assertIn("spin", self.offers("snapshot", "spi"))
        self.assertIn(str(t.pid), self.offers("list", t.pid))

    def test_functions_and_variables_of_the_process_or_program(self):
        t = self.target("spin", 0, 1000)
        for named in (("--pid", t.pid), ("--pid=%d" % t.pid,), ("-c", harness.target_path("spin") + " 0"), ("--program", harness.target_path("spin"))):
            self.assertIn("caller", self.offers(*named, "--function", "cal"), named)
        self.assertIn("libc!getpid", self.offers("--pid", t.pid, "--function", "libc!getpi"))
        self.assertIn("caller", self.offers("list", t.pid, "cal"))
        self.assertIn("caller", self.offers("list", harness.target_path("spin"), "cal"))
        self.assertIn("argc", self.offers("--pid", t.pid, "--function", "main", "-t", "arg"))
        self.assertIn("argc", self.offers("--pid", t.pid, "--function", "main", "--when", "arg"))
        self.assertEqual(self.offers("--pid", t.pid, "--function", "main", "--count", "--by", "pid,back"), ["pid,backtrace"])
        self.assertEqual(self.offers("--pid", "999999999", "--function", "a"), [])

    def test_unknown_shells(self):
        p = harness.tool("completion", "tcsh", status=harness.OWN_FAILURE)
        self.assertIn("bash|zsh|fish", p.stderr)


class InShells:
    """The same lines in each shell."""

    @classmethod
    def shell_of(cls, case):
        raise NotImplementedError

    def test_lines(self):
        self.written("p.cc", PROGRAM)
        app = self.target(harness.compiled(self.path("zqxapp"), "g++", "-g", "-O1", self.path("p.cc")))
        self.written("crashed.dps", "")
        sh = self.shell_of(self)
        pid = str(app.pid)
        for line, words in (
            ("dynprobe lis", ["list"]),
            ("dynprobe --func", ["--function"]),
            ("dynprobe --pid zqx", ["--pid", "zqxapp"]),
            (f"dynprobe --pid {pid} --function zone::han", ["--pid", pid, "--function", "zone::handle"]),
            (f"dynprobe --pid {pid} --function zone::handle -t item", ["--pid", pid, "--function", "zone::handle", "-t", "item_count"]),
            ("dynprobe --format=js", ["--format=json"]),
            ("dynprobe explain DP-TOO", ["explain", "DP-TOO-SHORT"]),
            ("dynprobe show crash", ["show", "crashed.dps"]),
        ):
            self.assertEqual(sh.completed(line), words, line)


class Bash(InShells, harness.Case):
    @classmethod
    def shell_of(cls, case):
        return Shell(case, ["bash", "--noprofile", "--rcfile", "INIT", "-i"], BASH)


@unittest.skipUnless(have("zsh"), "zsh is not installed")
class Zsh(InShells, harness.Case):
    @classmethod
    def shell_of(cls, case):
        shell = Shell(case, ["zsh", "-f", "-i"], ZSH)
        os.write(shell.master, f"source {case.path('init')}\n".encode())
        return shell


@unittest.skipUnless(have("fish"), "fish is not installed")
class Fish(InShells, harness.Case):
    @classmethod
    def shell_of(cls, case):
        return Shell(case, ["fish", "--no-config", "-i", "-C", "source INIT"], FISH)


if __name__ == "__main__":
    harness.main()
