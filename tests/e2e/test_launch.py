# SPDX-License-Identifier: MIT
"""Tests dynprobe -c CMD and dynprobe -- CMD ARGS: the probes are armed before main, and nothing else changes for the program."""

import os
import signal
import subprocess

import harness
from harness import Case, target_path


class Launch(Case):
    def plain(self, *argv, **kw):
        return subprocess.run(list(argv), capture_output=True, text=True, **kw)

    def test_armed_before_main_every_call_is_seen(self):
        r = self.dynprobe("--function", "foo", "--", target_path("spin"), 25)
        self.assert_ok(r)
        self.assertEqual(len(r.events), 25, str(r))

    def test_static_program_is_armed_before_main(self):
        for name in ("spin-static", "spin-static-pie"):
            with self.subTest(name):
                r = self.dynprobe("--function", "foo", "--", target_path(name), 25)
                self.assert_ok(r)
                self.assertEqual(len(r.events), 25, str(r))

    def test_main_of_a_stripped_program(self):
        r = self.dynprobe("--function", "main", "-c", "ls -l /etc", env=harness.environment(LANG="C"))
        self.assert_ok(r)
        self.assertEqual(len(r.events), 1, str(r))
        self.assertEqual(r.out, self.plain("ls", "-l", "/etc", env=harness.environment(LANG="C")).stdout)

    def test_main_with_an_offset(self):
        r = self.dynprobe("--probe", "main+0x0", "--", target_path("spin"), 5)
        self.assert_ok(r)
        self.assertEqual(len(r.events), 1, str(r))

    def test_words_are_split_as_a_shell_does(self):
        r = self.dynprobe("--function", "main", "-c", r"""printf '%s|' 'two words' "and more" three\ too ''""")
        self.assertEqual(r.out, "two words|and more|three too||", str(r))

    def test_output_of_the_command_is_untouched(self):
        plain = self.plain(target_path("spin"), "2000").stdout.splitlines()
        r = self.dynprobe("--function", "foo", "-t", "regs", "--", target_path("spin"), 2000)
        self.assertEqual(r.out.splitlines()[1:], plain[1:])  # the first line contains the pid

    def test_input_of_the_command_is_untouched(self):
        self.written("in", "some\ninput\n")
        with open(self.path("in")) as f:
            r = self.dynprobe("--function", "main", "-c", "cat", stdin=f)
        self.assert_ok(r)
        self.assertEqual(r.out, "some\ninput\n")

    def test_exit_status_passes_through(self):
        for code in (0, 1, 42, 255):
            with self.subTest(code):
                self.assert_ok(self.dynprobe("--function", "foo", "--", target_path("crasher"), code), code)

    def test_fatal_signal_passes_through(self):
        for how, sig in (("segv", signal.SIGSEGV), ("abort", signal.SIGABRT), ("kill", signal.SIGKILL), ("term", signal.SIGTERM)):
            with self.subTest(how):
                r = self.dynprobe("--function", "foo", "--", target_path("crasher"), how)
                self.assertIn(r.status, (-sig, 128 + sig), str(r))
                self.assertEqual((len(r.events), r.summary["recorded"]), (10, 10), str(r))

    def test_unknown_command_is_said_as_env_does(self):
        r = self.dynprobe("--function", "main", "-c", "no-such-command-here")
        self.assertEqual(r.status, 127, str(r))
        self.assertIn("DP-EXEC", r.err)

    def test_unknown_symbol_does_not_run_the_command(self):
        r = self.dynprobe("--function", "fooo", "--", "touch", self.path("made"))
        self.assertEqual(r.status, harness.OWN_FAILURE, str(r))
        self.assertFalse(os.path.exists(self.path("made")))

    def test_command_goes_on_after_n_hits(self):
        r = self.dynprobe("-n", 3, "--function", "foo", "--", target_path("spin"), 50)
        self.assertGreaterEqual(len(r.events), 3)
        self.assertIn("RESULT OK", r.out, str(r))

    def test_pauses_do_not_hold_the_time_in_which_it_ran(self):
        """The program was stopped before its start: the pauses at the end do not contain that time."""
        r = self.dynprobe("-d", 3, "--function", "foo", "--", target_path("spin"), 10000, 500)
        self.assertLess(r.summary["stops_detach"]["held_ns"], r.summary["armed_ns"] // 2, r)

    def test_environment_and_arguments_are_the_commands_own(self):
        r = self.dynprobe("--function", "main", "--", "sh", "-c", 'echo "$0 $1 $DP_VALUE"', "zero", "one", env=harness.environment(DP_VALUE="kept"))
        self.assertEqual(r.out, "zero one kept\n", str(r))

    def test_signals_and_descriptors_of_the_command_are_a_shells(self):
        show = "grep -E '^(SigBlk|SigIgn|SigCgt)' /proc/self/status; ls -l /proc/self/fd | awk '{print $9}'"
        plain = self.plain("bash", "-c", show, stdin=subprocess.DEVNULL).stdout
        self.assertEqual(self.dynprobe("--function", "main", "--", "bash", "-c", show).out, plain)


if __name__ == "__main__":
    harness.main()
