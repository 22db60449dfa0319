# SPDX-License-Identifier: MIT
"""Tests the workflow of the 2013 proposal with a real session daemon, a test for each row of the table in docs/lttng.md."""

import os

import binutils
import harness
import lttng_env
import lttng_probe

ROWS = set()


def row(*texts):
    """Marks the table rows (left column) that a test covers."""
    ROWS.update(texts)
    return lambda test: test


def table():
    """The left column in docs/lttng.md, without code marks."""
    with open(os.path.join(harness.ROOT, "docs", "lttng.md"), encoding="utf-8") as f:
        section = f.read().split("line by line", 1)[1].split("\n## ", 1)[0]
    cells = [line.split(" | ")[0].lstrip("| ") for line in section.splitlines() if line.startswith("| `")]
    return {cell.replace("`", "") for cell in cells}


class Rfc(lttng_probe.WithDaemon):
    def setUp(self):
        super().setUp()
        self.trace = self.path("trace")
        self.lttng("create", "rfc", f"--output={self.trace}")

    def attach(self, t, *args):
        self.tool("attach", "--pid", t.pid, *args, "--session", "rfc")
        self.wait_listed(t.pid, "dynprobe:" + (args[args.index("--name") + 1] if "--name" in args else "foo"))

    def events(self, name):
        """The session's events after some more calls, once it is stopped."""
        self.let_run()
        self.lttng("stop", "rfc")
        return self.read(self.trace, name="dynprobe:" + name)

    # -- enable-event

    def placed(self, option, spec):
        t = self.spin()
        self.attach(t, "--name", "mine", option, spec(t), "-t", "reg:edi")
        self.assert_contiguous(self.calls(self.events("mine")), 101)
        self.end(t)

    @row("lttng enable-event NAME -u --pid PID --probe ADDRESS")
    def test_probe_at_an_address(self):
        self.placed("--probe", lambda t: hex(t.site("foo")))

    @row("lttng enable-event NAME -u --pid PID --probe SYMBOL")
    def test_probe_at_a_symbol(self):
        self.placed("--probe", lambda t: "foo")

    @row("lttng enable-event NAME -u --pid PID --probe SYMBOL+OFFSET")
    def test_probe_at_an_offset(self):
        t = self.spin()
        offset = self.some_offset(t)
        self.attach(t, "--name", "mine", "--probe", f"caller+{offset:#x}", "-t", "reg:rip")
        events = self.events("mine")
        self.assertGreater(len(events), 100)
        self.assertEqual({e.fields["rip"] for e in events}, {t.site("caller") + offset})
        self.end(t)

    def some_offset(self, t):
        """The first instruction of caller after its entry at which a probe can be placed."""
        for offset in binutils.offsets(t.path, "caller")[1:]:
            if "refused" not in self.tool("--pid", t.pid, "--probe", f"caller+{offset:#x}", "--dry-run").stdout:
                return offset
        self.fail("no instruction of caller takes a probe")

    @row("lttng enable-event NAME -u --pid PID --function SYMBOL")
    def test_function(self):
        self.placed("--function", lambda t: "foo")

    @row('lttng trace -c "CMD ARGS" --function SYMBOL')
    def test_trace_a_command(self):
        p = self.tool("-c", f"{harness.target_path('spin')} 300 500", "--function", "foo", "-t", "reg:edi", "--session", "rfc")
        self.assertIn("RESULT OK", p.stdout)
        events = self.events("foo")
        self.assertEqual([e.fields["edi"] for e in events], list(range(300)))

    # -- add-context

    def grown(self, context):
        """A probe gets one more context while it runs: its events before and after that."""
        t = self.spin()
        self.attach(t, "--function", "foo", "-t", "reg:edi")
        self.let_run()
        self.tool("add-context", "--pid", t.pid, "-e", "foo", "-t", context(t))
        events = self.events("foo")
        self.assert_contiguous(self.calls(events), 101)
        fields = [len(e.fields) for e in events]
        self.assertEqual(fields, sorted(fields), "old and new events alternate")
        self.assertLess(fields[0], fields[-1])
        self.addCleanup(self.end, t)
        return t, [e for e in events if len(e.fields) == fields[-1]]

    @row("lttng add-context -u -e NAME --pid PID -t reg:rax")
    def test_add_a_register(self):
        _, new = self.grown(lambda t: "reg:rdi")
        self.assertTrue(all(e.fields["rdi"] & 0xFFFFFFFF == e.fields["edi"] for e in new))

    @row("lttng add-context -u -e NAME --pid PID -t regs")
    def test_add_all_registers(self):
        t, new = self.grown(lambda t: "regs")
        self.assertLessEqual({*harness.REGISTERS, "rip", "rflags"}, set(new[0].fields))
        self.assertEqual({e.fields["rip"] for e in new}, {t.site("foo")})

    @row("lttng add-context -u -e NAME --pid PID -t TYPE:NAME:ADDR")
    def test_add_a_variable(self):
        _, new = self.grown(lambda t: f"string:words:{t.site('greeting'):#x}")
        self.assertEqual({e.fields["words"] for e in new}, {"hello from the target"})

    @row("lttng add-context -u -e NAME --pid PID -t backtrace")
    def test_add_a_backtrace(self):
        t, new = self.grown(lambda t: "backtrace")
        chain = new[0].fields["backtrace"]
        self.assertEqual(chain[0], t.site("foo"))
        self.assertTrue(t.site("caller") < chain[1] < t.site("caller") + 64)

    # -- lttng's own commands

    def still(self, t, shut, opened):
        """Events stop after shut() and come again after opened()."""
        self.attach(t, "--function", "foo", "-t", "reg:edi")
        self.let_run()
        shut()
        self.let_run()
        opened()
        calls = [e.fields["edi"] for e in self.events("foo")]
        gaps = [b - a for a, b in zip(calls, calls[1:]) if b - a != 1]
        self.assertEqual(len(gaps), 1)
        self.assertGreater(gaps[0], 100)
        self.end(t)

    @row("lttng disable-event NAME -u", "lttng enable-event NAME -u (again)")
    def test_disable_and_enable(self):
        t = self.spin()
        self.still(t, lambda: self.tool("disable", "foo", "--pid", t.pid), lambda: self.tool("enable", "foo", "--pid", t.pid))

    def test_disable_and_enable_by_lttng(self):
        channel = lambda: next(iter(self.rules("rfc")))
        self.still(
            self.spin(),
            lambda: self.lttng("disable-event", "-u", "dynprobe:foo", "-s", "rfc", "-c", channel()),
            lambda: self.lttng("enable-event", "-u", "dynprobe:foo", "-s", "rfc", "-c", channel()),
        )

    @row("lttng list -u")
    def test_list(self):
        t = self.spin()
        self.attach(t, "--function", "foo", "-t", "reg:edi", "-t", "backtrace")
        fields = self.listed(fields=True)[t.pid]["dynprobe:foo"]["fields"]
        self.assertLessEqual({"edi", "backtrace"}, set(fields))
        status = self.tool("status", "--pid", t.pid).stdout
        self.assertRegex(status, r"foo +enabled .*lttng, session rfc")
        self.end(t)

    @row("lttng start, lttng stop, lttng view")
    def test_start_stop_view(self):
        t = self.spin()
        self.lttng("enable-event", "-u", "dynprobe:*", "-s", "rfc")
        self.lttng("start", "rfc")
        self.tool("attach", "--pid", t.pid, "--function", "foo", "-t", "reg:edi")
        self.wait_listed(t.pid, "dynprobe:foo")
        self.let_run()
        self.lttng("stop", "rfc")
        view = self.lttng("view", "rfc").stdout
        self.assertGreater(view.count("dynprobe:foo: "), 100)
        before = len(self.read(self.trace, name="dynprobe:foo"))
        self.lttng("start", "rfc")
        self.assertGreater(len(self.events("foo")), before)
        self.end(t)

    # -- the table

    def test_every_row_of_the_table_has_a_test(self):
        self.assertEqual(table(), ROWS)


if __name__ == "__main__":
    lttng_env.main()
