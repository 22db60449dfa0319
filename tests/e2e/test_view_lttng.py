# SPDX-License-Identifier: MIT
"""Tests `dynprobe view` on traces of LTTng: events like our own, merged with ours by time."""

import json

import harness
import lttng_env
import lttng_probe


class View(lttng_probe.WithDaemon):
    def traced(self, *args, calls=200):
        p = self.tool("-c", f"{harness.target_path('spin')} {calls} 200", "--function", "foo", *args)
        self.assertIn("RESULT OK", p.stdout)

    def view(self, *args, status=0):
        p = harness.tool("view", *args, status=None)
        if "DP-NO-BABELTRACE" in p.stderr:
            self.skipTest("built without libbabeltrace2")
        self.assertEqual((p.returncode, p.stderr), (status, ""))
        return p.stdout

    def test_events_of_a_session(self):
        self.traced("-t", "reg:rdi", "-t", "hits", "--set-url", "file://" + self.path("t"))
        events = [json.loads(line) for line in self.view(self.path("t"), "-f", "json").splitlines()]
        self.assertEqual([e["name"] for e in events[0]["probes"] if e["name"] == "dynprobe:foo"], ["dynprobe:foo"])
        self.assertEqual([e["fields"]["hits"] for e in events[1:]], list(range(1, 201)))
        read = self.read(self.path("t"), name="dynprobe:foo")
        self.assertEqual([e["ts"] for e in events[1:]], [e.ns for e in read])
        self.assertEqual({e["comm"] for e in events[1:]} - {""}, {"spin"} & {e["comm"] for e in events[1:]})
        rows = harness.objects(self.view(self.path("t"), "-f", "json", "--count", "--by", "hits % 2", "--when", "hits > 100"))
        self.assertEqual([(r["key"], r["hits"]) for r in rows], [(0, 50), (1, 50)])

    def test_merged_with_our_own(self):
        self.traced("-t", "hits", "--set-url", "file://" + self.path("t"))
        self.traced("-t", "hits", "--record", self.path("mine"), "-q")
        events = [json.loads(line) for line in self.view(self.path("mine"), self.path("t"), "-f", "json").splitlines()[1:]]
        self.assertEqual([e["probe"] for e in events], ["dynprobe:foo"] * 200 + ["foo"] * 200)
        self.assertEqual([e["mono"] for e in events], sorted(e["mono"] for e in events))


if __name__ == "__main__":
    lttng_env.main()
