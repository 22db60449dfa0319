/* SPDX-License-Identifier: MIT */
/* Extracts the frames of a child and compares them with known values. */
#include "helper_stopped.h"
#include "pmodules/value/debug_ctx_internal.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utlist.h>

enum color { RED, GREEN = 5, BLUE = -3 };
enum mode { READ = 1, WRITE = 2, EXEC = 4 };
struct base {
	int id;
};
struct node {
	struct node *next;
	const char *name;
	unsigned low : 3;
	int high : 5;
	union {
		int whole;
		float part;
	};
	struct base inner[2];
	char text[8];
};
struct opaque;
static int global_count = 41;
static __thread long thread_mark = 17;
static struct stopped s;
static volatile int sink;

#ifdef __clang__
#define UNOPTIMIZED __attribute__((noinline, optnone))
#else
#define UNOPTIMIZED __attribute__((noinline, optimize("O0")))
#endif

#pragma GCC diagnostic ignored "-Wshadow"

static int twice(int x)
{
	return 2 * x;
}

UNOPTIMIZED static int truth(struct node *list, enum color color, const char *text, int argument)
{
	static short kept = -9;
	int (*function)(int) = twice;
	int *counter = &global_count;
	enum mode mode = READ | EXEC;
	__int128 wide = -12345678901234567LL;
	long double precise = 0.5L;
	_Complex double z = 3.0 + 4.0i;
	_Bool yes = 1;
	int grid[2][3] = {{1, 2, 3}, {4, 5, 6}}, many[300] = {0};
	struct opaque *unknown = (struct opaque *)counter;
	char *bad = (char *)8;
	const char *volatile own_name = __func__;
	{
		int argument = 99; /* hides the parameter of the same name */
		raise(SIGTRAP);
		kept += (short)argument;
		sink = kept;
	}
	return list->high + color + text[0] + function(*counter) + mode + (int)wide + (int)precise + (int)z + yes + grid[1][1] +
	       many[7] + argument + (unknown != NULL) + (bad != NULL) + (own_name != NULL) + (int)thread_mark;
}

static void child(void)
{
	struct node a = {.name = "first", .low = 5, .high = -7, .whole = 1, .inner = {{11}, {12}}, .text = "abc"},
	            b = {.name = "second"};
	a.next = &b;
	b.next = &a;
	truth(&a, BLUE, "hello\tworld", 1234);
}

static struct dp_snap_variable *variable(struct dp_snap_thread *t, const char *name)
{
	return stopped_variable(stopped_frame(t, "truth")->variables, name);
}

static struct dp_snap_thread *run(void)
{
	return stopped_run(&s, child, NULL);
}

Test(extract, scalars_are_what_the_program_says)
{
	struct dp_snap_thread *t = run();
	cr_assert_eq((int64_t)variable(t, "kept")->number, -9);
	cr_assert_str_eq(variable(t, "color")->text, "BLUE");
	cr_assert_eq((int64_t)variable(t, "color")->number, -3);
	cr_assert_str_eq(variable(t, "__func__")->type, "const char [6]", "const appears once, for the array or its elements");
	cr_assert_str_eq(variable(t, "color")->type, "enum color");
	cr_assert_str_eq(variable(t, "mode")->text, "READ | EXEC");
	cr_assert_str_eq(variable(t, "wide")->text, "-12345678901234567");
	cr_assert_str_eq(variable(t, "precise")->text, "0.5");
	cr_assert_eq(variable(t, "z")->real, 3.0);
	cr_assert_eq(variable(t, "z")->imaginary, 4.0);
	cr_assert(variable(t, "yes")->is_bool && variable(t, "yes")->number == 1);
	stopped_fini(&s);
}

Test(extract, parameters_come_first_and_inner_blocks_last)
{
	struct dp_snap_frame *f = stopped_frame(run(), "truth");
	struct dp_snap_variable *v = f->variables;
	cr_assert_str_eq(v->name, "list");
	cr_assert_eq(v->index, 0);
	cr_assert_eq(v->place, DP_VAR_PARAMETER);
	cr_assert_eq((int64_t)stopped_variable(f->variables, "argument")->number, 1234);
	cr_assert_str_eq(f->variables->prev->name, "argument");
	cr_assert_eq((int64_t)f->variables->prev->number, 99);
	cr_assert_eq(f->variables->prev->place, DP_VAR_LOCAL);
	stopped_fini(&s);
}

Test(extract, pointers_are_followed_and_circles_cut)
{
	struct dp_snap_variable *list = variable(run(), "list");
	cr_assert_str_eq(list->type, "struct node *");
	cr_assert_str_eq(list->base_type, "node");
	struct dp_snap_variable *a = list->children;
	cr_assert_str_eq(a->name, "*");
	cr_assert_eq(a->kind, DP_VAR_TUPLE);
	struct dp_snap_variable *b = stopped_variable(a->children, "next")->children;
	cr_assert_str_eq(stopped_variable(b->children, "name")->text, "second");
	struct dp_snap_variable *back = stopped_variable(b->children, "next");
	cr_assert_eq(back->number, a->address);
	cr_assert_null(back->children);
	stopped_fini(&s);
}

Test(extract, members_bit_fields_and_unnamed_unions)
{
	struct dp_snap_variable *a = variable(run(), "list")->children;
	cr_assert_eq(stopped_variable(a->children, "low")->number, 5);
	cr_assert_eq((int64_t)stopped_variable(a->children, "high")->number, -7);
	cr_assert_eq(stopped_variable(a->children, "high")->bits, 5);
	struct dp_snap_variable *both = stopped_variable(a->children, "");
	cr_assert(both->is_union);
	cr_assert_eq(stopped_variable(both->children, "whole")->number, 1);
	struct dp_snap_variable *inner = stopped_variable(a->children, "inner");
	cr_assert_eq(inner->children->next->index, 1);
	cr_assert_eq(stopped_variable(inner->children->next->children, "id")->number, 12);
	struct dp_snap_variable *text = stopped_variable(a->children, "text");
	cr_assert_eq(text->kind, DP_VAR_STRING);
	cr_assert_str_eq(text->text, "abc");
	cr_assert_eq(text->text_size, 3);
	cr_assert_str_eq(text->type, "char [8]");
	stopped_fini(&s);
}

Test(extract, pointers_name_what_they_point_at)
{
	struct dp_snap_thread *t = run();
	cr_assert_str_eq(variable(t, "function")->text, "twice");
	cr_assert_str_eq(variable(t, "counter")->text, "global_count");
	cr_assert_eq(variable(t, "counter")->children->number, 41);
	cr_assert_str_eq(variable(t, "text")->text, "hello\tworld");
	cr_assert(variable(t, "text")->is_string && !variable(t, "text")->is_cut);
	cr_assert_not(variable(t, "bad")->is_string);
	cr_assert_null(variable(t, "unknown")->children);
	stopped_fini(&s);
}

Test(extract, arrays_are_cut_and_say_so)
{
	struct dp_snap_thread *t = run();
	struct dp_snap_variable *grid = variable(t, "grid"), *many = variable(t, "many"), *v;
	int n;
	cr_assert_str_eq(grid->type, "int [2][3]");
	cr_assert_str_eq(grid->children->type, "int [3]");
	cr_assert_eq(grid->children->next->children->next->next->number, 6);
	DL_COUNT(many->children, v, n);
	cr_assert_eq(n, 128);
	cr_assert_eq(many->more, 300 - 128);
	stopped_fini(&s);
}

Test(extract, values_of_a_frame_can_be_walked_on)
{
	struct dp_snap_frame *f = stopped_frame(run(), "truth");
	struct dp_value *list = dp_value_local(s.world, f, "list"), *v;
	uint64_t n;
	char text[32];
	cr_assert(list);
	cr_assert_null(dp_value_member(list, "next", &v));
	cr_assert_null(dp_value_member(v, "name", &v));
	cr_assert_str_eq(dp_value_name(v), "list->next->name");
	cr_assert_eq(dp_value_read_string(v, text, sizeof(text) - 1), 6);
	cr_assert_str_eq(text, "second");
	cr_assert_null(dp_value_member(list, "part", &v), "a member of an unnamed union");
	cr_assert_null(dp_value_member(list, "inner", &v));
	cr_assert_null(dp_value_index(v, 1, &v));
	cr_assert_null(dp_value_container(v, "struct node", "inner", &v), "the record's type is found for any element");
	cr_assert_str_eq(dp_value_type_name(v), "struct node");
	struct dp_error *err = dp_value_member(list, "nothing", &v);
	cr_assert(err && err->tag == DP_TAG_NO_VARIABLE && strstr(err->message, "nothing"));
	dp_error_destroy(err);
	cr_assert_null(dp_value_cast(list, "unsigned long", &v));
	cr_assert_null(dp_value_read_int(v, &n));
	cr_assert_eq(n, stopped_variable(f->variables, "list")->number);
	stopped_fini(&s);
}

Test(extract, a_list_without_end_can_be_walked_and_named)
{
	struct dp_snap_frame *f = stopped_frame(run(), "truth");
	struct dp_value *v = dp_value_local(s.world, f, "list"), *next;
	char path[4096];
	for (unsigned i = 0; i < 200000; i++) {
		cr_assert_null(dp_value_member(v, "next", &next));
		v = next;
	}
	snprintf(path, sizeof(path), "%s", dp_value_name(v));
	cr_assert(!strncmp(path, "...->next->next", 15) && strlen(path) < 2000, "%s", path);
	for (unsigned i = 0; i < 2000; i++) { /* each of them by name */
		cr_assert_null(dp_value_member(v, "next", &v));
		cr_assert_lt(strlen(dp_value_name(v)), 2000);
	}
	stopped_fini(&s);
}

Test(extract, when_there_is_no_memory_left_steps_fail_and_nothing_else)
{
	struct dp_snap_frame *f = stopped_frame(run(), "truth");
	struct dp_value *list = dp_value_local(s.world, f, "list"), *grid = dp_value_local(s.world, f, "grid"), *v;
	struct dp_snap_variable *shown = dp_snapshot_variable(s.snapshot, &s.snapshot->globals, NULL);
	for (size_t n = 1 << 20; n >= 16; n /= 2)
		while (dp_arena_alloc(&s.world->arena, n))
			;
	struct dp_error *err = dp_value_member(list, "next", &v);
	cr_assert(err && err->tag == DP_TAG_NOMEM);
	dp_error_destroy(err);
	dp_error_destroy(dp_value_index(grid, 1, &v));
	dp_error_destroy(dp_value_cast(list, "struct base **", &v));
	dp_error_destroy(dp_value_address_of(grid, &v));
	dp_value_show(list, NULL, 3, s.snapshot, shown);
	cr_assert_null(shown->value);
	cr_assert_eq(shown->number, stopped_variable(f->variables, "list")->number);
	for (struct dp_snap_variable *c = shown->children; c; c = c->children)
		cr_assert_null(c->value);
	stopped_fini(&s);
}

Test(extract, globals_and_types_are_found_by_name)
{
	run();
	struct dp_value *v = dp_value_global(s.world, "global_count", NULL, NULL);
	uint64_t n;
	cr_assert(v);
	cr_assert_null(dp_value_read_int(v, &n));
	cr_assert_eq(n, 41);
	cr_assert_null(dp_value_global(s.world, "no_such_variable", NULL, NULL));
	v = dp_value_global(s.world, "thread_mark", NULL, NULL);
	cr_assert(v);
	cr_assert_null(dp_value_read_int(v, &n), "thread-local variables need a thread");
	cr_assert_eq(n, 17);
	v = dp_value_at(s.world, "struct node *", 0x1000, NULL);
	cr_assert(v && dp_value_size(v) == 8);
	cr_assert_null(dp_value_at(s.world, "struct no_such", 0x1000, NULL));
	stopped_fini(&s);
}

struct patience {
	unsigned left, asked;
};

static bool is_out_of_patience(void *data)
{
	struct patience *p = data;
	p->asked++;
	return !p->left || !--p->left;
}

/* When the process is stopped a second time. */
Test(extract, globals_that_were_found_are_not_searched_for_again)
{
	static const char *const names[] = {"test_extract.c::global_c*", "no_such_variable", NULL};
	struct patience none = {0};
	struct dp_snap_thread *t = stopped_run(&s, child, &(struct dp_extract_options){.globals = names, .tls = true});
	for (int i = 0; i < 2; i++) {
		s.snapshot->globals = t->variables = NULL;
		dp_extract_globals(s.extract, s.snapshot);
		dp_extract_tls(s.extract, &s.thread, t);
		cr_assert(s.snapshot->globals && s.snapshot->globals->number == 41 && !s.snapshot->globals->next);
		cr_assert(stopped_variable(t->variables, "thread_mark")->number == 17);
		dp_debug_ctx_bound(s.world, is_out_of_patience, &none);
	}
	cr_assert_eq(none.asked, 0);
	cr_assert_str_eq(s.snapshot->notes->text, "there is no global or static variable 'no_such_variable'");
	dp_extract_renew(s.extract);
	s.snapshot->globals = NULL;
	dp_extract_globals(s.extract, s.snapshot);
	cr_assert(none.asked && !s.snapshot->globals, "a global may have changed since the last snapshot");
	stopped_fini(&s);
}

/* A module's time limit may end a search through all debug information. */
Test(extract, a_search_ends_when_it_is_told_and_what_it_did_not_find_may_be_there)
{
	struct patience none = {0}, some = {.left = 3};
	run();
	dp_debug_ctx_bound(s.world, is_out_of_patience, &none);
	cr_assert_null(dp_value_at(s.world, "struct base", 0x1000, NULL));
	cr_assert_null(dp_value_global(s.world, "global_count", NULL, NULL));
	cr_assert_leq(none.asked, 8, "it did not stop: asked %u times", none.asked);
	dp_debug_ctx_bound(s.world, is_out_of_patience, &some);
	cr_assert_null(dp_value_at(s.world, "struct no_such", 0x1000, NULL));
	cr_assert_leq(some.asked, 8, "asked %u times", some.asked);
	dp_debug_ctx_bound(s.world, NULL, NULL);
	cr_assert_not_null(dp_value_at(s.world, "struct base", 0x1000, NULL), "an aborted search was cached as a result");
	cr_assert_not_null(dp_value_global(s.world, "global_count", NULL, NULL));
	stopped_fini(&s);
}

/* ---- hostile ------------------------------------------------------------------------------------------------------------ */

static void corrupt(void)
{
	uint64_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	p[0] = (uint64_t)p; /* a frame pointer that points to itself */
	p[1] = (uint64_t)&corrupt + 64;
	__asm__ volatile("mov %0, %%rbp; mov %0, %%rsp; int3" ::"r"(p) : "memory");
}

Test(extract, a_stack_that_leads_in_circles_ends)
{
	struct dp_snap_thread *t = run();
	stopped_fini(&s);
	t = stopped_run(&s, corrupt, NULL);
	cr_assert(t->nframes < 10, "%u frames", t->nframes);
	stopped_fini(&s);
}

struct wide {
	struct wide *left, *right;
	char pad[64];
};

UNOPTIMIZED static int roam(struct wide *tree)
{
	int last = 4321;
	raise(SIGTRAP);
	return tree->pad[0] + last;
}

static void many_pointers(void)
{
	enum { N = 1 << 16 };
	struct wide *w = calloc(N, sizeof(*w));
	for (size_t i = 0; i < N; i++) {
		w[i].left = &w[(2 * i + 1) % N];
		w[i].right = &w[(2 * i + 2) % N];
	}
	roam(w);
}

Test(extract, a_tree_without_end_takes_a_bounded_number_of_variables)
{
	const struct dp_extract_options o = {.limits = {.depth = 60, .fault_depth = 60, .variables = 500}};
	struct dp_snap_frame *f = stopped_frame(stopped_run(&s, many_pointers, &o), "roam");
	cr_assert(stopped_is_classified(s.snapshot, "truncated"));
	cr_assert_eq(stopped_variable(f->variables, "last")->number, 4321, "a large variable leaves room for the others");
	cr_assert(s.snapshot->arena.total < 4u << 20);
	stopped_fini(&s);
}

/* ---- a later stop ------------------------------------------------------------------------------------------------------- */

Test(extract, a_world_that_is_kept_reads_the_memory_of_the_new_moment)
{
	const int now = 4242;
	int is = 0;
	run();
	const uint64_t addr = (uint64_t)(uintptr_t)&global_count;
	struct iovec local = {(void *)(uintptr_t)&now, sizeof(now)}, remote = {&global_count, sizeof(now)};
	cr_assert(dp_debug_ctx_get(s.world, addr, &is, sizeof(is), NULL) && is == 41);
	cr_assert_eq(process_vm_writev(s.pid, &local, 1, &remote, 1, 0), (ssize_t)sizeof(now));
	cr_assert(dp_debug_ctx_get(s.world, addr, &is, sizeof(is), NULL) && is == 41, "the earlier value is cached");
	dp_debug_ctx_renew(s.world);
	cr_assert(dp_debug_ctx_get(s.world, addr, &is, sizeof(is), NULL));
	cr_assert_eq(is, now);
	stopped_fini(&s);
}

/* ---- loading ------------------------------------------------------------------------------------------------------------ */

static struct {
	struct dp_module *module;
	unsigned times;
	bool too_late;
} asked;

static void may_let_go(void *data)
{
	(void)data;
	asked.times++;
	asked.too_late |= dp_module_debug_opened(asked.module);
}

static size_t read_nothing(uint64_t addr, void *buf, size_t n, bool *late, void *data)
{
	(void)addr, (void)buf, (void)n, (void)data;
	*late = false;
	return 0;
}

Test(extract, who_holds_is_asked_before_debug_information_is_loaded_and_not_again)
{
	static char maps[1 << 20];
	struct dp_image *image;
	struct dp_debug_ctx *w;
	FILE *f = fopen("/proc/self/maps", "re");
	cr_assert(f && fread(maps, 1, sizeof(maps) - 1, f));
	fclose(f);
	cr_assert_null(dp_image_create(maps, "", getpid(), &image));
	cr_assert_null(dp_debug_ctx_create(image, read_nothing, NULL, &w));
	dp_debug_ctx_before_load(w, may_let_go);
	asked.module = dp_image_module_at(image, dp_addr_of((uint64_t)(uintptr_t)child));
	cr_assert(asked.module && dp_debug_ctx_debug(w, asked.module));
	cr_expect(asked.times == 1 && !asked.too_late, "asked %u times", asked.times);
	dp_debug_ctx_debug(w, asked.module);
	cr_expect_eq(asked.times, 1);
	dp_debug_ctx_destroy(w);
	dp_image_destroy(image);
}
