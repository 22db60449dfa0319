/* SPDX-License-Identifier: MIT */
/*
 * Every function of pmodule.h, with every mixture of NULL and valid arguments, of small, huge and negative numbers: in a
 * callback, outside of one, and after the snapshot. None may crash; a function whose object is NULL returns false, NULL, 0 or
 * -1.
 *
 * All arguments but floating-point numbers are passed in general registers, so one type of call fits all functions.
 */
#include "helper_model.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Arguments: m module, x match, X match (NULL only), b backtrace, t thread, f frame, v variable, g siginfo, p map, w value, s
 * text, S text that is taken over, P where something is written to, F callback, n number. Results: b bool, i 32 bits, l 64 bits,
 * - is -1 for nothing, v none. */
static const struct function {
	const char *name;
	void (*fn)(void);
	char result;
	const char *arguments;
} functions[] = {
/* clang-format off */
#define FN(name, result, arguments) {#name, (void (*)(void))name, result, arguments}
	FN(pmodule_variable_event_add, 'b', "mxF"),
	FN(pmodule_frame_event_add, 'b', "mxF"),
	FN(pmodule_thread_event_add, 'b', "mxF"),
	FN(pmodule_preattach_event_add, 'b', "mF"),
	FN(pmodule_attach_event_add, 'b', "mF"),
	FN(pmodule_postattach_event_add, 'b', "mF"),
	FN(pmodule_defer, 'b', "m"),
	FN(pmodule_log, 'v', "ns"),
	FN(pmodule_config_option, 'l', "ms"),
	FN(pmodule_backtrace, 'l', ""),
	FN(pmodule_pmap_enabled, 'b', ""),
	FN(pmodule_pmap_cached, 'b', ""),
	FN(pmodule_read_source, 'i', ""),
	FN(pmodule_time_left, 'l', ""),
	FN(pmodule_address_symbol, 'l', "n"),
	FN(pmodule_symbol_address, 'b', "ssP"),
	FN(pmodule_address_read_raw, 'l', "nPn"),
	FN(pmodule_address_read_string, '-', "nPn"),
	FN(pmodule_symbol_read_raw, 'l', "ssPn"),
	FN(pmodule_symbol_read_string, '-', "ssPn"),
	FN(pmodule_address_read_uint, 'b', "nnP"),
	FN(pmodule_address_read_int, 'b', "nnP"),
	FN(pmodule_address_read_real, 'b', "nnP"),
	FN(pmodule_match_create, 'l', ""),
	FN(pmodule_match_destroy, 'v', "X"),
	FN(pmodule_match_reset, 'v', "x"),
	FN(pmodule_match_add_object, 'b', "xsx"),
	FN(pmodule_match_add_file, 'b', "xsx"),
	FN(pmodule_match_add_frame_symbol, 'b', "xsx"),
	FN(pmodule_match_add_variable_base_type, 'b', "xsx"),
	FN(pmodule_match_add_variable_ptrace_type, 'b', "xn"),
	FN(pmodule_match_add_variable_name, 'b', "xsx"),
	FN(pmodule_match_set_fault, 'v', "xn"),
	FN(pmodule_backtrace_annotate, 'b', "bns"),
	FN(pmodule_thread_annotate, 'b', "tns"),
	FN(pmodule_frame_annotate, 'b', "fns"),
	FN(pmodule_variable_annotate, 'b', "vns"),
	FN(pmodule_backtrace_pid, 'i', "b"),
	FN(pmodule_backtrace_inner_pid, 'i', "b"),
	FN(pmodule_backtrace_comm, 'l', "b"),
	FN(pmodule_backtrace_exe, 'l', "b"),
	FN(pmodule_backtrace_application_name, 'l', "b"),
	FN(pmodule_backtrace_process_state, 'i', "b"),
	FN(pmodule_backtrace_pmap_entry, 'l', "bn"),
	FN(pmodule_backtrace_add_tag, 'v', "bs"),
	FN(pmodule_backtrace_add_kv_int, 'v', "bsn"),
	FN(pmodule_backtrace_add_kv_string, 'v', "bss"),
	FN(pmodule_backtrace_add_classifier, 'v', "bs"),
	FN(pmodule_backtrace_next_thread, 'l', "bxt"),
	FN(pmodule_backtrace_next_variable, 'l', "bsssv"),
	FN(pmodule_backtrace_next_pmap, 'l', "bp"),
	FN(pmodule_backtrace_file, 'l', "bnP"),
	FN(pmodule_backtrace_heap, 'l', "b"),
	FN(pmodule_pmap_start, 'l', "p"),
	FN(pmodule_pmap_stop, 'l', "p"),
	FN(pmodule_pmap_offset, 'l', "p"),
	FN(pmodule_pmap_inode, 'l', "p"),
	FN(pmodule_pmap_path, 'l', "p"),
	FN(pmodule_pmap_guard, 'b', "p"),
	FN(pmodule_pmap_permissions, 'b', "pn"),
	FN(pmodule_thread_tid, 'i', "t"),
	FN(pmodule_thread_fault, 'b', "t"),
	FN(pmodule_thread_backtrace, 'l', "t"),
	FN(pmodule_thread_n_frames, 'i', "t"),
	FN(pmodule_thread_n_kframes, 'i', "t"),
	FN(pmodule_thread_kframe, 'l', "tn"),
	FN(pmodule_thread_name, 'l', "t"),
	FN(pmodule_thread_state, 'i', "t"),
	FN(pmodule_thread_register, 'b', "tsP"),
	FN(pmodule_thread_set_name, 'v', "ts"),
	FN(pmodule_thread_add_frame, 'b', "tfn"),
	FN(pmodule_thread_next_frame, 'l', "txf"),
	FN(pmodule_thread_next_variable, 'l', "tsssv"),
	FN(pmodule_frame_create, 'l', ""),
	FN(pmodule_frame_symbol, 'l', "f"),
	FN(pmodule_frame_path, 'l', "f"),
	FN(pmodule_frame_line, 'i', "f"),
	FN(pmodule_frame_decl_line, 'i', "f"),
	FN(pmodule_frame_line_resolved, 'b', "f"),
	FN(pmodule_frame_object_file, 'l', "f"),
	FN(pmodule_frame_instruction, 'l', "f"),
	FN(pmodule_frame_thread, 'l', "f"),
	FN(pmodule_frame_backtrace, 'l', "f"),
	FN(pmodule_frame_siginfo, 'l', "f"),
	FN(pmodule_frame_fprm_at, 'l', "fn"),
	FN(pmodule_frame_pc, 'l', "f"),
	FN(pmodule_frame_sp, 'l', "f"),
	FN(pmodule_frame_index, 'i', "f"),
	FN(pmodule_frame_is_inline, 'b', "f"),
	FN(pmodule_frame_is_tail, 'b', "f"),
	FN(pmodule_frame_is_guess, 'b', "f"),
	FN(pmodule_frame_fault, 'b', "f"),
	FN(pmodule_frame_register, 'b', "fsP"),
	FN(pmodule_frame_set_symbol, 'v', "fs"),
	FN(pmodule_frame_set_basename, 'v', "fs"),
	FN(pmodule_frame_set_directory, 'v', "fs"),
	FN(pmodule_frame_set_path, 'v', "fs"),
	FN(pmodule_frame_set_line, 'v', "fn"),
	FN(pmodule_frame_set_decl_line, 'v', "fn"),
	FN(pmodule_frame_add_variable, 'b', "fvn"),
	FN(pmodule_frame_add_frame, 'b', "ffn"),
	FN(pmodule_frame_next_variable, 'l', "fxv"),
	FN(pmodule_frame_query, 'l', "fs"),
	FN(pmodule_siginfo_num, 'i', "g"),
	FN(pmodule_siginfo_code, 'i', "g"),
	FN(pmodule_siginfo_address, 'l', "g"),
	FN(pmodule_siginfo_address_populated, 'b', "g"),
	FN(pmodule_siginfo_reason, 'l', "gP"),
	FN(pmodule_siginfo_name, 'l', "g"),
	FN(pmodule_variable_create, 'l', "ssnnv"),
	FN(pmodule_ptrace_variable_create, 'l', "vnn"),
	FN(pmodule_variable_address, 'l', "v"),
	FN(pmodule_variable_name, 'l', "v"),
	FN(pmodule_variable_type, 'i', "v"),
	FN(pmodule_variable_type_name, 'l', "v"),
	FN(pmodule_variable_base_type, 'l', "v"),
	FN(pmodule_variable_int, 'b', "vP"),
	FN(pmodule_variable_real, 'b', "vPP"),
	FN(pmodule_variable_symbol, 'l', "v"),
	FN(pmodule_variable_is_string, 'b', "v"),
	FN(pmodule_variable_resolved, 'b', "v"),
	FN(pmodule_variable_why, 's', "v"),
	FN(pmodule_variable_owner, 'l', "v"),
	FN(pmodule_variable_frame, 'l', "v"),
	FN(pmodule_variable_thread, 'l', "v"),
	FN(pmodule_variable_backtrace, 'l', "v"),
	FN(pmodule_variable_fprm_offset, '-', "v"),
	FN(pmodule_variable_depth, 'i', "v"),
	FN(pmodule_variable_object, 'l', "v"),
	FN(pmodule_variable_cu, 'l', "v"),
	FN(pmodule_variable_set_struct, 'v', "v"),
	FN(pmodule_variable_set_array, 'v', "v"),
	FN(pmodule_variable_set_function, 'v', "vs"),
	FN(pmodule_variable_set_string, 'v', "vS"),
	FN(pmodule_variable_set_enum, 'v', "vns"),
	FN(pmodule_variable_set_ref, 'v', "vns"),
	FN(pmodule_variable_set_ll, 'v', "vn"),
	FN(pmodule_variable_set_ull, 'v', "vn"),
	FN(pmodule_variable_set_dbl, 'v', "v"),
	FN(pmodule_variable_set_cdbl, 'v', "v"),
	FN(pmodule_variable_state, 'i', "v"),
	FN(pmodule_variable_state_set, 'v', "vn"),
	FN(pmodule_variable_value, 'b', "vwn"),
	FN(pmodule_variable_dispatch, 'v', "vw"),
	FN(bt_error, 'l', ""),
	FN(pmodule_bt_query, 'l', "sss"),
	FN(pmodule_variable_at, 'l', "sns"),
	FN(pmodule_variable_from_bt, 'l', "w"),
	FN(pmodule_variable_bt, 'l', "v"),
	FN(bt_variable_member, 'l', "ws"),
	FN(bt_variable_index, 'l', "wn"),
	FN(bt_variable_deref, 'l', "w"),
	FN(bt_variable_deref_at, 'l', "wn"),
	FN(bt_variable_cast, 'l', "ws"),
	FN(bt_variable_addressof, 'l', "w"),
	FN(bt_variable_container_of, 'l', "wss"),
	FN(bt_variable_type_name, 'l', "w"),
	FN(bt_variable_path, 'l', "w"),
	FN(bt_variable_sizeof, 'l', "w"),
	FN(bt_variable_length, 'b', "wP"),
	FN(bt_variable_address, 'b', "wP"),
	FN(bt_variable_ull, 'b', "wP"),
	FN(bt_variable_ll, 'b', "wP"),
	FN(bt_variable_real, 'b', "wP"),
	FN(bt_variable_strncpy, '-', "Pwn"),
	FN(bt_variable_bytes, 'l', "wPn"),
	FN(bt_variable_members, 'b', "wFP"),
	FN(pmodule_cpp_template_nth_argument, 'b', "Psn"),
	FN(bt_variable_try, 'l', "ws"),
#undef FN
        /* clang-format on */
};
#define FUNCTIONS (sizeof(functions) / sizeof(*functions))

typedef uint64_t any_fn(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

static struct log log_;
static struct model model;
static struct dp_host *host;
static struct pmodule *module;
static pmodule_match_t *match;
static const struct dp_snap_siginfo signal_ = {.number = 11, .name = "SIGSEGV", .reason = "why", .has_address = true};
static struct dp_snap_map map = {.start = 0x5000, .end = 0x6000, .read = true, .path = "[heap]"};
static uint64_t space[64];
static unsigned calls;

static bool callback(void)
{
	return false;
}

static struct dp_error *load_nothing(struct pmodule *m)
{
	(void)m;
	return NULL;
}

static uint64_t number(unsigned choice)
{
	static const uint64_t numbers[] = {0, 8, UINT64_MAX, 0x5000};
	return numbers[choice % 4];
}

static uint64_t real(char kind)
{
	switch (kind) {
	case 'm':
		return (uintptr_t)module;
	case 'x':
		return (uintptr_t)match;
	case 'b':
		return (uintptr_t)model.s;
	case 't':
		return (uintptr_t)model.worker;
	case 'f':
		return (uintptr_t)model.inner;
	case 'v':
		return (uintptr_t)model.n;
	case 'g':
		return (uintptr_t)&signal_;
	case 'p':
		return (uintptr_t)&map;
	case 's':
		return (uintptr_t) "x";
	case 'S':
		return (uintptr_t)strdup("x");
	case 'P':
		return (uintptr_t)space;
	case 'F':
		return (uintptr_t)callback;
	default:
		return 0; /* X, w: NULL only */
	}
}

/* Bit i of `which`: argument i is valid, not NULL; `choice` selects the numbers. */
static uint64_t call_one(const struct function *f, unsigned which, unsigned choice)
{
	uint64_t a[6] = {0};
	for (size_t i = 0; f->arguments[i]; i++)
		a[i] = f->arguments[i] == 'n' ? number(choice >> 2 * i) : which >> i & 1u ? real(f->arguments[i]) : 0;
	memset(space, 0, sizeof(space));
	calls++;
	return ((any_fn *)f->fn)(a[0], a[1], a[2], a[3], a[4], a[5]);
}

static bool is_nothing(const struct function *f, uint64_t result)
{
	switch (f->result) {
	case 'b':
		return !(result & 0xff);
	case 'i':
		return !(uint32_t)result;
	case '-':
		return result == UINT64_MAX;
	case 'l':
		return !result;
	default:
		return true;
	}
}

/* Is an object missing that the function needs? */
static bool lacks_object(const struct function *f, unsigned which)
{
	return *f->arguments && strchr("btfvgpw", *f->arguments) && !(which & 1u) && strncmp(f->name, "pmodule_ptrace", 14);
}

static void call_all(bool nothing_at_all)
{
	for (size_t i = 0; i < FUNCTIONS; i++) {
		const struct function *f = &functions[i];
		const size_t n = strlen(f->arguments);
		const unsigned numbers = strchr(f->arguments, 'n') ? 1u << 2 * n : 1;
		for (unsigned which = 0; which < 1u << n; which++)
			for (unsigned choice = 0; choice < numbers; choice++) {
				const uint64_t result = call_one(f, which, choice);
				const bool about_objects = *f->arguments && strchr("btfvgpw", *f->arguments);
				if (lacks_object(f, which) || (nothing_at_all && about_objects))
					cr_assert(is_nothing(f, result), "%s (%#x, %#x): %#llx", f->name, which, choice,
					          (unsigned long long)result);
			}
	}
}

static void setup(void)
{
	struct dp_host_options options = {0};
	memset(&log_, 0, sizeof(log_));
	model_make(&model);
	model.inner->siginfo = &signal_;
	model.s->maps = &map;
	model.s->nmaps = 1;
	host = host_with(&options, &log_);
	host->options.log = NULL;
	freopen("/dev/null", "w", stderr);
	module = module_add(host, "test", load_nothing);
	match = pmodule_match_create();
}

static void teardown(void)
{
	pmodule_match_destroy(match);
	dp_host_destroy(host);
	dp_snapshot_destroy(model.s);
}

TestSuite(null, .init = setup, .fini = teardown);

Test(null, inside_of_a_callback)
{
	dp_host_begin(host, model.s);
	dp_host_attach(host);
	const struct dp_entry entry = dp_module_enter(module);
	call_all(false);
	dp_module_leave(module, &entry);
	cr_assert(calls > 1000);
}

Test(null, outside_of_callbacks_nothing_answers)
{
	dp_host_begin(host, model.s);
	dp_host_attach(host);
	call_all(true);
}

Test(null, after_the_snapshot_nothing_answers)
{
	run_all(host, model.s);
	const struct dp_entry entry = dp_module_enter(module); /* reset(), unload() */
	call_all(true);
	dp_module_leave(module, &entry);
}

/* The table above is complete: every function of the header is called. */
Test(null, every_function_of_the_header_is_called)
{
	char path[4096], line[4096];
	size_t found = 0;
	snprintf(path, sizeof(path), "%s", __FILE__);
	snprintf(strstr(path, "tests/unit"), 64, "pmodules/pmodule.h");
	FILE *header = fopen(path, "r");
	cr_assert_not_null(header, "%s", path);
	while (fgets(line, sizeof(line), header)) {
		if (strncmp(line, "PMODULE_API ", 12))
			continue;
		bool known = false;
		for (size_t i = 0; i < FUNCTIONS; i++) {
			char name[128];
			snprintf(name, sizeof(name), "%s(", functions[i].name);
			const char *at = strstr(line, name);
			known |= at && strchr(" *", at[-1]);
		}
		cr_assert(known, "%s", line);
		found++;
	}
	fclose(header);
	cr_assert_eq(found, FUNCTIONS);
}
