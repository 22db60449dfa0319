#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What has to work on every kernel and processor: a choice from the end-to-end and unit tests, by topic, and what depends on a setting of the kernel.

usage: smoke.py [--list]   Environment: ONLY (topics and names of tests, separated by commas; the whole suite), SLOW (factor for the
tests' time limits; 1), UNITS (where the unit tests' binaries are).
Each test is a line "ok|FAIL|late|skip TOPIC NAME SECONDS"; the last line is "N passed, N failed, N late, N skipped". Late: it failed, and what it says
names one of dynprobe's own time limits, which are made for real processors: not proof of a fault, and none of the opposite.
"""

import importlib
import os
import re
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
SLOW = float(os.environ.get("SLOW") or 1)
LATE = re.compile(r"DP-UNSTOPPABLE|resumed on its own|may not longer|handler of faults did not stand all the time")

import harness  # noqa: E402
import lttng_env  # noqa: E402

UNITS = os.environ.get("UNITS", os.path.join(harness.ROOT, "build", "tests"))

SUITE = {
    "attach": """
        test_attach.Attach.test_events_then_a_clean_target
        test_attach.Attach.test_events_are_in_time_order_and_name_thread_and_program
        test_attach.Attach.test_last_events_before_the_end_are_seen
        test_attach.Attach.test_two_processes_at_once
        test_attach.Attach.test_mappings_while_attached_are_never_writable_and_executable
        test_threads.Threads.test_sixty_four_threads_running_and_asleep
        test_refusals.Refusals.test_unprivileged_user_probes_own_process
        test_refusals.Refusals.test_no_permission_names_the_rule""",
    "launch": """
        test_launch.Launch.test_armed_before_main_every_call_is_seen
        test_launch.Launch.test_static_program_is_armed_before_main
        test_launch.Launch.test_fatal_signal_passes_through
        test_launch.Launch.test_signals_and_descriptors_of_the_command_are_a_shells""",
    "live": """
        test_live.Live.test_beside_probes_that_stay
        test_resident.AsRoot.test_probes_stay_when_the_tool_is_gone_and_detach_leaves_a_clean_process
        test_resident.AsNobody.test_add_context_lets_a_probe_record_more
        test_resident.AsNobody.test_remove_takes_out_what_it_names""",
    "pages": """
        test_hazards.Hazards.test_jump_across_a_page_boundary
        unit.injector_test_replace:bytes_of_others*
        unit.injector_test_replace:text_that_changes*""",
    "ring": """
        test_endings.Endings.test_every_hit_is_recorded_or_counted
        test_endings.Endings.test_full_ring_is_counted_and_blocks_nobody
        test_resident.AsRoot.test_flight_recorder_keeps_the_newest_and_counts_what_gave_way
        test_record.Record.test_threads_of_a_process_merge_in_time_order""",
    "LTTng": """
        test_lttng.Merge.test_our_events_lie_between_the_programs_own
        test_lttng.Merge.test_events_of_the_sink_in_a_program_with_lttng_of_its_own
        test_lttng.Rules.test_rules_before_the_probe_and_after_it""",
    "stop": "smoke.Snapshots.test_mode_stop",
    "quick": "smoke.Snapshots.test_mode_quick",
    "fork": "smoke.Snapshots.test_mode_fork",
    "snapshots": """
        test_snapshot_hits.Hits.test_the_snapshot_is_of_the_hit_and_the_event_leads_to_it
        test_snapshot.Snapshot.test_an_unprivileged_user_takes_one_of_a_program_of_his""",
    "kill": """
        test_killed.Killed.test_killed_again_and_again_on_the_same_target
        test_killed.Killed.test_probed_program_after_the_kill_keeps_its_results
        test_resident.AsNobody.test_a_killed_recorder_leaves_a_flight_recorder
        test_snapshot.Snapshot.test_a_tool_that_is_killed_leaves_the_program_as_it_was""",
    "detach": """
        test_attach.Attach.test_attach_again_and_again
        test_attach.Attach.test_interrupt_is_a_clean_detach_with_a_summary
        test_hazards.Hazards.test_thread_blocked_in_a_displaced_call_at_detach
        test_endings.Endings.test_unmapping_a_probed_library""",
    "signals": """
        test_threads.Threads.test_no_system_call_is_interrupted_and_no_wake_up_lost
        test_threads.Threads.test_all_signals_blocked
        test_threads.Threads.test_signal_storm
        unit.injector_test_temp_mask""",
    "fork+exec": """
        test_endings.Endings.test_fork_children_run_right_and_record_nothing
        test_endings.Endings.test_exec_ends_the_probes_and_not_the_program
        test_refusals.Refusals.test_vfork_parent_that_returns_in_time_is_probed""",
    "seccomp": """
        test_refusals.Refusals.test_seccomp_filter
        test_refusals.Refusals.test_seccomp_filter_with_allow_seccomp
        test_snapshot.Snapshot.test_a_filter_forbids_the_copy_and_no_more""",
    "traps": """
        test_trap.Trap.test_hits_are_recorded_and_nothing_is_left
        test_trap.Trap.test_calls_that_wait_at_the_trap_go_on
        test_faults.Faults.test_every_kind_of_fault_at_probed_instructions
        test_faults.Faults.test_memory_that_is_not_there_and_a_program_with_faults_of_its_own""",
    "data": """
        test_contexts.Contexts.test_all_general_registers
        test_contexts.Contexts.test_vector_registers_by_name
        test_contexts.Contexts.test_unreadable_addresses_of_every_kind_harm_nobody
        test_backtrace.Backtrace.test_down_to_start
        test_backtrace.Backtrace.test_from_a_signal_handler_through_its_frame
        test_aggregations.Counts.test_eight_threads""",
    "profile": "test_profile.Profile.test_stacks_lead_from_the_start_to_the_work",
    "uprobes": "test_uprobe.Uprobe.test_uprobe_that_was_there_first_is_left_alone",
    "registers": """
        test_canary.Canary.test_registers
        unit.sinkhost/lttng_test_vectors
        unit.sinkhost/lttng_test_hits
        unit.injector_test_borrow
        unit.injector_test_call
        unit.trampoline_test_stub_transparent
        unit.trampoline_test_flags""",
    "rseq": "unit.injector_test_rseq",
    "code": """
        unit.trampoline_test_stub_nested
        unit.trampoline_test_stub_sink
        unit.trampoline_test_stub_fields
        unit.trampoline_test_relocate_exec
        unit.trampoline_test_plan_exec
        unit.trampoline_test_aggregate
        unit.trampoline_test_expr_random
        unit.agent_test_read
        unit.agent_test_fault
        unit.agent_test_ring
        unit.agent_test_thread
        unit.agent_test_unwind_self
        unit.injector_test_memory""",
    "noexec": """
        smoke.Noexec.test_one_is_no_hindrance
        smoke.Noexec.test_two_works_or_is_refused_by_name""",
}


class Snapshots(harness.Case):
    """The three ways to stop a process, each by itself."""

    def in_mode(self, mode):
        snapshot = importlib.import_module("test_snapshot").Snapshot
        case = snapshot("crowd")
        case.setUp()
        self.addCleanup(case.doCleanups)
        t = case.crowd()
        taken = case.read(case.take(t.pid, "--mode", mode))
        self.assertEqual(taken["mode"], mode)
        case.assert_truth(t, taken)
        case.assert_unharmed(t)

    def test_mode_stop(self):
        self.in_mode("stop")

    def test_mode_quick(self):
        self.in_mode("quick")

    def test_mode_fork(self):
        self.in_mode("fork")


class Noexec(harness.Case):
    """vm.memfd_noexec (Linux 6.3) removes the execute permission of memory files, unless requested otherwise (1) or always (2)."""

    SETTING = "/proc/sys/vm/memfd_noexec"

    def setUp(self):
        super().setUp()
        if not os.path.exists(self.SETTING):
            self.skipTest("this kernel has no vm.memfd_noexec")
        self.was = self.read_setting()
        self.addCleanup(self.write_setting, self.was)

    def read_setting(self):
        with open(self.SETTING) as f:
            return f.read().strip()

    def write_setting(self, value):
        with open(self.SETTING, "w") as f:
            f.write(value)

    def probed(self):
        t = self.target("spin", 0, 200)
        before = harness.State(t.pid)
        r = self.attach(t, "--function", "foo", "-n", 20)
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)
        return r

    def test_one_is_no_hindrance(self):
        self.write_setting("1")
        r = self.probed()
        self.assert_ok(r)
        self.assert_hits(r, 20)

    def test_two_works_or_is_refused_by_name(self):
        self.write_setting("2")
        r = self.probed()
        if r.status == 0:
            self.assert_hits(r, 20)
        else:
            self.assertEqual(r.status, harness.OWN_FAILURE, str(r))
            self.assertIn("memfd_noexec", r.err)


class Unit(unittest.TestCase):
    """A binary of tests/unit, or those of its tests that match a pattern: BINARY:PATTERN."""

    def __init__(self, name):
        super().__init__("run_binary")
        self.binary, _, self.pattern = name.partition(":")
        if not os.path.exists(os.path.join(UNITS, self.binary)):
            raise LookupError(f"there is no unit test {self.binary} in {UNITS}")

    def id(self):
        return "unit." + self.binary

    def run_binary(self):
        argv = [os.path.join(UNITS, self.binary), "--jobs", "1", "--filter", "*/" + (self.pattern or "*")]
        p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=300)
        self.assertEqual(p.returncode, 0, p.stdout.decode(errors="replace")[-6000:])


def patient():
    """Multiplies all time limits of the tests, and the lengths of timed runs, by SLOW: they were chosen for processors, not for emulators."""
    wait_until, wait, communicate = harness.wait_until, subprocess.Popen.wait, subprocess.Popen.communicate
    attach = harness.Case.attach
    longer = lambda timeout: timeout and timeout * SLOW
    runs = lambda args: [longer(float(arg)) if before == "-d" else arg for before, arg in zip((None, *args), args)]
    harness.Case.attach = lambda self, target, *args, **kw: attach(self, target, *runs(args), **kw)
    harness.wait_until = lambda condition, seconds=60.0, what="condition": wait_until(condition, longer(seconds), what)
    subprocess.Popen.wait = lambda self, timeout=None: wait(self, longer(timeout))
    subprocess.Popen.communicate = lambda self, input=None, timeout=None: communicate(self, input, longer(timeout))


def find(name):
    """The test case of that name."""
    module, *rest = name.split(".")
    if module == "unit":
        return Unit(rest[0])
    found = sys.modules["__main__"] if module == "smoke" else importlib.import_module(module)
    case = getattr(found, rest[0])
    if not callable(getattr(case, rest[1], None)):
        raise LookupError(f"there is no test {name}")
    return case(rest[1])


def run(topic, name):
    """Runs one test; prints a line with the result, and below it what failed."""
    result, start = unittest.TestResult(), time.monotonic()
    find(name).run(result)
    faults = [text for _, text in result.failures + result.errors]
    if faults:
        word = "late" if SLOW > 1 and all(LATE.search(text) for text in faults) else "FAIL"
    else:
        word = "skip" if result.skipped else "ok"
    print(word, topic, name, f"{time.monotonic() - start:.1f}", *(why for _, why in result.skipped), flush=True)
    for line in "".join(faults).splitlines():
        print("   ", line, flush=True)
    return word


def processor():
    """The processor's name, and its features on which the code in a probed process depends."""
    with open("/proc/cpuinfo") as f:
        facts = dict(map(str.strip, line.split(":", 1)) for line in f if ":" in line)
    known = "fsgsbase xsave xsavec avx avx2 avx512bw amx_tile user_shstk".split()
    return f"{facts['model name']} ({' '.join(flag for flag in known if flag in facts['flags'].split())})"


def asked(only):
    """[(topic, name)]: the whole suite, or the topics and tests in `only`."""
    every = [(topic, name) for topic, names in SUITE.items() for name in names.split()]
    wanted = only.split(",") if only else SUITE
    return [x for x in every if x[0] in wanted] + [("asked", name) for name in wanted if "." in name]


def main():
    tests = asked(os.environ.get("ONLY", ""))
    if "--list" in sys.argv:
        print(*(f"{topic} {find(name).id()}" for topic, name in tests), sep="\n")
        return
    lttng_env.isolate(network=True)
    patient()
    print("kernel:", os.uname().release)
    print("processor:", processor(), flush=True)
    words = [run(topic, name) for topic, name in tests]
    print(*(f"{words.count(word)} {said}" for word, said in (("ok", "passed"), ("FAIL", "failed"), ("late", "late"), ("skip", "skipped"))), sep=", ")
    sys.exit("FAIL" in words)


if __name__ == "__main__":
    main()
