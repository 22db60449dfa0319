# SPDX-License-Identifier: MIT
"""Tests --dry-run: an attach does what the plan says, and the process does not notice the planning."""

import json
import re
import subprocess

import binutils
import harness
from harness import KEPT_TEXT_KIB, Case, State, needs, wait_until

PAGE = 4096
SLACK = 2  # mappings that may differ: each attach places its stubs anew


class DryRun(Case):
    def plan(self, *words, status=0):
        p = harness.tool(*words, "--dry-run", "-f", "json", status=status)
        lines = [json.loads(line) for line in p.stdout.splitlines()]
        return [x for x in lines if x["type"] == "plan"], [x for x in lines if x["type"] == "plan_total"]

    def spin(self):
        return self.target("spin", 0, 1000)

    def check_site(self, t, p):
        """The plan's bytes are those in memory, apart from evicted neighbours, and the plan says which bytes will not change."""
        old, new, at = bytes.fromhex(p["old"]), bytes.fromhex(p["new"]), int(p["addr"], 16)
        memory = bytearray(harness.read_memory(t.pid, at - 256, 512))
        for e in p["evicted"]:
            self.assertEqual(harness.read_memory(t.pid, int(e["addr"], 16), e["changed"]).hex(), e["old"][: 2 * e["changed"]])
            offset = int(e["addr"], 16) - at + 256
            memory[offset : offset + e["changed"]] = bytes.fromhex(e["new"])[: e["changed"]]
        self.assertEqual(bytes(memory[256 : 256 + len(old)]), old)
        self.assertEqual(harness.read_memory(t.pid, at, p["changed"]), old[: p["changed"]])
        self.assertEqual(len(old), len(new))
        self.assertEqual(p["changed"] + p["relied_upon"], len(new))
        self.assertEqual(old[p["changed"]:], new[p["changed"]:])
        self.assertNotEqual(old, new)

    def test_each_site_has_its_bytes(self):
        t = self.spin()
        sites, totals = self.plan("--pid", t.pid, "--function", "foo", "--function", "caller", "--probe", "libc.so.6!getpid")
        self.assertEqual([p["name"] for p in sites], ["foo", "caller", "getpid"])
        for p in sites:
            self.check_site(t, p)
            self.assertGreater(p["stub_size"], 0)
        total, = totals
        self.assertEqual((total["pid"], total["asked"], total["placed"], total["refused"]), (t.pid, 3, 3, 0))
        self.assertEqual(sum(total["tactics"].values()), 3)
        pages = {int(p["addr"], 16) // PAGE for p in sites}
        self.assertGreaterEqual(total["text_pages"], len(pages))
        self.assertLessEqual(total["text_pages"], 2 * len(pages))
        self.assert_result_ok(t)

    def test_an_attach_does_what_was_planned(self):
        t = self.spin()
        words = ["--function", "foo", "--probe", "libc.so.6!getpid", "--probe", "libc.so.6!malloc"]
        sites, (total,) = self.plan("--pid", t.pid, *words)
        tool = self.start_attached(t, *words)
        for p in sites:
            old, n = bytes.fromhex(p["old"]), p["changed"]
            now = harness.read_memory(t.pid, int(p["addr"], 16), len(old))
            self.assertNotEqual(now[:n], old[:n])
            self.assertEqual(now[n:], old[n:], "a byte changed that was only relied on")
        copied = harness.private_text_kib(t.pid) * 1024 // PAGE
        self.assertGreaterEqual(copied, total["text_pages"])
        self.assertLessEqual(copied, total["text_pages"] + KEPT_TEXT_KIB * 1024 // PAGE)
        ours = [m for m in harness.maps(t.pid) if m.is_ours and "x" in m.perms]
        self.assertLessEqual(abs(len(ours) - 1 - total["stub_mappings"]), SLACK)
        r = self.finish(tool)
        self.assertEqual(r.summary["tactics"], total["tactics"])
        self.assert_result_ok(t)

    @needs("strace")
    def test_the_process_is_neither_stopped_nor_written_to(self):
        t = self.spin()
        before = State(t.pid)
        calls = self.system_calls("ptrace,process_vm_writev,process_vm_readv,kill,tgkill,tkill,pwrite64,pwritev,write,eventfd2",
                                  "--pid", t.pid, "--function", "foo", "-t", "backtrace", "--dry-run")
        self.assertIn("write(1", calls)
        self.assertNotRegex(calls, r"(ptrace|process_vm_writev|kill|pwrite\w*)\(")
        own = set(re.findall(r"\beventfd2\(.*= (\d+)$", calls, re.M))
        self.assertEqual(set(re.findall(r"\bwrite\((\d+)", calls)) - own, {"1"})
        self.assertEqual(before.differences(State(t.pid)), {})
        self.assert_result_ok(t)

    def test_what_a_killed_dynprobe_left_is_left(self):
        t = self.spin()
        tool = self.start_attached(t, "--function", "foo")
        self.await_events(tool)  # a borrowed thread changes text, too
        tool.kill()
        tool.wait()
        before = State(t.pid)
        self.assertTrue(t.patched())
        self.plan("--pid", t.pid, "--function", "caller")
        self.assertEqual(before.differences(State(t.pid)), {})
        self.assert_ok(self.attach(t, "--function", "foo", "-n", 1))
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_text_says_the_same(self):
        t = self.spin()
        (site,), (total,) = self.plan("--pid", t.pid, "--function", "foo")
        p = harness.tool("--pid", t.pid, "--function", "foo", "--dry-run", status=0)
        first = p.stdout.splitlines()[0]
        self.assertTrue(first.startswith(f"foo  {site['addr']}  {site['where']}  {site['tactic']}  "), first)
        old, new = first.split("  ")[-1].split(" -> ")
        self.assertEqual(bytes.fromhex(old.replace("|", "")), bytes.fromhex(site["old"]))
        self.assertEqual(len(bytes.fromhex(new.split("|")[0])), site["changed"])
        self.assertIn("1 of 1 placed", p.stdout)
        self.assertRegex(p.stdout, rf"copied text: {total['text_pages']} page")

    def test_neighbours_that_give_way_are_named(self):
        t = self.target("spin-nopie", 0, 1000)
        p = harness.tool("list", "-v", "-f", "json", "--pid", t.pid, "spin-nopie!*")
        functions = [json.loads(line) for line in p.stdout.splitlines()]
        # neighbours may be in functions without a symbol
        boundaries = {hex(address) for address, _ in binutils.instructions(t.path)}
        specs = [f"{f['spec']}+{s['offset']:#x}" for f in functions if f["name"] for s in f["sites"] if s["tactic"] == "evict"]
        self.assertGreater(len(specs), 3, "instructions of a program at low addresses that need it")
        for spec in specs[:20]:
            (site,), (total,) = self.plan("--pid", t.pid, "--probe", spec)
            self.check_site(t, site)
            self.assertEqual((site["tactic"], total["hooks"]), ("evict", 0))
            self.assertGreaterEqual(len(site["evicted"]), 1, spec)
            self.assertEqual(total["evicted"], len(site["evicted"]), spec)
            self.assertLessEqual({e["addr"] for e in site["evicted"]}, boundaries)
        self.assert_result_ok(t)

    def test_only_whole_jumps_contain_no_byte_of_other_instructions(self):
        t = self.spin()
        words = ["--pid", t.pid, "--probe", "foo:*", "--probe", "libc.so.6!malloc:*"]
        sites, (total,) = self.plan(*words, "--tactic", "jump", "--no-trap", status=None)
        placed = [p for p in sites if p["tactic"]]
        self.assertGreater(len(placed), 5)
        self.assertEqual({(p["tactic"], p["changed"], p["relied_upon"], len(p["evicted"])) for p in placed}, {("jump", 5, 0, 0)})
        self.assertEqual({p["tag"] for p in sites if not p["tactic"]}, {"DP-TOO-SHORT"})
        self.assertEqual(total["hooks"], 0)
        free, _ = self.plan(*words)
        self.assertGreater(sum(p["relied_upon"] > 0 for p in free), 0, "by default some do")
        self.assert_result_ok(t)

    def test_of_an_attach_and_of_a_session_of_lttngs(self):
        t = self.spin()
        wanted = self.plan("--pid", t.pid, "--function", "foo")[0][0]
        for words in (("attach", "--sink", "ring"), ("--session", "no-such-session"), ("attach", "--session", "no-such-session")):
            (site,), (total,) = self.plan(*words, "--pid", t.pid, "--function", "foo")
            self.assertEqual((site["addr"], site["tactic"], site["old"]), (wanted["addr"], wanted["tactic"], wanted["old"]))
            self.assertEqual(total["note"] is not None, "--session" in words)
        p = harness.tool("attach", "-f", "json", "--pid", t.pid, "--function", "foo", status=harness.OWN_FAILURE)
        self.assertIn("DP-USAGE", p.stderr)
        self.assertFalse(t.patched())

    def test_two_processes_have_a_total_each(self):
        a, b = self.spin(), self.target("spin-nopie", 0, 1000)
        sites, totals = self.plan("--pid", a.pid, "--pid", b.pid, "--function", "foo")
        self.assertEqual([p["pid"] for p in sites], [a.pid, b.pid])
        self.assertEqual([x["pid"] for x in totals], [a.pid, b.pid])
        for t, p in zip((a, b), sites):
            self.check_site(t, p)

    def test_a_command_that_is_started_for_it_does_not_run(self):
        made = self.path("made")
        sites, totals = self.plan("-c", f"touch {made}", "--function", "main")
        self.assertEqual((len(sites), len(totals)), (1, 1))
        self.assertFalse(harness.os.path.exists(made))

    def test_a_reader_that_has_enough_is_no_failure(self):
        t = self.spin()
        p = subprocess.Popen([harness.DYNPROBE, "--pid", str(t.pid), "--function", "foo", "--dry-run"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdout.close()
        wait_until(lambda: p.poll() is not None, what="the plan")
        self.assertEqual((p.wait(), p.stderr.read()), (0, b""))
        p.stderr.close()

    def test_a_full_disk_is_a_failure(self):
        t = self.spin()
        with open("/dev/full", "w") as full:
            p = subprocess.run([harness.DYNPROBE, "--pid", str(t.pid), "--function", "foo", "--dry-run"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
        self.assertEqual(p.returncode, harness.OWN_FAILURE)
        self.assertIn("DP-OUTPUT", p.stderr)


if __name__ == "__main__":
    harness.main()
