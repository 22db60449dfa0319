# SPDX-License-Identifier: MIT
"""Tests pmodules in Lua on live programs: the ready-made ones find their faults, and modules written for Backtrace's ptrace run
unchanged.
"""

import json
import os
import re
import resource
import shutil
import subprocess
import unittest

import binutils
import harness
from harness import DYNPROBE, ROOT, Case, target_path

READY_MADE = os.path.join(ROOT, "pmodules", "scripts")
CONFORMANCE = os.path.join(ROOT, "tests", "e2e", "pmodules")
LIMIT = ("--module-timeout", 20000)


class PmoduleCase(Case):
    def run_tool(self, *args, tool=None, status=0):
        return harness.tool(*args, binary=tool, status=status)

    def snapshot(self, target, *modules, options=(), tool=None):
        """The snapshot as text, and the output of the command that took it."""
        path = self.path("t.dps")
        loads = [word for m in modules for word in ("--module-load", m)]
        taken = self.run_tool("snapshot", target.pid, "-o", path, *LIMIT, *options, *loads, tool=tool)
        return self.run_tool("show", path, tool=tool).stdout, taken.stderr


class Elements(PmoduleCase):
    """The walk over a heap array with which most modules begin: on a live process, a core, and a saved snapshot."""

    MODULE = os.path.join(CONFORMANCE, "elements.lua")
    PRINTED = [f"{10 + i} {0.5 * i:.1f} {20 + i} {20 + i} {20 + i} {20 + i} inside" for i in range(5)] + ["list\t60", "raised\ttrue"]

    def check(self, done, path):
        """print() writes to standard output, before the file's name."""
        self.assertEqual(done.stdout.splitlines(), self.PRINTED + [path], done.stderr)
        self.assertEqual(len(re.findall("raised for ", done.stderr)), 1, done.stderr)
        times = re.search(r"a variable callback failed (\d+) times; the first error is above", done.stderr)
        self.assertGreater(int(times[1]), 1, done.stderr)
        shown = self.run_tool("show", path).stdout
        self.assertIn("[ff] <unavailable> <unavailable>% of 7", shown)
        attributes = harness.shown(path)["attributes"]
        self.assertEqual(attributes["pmodule.elements.errors"], int(times[1]))
        self.assertEqual((attributes["missing.int"], attributes["missing.string"]), ("<unavailable>", "<unavailable> and 2"))

    def test_of_a_live_process(self):
        path = self.path("live.dps")
        self.check(self.run_tool("snapshot", self.target("elements").pid, *LIMIT, "--module-load", self.MODULE, "-o", path, status=harness.EXIT_PARTIAL), path)

    def test_of_a_core(self):
        most = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (most, most))
        subprocess.run([target_path("elements"), "crash"], cwd=self.dir, check=False)
        cores = [name for name in os.listdir(self.dir) if name.startswith("core")]
        if not cores:
            self.skipTest("no core is written here (kernel.core_pattern, ulimit -H -c)")
        path = self.path("core.dps")
        self.check(self.run_tool("snapshot", "--core", self.path(cores[0]), target_path("elements"), *LIMIT, "--module-load", self.MODULE, "-o", path, status=harness.EXIT_PARTIAL), path)

    def test_print_with_pmodule_run(self):
        path, kept, module = self.path("bare.dps"), self.path("again.dps"), self.path("says.lua")
        with open(module, "w") as f:
            f.write('pmodule.define { id = "says", load = function() print("loaded")\n'
                    'pmodule.register(pmodule.event.thread, function(t) print("thread", t:tid() > 0) end) end }\n')
        self.run_tool("snapshot", self.target("elements").pid, "-o", path)
        done = self.run_tool("pmodule", "run", path, *LIMIT, "--module-load", module, "-o", kept)
        self.assertEqual(done.stdout.splitlines(), ["loaded", "thread\ttrue", kept])
        self.assertEqual(self.run_tool("pmodule", "check", module).stdout.splitlines()[-1], "loaded")


class ReadyMade(PmoduleCase):
    def module(self, name):
        return os.path.join(READY_MADE, name + ".lua")

    def test_deadlock_names_the_ring_and_who_waits_for_it(self):
        t = self.target("ailing", "deadlock")
        shown, said = self.snapshot(t, self.module("deadlock"))
        self.assertRegex(said, r"(?m)^dynprobe: deadlock: thread \d+ \(ailing\) waits for mutex lock_")
        self.assertRegex(shown, r"classifiers +deadlock\n")
        ring = re.search(r"critical: deadlock: thread (\d+) .* waits for mutex (lock_[ab]) .*, held by thread (\d+) \(ailing\); "
                         r"thread (\d+) .* waits for mutex (lock_[ab]) .*, held by thread (\d+) \(ailing\)", shown)
        self.assertTrue(ring, shown)
        self.assertEqual((ring[1], ring[3]), (ring[6], ring[4]))
        self.assertNotEqual(ring[2], ring[5])
        self.assertRegex(shown, r"waits for mutex lock_a \S+, held by thread \d+ \(ailing\) \(deadlock\)")
        healthy, said = self.snapshot(self.target("ailing", "heap"), self.module("deadlock"))
        self.assertNotIn("critical", healthy)
        self.assertNotIn("deadlock:", said)

    @unittest.skipUnless(os.path.exists(target_path("locks")), "no C++ compiler")
    def test_deadlock_knows_locks_of_every_kind(self):
        t = self.target("locks")
        shown, _ = self.snapshot(t, self.module("deadlock"))
        said = {name: text for name, text in re.findall(r'Thread \d+ "([\w-]+)"[^\n]*\n(?:(?!Thread ).*\n)*? +[#!] (?:critical: deadlock: )?(waits for .*) \(deadlock\)', shown)}
        ring = re.search(r"critical: deadlock: (thread .*); (thread .*) \(deadlock\)\n", shown)
        self.assertEqual({re.sub(r"\d{3,}|\(0x\w+\)", "N", part) for part in ring.groups()}, {
            "thread N (ring-a) waits for rwlock shared_two N, held by thread N (ring-b), for writing",
            "thread N (ring-b) waits for mutex mutex_one N, held by thread N (ring-a)"}, shown)
        by_main = f"held by thread {t.pid} (locks)"
        for name, words in {
            "ring-a": ("rwlock shared_two", "held by thread", "(ring-b)"), "ring-b": ("mutex mutex_one", "(ring-a)"), "self": ("self_seven", ": itself"),
            "recursive": ("mutex recursive_three", by_main), "inherit": ("mutex inherit_five", by_main), "robust": ("mutex robust_eight", by_main),
            "timed": ("mutex timed_six", by_main), "writer": ("rwlock shared_read", "held by 1 readers"), "reader": ("rwlock shared_two", "(ring-b), for writing"),
            "condition": ("condition variable condition_four",), "spin": ("spin lock spin_nine", "not recorded")}.items():
            for word in words:
                self.assertIn(word, said.get(name, ""), f"{name}: {said}")
        a = harness.shown(self.path("t.dps"))["attributes"]
        self.assertEqual([a[f"deadlock.{n}"] for n in ("rings", "waiting", "conditions", "spinning")], [2, 10, 1, 1])

    def test_deadlock_is_found_in_a_saved_snapshot(self):
        """The snapshot was taken without the module, which runs after the program has ended."""
        t = self.target("ailing", "deadlock")
        self.snapshot(t)
        t.close()
        self.run_tool("pmodule", "run", self.path("t.dps"), *LIMIT, "--module-load", self.module("deadlock"), "-o", self.path("again.dps"))
        shown = self.run_tool("show", self.path("again.dps")).stdout
        self.assertRegex(shown, r"classifiers +deadlock\n")

    def test_heap_tells_freed_and_damaged_blocks(self):
        shown, _ = self.snapshot(self.target("ailing", "heap"), self.module("heap"))
        self.assertIn("stale points to a freed block of 40 bytes, in a thread's cache", shown)
        self.assertIn("damaged points to a damaged block of 40 bytes", shown)
        self.assertIn("0x4141414141414141", shown)
        self.assertNotIn("fine points to", shown)
        self.assertRegex(shown, r"classifiers .*heap-corrupt")

    def test_heap_runs_on_a_file_that_keeps_little_of_the_heap(self):
        """The heap's first page is not there: no error, only fewer answers."""
        t, file = self.target("crowd", 2, 3, 1), self.path("little.dps")
        harness.tool("snapshot", t.pid, "-o", file, "--max-depth", 1, status=0)
        done = harness.tool("pmodule", "run", file, *LIMIT, "--module-load", self.module("heap"))
        self.assertEqual((done.returncode, "nil value" in done.stderr), (0, False), done.stderr)

    def test_heap_knows_every_list_and_pointers_into_blocks(self):
        shown, _ = self.snapshot(self.target("ailing", "heap-lists"), self.module("heap"))
        for words in ("fast points to a freed block of 56 bytes, in a fast list of malloc", "listed points to a freed block of 2008 bytes, in a list of malloc",
                      "into_listed points 100 bytes into a freed block of 2008 bytes", "merged points 2016 bytes into a freed block of 4024 bytes",
                      "other_arena points to a freed block of 1208 bytes, in a list of malloc", "it is part of the free rest of the heap"):
            self.assertIn(words, shown)
        for name in ("large", "into_used"):
            self.assertNotIn(f"{name} points", shown)

    def test_heap_finds_a_block_that_is_freed_twice_before_malloc_does(self):
        shown, _ = self.snapshot(self.target("ailing", "heap-twice"), self.module("heap"))
        self.assertRegex(shown, r"the block at 0x[0-9a-f]+ is in a thread's cache twice: it was freed twice")
        self.assertRegex(shown, r"classifiers .*double-free")

    def test_heap_finds_the_heap_in_a_core_file(self):
        """The core file has no name for the heap."""
        t = self.target("ailing", "heap")
        self.run_tool("snapshot", "--core", self.core(t.pid), "-o", self.path("c.dps"), *LIMIT, "--module-load", self.module("heap"))
        self.assertIn("stale points to a freed block of 40 bytes, in a thread's cache", self.run_tool("show", self.path("c.dps")).stdout)

    def test_heap_says_what_malloc_said(self):
        shown, _ = self.snapshot(self.target("ailing", "double-free"), self.module("heap"))
        self.assertIn("free(): double free detected", shown)
        self.assertRegex(shown, r"classifiers .*double-free")

    @unittest.skipUnless(os.path.exists(target_path("containers")), "no C++ compiler")
    def test_stl_shows_what_containers_hold(self):
        shown, _ = self.snapshot(self.target("containers"), self.module("stl"))
        lines = [line.strip() for line in shown.splitlines()]
        hold = lines[lines.index('small = "short"'):]
        after = lambda head, n: hold[hold.index(head) + 1 : hold.index(head) + 1 + n]
        self.assertIn('empty = ""', hold)
        self.assertTrue(any(line.startswith('large = "' + "x" * 256) and line.endswith("(300 bytes)") for line in hold), shown)
        self.assertEqual(after("numbers = vector of 5", 5), [f"[{i}] = {n}" for i, n in enumerate([3, 1, 4, 1, 5])])
        self.assertEqual(after("words = vector of 2", 2), ['[0] = "one"', '[1] = "two"'])
        self.assertEqual(after("points = vector of 2", 2), ["[0] = {x = 1, y = 2}", "[1] = {x = 3, y = 4}"])
        self.assertEqual(after("names = map of 3", 3), ['[0] = {1, "un"}', '[1] = {2, "deux"}', '[2] = {3, "trois"}'])
        self.assertEqual(after("set = set of 3", 3), ["[0] = 10", "[1] = 20", "[2] = 30"])
        self.assertEqual(after("ages = unordered_map of 1", 1), ['[0] = {"ada", 36}'])

    @unittest.skipUnless(os.path.exists(target_path("containers")), "no C++ compiler")
    def test_a_core_shows_containers_unasked_and_with_no_file_of_the_working_directory(self):
        core = self.core(self.target("containers").pid)
        self.written("stl", 'error("loaded")')
        self.written("stl.lua", 'error("loaded")')
        for args in (("show", core), ("report", core, "-o", "-"), ("snapshot", "--core", core, "-o", self.path("core.dps")), ("show", self.path("core.dps"))):
            p = harness.tool(*args, status=0, cwd=self.dir)
            self.assertNotIn("loaded", p.stdout[:2000] + p.stderr)
            if args[0] == "show":
                self.assertRegex(p.stdout, r'names = map of 3\n +\[0\] = \{1, "un"\}')
        own = self.written("mine.lua", 'pmodule.define{ id = "stl", load = function() end }')
        harness.tool("snapshot", "--core", core, "-o", self.path("mine.dps"), "--module-load", own, status=0)
        self.assertNotIn("map of 3", harness.tool("show", self.path("mine.dps"), status=0).stdout, "a module of that id takes its place")

    @unittest.skipUnless(os.path.exists(target_path("containers")), "no C++ compiler")
    def test_stl_knows_the_rest_and_believes_no_damaged_container(self):
        shown, _ = self.snapshot(self.target("containers"), self.module("stl"))
        lines = [line.strip() for line in shown.splitlines()]
        at = lambda head: next(i for i, line in enumerate(lines) if re.sub("0x[0-9a-f]+", "N", line) == head)
        for head, behind in {
            "bits = vector of 4 bits: 1011": [], "both_ends = deque of 200": [f"[{i}] = {198 - 2 * i}" for i in range(64)],
            "chain = list of 2": ['[0] = "a"', '[1] = "b"'], "forward = forward_list of 3": ["[0] = 7", "[1] = 8", "[2] = 9"],
            "some = optional 5": [], "nothing = optional (empty)": [], "somewhere = optional": ["value = {x = 5, y = 6}"],
            "alone = unique_ptr N": ["* = {x = 7, y = 8}"], "nobody = unique_ptr (empty)": [], "closed = unique_ptr N": ["* = {x = 9, y = 10}"],
            "shared = shared_ptr N (2 shared, 1 weak)": ["* = 11"], "weak = weak_ptr N (2 shared, 1 weak)": ["* = 11"],
            "expired = weak_ptr (expired)": [], 'view = "view"': []}.items():
            i = [line for line in lines[at(head) + 1:] if not line.startswith("#")][:len(behind)]
            self.assertEqual(i, behind, head)
        self.assertRegex(shown, r'choice = variant<std::.*basic_string.*> "chosen"')
        self.assertIn("64 of 200 elements are shown", shown)
        self.assertNotRegex(shown, "wild = .*vector of|nowhere = .*deque of")
        self.assertIn("64 of 4611686018427387904 elements are shown", shown)  # the walk of a ring ends

    def test_threads_are_grouped_and_modules_found_by_name(self):
        """As installed: dynprobe in bin, modules in share."""
        os.makedirs(self.path("bin"))
        shutil.copy(DYNPROBE, self.path("bin/dynprobe"))
        shutil.copytree(READY_MADE, self.path("share/dynprobe/pmodules"))
        shown, _ = self.snapshot(self.target("crowd", "5", "3", "1"), "threads", tool=self.path("bin/dynprobe"))
        self.assertRegex(shown, r'"1\. 5 threads": \{"stack": "wait_marked < ')
        self.assertIn("5 threads have this stack", shown)
        listed = subprocess.run([self.path("bin/dynprobe"), "pmodule", "list"], capture_output=True, text=True, check=True).stdout
        self.assertEqual([line.split()[0] for line in listed.splitlines()], sorted(n[:-4] for n in os.listdir(READY_MADE)))


class Leaks(PmoduleCase):
    """What tests/targets/leaky.c loses is named, and nothing else."""

    LOST = {(88, 100): None, (4008, 7): "a page of the book", (56, 5): "leaky_table", (184, 6): None, (136, 20): None, (216, 3): None, ((1 << 20) + 4096 - 16, 1): None}

    def taken(self, *words, options=("--mode", "fork")):
        """Its notes, attributes and classifiers."""
        path = self.path("leaks.dps")
        self.run_tool("snapshot", *words, "-o", path, *LIMIT, *options, "--module-load", os.path.join(READY_MADE, "leaks.lua"))
        snapshot = harness.shown(path)
        return [n["text"] for n in snapshot.get("notes", [])], snapshot["attributes"], snapshot.get("classifiers", [])

    def check_lost(self, notes, attributes, classifiers):
        groups = json.loads(attributes["leaks.groups"])
        self.assertEqual({(g["size"], g["count"]): g.get("what") for g in groups}, self.LOST, notes)
        self.assertEqual([g["bytes"] for g in groups], sorted((g["size"] * g["count"] for g in groups), reverse=True))
        self.assertEqual(sum(g["within"] for g in groups), 19, "of the list of 20 nodes only the first has nothing that points to it")
        self.assertEqual((attributes["leaks.blocks"], attributes["leaks.within"]), (142, 19))
        self.assertEqual(attributes["leaks.bytes"], sum(g["bytes"] for g in groups))
        self.assertGreater(attributes["leaks.used"], 142 + 1000)
        self.assertIn("leak-candidates", classifiers)
        self.assertRegex(notes[0], r"^leak candidates: no pointer was found to 142 blocks \(1\.1 MB\) of \d+ blocks \(\S+ MB\) in use; to 19 of them other candidates point$")
        self.assertEqual(len(notes), 1 + len(groups) + 1, "no doubts")
        self.assertEqual(notes[-1], "most of what is in use: 1 block of 1052656 bytes (1.1 MB); 1 block of 303088 bytes (303 kB); 1000 blocks of 72 bytes (72.0 kB)")
        used = {(g["size"], g["count"]): g.get("what") for g in json.loads(attributes["leaks.used.groups"])}
        self.assertEqual((used[4008, 7], used[312, 50]), ("a page of the book", None))

    def test_exactly_what_was_lost_is_named(self):
        self.check_lost(*self.taken(self.target("leaky").pid))

    @unittest.skipUnless(os.path.exists(target_path("leaky-static")), "no static C library")
    def test_in_a_static_program(self):
        """Its heap begins with other things, and its arena is in its own data."""
        groups = json.loads(self.taken(self.target("leaky-static").pid)[1]["leaks.groups"])
        self.assertEqual({(g["size"], g["count"]) for g in groups}, set(self.LOST))

    @harness.needs("gdb")
    def test_in_a_core(self):
        core = binutils.core_of_crash(self.path("core"), target_path("leaky"), "crash")
        self.check_lost(*self.taken("--core", core, options=()))

    def test_nothing_lost_is_said_plainly(self):
        """All blocks have a pointer somewhere: in a register, a stack, thread-local storage, memory that children do not get, ..."""
        notes, attributes, classifiers = self.taken(self.target("leaky", "nothing").pid)
        self.assertEqual(len(notes), 2, notes)
        self.assertTrue(notes[1].startswith("most of what is in use: 1 block of 303088 bytes"), notes)
        self.assertRegex(notes[0], r"^no leak candidates: a pointer leads to each of \d+ blocks \(\S+ kB\) in use$")
        self.assertEqual((attributes["leaks.blocks"], classifiers), (0, []))

    def test_groups_beyond_the_limit_are_counted(self):
        notes, _, _ = self.taken(self.target("leaky").pid, options=("--mode", "fork", "--module", "leaks:groups,2"))
        self.assertEqual((len(notes), notes[-2]), (5, "and 134 blocks of other sizes (--module=leaks:groups,20)"))

    def test_it_needs_the_memory_of_one_moment(self):
        t = self.target("leaky")
        notes, attributes, _ = self.taken(t.pid, options=())
        self.assertEqual(notes, ["leak candidates are not known: it takes memory of one moment: a copy (--mode fork) or a core (--core)"])
        self.assertNotIn("leaks.blocks", attributes)
        self.run_tool("pmodule", "run", self.path("leaks.dps"), *LIMIT, "--module-load", os.path.join(READY_MADE, "leaks.lua"), "-o", self.path("again.dps"))
        again = harness.shown(self.path("again.dps"))["notes"]
        self.assertIn("the file keeps only some pages of the memory", again[0]["text"])

    def test_little_time_is_no_answer(self):
        t = self.target("leaky", "many", 200000)
        path = self.path("short.dps")
        self.run_tool("snapshot", t.pid, "-o", path, "--mode", "fork", "--module-timeout", "1ms", "--module-load", os.path.join(READY_MADE, "leaks.lua"), status=None)
        self.assertNotIn("leaks.blocks", harness.shown(path)["attributes"])

    def test_another_allocator_is_named(self):
        """An empty library of that name, but all that tells them apart is the name."""
        other = harness.compiled(self.path("libjemalloc.so.2"), "gcc", "-shared", "-fPIC", text="int unused;")
        t = self.target("leaky", env=harness.environment(LD_PRELOAD=other))
        notes, _, _ = self.taken(t.pid)
        self.assertEqual(notes, ["leak candidates are not known: libjemalloc.so.2 allocates here, and only the heap of glibc's malloc is known"])

    def test_the_file_does_not_grow_by_the_heap(self):
        t = self.target("leaky", "many", 20000)
        self.taken(t.pid)
        self.assertLess(os.path.getsize(self.path("leaks.dps")), 200000, "20 MB were read")


class Conformance(PmoduleCase):
    """Modules written like others' (tests/e2e/pmodules), on a program with the data that they search."""

    def run_modules(self, *names, options=()):
        t = self.target("specimen")
        modules = [os.path.join(CONFORMANCE, name + ".lua") for name in names]
        shown, said = self.snapshot(t, *modules, options=("--fault-thread", t.pid, *options))
        self.assertNotIn("error", said)
        whole = harness.shown(self.path("t.dps"))
        t.stop()
        self.assertIn("RESULT OK", t.output())
        return shown, said, whole["attributes"]

    def test_a_match_is_copied_when_it_is_registered(self):
        shown, _, attributes = self.run_modules("filtered")
        self.assertEqual(attributes["filtered.seen"], 1)  # not `request` of serve(), nor main's
        self.assertEqual(shown.count("request answered with 404"), 1)
        self.assertIn("# 1 requests in specimen", shown)
        self.assertEqual(shown.count("the frame that was asked for"), 1)

    def test_values_are_walked_through_queues_arrays_and_pointers(self):
        _, _, attributes = self.run_modules("walk")
        self.assertEqual(attributes["walk.weights"], "10+20+30")
        self.assertEqual(attributes["walk.through_pointer"], "10+20+30")
        self.assertEqual(attributes["walk.cells"], "100+101+102+103")
        self.assertEqual(attributes["walk.high_bits"], "fedcba9876543210")
        self.assertIn("has no member 'stqh_frist'", attributes["walk.error"])

    def test_older_names_parameters_tags_and_options(self):
        shown, said, attributes = self.run_modules("parameters", options=("--module", "parameters:depth,7"))
        self.assertRegex(attributes["parameters.serve"], "^request:(true|false),attempt:(true|false)$")
        self.assertEqual(attributes["parameters.option"], "7")
        self.assertRegex(shown, r"tags +looked-at")
        self.assertRegex(said, r"100% of \d+")

    def test_variables_are_made_below_a_global(self):
        shown, _, _ = self.run_modules("table", options=("--global", "table_g"))
        self.assertIn("4 of 5 entries are shown", shown)
        self.assertIn('entries = {"epsilon=4", "gamma=2", "alpha=0", "delta=3"}', shown)

    def test_globals_and_raw_memory_are_read_after_the_detach(self):
        shown, _, attributes = self.run_modules("observer", options=("--global", "connections_g"))
        self.assertIn('"21": {"peer": "10.0.0.2", "share": "100%", "payload": "GET /"}', shown)
        self.assertNotIn('"22"', shown)  # a NULL pointer
        self.assertEqual(attributes["observer.missing"], "nil")

    def test_requests_threads_and_made_frames(self):
        shown, _, attributes = self.run_modules("requests")
        self.assertIn("# serves /index.html for 10.0.0.2", shown)
        self.assertIn('"serving"', shown)
        self.assertRegex(shown, r"handler of /index.html \(\) at /srv/site/routes.conf:12 \(made by a pmodule\)")
        self.assertEqual((attributes["request.path"], attributes["request.status"]), ("/index.html", 404))


if __name__ == "__main__":
    harness.main()
