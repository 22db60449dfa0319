# SPDX-License-Identifier: MIT
"""Tests variables and expressions: the program prints its values at each call, and the probe must show the same.

The same sources are built by several compilers, with and without optimization, with debug information of several kinds.
"""

import json
import os
import re
import shutil
import struct
import subprocess
import tempfile

import lttng_env
import binutils
import harness
from harness import Case, long_form, needs

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "variables")
ROUNDS = 400 if harness.FULL else 100
ARGS = "n small big d f pair_a pair_b mixed_n mixed_d seventh eighth color".split()
MEMBERS = "req_len req_name req_hdr_type req_hdr_tag req_flag req_wide req_below req_weight req_ratio req_color req_ok req_raw req_id".split()
EXPRESSIONS = {
    "next_len": "req->next->len",
    "counter": "plain.c::counter",
    "mine": "mine",
    "global": "global",
    "second": "req->table[1]",
    "half_1": "req->half[n - n + 1]",
    "real": "req->either.real",
    "e_sum": "(int)(n + seventh)",
    "e_unsigned": "req->flag - 9u > 5u",
    "e_shift": "n >> (small & 7)",
    "e_divide": "big / (n | 1)",
    "e_modulo": "seventh % (n | 1)",
    "e_narrow": "(int)(signed char)n",
    "e_float": "f < (float)d",
    "e_mixed": "n * 0.5 + f",
    "e_bits": "req->below * 2 + (int)req->wide",
    "e_choice": "small > 100 ? n : eighth",
    "e_logic": "n > 0 && req->color != RED",
    "e_pointer": "&req->table[2] - req->table",
    "e_xor": "big ^ n",
    "e_wrap": "(unsigned)n * 3u",
}


FLOATS = {"f", "pair_b", "req_ratio", "real"}


REALS = FLOATS | {"d", "mixed_d", "req_weight"}


def same_float(value, name):
    """The shortest decimals of a float read back as another double."""
    return struct.pack("<f", value) if name in FLOATS else value


class Variables(Case):
    @classmethod
    def setUpClass(cls):
        built = tempfile.TemporaryDirectory(prefix="dp-e2e-")
        cls.addClassCleanup(built.cleanup)
        cls.built, cls.programs = built.name, {}

    def build(self, source, *command):
        """Compiled once for all tests."""
        key = source, command
        if key not in self.programs:
            folder = os.path.join(self.built, str(len(self.programs)))
            os.mkdir(folder)
            self.programs[key] = harness.compiled(os.path.join(folder, "program"), *command, os.path.join(SOURCES, source), cwd=folder)
        return self.programs[key]

    def trace(self, program, *args, rounds=ROUNDS):
        """Runs the program under probes: (what it printed, the events of each probe)."""
        r = self.dynprobe("--buffer-size", "4M", *args, "--", program, str(rounds))
        self.assertEqual(r.status, 0, r.err[-3000:])
        printed = harness.objects(r.out)
        self.assertEqual(len(printed), rounds)
        return printed, r.events

    def agree(self, printed, events, names, optional=False):
        """Every value of every event is the program's. `optional`: the compiler may have removed the variable."""
        self.assertEqual(len(events), len(printed))
        compared = set()
        for said, e in zip(printed, events):
            for name in names:
                if optional and any(k == name or name.startswith(k + "_") for k in e.get("absent", {})):
                    continue
                self.assertEqual(same_float(e["fields"][name], name), same_float(said[name], name), f"{name} in {e}")
                compared.add(name)
        return compared

    def check_plain(self, *command, needed=(*MEMBERS, *EXPRESSIONS)):
        program = self.build("plain.c", *command)
        contexts = [x for k, v in EXPRESSIONS.items() for x in ("-t", f"{k}={v}")]
        printed, events = self.trace(
            program, "--function", "work", "-t", "args", "-t", "*req", *contexts,
            "--name", "out", "--return", "work", "-t", "retval", "--name", "out_half", "--return", "half_of", "-t", "half=retval")
        of = lambda probe: [e for e in events if e["probe"] == probe]
        compared = self.agree(printed, of("work"), [*ARGS, *MEMBERS, *EXPRESSIONS], optional=True)
        self.assertLessEqual({"n", "big", "d", *needed}, compared)
        self.agree(printed, of("out"), ["retval"])
        self.agree(printed, of("out_half"), ["half"])

    def test_gcc_unoptimized(self):
        self.check_plain("gcc", "-O0", "-g")

    def test_gcc_optimized(self):
        self.check_plain("gcc", "-O2", "-g")

    def test_gcc_dwarf_4_with_link_time_optimization(self):
        self.check_plain("gcc", "-O2", "-g", "-gdwarf-4", "-flto", needed=())

    def test_gcc_split(self):
        self.check_plain("gcc", "-O0", "-g", "-gsplit-dwarf")

    @long_form
    @needs("clang")
    def test_clang_unoptimized(self):
        self.check_plain("clang", "-O0", "-g")

    @needs("clang")
    def test_clang_optimized_dwarf_4(self):
        self.check_plain("clang", "-O2", "-g", "-gdwarf-4")

    def check_classes(self, *command):
        program = self.build("classes.cc", *command)
        spec = "_ZN2ns5Shape4areaEiRKNS_4BaseENS_4ModeERKi"
        extra = ["-t", "id", "-t", "w", "-t", "u", "-t", "made", "-t", "depth=ns::depth", "-t", "is_on=m == ns::Mode::on", "-t", "ref"]
        printed, events = self.trace(program, "--function", spec, "-t", "args", *extra)
        self.agree(printed, events, "k other_id m id w u made depth is_on ref".split())

    @needs("g++")
    def test_classes_gcc(self):
        self.check_classes("g++", "-O0", "-g")
        self.check_classes("g++", "-O2", "-g")

    @needs("clang++")
    def test_classes_clang(self):
        self.check_classes("clang++", "-O0", "-g")

    def check_virtual(self, *command):
        program = self.build("virtual.cc", *command)
        printed, events = self.trace(program, "--function", "visit", "-t", "p->id", "-t", "r.tag", "-t", "*b", rounds=100)
        self.agree(printed, events, "p_id r_tag b_id b_tag b_right".split())
        wanted = [x["b_tag"] for x in printed if x["p_id"] < 0]
        _, events = self.trace(program, "--function", "visit", "--when", "p->id < 0", "-t", "b->tag", rounds=100)
        self.assertEqual([e["fields"]["b_tag"] for e in events], wanted)

    @needs("g++")
    def test_members_of_virtual_bases_gcc(self):
        self.check_virtual("g++", "-O2", "-g")

    @needs("clang++")
    def test_members_of_virtual_bases_clang(self):
        self.check_virtual("clang++", "-O0", "-g")

    @needs("babeltrace2")
    def test_a_recording_reads_back_as_the_program_said(self):
        program = self.build("plain.c", "gcc", "-O0", "-g")
        r = self.dynprobe("--buffer-size", "4M", "--function", "work", "-t", "args", "-t", "*req", "-t", "sum=n + 0.5", "--", program, "300", record=self.path("t"))
        self.assertEqual(r.status, 0, r.err[-3000:])
        printed = harness.objects(r.out)
        events = lttng_env.read_trace(self.path("t"))
        self.assertEqual(len(events), 300)
        for said, f in zip(printed, (e.fields for e in events)):
            for name in [x for x in (*ARGS, *MEMBERS) if x not in ("color", "req_color", "req_ok", "req_raw")]:
                wanted = float(f"{said[name]:g}") if name in REALS else said[name]  # babeltrace2 writes six digits
                self.assertEqual(f[name], wanted, name)
            self.assertEqual((f["color"].label, f["req_color"].label), (said["color"], said["req_color"]))
            self.assertEqual((bytes(f["req_raw"]).hex(), f["sum"]), (said["req_raw"], float(f"{said['n'] + 0.5:g}")))

    def check_thread_locals(self, *command):
        """A library's thread-local variables, static and visible, one copy per thread."""
        source, library = os.path.join(SOURCES, "threads.c"), self.path("libthreads.so")
        harness.compiled(library, *command, "-DLIBRARY", "-fPIC", "-shared", "-Wl,-soname,libthreads.so", source)
        harness.compiled(self.path("program"), *command, source, library, "-pthread", "-Wl,-rpath," + self.path("."))
        printed, events = self.trace(self.path("program"), "--function", "libthreads.so!note", "-t", "hidden", "-t", "shown", "-t", "last=list[2]", rounds=60)
        key = lambda x: x["hidden"]
        self.agree(sorted(printed, key=key), sorted(events, key=lambda e: e["fields"]["hidden"]), ["hidden", "shown", "last"])
        self.assertGreater(len({e["tid"] for e in events}), 2)

    def test_thread_locals_of_a_library_gcc(self):
        self.check_thread_locals("gcc", "-O0", "-g")
        self.check_thread_locals("gcc", "-O2", "-g")

    @needs("clang")
    def test_thread_locals_of_a_library_clang(self):
        self.check_thread_locals("clang", "-O2", "-g")

    # ---- types that only another unit defines ----

    def test_type_that_only_another_unit_defines(self):
        """A search by name meets its declaration first, and must not take that for the definition."""
        using = self.written("using.c", "struct box; int box_sum(struct box *); struct box *box_make(void);\n"
                             "__attribute__((noipa)) int work(struct box *b) { return box_sum(b); }\n"
                             "int main(void) { return work(box_make()) != 42; }\n")
        defining = self.written("defining.c", "struct box { int x, y; } one = {40, 2};\n"
                                "struct box *box_make(void) { return &one; }\n"
                                "__attribute__((noipa)) int box_sum(struct box *b) { return b->x + b->y; }\n")
        program = harness.compiled(self.path("boxes"), "gcc", "-O0", "-g", using, defining)
        r = self.dynprobe("--function", "work", "-t", "x=b->x", "-t", "y=((struct box *)b)->y", "-t", "n=sizeof(struct box)", "--", program)
        self.assert_ok(r)
        self.assertEqual([(e["fields"]["x"], e["fields"]["y"], e["fields"]["n"]) for e in r.events], [(40, 2, 8)])
        self.assert_ok(self.dynprobe("--function", "box_sum", "--snapshot", "--max-pause", "30000", "--", program, cwd=self.dir))
        (taken,) = (self.path(name) for name in os.listdir(self.dir) if name.endswith(".dps"))
        self.assertIn("x = 40", harness.tool("show", taken, "--frame", 1, "--var", "b", status=0).stdout)

    # ---- inlined functions ----

    def inlined_n(self, program, *args):
        r = self.dynprobe(*args, "-t", "args", "--", program, "3")
        self.assert_ok(r)
        self.assertTrue(r.events)
        return [e["fields"]["n"] for e in r.events]

    def check_inlined(self, *command):
        """Arguments are those of the named copy, whatever else begins there; main's items have keys 0, 7, .. 49."""
        program = self.build("inlined.c", *command)
        self.assertEqual(self.inlined_n(program, "--function", "twice"), [1, 3, 5, 7] * 3)
        self.assertEqual(self.inlined_n(program, "--function", "weigh"), [1000, 2, 1000, 6, 1000, 10, 1000, 14] * 3)
        self.assertEqual(self.inlined_n(program, "--function", "weigh", "--when", "n != 1000"), [2, 6, 10, 14] * 3)

    def test_an_inlined_function_that_begins_outside_its_ranges_shows_its_own_arguments(self):
        self.check_inlined("gcc", "-O2", "-g")

    def test_inlined_functions_unoptimized(self):
        self.check_inlined("gcc", "-O0", "-g", "-DINLINE=static inline __attribute__((always_inline))")

    @long_form
    @needs("clang")
    def test_inlined_functions_clang(self):
        self.check_inlined("clang", "-O0", "-g", "-DINLINE=static inline __attribute__((always_inline))")

    def test_a_line_where_an_inlined_function_begins_shows_no_value_of_the_function_around_it(self):
        program = self.build("inlined.c", "gcc", "-O2", "-g")
        r = self.dynprobe("--probe", "inlined.c:21", "-t", "n", "--", program, "3")
        self.assert_ok(r)
        self.assertLessEqual({e["fields"]["n"] for e in r.events}, {1000, 2, 6, 10, 14, None})

    def check_order(self, *command, lost):
        """Some of a copy's parameters are lost, and its caller has variables with the same names: these must not be used."""
        program = self.build("order.c", *command)
        r = self.dynprobe("--function", "weigh", "-t", "args", "--name", "alone", "--function", "weigh", "-t", "lost", "-t", "unused", "--", program, "3")
        self.assert_ok(r)
        args, alone = ([e["fields"] for e in r.events if e["probe"].startswith(p)] for p in ("weigh", "alone"))
        said = [{"unused": i + 5, "n": i, "fixed": 7, "lost": 2000099, "last": 1000000 + i} for i in range(3)]
        self.assertEqual(len(args), 3)
        for fields, expected in zip(args, said):
            self.assertEqual(list(fields), list(expected))
            self.assertEqual({k for k, v in fields.items() if v is None}, set(lost))
            self.assertEqual(fields, {k: None if k in lost else v for k, v in expected.items()})
        self.assertEqual(alone, [{k: f[k] for k in ("lost", "unused")} for f in args])

    def test_parameters_of_a_copy_are_in_the_order_of_the_declaration(self):
        self.check_order("gcc", "-O2", "-g", lost=())

    @needs("clang")
    def test_a_parameter_that_a_copy_has_lost_is_no_variable_of_its_caller(self):
        self.check_order("clang", "-O1", "-g", lost=("lost", "unused"))

    # ---- the printf form ----

    FORM = 'work "n=%d|%5u|%s|%-6s|%04x|%.2f|100%%\\n", n, small, req->name, color, seventh, d'

    def test_a_format_shows_its_arguments_in_text(self):
        program = self.build("plain.c", "gcc", "-O0", "-g")
        # Each to a file of its own: in a common pipe, lines of the two programs could mix.
        r = self.dynprobe("--probe", self.FORM, "-t", "big", "--no-record", "-o", self.path("events"), "--", program, "20", json_events=False)
        self.assert_ok(r)
        printed = harness.objects(r.out)
        with open(self.path("events")) as f:
            shown = [x.split(" work: ", 1)[1] for x in f.read().splitlines() if " work: " in x]
        self.assertEqual(len(shown), 20)
        for p, x in zip(printed, shown):
            message = "n=%d|%5u|%s|%-6s|%04x|%.2f|100%%" % (
                p["n"], p["small"], p["req_name"], p["color"], p["seventh"] % 2**self.bits(p["seventh"]), p["d"])
            self.assertTrue(x.startswith(message + " big="), (x, message))

    def bits(self, value):
        return 64 if abs(value) >= 2**31 else 32

    def test_a_format_is_a_message_besides_typed_fields_in_json(self):
        program = self.build("plain.c", "gcc", "-O2", "-g")
        printed, events = self.trace(program, "--probe", 'work "%d %s", n, str(req->name)')
        self.assertEqual([e["message"] for e in events], [f"{p['n']} {p['req_name']}" for p in printed])
        self.agree(printed, events, ["n", "req_name"])

    def test_a_format_is_checked_against_its_arguments(self):
        for form, words in (('"%d"', ["no argument"]), ('"%d", n, n', ["more arguments"]), ('"%y", n', ["unknown conversion"]),
                            ('"%s", n', ["integer"]), ('"%d", d', ["floating-point"]), ('"%d", *req', ["not a single value"]), ('"%d', ["not closed"])):
            self.refused("DP-SYNTAX", "--probe", "work " + form, words=words, compiler=("gcc", "-O0", "-g"))

    def test_a_format_of_a_left_probe_is_said_by_a_later_tool(self):
        program = self.build("plain.c", "gcc", "-O2", "-g")
        p = self.endless(program)
        self.tool("attach", "--sink", "ring", "--pid", p.pid, "--probe", 'work "<%d>", n')
        out = self.tool("record", "--pid", p.pid, "-n", 20, "-f", "json", "-o", "-", "--no-record")
        events = [e for e in map(json.loads, filter(None, out.splitlines())) if e["type"] == "event"]
        self.assertEqual([e["message"] for e in events], [f"<{e['fields']['n']}>" for e in events])
        self.tool("detach", "--pid", p.pid)

    def test_hits_number_the_calls_and_count_before_the_condition(self):
        program = self.build("plain.c", "gcc", "-O2", "-g")
        printed, events = self.trace(program, "--function", "work", "-t", "n", "-t", "hits", "--when", "hits % 7 == 0 || hits == 1")
        wanted = [(p["n"], i) for i, p in enumerate(printed, 1) if i % 7 == 0 or i == 1]
        self.assertEqual([(e["fields"]["n"], e["fields"]["hits"]) for e in events], wanted)

    def test_hits_at_a_return_count_its_places_together_and_go_with_a_duration(self):
        program = self.build("plain.c", "gcc", "-O2", "-g")
        printed, events = self.trace(program, "--return", "work", "-t", "hits", "-t", "duration", "--when", "hits > 5 && duration >= 0")
        self.assertEqual([e["fields"]["hits"] for e in events], list(range(6, len(printed) + 1)))
        took = [e["fields"]["duration"] for e in events]
        self.assertNotIn(None, took)
        self.assertGreaterEqual(min(took), 0)  # on some processors the time stamp counter advances in steps of 10 ns
        self.assertGreater(sum(took), 0)

    def test_casts_to_pointers_to_arrays(self):
        program = self.build("plain.c", "gcc", "-O2", "-g")
        printed, events = self.trace(program, "--function", "work", "-t", "second=(*(int (*)[3])&req->table)[1]", "-t", "n",
                                     "-t", "third=((int (*)[1])req->table)[2][0]", "-t", "all=*(int (*)[3])req->table",
                                     "-t", "size=sizeof(struct request[2]) == 2 * sizeof(*req)")
        self.agree(printed, events, ["second", "n"])
        for e in events:
            f = e["fields"]
            self.assertEqual((f["all_1"], f["all_2"], f["size"]), (f["second"], f["third"], 1))

    def test_what_a_pointer_that_is_not_there_would_point_to(self):
        with open(os.path.join(SOURCES, "implicit.c")) as f:
            lines = [i for i, text in enumerate(f, 1) if "here: LINE" in text]
        for level in ("-O1", "-O2"):
            program, compared = self.build("implicit.c", "gcc", level, "-g", "-fwrapv"), set()
            for line in lines:
                printed, events = self.trace(program, "--probe", f"implicit.c:{line}", "-t", "a=p->a", "-t", "b=p->b", "-t", "c=*q", "-t", "args", rounds=64)
                compared |= self.agree(printed, events, ["a", "b", "c"], optional=True)
                self.assertTrue(all({"p", "q"} <= e["absent"].keys() for e in events), events[0])
            self.assertLessEqual({"c"} if level == "-O1" else {"a", "b", "c"}, compared)
        printed, events = self.trace(program, "--probe", f"implicit.c:{lines[0]}", "-t", "a=p->a", "--when", "p->a > 0", rounds=64)
        self.assertEqual([e["fields"]["a"] for e in events], [p["a"] for p in printed if p["a"] > 0])
        r = self.dynprobe("--probe", f"implicit.c:{lines[0]}", "--when", "p[1].a > 0", "--", program, "3", json_events=False)
        self.assert_refused(r, "DP-NO-VALUE", "optimized out")

    # ---- conditions ----

    def condition(self, program, text, expected):
        printed, events = self.trace(program, "--function", "work", "--when", text, "-t", "n")
        wanted = [p for p in printed if expected(p)]
        self.assertGreater(len(wanted), 0, text)
        self.assertLess(len(wanted), len(printed), text)
        self.assertEqual([e["fields"]["n"] for e in events], [p["n"] for p in wanted], text)

    def test_conditions_choose_what_c_would(self):
        program = self.build("plain.c", "gcc", "-O2", "-g")
        self.condition(program, "req->len > 3", lambda p: p["req_len"] > 3)
        self.condition(program, 'req->name =~ "GET*" && n < 0', lambda p: p["req_name"].startswith("GET") and p["n"] < 0)
        self.condition(program, 'req->name =~ "*/*7"', lambda p: p["req_name"].endswith("7"))
        self.condition(program, 'str(req->hdr.tag) == "t17" || small == 9', lambda p: p["req_hdr_tag"] == "t17" or p["small"] == 9)
        self.condition(program, "d > 100.5 && req->ok", lambda p: p["d"] > 100.5 and p["req_ok"])
        self.condition(program, "color == BLUE", lambda p: p["color"] == "BLUE")
        self.condition(program, "color < 0", lambda p: p["color"] == "DARK")
        self.condition(program, "(unsigned)n > 0x80000000", lambda p: p["n"] % 2**32 > 0x80000000)

    # ---- how values are shown ----

    def test_text_reads_as_the_source_does(self):
        program = self.build("plain.c", "gcc", "-O0", "-g")
        r = self.dynprobe("--function", "work", "-t", "*req", "-t", "color", "-t", "str(req->name, 3)", "-n", "1", "--no-record", "--", program,
                          "3", json_events=False)
        line = next(x for x in r.err.splitlines() if "work:" in x)
        self.assertIn(' req->name="PUT /0" ', line)
        self.assertRegex(line, r" color=(RED|GREEN|BLUE|DARK)\b")
        self.assertRegex(line, r" req->ok=(true|false) ")
        self.assertRegex(line, r" req->next=0x[0-9a-f]+ ")

    def seen(self, program, *contexts):
        """The fields of the first event, by the names that the text shows."""
        asked = [x for c in contexts for x in ("-t", c)]
        r = self.dynprobe("--function", "work", *asked, "-n", "1", "--no-record", "--", program, "3", json_events=False)
        self.assertEqual(r.status, 0, str(r))
        return next(x for x in r.err.splitlines() if "work:" in x)

    def test_members_are_called_what_can_be_typed(self):
        program = self.build("plain.c", "gcc", "-O0", "-g")
        line = self.seen(program, "*(struct request *)req", "*&req->hdr", "*&req->table", "*req->next")
        labels = ["((struct request *)req)->len", "((struct request *)req)->hdr.type", "(&req->hdr)->type", "(*&req->table)[1]",
                  "req->next->len"]
        again = self.seen(program, *(f"again{i}={label}" for i, label in enumerate(labels)))
        for i, label in enumerate(labels):
            self.assertIn(f" {label}=", line)
            value = re.search(re.escape(f" {label}=") + r"(\S+)", line)[1]
            self.assertRegex(again, rf" again{i}={re.escape(value)}( |$)")

    def test_types_that_are_in_units_of_their_own_are_known_to_casts(self):
        for compiler in (("gcc", "-gdwarf-4"), ("gcc", "-gdwarf-5")):
            program = self.build("plain.c", *compiler, "-O0", "-g", "-fdebug-types-section")
            line = self.seen(program, "a=((struct request *)$rdi)->hdr.type - req->hdr.type", "b=sizeof(union either)", "c=(enum color)5")
            self.assertIn(" a=0 b=4 c=GREEN", line)
            self.assertIn("_UT_" if "5" in compiler[1] else ".debug_types", self.sections(program))

    @needs("dwz")
    def test_types_that_dwz_moved_to_the_shared_file_are_known_to_casts(self):
        built = self.build("plain.c", "gcc", "-gdwarf-4", "-O0", "-g")
        program, other = (shutil.copy(built, self.path(name)) for name in ("program", "program-2"))  # dwz changes both
        subprocess.run(["dwz", "-m", self.path("shared.debug"), program, other], check=True)
        self.assertIn("request", binutils.readelf("-p.debug_str", self.path("shared.debug")))
        line = self.seen(program, "a=((struct request *)$rdi)->hdr.type - req->hdr.type", "b=sizeof(union either)", "c=(enum color)5")
        self.assertIn(" a=0 b=4 c=GREEN", line)

    def sections(self, program):
        return binutils.readelf("--debug-dump=info", "-SW", program)

    # ---- values that do not exist ----

    def test_a_value_that_is_not_there_is_said_not_to_be(self):
        program = self.build("plain.c", "gcc", "-O2", "-g")
        r = self.dynprobe("--function", "work", "-t", "locals", "-t", "args", "--", program, "400")
        self.assert_ok(r)
        self.assertEqual({e["absent"].get("sum") for e in r.events}, {"optimized out"})
        self.assertTrue(all(e["fields"]["sum"] is None for e in r.events))

    def test_locals_of_a_function_that_has_not_begun_are_not_set(self):
        program = self.build("plain.c", "gcc", "-O0", "-g")
        r = self.dynprobe("--function", "work", "-t", "locals", "--", program, "400")
        self.assert_ok(r)
        self.assertEqual({e["absent"].get("sum") for e in r.events}, {"not set yet"})

    def test_variables_of_a_left_probe_are_recorded_by_a_later_tool(self):
        program = self.build("plain.c", "gcc", "-O2", "-g")
        p = self.endless(program)
        self.tool("attach", "--sink", "ring", "--pid", p.pid, "--function", "work", "-t", "args", "--when", "n > 0")
        out = self.tool("record", "--pid", p.pid, "-n", 50, "-f", "json", "-o", "-", "--no-record")
        events = [e for e in map(json.loads, filter(None, out.splitlines())) if e["type"] == "event"]
        self.assertEqual(len(events), 50)
        self.assertTrue(all(e["fields"]["n"] > 0 and e["fields"]["color"] in ("RED", "GREEN", "BLUE", "DARK") for e in events))
        self.tool("detach", "--pid", p.pid)

    def tool(self, *args):
        return harness.tool(*args, status=0).stdout

    def endless(self, program):
        """The program, in its main()."""
        p = self.spawn(program, 100000000, "ready", stderr=subprocess.PIPE, text=True)
        self.assertEqual(p.stderr.readline(), "READY\n")
        return p

    # ---- refusals ----

    def refused(self, tag, *args, words=(), compiler=("gcc", "-O2", "-g")):
        program = self.build("plain.c", *compiler)
        r = self.dynprobe(*args, "--", program, "3", json_events=False)
        self.assert_refused(r, tag, *words)

    def test_DP_NO_VARIABLE(self):
        self.refused("DP-NO-VARIABLE", "--function", "work", "-t", "reqq", words=["did you mean req?"])
        self.refused("DP-NO-VARIABLE", "--function", "work", "-t", "req->lem", words=["did you mean len?"])
        self.refused("DP-NO-VARIABLE", "--function", "work", "-t", "(struct nothing *)req")

    def test_DP_SYNTAX_a_function_has_no_elements(self):
        for text in ("hook[0]", "hook[n]", "hook[0:2]", "*hook[0:1]"):
            self.refused("DP-SYNTAX", "--function", "work", "-t", text, words=["a function has no elements"])

    def test_DP_NO_VALUE(self):
        self.refused("DP-NO-VALUE", "--function", "work", "--when", "sum > 3", words=["optimized out"])
        self.refused("DP-NO-VALUE", "--function", "work", "--when", "retval > 3", words=["--return"])

    def test_DP_NO_DEBUG_INFO(self):
        self.refused("DP-NO-DEBUG-INFO", "--function", "work", "-t", "args", compiler=("gcc", "-O2"))
        self.refused("DP-NO-DEBUG-INFO", "--function", "work", "--when", "n > 3", compiler=("gcc", "-O2"))


if __name__ == "__main__":
    harness.main()
