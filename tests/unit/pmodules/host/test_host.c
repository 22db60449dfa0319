/* SPDX-License-Identifier: MIT */
/* The host: matching, order, errors, annotations, and objects that modules make. */
#include "helper_model.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct log log_;
static struct model model;
static unsigned hits[8];
static char seen[1024];

static void note_name(ptrace_variable_t *v, bt_variable_t *bt)
{
	(void)bt;
	strcat(strcat(seen, pmodule_variable_name(v)), " ");
}

static void note_symbol(ptrace_frame_t *f)
{
	strcat(strcat(seen, pmodule_frame_symbol(f)), " ");
}

static void note_thread(ptrace_thread_t *t)
{
	strcat(strcat(seen, pmodule_thread_name(t)), " ");
}

static void run(struct dp_error *(*load)(struct pmodule *m))
{
	struct dp_host_options options = {0};
	memset(&log_, 0, sizeof(log_));
	memset(hits, 0, sizeof(hits));
	seen[0] = '\0';
	model_make(&model);
	struct dp_host *h = host_with(&options, &log_);
	module_add(h, "test", load);
	run_all(h, model.s);
	dp_host_destroy(h);
}

#define REGISTERS(name, ...)                                                                                                     \
	static struct dp_error *name(struct pmodule *m)                                                                          \
	{                                                                                                                        \
		pmodule_match_t *x = pmodule_match_create();                                                                     \
		bool ok = true;                                                                                                  \
		__VA_ARGS__                                                                                                      \
		pmodule_match_destroy(x);                                                                                        \
		cr_assert(ok);                                                                                                   \
		return NULL;                                                                                                     \
	}

/* ---- matching ----------------------------------------------------------------------------------------------------------- */

/* One object is used for two registrations, as in the tutorial: the first keeps its contents. */
REGISTERS(load_reuse, pmodule_match_add_frame_symbol(x, "inner", PMODULE_MATCH_EXACT);
          ok &= pmodule_frame_event_add(m, x, note_symbol); pmodule_match_reset(x);
          pmodule_match_add_frame_symbol(x, "outer", PMODULE_MATCH_EXACT); ok &= pmodule_frame_event_add(m, x, note_symbol);)

Test(host, a_match_object_is_copied)
{
	run(load_reuse);
	cr_assert_str_eq(seen, "inner outer ");
	dp_snapshot_destroy(model.s);
}

REGISTERS(load_five, pmodule_match_add_object(x, "crash", PMODULE_MATCH_EXACT);
          pmodule_match_add_file(x, "main.c", PMODULE_MATCH_EXACT);
          pmodule_match_add_frame_symbol(x, "inner", PMODULE_MATCH_EXACT);
          pmodule_match_add_frame_symbol(x, "none", PMODULE_MATCH_EXACT);
          pmodule_match_add_variable_base_type(x, "crash", PMODULE_MATCH_EXACT);
          pmodule_match_add_variable_ptrace_type(x, PMODULE_REFERENCE); pmodule_match_set_fault(x, false);
          ok &= pmodule_variable_event_add(m, x, note_name);)

Test(host, kinds_are_anded_and_several_of_a_kind_ored)
{
	run(load_five);
	cr_assert_str_eq(seen, "p ");
	dp_snapshot_destroy(model.s);
}

REGISTERS(load_paths, pmodule_match_add_object(x, "bin/crash", PMODULE_MATCH_EXACT);
          ok &= pmodule_frame_event_add(m, x, note_symbol); pmodule_match_reset(x);
          pmodule_match_add_object(x, "bin/cr", PMODULE_MATCH_SUBSTR);
          pmodule_match_add_file(x, "src/main.c", PMODULE_MATCH_EXACT); ok &= pmodule_thread_event_add(m, x, note_thread);)

Test(host, exact_is_the_whole_path_or_its_last_part)
{
	run(load_paths);
	cr_assert_str_eq(seen, "worker ", "part of a path is not an exact match: %s", seen);
	dp_snapshot_destroy(model.s);
}

REGISTERS(load_globals, pmodule_match_add_object(x, "crash", PMODULE_MATCH_EXACT);
          pmodule_match_add_variable_name(x, "g", PMODULE_MATCH_EXACT); ok &= pmodule_variable_event_add(m, x, note_name);
          pmodule_match_set_fault(x, true); ok &= pmodule_variable_event_add(m, x, note_name);)

Test(host, globals_have_files_but_no_fault)
{
	run(load_globals);
	cr_assert_str_eq(seen, "g ");
	dp_snapshot_destroy(model.s);
}

REGISTERS(load_fault, pmodule_match_set_fault(x, false); ok &= pmodule_frame_event_add(m, x, note_symbol);
          ok &= pmodule_thread_event_add(m, x, note_thread); pmodule_match_set_fault(x, true);
          ok &= pmodule_frame_event_add(m, x, note_symbol);)

Test(host, fault_is_a_frames_or_with_true_the_whole_threads)
{
	run(load_fault);
	cr_assert_str_eq(seen, "inner inner outer worker ");
	dp_snapshot_destroy(model.s);
}

Test(host, without_a_fault_the_first_threads_innermost_frame_with_variables_is_looked_at)
{
	model_make(&model);
	model.worker->is_fault = model.inner->is_fault = false;
	cr_assert(dp_snap_thread_is_subject(model.worker));
	cr_assert_not(dp_snap_thread_is_subject(model.idle));
	cr_assert(dp_snap_frame_is_subject(model.inner));
	model.inner->variables = NULL;
	cr_assert_not(dp_snap_frame_is_subject(model.inner));
	cr_assert(dp_snap_frame_is_subject(model.outer));
	model.outer->variables = NULL;
	cr_assert(dp_snap_frame_is_subject(model.inner), "no frame has variables");
	dp_snapshot_destroy(model.s);
}

static struct dp_error *load_wrong(struct pmodule *m)
{
	pmodule_match_t *x = pmodule_match_create();
	pmodule_match_add_variable_name(x, "p", PMODULE_MATCH_EXACT);
	hits[0] += pmodule_frame_event_add(m, x, note_symbol);
	hits[0] += pmodule_thread_event_add(m, x, note_thread);
	hits[0] += pmodule_frame_event_add(m, NULL, NULL);
	hits[0] += pmodule_frame_event_add(NULL, NULL, note_symbol);
	struct dp_error *err =
	        dp_host_register(m, x, &(struct dp_callback){.event = DP_EVENT_ATTACH, .fn = (void (*)(void))note_symbol});
	hits[1] += err != NULL;
	dp_error_destroy(err);
	hits[0] += pmodule_match_add_variable_ptrace_type(x, (enum pmodule_variable_type)99);
	hits[0] += pmodule_match_add_file(x, "f", (enum pmodule_match_type)7);
	hits[0] += pmodule_match_add_file(x, NULL, PMODULE_MATCH_EXACT);
	pmodule_match_destroy(x);
	return NULL;
}

Test(host, criteria_that_do_not_go_with_the_event_are_refused)
{
	run(load_wrong);
	cr_assert_eq(hits[0], 0);
	cr_assert_eq(hits[1], 1);
	cr_assert_str_eq(seen, "");
	dp_snapshot_destroy(model.s);
}

static void registers_late(ptrace_frame_t *f)
{
	(void)f;
	hits[0] += pmodule_frame_event_add(dp_module_current(), NULL, note_symbol);
	hits[1] += pmodule_defer(dp_module_current());
	hits[2]++;
}

REGISTERS(load_late, ok &= pmodule_frame_event_add(m, NULL, registers_late);)

Test(host, callbacks_are_registered_in_load_only)
{
	run(load_late);
	cr_assert_eq(hits[0] + hits[1], 0);
	cr_assert_eq(hits[2], 3);
	dp_snapshot_destroy(model.s);
}

/* ---- errors ------------------------------------------------------------------------------------------------------------- */

static void fails(ptrace_thread_t *t)
{
	(void)t;
	for (unsigned i = 0; i < 20; i++) {
		hits[0]++;
		dp_module_error(dp_module_current(), dp_error(DP_TAG_PMODULE, "again"));
	}
}

REGISTERS(load_fails, ok &= pmodule_thread_event_add(m, NULL, fails);)

Test(host, errors_are_counted_and_never_switch_a_module_off)
{
	run(load_fails);
	cr_assert_geq(hits[0], 20);
	cr_assert_eq(attribute_int(model.s, "pmodule.test.errors"), hits[0]);
	cr_assert(strstr(log_.text, "again"));
	cr_assert_not(strstr(log_.text, "switched off"));
	dp_snapshot_destroy(model.s);
}

/* ---- annotations -------------------------------------------------------------------------------------------------------- */

static void annotates(ptrace_frame_t *f)
{
	hits[0] += pmodule_frame_annotate(f, PAT_JSON, "%s", "{\"json\": {\"context\": \"T\", \"k\": {\"a\": 1}}}");
	hits[1] += pmodule_frame_annotate(f, PAT_JSON, "{\"json\": {\"a\": }}");
	hits[1] += pmodule_frame_annotate(f, PAT_JSON, "{\"other\": {}}");
	hits[1] += pmodule_frame_annotate(f, PAT_JSON, "{\"json\": {}} trailing");
	hits[1] += pmodule_frame_annotate(f, PAT_JSON, "{\"json\": {\"a\": 1, \"a\": 2}}");
	hits[1] += pmodule_frame_annotate(f, PAT_JSON, "[1]");
	hits[1] += pmodule_frame_annotate(f, (enum pmodule_annotation)4, "x");
	hits[1] += pmodule_frame_annotate(f, PAT_COMMENT, NULL);
	hits[2] += pmodule_frame_annotate(f, PAT_WARNING, "%d%%", 50);
}

static struct dp_error *load_annotates(struct pmodule *m)
{
	pmodule_match_t *x = pmodule_match_create();
	pmodule_match_add_frame_symbol(x, "wait", PMODULE_MATCH_EXACT);
	cr_assert(pmodule_frame_event_add(m, x, annotates));
	pmodule_match_destroy(x);
	return NULL;
}

Test(host, json_that_is_none_is_discarded_said_and_counted)
{
	run(load_annotates);
	cr_assert_eq(hits[0], 1);
	cr_assert_eq(hits[1], 0);
	cr_assert_eq(hits[2], 1);
	cr_assert_eq(attribute_int(model.s, "pmodule.test.discarded"), 5);
	cr_assert_eq(log_.warnings, 5);
	cr_assert(strstr(log_.text, "line 1, column"), "%s", log_.text);
	cr_assert_eq(count_notes(model.wait->notes, "50%"), 1);
	cr_assert_str_eq(model.wait->notes->module, "test");
	dp_snapshot_destroy(model.s);
}

/* ---- reads -------------------------------------------------------------------------------------------------------------- */

static void reads(ptrace_thread_t *t)
{
	char buf[64];
	uint64_t u;
	int64_t i;
	(void)t;
	cr_assert_eq(pmodule_address_read_string(0x5000, buf, sizeof(buf)), 4);
	cr_assert_str_eq(buf, "kept");
	cr_assert_eq(pmodule_read_source(), PMODULE_READ_KEPT);
	cr_assert_eq(pmodule_address_read_string(0x5000, buf, 3), 2);
	cr_assert_str_eq(buf, "ke", "the size counts the NUL");
	cr_assert_eq(pmodule_address_read_string(0, buf, sizeof(buf)), -1);
	cr_assert_eq(pmodule_read_source(), PMODULE_READ_NONE);
	cr_assert_eq(pmodule_address_read_raw(0x5000, buf, sizeof(buf)), 14, "the readable bytes from the start");
	cr_assert(pmodule_address_read_uint(0x5005, 4, &u) && u == UINT32_MAX);
	cr_assert(pmodule_address_read_int(0x5005, 2, &i) && i == -1);
	cr_assert(pmodule_address_read_uint(0x5005, 8, &u) && u == UINT64_MAX);
	cr_assert_not(pmodule_address_read_uint(0x5005, 3, &u));
	cr_assert_not(pmodule_address_read_uint(0x5005, 0, &u));
	cr_assert_not(pmodule_address_read_uint(0x500a, 8, &u), "only half of it is readable");
	cr_assert_eq(pmodule_address_read_string(UINT64_MAX, buf, sizeof(buf)), -1);
	hits[0]++;
}

REGISTERS(load_reads, ok &= pmodule_thread_event_add(m, NULL, reads);)

Test(host, reads_come_from_what_is_kept)
{
	run(load_reads);
	cr_assert_eq(hits[0], 2);
	dp_snapshot_destroy(model.s);
}
