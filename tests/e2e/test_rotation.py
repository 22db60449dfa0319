#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests how large a recording may grow: --rotate, --record-size, and a disk that is full."""

import contextlib
import os
import re
import signal
import subprocess

import harness
from harness import wait_until

BLOCK = ("--on-full", "block=60s")
PIECE = 64 << 10


def traces(folder):
    """The traces of a recording, the oldest first."""
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.isdigit()]


def size(path):
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)


def read(*directories):
    """The values of `edi` in the events of CTF traces, in the order of time, and the number of events that were lost."""
    p = subprocess.run(["babeltrace2", *directories], capture_output=True, text=True)
    if p.returncode != 0:
        raise AssertionError(f"babeltrace2 {directories}: {p.stderr}")
    values = [int(v, 0) for v in re.findall(r"\bedi = (0x[0-9A-Fa-f]+|\d+)", p.stdout)]
    return values, sum(map(int, re.findall(r"discarded (\d+) event", p.stderr)))


class Recording(harness.Case):
    def record(self, *args, command=("spin", 60000), **kw):
        """Records all calls of a program that counts them."""
        path, *numbers = command
        return self.dynprobe("--function", "foo", "-t", "reg:edi", "-q", *args, "--", harness.target_path(path), *numbers, record=self.path("trace"), **kw)

    def start_recording(self, t, *args):
        return self.start_attached(t, "--function", "foo", "-t", "reg:edi", "-q", *args, record=self.path("trace"))


class Rotate(Recording):
    def test_each_piece_is_a_trace_and_together_they_have_all_events(self):
        r = self.record("--rotate", "64K", *BLOCK)
        self.assert_ok(r)
        pieces = traces(self.path("trace"))
        self.assertGreater(len(pieces), 5)
        parts = [read(piece)[0] for piece in pieces]
        self.assertEqual([v for part in parts for v in part], list(range(60000)), "in order, none missing, none twice")
        self.assertTrue(all(parts))
        self.assert_merged(parts)
        self.assertEqual(r.summary["traces"], {"kept": len(pieces), "removed": 0, "removed_events": 0})
        for piece in pieces[:-1]:
            self.assertIn(size(piece), range(PIECE, PIECE + (32 << 10)))
        self.assertEqual(os.listdir(self.path("trace")).count(".next"), 0)

    def test_all_pieces_together_tell_each_loss_once(self):
        r = self.record("--rotate", "64K", "--buffer-size", "16K", command=("tally", "threads", 20000))
        self.assert_ok(r)
        self.assertGreater(r.summary["lost"]["total"], 0)
        told = [read(piece)[1] for piece in traces(self.path("trace"))]
        self.assertEqual(sum(told), r.summary["lost"]["total"])

    def test_many_threads_and_processes_rotate_together(self):
        r = self.record("--rotate", "128K", "--follow", "--buffer-size", "16K", *BLOCK, command=("tally", "fork", 15000))
        self.assert_ok(r)
        counts = [len(read(piece)[0]) for piece in traces(self.path("trace"))]
        self.assertGreater(len(counts), 3)
        self.assertEqual(sum(counts), r.summary["recorded"])
        self.assertEqual(sum(counts), 5 * 15000 + 1)

    def test_pieces_can_be_read_while_the_next_ones_are_written(self):
        t = self.target("spin")
        p = self.start_recording(t, "--rotate", "64K")
        for n in (2, 4, 8) if harness.FULL else (2, 4):
            wait_until(lambda: len(traces(self.path("trace"))) > n, what="more traces")  # noqa: B023
            for piece in traces(self.path("trace"))[:n]:
                values, _ = read(piece)
                self.assertGreater(len(values), 1000)
        self.assert_ok(self.finish(p))
        self.assert_result_ok(t)

    def test_the_oldest_are_removed_and_the_newest_are_there(self):
        r = self.record("--rotate", "64K", "--record-size", "256K", *BLOCK)
        self.assert_ok(r)
        pieces = traces(self.path("trace"))
        self.assertLess(size(self.path("trace")), (256 << 10) + (32 << 10))
        values = [v for piece in pieces for v in read(piece)[0]]
        self.assertEqual(values, list(range(60000 - len(values), 60000)))
        self.assertEqual(r.summary["traces"], {"kept": len(pieces), "removed": int(pieces[0][-4:]) - 1, "removed_events": 60000 - len(values)})
        self.assertEqual(sorted(os.listdir(self.path("trace"))), [os.path.basename(piece) for piece in pieces], "nothing else is left")

    def test_a_folder_that_has_a_recording_is_not_written_to(self):
        self.assert_ok(self.record("--rotate", "64K", *BLOCK))
        before = sorted(os.listdir(self.path("trace")))
        os.rename(self.path("trace/0001"), self.path("trace/old"))
        self.assert_refused(self.record("--rotate", "64K"), "DP-OUTPUT", "already contains a recording")
        self.assertEqual(sorted(os.listdir(self.path("trace"))), before[1:] + ["old"])

    def leave_a_note(self, folder):
        """In the newest trace, whose path this returns; None if it is gone already."""
        for piece in traces(folder)[-1:]:
            with contextlib.suppress(FileNotFoundError):
                with open(os.path.join(piece, "note"), "w") as f:
                    f.write("mine")
                return piece
        return None

    def test_files_of_others_in_the_folder_stay(self):
        t = self.target("spin")
        p = self.start_recording(t, "--rotate", "64K", "--record-size", "128K")
        piece = wait_until(lambda: self.leave_a_note(self.path("trace")), what="a trace")
        wait_until(lambda: not os.path.exists(os.path.join(piece, "metadata")), what="its removal")
        self.assert_ok(self.finish(p))
        self.assertEqual(os.listdir(piece), ["note"])
        self.assert_result_ok(t)

    def test_a_kill_at_any_moment_leaves_what_readers_take(self):
        t = self.target("spin")
        for i in range(10 if harness.FULL else 2):
            folder = self.path("trace")
            p = self.start_recording(t, "--rotate", "64K", "--record-size", "256K")
            wait_until(lambda: os.path.exists(folder) and len(traces(folder)) > 1, what="traces")  # noqa: B023
            latest = traces(folder)[-1]
            wait_until(lambda: not i % 2 or traces(folder)[-1] > latest, what="the instant after a rotation")  # noqa: B023
            p.kill()
            p.wait()
            read(folder)
            for piece in traces(folder):
                if os.path.exists(os.path.join(piece, "metadata")):
                    read(piece)
            os.rename(folder, self.path(f"killed-{i}"))
        self.assert_cleaned(t)

    def assert_merged(self, parts):
        """babeltrace2 merges the pieces by time: only where one ends two events may be as late as each other."""
        whole, merged = [v for part in parts for v in part], read(self.path("trace"))[0]
        self.assertEqual(sorted(merged), whole, "as one recording")
        ends = {sum(map(len, parts[:i])) for i in range(1, len(parts))}
        self.assertEqual([i for i, v in enumerate(merged) if v != whole[i] and not {i, i + 1} & ends], [])

    def test_resident_probes_rotate_too(self):
        t = self.target("spin")
        harness.tool("attach", "--pid", t.pid, "--function", "foo", "-t", "reg:edi", status=0)
        done = harness.tool("record", "--pid", t.pid, "-q", "-d", "1", "--record", self.path("trace"), "--rotate", "64K", "--record-size", "256K", status=0)
        self.assertRegex(done.stderr, r"\d+ traces in it; \d+ older removed, with \d+ events")
        parts = [read(piece)[0] for piece in traces(self.path("trace"))]
        values = [v for part in parts for v in part]
        self.assertEqual(values, sorted(set(values)))
        self.assert_merged(parts)
        harness.tool("detach", "--pid", t.pid, status=0)
        self.assert_result_ok(t)


class RecordSize(Recording):
    def test_the_run_ends_when_the_trace_has_its_size(self):
        t = self.target("spin")
        r = self.attach(t, "--function", "foo", "-t", "reg:edi", "-q", "--record-size", "256K", *BLOCK, record=self.path("trace"))
        self.assert_ok(r)
        self.assertEqual(r.summary["ended_by"], "record size")
        values, _ = read(self.path("trace"))
        self.assertEqual(len(values), r.summary["recorded"])
        self.assertEqual(values, list(range(values[0], values[0] + len(values))))
        self.assertIn(size(self.path("trace")), range(256 << 10, (256 << 10) + (32 << 10)))
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_a_command_goes_on_and_its_status_is_passed_on(self):
        r = self.record("--record-size", "64K", *BLOCK)
        self.assert_ok(r)
        self.assertEqual(r.summary["ended_by"], "record size")
        self.assertIn("calls 60000", r.out)

    def test_resident_probes_stay_when_the_recording_has_its_size(self):
        t = self.target("spin")
        harness.tool("attach", "--pid", t.pid, "--function", "foo", "-t", "reg:edi", status=0)
        done = harness.tool("record", "--pid", t.pid, "-q", "--record", self.path("trace"), "--record-size", "64K", status=0)
        self.assertIn("record size", done.stderr)
        self.assertGreater(len(read(self.path("trace"))[0]), 1000)
        harness.tool("detach", "--pid", t.pid, status=0)
        self.assert_result_ok(t)

    def test_what_cannot_go_together_is_refused(self):
        wrong = [("--rotate", "1K"), ("--record-size", "1K"), ("--rotate", "1M", "--record-size", "1M"), ("--rotate", "1M", "--count"), ("--rotate", "1M", "--no-record"), ("--record-size", "1M", "--sink", "lttng")]
        for options in wrong:
            with self.subTest(options):
                done = harness.tool("--pid", os.getpid(), "--function", "foo", *options, status=harness.OWN_FAILURE)
                self.assertIn("DP-USAGE", done.stderr)


@harness.needs_root
class DiskFull(Recording):
    def small_disk(self):
        os.makedirs(self.path("disk"), exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", self.path("disk")], check=True)
        self.addCleanup(subprocess.run, ["umount", self.path("disk")])
        return self.path("disk/trace")

    def told(self, r, folder):
        """A clean stop: the trace is readable, and what it lacks is told."""
        self.assertEqual(r.status, harness.EXIT_PARTIAL, str(r))
        self.assertEqual(r.summary["ended_by"], "disk full")
        missing = int(re.search(r"at most the last (\d+) events are not in", r.err)[1])
        values, _ = read(folder)
        self.assertGreater(len(values), 1000)
        self.assertIn(r.summary["recorded"] - len(values), range(missing + 1))
        return values

    def test_a_full_disk_ends_the_run_and_leaves_a_readable_trace(self):
        for i, more in enumerate(((), ("--rotate", "128K"), BLOCK)):
            with self.subTest(more):
                folder = f"{self.small_disk()}{i}"
                t = self.target("spin")
                r = self.attach(t, "--function", "foo", "-t", "reg:edi", "-q", *more, record=folder)
                self.told(r, folder)
                self.assert_clean(t.pid)
                self.assert_result_ok(t)

    def test_a_command_goes_on_without_its_probes(self):
        folder = self.small_disk()
        r = self.dynprobe("--function", "foo", "-t", "reg:edi", "-q", *BLOCK, "--", harness.target_path("spin"), 200000, record=folder)
        self.told(r, folder)
        self.assertIn("calls 200000", r.out)
        r = self.dynprobe("--function", "main", "-q", "--", "sh", "-c", "exit 3", record=folder)
        self.assertEqual(r.status, harness.OWN_FAILURE, "the directory already contains a trace")

    def test_rotation_lives_in_what_there_is(self):
        folder = self.small_disk()
        r = self.dynprobe("--function", "foo", "-t", "reg:edi", "-q", *BLOCK, "--rotate", "64K", "--record-size", "256K", "--", harness.target_path("spin"), 200000, record=folder)
        self.assert_ok(r)
        values, _ = read(folder)
        self.assertEqual(values[-1], 199999)

    def test_a_limit_on_the_size_of_files_is_a_full_disk(self):
        t = self.target("spin")
        limit = f"--fsize={4000000 if harness.FULL else 1500000}"  # more than the memory that is shared with the program: a file as well
        r = self.attach(t, "--function", "foo", "-t", "reg:edi", "-q", prefix=("prlimit", limit), record=self.path("trace"))
        self.assertEqual(r.status, harness.EXIT_PARTIAL, str(r))
        self.assertIn("File too large", r.err)
        self.assertGreater(len(read(self.path("trace"))[0]), 1000)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_a_recording_of_resident_probes_ends_and_they_stay(self):
        folder = self.small_disk()
        t = self.target("spin")
        harness.tool("attach", "--pid", t.pid, "--function", "foo", "-t", "reg:edi", status=0)
        done = harness.tool("record", "--pid", t.pid, "-q", "--record", folder, status=harness.EXIT_PARTIAL)
        self.assertIn("disk full", done.stderr)
        self.assertGreater(len(read(folder)[0]), 1000)
        harness.tool("detach", "--pid", t.pid, status=0)
        self.assert_result_ok(t)


if __name__ == "__main__":
    harness.main()
