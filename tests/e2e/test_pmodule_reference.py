# SPDX-License-Identifier: MIT
"""Tests the whole interface of pmodules: tests/e2e/pmodules/reference.lua checks each Lua function, on a live program and on a core file of
it; here each has a counterpart in C, and all are documented.
"""

import os
import re

import binutils
import harness

MODULE = os.path.join(harness.ROOT, "tests", "e2e", "pmodules", "reference.lua")

# Lua's name: C's. A method with the same name as in C, including the class's prefix, need not be here.
TWINS = {
    "pmodule.define": "PMODULE_DEFINE",
    "pmodule.register": "pmodule_variable_event_add pmodule_frame_event_add pmodule_thread_event_add pmodule_preattach_event_add "
    "pmodule_attach_event_add pmodule_postattach_event_add",
    "pmodule.event_register": "pmodule_variable_event_add",
    "pmodule.match": "pmodule_match_create pmodule_match_destroy",
    "pmodule.create_variable": "pmodule_variable_create pmodule_ptrace_variable_create",
    "pmodule.create_frame": "pmodule_frame_create",
    "pmodule.bt_frame_query": "pmodule_frame_query",
    "pmodule.variable_from_bt": "pmodule_variable_from_bt",
    "pmodule.deref": "bt_variable_deref bt_variable_deref_at",
    "pmodule.sizeof": "bt_variable_sizeof",
    "pmodule.typeof": "bt_variable_type_name",
    "pmodule.address": "bt_variable_address",
    "pmodule.path": "bt_variable_path",
    "pmodule.cast": "bt_variable_cast",
    "pmodule.addressof": "bt_variable_addressof",
    "pmodule.container_of": "bt_variable_container_of",
    "pmodule.try": "bt_variable_try bt_error",
    "pmodule.members": "bt_variable_members",
    "pmodule.dispatch": "pmodule_variable_dispatch",
    "pmodule.template_arg": "pmodule_cpp_template_nth_argument",
    "pmodule.address_read_ptrs": "pmodule_address_read_raw",
    "match:add_base_type": "pmodule_match_add_variable_base_type",
    "backtrace:pmap": "pmodule_backtrace_next_pmap",
    "backtrace:files": "pmodule_backtrace_file",
    "backtrace:variables": "pmodule_backtrace_next_variable",
    "backtrace.__call": "pmodule_backtrace_next_thread",
    "backtrace.__tostring": "pmodule_backtrace_application_name pmodule_backtrace_pid",
    "thread:kframes": "pmodule_thread_kframe",
    "thread:registers": "pmodule_thread_register",
    "thread:variables": "pmodule_thread_next_variable",
    "thread.__call": "pmodule_thread_next_frame",
    "thread.__tostring": "pmodule_thread_name",
    "frame:registers": "pmodule_frame_register",
    "frame:fprm": "pmodule_frame_fprm_at",
    "frame.__call": "pmodule_frame_next_variable",
    "frame.__tostring": "pmodule_frame_symbol",
    "variable:value": "pmodule_variable_int pmodule_variable_real",
    "variable:set_value": "pmodule_variable_value",
    "variable:skip": "pmodule_variable_state pmodule_variable_state_set",
    "variable.__tostring": "pmodule_variable_name",
    "siginfo.__tostring": "pmodule_siginfo_name",
    "pmap entry.__tostring": "pmodule_pmap_start",
    "match.__tostring": "pmodule_match_create",
    "bt_variable.__index": "bt_variable_member bt_variable_index",
    "bt_variable.__len": "bt_variable_length",
    "bt_variable.__newindex": "",  # a refusal; C has no counterpart
    "bt_variable.__tostring": "bt_variable_path bt_variable_type_name",
}
for bits in (8, 16, 32, 64):
    TWINS[f"pmodule.address_read_u{bits}"] = "pmodule_address_read_uint"
    TWINS[f"pmodule.address_read_i{bits}"] = "pmodule_address_read_int"
TWINS["pmodule.address_read_ptr"] = "pmodule_address_read_uint"
TWINS["pmodule.address_read_f32"] = TWINS["pmodule.address_read_f64"] = "pmodule_address_read_real"
PREFIX = {"pmodule.": "pmodule_", "backtrace:": "pmodule_backtrace_", "thread:": "pmodule_thread_", "frame:": "pmodule_frame_",
          "variable:": "pmodule_variable_", "siginfo:": "pmodule_siginfo_", "pmap entry:": "pmodule_pmap_", "match:": "pmodule_match_"}
# Functions of C only: Lua has variable_from_bt() and address_read_raw() for a value's numbers, strings and bytes, and phase = "postattach" in
# define{}.
C_ONLY = "bt_variable_ull bt_variable_ll bt_variable_real bt_variable_strncpy bt_variable_bytes pmodule_defer".split()


def twins(name):
    if name in TWINS:
        return TWINS[name].split()
    for prefix, c in PREFIX.items():
        if name.startswith(prefix):
            return [c + name[len(prefix):]]
    return ["(none)"]


def declared():
    with open(os.path.join(harness.ROOT, "pmodules", "pmodule.h")) as f:
        text = f.read()
    return set(re.findall(r"^PMODULE_API [^(;]*?\b(\w+)\(", text, re.M)) | {"PMODULE_DEFINE"}


def page(name):
    with open(os.path.join(harness.ROOT, "docs", name)) as f:
        return f.read()


class Reference(harness.Case):
    done = set()

    def snapshot(self, where, *words, options=None):
        p = harness.tool("snapshot", *words, "-o", self.path("r.dps"), "--global", "thing_g", "--tls", "--lua-allow", "debug", "--module-timeout", 20000,
                "--module-load", MODULE, "--module", f"reference:where,{where}", *(["--module", f"reference:{options}"] if options else []), status=0)
        s = harness.shown(self.path("r.dps"))
        self.assertEqual(s["attributes"].get("reference.failed"), "", p.stderr)
        return s, p.stderr, set(re.sub("pmap entry", "pmap_entry", s["attributes"]["reference.done"]).split())

    def everything(self):
        """All names whose check succeeded somewhere."""
        if not Reference.done:
            t = self.target("reference")
            _, _, live = self.snapshot("live", t.pid, "--fault-thread", t.pid)
            core = binutils.core_of_crash(self.path("core"), t.path, "crash")
            _, _, dead = self.snapshot("core", "--core", core)
            at_work = self.snapshot("live", t.pid, options="at_work,1")[2]
            self.assertEqual(live - at_work, set(), "a running program passes all checks without --fault-thread")
            Reference.done = {name.replace("pmap_entry:", "pmap entry:").replace("pmap_entry.", "pmap entry.") for name in live | dead}
        return Reference.done

    @harness.needs("gdb")
    def test_every_function_does_what_it_says(self):
        self.assertGreater(len(self.everything()), 165)
        self.assertEqual({name for name in self.everything() if name.startswith("siginfo")}, {f"siginfo:{n}" for n in (
            "num", "code", "address", "address_populated", "reason")} | {"siginfo.__tostring"})

    @harness.needs("gdb")
    def test_every_lua_call_has_its_twin_in_c(self):
        known = declared()
        missing = {name: c for name in self.everything() for c in twins(name) if c not in known}
        self.assertEqual(missing, {})
        of_lua = {c for name in self.everything() for c in twins(name)}
        self.assertEqual(known - of_lua - set(C_ONLY), set(), "functions of C that Lua does not have, without a reason")

    @harness.needs("gdb")
    def test_every_name_stands_in_the_reference(self):
        lua, c = page("pmodules.md"), page("pmodules-c.md")
        last = lambda name: re.split("[.:]", name)[1]
        spelled = lambda word: rf"\b{word}\b|`{word.replace('address_read', '')}[`(]"
        unsaid = [name for name in self.everything() if "__" not in name and not re.search(spelled(last(name)), lua)]
        self.assertEqual(unsaid, [])
        short = lambda name: re.escape(re.sub(r"^(pmodule_address_read|(pmodule|bt)_[a-z]+)", "", name))
        self.assertEqual([n for n in declared() if n not in c and not re.search(short(n) + r"\b", c)], [])

    def test_what_module_and_snapshot_are_told(self):
        """Annotations, attributes and the log are unchanged in the output; reset and unload are called, and reset between snapshots only."""
        t = self.target("reference")
        s, said, _ = self.snapshot("live", t.pid, "--fault-thread", t.pid)
        a = s["attributes"]
        self.assertEqual((a["reference.int"], a["reference.text"]), (1 << 62, "last"))
        self.assertIn("reference-class", s["classifiers"])
        self.assertEqual(s["tags"], ["reference-tag"])
        self.assertNotIn("truncated", s["classifiers"], "reading a value must not omit anything")
        self.assertEqual([n["text"] for n in s["notes"] if n.get("module") == "reference"][:3], ["one of 2", "100%", "worst"])
        self.assertEqual(a["pmodule.reference.discarded"], 5, "invalid JSON, at each kind of object")
        self.assertIn("reference: logged 7\n", said)
        self.assertIn("reference: logged 100%\n", said)
        self.assertEqual((said.count("reset is called"), said.count("unload is called")), (0, 1))
        p = harness.tool("snapshot", t.pid, "--iterations", 3, "--interval", "1ms", "-o", self.path("again.dps"), "--module-load", MODULE, "--lua-allow", "debug",
                "--module-timeout", 20000, status=0)
        self.assertEqual((p.stderr.count("reset is called"), p.stderr.count("unload is called")), (2, 1), p.stderr)


if __name__ == "__main__":
    harness.main()
