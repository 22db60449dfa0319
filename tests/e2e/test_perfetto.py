# SPDX-License-Identifier: MIT
"""Tests -f perfetto: a file in Chrome's trace event format, checked against a schema of that format, which says what the events say."""

import collections
import json
import os

import harness
import jsonschema

# The object form of the Trace Event Format, and of its events those that dynprobe writes; strictly: nothing else.
EVENT = {"pid": {"type": "integer", "minimum": 0}, "tid": {"type": "integer", "minimum": 0}, "name": {"type": "string", "minLength": 1}}
TIMED = {**EVENT, "cat": {"const": "dynprobe"}, "ts": {"type": "number", "minimum": 0}, "args": {"type": "object"}}


def event(**properties):
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


SCHEMA = {
    "type": "object", "required": ["traceEvents"], "additionalProperties": False,
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "otherData": {"type": "object"},
        "traceEvents": {"type": "array", "items": {"oneOf": [
            event(ph={"const": "X"}, dur={"type": "number", "minimum": 0}, **TIMED),
            event(ph={"const": "i"}, s={"enum": ["g", "p", "t"]}, **TIMED),
            event(ph={"const": "M"}, **{**EVENT, "name": {"enum": ["process_name", "thread_name"]}}, args=event(name={"type": "string"})),
        ]}},
    },
}  # fmt: skip
PROGRAM = r"""
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
enum kind { GET, POST };
__attribute__((noinline)) int leaf(unsigned long n, enum kind k, const char *s, double d) { __asm__ volatile("" ::: "memory"); return n; }
__attribute__((noinline)) int outer(int n) { int r = 0; for (int i = 0; i < 5; i++) r += leaf(-1UL - i, POST, "tex\"t\xff", n / 3.0); __asm__ volatile(""); return r; }
static void *run(void *a) { for (int i = 0; i < 10; i++) outer(i); return a; }
int main(int argc, char **argv) { pthread_t t[2]; while (argc > 1) { outer(1); usleep(1000); } for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, run, NULL); for (int i = 0; i < 2; i++) pthread_join(t[i], NULL); }
"""
PROBES = ("--function", "leaf", "-t", "args", "-t", "str(s)", "-t", "gone=*(int *)8", "-t", "backtrace", "--return", "leaf", "-t", "duration", "--return", "outer", "-t", "duration", "-t", "retval")


class Perfetto(harness.Case):
    def setUp(self):
        super().setUp()
        self.program = harness.compiled(self.path("prog"), "gcc", "-g", "-O1", "-w", "-pthread", text=PROGRAM)

    def checked(self, path):
        with open(path) as f:
            trace = json.load(f)
        jsonschema.validate(trace, SCHEMA)
        return trace["traceEvents"]

    def live(self, *args):
        harness.tool(*PROBES, *args, "-f", "perfetto", "-o", self.path("live.json"), "--", self.program, status=0)
        return self.checked(self.path("live.json"))

    def test_calls_are_slices_others_instants_threads_have_names(self):
        events = self.live()
        kinds = collections.Counter((e["ph"], e["name"]) for e in events)
        self.assertEqual(kinds, {("M", "process_name"): 1, ("M", "thread_name"): 2, ("i", "leaf"): 100, ("X", "leaf:return"): 100, ("X", "outer:return"): 20})
        named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
        self.assertEqual({(e["pid"], e["tid"]) for e in events if e["ph"] != "M"}, named)
        self.assertEqual({e["args"]["name"] for e in events if e["ph"] == "M"}, {"prog"})
        for pid, tid in named:
            mine = [e for e in events if e["ph"] == "X" and e["tid"] == tid]
            for e in (e for e in mine if e["name"] == "leaf:return"):
                around = [o for o in mine if o["name"] == "outer:return" and o["ts"] <= e["ts"] and e["ts"] + e["dur"] <= o["ts"] + o["dur"] + 0.001]
                self.assertEqual(len(around), 1, "each call lies in that of its caller")

    def test_values_are_exact_and_of_their_kind(self):
        args = next(e["args"] for e in self.live() if e["ph"] == "i")
        self.assertEqual((args["n"], args["k"], args["d"], args["gone"]), (str(2**64 - 1), "POST", 0, "<unreadable>"))
        self.assertIn("tex\"t\ufffd", (args["s"], args.get("str(s)")))
        self.assertRegex(args["backtrace"][0], r"^leaf\+0x0")
        self.assertRegex(args["backtrace"][1], r"^outer\+0x")

    def test_a_recorded_trace_gives_the_same_file(self):
        shown = harness.tool(*PROBES, "-f", "perfetto", "-o", self.path("live.json"), "--record", self.path("t"), "--", self.program, status=0)
        live = self.checked(self.path("live.json"))
        harness.tool("view", self.path("t"), "-f", "perfetto", "-o", self.path("view.json"), status=0)
        order = lambda events: sorted((json.dumps(e, sort_keys=True) for e in events))
        self.assertEqual(order(self.checked(self.path("view.json"))), order(live), shown.stderr)

    def test_a_system_call_is_a_slice(self):
        text = self.written("hello", "hello")
        harness.tool("--syscall", "*", "-f", "perfetto", "-o", self.path("c.json"), "--", "/bin/cat", text, status=0)
        events = self.checked(self.path("c.json"))
        opened = [e for e in events if e["name"] == "openat" and text in e["args"]["arguments"]]
        self.assertEqual([(e["ph"], e["args"]["result"]) for e in opened], [("X", "3")])
        self.assertEqual([e["ph"] for e in events if e["name"] == "exit_group"], ["i"])

    def test_a_run_without_events_and_one_that_is_interrupted_are_complete(self):
        harness.tool("--function", "leaf", "--when", "n == 1", "-f", "perfetto", "-o", self.path("none.json"), "--", self.program, status=0)
        self.assertEqual(self.checked(self.path("none.json")), [])
        t = self.spawn(self.program, "endless")
        p = self.start("--pid", t.pid, "--function", "outer", "-f", "perfetto", "-o", self.path("i.json"), json_events=False)
        self.await_armed(p, t.pid)
        harness.wait_until(lambda: os.path.getsize(self.path("i.json")) > 1000, what="events in the file")
        self.assert_ok(self.finish(p))
        self.assertGreater(len(self.checked(self.path("i.json"))), 5)

    def test_where_there_are_no_events_it_is_refused(self):
        t = self.target("spin")
        for args in (("--pid", t.pid, "--function", "foo", "--count"), ("--pid", t.pid, "--function", "foo", "--dry-run"), ("status",), ("list", "--pid", t.pid), ("view", self.dir, "--count"),
                     ("--pid", t.pid, "--profile", 99, "--folded")):  # fmt: skip
            p = harness.tool(*args, "-f", "perfetto", status=harness.OWN_FAILURE)
            self.assertIn("DP-USAGE", p.stderr)
        p = harness.tool("--pid", t.pid, "--function", "foo", "-f", "xml", status=harness.OWN_FAILURE)
        self.assertIn("use text, json, ctf, perfetto or openmetrics", p.stderr)
        self.assert_result_ok(t)


if __name__ == "__main__":
    harness.main()
