# SPDX-License-Identifier: MIT
"""Tests options that select many probes: returns, every instruction of a function, patterns, exclusions, DTrace's syntax, lists in files.
"""

import os
import re
import shutil
import subprocess

import harness
from binutils import exported
from harness import Case, needs, target_path, wait_until
from redis_server import RedisServer

ROUNDS = 40
CALLS = 16 * ROUNDS  # of each function of `points`
LAYOUTS = 1000 if harness.FULL else 20  # random layouts of the address space
NINE = ["do_nothing2_entry", *(f"do_nothing2_0x{x}" for x in "0147abc"), "do_nothing2_return"]


def hits(p):
    return p["recorded"] + p["lost"]["total"]


class Points(Case):
    """`points` runs ROUNDS rounds, so that every count is known."""

    program = "points"

    def run_points(self, *args):
        r = self.dynprobe("-q", *args, "--", target_path(self.program), ROUNDS, 0)
        self.assertIn(r.status, (0, 121), str(r))
        self.assertIn("RESULT OK", r.out, str(r))
        return r

    def probes(self, r):
        return {p["name"]: p for p in r.summary["probes"]}

    def placed(self, r):
        return {p["name"]: hits(p) for p in r.summary["probes"] if p["tactic"]}

    def returns_of(self, function):
        """Entries and returns of one function; None if a return could not be placed."""
        r = self.run_points("--function", function, "--return", function)
        placed, asked = self.placed(r), self.probes(r)
        self.assertIn(function, asked)
        self.assertGreaterEqual(len(asked), 2, str(r))
        if len(placed) < len(asked):
            return None
        return placed.pop(function), placed

    def test_each_function_returns_as_often_as_it_is_entered(self):
        names = "do_nothing2 two_returns tail_direct tail_memory tail_register tail_conditional by_table with_cold skips_lock".split()
        compared = 0
        for name in names:
            with self.subTest(name):
                got = self.returns_of(name)
                if got:
                    compared += 1
                    self.assertGreaterEqual(got[0], CALLS)
                    self.assertEqual(got[0], sum(got[1].values()), got)
        self.assertGreaterEqual(compared, 6)

    def of_pattern(self, status, *args):
        r = self.dynprobe(*args, "--", target_path(self.program), ROUNDS, 0)
        self.assert_ok(r, status)
        return r

    def test_what_a_pattern_finds_and_cannot_probe_is_a_note(self):
        r = self.of_pattern(0, "--return", "points!*")
        s = r.summary
        self.assertGreater(s["placed"], 5)
        self.assertGreater(s["left_out"], 0)
        self.assertEqual((s["refused"], s["asked"]), (s["left_out"], s["placed"] + s["left_out"]))
        tags = ", ".join(f"{tag} {n}" for tag, n in s["refusals"].items())
        said = re.findall(r"dynprobe: (\d+) of (\d+) places of patterns cannot be probed in \d+ \((.*)\); -v lists them\n", r.err)
        self.assertEqual([tuple(map(int, x[:2])) for x in said], [(s["left_out"], s["asked"])], r.err)
        self.assertEqual(sorted(said[0][2].split(", ")), sorted(tags.split(", ")))
        self.assertNotIn("refused", r.err)
        self.assertRegex(self.of_pattern(0, "-v", "--return", "points!*").err, r"dynprobe: refused points!never_returns in \d+: .*DP-NO-RETURN")

    def test_what_was_asked_for_by_name_is_refused_beside_a_pattern(self):
        r = self.of_pattern(121, "--return", "points!*", "--return", "never_returns")
        self.assertEqual(r.summary["refused"], r.summary["left_out"] + 1)
        self.assertRegex(r.err, "dynprobe: refused points!never_returns")

    def test_a_pattern_of_which_nothing_is_probed_is_refused(self):
        r = self.of_pattern(121, "--return", "points!never_ret*", "--function", "two_returns")
        self.assertEqual((r.summary["placed"], r.summary["refused"], r.summary["left_out"]), (1, 1, 0), str(r))

    def test_a_function_without_some_of_its_places_is_a_note(self):
        r = self.of_pattern(0, "--probe", "skips_lock:*")
        self.assertEqual(r.summary["left_out"], r.summary["refused"])
        self.assertGreater(r.summary["left_out"], 0)

    def test_a_fragment_without_a_symbol_is_known_by_its_way_back(self):
        self.program = "points-stripped"
        r = self.run_points("--function", "with_cold", "--return", "with_cold")
        asked, placed = self.probes(r), self.placed(r)
        self.assertEqual(set(asked), {"with_cold", "with_cold_return", "with_cold_return_2"}, str(r))
        if len(placed) == 3:
            self.assertEqual((placed["with_cold"], placed["with_cold_return"] + placed["with_cold_return_2"]), (CALLS, CALLS), placed)

    def test_main_of_a_stripped_program_returns_once(self):
        r = self.dynprobe("-q", "--return", "main", "--", target_path("spin-stripped"), 5, 0)
        self.assertEqual(r.out.count("RESULT OK"), 1, str(r))
        self.assertEqual(sum(self.placed(r).values()), 1 if self.placed(r) else 0, str(r))
        self.assertTrue(all(name.startswith("main_return") for name in self.probes(r)))

    def test_a_conditional_tail_jump_counts_only_when_it_is_taken(self):
        placed = self.placed(self.run_points("--return", "tail_conditional"))
        self.assertEqual(placed.get("tail_conditional_return"), CALLS // 2, placed)

    def test_a_function_that_its_first_instruction_leaves_has_no_duration(self):
        r = self.run_points("--return", "leaves_at_once", "-t", "duration", "--function", "leaves_at_once")
        refused = self.probes(r)["leaves_at_once_return"]
        self.assertEqual(refused["tag"], "DP-NO-VALUE")
        self.assertIn("first instruction leaves it", refused["reason"])
        self.assertEqual(self.placed(r), {"leaves_at_once": CALLS})
        placed = self.placed(self.run_points("--return", "leaves_at_once"))
        self.assertEqual(placed, {"leaves_at_once_return": CALLS})

    def test_a_condition_of_the_user_holds_as_well(self):
        placed = self.placed(self.run_points("--return", "tail_conditional", "--when", "edi == 4"))
        self.assertEqual(placed.get("tail_conditional_return"), ROUNDS, placed)
        placed = self.placed(self.run_points("--return", "tail_conditional", "--when", "edi == 5"))
        self.assertEqual(placed.get("tail_conditional_return"), 0, placed)

    def test_the_table_of_a_switch_is_no_return(self):
        r = self.run_points("--return", "by_table")
        self.assertIn("matched 1 probe\n", self.unquiet("--return", "by_table"))
        self.assertEqual(set(self.probes(r)), {"by_table_return"})

    def test_returns_in_a_cold_part_are_the_functions(self):
        r = self.run_points("--return", "with_cold")
        self.assertEqual({p["name"]: p["spec"] for p in r.summary["probes"]},
                         {"with_cold_return": "points!with_cold+0x13", "with_cold_return_2": "points!with_cold.cold+0x13"})

    def unquiet(self, *args):
        """Its output except events and summary."""
        r = self.dynprobe(*args, "--", target_path("points"), 1, 0)
        return r.err

    def test_every_instruction_of_do_nothing2(self):
        """Nine probes in thirteen bytes, the last at the end of .text: in one of eight layouts, the only possible target of its jump is where the
        heap may grow."""
        self.assertIn("matched 9 probes\n", self.unquiet("--probe", "do_nothing2:*"))
        for _ in range(LAYOUTS):
            self.nine("--probe", "do_nothing2:*", "--count", "--no-record")

    def nine(self, *args):
        r = self.run_points(*args)
        self.assertEqual(list(self.probes(r)), NINE)
        self.assertEqual({p["tag"] for p in r.summary["probes"]}, {None}, str(r))
        # calls by main, and tail calls by five functions, one of which makes them for every second argument only
        self.assertEqual(self.placed(r), dict.fromkeys(NINE, CALLS + 3 * CALLS + CALLS // 2), str(r))
        return r

    def test_nine_hits_of_a_call_come_in_order(self):
        for tactics in ((), ("--tactic", "trap"), ("--tactic", "pun,trap")):
            r = self.dynprobe("--probe", "do_nothing2:*", *tactics, "--buffer-size", "16M", "--on-full", "block=10s", "--", target_path("points"), ROUNDS, 0)
            self.assertIn("RESULT OK", r.out, str(r))
            calls = [[event["probe"] for event in r.events[i:i + 9]] for i in range(0, len(r.events), 9)]
            self.assertEqual(len(calls), CALLS + 3 * CALLS + CALLS // 2, (tactics, r.summary["lost"]))
            self.assertEqual([call for call in calls if call != NINE][:1], [], tactics)

    def test_descriptions_as_dtrace_has_them(self):
        t = self.target("points", 0, 500)
        r = self.dynprobe("-n", f"pid{t.pid}:points:two_returns:entry", "-n", f"pid{t.pid}::two_returns:return", "-d", "0.2", "--count", "--no-record")
        self.assertEqual(r.status, 0, str(r))
        counts = self.placed(r)
        self.assertAlmostEqual(counts["two_returns_entry"], sum(n for name, n in counts.items() if "return" in name[len("two_returns"):]), delta=1)
        self.assertGreater(counts["two_returns_entry"], 16)
        for words in (("-n", "pid*::two_returns:entry", "-n", f"pid{t.pid}::two_returns:entry"), ("-n", f"pid{t.pid}::two_returns:entry", "-n", "pid1::x:entry")):
            self.assertIn("[DP-USAGE]", self.dynprobe(*words, json_events=False).err)
        self.assertIn("DP-NO-SYMBOL", self.dynprobe("-n", f"pid{t.pid}::no_such_function:entry").err)
        self.assert_result_ok(t)

    def test_stacks_of_stripped_programs(self):
        """The entry point has a name; functions without one are named by their start."""
        r = self.dynprobe("--syscall", "getdents64", "-t", "backtrace", "-n", "1", "--no-record", "-c", "ls /", json_events=False)
        self.assertRegex(r.err, r"main\+0x\w+/0x\w+ \[ls\]\n(.*\n)+ +#\d+ +_start\+0x\w+/0x\w+ \[ls\]\n", str(r))
        self.assertRegex(r.err, r"(func@0x\w+|\w+)\+0x\w+/0x\w+ \[ls\]\n +#\d+ +main\+", str(r))
        self.assertNotIn("[ls]+0x", r.err)
        with open(self.path("words"), "w") as f:
            f.writelines(f"{i * 7919 % 1000003}\n" for i in range(300000))
        r = self.dynprobe("--profile", 997, "--folded", "-c", f"sort {self.path('words')} -o /dev/null", json_events=False)
        self.assertRegex(r.err, r"(?m)^_start;__libc_start_main;[^ ]*;main;(func@0x|\w)", str(r))

    def test_without_traps_a_place_may_be_refused(self):
        for _ in range(LAYOUTS):
            r = self.run_points("--probe", "do_nothing2:*", "--no-trap", "--count", "--no-record")
            self.assertNotIn("trap", {p["tactic"] for p in r.summary["probes"]})
            self.assertLessEqual({p["tag"] for p in r.summary["probes"]}, {None, "DP-OVERLAP", "DP-NO-SPACE"})

    def test_NO_RETURN(self):
        r = self.dynprobe("--return", "never_returns", "--", target_path("points"), 1, 0)
        self.assert_refused(r, "DP-NO-RETURN", "never_returns")
        r = self.run_points("--return", "never_returns", "--function", "two_returns")
        self.assertEqual(self.placed(r), {"two_returns": CALLS})
        self.assertEqual(self.probes(r)["never_returns_return"]["tag"], "DP-NO-RETURN")

    def test_NO_SIZE(self):
        r = self.dynprobe("--return", "endless", "--", target_path("points"), 1, 0)
        self.assert_refused(r, "DP-NO-SIZE", "endless")
        self.assertEqual(self.placed(self.run_points("--function", "endless")), {"endless": CALLS})

    def test_what_jumps_over_a_prefix_is_left_alone(self):
        r = self.run_points("--probe", "skips_lock:*")
        tags = {p["name"]: p["tag"] for p in r.summary["probes"]}
        self.assertEqual(tags["skips_lock_0xb"], "DP-NOT-BOUNDARY", tags)

    def test_an_indirect_jump_that_cannot_be_told_is_said(self):
        self.assertRegex(self.unquiet("--return", "anywhere"), r"anywhere may also return by the indirect jump at \+0x")


class Patterns(Case):
    def setUp(self):
        super().setUp()
        self.t = self.target("points")

    def names(self, *args, n=50, status=0):
        """The names of the probes hit in a while, and dynprobe's messages."""
        r = self.attach(self.t, *args, "-n", n)
        self.assert_ok(r, status)
        return {p["name"] for p in r.summary["probes"]}, r

    def test_globs_of_functions(self):
        got, r = self.names("--function", "tail_*")
        self.assertEqual(got, {"tail_direct", "tail_memory", "tail_register", "tail_conditional"})
        self.assertIn("dynprobe: matched 4 probes\n", r.err)
        self.assertEqual({e["probe"] for e in r.events}, got)
        self.assertEqual(self.names("--function", "points!tail_[dm]*")[0], {"tail_direct", "tail_memory"})
        self.assertEqual(self.names("--probe", "tail_m*:entry")[0], {"tail_memory_entry"})
        self.assertEqual(self.names("--probe", "p*s!tail_m*")[0], {"tail_memory"})
        self.assert_clean(self.t.pid)
        self.assert_result_ok(self.t)

    def test_exceptions(self):
        self.assertEqual(self.names("--function", "tail_*", "-x", "*_memory", "--exclude", "points!tail_dir*")[0],
                         {"tail_register", "tail_conditional"})
        r = self.attach(self.t, "--function", "tail_*", "-x", "tail*", "-n", 1)
        self.assert_refused(r, "DP-NO-SYMBOL", "excluded by -x")

    def test_what_matches_nothing_is_an_error(self):
        self.assert_refused(self.attach(self.t, "--function", "nothing_like_*", "-n", 1), "DP-NO-SYMBOL", "nothing_like_*")
        self.assert_refused(self.attach(self.t, "--return", "tail_memori", "-n", 1), "DP-NO-SYMBOL", "did you mean tail_memory")
        self.assert_refused(self.attach(self.t, "--function", "libnone*!f*", "-n", 1), "DP-NO-MODULE")

    def test_dtraces_spelling(self):
        self.assertEqual(self.names("--probe", "pid$target:points:tail_m*:entry")[0], {"tail_memory_entry"})
        self.assertEqual(self.names("--probe", "pid$target:a.out:tail_memory:return")[0], {"tail_memory_return"})
        self.assertEqual(self.names("--probe", "pid$target::by_table:2")[0], {"by_table_0x2"})
        r = self.dynprobe("--probe", f"pid{self.t.pid}::tail_memory:entry", "-n", 5)
        self.assert_ok(r)
        self.assertEqual({e["probe"] for e in r.events}, {"tail_memory_entry"})
        self.assert_refused(self.attach(self.t, "--probe", "pid1::tail_memory:entry", "-n", 1), "DP-USAGE")

    def test_a_name_is_a_prefix_where_a_pattern_stands_for_many(self):
        self.assertEqual(self.names("--name", "mine", "--function", "tail_[dm]*")[0], {"mine_tail_direct", "mine_tail_memory"})
        self.assertEqual(self.names("--name", "mine", "--function", "tail_m*")[0], {"mine"})

    def test_names_are_unique(self):
        got, _ = self.names("--function", "tail_memory", "--function", "tail_direct", "--probe", "by_table+2", "--return", "tail_m*", "--name", "x_y",
                            "--return", "tail_d*")
        self.assertEqual(got, {"tail_memory", "tail_direct", "by_table_0x2", "tail_memory_return", "x_y"})

    def test_malformed_ones_show_the_place(self):
        for text, at in (("do_nothing2:", 12), ("foo+4:return", 3), ("pid$target:libc", 15), ("pid$target::foo:retrun", 16)):
            with self.subTest(text):
                r = self.attach(self.t, "--probe", text, "-n", 1)
                self.assert_refused(r, "DP-SYNTAX", f"\n  {text}\n  {' ' * at}^")
        self.assert_refused(self.attach(self.t, "--return", "tail_memory+2", "-n", 1), "DP-USAGE", "offset")
        self.assert_refused(self.attach(self.t, "--function", "tail_memory:*", "-n", 1), "DP-USAGE", "--probe")
        self.assert_clean(self.t.pid)

    def test_a_list_in_a_file(self):
        self.written("list", "# what we look at\ntail_memory:entry\n\n  tail_d*:entry # and this\n")
        self.assertEqual(self.names("--probe", "@" + self.path("list"))[0], {"tail_memory_entry", "tail_direct_entry"})
        self.assert_refused(self.attach(self.t, "--probe", "@" + self.path("none"), "-n", 1), "DP-USAGE")

    def test_too_many_are_refused_with_the_target_untouched(self):
        r = self.attach(self.t, "--probe", "*:*", "-n", 1)
        self.assert_refused(r, "DP-USAGE", "60000")
        self.assert_clean(self.t.pid)

    def test_another_process_without_them_is_no_reason_not_to_run(self):
        other = self.target("spin", 0, 200)
        r = self.dynprobe("--pid", self.t.pid, "--pid", other.pid, "--function", "tail_*", "-n", 50)
        self.assert_ok(r, 121)
        state = {(p["pid"], p["name"]): p["tag"] for p in r.summary["probes"]}
        self.assertEqual(len(state), 8)
        for (pid, name), tag in state.items():
            self.assertEqual(tag, None if pid == self.t.pid else "DP-NO-MODULE", name)
        self.assert_clean(other.pid)

    def test_the_same_program_twice(self):
        other = self.target("points")
        r = self.dynprobe("--pid", self.t.pid, "--pid", other.pid, "--return", "tail_memory", "-n", 60000)
        self.assert_ok(r)
        self.assertEqual({e["pid"] for e in r.events}, {self.t.pid, other.pid})

    def test_they_stay_by_their_own_names(self):
        attach = lambda *args, **kw: harness.tool(*args, env=harness.environment(HOME=self.dir, LTTNG_HOME=self.dir))
        p = attach("attach", "--pid", self.t.pid, "--sink", "ring", "--function", "tail_*", "--return", "tail_memory")
        self.assertEqual(p.returncode, 0, p.stderr)
        status = attach("status", "--pid", self.t.pid, "-f", "json").stdout
        for name in ("tail_direct", "tail_memory", "tail_register", "tail_conditional", "tail_memory_return"):
            self.assertIn(f'"{name}"', status)
        p = attach("add-context", "--pid", self.t.pid, "-e", "tail_memory_return", "-t", "reg:rax")
        self.assertEqual(p.returncode, 0, p.stderr)
        p = attach("detach", "--pid", self.t.pid)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assert_clean(self.t.pid)
        self.assert_result_ok(self.t)


PYTHON = "/usr/bin/python3"
PYTHON_WORK = "d = {}\nfor i in range(3000):\n    d[str(i)] = [i * 0.5, 'x' * (i % 17)]\n    s = repr(d[str(i)]) + '%d' % i\nprint(len(s), sum(map(len, d)))"
SQL = """CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 3000) INSERT INTO t SELECT i, printf('row %d', i * 7919 % 10007) FROM n;
SELECT count(*), max(b), min(upper(b)) FROM t; SELECT b FROM t WHERE b LIKE 'row 1%' ORDER BY b DESC LIMIT 5;"""


class RealPrograms(Case):
    """A function that only returns normally has as many returns as entries."""

    def compare(self, argv, functions, at_least, stdin=None):
        plain = subprocess.run(argv, capture_output=True, text=True, stdin=open(stdin) if stdin else subprocess.DEVNULL)
        args = [x for f in functions for x in ("--name", "in_" + f.split("!")[-1], "--function", f, "--name", "out_" + f.split("!")[-1], "--return", f)]
        r = self.dynprobe("-q", *args, "--", *argv, stdin=open(stdin) if stdin else subprocess.DEVNULL, timeout=300)
        self.assertIn(r.status, (0, 121), str(r))
        self.assertEqual(r.out, plain.stdout)
        compared = 0
        for f in (f.split("!")[-1] for f in functions):
            entry = [p for p in r.summary["probes"] if p["name"] == "in_" + f]
            leave = [p for p in r.summary["probes"] if re.fullmatch(rf"out_{f}(_{f}_return(_\d+)?)?", p["name"])]
            if all(p["tactic"] for p in entry + leave):
                count = hits(entry[0])
                compared += count > 0
                self.assertEqual(sum(map(hits, leave)), count, f"{f}: {[(p['name'], p['spec'], hits(p)) for p in leave]}")
        self.assertGreaterEqual(compared, at_least, [(p["name"], p["tag"]) for p in r.summary["probes"]])

    @needs(PYTHON)
    def test_python(self):
        have = set(exported(os.path.realpath(PYTHON)))
        names = """PyDict_SetItem PyLong_FromLong PyUnicode_FromFormat PyUnicode_Concat PyList_Append PyObject_Repr PyObject_Str PyNumber_Multiply
            PyFloat_FromDouble PyObject_GetIter PyDict_GetItemWithError PyUnicode_Join PyList_New PyLong_AsLong PyObject_IsTrue PyObject_Hash
            PyUnicode_New PyObject_RichCompare PyTuple_New PyObject_GetAttr""".split()
        self.compare([PYTHON, "-S", "-c", PYTHON_WORK], [n for n in names if n in have], 5)

    @needs("sqlite3")
    def test_sqlite(self):
        library = re.search(r"=> (\S*libsqlite3\S*)", subprocess.run(["ldd", shutil.which("sqlite3")], capture_output=True, text=True).stdout)
        if not library:
            self.skipTest("sqlite3 does not use the shared library on this machine")
        have, module = set(exported(library[1])), os.path.basename(os.path.realpath(library[1]))
        names = """sqlite3_step sqlite3_prepare_v2 sqlite3_finalize sqlite3_column_text sqlite3_value_text sqlite3_malloc64 sqlite3_realloc64
            sqlite3_result_text sqlite3_mprintf sqlite3_vmprintf sqlite3_stricmp sqlite3_column_type sqlite3_complete sqlite3_errmsg""".split()
        self.written("work.sql", SQL)
        self.compare(["sqlite3", ":memory:"], [f"{module}!{n}" for n in names if n in have], 4, stdin=self.path("work.sql"))

    @needs("bash")
    def test_bash(self):
        have = set(exported(shutil.which("bash")))
        names = """find_variable make_word_list dispose_words xmalloc xrealloc expand_word string_list hash_search substring make_word
            stringlib_insert bind_variable copy_word_list legal_identifier""".split()
        script = 'for i in {1..300}; do a="x$i"; b=${a#x}; c=$((b * 2)); d="$d${c%0}"; done; echo ${#d}'
        self.compare(["bash", "-c", script], [n for n in names if n in have], 4)

    def test_exceptions_leave_without_a_return(self):
        t = self.target("cxxthrow")
        p = self.start_attached(t, "-q", "--function", "middle", "--return", "middle")
        wait_until(lambda: t.cpu_ticks() > 20, what="some throws")
        r = self.finish(p)
        self.assertIn(r.status, (0, 121), str(r))
        counts = {p["name"]: hits(p) for p in r.summary["probes"] if p["tactic"]}
        self.assertIn("middle_return", counts, str(r))
        # every second call throws
        self.assertAlmostEqual(counts["middle"] / 2, counts["middle_return"], delta=2)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)


@needs("redis-server")
@needs("redis-benchmark")
class Redis(Case):
    def test_hundreds_of_functions_by_one_pattern(self):
        server = RedisServer(self, socket=self.path("redis.sock"))
        cli = server.cli
        p = self.start("-q", "--pid", server.pid, "--function", "redis-*!*Command", "-x", "*configCommand", "-t", "reg:rdi")
        self.await_armed(p, server.pid)
        for i in range(50):
            self.assertEqual(cli("set", f"k{i}", str(i)), "OK")
            self.assertEqual(cli("get", f"k{i}"), str(i))
        r = self.finish(p)
        self.assertIn(r.status, (0, 121), str(r))
        placed = {p["name"]: hits(p) for p in r.summary["probes"] if p["tactic"]}
        self.assertGreater(len(placed), 150, str(r))
        self.assertGreater(len(placed), 0.95 * r.summary["asked"])
        self.assertEqual((placed.get("setCommand"), placed.get("getCommand")), (50, 50))
        self.assertNotIn("configCommand", placed)
        self.assert_clean(server.pid)
        self.assertEqual(cli("ping"), "PONG")


if __name__ == "__main__":
    harness.main()
