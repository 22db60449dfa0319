# SPDX-License-Identifier: MIT
"""Tests the targets without dynprobe: they report no error, and do report one that is injected."""

import signal

import harness
from harness import Case, State, changed_text, needs, needs_root


class Targets(Case):
    def test_unprobed_targets_find_no_fault(self):
        for name in ("spin", "threads", "blocked", "deep", "recurse", "sigstorm", "longjmper", "forker", "closer", "caged", "asm_forms"):
            with self.subTest(name):
                self.assert_result_ok(self.target(name))

    def test_state_of_an_untouched_process_does_not_change(self):
        t = self.target("threads")
        self.assertEqual(State(t.pid).differences(State(t.pid)), {})

    @needs_root
    def test_a_changed_byte_of_text_is_seen(self):
        t = self.target("spin", 0, 1000)
        site = t.site("caller")
        byte = harness.read_memory(t.pid, site - 1, 1)  # padding before the function
        with open(f"/proc/{t.pid}/mem", "wb", buffering=0) as f:
            f.seek(site - 1)
            f.write(bytes([byte[0] ^ 1]))
        self.assertEqual(len(changed_text(t.pid)), 1)
        self.assertGreater(harness.private_text_kib(t.pid), 0)

    @needs("strace")
    def test_a_tracer_that_disturbs_system_calls_is_noticed(self):
        t = self.target("eintr")
        for _ in range(3):
            tracer = self.strace(t)
            tracer.send_signal(signal.SIGINT)
            tracer.wait()
        self.assertEqual(t.stop(), 1)
        self.assertIn("RESULT BAD", t.output())


if __name__ == "__main__":
    harness.main()
