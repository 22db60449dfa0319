# SPDX-License-Identifier: MIT
"""Tests frames and values of snapshots against gdb's, for stopped programs: C and C++ by gcc and clang, python3, redis."""

import os
import shutil
import sys

import harness
from harness import Case, long_form, needs

BUILD = os.path.dirname(os.path.dirname(harness.TARGETS))
SOURCES = os.path.join(harness.ROOT, "tests", "extract")
DUMP = os.path.join(BUILD, "tests", "extract", "extract_dump")
sys.path.insert(0, SOURCES)
import compare  # noqa: E402
import damage  # noqa: E402


@needs("gdb")
class SnapshotAsGdb(Case):
    def quiet(self, p, threads=1):
        """Waits until there are so many threads and all of them sleep."""

        def rest():
            tasks = [f"{p.pid}/task/{t}" for t in os.listdir(f"/proc/{p.pid}/task")]
            calls = [open(f"/proc/{t}/syscall").read().split()[0] for t in tasks]
            return len(tasks) >= threads and {harness.status(t, "State")[0] for t in tasks} == {"S"} and "running" not in calls

        harness.wait_until(rest, what="the program to sleep")

    def same(self, p, least, passing="none"):
        """`passing`: a variable that may change between gdb's stop and ours."""
        got = compare.compare(DUMP, p.pid)
        wrong = "\n".join(line[:400] for line in got.lines)
        self.assertEqual(got.frames_different, 0, wrong)
        self.assertGreaterEqual(got.equal, least, wrong)
        moved = sum(f" {passing}: " in line for line in got.lines)
        self.assertLessEqual(got.different - moved, got.total() / 1000, wrong)
        return got

    def built(self, compiler, source, *options):
        if not shutil.which(compiler):
            self.skipTest("needs " + compiler)
        path = self.path(os.path.splitext(source)[0] + "-" + compiler)
        return harness.compiled(path, compiler, "-g", *options, os.path.join(SOURCES, source), "-pthread")

    @long_form  # optimized C by gcc is in tails.c, too
    def test_c_optimized_by_gcc(self):
        p = self.spawn(self.built("gcc", "shapes.c", "-O2"))
        self.quiet(p)
        self.same(p, 25)

    def test_c_by_clang(self):
        p = self.spawn(self.built("clang", "shapes.c", "-O2"))
        self.quiet(p)
        self.same(p, 20)

    def test_cxx_by_gcc(self):
        p = self.spawn(self.built("g++", "shapes.cc", "-O2", "-fdebug-types-section"))
        self.quiet(p, threads=2)
        self.same(p, 50)

    def test_functions_that_end_in_a_jump(self):
        p = self.spawn(self.built("gcc", "tails.c", "-O2"))
        self.quiet(p, threads=7)
        self.assertGreaterEqual(self.same(p, 150).tails, 8)

    def test_the_rarer_parts_of_c(self):
        """Variable-length arrays, one-byte constants, complex and wide numbers, nested functions, a handler on an alternate stack."""
        p = self.spawn(self.built("gcc", "features.c", "-O2"))
        self.quiet(p, threads=4)
        self.same(p, 230)

    def test_the_rarer_parts_of_cxx(self):
        """Pointers to members, virtual bases, lambdas, an exception in flight, containers, coroutines."""
        p = self.spawn(self.built("g++", "features.cc", "-std=c++20", "-O0"))
        self.quiet(p, threads=5)
        self.same(p, 140)

    @long_form
    def test_cxx_optimized_by_clang(self):
        p = self.spawn(self.built("clang++", "shapes.cc", "-O2"))
        self.quiet(p, threads=2)
        self.same(p, 60)

    def test_damaged_debug_information_ends(self):
        """The long form is tests/extract/damage.py."""
        path = self.built("gcc", "shapes.c", "-O2")
        self.assertEqual([w for w in (damage.run(DUMP, path, seed, self.dir) for seed in range(1, 9 if harness.FULL else 4)) if w], [])

    @long_form
    @needs("redis-server")
    def test_redis(self):
        p = self.spawn("redis-server", "--port", "0", "--unixsocket", os.path.join(self.dir, "s"), "--save", "", "--appendonly", "no")
        self.quiet(p, threads=4)
        self.same(p, 20, passing="epoll_wait sc_ret")

    @long_form
    def test_python(self):
        program = "import threading, time\ndef f(n):\n  if n: return f(n - 1)\n  time.sleep(1000)\n" \
                  "threading.Thread(target=f, args=(5,), daemon=True).start()\nf(9)\n"
        p = self.spawn(sys.executable, "-c", program)
        self.quiet(p, threads=2)
        self.same(p, 2)


if __name__ == "__main__":
    harness.main()
