# SPDX-License-Identifier: MIT
"""--pending with --program and --follow: each process gets the probes of a library when it loads it."""

import collections
import os
import re
import shutil
import subprocess

from harness import EXIT_PARTIAL, Case, environment, main, needs_root, target_path, wait_until

LATE = target_path("late.so")
CALLS = [hex(i) for i in (7, *range(20))]  # its constructor's, then those of `loads`
WORK = ("--function", "late.so!plugin_work", "-t", "reg:rdi")


def by_process(r):
    """{pid: [rdi of each call of plugin_work()]}."""
    ret = collections.defaultdict(list)
    for e in r.events:
        ret[e["pid"]].append(e["fields"]["rdi"])
    return dict(ret)


class Later(Case):
    def setUp(self):
        super().setUp()
        self.loads = shutil.copy(target_path("loads"), self.path("loads"))

    def run_all(self, *argv):
        r = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=300, env=environment())
        return r.stdout + r.stderr

    def assert_each(self, r, n):
        """n processes, each with all calls of the library's function, the constructor's first."""
        said = f"{r}\n{r.summary}"
        self.assert_ok(r)
        self.assertEqual(list(by_process(r).values()), [CALLS] * n, said)
        self.assertEqual(r.summary["lost"]["total"], 0, said)


@needs_root
class OfAProgram(Later):
    def watch(self, *args, probe=WORK):
        p = self.start("--program", self.loads, "--pending", *probe, *args)
        wait_until(lambda: p.poll() is not None or "waiting for" in self.said(p), what="dynprobe to watch")
        self.assertIsNone(p.poll(), self.said(p))
        return p

    def starts(self, n, *args):
        text = self.run_all(target_path("starter"), "fork", n, self.loads, *args)
        self.assertIn(f"STATUS 0 {n}", text)
        self.assertEqual(text.count("RESULT OK"), n + 1, text)

    def test_every_process_from_the_constructor_on(self):
        p = self.watch()
        self.starts(5, LATE, "main")
        r = self.finish(p)
        self.assert_each(r, 5)
        self.assertEqual((r.summary["started"], r.summary["refused"]), (5, 0), str(r.summary))

    def test_places_that_the_first_process_found_serve_the_next_ones(self):
        """Returns and lines get their sites when the first process loads the library."""
        p = self.watch(probe=("--return", "late.so!plugin_work", "-t", "retval", "--function", "late.so!plugin_work", "-t", "a"))
        self.starts(3, LATE, "main")
        r = self.finish(p)
        self.assert_ok(r)
        of = lambda name, pid: [next(iter(e["fields"].values())) for e in r.events if e["probe"] == name and e["pid"] == pid]
        pids = {e["pid"] for e in r.events}
        self.assertEqual([of("plugin_work", pid) for pid in pids], [[7, *range(20)]] * 3, str(r))
        self.assertEqual([len(of("plugin_work_return", pid)) for pid in pids], [21] * 3, str(r))

    def test_processes_at_once_each_with_its_own_library(self):
        p = self.watch()
        text = self.run_all(target_path("starter"), "many", 8, self.loads, LATE, "main")
        r = self.finish(p)
        self.assertEqual(text.count("RESULT OK"), 9, text)
        late = r.err.count("resumed before") + sum("resumed before" in str(x) for x in r.lines)
        whole = [calls for calls in by_process(r).values() if calls == CALLS]
        self.assertGreaterEqual(len(whole), 8 - r.summary["late"] - r.summary["unprobed"] - late, f"{r}\n{r.summary}")

    def test_process_that_runs_already(self):
        t = self.target(self.loads, LATE, "once")
        p = self.start("--program", self.loads, "--pending", *WORK, "--function", "foo", "-t", "reg:rdi")
        self.await_events(p, "foo", 1)
        t.process.send_signal(10)
        self.await_events(p, "plugin_work", 3)
        self.starts(2, LATE, "main")
        r = self.finish(p)
        calls = by_process(r)
        self.assertEqual([c for pid, c in calls.items() if pid != t.pid], [CALLS] * 2, str(r))
        self.assertEqual(calls[t.pid].count(hex(7)), 1, "its constructor's, and none of the calls with 1 of foo()")
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_process_without_the_library_is_no_failure_if_another_has_it(self):
        p = self.watch()
        self.run_all(self.loads, "/none.so", "main")
        self.starts(1, LATE, "main")
        self.run_all(self.loads, "/none.so", "main")
        r = self.finish(p)
        self.assert_each(r, 1)
        self.assertEqual((r.summary["started"], r.summary["refused"]), (3, 0), str(r.summary))

    def test_library_that_no_process_loaded_DP_PENDING(self):
        p = self.watch()
        self.run_all(self.loads, "/none.so", "main")
        r = self.finish(p)
        self.assert_ok(r, EXIT_PARTIAL)
        self.assertEqual(r.summary["refusals"], {"DP-PENDING": 1}, str(r.summary))

    def test_killed_tool_leaves_nobody_waiting(self):
        p = self.watch("--max-wait", "1s")
        t = self.target(self.loads, LATE, "cycle")
        self.await_events(p, "plugin_work", 30)
        p.kill()
        p.wait()
        before = t.cpu_ticks()
        wait_until(lambda: t.cpu_ticks() > before + 5 or not t.alive(), what="the target to go on")
        self.assert_ok(self.attach(t, "--function", "foo", "-n", 1))
        self.assert_clean(t.pid)
        self.assert_result_ok(t)


class Followed(Later):
    def follow(self, text, *args, probe=WORK):
        return self.dynprobe("--follow", "--pending", *probe, *args, "--", "sh", "-c", text)

    @needs_root
    def test_programs_that_a_shell_starts(self):
        r = self.follow(f"{self.loads} {LATE} main; /bin/true; env A=1 {self.loads} {LATE} main; exec {self.loads} {LATE} main")
        self.assert_each(r, 3)
        self.assertEqual(r.out.count("RESULT OK"), 3)

    @needs_root
    def test_program_that_cannot_be_watched_is_no_failure(self):
        if not os.path.exists(target_path("spin-static")):
            self.skipTest("no static libc")
        static = target_path("spin-static")
        executes = f"until [ /proc/$!/exe -ef {static} ]; do :; done"  # a shell that is killed before that is a process without probes
        r = self.follow(f"{static} & {executes}; kill $!; {self.loads} {LATE} main")
        self.assert_each(r, 1)

    def build(self, text):
        """A program that loads the library, and forks."""
        with open(self.path("parent.c"), "w") as f:
            f.write('#include <dlfcn.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n'
                    'static unsigned (*work(void *library))(unsigned) { return (unsigned (*)(unsigned))dlsym(library, "plugin_work"); }\n'
                    f'int main(int argc, char **argv)\n{{\n\t(void)argc;\n{text}\n\twhile (wait(NULL) > 0)\n\t\t;\n\treturn 0;\n}}\n')
        subprocess.run(["gcc", "-O1", "-o", self.path("parent"), self.path("parent.c")], check=True)
        return self.path("parent")

    def test_fork_children_of_a_process_that_has_loaded_it(self):
        parent = self.build("\tunsigned (*f)(unsigned) = work(dlopen(argv[1], RTLD_NOW));\n"
                            "\tfor (unsigned k = 1; k < 4; k++)\n\t\tif (!fork()) {\n"
                            "\t\t\tfor (unsigned i = 0; i < 5; i++)\n\t\t\t\tf(100 * k + i);\n\t\t\t_exit(0);\n\t\t}\n\tf(3);")
        r = self.dynprobe("--follow", "--pending", *WORK, "--", parent, LATE)
        self.assert_ok(r)
        self.assertEqual(sorted(by_process(r).values()),
                         sorted([["0x7", "0x3"], *([hex(100 * k + i) for i in range(5)] for k in range(1, 4))]), f"{r}\n{r.summary}")
        self.assertEqual((r.summary["lost"]["total"], r.summary["followed"]), (0, 3), str(r.summary))

    def test_children_go_on_when_their_parent_has_closed_it(self):
        parent = self.build("\tvoid *library = dlopen(argv[1], RTLD_NOW);\n\tunsigned (*f)(unsigned) = work(library);\n\tint at[2];\n\tchar c;\n"
                            "\tif (pipe(at))\n\t\treturn 1;\n"
                            "\tif (!fork()) {\n\t\tf(100);\n\t\tclose(at[1]);\n\t\tif (read(at[0], &c, 1) < 0)\n\t\t\t_exit(1);\n"
                            "\t\tfor (unsigned i = 0; i < 20; i++)\n\t\t\tf(200 + i);\n\t\t_exit(0);\n\t}\n"
                            "\tdlclose(library);\n\tlibrary = dlopen(argv[1], RTLD_NOW);\n\twork(library)(3);\n\tdlclose(library);\n\tclose(at[1]);")
        r = self.dynprobe("--follow", "--pending", *WORK, "--", parent, LATE)
        self.assert_ok(r)
        self.assertEqual(sorted(by_process(r).values()), sorted([["0x7", "0x7", "0x3"], ["0x64", *(hex(200 + i) for i in range(20))]]), f"{r}\n{r.summary}")
        self.assertEqual(r.summary["lost"]["total"], 0, str(r.summary))

    def test_what_a_fork_child_loads_is_not_probed(self):
        parent = self.build("\tif (!fork()) {\n\t\twork(dlopen(argv[1], RTLD_NOW))(5);\n\t\t_exit(0);\n\t}\n\twait(NULL);\n\twork(dlopen(argv[1], RTLD_NOW))(6);")
        r = self.dynprobe("--follow", "--pending", *WORK, "--", parent, LATE)
        self.assert_ok(r)
        self.assertEqual(list(by_process(r).values()), [["0x7", "0x6"]], "the documented limit")


if __name__ == "__main__":
    main()
