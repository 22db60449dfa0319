# SPDX-License-Identifier: MIT
"""Tests that "what to do" fits the case, where several cases share a tag."""

import signal

import harness


class Busy(harness.Case):
    def killed(self, target, *probes):
        """A dynprobe that died with its probes in the target."""
        p = self.start_attached(target, *probes)
        p.kill()
        p.wait()
        self.assertNotEqual(harness.changed_text(target.pid), [])

    def test_bytes_that_another_tool_changed_after_a_dynprobe_was_killed(self):
        t = self.target("spin", 0, 300)
        self.killed(t, "--function", "foo")
        t.process.send_signal(signal.SIGSTOP)  # it never comes by: the other tool's jump leads nowhere
        harness.wait_until(lambda: t.state() == "T", what="the target to stop")
        site = t.site()
        with open(f"/proc/{t.pid}/mem", "r+b", buffering=0) as mem:
            mem.seek(site)
            ours = mem.read(1)
            mem.seek(site)
            self.assertEqual(ours, b"\xe9")
            mem.write(b"\xeb")
        r = self.attach(t, "--function", "caller", "-n", 3)
        self.assert_refused(r, "DP-BUSY", "another tool changed the bytes", "what to do: let the other tool take its bytes back first")
        self.assertNotIn("neighbouring", r.err)
        t.process.kill()

    def test_a_process_that_shares_the_memory(self):
        t = self.target("cloner", "beside")
        self.killed(t, "--function", "foo")
        r = self.attach(t, "--function", "foo", "-n", 3)
        self.assert_refused(r, "DP-BUSY", "shares its memory", "what to do: try again when that has passed")
        self.assertNotIn("neighbouring", r.err)


if __name__ == "__main__":
    harness.main()
