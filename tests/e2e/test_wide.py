# SPDX-License-Identifier: MIT
"""Tests 16-byte numbers, which no register and no 64-bit JSON parser can hold: the probe shows what the program prints, or says why it
cannot.
"""

import fractions
import json
import os
import re
import subprocess

import harness
from harness import Case, needs

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "variables")
ROUNDS = 120
SIGNED = {"a", "b_w", "h_w", "retval"}


def whole(halves, signed):
    return (halves[0] << 64) + halves[1] if signed else ((halves[0] << 64) + halves[1]) % (1 << 128)


def exact(text):
    """Parses a C99 hexadecimal number with more bits than a float has."""
    m = re.fullmatch(r"(-?)0x([0-9a-f]+)\.?([0-9a-f]*)p([-+]\d+)", text)
    if not m:
        return text.replace("-nan", "nan")
    digits = fractions.Fraction(int(m[2] + m[3], 16)) / 16 ** len(m[3])
    return (-1 if m[1] else 1) * digits * fractions.Fraction(2) ** int(m[4])


class Wide(Case):
    def build(self, *command):
        return harness.compiled(self.path("program"), *command, "-fwrapv", os.path.join(SOURCES, "wide.c"))

    def run_on(self, program, *args, status=0):
        r = self.dynprobe("--buffer-size", "4M", *args, "--", program, str(ROUNDS))
        self.assertEqual(r.status, status, r.err[-2000:])
        printed = harness.objects(r.out)
        with open(os.path.join(self.dir, f"events-{self.count}.json")) as f:  # the numbers as they are written
            lines = [json.loads(line, parse_float=str, parse_int=str) for line in f]
        return printed, [o for o in lines if o["type"] == "event"], r

    def integer(self, said, e, name):
        self.assertEqual(int(e["fields"][name]), whole(said[name], name in SIGNED), f"{name} of {said}: {e}")

    def real(self, said, e, name):
        shown, wanted = e["fields"][name], exact(said[name])
        if isinstance(wanted, str):
            self.assertEqual(shown, wanted)
            return
        self.assertLessEqual(abs(fractions.Fraction(shown) - wanted), abs(wanted) / 2**64, f"{name} of {said}: {e}")
        self.assertEqual(shown.startswith("-"), said[name].startswith("-"), name)

    def check(self, *command):
        program = self.build(*command)
        printed, events, _ = self.run_on(
            program, "--function", "work", "-t", "args", "-t", "*h", "-t", "low=(long)a", "-t", "size=sizeof(__int128) + sizeof(long double)",
            "--name", "out", "--return", "work", "-t", "retval", "-t", "global", "--name", "half", "--return", "half_of", "-t", "retval")
        of = {name: [e for e in events if e["probe"] == name] for name in ("work", "out", "half")}
        self.assertEqual([len(x) for x in of.values()], [ROUNDS] * 3)
        for said, e, out, half in zip(printed, of["work"], of["out"], of["half"]):
            for name in ("a", "b_w", "stacked", "h_w", "h_u"):
                self.integer(said, e, name)
            for name in ("ld", "h_ld"):
                self.real(said, e, name)
            self.assertEqual((int(e["fields"]["n"]), int(e["fields"]["last"])), (said["n"], said["last"]))
            self.assertEqual(int(e["fields"]["low"]) % 2**64, said["a"][1])
            self.assertEqual(e["fields"]["size"], "32")
            self.assertIn("loat128", e["absent"]["q"])
            self.integer(said, out, "retval")
            self.integer(said, out, "global")
            self.assertIn("returned in a way", half["absent"]["retval"])

    def test_gcc_unoptimized(self):
        self.check("gcc", "-O0", "-g")

    def test_gcc_optimized(self):
        self.check("gcc", "-O2", "-g")

    @needs("clang")
    def test_clang(self):
        self.check("clang", "-O0", "-g")

    def test_locals_of_both_kinds(self):
        program = self.build("gcc", "-O0", "-g")
        with open(os.path.join(SOURCES, "wide.c")) as f:
            line = next(i for i, text in enumerate(f, 1) if "line of a probe" in text)
        printed, events, _ = self.run_on(program, "--probe", f"wide.c:{line}", "-t", "locals")
        self.assertEqual(len(events), len(printed))
        for said, e in zip(printed, events):
            self.assertEqual(int(e["fields"]["sum"]), whole(said["retval"], True))
            self.real(said, e, "real")

    def test_what_computes_with_them_is_refused_by_name(self):
        program = self.build("gcc", "-O0", "-g")
        for args, words in ((["--when", "a > 5"], "128-bit integer"), (["-t", "a + 1"], "(long)x"), (["--when", "h->ld > 0.5"], "long double"),
                            (["-t", "(double)h->ld"], "long double"), (["--when", "!h->w"], "128-bit"), (["--sum", "h->w"], "128-bit")):
            r = self.dynprobe("--function", "work", *args, "--", program, "1")
            self.assertIn(r.status, (121, 125), args)
            self.assertIn(words, r.err, args)

    def test_text_has_them_as_numbers(self):
        program = self.build("gcc", "-O2", "-g")
        r = self.dynprobe("--function", "work", "-t", "x=h->w", "-t", "y=h->ld", "--", program, "12", json_events=False)
        shown = re.findall(r"work: x=(-?\d+) y=(\S+)", r.err)
        printed = harness.objects(r.out)
        self.assertEqual([int(x) for x, _ in shown], [whole(p["h_w"], True) for p in printed])
        self.assertEqual(shown[7][1], "-inf")
        self.assertEqual(shown[9][1], "-5")

    @needs("babeltrace2")
    def test_recordings_have_the_halves(self):
        program = self.build("gcc", "-O2", "-g")
        r = self.dynprobe("--function", "work", "-t", "x=h->w", "-t", "y=h->ld", "--", program, "20", record=self.path("trace"))
        self.assertEqual(r.status, 0, r.err)
        printed = harness.objects(r.out)
        done = subprocess.run(["babeltrace2", self.path("trace")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        shown = re.findall(r"x = \{ low = 0x([0-9A-F]+), high = (-?\d+) \}, y = \{ mantissa = 0x([0-9A-F]+)", done.stdout)
        self.assertEqual([(int(high), int(low, 16)) for low, high, _ in shown], [tuple(p["h_w"]) for p in printed])


if __name__ == "__main__":
    harness.main()
