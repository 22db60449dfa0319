# SPDX-License-Identifier: MIT
"""Tests --snapshot with LTTng's events: the event in LTTng's trace names the snapshot of its hit."""

import glob

import harness
import lttng_env
import lttng_probe


class SnapshotLttng(lttng_probe.Case):
    def test_the_event_in_lttngs_trace_names_its_snapshot(self):
        self.sessiond()
        t = self.spin(0, 500)
        self.session("s", "dynprobe:*")
        with self.running(t, "--function", "foo", "-t", "a", "--session", "s", "--snapshot", "--max-snapshots", 2, "--snapshot-interval", "10ms", "--max-pause", "30000", cwd=self.dir) as r:
            harness.wait_until(lambda: len(glob.glob(self.path("*.dps"))) == 2, what="two snapshots")
            self.let_run()
        self.assert_ok(r)
        self.assertIn("2 snapshots taken", r.err)
        events = self.events()
        taken = [e for e in events if e.fields["snapshot_id"]]
        self.assertEqual(len(taken), 2, r.err)
        self.assertGreater(len(events), 2)
        for event in taken:
            (path,) = glob.glob(self.path(f"*.{event.fields['snapshot_id']:012x}.dps"))
            frame = harness.shown(path)["threads"][0]["frames"][0]
            self.assertEqual(frame["symbol"], "foo")
            values = {v["name"]: v for v in frame["variables"]}
            self.assertEqual(int(values["a"]["value"]), event.fields["a"])
        self.assertEqual(harness.changed_text(t.pid), [])
        self.assert_result_ok(t)


if __name__ == "__main__":
    lttng_env.main()
