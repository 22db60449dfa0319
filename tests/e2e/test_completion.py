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
struct owner { const char *first_name; };
struct entry { int first; union { int inner_number; char inner_letter; }; owner *of; owner by[2]; };
namespace zone {
__attribute__((noinline)) int handle(int item_count, entry *e) { asm volatile("" ::: "memory"); return item_count + e->first; }
}
int main() { entry e = {}; puts("READY"); fflush(stdout); for (int i = 0;; i++) { zone::handle(i, &e); usleep(1000); } }
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


def program(case):
    case.written("p.cc", PROGRAM)
    return case.target(harness.compiled(case.path("zqxapp"), "g++", "-g", "-O1", case.path("p.cc")))


class Words(harness.Case):
    """What dynprobe itself answers to the scripts."""

    def offers(self, *words, **how):
        out = harness.tool("completion", "--words", *words, status=0, **how).stdout
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
        self.assertEqual(self.offers("explain", "too"), ["too-short"])
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

    def test_members_after_arrows_and_dots(self):
        at = ("--pid", program(self).pid, "--function", "zone::handle")
        for path in ("e->", "e.", "(*e).", "((entry *)$rsi)->"):
            self.assertEqual(self.offers(*at, "-t", path), [path + m for m in ("first", "inner_number", "inner_letter", "of", "by")])
        self.assertEqual(self.offers(*at, "-t", "e->inner"), ["e->inner_number", "e->inner_letter"])
        self.assertEqual(self.offers(*at, "-t", "name=e->of->fi"), ["name=e->of->first_name"])
        self.assertEqual(self.offers(*at, "-t", "str(e->by[1].f"), ["str(e->by[1].first_name"])
        self.assertEqual(self.offers(*at, "--when", "item_count > 4 && e->fi"), ["item_count > 4 && e->first"])
        self.assertEqual(self.offers(*at, "--when", "1 < 2 && item"), ["1 < 2 && item_count"])
        self.assertEqual(self.offers(*at, "--count", "--by", "e->inner_l"), ["e->inner_letter"])
        for path in ("nothing->", "item_count->", "e->nothing.", "1.", "->", ")->"):
            self.assertEqual(self.offers(*at, "-t", path), [], path)

    def test_source_files_and_their_lines(self):
        at = ("--pid", program(self).pid, "--probe")
        self.assertEqual(self.offers(*at, "p."), ["p.cc:"])
        self.assertIn("p.cc:", self.offers(*at, ""))
        tail = os.path.basename(self.dir) + "/p"
        self.assertEqual(self.offers(*at, tail), [tail + ".cc:"])
        lines = self.offers(*at, "p.cc:")
        code = next(i for i, text in enumerate(PROGRAM.splitlines(), 1) if "return item_count" in text)
        self.assertIn(f"p.cc:{code}", lines)
        self.assertNotIn("p.cc:1", lines)
        self.assertEqual(self.offers(*at, f"p.cc:{code}"), [f"p.cc:{code}"])
        self.assertEqual(self.offers(*at, "nothing.c:"), [])

    def test_files_by_what_they_hold(self):
        for name in ("one.dps", "one.txt", "my.lua", "sub/two.dps", "recorded/metadata", "rotated/0001/metadata"):
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            self.written(name, "")
        with_home = {"cwd": self.dir, "env": dict(harness.environment(), HOME=self.dir, LTTNG_HOME=self.dir)}
        harness.tool("--function", "main", "-c", "/bin/true", **with_home, status=0)
        recorded, = os.listdir(self.path("lttng-traces"))
        dirs = ["lttng-traces/", "recorded/", "rotated/", "sub/"]
        self.assertEqual(sorted(self.offers("show", "", **with_home)), sorted(["one.dps", *dirs]))
        self.assertEqual(self.offers("show", "sub/", **with_home), ["sub/two.dps"])
        self.assertEqual(sorted(self.offers("view", "r", **with_home)), ["recorded", "rotated"])
        self.assertEqual(self.offers("view", "re", **with_home), ["recorded"])
        self.assertEqual(self.offers("report", "o", **with_home), ["one.dps"])
        self.assertEqual(self.offers("view", "dyn", **with_home), [recorded])
        self.assertEqual(self.offers("view", self.dir + "/lttng-traces/dyn", **with_home), 2 * [f"{self.dir}/lttng-traces/{recorded}"])
        modules = self.offers("snapshot", "1", "--module-load", "", **with_home)
        self.assertLessEqual({"deadlock", "heap", "leaks", "my.lua"}, set(modules))
        self.assertNotIn("one.txt", modules)

    def test_quotes_are_no_part_of_words(self):
        t = self.target("spin", 0, 1000)
        self.assertEqual(self.offers("--pid", t.pid, "--function", "'main'", "-t", "'arg"), ["args", "argc", "argv"])
        self.assertIn("caller", self.offers("-c", "'%s 0'" % harness.target_path("spin"), "--function", '"cal'))

    def test_errors_are_silent(self):
        for words in (("--pid", "999999999", "--probe", "a.c:"), ("--program", "/nonexistent", "--function", "f", "-t", "a->"), ("-c", "", "--probe", ""),
                      ("show", "/nonexistent/"), ("snapshot", "--module-load", "/nonexistent/x"), ("'",), ("",), ()):
            p = harness.tool("completion", "--words", *words, status=0)
            self.assertEqual(p.stderr, "", words)

    def test_unknown_shells(self):
        p = harness.tool("completion", "tcsh", status=harness.OWN_FAILURE)
        self.assertIn("bash|zsh|fish", p.stderr)


class BashFunction(harness.Case):
    """Bash's function without a terminal: the words that bash would pass, and what it would offer."""

    def replies(self, *words, kind=9):
        script = """
            source <("$0" completion bash)
            compopt() { OPTIONS+=("$*"); }
            OPTIONS=() COMP_TYPE=%d COMP_WORDS=("$0" "$@") COMP_CWORD=$#
            _dynprobe 2>&1
            printf '%%s\\n' "${COMPREPLY[@]}" "options: ${OPTIONS[*]}"
        """ % kind
        p = subprocess.run(["bash", "--norc", "-c", script, harness.DYNPROBE, *map(str, words)], capture_output=True, text=True, timeout=300, cwd=self.dir, env=harness.environment())
        self.assertEqual(p.stderr, "")
        *found, self.options = p.stdout.splitlines()
        return [f for f in found if f]

    def test_several_processes_are_shown_with_their_names(self):
        a, b = self.target("spin", 0, 1000), self.target("spin", 0, 1000)
        found = self.replies("--pid", "")
        self.assertIn(f"{a.pid} (spin)", found)
        self.assertIn(f"{b.pid} (spin)", found)
        self.assertIn(f"1,{a.pid} (spin)", self.replies("--pid", "1,"))
        self.assertIn(f"{a.pid}", self.replies("--pid", "", kind=37), "a key that inserts each in turn")

    def test_words_as_bash_parts_them(self):
        pid = program(self).pid
        at = ("--pid", pid, "--function", "zone", "::", "handle")
        self.assertEqual(self.replies("--pid", pid, "--function", "zone", "::", "han"), ["handle"])
        self.assertEqual(self.replies(*at, "-t", "item"), ["item_count"])
        self.assertEqual(self.replies(*at, "-t", "e.fi"), ["e.first"])
        self.assertEqual(self.replies(*at, "--when", "'item_count > 4 && e->fi"), ["item_count > 4 && e->first"])
        self.assertEqual(self.replies(*at, "--when", "=", "'e->fi"), ["e->first"])
        self.assertEqual(self.replies("--pid", pid, "--function", '"zone::handle"', "-t", '"e->of->'), ["e->of->first_name"])
        self.assertEqual(self.replies("--format", "=", "js"), ["json"])
        self.assertEqual(self.replies("--pid", pid, "--probe", "p.c"), ["p.cc:"])
        self.assertEqual(self.options, "options: -o nospace")
        self.assertIn("7", self.replies("--pid", pid, "--probe", "p.cc", ":", ""), "a line of code")
        self.assertEqual(self.replies("explain", "DP-TOO"), ["DP-TOO-SHORT"])
        self.assertEqual(self.options, "options: ")


class InShells:
    """The same lines in each shell."""

    @classmethod
    def shell_of(cls, case):
        raise NotImplementedError

    def test_lines(self):
        app = program(self)
        self.written("crashed.dps", "")
        sh = self.shell_of(self)
        pid = str(app.pid)
        for line, words in (
            ("dynprobe lis", ["list"]),
            ("dynprobe --func", ["--function"]),
            ("dynprobe --pid zqx", ["--pid", "zqxapp"]),
            (f"dynprobe --pid {pid} --function zone::han", ["--pid", pid, "--function", "zone::handle"]),
            (f"dynprobe --pid {pid} --function zone::handle -t item", ["--pid", pid, "--function", "zone::handle", "-t", "item_count"]),
            (f"dynprobe --pid {pid} --function zone::handle -t e.inner_n", ["--pid", pid, "--function", "zone::handle", "-t", "e.inner_number"]),
            (f"dynprobe --pid {pid} --function zone::handle -t 'e->inner_n", ["--pid", pid, "--function", "zone::handle", "-t", "e->inner_number"]),
            ("dynprobe snapshot --module-load deadl", ["snapshot", "--module-load", "deadlock"]),
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
