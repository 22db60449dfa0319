/* SPDX-License-Identifier: MIT */
#include "helper_snapshot.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include <utlist.h>

static void note(struct dp_snapshot *s, struct dp_snap_note **list, enum dp_note_kind kind, const char *text)
{
	dp_snapshot_note(s, list, kind, text)->module = "a.module";
}

/* Every flag and every member; different for each `n`. */
static struct dp_snap_variable *full_variable(struct dp_snapshot *s, struct dp_snap_variable **list,
                                              struct dp_snap_variable *owner, unsigned n)
{
	struct dp_snap_variable *v = dp_snapshot_variable(s, list, owner);
	v->name = "name";
	v->type = "struct crash *";
	v->base_type = "crash";
	v->kind = (enum dp_var_kind)(n % (DP_VAR_REFERENCE + 1));
	v->state = (enum dp_var_state)(n % 3);
	v->place = owner ? DP_VAR_CHILD : (enum dp_var_place)(n % 4);
	v->why = n & 1 ? "optimized out" : NULL;
	v->index = n & 1 ? (int64_t)n : -1;
	v->address = 0x7ffe00001000u + n;
	v->size = 8 + n;
	v->number = UINT64_MAX - n;
	v->real = n == 2 ? NAN : n == 3 ? -0.0 : 1.5 + n;
	v->imaginary = n == 2 ? -INFINITY : 0.25;
	v->is_string = n & 1;
	v->text = n & 1 ? "a\0b\xff" : "A | B";
	v->text_size = n & 1 ? 4 : 0;
	v->is_cut = n & 2, v->is_bool = n & 1, v->is_char = n & 4, v->is_union = n & 2, v->is_synthesized = n & 1;
	v->is_hidden = n & 4, v->is_late = n & 2, v->is_shared = n & 1;
	v->bits = (uint8_t)(n + 3);
	v->summary = n & 2 ? "a summary" : NULL;
	v->object = "libfoo.so";
	v->unit = "dir/foo.c";
	v->more = 1000 + n;
	note(s, &v->notes, DP_NOTE_WARNING, "freed twice");
	return v;
}

static void full_frame(struct dp_snapshot *s, struct dp_snap_thread *t, unsigned n, const struct dp_frame_regs *registers)
{
	struct dp_snap_frame *f = dp_snapshot_frame(s, t);
	static const struct dp_snap_siginfo info = {
	        11, 1, 4242, 1000, 0x10, true, true, "SIGSEGV", "address not mapped to object"};
	f->pc = 0x401000 + n, f->sp = 0x7ffe0000 + n, f->cfa = 0x7fff0000 + n;
	f->symbol = "foo(int)", f->linkage = "_Z3fooi", f->offset = 17 + n;
	f->object = "/bin/prog", f->path = "dir/file.c";
	f->line = 12 + (int)n, f->decl_line = 9;
	f->line_resolved = n & 1, f->is_inline = n & 2, f->is_guess = n & 1, f->is_signal = n & 2;
	f->is_fault = n & 1;
	f->is_synthesized = n & 2;
	f->instruction = "mov (%rdi),%rax";
	f->registers = registers;
	f->siginfo = n & 1 ? &info : NULL;
	f->original_symbol = "bar";
	note(s, &f->notes, DP_NOTE_CRITICAL, "here");
	for (unsigned i = 0; i < 16; i++) {
		struct dp_snap_variable *v = dp_snapshot_variable(s, &f->variables, NULL), *child;
		v->frame = f;
		v->thread = t;
		v->name = "plain";
		child = full_variable(s, &v->children, v, i);
		full_variable(s, &child->children, child, i + 1);
		full_variable(s, &child->children, child, i + 2);
	}
}

static void full_thread(struct dp_snapshot *s, unsigned n)
{
	static struct dp_frame_regs one = {{1, 2, 3}, 0x7}, two = {{[16] = UINT64_MAX}, 1u << 16};
	struct dp_snap_thread *t = dp_snapshot_thread(s, 100 + (pid_t)n);
	t->name = "worker";
	t->state = "SR"[n & 1];
	t->is_fault = !n;
	t->fault_reason = n ? NULL : "read of 8 bytes at 0x0";
	t->unwind_end = "no unwind table";
	t->has_registers = true;
	for (unsigned i = 0; i < DP_DWARF_REGS; i++)
		t->registers.value[i] = 0x1111111111111111u * i;
	t->registers.known = n ? 0x1ffff : 0x10001;
	t->registers.value[1] = n ? t->registers.value[1] : 0; /* unknown values are not stored */
	for (unsigned i = 1; !n && i < DP_DWARF_REGS - 1; i++)
		t->registers.value[i] = 0;
	t->rflags = 0x246, t->fs_base = 0x7f0012345700, t->gs_base = 1, t->orig_rax = UINT64_MAX;
	t->syscall = n ? 202 : -1;
	t->syscall_text = n ? "futex(0x7f)" : NULL;
	t->more_frames = n;
	full_frame(s, t, 0, &one);
	full_frame(s, t, 1, &one);
	full_frame(s, t, 2, &two);
	full_frame(s, t, 3, NULL);
	for (unsigned i = 0; i < 2; i++) {
		struct dp_snap_kframe *k = dp_arena_alloc(&s->arena, sizeof(*k));
		k->symbol = i ? "do_syscall_64" : "futex_wait";
		DL_APPEND(t->kframes, k);
	}
	full_variable(s, &t->variables, NULL, 3)->thread = t;
	note(s, &t->notes, DP_NOTE_JSON, "{\"a\":1}");
}

static void full_process(struct dp_snapshot *s)
{
	static const char *const argv[] = {"prog", "", "-x", NULL}, *const environ_[] = {"A=1", NULL};
	static struct dp_snap_map maps[] = {{0x1000, 0x2000, 0x10, 77, 1, 0, 1, 0, 0, "/bin/prog"},
	                                    {0x3000, UINT64_MAX, 0, 0, 0, 1, 0, 1, 1, ""}};
	static struct dp_snap_object objects[] = {{"/bin/prog", "abcdef", 0x1000, 0x2000, -4096, true, ""}};
	static struct dp_snap_file files[] = {{0, "/dev/null"}, {7, "socket:[1]"}};
	static struct dp_snap_limit limits[] = {{"Max stack size", "8388608", "unlimited", "bytes"}};
	static struct dp_snap_memory memory[] = {{0x1000, 4, (const uint8_t *)"\0\1\2\3"}, {0x3000, 2, (const uint8_t *)"xy"}};
	static struct dp_snap_source sources[] = {{"dir/file.c", 9, "int main()\n{", 2}};
	s->argv = argv, s->environ = environ_;
	s->maps = maps, s->nmaps = 2, s->objects = objects, s->nobjects = 1, s->files = files, s->nfiles = 2;
	s->limits = limits, s->nlimits = 1, s->memory = memory, s->nmemory = 2, s->sources = sources, s->nsources = 1;
}

struct dp_snapshot *helper_version1(void)
{
	struct dp_snapshot *s = dp_snapshot_create();
	strcpy(s->id, "01234567-89ab-4cde-8f01-23456789abcd");
	s->time_ns = 1790000000123456789u;
	s->dynprobe = "0.1.0", s->mode = "fork", s->pid = 100, s->application = "prog", s->exe = "/bin/prog";
	s->process_state = 'S', s->hostname = "host", s->kernel = "6.1.0";
	s->pause_ns = 1, s->stop_ns = 2, s->read_ns = 3, s->total_ns = 4, s->rehearsal_ns = 5;
	s->probe = "main", s->condition = "x > 1", s->hit = 6;
	dp_snapshot_set_int(s, "answer", -42);
	dp_snapshot_set_text(s, "uname.sysname", "Linux");
	dp_snapshot_classify(s, "segv");
	dp_snapshot_classify(s, "null");
	dp_snapshot_tag(s, "a tag");
	dp_snapshot_truncated(s, "%d frames were left out", 3);
	note(s, &s->notes, DP_NOTE_COMMENT, "on the whole");
	full_process(s);
	full_thread(s, 0);
	full_thread(s, 1);
	full_variable(s, &s->globals, NULL, 2);
	return s;
}

struct dp_snapshot *helper_full(void)
{
	struct dp_snapshot *s = helper_version1();
	dp_snapshot_adds(s, DP_ADDED_CLASSIFIER, "later", "a.module");
	dp_snapshot_classify(s, "later");
	s->inner_pid = 1, s->comm = "prog-main";
	s->globals->module = "a.module";
	s->threads->frames->module = "another";
	s->threads->frames->is_tail = s->threads->frames->by_frame_pointer = true;
	return s;
}

/* ---- comparison: a is the original, b was read back */

static void check(bool same, const char *what)
{
	cr_assert(same, "%s differs", what);
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

#define SAME(m) check(a->m == b->m, #m)
#define TEXT(m) check(same_text(a->m, b->m), #m)
#define BITS(m) check(!memcmp(&a->m, &b->m, sizeof(a->m)), #m)
/* Walks two lists; the body compares a and b. */
#define PAIRS(T, list_a, list_b)                                                                                                 \
	cr_assert(!(list_a) == !(list_b), "one list is empty");                                                                  \
	for (const struct T *a = (list_a), *b = (list_b); a || b; a = a->next, b = b->next)                                      \
		if (!a != !b)                                                                                                    \
			cr_assert_fail("lists of %s differ in length", #T);                                                      \
		else

static void same_notes(const struct dp_snap_note *list_a, const struct dp_snap_note *list_b)
{
	PAIRS(dp_snap_note, list_a, list_b)
	{
		SAME(kind);
		TEXT(text);
		TEXT(module);
	}
}

static void same_words(const struct dp_snap_word *list_a, const struct dp_snap_word *list_b)
{
	PAIRS(dp_snap_word, list_a, list_b)
	TEXT(text);
}

static void same_flags(const struct dp_snap_variable *a, const struct dp_snap_variable *b)
{
	SAME(is_string), SAME(is_cut), SAME(is_bool), SAME(is_char), SAME(is_union), SAME(is_synthesized);
	SAME(is_hidden), SAME(is_late), SAME(is_shared), SAME(bits), SAME(text_size);
}

static void same_variables(const struct dp_snap_variable *list_a, const struct dp_snap_variable *list_b)
{
	PAIRS(dp_snap_variable, list_a, list_b)
	{
		TEXT(name), TEXT(type), TEXT(base_type), TEXT(why), TEXT(summary), TEXT(module), TEXT(object), TEXT(unit);
		SAME(kind), SAME(state), SAME(place), SAME(index), SAME(address), SAME(size), SAME(number), SAME(more);
		BITS(real), BITS(imaginary);
		same_flags(a, b);
		TEXT(text);
		cr_assert(!a->is_string || !memcmp(a->text, b->text, a->text_size + 1), "a string's bytes");
		cr_assert((!a->owner && !b->owner) || !strcmp(a->owner->name, b->owner->name));
		cr_assert(!a->frame == !b->frame && (!a->frame || a->frame->index == b->frame->index), "the frame of a variable");
		cr_assert(!a->thread == !b->thread && (!a->thread || a->thread->tid == b->thread->tid),
		          "the thread of a variable");
		same_notes(a->notes, b->notes);
		same_variables(a->children, b->children);
	}
}

static void same_siginfo(const struct dp_snap_siginfo *a, const struct dp_snap_siginfo *b)
{
	cr_assert_eq(!a, !b);
	if (!a)
		return;
	SAME(number), SAME(code), SAME(pid), SAME(uid), SAME(address), SAME(has_address), SAME(by_kill);
	TEXT(name), TEXT(reason);
}

static void same_registers(const struct dp_frame_regs *a, const struct dp_frame_regs *b)
{
	cr_assert_eq(!a, !b);
	for (unsigned i = 0; a && i < DP_DWARF_REGS; i++)
		cr_assert((a->known >> i & 1) == (b->known >> i & 1) && (!(a->known >> i & 1) || a->value[i] == b->value[i]),
		          "register %u", i);
}

static void same_frames(const struct dp_snap_frame *list_a, const struct dp_snap_frame *list_b)
{
	PAIRS(dp_snap_frame, list_a, list_b)
	{
		SAME(index), SAME(pc), SAME(sp), SAME(cfa), SAME(offset), SAME(line), SAME(decl_line), SAME(line_resolved);
		SAME(is_inline), SAME(is_tail), SAME(is_guess), SAME(by_frame_pointer), SAME(is_signal), SAME(is_fault),
		        SAME(is_synthesized);
		TEXT(symbol), TEXT(linkage), TEXT(object), TEXT(path), TEXT(instruction), TEXT(original_symbol), TEXT(module);
		same_registers(a->registers, b->registers);
		cr_assert(!a->index || !a->registers ||
		                  (a->registers == a->prev->registers) == (b->registers == b->prev->registers),
		          "shared");
		same_siginfo(a->siginfo, b->siginfo);
		same_notes(a->notes, b->notes);
		same_variables(a->variables, b->variables);
	}
}

static void same_kframes(const struct dp_snap_kframe *list_a, const struct dp_snap_kframe *list_b)
{
	PAIRS(dp_snap_kframe, list_a, list_b)
	TEXT(symbol);
}

static void same_pairs(const struct dp_snap_pair *list_a, const struct dp_snap_pair *list_b)
{
	PAIRS(dp_snap_pair, list_a, list_b)
	{
		TEXT(key), SAME(is_int), SAME(number), TEXT(text);
	}
}

static void same_threads(const struct dp_snap_thread *list_a, const struct dp_snap_thread *list_b)
{
	PAIRS(dp_snap_thread, list_a, list_b)
	{
		SAME(tid), SAME(state), SAME(is_fault), SAME(has_registers), SAME(rflags), SAME(fs_base), SAME(gs_base),
		        SAME(orig_rax);
		SAME(syscall), SAME(nframes), SAME(more_frames);
		TEXT(name), TEXT(fault_reason), TEXT(unwind_end), TEXT(syscall_text);
		same_registers(&a->registers, &b->registers);
		same_frames(a->frames, b->frames);
		same_variables(a->variables, b->variables);
		same_notes(a->notes, b->notes);
		same_kframes(a->kframes, b->kframes);
	}
}

static void same_texts(const char *const *a, const char *const *b)
{
	cr_assert_eq(!a, !b);
	for (size_t i = 0; a && (a[i] || b[i]); i++)
		cr_assert(a[i] && b[i] && !strcmp(a[i], b[i]), "text %zu", i);
}

#define ARRAY(T, m, n)                                                                                                           \
	cr_assert_eq(x->n, y->n, #n);                                                                                            \
	for (size_t i = 0; i < x->n; i++)                                                                                        \
		for (const struct T *a = &x->m[i], *b = &y->m[i]; a; a = NULL)

static void same_process(const struct dp_snapshot *x, const struct dp_snapshot *y)
{
	ARRAY(dp_snap_map, maps, nmaps)
	{
		SAME(start), SAME(end), SAME(offset), SAME(inode), SAME(read), SAME(write), SAME(exec), SAME(shared),
		        SAME(is_guard);
		TEXT(path);
	}
	ARRAY(dp_snap_object, objects, nobjects)
	{
		TEXT(path), TEXT(build_id), SAME(start), SAME(end), SAME(bias), SAME(has_debug), TEXT(name);
	}
	ARRAY(dp_snap_file, files, nfiles) SAME(fd), TEXT(target);
	ARRAY(dp_snap_limit, limits, nlimits) TEXT(name), TEXT(soft), TEXT(hard), TEXT(unit);
	ARRAY(dp_snap_source, sources, nsources) TEXT(path), SAME(first), TEXT(lines), SAME(n);
	ARRAY(dp_snap_memory, memory, nmemory)
	{
		SAME(address), SAME(size);
		cr_assert(!memcmp(a->bytes, b->bytes, a->size), "memory");
	}
}

void helper_same(const struct dp_snapshot *a, const struct dp_snapshot *b)
{
	TEXT(id), TEXT(dynprobe), TEXT(mode), TEXT(comm), TEXT(application), TEXT(exe), TEXT(hostname), TEXT(kernel), TEXT(probe),
	        TEXT(condition);
	SAME(time_ns), SAME(pid), SAME(inner_pid), SAME(process_state), SAME(pause_ns), SAME(stop_ns), SAME(read_ns),
	        SAME(total_ns), SAME(rehearsal_ns);
	SAME(hit), SAME(nthreads);
	same_texts(a->argv, b->argv);
	same_texts(a->environ, b->environ);
	same_words(a->classifiers, b->classifiers);
	same_words(a->tags, b->tags);
	same_words(a->truncations, b->truncations);
	same_notes(a->notes, b->notes);
	same_threads(a->threads, b->threads);
	same_variables(a->globals, b->globals);
	same_process(a, b);
	same_pairs(a->attributes, b->attributes);
	same_pairs(a->made_by, b->made_by);
}
