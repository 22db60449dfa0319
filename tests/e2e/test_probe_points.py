# SPDX-License-Identifier: MIT
"""Tests SPEC: addresses, symbols, offsets, modules; ambiguous, unknown and misplaced ones are refused with help."""

import re

import binutils
import harness
from harness import Case, target_path


class ProbePoints(Case):
    def setUp(self):
        super().setUp()
        self.t = self.target("spin", 0, 200)

    def hit(self, *spec, n=3):
        r = self.attach(self.t, *spec, "-t", "reg:rip", "-n", n)
        self.assert_ok(r)
        self.assert_hits(r, n)
        return int(r.events[0]["fields"]["rip"], 0)

    def test_addresses_in_every_base(self):
        site = self.t.site()
        for text in (f"{site:#x}", f"{site}", f"0{site:o}"):
            with self.subTest(text):
                self.assertEqual(self.hit("--probe", text), site)

    def test_symbol_and_module(self):
        site = self.t.site()
        for text in ("foo", "spin!foo", "foo+0", "spin!foo+0x0"):
            with self.subTest(text):
                self.assertEqual(self.hit("--probe", text), site)

    def test_offsets_at_instruction_boundaries(self):
        placed = 0
        for offset in binutils.offsets(target_path("spin"), "foo"):
            r = self.attach(self.t, "--probe", f"foo+{offset:#x}", "-n", 1)
            if r.status == harness.OWN_FAILURE:
                self.assertRegex(r.err, r"DP-(TOO-SHORT|UNRELOCATABLE|NO-SPACE)", str(r))
            else:
                placed += 1
                self.assert_ok(r)
                self.assert_hits(r)
        self.assertGreater(placed, 2)
        self.assert_clean(self.t.pid)
        self.assert_result_ok(self.t)

    def test_offset_inside_an_instruction_names_its_neighbours(self):
        starts = binutils.offsets(target_path("spin"), "foo")
        inside = next(a + 1 for a, b in zip(starts, starts[1:]) if b - a > 1)
        before, behind = max(s for s in starts if s < inside), min(s for s in starts if s > inside)
        r = self.attach(self.t, "--probe", f"foo+{inside:#x}", "-n", 1)
        self.assert_refused(r, "DP-NOT-BOUNDARY")
        self.assertTrue(f"{before:#x}" in r.err or "foo" in r.err, str(r))
        self.assertIn(f"{behind:#x}"[2:], r.err, str(r))

    def test_unknown_symbol_suggests(self):
        r = self.attach(self.t, "--function", "fooo", "-n", 1)
        self.assert_refused(r, "DP-NO-SYMBOL", "foo")
        self.assertRegex(r.err, r"did you mean")

    def test_unknown_module(self):
        self.assert_refused(self.attach(self.t, "--function", "libnothing.so!foo", "-n", 1), "DP-NO-MODULE")

    def test_ambiguous_symbols_are_listed(self):
        plugin = target_path("plugin.so")
        t = self.target("unmapper", plugin)
        # target_expected is not global; `foo` is only in the executable; both modules have an `_init`
        r = self.attach(t, "--probe", "_init", "-n", 1)
        self.assert_refused(r, "DP-AMBIGUOUS", "plugin.so!_init", "unmapper!_init")

    def test_library_function_by_module(self):
        r = self.attach(self.t, "--function", "libc.so.6!clock_nanosleep", "-n", 3)
        self.assert_ok(r)
        self.assert_hits(r, 3)
        self.assertEqual(r.events[0]["probe"], "clock_nanosleep")

    def test_address_outside_of_code(self):
        self.assert_refused(self.attach(self.t, "--probe", f"{self.t.site('counter'):#x}", "-n", 1), "DP-NOT-CODE")
        self.assert_refused(self.attach(self.t, "--probe", "0x10", "-n", 1), "DP-NOT-CODE")

    def test_malformed_specs_show_the_place(self):
        for wrong in ("", "foo+", "foo+0xg", "!foo", "spin!", "foo bar", "+4", "99x"):
            with self.subTest(wrong):
                r = self.attach(self.t, "--probe", wrong, "-n", 1)
                self.assertEqual(r.status, harness.OWN_FAILURE, str(r))
                self.assertRegex(r.err, r"DP-(SYNTAX|USAGE|NO-SYMBOL)")
        self.assert_clean(self.t.pid)

    def test_several_probes_at_one_place_are_several_probes(self):
        r = self.attach(self.t, "--function", "foo", "--name", "again", "--probe", "foo", "-t", "reg:rip", "-n", 20)
        self.assert_ok(r)
        counts = {name: sum(e["probe"] == name for e in r.events) for name in ("foo", "again")}
        self.assertLessEqual(abs(counts["foo"] - counts["again"]), 1, counts)
        self.assertEqual({int(e["fields"]["rip"], 0) for e in r.events if e["probe"] == "again"}, {self.t.site()})

    def test_some_placed_some_refused_is_said_and_in_the_status(self):
        t = self.target("points")
        r = self.attach(t, "--function", "two_returns", "--return", "never_returns", "-n", 3)
        self.assertEqual(r.status, 121, str(r))
        self.assert_hits(r, 3)
        self.assertIn("DP-NO-RETURN", r.tags())
        self.assertEqual((r.summary["asked"], r.summary["placed"], r.summary["refused"]), (2, 1, 1))

    def test_endbr_stays_in_place(self):
        t = self.target("spin-cet", 0, 200)
        site = t.site()
        self.assertEqual(harness.read_memory(t.pid, site, 4), b"\xf3\x0f\x1e\xfa")
        p = self.start_attached(t, "--function", "foo")
        self.assertEqual(harness.read_memory(t.pid, site, 4), b"\xf3\x0f\x1e\xfa")
        self.finish(p)
        self.assert_result_ok(t)

    def test_many_probes_at_once(self):
        t = self.target("asm_forms")
        names = binutils.said("nm", t.path)
        forms = re.findall(r" T (form_\w+)", names)
        r = self.attach(t, *(x for f in forms for x in ("--function", f)), "-t", "regs", "-n", 200 * len(forms))
        self.assertIn(r.status, (0, 121), str(r))
        self.assertGreater(len({e["probe"] for e in r.events}), len(forms) // 2)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)


class Forms(Case):
    """Probes each instruction form of asm_forms.S by itself: it is hit, results are correct, and nothing is left."""

    def test_each_form(self):
        plain = self.target("asm_forms", 3)
        plain.process.wait()
        expected = plain.output().splitlines()[1:]
        forms = [line.split()[0] for line in expected if not line.startswith("RESULT")]
        placed = 0
        for form in forms:
            with self.subTest(form):
                r = self.dynprobe("--function", f"form_{form}", "-t", "regs", "--", target_path("asm_forms"), 3)
                self.assertEqual(r.out.splitlines()[1:], expected, str(r)) if r.out else None
                if r.events:
                    placed += 1
                    self.assert_ok(r)
                else:
                    self.assertRegex(r.err, r"DP-(TOO-SHORT|UNRELOCATABLE|UNDECODABLE|NO-SPACE)")
        self.assertGreater(placed, len(forms) * 2 // 3)


if __name__ == "__main__":
    harness.main()
