# SPDX-License-Identifier: MIT
"""Tests that probes preserve the machine state (G2): at every instruction of hot code, in every thread and in a signal handler, all registers,
flags, vectors, the red zone, errno and the signal mask are unchanged, whatever the probes record.
"""

import re

import harness
from harness import Case, read_memory


HITS = 20000 if harness.FULL else 4000  # of some eighty instructions


class Canary(Case):
    def setUp(self):
        super().setUp()
        for _ in range(30):
            self.start_canary()
            if self.has_room():
                return
            self.t.close()
        self.fail("no address at which the last instruction's jump leads to a free one")

    def start_canary(self):
        self.t = self.target("canary", 4)
        offsets = re.search(r"^INSTRUCTIONS (.*)$", self.t.output(), re.M)[1].split()
        body = self.t.site("canary_body")
        self.instructions = [body + int(x) for x in offsets]

    def has_room(self):
        """One byte at the end of the text: whether its jump has a target depends on the load address. Coverage is measured elsewhere."""
        r = self.dynprobe("--pid", self.t.pid, "--dry-run", "--probe", hex(max(self.instructions)), json_events=False)
        return "DP-NO-SPACE" not in r.out + r.err

    def probed(self, sites, *contexts, hits=HITS):
        """Installs probes on all of them, waits for hits, and returns the sites that were placed."""
        probes = [x for site in sites for x in ("--probe", hex(site))]
        r = self.attach(self.t, *probes, *(x for c in contexts for x in ("-t", c)), "-n", hits, "-d", 20)
        self.assertIn(r.status, (0, 121), str(r)[-3000:])
        self.assertGreaterEqual(r.summary["hits"] if "hits" in r.summary else len(r.events), 1000, str(r)[-3000:])
        return {s for s, p in zip(sites, r.summary["probes"]) if p.get("tactic")}

    def everywhere(self, *contexts):
        """Probes every instruction at once; then those that other probes blocked."""
        placed = self.probed(self.instructions, *contexts)
        left = [s for s in self.instructions if s not in placed]
        if left:
            placed |= self.probed(left, *contexts)
        self.assertEqual([hex(s - self.instructions[0]) for s in left if s not in placed], [])

    def tearDown(self):
        self.assert_clean(self.t.pid)
        self.assert_result_ok(self.t)

    def test_registers(self):
        self.everywhere("regs")

    def test_memory_that_can_and_cannot_be_read(self):
        self.everywhere(f"string:s:{self.instructions[0]:#x}", "int:none:16", "reg:xmm5", "bytes[24]:b:" + hex(self.instructions[0]))

    def test_backtrace(self):
        self.everywhere("backtrace")

    def test_condition(self):
        args = [x for s in self.instructions for x in ("--probe", hex(s), "--when", "(rcx & 3) == 1 && r8 > r9")]
        r = self.attach(self.t, *args, *(("-d", 1) if harness.FULL else ("-n", HITS, "-d", 20)))
        self.assertGreater(sum(bool(p.get("tactic")) for p in r.summary["probes"]), len(self.instructions) * 3 // 4, str(r)[-3000:])

    def test_the_canary_sings(self):
        """Checks that the canary notices a wrong patch: here the test itself changes one instruction."""
        site = next(s for s in self.instructions if read_memory(self.t.pid, s, 3) == b"\x49\xf7\xd3")  # not %r11
        with open(f"/proc/{self.t.pid}/mem", "r+b", buffering=0) as f:
            f.seek(site)
            f.write(b"\x49\xf7\xd2")  # not %r10
            harness.wait_until(lambda: "BAD" in self.t.output(), 20, "the canary")
            f.seek(site)
            f.write(b"\x49\xf7\xd3")
        self.assertRegex(self.t.output(), "BAD r1[01] is")
        self.assertEqual(self.t.stop(), 1)
        self.tearDown = lambda: None


if __name__ == "__main__":
    harness.main()
