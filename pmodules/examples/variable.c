/* SPDX-License-Identifier: MIT */
/*
 * variable.c: marks NULL pointers of the faulting thread, and counts the variables seen. Shows: two variable callbacks, one with
 * a match object; attributes in postattach; state that reset() clears.
 */
#include <dynprobe/pmodule.h>

static int64_t seen, null_pointers;

static void every_variable(ptrace_variable_t *v, bt_variable_t *bt)
{
	(void)v;
	(void)bt;
	seen++;
}

static void pointer(ptrace_variable_t *v, bt_variable_t *bt)
{
	int64_t address;
	(void)bt;
	if (!pmodule_variable_int(v, &address) || address)
		return;
	null_pointers++;
	pmodule_variable_annotate(v, PAT_WARNING, "%s is NULL on the way to the fault", pmodule_variable_name(v));
}

static void postattach(ptrace_backtrace_t *bt)
{
	pmodule_backtrace_add_kv_int(bt, "variable.seen", seen);
	pmodule_backtrace_add_kv_int(bt, "variable.null", null_pointers);
}

static bool load(pmodule_t *m)
{
	pmodule_match_t *match = pmodule_match_create();
	pmodule_match_add_variable_ptrace_type(match, PMODULE_REFERENCE);
	pmodule_match_set_fault(match, true);
	const bool ok = pmodule_variable_event_add(m, NULL, every_variable) && pmodule_variable_event_add(m, match, pointer) &&
	                pmodule_postattach_event_add(m, postattach);
	pmodule_match_destroy(match); /* it was copied */
	return ok;
}

static void reset(pmodule_t *m)
{
	(void)m;
	seen = null_pointers = 0;
}

PMODULE_DEFINE("example_variable", load, reset, NULL);
