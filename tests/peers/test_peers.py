#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bench/run_peers.py without the tools: a tool's output that is read wrongly would be a wrong claim about it in docs/peers.md."""

import os
import sys
import unittest
import unittest.mock
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
from peers import attach, chart, parse, report, tools  # noqa: E402
from peers.parse import Answer  # noqa: E402

DYNPROBE = """{"type":"header","version":1,"probes":[]}
{"type":"answer","final":false,"seconds":1,"probe":"work","pid":7,"hits":3}
{"type":"answer","final":true,"seconds":2,"probe":"work","pid":7,"hits":5,"buckets":[{"from":0,"to":1,"hits":2},{"from":2,"to":4,"hits":3}]}
{"type":"answer","final":true,"seconds":2,"probe":"work","pid":8,"hits":1,"buckets":[{"from":2,"to":4,"hits":1}]}
{"type":"summary","recorded":0,"lost":{"total":4,"full":4}}
"""
DYNPROBE_TEXT = """23:56:52.911726410 peers_program[21210] work: rdi=0x0
23:56:52.911726510 peers_program[21210] work: rdi=0x1
dynprobe: 1 probe requested, 1 placed (1 pun)
  hits      295872   recorded 283753   lost 12119 (ring full 12119)
"""
COUNTER = """           9793 Event messages
              0 Discarded event messages
          10005 messages (TOTAL)

         320000 Event messages
              1 Stream beginning message
             12 Discarded event messages
"""
LTRACE_TABLE = """% time     seconds  usecs/call     calls      function
------ ----------- ----------- --------- --------------------
 90.00    0.034225         149       229 work
 10.00    0.004225         149        31 f10001
------ ----------- ----------- --------- --------------------
100.00    0.034225                   260 total
"""
STRACE_TABLE = """% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
100.00    0.005043           0      7687         2 getppid
------ ----------- ----------- --------- --------- ----------------
100.00    0.005043           0      7687         2 total
"""
PERF_SCRIPT = """     peers77:work:      55dd1a5c05c0
     PERF_RECORD_LOST lost 17
     peers77:work:      55dd1a5c05c0
            55dd1a5c05c0 work+0x0 (/tmp/program)
"""
GDB = """(gdb) Continuing.
Num     Type           Disp Enb Address            What
1       breakpoint     keep y   0x0000000000001580 <work>
        breakpoint already hit 41 times
2       breakpoint     keep y   0x0000000000001680 <f10000>
        breakpoint already hit 1 time
"""


class Outputs(unittest.TestCase):
    """What the tools print."""

    def test_dynprobe_answers_of_several_processes_are_added(self):
        self.assertEqual(parse.dynprobe(DYNPROBE), Answer(6, 4, {0: 2, 2: 4}))

    def test_dynprobe_without_answers_has_its_records(self):
        self.assertEqual(parse.dynprobe('{"type":"summary","recorded":9,"lost":{"total":1}}\nnot json'), Answer(9, 1))

    def test_dynprobe_lines_and_their_loss(self):
        self.assertEqual(parse.dynprobe_lines(DYNPROBE_TEXT), Answer(2, 12119))

    def test_counter_takes_the_last_table(self):
        self.assertEqual(parse.babeltrace(COUNTER), Answer(320000, 12))
        self.assertTrue(parse.babeltrace("no such trace").note)
        self.assertEqual(parse.dynprobe_trace(COUNTER + DYNPROBE_TEXT), Answer(320000, 12119))

    def test_bpftrace_maps(self):
        self.assertEqual(parse.bpftrace('{"type": "attached_probes", "data": {"probes": 1}}\n{"type": "map", "data": {"@": 12}}'), Answer(12))
        self.assertEqual(parse.bpftrace('{"type": "hist", "data": {"@": [{"max": -1, "count": 0}, {"min": 0, "max": 0, "count": 2}, '
                                        '{"min": 4, "max": 7, "count": 5}]}}\n{"type": "lost_events", "data": {"events": 3}}'), Answer(7, 3, {0: 2, 4: 5}))

    def test_bpftrace_stacks_of_equal_names_are_all_counted(self):
        self.assertEqual(parse.bpftrace('{"type": "map", "data": {"@": {"\\nwork\\n": 5, "\\nwork\\n": 6, "x": 1}}}'), Answer(12))

    def test_bpftrace_lines(self):
        self.assertEqual(parse.bpftrace_lines("Attaching 1 probe...\n0\n1\nLost 7 events\n2\n"), Answer(3, 7))

    def test_perf(self):
        self.assertEqual(parse.perf_stat("# started on X\n\n219541,,peers77:work,99,100.00,,\n4,,peers77:f1,9,100.00,,\n"), Answer(219545))
        self.assertIsNone(parse.perf_stat("<not counted>,,peers77:work,0,0.00,,").count)
        self.assertEqual(parse.perf_script(PERF_SCRIPT), Answer(2, 17))

    def test_uftrace(self):
        table = "  Total time   Self time       Calls  Function\n  ==========  ==========  ==========  ====\n   64.1 ms   64.1 ms      945584  work\n"
        self.assertEqual(parse.uftrace(table + "   1.000 us   1.000 us       3  f10001\nLOST 8 records\n"), Answer(945587, 8))

    def test_gdb(self):
        self.assertEqual(parse.gdb_breakpoint(GDB), Answer(42))
        self.assertEqual(parse.gdb_lines("(gdb) (gdb) hit 0\nhit 1\n[New Thread hit 5]\n"), Answer(2))
        self.assertEqual(parse.gdb_tracepoint("Trace is running\nCollected 873812 trace frames.\n"), Answer(873812))

    def test_tables_of_calls_leave_the_total_out(self):
        self.assertEqual(parse.call_table(r"(?:work|f\d{5})")(LTRACE_TABLE), Answer(260))
        self.assertEqual(parse.call_table("getppid")(STRACE_TABLE), Answer(7687))
        self.assertEqual(parse.call_table("work")("").count, 0)

    def test_lines_of_calls(self):
        self.assertEqual(parse.called("work")("[pid 7] work(0, 1)   = 2\n[pid 8] work@peers_program(1 <unfinished ...>\n[pid 8] <... work resumed> ) = 3\n"
                                              "9 overwork(1)\n").count, 2)

    def test_reason_is_the_line_with_the_error(self):
        self.assertEqual(attach.reason("starting\nERROR: no such thing\nTip: read the manual\n"), "ERROR: no such thing")
        self.assertEqual(attach.reason(""), "it said nothing")


class Truth(unittest.TestCase):
    def test_powers_are_those_of_each_call(self):
        calls = [0, 1, 5, 4096, 10000]
        expected = {}
        for n in calls:
            for i in range(n):
                value = i % parse.VALUES
                low = 1 << value.bit_length() - 1 if value else 0
                expected[low] = expected.get(low, 0) + 1
        self.assertEqual(parse.powers(calls), expected)

    def test_filtered(self):
        self.assertEqual([parse.filtered([n]) for n in (0, 4095, 4096, 8191, 8192)], [0, 0, 1, 1, 2])
        self.assertEqual(parse.filtered([4096, 4096]), 2)

    def test_verdicts(self):
        self.assertEqual(parse.verdict(Answer(7), 7), (True, "equal"))
        self.assertEqual(parse.verdict(Answer(5, 2), 7), (True, "equal, 2 of 7 said lost"))
        self.assertEqual(parse.verdict(Answer(5), 7), (False, "**5 of 7**"))
        self.assertEqual(parse.verdict(Answer(8), 7)[0], False)
        self.assertEqual(parse.verdict(Answer(7, 0, {0: 7}), 7, {1: 7}), (False, "**buckets differ**"))
        self.assertEqual(parse.verdict(Answer(7, 0, {0: 7}), 7)[0], True)
        self.assertEqual(parse.verdict(Answer(None), 7), (None, "no figure"))


class Commands(unittest.TestCase):
    def test_filled_commands_keep_quoted_words(self):
        words = tools.fill("bpftrace -p PID -o OUT -e 'uprobe:PROGRAM:work /pid == PID/ { @ = count(); }'", PID=7, PROGRAM="/a/b")
        self.assertEqual(words, ["bpftrace", "-p", "7", "-o", "OUT", "-e", "uprobe:/a/b:work /pid == 7/ { @ = count(); }"])

    def test_every_tool_has_a_row_that_says_how_to_get_it(self):
        for way in tools.WAYS:
            self.assertEqual(way.tool == "dynprobe", tools.tool_of(way.tool) is None, way.tool)
        self.assertEqual(tools.tool_of("gdb fast tracepoint"), "gdb fast tracepoint")
        self.assertEqual(tools.tool_of("gdb breakpoint"), "gdb")

    def test_a_tool_that_is_not_installed_is_skipped_by_name(self):
        with unittest.mock.patch.dict(os.environ, PATH="/nonexistent"):
            self.assertIn("bpftrace", tools.missing("bpftrace"))
            self.assertIsNone(tools.missing("dynprobe"))


class Chart(unittest.TestCase):
    def test_scale_holds_all_values(self):
        self.assertEqual(chart.scale([1.3, 12200], 0.5), (0, 5))
        self.assertEqual(chart.scale([1, 100000], 0.5), (0, 5))
        self.assertEqual(chart.scale([-2, 0.1], 0.5), (-1, 0))
        self.assertEqual(chart.scale([], 0.5), (-1, 0))
        self.assertEqual(chart.scale([10], 0.5), (1, 2))

    def test_positions(self):
        self.assertEqual([chart.position(v, 0, 2) for v in (1, 10, 100, 1000, 0.1, 0, -5)], [0, 0.5, 1, 1, 0, 0, 0])

    def test_durations(self):
        self.assertEqual([chart.duration(v) for v in (0.04, 1.26, 99.7, 999, 999.9, 12200, 4.5e6, 2e9, -0.3)],
                         ["0.04 ns", "1.3 ns", "100 ns", "999 ns", "1.0 µs", "12.2 µs", "4.5 ms", "2.0 s", "-0.30 ns"])
        self.assertEqual([chart.tick(e) for e in (-1, 0, 2, 3, 5, 6, 9, 10)], ["0.1 ns", "1 ns", "100 ns", "1 µs", "100 µs", "1 ms", "1 s", "10 s"])

    def test_bars_are_valid_and_longer_for_more(self):
        text = chart.bars("A <title>", [("group & co", [("a", 1, True), ("b", 100, False), ("c", -1, False)])], ["note"], 0.5)
        ElementTree.fromstring(text)
        widths = [float(w) for w in __import__("re").findall(r'class="(?:ours|theirs)" x="\d+" y="\d+" width="([\d.]+)"', text)]
        self.assertEqual(len(widths), 3)
        self.assertGreater(widths[1], widths[0])
        self.assertGreater(widths[2], 0)
        self.assertIn("prefers-color-scheme: dark", text)


def hit(cost, equal=True, answer="equal", notes=()):
    return {"cost": cost, "equal": equal, "answer": answer, "notes": list(notes)}


DATA = {
    "date": "2026-11-24", "machine": "a machine", "rounds": 3, "versions": {"dynprobe": "abc", "gdb": "13.1"}, "bare_ns": 2.2,
    "hits": [
        {"question": "count", "tool": "dynprobe", "command": "dynprobe --count", "rounds": [hit({"1": 1.0, "8": 2.0}), hit({"1": 3.0}), hit({"1": 2.0})]},
        {"question": "count", "tool": "bpftrace", "command": "bpftrace", "rounds": [hit({"1": 400.0}), hit({"1": 800.0}, False, "**5 of 7**", ["died"])]},
        {"question": "count", "tool": "systemtap", "command": "stap", "rounds": [{"failed": "no kernel headers"}]},
    ],
    "places": [
        {"tool": "dynprobe", "places": 1, "rounds": [{"armed_ms": 30.0, "pause_ms": 0.2, "quiet_ms": 0.1, "removed_ms": 5.0, "pause_removed_ms": 0.1, "cost": 1.5,
                                                      "equal": True, "answer": "equal", "notes": []}]},
        {"tool": "uftrace", "places": 1, "rounds": [{"armed_ms": 30.0, "cost": 1.5, "equal": True, "answer": "equal", "notes": []}]},
        {"tool": "bpftrace", "places": 20000, "rounds": [], "not_tried": "not tried: slow"},
        {"tool": "ltrace", "places": 1, "rounds": [{"failed": "not armed"}]},
    ],
    "redis": [{"tool": "dynprobe, count", "command": "dynprobe", "rounds": [{"alone": 700000.0, "probed": 350000.0, "equal": True, "answer": "equal", "notes": []}]}],
    "skipped": {"systemtap (count)": "no kernel headers"},
}


class Report(unittest.TestCase):
    def test_a_cost_is_the_median_with_its_ends(self):
        rows = list(report.hit_rows(DATA["hits"]))
        self.assertEqual(rows[0][2:4], ["2.0 ns (1.0 ns–3.0 ns)", "2.0 ns"])
        self.assertEqual(rows[1][3:5], ["–", "300 ×"])

    def test_one_wrong_answer_of_several_rounds_is_said(self):
        self.assertEqual(list(report.hit_rows(DATA["hits"]))[1][5], "**5 of 7**; died")

    def test_a_tool_that_failed_has_no_figure_but_a_reason(self):
        self.assertEqual(len(list(report.hit_rows(DATA["hits"]))), 2)
        page = report.page(DATA)
        self.assertIn("- systemtap (count): no kernel headers", page)
        self.assertIn("not armed", page)
        self.assertIn("not tried: slow", page)

    def test_a_cost_too_small_to_divide_by_gives_a_bound(self):
        ours, theirs = {"rounds": [hit({"1": 0.1})]}, {"rounds": [hit({"1": 100.0})]}
        self.assertEqual(report.times(theirs, ours), "> 200 ×")

    def test_tables_have_as_many_cells_as_their_heads(self):
        for block in report.page(DATA).split("\n\n"):
            if block.startswith("|"):
                self.assertEqual(len({line.count(" | ") for line in block.splitlines()}), 1, block)

    def test_charts_are_valid(self):
        for text in (report.cost_chart(DATA), report.pause_chart(DATA)):
            ElementTree.fromstring(text)
        self.assertIn("the program alone", report.pause_chart(DATA))

    def test_a_run_of_one_part_has_a_page(self):
        self.assertIn("redis", report.page(DATA | {"hits": [], "places": []}))


if __name__ == "__main__":
    unittest.main()
