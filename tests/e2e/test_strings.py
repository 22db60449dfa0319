# SPDX-License-Identifier: MIT
"""Tests strings that carry their length: str(p, LENGTH), and those that are known by their types, in C, C++, and Rust."""

import glob
import os

import harness
from harness import Case, needs

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "variables")
WHOLE = "/index.html?a=1 HTTP/1.1\r\nHost: example.org\r\n"


class Strings(Case):
    def program(self, name, *command):
        return harness.compiled(self.path("program"), *command, "-g", os.path.join(SOURCES, name), cwd=self.dir)

    def events(self, *args):
        r = self.dynprobe("--function", "handle", *args, "--", self.path("program"))
        self.assert_ok(r)
        return r.events

    def fields(self, *args):
        return [e["fields"] for e in self.events(*args)]

    def kept(self, when):
        return [e["fields"]["id"] for e in self.events("-t", "id=r->id", "--when", when)]

    @needs("gcc")
    def test_a_length_that_is_an_expression(self):
        self.program("strings.c", "gcc", "-O1")
        f = self.fields("-t", "a=str(r->uri.data, r->uri.len)", "-t", "b=str(r->uri.data, n)", "-t", "c=str(r->uri.data, 2 * r->uri.len, 15)")
        self.assertEqual([x["a"] for x in f], ["/index.html"] * 4 + [WHOLE])
        self.assertEqual([x["b"] for x in f], ["", "", "/index", WHOLE, ""])
        self.assertEqual([x["c"] for x in f], ["/index.html?a=1..."] * 5)

    @needs("gcc")
    def test_a_length_that_cannot_be_read(self):
        self.program("strings.c", "gcc", "-O1")
        e = self.events("-t", "a=str(r->uri.data, *(int *)8)", "-t", "b=str(r->host.ptr, r->host.len)", "-t", "c=str((char *)8, n)")
        self.assertEqual([x["fields"]["a"] for x in e], [None] * 5)
        self.assertEqual(e[4]["unreadable"], ["a", "b"])
        self.assertEqual([x["fields"]["c"] for x in e], ["", "", None, None, ""])

    @needs("gcc")
    def test_structs_of_data_and_length(self):
        self.program("strings.c", "gcc", "-O0")
        f = self.fields("-t", "args", "-t", "*r")
        shown = [{k: x[k] for k in ("method", "r_uri", "r_none", "r_host")} for x in f]
        self.assertEqual(shown[:4], [{"method": "GET", "r_uri": "/index.html", "r_none": "", "r_host": "example.org"}] * 4)
        self.assertEqual(shown[4], {"method": "", "r_uri": WHOLE, "r_none": "", "r_host": None})
        self.assertEqual(f[0]["r_body_size"], 2, "bytes of unknown meaning are no string")
        self.assertEqual(self.fields("-t", "str(r->uri, 4)")[0], {"r_uri": "/ind..."})
        self.assertEqual(self.fields("-t", "r->uri.len")[0], {"r_uri_len": 11})

    @needs("gcc")
    def test_comparisons(self):
        self.program("strings.c", "gcc", "-O1")
        for when, ids in (('r->uri == "/index.html"', [0, 1, 2, 3]), ('r->uri == "/index"', []), ('r->uri != "/index.html"', [3]),
                          ('r->uri =~ "*.html"', [0, 1, 2, 3]), ('r->uri =~ "/in*"', [0, 1, 2, 3, 3]), ('r->none == ""', [0, 1, 2, 3, 3]),
                          ('str(r->uri.data, n) == ""', [0, 1, 3]), ('str(r->uri.data, n) =~ "*ex"', [2]), ('"GET" == method && n > 0', [2, 3]),
                          ('str(r->uri.data, n) =~ "?????*H*"', [3])):
            self.assertEqual(self.kept(when), ids, when)
        r = self.dynprobe("--function", "handle", "--when", "r->uri == method", "--", self.path("program"))
        self.assert_refused(r, "DP-SYNTAX")
        self.assertIn("compared with a text in quotes", r.err)

    @needs("gcc")
    def test_a_recording_and_a_format(self):
        self.program("strings.c", "gcc", "-O1")
        r = self.dynprobe("--function", 'handle "%s of %s", method, r->uri', "--", self.path("program"), record=self.path("trace"))
        self.assert_ok(r)
        self.assertEqual(r.events[0]["message"], "GET of /index.html")
        shown = harness.tool("view", self.path("trace"), "--when", 'r->uri == "/index.html"').stdout
        self.assertEqual(shown.count("GET of /index.html"), 4, shown)

    @needs("g++")
    def test_cxx(self):
        for level in ("-O0", "-O2"):
            self.program("strings.cc", "g++", "-std=c++17", level)
            f, = self.fields("-t", "args", "-t", "*p", "--when", 'method == "GET" && r.uri =~ "*/heap"')
            self.assertEqual([f[k] for k in ("r_uri", "r_host", "method", "v")], ["/a/rather/long/path/that/is/on/the/heap", "localhost", "GET", "view"], level)
            self.assertEqual([v for k, v in f.items() if k not in ("r_uri", "r_host", "method", "v", "p") and isinstance(v, str)], [""], level)

    @needs("g++")
    def test_a_snapshot(self):
        self.program("strings.cc", "g++", "-std=c++17", "-O0")
        r = self.dynprobe("--probe", "strings.cc:15", "--snapshot", "--", self.path("program"), cwd=self.dir)
        self.assert_ok(r)
        file, = glob.glob(self.path("*.dps"))
        r, method, v, p = harness.shown(file)["threads"][0]["frames"][0]["variables"]
        self.assertEqual([x["value"] for x in (method, v)], ['"GET"', '"view"'])
        self.assertEqual([x["value"] for x in r["children"][0]["children"][:2]], ['"/a/rather/long/path/that/is/on/the/heap"', '"localhost"'])
        self.assertEqual(p["children"][0]["value"], '""')
        self.assertEqual(method["children"][1]["name"], "_M_string_length", "its members are still there")
        self.assertIn('v = "view"', harness.tool("show", "--frame", 0, "--var", "v", file, status=0).stdout)

    @needs("rustc")
    def test_rust(self):
        self.program("strings.rs", "rustc")
        f, = self.fields("-t", "args", "-t", "*r", "--when", 'method == "GET"')
        self.assertEqual((f["method"], f["r_uri"], f["r_id"], f["body_length"]), ("GET", "/index.html", 7, 4))

    @needs("rustc")
    def test_what_is_behind_a_rust_enum_with_values_is_not_guessed(self):
        self.program("strings.rs", "rustc")
        p = harness.tool("--function", "perhaps", "-t", "args", "-n", 1, "--", self.path("program"), status=0)
        said = "<passed in a way that dynprobe does not support>"
        self.assertIn(f'perhaps: first="first" second={said} body={said}\n', p.stderr)


if __name__ == "__main__":
    harness.main()
