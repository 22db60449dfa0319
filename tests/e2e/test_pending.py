# SPDX-License-Identifier: MIT
"""Tests --pending: libraries are loaded, unloaded and loaded again while probes wait for them or are installed in them."""

import json
import os
import re
import shutil
import signal
import time

import harness
from harness import wait_until

LATE = harness.target_path("late.so")
LATE_SOURCE = os.path.join(harness.ROOT, "tests", "targets", "late.c")
CONSTRUCTOR = 7  # what the library's constructor calls its own function with


class Pending(harness.Case):
    def finish(self, p, *args, **kw):
        r = super().finish(p, *args, **kw)
        r.err += "\n".join(str(x) for x in r.lines if x.get("type") != "event")  # for the failure message
        return r

    def fresh_plugin(self):
        """A copy of the library that this test may replace."""
        path = self.path("late.so")
        shutil.copy(LATE, path)
        return path

    def loads(self, mode, library=LATE):
        return self.target("loads", library, mode)

    def said(self, p):
        wait_until(lambda: os.path.exists(p.events) or p.poll() is not None, what="dynprobe to start")
        return super().said(p) if os.path.exists(p.events) else ""

    def wait_for(self, p, text, n=1):
        wait_until(lambda: p.poll() is not None or self.said(p).count(text) >= n, what=f"dynprobe to say {text!r}")
        if p.poll() is not None:
            self.fail("dynprobe ended early:\n" + str(self.finish(p, None)))

    def start_pending(self, target, *args, **kw):
        p = self.start("--pid", target.pid, "--pending", "--function", "late.so!plugin_work", "-t", "reg:rdi", *args, **kw)
        self.wait_for(p, "pending in")
        self.await_armed(p, target.pid)
        return p

    def ask(self, target, word, n=1):
        """Tells `loads once` to open or close its library; returns the time that it took."""
        target.process.send_signal(signal.SIGUSR1)
        wait_until(lambda: len(re.findall(word, target.output())) >= n or not target.alive(), what=f"the target to say {word}")
        return float(re.findall(word + r" ([0-9.]+)", target.output())[n - 1])

    def constructed(self, r):
        return [e for e in r.events if e["probe"] == "plugin_work" and e["fields"]["rdi"] == hex(CONSTRUCTOR)]

    def test_constructors_are_seen_in_a_command(self):
        r = self.dynprobe("--pending", "--function", "late.so!plugin_work", "-t", "reg:rdi", "--", harness.target_path("loads"), LATE, "main")
        self.assert_ok(r)
        self.assertIn("1 probe is pending", r.err)
        self.assertIn("RESULT OK", r.out)
        self.assertEqual([e["fields"]["rdi"] for e in r.events], [hex(i) for i in (CONSTRUCTOR, *range(20))])
        self.assertEqual((r.summary["placed"], r.summary["refused"]), (1, 0))

    def loaded_by_main(self, *args, **kw):
        return self.dynprobe("--pending", "--function", "late.so!plugin_work", *args, "--", harness.target_path("loads"), LATE, "main", **kw)

    def test_variables_get_their_meaning_when_the_library_comes(self):
        r = self.loaded_by_main("-t", "args", "-t", "twice=a * 2", "--when", "a > 15 || a == 7", record=self.path("trace"))
        self.assert_ok(r)
        wanted = [CONSTRUCTOR, 7, 16, 17, 18, 19]
        self.assertEqual([(e["fields"]["a"], e["fields"]["twice"]) for e in r.events], [(a, 2 * a) for a in wanted])
        self.assertEqual([f["name"] for x in r.lines if x["type"] == "probe" for f in x["probe"]["fields"]], ["a", "twice"])
        traced = [re.search(r"\ba = (\d+), twice = (\d+)", line).groups() for line in harness.babeltrace(self.path("trace"))]
        self.assertEqual(traced, [(str(a), str(2 * a)) for a in wanted])
        self.assertEqual(sorted(os.listdir(self.path("trace"))), ["dynprobe", "events_1", "metadata"])

    def test_a_variable_that_the_library_lacks_is_refused_when_it_comes(self):
        r = self.loaded_by_main("-t", "nothing", "--function", "foo")
        self.assert_ok(r, 121)
        self.assertEqual(r.summary["refusals"], {"DP-NO-VARIABLE": 1})
        self.assertIn("RESULT OK", r.out)

    def test_variables_of_a_library_that_comes_again(self):
        t = self.loads("once")
        p = self.start_pending(t, "-t", "a", "--when", "a != 3")
        for n in (1, 2):
            self.ask(t, "OPENED", n)
            self.await_events(p, "plugin_work", 3)
            self.ask(t, "CLOSED", n)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual([e["fields"]["a"] for e in r.events if e["fields"]["a"] > 4], [CONSTRUCTOR] * 2, str(r))
        self.assertNotIn(3, [e["fields"]["a"] for e in r.events])
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_a_symbol_without_a_module_waits_too(self):
        r = self.dynprobe("--pending", "--function", "plugin_work", "--", harness.target_path("loads"), LATE, "main")
        self.assert_ok(r)
        self.assertEqual(len(r.events), 21)

    def test_probes_that_stand_and_probes_that_wait_in_one_run(self):
        t = self.loads("once")
        before = harness.State(t.pid)
        p = self.start_pending(t, "--function", "foo")
        self.ask(t, "OPENED")
        self.await_events(p, "plugin_work", 3)
        self.await_events(p, "foo", 3)
        self.ask(t, "CLOSED")
        self.await_events(p, "foo", 3)
        self.ask(t, "OPENED", 2)
        self.await_events(p, "plugin_work", 3)
        self.ask(t, "CLOSED", 2)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual(len(self.constructed(r)), 2, str(r))
        self.assertIn("its library was unloaded", r.err)
        self.assertEqual((r.summary["placed"], r.summary["refused"], r.summary["retired"]), (2, 0, 0))
        self.assertEqual(r.summary["recorded"], len(r.events))
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    def library_of_many(self):
        """A library whose functions f0 to f59 are never called, and their specs."""
        names = [f"f{i}" for i in range(60)]
        text = "".join(f"int {name}(int a);\nint {name}(int a) {{ return a * {len(names)} + 1; }}\n" for name in names)
        library = harness.compiled(self.path("many.so"), "gcc", "-O1", "-shared", "-fPIC", text=f"#include {json.dumps(LATE_SOURCE)}\n{text}")
        return library, [x for name in names for x in ("--function", f"many.so!{name}")], len(names)

    def maps_read(self, p, t, until):
        """How often a running dynprobe reads the target's maps until the library that is open is closed, and all that comes of it."""
        tracer = self.strace(p, "-e", "trace=open,openat", log=self.path("opened"))
        self.ask(t, "CLOSED")
        until()
        tracer.terminate()
        tracer.wait()
        with open(self.path("opened")) as f:
            return len(re.findall(r'"/proc/\d+/(?:task/\d+/)?maps"', f.read()))

    @harness.needs("strace")
    def test_maps_are_not_read_for_each_probe_of_a_library_that_came_and_goes(self):
        library, probes, n = self.library_of_many()
        t = self.loads("once", library)
        p = self.start("--pid", t.pid, "--pending", "--function", "foo", *probes)
        self.await_events(p, "foo", 3)
        self.ask(t, "OPENED")
        self.wait_for(p, "is armed", n)

        def closed():
            self.wait_for(p, "its library was unloaded", n)
            self.await_events(p, "foo", 3)  # read after what was installed for the library is closed

        self.assertLess(self.maps_read(p, t, closed), n)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual((r.summary["placed"], r.summary["retired"], r.summary["left_bytes"]), (n + 1, 0, 0), str(r.summary))
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    @harness.needs("strace")
    def test_maps_are_not_read_for_each_probe_of_a_library_that_was_there_and_goes(self):
        library, probes, n = self.library_of_many()
        t = self.loads("once", library)
        self.ask(t, "OPENED")
        p = self.start("--pid", t.pid, "--pending", "--function", "foo", *probes)
        self.await_events(p, "foo", 3)

        def again():
            self.ask(t, "OPENED", 2)
            self.wait_for(p, "is armed", n)  # so each has been found to be gone

        self.assertLess(self.maps_read(p, t, again), n)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual((r.summary["placed"], r.summary["retired"], r.summary["left_bytes"]), (n + 1, 0, 0), str(r.summary))
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_names_of_a_trace_do_not_grow_with_its_rounds(self):
        """Each round reads hits of the first session, then of the later one, which have images of their own."""
        library, trace = self.fresh_plugin(), self.path("trace")
        t = self.target(shutil.copy(harness.target_path("loads"), self.path("loads")), library, "once")
        p = self.start_pending(t, "-t", "backtrace", "--function", "foo", "-t", "backtrace", record=trace)
        self.await_events(p, "foo", 3)
        self.ask(t, "OPENED")
        self.await_events(p, "foo", 300)
        self.assert_ok(self.finish(p))
        self.assert_result_ok(t)
        with open(os.path.join(trace, "dynprobe", "names")) as f:
            images = [x["image"] for x in harness.objects(f.read()) if x["type"] == "process"]
        self.assertGreater(len(images), 1)
        self.assertEqual(len(images), len(set(images)))
        os.remove(library)
        os.remove(self.path("loads"))  # so names come from the trace
        shown = harness.objects(harness.tool("view", "-f", "json", trace, status=0).stdout)
        for e in [x for x in shown if x["type"] == "event"]:
            called = [x["symbol"].split("+")[0] for x in e["fields"]["backtrace"]]
            self.assertIn(called[:2], {"foo": [["foo", "main"]], "plugin_work": [["plugin_work", "work"], ["plugin_work", "construct"]]}[e["probe"]])
            self.assertIn("main", called)

    def test_a_library_that_was_there_goes_and_comes_again(self):
        t = self.loads("once")
        self.ask(t, "OPENED")
        p = self.start("--pid", t.pid, "--pending", "--function", "late.so!plugin_work", "-t", "reg:rdi")
        self.await_events(p, "plugin_work", 3)
        self.ask(t, "CLOSED")
        self.ask(t, "OPENED", 2)
        self.await_events(p, "plugin_work", 3)
        r = self.finish(p)
        self.assertEqual(len(self.constructed(r)), 1, str(r))
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_a_library_that_goes_drops_its_probes_without_pending(self):
        t = self.loads("once")
        self.ask(t, "OPENED")
        p = self.start_attached(t, "--function", "late.so!plugin_work", "--function", "foo")
        self.ask(t, "CLOSED")
        self.wait_for(p, "retired")
        self.await_events(p, "foo", 3)
        self.ask(t, "OPENED", 2)  # usually at the same address: no other mapping takes it
        self.await_events(p, "foo", 3)
        r = self.finish(p)
        self.assertEqual(r.summary["retired"], 1, str(r))
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_cycles_under_load(self):
        t = self.loads("cycle")
        for end in (("-d", 30), ("-d", 10)) if harness.FULL else (("-n", 400), ("-n", 200)):  # a cycle has 51 hits
            r = self.attach(t, "--pending", "--function", "late.so!plugin_work", "-t", "reg:rdi", "--function", "foo", "--when", "(edi & 0xfffff) == 5",
                            *end)
            self.assertEqual(r.status, 0, str(r))
            self.assertGreater(len(r.events), 50, str(r))
            self.assertEqual(r.summary["left_bytes"], 0, str(r) + str(r.summary))
            self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_tool_killed_in_the_middle_of_cycles(self):
        t = self.loads("cycle")
        for i in range(30) if harness.FULL else (0, 2, 5):
            p = self.start("--pid", t.pid, "--pending", "--function", "late.so!plugin_work", "--max-wait", "1s")
            self.wait_for(p, "is armed")
            time.sleep(0.013 * i)  # at another moment of the cycle each time
            p.kill()
            p.wait()
        cycles = lambda: t.cpu_ticks()
        before = cycles()
        wait_until(lambda: cycles() > before + 5 or not t.alive(), what="the target to go on")
        r = self.attach(t, "--function", "foo", "-n", 1)
        self.assert_ok(r)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_tool_killed_while_the_loader_waits(self):
        t = self.loads("once")
        p = self.start_pending(t, "--function", "foo", "--max-wait", "5s")
        self.await_events(p, "foo", 1)  # from then on the tool answers
        p.send_signal(signal.SIGSTOP)
        wait_until(lambda: harness.status(p.pid, "State")[0] == "T", what="dynprobe to be stopped")
        t.process.send_signal(signal.SIGUSR1)
        wait_until(lambda: t.blocked_in(202), what="the loader to wait")  # futex
        p.kill()
        p.wait()
        wait_until(lambda: "OPENED" in t.output(), what="the loader to continue alone")
        self.assertLess(self.ask(t, "CLOSED"), 4.5)  # no wait any more: two waits would take 10 s
        self.assert_ok(self.attach(t, "--function", "foo", "-n", 1))
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_a_longer_wait_is_kept(self):
        t = self.loads("once")
        p = self.start_pending(t, "--function", "foo", "--max-wait", "60s")
        self.await_events(p, "foo", 1)  # from then on the tool answers
        p.send_signal(signal.SIGSTOP)
        wait_until(lambda: harness.status(p.pid, "State")[0] == "T", what="dynprobe to be stopped")
        t.process.send_signal(signal.SIGUSR1)
        wait_until(lambda: t.blocked_in(202), what="the loader to wait")  # futex
        time.sleep(1.5)
        self.assertTrue(t.blocked_in(202), "it waits longer than the usual second")
        p.send_signal(signal.SIGCONT)
        self.await_events(p, "plugin_work", 3)
        r = self.finish(p)
        self.assertEqual((len(self.constructed(r)), "resumed before" in r.err), (1, False), str(r))
        self.assert_clean(t.pid)
        self.assert_result_ok(t)
        too_long = self.attach(t, "--function", "foo", env=harness.environment(DYNPROBE_MAX_WAIT="11m"))
        self.assert_refused(too_long, "DP-USAGE", "DYNPROBE_MAX_WAIT is at most 10m")
        self.assert_refused(self.attach(t, "--function", "foo", "--max-wait", "11m"), "DP-USAGE", "--max-wait is at most 10m")

    def test_a_tool_that_is_late_says_so_and_goes_on(self):
        t = self.loads("once")
        p = self.start_pending(t, "--function", "foo", "--max-wait", "1s")
        self.await_events(p, "foo", 1)  # from then on the tool answers
        p.send_signal(signal.SIGSTOP)
        self.ask(t, "OPENED")  # the program continues by itself
        p.send_signal(signal.SIGCONT)
        self.await_events(p, "plugin_work", 3)
        self.ask(t, "CLOSED")
        self.ask(t, "OPENED", 2)
        self.await_events(p, "plugin_work", 3)
        r = self.finish(p)
        late = r.err.count("resumed before dynprobe had inspected it")
        self.assertIn(late, (1, 2), str(r))  # of two loads, the first; on a busy machine the other too
        self.assertEqual(len(self.constructed(r)), 2 - late, str(r))
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_a_library_replaced_on_disk(self):
        library = self.fresh_plugin()
        t = self.loads("once", library)
        p = self.start_pending(t)
        self.ask(t, "OPENED")
        self.await_events(p, "plugin_work", 3)
        os.rename(library, library + ".old")
        shutil.copy(LATE, library)
        self.await_events(p, "plugin_work", 3)
        self.ask(t, "CLOSED")
        self.ask(t, "OPENED", 2)
        self.await_events(p, "plugin_work", 3)
        r = self.finish(p)
        self.assertEqual(len(self.constructed(r)), 2, str(r))
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_the_target_ends_while_probes_wait(self):
        t = self.loads("once")
        p = self.start_pending(t, "--function", "foo")
        self.await_events(p, "foo", 1)
        self.assert_result_ok(t)
        r = self.finish(p, None)
        self.assert_ok(r, 121)
        self.assertEqual(r.summary["ended_by"], "target exited")

    def test_what_never_came_is_said(self):
        t = self.loads("once")
        r = self.attach(t, "--pending", "--function", "late.so!plugin_work", "-d", "300ms")
        self.assert_ok(r, 121)
        self.assertEqual(r.summary["refusals"], {"DP-PENDING": 1})
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_without_the_option_the_error_names_it(self):
        t = self.loads("once")
        self.assert_refused(self.attach(t, "--function", "late.so!plugin_work", "-d", 1), "DP-NO-MODULE", "--pending")
        self.assert_refused(self.attach(t, "--function", "plugin_work", "-d", 1), "DP-NO-SYMBOL", "--pending")
        self.assert_clean(t.pid)

    def test_a_name_that_a_present_library_lacks_does_not_wait(self):
        t = self.loads("once")
        self.assert_refused(self.attach(t, "--pending", "--function", "libc.so.6!mallok", "-d", 1), "DP-NO-SYMBOL", "malloc")

    def test_a_refused_place_is_refused_when_it_comes(self):
        t = self.loads("once")
        p = self.start("--pid", t.pid, "--pending", "--probe", "late.so!plugin_work+1", "--function", "foo")
        self.wait_for(p, "pending in")
        self.await_events(p, "foo", 1)
        self.ask(t, "OPENED")
        self.wait_for(p, "was refused")
        r = self.finish(p)
        self.assert_ok(r, 121)
        self.assertEqual(list(r.summary["refusals"]), ["DP-NOT-BOUNDARY"])
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_programs_without_glibcs_loader_are_refused(self):
        for name in ("spin-static", "spin-musl"):
            if os.path.exists(harness.target_path(name)):
                t = self.target(name)
                self.assert_refused(self.attach(t, "--pending", "--function", "late.so!plugin_work", "-d", 1), "DP-PENDING")
                self.assert_clean(t.pid)

    def test_lines_and_returns_get_their_places_when_the_library_comes(self):
        calls = [CONSTRUCTOR, *range(20)]
        with open(LATE_SOURCE) as f:
            line = next(i for i, text in enumerate(f, 1) if "return target_expected" in text)
        r = self.dynprobe("--pending", "--probe", f"late.c:{line}", "-t", "a", "--return", "late.so!plugin_work", "-t", "retval", "--name", "one",
                          "--probe", "late.so!plugin_work:1", "-t", "a", "--when", "a < 7", "--", harness.target_path("loads"), LATE, "main")
        self.assert_ok(r)
        of = lambda probe, field: [e["fields"][field] for e in r.events if e["probe"] == probe]
        self.assertEqual(of(f"late_c_{line}", "a"), calls)
        self.assertEqual(of("one", "a"), list(range(7)))
        self.assertEqual(len(of("plugin_work_return", "retval")), len(calls))
        self.assertEqual((r.summary["asked"], r.summary["placed"], r.summary["refused"]), (3, 3, 0))

    @harness.unittest.skipUnless(os.path.exists(harness.target_path("markers")), "needs sys/sdt.h")
    def test_markers_of_a_library_that_comes_later(self):
        with open(self.path("marked.c"), "w") as f:
            f.write("""
#include <sys/sdt.h>
unsigned plugin_constructed, plugin_work(unsigned a);
unsigned plugin_work(unsigned a)
{
	unsigned n = a;
	DTRACE_PROBE2(late, work, a, a + 3);
	for (const char *p = "plugin"; *p; p++)
		n = n * 31 + (unsigned char)*p;
	return n;
}
__attribute__((constructor)) static void construct(void) { plugin_constructed = plugin_work(7); }
""")
        harness.compiled(self.path("marked.so"), "gcc", "-O1", "-shared", "-fPIC", self.path("marked.c"))
        t = self.loads("once", self.path("marked.so"))
        p = self.start("--pid", t.pid, "--pending", "--usdt", "late:work")
        self.wait_for(p, "pending in")
        self.await_armed(p, t.pid)
        for n in (1, 2):
            self.ask(t, "OPENED", n)
            self.await_events(p, "late_work", 3)
            self.ask(t, "CLOSED", n)
        r = self.finish(p)
        self.assert_ok(r)
        values = [(e["fields"]["arg0"], e["fields"]["arg1"]) for e in r.events]
        self.assertEqual([y - x for x, y in values], [3] * len(values))
        self.assertEqual(values.count((CONSTRUCTOR, 10)), 2)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def build_plugin(self, path, returns):
        """Builds a library whose plugin_work() has so many returns, and one more for all other numbers."""
        with open(path + ".c", "w") as f:
            f.write("unsigned plugin_constructed, plugin_work(unsigned a);\nunsigned plugin_work(unsigned a)\n{\n\tunsigned n = a;\n")
            for i in range(returns):
                f.write(f'\tif (a == {1000 + i})\n\t\t__asm__ goto("" :::: done{i});\n')
            f.write('\tfor (const char *p = "plugin"; *p; p++)\n\t\tn = n * 31 + (unsigned char)*p;\n\treturn n;\n')
            f.writelines(f"done{i}:\n\t__asm__ volatile(\"mov ${i}, %eax; leave; ret\");\n\t__builtin_unreachable();\n" for i in range(returns))
            f.write("}\n__attribute__((constructor)) static void construct(void) { plugin_constructed = plugin_work(7); }\n")
        harness.compiled(path, "gcc", "-O0", "-g", "-fno-omit-frame-pointer", "-shared", "-fPIC", path + ".c")

    def test_all_returns_of_a_library_that_comes_later_or_none(self):
        for returns, whole in ((40, True), (70, False)):
            library = self.path(f"many{returns}.so")
            self.build_plugin(library, returns)
            spec = f"{os.path.basename(library)}!plugin_work"
            r = self.dynprobe("--pending", "--return", spec, "--", harness.target_path("loads"), library, "main")
            self.assert_ok(r, 0 if whole else 121)
            self.assertIn("RESULT OK", r.out)
            self.assertEqual(len(r.events), 21 if whole else 0, str(r))
            if whole:
                self.assertEqual((r.summary["asked"], r.summary["placed"]), (returns + 1, returns + 1))
            else:
                self.assertEqual((r.summary["placed"], r.summary["refusals"]), (0, {"DP-PENDING": 1}))
                self.assertIn(f"has {returns + 1} sites", r.summary["probes"][0]["reason"])

    def test_what_a_library_lacks_that_has_come_is_refused(self):
        for spec, why in (("late.so!late.c:9999", "line 9999"), ("late.so!nothing:1", "nothing")):
            r = self.dynprobe("--pending", "--probe", spec, "--function", "foo", "--", harness.target_path("loads"), LATE, "main")
            self.assert_ok(r, 121)
            self.assertEqual(r.summary["refusals"], {"DP-NO-SYMBOL": 1}, str(r))
            self.assertIn(why, [x["reason"] for x in r.summary["probes"] if x["tag"]][0])
        r = self.dynprobe("--pending", "--return", "late.so!plugin_walk", "--", harness.target_path("loads"), LATE, "main")
        self.assertEqual(r.summary["refusals"], {"DP-NO-SYMBOL": 1}, str(r))

    def test_another_build_in_its_stead_is_refused_and_the_summary_says_so(self):
        library = self.path("late.so")
        self.build_plugin(library, 2)
        t = self.loads("once", library)
        p = self.start("--pid", t.pid, "--pending", "--return", "late.so!plugin_work")
        self.wait_for(p, "pending in")
        self.await_armed(p, t.pid)
        self.ask(t, "OPENED")
        wait_until(lambda: len(self.said(p).split('"type":"event"')) > 3 or p.poll() is not None, what="events")
        self.ask(t, "CLOSED")
        os.rename(library, library + ".old")
        self.build_plugin(library, 3)
        self.ask(t, "OPENED", 2)
        self.wait_for(p, "was refused")
        r = self.finish(p)
        self.assert_ok(r, 121)
        self.assertEqual({(x["state"], x["tag"]) for x in r.summary["probes"]}, {("retired", "DP-NO-SYMBOL")})
        self.assertIn("another build", r.summary["probes"][0]["reason"])
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_a_line_that_never_came_is_said_once(self):
        r = self.dynprobe("--pending", "--probe", "never.c:12", "--function", "foo", "--", harness.target_path("loads"), LATE, "main")
        self.assert_ok(r, 121)
        self.assertEqual(r.summary["refusals"], {"DP-PENDING": 1})

    def test_patterns_do_not_wait_and_say_so(self):
        r = self.dynprobe("--pending", "--function", "late.so!plugin_*", "--", harness.target_path("loads"), LATE, "main")
        self.assertEqual(r.status, harness.OWN_FAILURE, str(r))
        self.assertIn("--pending cannot wait for", r.err)

    def test_what_it_excludes(self):
        t = self.loads("once")
        for other in (["--sink", "lttng"], ["--dry-run"], ["--tactic", "jump,trap"]):
            argv = [harness.DYNPROBE, "--pid", str(t.pid), "--pending", "--function", "late.so!plugin_work", *other]
            p = harness.subprocess.run(argv, capture_output=True, text=True, timeout=300)
            self.assertEqual(p.returncode, harness.OWN_FAILURE, p.stderr)
            self.assertIn("exclude each other", p.stderr)


if __name__ == "__main__":
    harness.main()
