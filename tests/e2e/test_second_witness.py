# SPDX-License-Identifier: MIT
"""Tests variables against gdb: at some instructions of a program, gdb's value of every variable is compared with a probe's.

A probe may say that a value is not available where gdb shows one (it does not guess what a register held earlier, in a caller). It never
shows another value, nor one where gdb has none.
"""

import json
import math
import os
import struct
import subprocess

import harness
from harness import FULL, Case, long_form, needs

PROBES = 30
HERE = os.path.dirname(os.path.abspath(__file__))


@needs("gdb")
class SecondWitness(Case):
    def build(self, source, *command):
        return harness.compiled(self.path(source + ".program"), *command, "-no-pie", os.path.join(HERE, "variables", source))

    def gdb(self, program, functions, every, random):
        """{place: {variable: value}} at the first hits, by gdb."""
        env = dict(os.environ, FUNCTIONS=functions, EVERY=str(every), DEBUGINFOD_URLS="", RANDOM=random, ARGS="3")
        done = subprocess.run(["gdb", "-batch", "-nx", "-x", os.path.join(HERE, "gdb_values.py"), program], capture_output=True, text=True, timeout=300, env=env)
        lines = [json.loads(x[7:]) for x in done.stdout.splitlines() if x.startswith("VALUES ")]
        self.assertTrue(lines, done.stdout[-2000:] + done.stderr[-2000:])
        self.address = {x["site"]: x["address"] for x in lines}
        return {x["site"]: x["values"] for x in lines}

    def stable(self, program, functions, every):
        """Without uninitialized stack contents and addresses that change: the values that two runs agree on."""
        a, b = self.gdb(program, functions, every, ""), self.gdb(program, functions, every, "1")
        return {site: {k: v for k, v in values.items() if b.get(site, {}).get(k) == v} for site, values in a.items()}

    def probe(self, program, sites):
        """The first event of each place, by dynprobe; one run has as many probes as a command line takes."""
        first = {}
        for at in range(0, len(sites), PROBES):
            first.update(self.probe_some(program, sites[at:at + PROBES]))
        return first

    def probe_some(self, program, sites):
        probes = [x for i, s in enumerate(sites) for x in ("--name", f"p{i}", "--probe", hex(self.address[s]), "-t", "args", "-t", "locals")]
        r = self.dynprobe(*probes, "--", program, "3")
        self.assertIn(r.status, (0, 121), r.err[-3000:])
        first = {}
        for e in r.events:
            first.setdefault(sites[int(e["probe"][1:])], e)
        return first

    def same(self, gdb, ours):
        if isinstance(gdb, dict) and "float" in gdb:
            pack = "<f" if gdb["size"] == 4 else "<d"
            ours = float(ours)  # "nan" is a string in JSON
            return struct.pack(pack, gdb["float"]) == struct.pack(pack, ours) or (math.isnan(ours) and math.isnan(gdb["float"]))
        if isinstance(gdb, dict):
            return ours is not None and gdb["string"] == ours
        if isinstance(gdb, bool) or isinstance(ours, bool):
            return bool(gdb) == bool(ours)
        if isinstance(ours, str) and ours.startswith("0x"):
            return gdb == int(ours, 16)
        return gdb == ours

    def check(self, source, functions, every, least, *command):
        program = self.build(source, *command)
        said = self.stable(program, functions, every)
        events = self.probe(program, list(said))
        compared, differences, more = 0, [], []
        for site, values in said.items():
            fields, absent = events.get(site, {}).get("fields", {}), events.get(site, {}).get("absent", {})
            for name, value in values.items():
                if name not in fields or name in absent or fields[name] is None:
                    more.append((site, name, value, absent.get(name)))
                elif value == "<optimized out>" or not self.same(value, fields[name]):
                    differences.append(f"{site} {name}: gdb {value}, dynprobe {fields[name]}")
                else:
                    compared += 1
        print(f"{source} {' '.join(command)}: {len(events)} of {len(said)} sites, {compared} equal, {len([m for m in more if m[2] != '<optimized out>'])} "
              f"only by gdb, {len([m for m in more if m[2] == '<optimized out>'])} by neither")
        if os.environ.get("DP_VERBOSE"):
            print(*more, sep="\n")
        self.assertEqual(differences, [])
        self.assertGreater(compared, least)

    def test_gdb_optimized(self):
        self.check("plain.c", "work main", 1 if FULL else 10, 20, "gcc", "-O2", "-g")

    @long_form
    def test_gdb_unoptimized(self):
        self.check("plain.c", "work fill half_of", 2, 20, "gcc", "-O0", "-g")

    def test_gdb_inlined(self):
        self.check("inlined.c", "visit", 1, 20, "gcc", "-O2", "-g")

    @needs("clang")
    def test_gdb_clang(self):
        self.check("plain.c", "work main", 1 if FULL else 16, 20, "clang", "-O2", "-g")

    @long_form
    def test_gdb_all_instructions(self):
        for command in (("gcc", "-O1", "-g"), ("gcc", "-O3", "-g", "-gdwarf-4"), ("gcc", "-O2", "-g", "-flto"), ("gcc", "-Og", "-g")):
            self.check("plain.c", "work main", 1, 20, *command)
            self.check("inlined.c", "visit", 1, 5, *command)


if __name__ == "__main__":
    harness.main()
