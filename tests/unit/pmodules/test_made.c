/* SPDX-License-Identifier: MIT */
/* Objects that modules make and set: each is added once, at the requested place, and no extracted data is lost. */
#include "helper_model.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct log log_;
static struct model model;
static struct dp_host *host;
static struct pmodule *module;
static struct dp_entry entry;

static struct dp_error *load_nothing(struct pmodule *m)
{
	(void)m;
	return NULL;
}

/* Makes the state of a callback. */
static void setup(void)
{
	struct dp_host_options options = {0};
	memset(&log_, 0, sizeof(log_));
	model_make(&model);
	host = host_with(&options, &log_);
	module = module_add(host, "test", load_nothing);
	dp_host_begin(host, model.s);
	dp_host_attach(host);
	entry = dp_module_enter(module);
}

static void teardown(void)
{
	dp_module_leave(module, &entry);
	dp_host_destroy(host);
	dp_snapshot_destroy(model.s);
}

TestSuite(made, .init = setup, .fini = teardown);

#define F(x) dp_out_frame(model.x)
#define V(x) dp_out_variable(model.x)

/* The names of a frame's variables, in the iterator's order. */
static const char *names(ptrace_frame_t *f)
{
	static char text[1024];
	text[0] = '\0';
	for (ptrace_variable_t *v = NULL; (v = pmodule_frame_next_variable(f, NULL, v));) {
		const char *name = pmodule_variable_name(v);
		strcat(strcat(text, name ? name : "[]"), " ");
	}
	return text;
}

Test(made, a_variable_goes_below_its_owner_or_to_the_end_of_the_frame)
{
	ptrace_variable_t *a = pmodule_variable_create("int", "a", 0, -1, V(p)),
	                  *b = pmodule_variable_create("int", "b", 0, -1, V(p));
	ptrace_variable_t *c = pmodule_variable_create("int", NULL, 0, 0, V(p)),
	                  *d = pmodule_variable_create("int", "d", 0, -1, NULL);
	cr_assert(pmodule_frame_add_variable(F(inner), a, true));
	cr_assert(pmodule_frame_add_variable(F(inner), b, false));
	cr_assert(pmodule_frame_add_variable(F(inner), c, true));
	cr_assert(pmodule_frame_add_variable(F(inner), d, true));
	cr_assert_str_eq(names(F(inner)), "p * n a [] i b d ");
	cr_assert_eq(pmodule_variable_owner(b), V(p));
	cr_assert_eq(pmodule_variable_frame(a), F(inner));
	cr_assert_eq(pmodule_variable_thread(a), dp_out_thread(model.worker));
	cr_assert_eq(pmodule_variable_depth(a), 1);
}

Test(made, nothing_is_added_twice_or_to_another_frame)
{
	ptrace_variable_t *a = pmodule_variable_create("int", "a", 0, -1, V(p)),
	                  *alone = pmodule_variable_create("int", "b", 0, -1, NULL);
	cr_assert_not(pmodule_frame_add_variable(F(outer), a, true), "its owner is in another frame");
	cr_assert(pmodule_frame_add_variable(F(inner), a, true));
	cr_assert_not(pmodule_frame_add_variable(F(inner), a, true));
	cr_assert_not(pmodule_frame_add_variable(F(outer), a, false));
	cr_assert_not(pmodule_frame_add_variable(F(outer), V(p), false), "it is an extracted variable");
	cr_assert_not(pmodule_frame_add_variable(F(outer), NULL, false));
	cr_assert_not(pmodule_frame_add_variable(NULL, alone, false));
	cr_assert_str_eq(names(F(inner)), "p * n a i ");
	cr_assert_str_eq(names(F(outer)), "text ");
}

Test(made, children_of_what_is_not_yet_added_come_with_it)
{
	ptrace_variable_t *a = pmodule_variable_create("struct s", "a", 0, -1, NULL),
	                  *b = pmodule_variable_create("int", "b", 0, -1, a);
	pmodule_variable_set_struct(a);
	cr_assert(pmodule_frame_add_variable(F(outer), b, true));
	cr_assert(pmodule_frame_add_variable(F(outer), a, false));
	cr_assert_str_eq(names(F(outer)), "text a b ");
	cr_assert_eq(pmodule_variable_frame(b), F(outer));
}

Test(made, below_a_global_it_is_there_at_once)
{
	ptrace_variable_t *a = pmodule_variable_create("char *", "a", 0, -1, V(g));
	pmodule_variable_set_array(a);
	ptrace_variable_t *b = pmodule_variable_create("char *", NULL, 0x10, 3, a);
	pmodule_variable_set_string(b, strdup("text"));
	cr_assert_eq(model.g->children, dp_in_variable(a));
	cr_assert_eq(model.g->children->children, dp_in_variable(b));
	cr_assert_eq(model.g->children->children->index, 3);
	cr_assert_null(pmodule_variable_frame(a));
	cr_assert_str_eq(pmodule_variable_symbol(b), "text");
	cr_assert(pmodule_variable_is_string(b));
}

Test(made, a_loop_over_a_damaged_list_ends)
{
	unsigned n = 0;
	while (n < 5000 && pmodule_variable_create("int", NULL, 0, n, V(g)))
		n++;
	cr_assert_eq(n, 4096);
	cr_assert(has_word(model.s->classifiers, "truncated"));
}

Test(made, owners_of_owners_end_somewhere)
{
	ptrace_variable_t *v = V(p);
	unsigned n = 0;
	for (ptrace_variable_t *next; (next = pmodule_variable_create("int", "v", 0, -1, v)) && n < 1000; n++)
		v = next;
	cr_assert_eq(n, 64);
}

Test(made, what_was_extracted_is_kept)
{
	int64_t number;
	pmodule_variable_set_ll(V(n), 77);
	cr_assert_eq((int64_t)model.n->number, -3);
	cr_assert_str_eq(model.n->summary, "77");
	cr_assert(pmodule_variable_int(V(n), &number) && number == -3);
	pmodule_variable_set_string(V(text), strdup("pretty"));
	cr_assert_str_eq(model.text->summary, "pretty");
	cr_assert_eq(model.text->kind, DP_VAR_TUPLE);
	pmodule_variable_set_struct(V(n));
	cr_assert_eq(model.n->kind, DP_VAR_LL);
	pmodule_variable_state_set(V(text), PTRACE_VARIABLE_S_SKIP);
	cr_assert(model.text->is_hidden);
	cr_assert_eq(pmodule_variable_state(V(text)), PTRACE_VARIABLE_S_SKIP);
	pmodule_frame_set_symbol(F(inner), "better");
	pmodule_frame_set_symbol(F(inner), "best");
	cr_assert_str_eq(model.inner->symbol, "best");
	cr_assert_str_eq(model.inner->original_symbol, "inner");
	pmodule_frame_set_basename(F(inner), "other.c");
	cr_assert_str_eq(model.inner->path, "src/other.c");
	pmodule_frame_set_directory(F(inner), "/x");
	pmodule_frame_set_line(F(inner), 5);
	cr_assert_str_eq(model.inner->path, "/x/other.c");
	cr_assert_eq(count_notes(model.inner->notes, "the debug information says src/main.c:10, declared in line 0"), 1);
}

Test(made, setters_say_kind_and_value)
{
	double re, im;
	int64_t i;
	ptrace_variable_t *v = pmodule_variable_create("struct crash *[4]", "v", 1, -1, NULL);
	cr_assert_str_eq(pmodule_variable_base_type(v), "crash");
	pmodule_variable_set_cdbl(v, 1.5, -2);
	cr_assert(pmodule_variable_type(v) == PMODULE_CDBL && pmodule_variable_real(v, &re, &im) && re == 1.5 && im == -2);
	pmodule_variable_set_dbl(v, 0.25);
	cr_assert(pmodule_variable_type(v) == PMODULE_DBL && pmodule_variable_real(v, &re, NULL) && re == 0.25);
	cr_assert_not(pmodule_variable_int(v, &i));
	pmodule_variable_set_ull(v, UINT64_MAX);
	cr_assert(pmodule_variable_type(v) == PMODULE_ULL && pmodule_variable_int(v, &i) && i == -1);
	pmodule_variable_set_enum(v, -4, "FOUR");
	cr_assert(pmodule_variable_type(v) == PMODULE_ENUM && pmodule_variable_int(v, &i) && i == -4);
	cr_assert_str_eq(pmodule_variable_symbol(v), "FOUR");
	pmodule_variable_set_ref(v, 0xffff888000000001, NULL);
	cr_assert(pmodule_variable_type(v) == PMODULE_REFERENCE && pmodule_variable_int(v, &i) &&
	          (uint64_t)i == 0xffff888000000001);
	cr_assert_null(pmodule_variable_symbol(v));
	pmodule_variable_set_function(v, "main");
	cr_assert_eq(pmodule_variable_type(v), PMODULE_FN);
	cr_assert_not(pmodule_variable_real(v, &re, NULL));
}

Test(made, frames_are_numbered_anew)
{
	ptrace_frame_t *a = pmodule_frame_create(), *b = pmodule_frame_create(), *c = pmodule_frame_create();
	pmodule_frame_set_symbol(a, "first");
	pmodule_frame_set_path(a, "x.py");
	cr_assert(pmodule_thread_add_frame(dp_out_thread(model.worker), a, true));
	cr_assert(pmodule_frame_add_frame(F(outer), b, false));
	cr_assert(pmodule_thread_add_frame(dp_out_thread(model.worker), c, false));
	cr_assert_not(pmodule_thread_add_frame(dp_out_thread(model.idle), a, true), "twice");
	cr_assert_not(pmodule_frame_add_frame(F(wait), F(outer), true), "it is an extracted variable");
	cr_assert_eq(pmodule_frame_index(a), 0);
	cr_assert_eq(model.inner->index, 1);
	cr_assert_eq(pmodule_frame_index(b), 2);
	cr_assert_eq(model.outer->index, 3);
	cr_assert_eq(pmodule_frame_index(c), 4);
	cr_assert_eq(pmodule_thread_n_frames(dp_out_thread(model.worker)), 5);
	cr_assert_null(model.inner->original_symbol);
}

Test(made, types_are_written_as_the_reference_has_them)
{
	cr_assert_str_eq(pmodule_variable_type_name(V(p)), "struct(crash) *");
	cr_assert_str_eq(pmodule_variable_type_name(V(star)), "struct(crash)");
	cr_assert_str_eq(pmodule_variable_type_name(V(i)), "unsigned int");
	model.text->type = model.text->base_type = "my_pair<struct a, int>";
	cr_assert_str_eq(pmodule_variable_type_name(V(text)), "struct(my_pair<struct a, int>)");
}

static void argument(const char *type, unsigned n, const char *wanted)
{
	char *out = NULL;
	const bool ok = pmodule_cpp_template_nth_argument(&out, type, n);
	cr_assert_eq(ok, wanted != NULL, "%s %u: %s", type, n, out);
	if (ok)
		cr_assert_str_eq(out, wanted);
	free(out);
}

Test(made, arguments_of_templates)
{
	argument("struct(my_pair<int, std::pair<char, long> >)", 0, "int");
	argument("struct(my_pair<int, std::pair<char, long> >)", 1, "std::pair<char, long>");
	argument("struct(my_pair<int, std::pair<char, long> >)", 2, NULL);
	argument("f<void (*)(int, char), 'a', ','>", 0, "void (*)(int, char)");
	argument("f<void (*)(int, char), 'a', ','>", 2, "','");
	argument("f<>", 0, NULL);
	argument("f<int", 0, NULL);
	argument("f", 0, NULL);
	argument("f<a, b", 1, NULL);
	argument("f<'", 0, NULL);
	argument("f<'\\", 0, NULL);
	argument("", 0, NULL);
	argument(NULL, 0, NULL);
}

Test(made, objects_are_stale_when_the_snapshot_is_over)
{
	ptrace_variable_t *v = V(p);
	const uint64_t generation = dp_host_generation(host);
	cr_assert_str_eq(pmodule_variable_name(v), "p");
	dp_module_leave(module, &entry);
	cr_assert_null(pmodule_variable_name(v), "outside of callbacks");
	dp_host_end(host);
	entry = dp_module_enter(module); /* reset() or unload() */
	cr_assert_null(pmodule_variable_name(v));
	cr_assert_null(pmodule_backtrace());
	cr_assert_null(pmodule_variable_create("int", "a", 0, -1, NULL));
	cr_assert_neq(dp_host_generation(host), generation);
}
