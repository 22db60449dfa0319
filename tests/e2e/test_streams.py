#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests what goes to standard output and what to standard error."""

import json
import re
import signal
import subprocess

import harness
from harness import DYNPROBE, Case, environment, target_path, tool

EVENT = r"\d\d:\d\d:\d\d\.\d+ \w+\[\d+\] foo"


class Streams(Case):
    def spin(self):
        return self.target("spin", 0, 1000)

    def attached(self, t, *args, **popen):
        return tool("--no-record", "--pid", t.pid, "--function", "foo", *args, status=0, **popen)

    def until_closed(self, t, *words):
        """Reads one line of what dynprobe shows, and closes the pipe; returns the line and what is on standard error."""
        before = harness.State(t.pid)
        p = self.spawn(DYNPROBE, *words, "--no-record", "--pid", t.pid, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
        line = p.stdout.readline()
        p.stdout.close()
        said = p.stderr.read()
        self.assertEqual(p.wait(300), 0, said)
        self.assertNotIn("DP-", said)
        self.assertEqual(before.differences(harness.State(t.pid)), {})
        return line, said

    def test_events_of_an_attached_process_are_alone_on_standard_output(self):
        p = self.attached(self.spin(), "-n", 5)
        self.assertEqual([line for line in p.stdout.splitlines() if not re.match(EVENT, line)], [])
        self.assertEqual(len(p.stdout.splitlines()), 5)
        self.assertNotRegex(p.stderr, EVENT)

    def test_notes_and_summary_are_on_standard_error(self):
        p = self.attached(self.spin(), "-n", 5)
        self.assertRegex(p.stderr, r"(?m)^dynprobe: showing events")
        self.assertRegex(p.stderr, r"(?m)^  hits +5 ")
        self.assertRegex(p.stderr, r"(?m)^  ended by +hits$")

    def test_a_note_of_a_run_in_text_is_not_among_its_events(self):
        t = self.target("family", "orphans", 300, start_new_session=True)
        p = self.start_attached(t, "--follow", "--function", "foo", json_events=False)
        t.process.send_signal(signal.SIGUSR1)
        r = self.finish(p, None)
        self.assert_ok(r)
        self.assertRegex(r.out, EVENT.replace(r"\[\d+\]", r"\[\d+/\d+\]"))
        self.assertNotIn("dynprobe:", r.out)
        self.assertIn(f"dynprobe: process {t.pid} has ended; its children are still followed", r.err)

    def test_a_started_command_has_standard_output_for_itself(self):
        words = [target_path("tally"), "threads", "1000"]
        alone = subprocess.run(words, capture_output=True, text=True, timeout=300)
        for form, event in (("text", EVENT), ("json", '^{"type":"event"')):
            p = tool("--no-record", "-f", form, "--function", "foo", "-n", 5, "--", *words, status=0)
            self.assertEqual(len(p.stdout.splitlines()), len(alone.stdout.splitlines()), p.stdout)
            self.assertIn("RESULT OK", p.stdout)
            self.assertNotRegex(p.stdout, event)
            self.assertEqual(len(re.findall(event, p.stderr, re.M)), 5, p.stderr)

    def test_a_file_has_the_events_and_nothing_else(self):
        p = self.attached(self.spin(), "-n", 5, "-o", self.path("events"))
        with open(self.path("events")) as f:
            lines = f.read().splitlines()
        self.assertEqual((len(lines), [line for line in lines if not re.match(EVENT, line)]), (5, []))
        self.assertEqual(p.stdout, "")
        self.assertNotRegex(p.stderr, EVENT)

    def test_a_closed_pipe_is_an_ordinary_end(self):
        for words, first in (([], EVENT), (["-f", "json"], '{"type":"header"'), (["--count", "--interval", "50ms"], "in the last ")):
            line, said = self.until_closed(t := self.spin(), *words, "--function", "foo")
            self.assertRegex(line, first)
            if "json" not in words:  # its summary had the same reader
                self.assertRegex(said, r"(?m)^  ended by +closed output$")
            self.assert_result_ok(t)

    def test_a_closed_pipe_ends_a_run_without_events(self):
        t = self.spin()
        line, _ = self.until_closed(t, "-f", "json", "--function", "foo", "--when", "pid == 1")
        self.assertRegex(line, '{"type":"header"')
        self.assert_result_ok(t)

    def test_a_shell_pipe_to_head(self):
        t = self.spin()
        p = subprocess.run(f"{DYNPROBE} --no-record --pid {t.pid} --function foo | head -1; echo ${{PIPESTATUS[0]}}", shell=True, executable="/bin/bash",
                           capture_output=True, text=True, timeout=300, env=environment())
        self.assertRegex(p.stdout, rf"\A{EVENT}.*\n0\n\Z")
        self.assertIn("closed output", p.stderr)
        self.assert_clean(t.pid)

    def test_a_closed_pipe_ends_a_recorder_of_resident_probes(self):
        t = self.spin()
        tool("attach", "--pid", t.pid, "--function", "foo", "--sink", "ring", status=0)
        line, said = self.until_closed(t, "record")
        self.assertRegex(line, EVENT)
        self.assertRegex(said, r"(?m)^  ended by +closed output$")
        tool("detach", "--pid", t.pid, status=0)
        self.assert_result_ok(t)

    def test_a_closed_pipe_ends_a_profile(self):
        t = self.target("spin")
        line, said = self.until_closed(t, "--profile", 499)
        self.assertIn(" profile", line)
        self.assertRegex(said, r"dynprobe: \d+ samples? in .*; closed output\n")
        self.assert_result_ok(t)

    def test_a_table_is_a_result(self):
        t = self.spin()
        p = subprocess.run([DYNPROBE, "--pid", str(t.pid), "--function", "foo", "--count", "-d", "0.3"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                           timeout=300, env=environment())
        self.assertRegex(p.stdout, r"(?m)^ +\d+ foo\b")
        self.assertNotIn("ended by", p.stdout)

    def test_json_on_standard_output_is_an_object_on_each_line(self):
        p = self.attached(self.spin(), "-n", 5, "-f", "json")
        types = [json.loads(line)["type"] for line in p.stdout.splitlines()]
        self.assertEqual(types, ["header"] + ["event"] * 5 + ["summary"])
        self.assertNotIn("{", p.stderr)


if __name__ == "__main__":
    harness.main()
