# SPDX-License-Identifier: MIT
"""Tests pmodules in C: built as a user builds them, run on a live process and on a saved snapshot; bad ones do no harm."""

import glob
import os
import signal
import subprocess

import harness

BUILD = os.path.dirname(os.path.abspath(harness.DYNPROBE))
MODULES = os.path.join(os.path.dirname(harness.TARGETS), "pmodules")
EXAMPLES = sorted(glob.glob(os.path.join(harness.ROOT, "pmodules", "examples", "*.c")))


def run(*words, **kw):
    return subprocess.run(words, capture_output=True, text=True, timeout=300, **kw)


def lines(text, module):
    """A module's output, without the log's prefix."""
    mark = f": {module}: "
    return [line.split(mark, 1)[1] for line in text.splitlines() if mark in line]


class Modules(harness.Case):
    def ok(self, p, status=0):
        self.assertEqual(p.returncode, p.returncode if status is None else status, f"{p.args}\n{p.stdout}{p.stderr}")
        return p

    def pmodule(self, *words, status=0, **kw):
        return harness.tool("pmodule", *words, status=status, **kw)

    def start_shop(self):
        self.shop = self.target(os.path.join(MODULES, "shop"), ready="ready")
        return self.shop.pid

    def snapshot(self, pid, modules, *more, status=0):
        words = [w for m in modules for w in ("--module-load", m)]
        out = self.path("snapshot.dps")
        if os.path.exists(out):
            os.unlink(out)
        return harness.tool("snapshot", "--pid", pid, "-o", out, *words, *more, status=status), out

    def build(self, sources, compiler, *flags):
        """Builds the examples with the pkg-config flags of an installed dynprobe."""
        prefix = self.path("prefix")
        self.ok(run("cmake", "--install", BUILD, "--component", "pmodule", "--prefix", prefix))
        (pc,) = glob.glob(os.path.join(prefix, "**", "dynprobe-pmodule.pc"), recursive=True)
        env = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(pc))
        cflags = self.ok(run("pkg-config", "--cflags", "dynprobe-pmodule", env=env)).stdout.split()
        built = []
        for source in sources:
            built.append(self.path(os.path.basename(source)[:-2] + ".so"))
            self.ok(run(compiler, *flags, "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", *cflags, source, "-o", built[-1]))
        return built

    # ---- examples ----------------------------------------------------------------------------------------------------------

    def test_examples_build_with_pkg_config_and_do_what_they_say(self):
        modules = self.build(EXAMPLES, "cc")
        pid = self.start_shop()
        p, saved = self.snapshot(pid, modules + [os.path.join(MODULES, "printer.so")], "--fault-thread", str(pid), "-v",
                                 "--module-timeout", "10000")
        said = lines(p.stderr, "printer")
        for wanted in (
            "amount: struct(std::pair<int, long int>) = 0 0 (7, 40) (hidden)",
            "nested: struct(std::pair<std::pair<char, short int>, double>) = 0 0 ((120, 3), 0.5) (hidden)",
            "numbers: struct(std::vector<int, std::allocator<int> >) = 0 0 std::vector of 3 (hidden)",
            "  [0]: int = 10 0 -",
            "  [0]: int = 20 0 -",
            "  [0]: int = 30 0 -",
            "job: char * = 0 0 night shift",
        ):
            self.assertIn(wanted, said, "\n".join(said))
        symbols = [line.split()[2:] for line in said if line.startswith("frame ")]
        self.assertEqual(symbols[symbols.index(["main"]) - 1], ["night", "shift"])
        # The same modules on the file, after the process has ended: the same results, and none twice.
        self.shop.stop(signal.SIGKILL)
        words = [w for m in modules + [os.path.join(MODULES, "printer.so")] for w in ("--module-load", m)]
        again = self.pmodule("run", saved, *words, "--module-timeout", "10000", "-o", self.path("again.dps"))
        self.assertEqual(lines(again.stderr, "printer"), said)

    def test_examples_are_c_plus_plus_too(self):
        for module in self.build(EXAMPLES[-3:], "g++", "-x", "c++"):
            self.assertIn("ok: example_", self.pmodule("check", module).stdout)

    # ---- conformance -------------------------------------------------------------------------------------------------------

    def test_typed_values(self):
        pid = self.start_shop()
        long = ["--module-timeout", "10000"]  # lookups by name may search all debug information
        p, saved = self.snapshot(pid, [os.path.join(MODULES, "conformance.so")], *long)
        said = lines(p.stderr, "conformance")
        self.assertEqual(said[-1].split(", ")[1], "0 bad", "\n".join(said))
        self.assertGreater(int(said[-1].split()[0]), 35, "\n".join(said))
        p, _ = self.snapshot(pid, [os.path.join(MODULES, "conformance.so")], "--mode", "fork", *long)
        self.assertIn(" 0 bad", lines(p.stderr, "conformance")[-1], p.stderr)
        # From the file: data that is not in the snapshot is absent, and nothing else differs.
        again = self.pmodule("run", saved, "--module-load", os.path.join(MODULES, "conformance.so"), "-o", self.path("again.dps"), *long,
                             status=None)
        self.assertIn(" good, ", again.stderr)

    def test_bad_modules_leave_the_process_and_the_snapshot_alone(self):
        target = self.target("spin")
        module = os.path.join(MODULES, "misbehave.so")
        for how, said, ms in (("null", "crashed", "1000"), ("stack", "crashed", "1000"), ("loop", "its time is up", "5")):
            with self.subTest(how):
                p, _ = self.snapshot(target.pid, [module], "--module", f"misbehave:how,{how}", "--module-timeout", ms, status=harness.EXIT_PARTIAL)
                self.assertIn(said, p.stderr)
                self.assertTrue(target.alive())
                self.assertNotIn(harness.status(target.pid, "State")[:1], "tT")
        with self.subTest("stuck"):  # dynprobe ends, the process continues
            p, out = self.snapshot(target.pid, [module], "--module", "misbehave:how,stuck", "--module-timeout", "5", status=125)
            self.assertIn("cannot be stopped safely", p.stderr)
            self.assertFalse(os.path.exists(out))
        before = target.cpu_ticks()
        harness.wait_until(lambda: target.cpu_ticks() > before, what="the program to run on")
        self.assertEqual(harness.status(target.pid, "TracerPid"), "0")

    # ---- the command -------------------------------------------------------------------------------------------------------

    def test_new_makes_a_module_that_check_likes_and_never_overwrites(self):
        where = self.path("new")
        os.mkdir(where)
        self.assertEqual(self.pmodule("new", "mine", cwd=where).stdout, "mine.lua\n")
        self.assertIn("ok: mine", self.pmodule("check", "mine.lua", cwd=where).stdout)
        self.assertEqual(self.pmodule("new", "mine", "--lang", "c", cwd=where).stdout, "mine.c\n")
        include = self.path("include/dynprobe")
        os.makedirs(include)
        os.symlink(os.path.join(harness.ROOT, "pmodules", "pmodule.h"), os.path.join(include, "pmodule.h"))
        for compiler in (["cc"], ["g++", "-x", "c++"]):
            self.ok(run(*compiler, "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", f"-I{self.path('include')}", f"{where}/mine.c",
                        "-o", f"{where}/mine.so"))
            self.assertIn("variable postattach", self.pmodule("check", "./mine.so", cwd=where).stdout)
        for again in (["mine"], ["mine", "--lang", "c"]):
            self.assertIn(" exists; ", self.pmodule("new", *again, cwd=where, status=125).stderr)
        for bad in (["../x"], ["x/y"], [""], ["-o", "f"], ["a", "--lang", "rust"], ["a", "b"]):
            self.assertIn("DP-USAGE", self.pmodule("new", *bad, cwd=where, status=125).stderr)
        self.assertEqual(sorted(os.listdir(where)), ["mine.c", "mine.lua", "mine.so"])

    def test_check_and_list_say_what_a_module_is(self):
        good, bad = os.path.join(MODULES, "recorder.so"), os.path.join(MODULES, "old_abi.so")
        p = self.pmodule("check", good, bad, status=121)
        self.assertEqual(p.stdout, f"ok: recorder  {os.path.realpath(good)}  preattach attach variable frame thread postattach\n")
        self.assertIn("DP-PMODULE", p.stderr)
        self.assertIn("built for version 2", p.stderr)
        self.pmodule("check", bad, status=125)
        self.assertIn("recorder", self.pmodule("list", good).stdout)
        p = self.pmodule("list", "--modules-path", MODULES, status=121)  # some of them are bad
        self.assertEqual([line.split()[0] for line in p.stdout.splitlines()], ["conformance", "misbehave", "printer", "recorder"])
        for words in (["run"], ["run", "/dev/null"], ["what"], [], ["run", "no.dps", "--module-load", good, "-o", "x"]):
            self.pmodule(*words, status=125)
        self.assertIn("pmodule new NAME", self.pmodule("--help").stdout)
        r = harness.tool("snapshot", os.getpid(), "--module-load", "deadlck", status=harness.OWN_FAILURE)
        self.assertRegex(r.stderr, r"cannot find the module deadlck, here or in \S+, which has deadlock, heap, leaks, \w+")

    def test_the_tool_exports_the_functions_of_the_header_and_no_others(self):
        with open(os.path.join(harness.ROOT, "pmodules", "pmodule.h")) as f:
            wanted = {line.split("(")[0].replace("*", " ").split()[-1] for line in f if line.startswith("PMODULE_API ")}
        p = self.ok(run("nm", "-D", "--defined-only", harness.DYNPROBE))
        found = {line.split()[-1] for line in p.stdout.splitlines() if line.split()[1] == "T"}
        self.assertEqual(wanted - found, set())
        self.assertEqual({name for name in found - wanted if name.startswith("dp_")}, set())


if __name__ == "__main__":
    harness.main()
