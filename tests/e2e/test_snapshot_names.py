# SPDX-License-Identifier: MIT
"""Tests that snapshots name an executable by the link that started it, as backtraces do: redis-server may be a link to redis-check-rdb."""

import os

import browser
import harness
import redis_server
import test_snapshot
from harness import needs

PROGRAM = """
#include <stdio.h>
#include <unistd.h>
int counter = 4711;
__attribute__((noinline)) int inner(int *p) { puts("READY"); fflush(stdout); for (;;) pause(); return *p; }
int main(void) { return inner(&counter) + 1; }
"""


class Names(harness.Case):
    take, read = test_snapshot.Snapshot.take, test_snapshot.Snapshot.read

    def setUp(self):
        super().setUp()
        self.count = 0
        self.real = harness.compiled(self.path("check-tool"), "gcc", "-g", "-O0", text=PROGRAM)
        os.symlink("check-tool", self.path("server"))
        os.link(self.real, self.path("twin"))

    def modules_shown(self, path, *args):
        """The modules of the program's own frames."""
        text = harness.tool("show", *args, path, status=0).stdout
        return {line.split(" [")[1].rstrip("]") for line in text.splitlines() if " in inner" in line or " in main" in line}

    def assert_named_server(self, r):
        s = self.read(r)
        self.assertEqual(self.modules_shown(r.path), {"server"})
        self.assertEqual(self.modules_shown(r.path, "-v"), {self.real}, "the whole path is the file's")
        executable, = [o for o in s["objects"] if o["path"] == self.real]
        self.assertEqual(executable["name"], "server")
        self.assertEqual([o["path"] for o in s["objects"] if "name" in o], [self.real])
        self.assertEqual({f["object"] for f in s["threads"][0]["frames"] if f.get("symbol") in ("inner", "main")}, {self.real})
        return s

    def test_a_link_that_was_started(self):
        t = self.target(self.path("server"))
        r = self.take(t.pid)
        s = self.assert_named_server(r)
        text = harness.tool("show", r.path, status=0).stdout
        self.assertIn(f"  executable   {self.real} (started as server)\n", text)
        self.assertEqual(s["exe"], self.real)
        self.assertIn(f"{self.real} (started as server) 0x", harness.tool("show", "-v", "--maps", r.path, status=0).stdout)

    def test_a_core_file(self):
        t = self.target(self.path("server"))
        self.assert_named_server(self.take("--core", self.core(t.pid)))
        self.assert_named_server(self.take("--core", self.core(t.pid), self.path("server")))

    def test_the_file_is_named_so_too(self):
        t = self.target(self.path("server"))
        p = harness.tool("snapshot", t.pid, cwd=self.dir, status=0)
        self.assertRegex(p.stdout, rf"^server\.{t.pid}\.\d+\.dps\n$")

    def test_a_global_by_the_module_s_name(self):
        t = self.target(self.path("server"))
        for name in "server!counter", "check-tool!counter":
            r = self.take(t.pid, "--global", name)
            self.assertEqual([g["value"] for g in self.read(r)["globals"]], ["4711"], name)

    def test_hard_links_and_the_file_itself_have_their_own_names(self):
        for name in "twin", "check-tool":
            t = self.target(self.path(name))
            r = self.take(t.pid)
            self.assertEqual([o for o in self.read(r)["objects"] if "name" in o], [])
            self.assertEqual(self.modules_shown(r.path), {name})
            self.assertNotIn("started as", harness.tool("show", r.path, status=0).stdout)

    def test_a_name_that_is_no_link_to_the_file_is_not_believed(self):
        t = self.target(self.real, prefix=("bash", "-c", 'exec -a liar "$0"'))
        r = self.take(t.pid)
        self.assertEqual(self.modules_shown(r.path), {"check-tool"})

    def test_the_page(self):
        t = self.target(self.path("server"))
        r = self.take(t.pid, "--global", "counter")
        harness.tool("report", r.path, "-o", self.path("page.html"), status=0)
        b = browser.Browser()
        self.addCleanup(b.close)
        b.open(self.path("page.html"))
        until = "(async () => { for (let i = 0; i < 2000 && !(%s); i++) await new Promise((r) => setTimeout(r, 10)); })()"
        b.run(until % "document.body.dataset.ready === 'yes'")
        for tab, text in (("maps", f"{self.real}  (started as server)"), ("globals", "server")):
            b.run(f"[...document.querySelectorAll('#tabs button')].find((x) => x.dataset.tab === '{tab}').click()")
            b.run(until % f"document.getElementById('body').textContent.includes({text!r})")
            self.assertIn(text, b.run("document.getElementById('body').textContent"))

    @needs("redis-server")
    def test_redis(self):
        redis = redis_server.RedisServer(self, socket=self.path("socket"))
        r = self.take(redis.pid)
        text = harness.tool("show", r.path, status=0).stdout
        self.assertIn(" in main [redis-server]\n", text)
        self.assertNotIn("[redis-check", text)


if __name__ == "__main__":
    harness.main()
