# SPDX-License-Identifier: MIT
"""Tests what dynprobe says to a user who typed something wrong: what is wrong, and what to type instead."""

import contextlib
import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import termios

import harness
from harness import Case, compiled, needs, needs_root, wait_until

TWO = {
    "a.c": "static int __attribute__((noinline)) helper(int x) { return x + 1; }\nint a(int x) { return helper(x) * 2; }\n",
    "b.c": "static int __attribute__((noinline)) helper(int x) { return x - 1; }\nint b(int x) { return helper(x) * 3; }\n",
    "main.c": '#include <stdio.h>\n#include <unistd.h>\nint a(int), b(int);\n'
              'int __attribute__((noinline)) handle_request(int x) { return a(x) + b(x); }\n'
              'int __attribute__((noinline)) app_open_file(int x) { return handle_request(x); }\n'
              'int main(void) { puts("READY"); fflush(stdout); for (int i = 0;; i++) { app_open_file(i); usleep(1000); } }\n',
}
ALLOCATOR = """
#include <stddef.h>
#include <string.h>
static char room[1 << 22];
static size_t used;
void *malloc(size_t n) { char *at = room + used; used += (n + 31) & ~(size_t)15; return used < sizeof(room) ? at : NULL; }
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t m) { return malloc(n * m); }
void *realloc(void *p, size_t n) { void *q = malloc(n); if (p && q) memmove(q, p, n); return q; }
"""


class Typed(Case):
    """What is wrong with the command line itself."""

    def refused(self, *args, tag="DP-USAGE"):
        p = harness.tool(*args, status=harness.OWN_FAILURE)
        self.assertIn(f"[{tag}]", p.stderr)
        return p.stderr

    def test_the_nearest_command(self):
        self.assertIn("no command 'halp'; did you mean help?", self.refused("halp"))
        self.assertIn("did you mean snapshot?", self.refused("snaphot", 12))
        self.assertIn("did you mean enable-event?", self.refused("enable-evnt", "x", "-u"))
        self.assertIn("dynprobe --function SPEC -- ./server", self.refused("./server", "-x"))

    def test_the_nearest_option(self):
        self.assertIn("unknown option --functon; did you mean --function?", self.refused("--functon", "foo"))
        self.assertIn("unknown option --functon; did you mean --function?", self.refused("--functon=foo"))
        self.assertIn("dynprobe list has no option --formt; did you mean --format?", self.refused("list", "--formt", "json"))
        self.assertIn("--fol may be --folded, --follow, --follow-exec", self.refused("--fol"))
        self.assertIn("see dynprobe --help", self.refused("--qqqqqqqqqqqq"))

    def test_a_name_without_an_option_is_probably_a_function(self):
        self.assertIn("to probe that function: --function 'handle_request'", self.refused("-p", 1, "handle_request"))
        self.assertIn("to probe that function: --function 'handle_request'", self.refused("attach", "-p", 1, "handle_request"))
        self.assertIn("--pid 12,14", self.refused("-p", 12, 13, "--function", "f"))
        self.assertIn("'list' comes first: dynprobe list --pid PID", self.refused("-p", 1, "list"))
        self.assertIn("dynprobe detach --pid 12", self.refused("detach", 12))

    def test_a_shells_words_in_a_command(self):
        for command in ("a | b", "a >out", "a 2>&1", "a && b", "a ; b", "a < in"):
            self.assertIn("sh -c", self.refused("-c", command, "--function", "main"), command)
        p = harness.tool("--no-record", "-q", "-c", "echo '|' a=b&c '>x'", "--function", "main", status=0)
        self.assertEqual(p.stdout, "| a=b&c >x\n")

    def test_the_nearest_process(self):
        self.target(harness.compiled(self.path("zqxserver"), "gcc", text='#include <stdio.h>\n#include <unistd.h>\nint main(void) { puts("READY"); fflush(stdout); pause(); }\n'))
        self.assertIn("no process is named 'zqxservre'; did you mean zqxserver?", self.refused("--pid", "zqxservre", "--function", "main", tag="DP-NO-PROCESS"))

    def test_variables_where_none_has_a_similar_name(self):
        program = self.path("prog")
        harness.compiled(program, "gcc", "-g", "-O1", text="struct box { int n; };\n__attribute__((noipa)) int serve(struct box *box, int kind) { return box->n + kind; }\n"
                         "int main(void) { struct box b = {1}; return serve(&b, 2); }\n")
        for options in (("--count", "--by", "xyzzy"), ("-t", "xyzzy"), ("--when", "xyzzy == 1")):
            said = self.refused("--function", "serve", *options, "--", program, tag="DP-NO-VARIABLE")
            self.assertIn("no variable 'xyzzy' is visible in serve, which has box, kind\n", said)

    def test_its_own_pid(self):
        p = subprocess.run(["sh", "-c", 'exec "$0" --pid $$ --function main', harness.DYNPROBE], capture_output=True, text=True, timeout=300)
        self.assertEqual(p.returncode, harness.OWN_FAILURE)
        self.assertIn("is this dynprobe itself", p.stderr)

    @needs_root
    @needs("setpriv")
    def test_what_a_user_lacks_has_a_name(self):
        nobody = {"prefix": harness.NOBODY, "binary": self.for_nobody("dynprobe"), "env": harness.environment(HOME=self.dir), "status": harness.OWN_FAILURE}
        p = harness.tool("--pid", 1, "--function", "main", **nobody)
        self.assertRegex(p.stderr, r"process 1 \(.*\): it belongs to root \(uid 0\), dynprobe runs as nobody \(uid 65534\) \[DP-PERMISSION\]\n  what to do: run dynprobe as root\n")
        same_user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=+net_raw", "--ambient-caps=+net_raw"]
        t = self.target(self.for_nobody("spin"), 0, 1000, prefix=same_user)
        p = harness.tool("--pid", t.pid, "--function", "foo", **nobody)
        self.assertRegex(p.stderr, r"holds capabilities that dynprobe lacks \(CAP_NET_RAW\) \[DP-PERMISSION\]\n  what to do: run dynprobe as root\n")
        theirs = self.target(self.for_nobody("spin"), 0, 1000, prefix=["setpriv", "--reuid", "1", "--regid", "1", "--clear-groups"])
        self.assertIn("  what to do: run dynprobe as root, or as that user\n", harness.tool("--pid", theirs.pid, "--function", "foo", **nobody).stderr)


    def test_a_trace_that_is_not_there(self):
        with_home = {"env": harness.environment(HOME=self.dir, LTTNG_HOME=self.dir), "cwd": self.dir}
        for verb in ("report", "show"):
            p = harness.tool(verb, "nosuch", status=harness.OWN_FAILURE, **with_home)
            self.assertRegex(p.stderr, "cannot open .*nosuch: No such file or directory .DP-SYS.\n  what to do: give the path of ")
        p = harness.tool("show", harness.target_path("spin"), status=harness.OWN_FAILURE, **with_home)
        self.assertIn("it is an ELF file, not a snapshot\n  what to do: give a snapshot (dynprobe snapshot makes one) or a core file", p.stderr)
        p = harness.tool("view", "nosuch", status=harness.OWN_FAILURE, **with_home)
        self.assertIn(f"there is no trace 'nosuch' here or in {self.dir}/lttng-traces [DP-BAD-TRACE]\n  what to do: check the name; dynprobe traces lists", p.stderr)
        self.assertNotIn("babeltrace", p.stderr)
        self.assertIn("there is no trace 'no/such' [DP-BAD-TRACE]", harness.tool("view", "no/such", status=harness.OWN_FAILURE, **with_home).stderr)
        harness.tool("--function", "main", "-c", "/bin/true", status=0, **with_home)
        name, = os.listdir(self.path("lttng-traces"))
        self.assertIn("main", harness.tool("view", name, status=0, **with_home).stdout)

    def test_a_list_of_system_calls(self):
        out = harness.tool("--syscall", "openat,close", "--no-record", "-c", "cat /etc/hostname", status=0).stderr
        for line in ('openat(AT_FDCWD, "/etc/hostname"', "close("):
            self.assertIn(line, out)
        self.assertNotIn("mmap(", out)
        p = harness.tool("--syscall", "openat,clsoe", "-c", "true", status=harness.OWN_FAILURE)
        self.assertIn("'clsoe': no such system call", p.stderr)

    def test_the_limit_of_hits_counts_calls_not_their_halves(self):
        t = self.target("spin", 0, 1000)
        p = harness.tool("--pid", t.pid, "--syscall", "clock_nanosleep", "-n", 3, "--no-record", status=0)
        self.assertGreaterEqual(len([line for line in p.stdout.splitlines() if " = 0" in line]), 3, p.stdout + p.stderr)


class Named(Case):
    """What is wrong with the names of functions and values."""

    made = {}

    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(harness.tempfile.TemporaryDirectory(prefix="dp-manners-"))
        for name, text in TWO.items():
            with open(os.path.join(cls.folder, name), "w") as f:
                f.write(text)

    def program(self, *flags):
        if flags not in self.made:
            self.made[flags] = compiled(os.path.join(self.folder, f"app{len(self.made)}"), "gcc", "-O1", *flags, *(os.path.join(self.folder, n) for n in TWO))
        with contextlib.suppress(FileNotFoundError):  # the one before is running
            os.unlink(self.path("app"))
        return self.target(shutil.copy(self.made[flags], self.path("app")))

    def test_a_command_that_only_starts_another_gets_the_advice_to_follow_it(self):
        spin = harness.target_path("spin")
        for probe, tag in (("zqx_thing", "DP-"), ("zqx_*", "DP-"), ("libnone.so!thing", "DP-NO-MODULE")):
            said = harness.tool("--function", probe, "-n", 1, "-c", f"env X=1 {spin} 1 1", status=harness.OWN_FAILURE).stderr
            self.assertIn(tag, said)
            self.assertIn("what to do: the command is a shell, a script or a wrapper", said)
            self.assertIn("--follow", said)
        self.assertNotIn("--follow", harness.tool("--function", "handle_thing", "--", spin, 1, 1, status=harness.OWN_FAILURE).stderr)

    def test_suggestions_complete_a_name_and_say_where_it_is(self):
        t = self.program()
        said = lambda spec: self.attach(t, "--function", spec, "-n", 1).err
        self.assertRegex(said("handle_reqest"), r"did you mean handle_request\b")
        self.assertRegex(said("open_file"), r"did you mean .*\bapp_open_file\b")
        self.assertRegex(said("opn_file"), r"did you mean .*\bapp_open_file\b")
        self.assertIn("did you mean libc.so.6!usleep,", said("libc.so.6!uslep"))
        self.assertRegex(said("getpidd"), r"did you mean .*libc\.so\.6!getpid")

    def test_a_source_file_of_a_similar_name(self):
        r = self.attach(self.program("-g"), "--probe", "man.c:6", "-n", 1)
        self.assert_refused(r, "DP-NO-SYMBOL", "no source file of the target ends in 'man.c' (", "; did you mean main.c")

    def test_list_says_which_pattern_has_matches(self):
        t = self.program()
        for typed, pattern in (("handle", "handle*"), ("open_file", "*open_file*"), ("libc!uslee", "libc!uslee*")):
            p = harness.tool("list", t.pid, typed, status=harness.OWN_FAILURE)
            self.assertRegex(p.stderr, r"no function is named '%s', but '%s' matches \d+" % (typed, pattern.replace("*", r"\*")))
        self.assertIn("no function is named 'zzqx' [", harness.tool("list", t.pid, "zzqx", status=harness.OWN_FAILURE).stderr)

    def test_a_program_without_debug_information_has_the_name_that_started_it(self):
        plain = self.path("plain")
        subprocess.run(["strip", "-g", "-o", plain, harness.target_path("spin")], check=True)
        os.symlink(plain, self.path("the-server"))
        t = self.target(self.path("the-server"), 0, 1000)
        self.assert_refused(self.attach(t, "--function", "main", "-t", "args", "-n", 1), "DP-NO-DEBUG-INFO", "plain', started as the-server")
        self.assertRegex(harness.tool("list", t.pid, "the-server!main", status=0).stdout, r" the-server!main\b")

    def test_a_library_by_its_short_name(self):
        t = self.program()
        for name in ("libc", "libc.so", "libc.so.6"):
            r = self.attach(t, "--function", name + "!usleep", "-n", 1)
            self.assert_ok(r)
            self.assert_hits(r)
        self.assert_refused(self.attach(t, "--function", "lib!usleep", "-n", 1), "DP-NO-MODULE")

    def test_static_functions_of_one_name_are_told_apart_by_their_files(self):
        for flags, place in ((["-g"], r"  \1\.c:1"), ([], "")):
            t = self.program(*flags)
            r = self.attach(t, "--function", "helper", "-n", 1)
            self.assert_refused(r, "DP-AMBIGUOUS", "app!helper@a.c", "app!helper@b.c")
            for spec in ("app!helper@a.c", "app!helper@b.c", "helper@b.c"):
                r = self.attach(t, "--function", spec, "-n", 1)
                self.assert_ok(r)
                self.assert_hits(r)
            listed = harness.tool("list", t.pid, "helper").stdout
            self.assertEqual(len(re.findall(rf"(?m)^0x[0-9a-f]+ +\d+  app!helper@(a|b)\.c{place}$", listed)), 2, listed)
            said = [json.loads(line) for line in harness.tool("list", t.pid, "helper", "-f", "json").stdout.splitlines()]
            self.assertEqual([(x["spec"], x["file"]) for x in said], [("app!helper@a.c", "a.c"), ("app!helper@b.c", "b.c")])
            self.assertEqual(harness.tool("list", t.pid, "handle_request").stdout.split()[2:], ["app!handle_request"])
            r = self.attach(t, "--function", "help*", "--count", "-d", "0.1")
            self.assertEqual({p.get("title") for p in r.summary["probes"]} - {None}, {"helper (a.c)", "helper (b.c)"})
            self.assert_refused(self.attach(t, "--function", "nosuch@a.c", "-n", 1), "DP-NO-SYMBOL", "nosuch")

    def test_static_functions_of_one_file_name_have_addresses(self):
        for name in ("a", "b"):
            os.mkdir(self.path(name))
            self.written(f"{name}/same.c", TWO[f"{name}.c"])
        self.written("main.c", TWO["main.c"])
        t = self.target(compiled(self.path("app"), "gcc", "-O1", *(self.path(n) for n in ("a/same.c", "b/same.c", "main.c"))))
        self.assert_refused(self.attach(t, "--function", "helper", "-n", 1), "DP-AMBIGUOUS", "app!0x")
        subprocess.run(["strip", self.path("app"), "-o", self.path("bare")], check=True)
        bare = self.target(self.path("bare"))
        self.assert_refused(self.attach(bare, "--function", "helper@a.c", "-n", 1), "DP-NO-SYMBOL")

    def test_a_result_at_an_entry_is_refused(self):
        t = self.program()
        for word in ("retval", "duration"):
            r = self.attach(t, "--function", "handle_request", "-t", word, "-n", 1)
            self.assert_refused(r, "DP-NO-VALUE", "is known only when the function returns", f"--return 'handle_request' -t {word}",
                                f"what to do: record it where the function returns: --return FUNCTION -t {word}")

    def test_a_result_for_an_entry_and_a_return_is_the_returns(self):
        t = self.program()
        r = self.attach(t, "--function", "handle_request", "--return", "handle_request", "-t", "retval", "-t", "reg:rdi", "-n", 4)
        self.assert_ok(r)
        self.assertEqual({(e["probe"], *e["fields"]) for e in r.events}, {("handle_request", "rdi"), ("handle_request_return", "retval", "rdi")})
        r = self.attach(t, "--function", "app_open_file", "--return", "handle_request", "-t", "retval", "-n", 2)
        self.assert_ok(r)
        self.assertIn("-t retval at 'app_open_file': a result is known only when the function returns; for this function: --return 'app_open_file' -t retval", r.err)
        self.assertNotIn("retval", [name for e in r.events if e["probe"] == "app_open_file" for name in e["fields"]])

    def test_a_misspelled_context(self):
        t = self.program("-g")
        self.assertIn("did you mean backtrace?", self.attach(t, "--function", "handle_request", "-t", "backtrce", "-n", 1).err)
        subprocess.run(["strip", self.path("app"), "-o", self.path("bare")], check=True)
        stripped = self.target(self.path("bare"))
        self.assertIn("did you mean backtrace?", self.attach(stripped, "--probe", "main", "-t", "backtrce", "-n", 1).err)
        self.assertNotIn("backtrace", self.attach(t, "--function", "handle_request", "--when", "backtrce == 1", "-n", 1).err)

    def test_a_misspelled_key_is_refused_before_anything_changes(self):
        t = self.program("-g")
        calls = self.system_calls("ptrace,process_vm_writev", "--pid", t.pid, "--function", "handle_request", "--count", "--by", "x", "--dry-run")
        self.assertNotIn("PTRACE_SEIZE", calls)
        for what in (("--count", "--by", "nosuch"), ("--sum", "nosuch")):
            log = self.path("calls")
            p = harness.tool("--pid", t.pid, "--function", "handle_request", *what, prefix=("strace", "-f", "-o", log, "-e", "trace=ptrace"),
                             env=harness.environment(ASAN_OPTIONS="detect_leaks=0"), status=harness.OWN_FAILURE)
            self.assertIn("no variable 'nosuch' is visible", p.stderr)
            with open(log) as f:
                self.assertNotIn("PTRACE_SEIZE", f.read())

    def test_an_allocator_that_the_program_does_not_use(self):
        compiled(self.path("libmine.so"), "gcc", "-shared", "-fPIC", "-O1", "-fno-builtin", text=ALLOCATOR)
        self.program("-L" + self.dir, "-Wl,--no-as-needed", "-lmine", "-Wl,-rpath," + self.dir)
        t = self.targets[-1]
        r = self.attach(t, "--function", "libc!malloc", "-d", "0.1")
        self.assertIn("libc!malloc may never hit: the program has an allocator of its own, libmine.so!malloc", r.err)
        self.assertRegex(self.attach(t, "--function", "malloc", "-n", 1).err, r"libmine\.so!malloc \(at 0x[0-9a-f]+\), which the program uses")
        self.assertNotIn("may never hit", self.attach(t, "--function", "libc!usleep", "-n", 1).err)


class Help(Case):
    TOPICS = "processes probes values counts end output lttng snapshots".split()

    def test_help_fits_on_a_screen_and_names_its_topics(self):
        first = harness.tool("--help", status=0).stdout
        self.assertLessEqual(len(first.splitlines()), 50)
        self.assertLessEqual(max(map(len, first.splitlines())), 120)
        self.assertEqual(harness.tool("help", status=0).stdout, first)
        for topic in self.TOPICS:
            self.assertIn(f"\n  {topic} ", first)
            text = harness.tool("--help", topic, status=0).stdout
            self.assertLessEqual(len(text.splitlines()), 50, topic)
            self.assertEqual(harness.tool("help", topic, status=0).stdout, text)

    def test_help_is_as_wide_as_the_terminal(self):
        for columns in (80, 100, 200):
            reader, terminal = pty.openpty()
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
            p = subprocess.Popen([harness.DYNPROBE, "--help", "counts"], stdin=subprocess.DEVNULL, stdout=terminal)
            os.close(terminal)
            text = b""
            with contextlib.suppress(OSError):  # a terminal's end
                while part := os.read(reader, 1 << 16):
                    text += part
            os.close(reader)
            self.assertEqual(p.wait(300), 0)
            widest = max(len(line.rstrip("\r")) for line in text.decode().split("\n"))
            self.assertLessEqual(widest, min(columns, 112))
            self.assertGreater(widest, min(columns, 112) - 15)

    def test_every_option_is_in_a_topic(self):
        options = lambda *words: {line.split()[0] for line in harness.tool(*words, status=0).stdout.replace("-p, ", "").splitlines() if line.startswith("      --")}
        self.assertEqual(options("help", "all") - set().union(*(options("help", t) for t in self.TOPICS)), set())

    def test_help_names_only_what_there_is(self):
        self.assertIn("--calls SPEC", harness.tool("--help", "counts", status=0).stdout)
        self.assertNotIn("--calls", harness.tool("--help", "output", status=0).stdout)
        for verb in ("show", "list", "status", "traces", "doctor"):
            self.assertNotIn("perfetto", harness.tool(verb, "--help", status=0).stdout, verb)
            self.assertIn("unknown format 'ctf': use text or json", harness.tool(verb, "-f", "ctf", "x", status=harness.OWN_FAILURE).stderr)

    def test_a_process_alone_is_asked_for_places(self):
        err = harness.tool("-p", "1", status=harness.OWN_FAILURE).stderr
        for option in ("--function", "--return", "--probe", "--calls", "--usdt", "--syscall", "--profile", "--help probes", "dynprobe list PID"):
            self.assertIn(option, err)

    def test_help_on_a_command_an_option_or_an_error(self):
        self.assertEqual(harness.tool("help", "list", status=0).stdout, harness.tool("list", "--help", status=0).stdout)
        self.assertIn("a row for each value", harness.tool("help", "by", status=0).stdout)
        self.assertEqual(harness.tool("help", "DP-BUSY", status=0).stdout, harness.tool("explain", "DP-BUSY", status=0).stdout)
        self.assertIn("did you mean counts?", harness.tool("help", "cuonts", status=harness.OWN_FAILURE).stderr)
        self.assertIn("topics: processes", harness.tool("--help", "qqqqqq", status=harness.OWN_FAILURE).stderr)


class Runs(Case):
    def test_a_process_to_list_may_be_its_pid_alone(self):
        t = self.target("spin", 0, 1000)
        self.assertEqual(harness.tool("list", t.pid, "foo", status=0).stdout, harness.tool("list", "--pid", t.pid, "foo", status=0).stdout)
        self.assertIn("foo", harness.tool("list", harness.target_path("spin"), "foo", status=0).stdout)
        self.assertIn("for a process of that name --pid spin", harness.tool("list", "spin", "foo", cwd=self.dir, status=harness.OWN_FAILURE).stderr)

    def test_a_command_that_outlives_its_probes(self):
        p = self.start("--function", "foo", "-n", 3, "--", harness.target_path("spin"), 0, 1000)
        wait_until(lambda: "runs on without probes" in self.said(p) or p.poll() is not None, what="the note")
        self.assertRegex(self.said(p), r"dynprobe: spin \(\d+\) runs on without probes; dynprobe waits until it exits")
        child = int(harness.children(p.pid)[0])
        os.kill(child, signal.SIGTERM)
        self.assert_ok(self.finish(p, None))


if __name__ == "__main__":
    harness.main()
