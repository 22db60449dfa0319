/* SPDX-License-Identifier: MIT */
/* The text of show, compared literally, for a hand-made snapshot. */
#include "output/snapshot/show.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *shown(const struct dp_snapshot *s, const struct dp_show_options *o)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	struct dp_error *err = dp_show_snapshot(s, o, to);
	fclose(to);
	cr_assert(!err, "%s", err ? err->message : "");
	return text;
}

static void expect(const struct dp_snapshot *s, const struct dp_show_options *o, const char *wanted)
{
	char *text = shown(s, o);
	cr_assert_str_eq(text, wanted);
	free(text);
}

static struct dp_snap_variable *variable(struct dp_snapshot *s, struct dp_snap_variable **list, struct dp_snap_variable *owner,
                                         const char *name)
{
	struct dp_snap_variable *v = dp_snapshot_variable(s, list, owner);
	v->name = name;
	return v;
}

static struct dp_snap_variable *number(struct dp_snapshot *s, struct dp_snap_variable **list, struct dp_snap_variable *owner,
                                       const char *name, int64_t value)
{
	struct dp_snap_variable *v = variable(s, list, owner, name);
	v->kind = DP_VAR_LL;
	v->type = "int";
	v->size = 4;
	v->number = (uint64_t)value;
	return v;
}

static struct dp_snap_variable *string(struct dp_snapshot *s, struct dp_snap_variable **list, struct dp_snap_variable *owner,
                                       const char *name, const char *text)
{
	struct dp_snap_variable *v = variable(s, list, owner, name);
	v->kind = DP_VAR_REFERENCE;
	v->type = "char *";
	v->number = 0x5000;
	v->is_string = true;
	v->text = text;
	v->text_size = strlen(text);
	return v;
}

static struct dp_snap_frame *frame(struct dp_snapshot *s, struct dp_snap_thread *t, const char *symbol, int line)
{
	struct dp_snap_frame *f = dp_snapshot_frame(s, t);
	f->pc = 0x401000 + (unsigned)line;
	f->symbol = symbol;
	f->object = "/usr/lib/libfoo.so";
	f->path = "dir/file.c";
	f->line = line;
	return f;
}

static void pool(struct dp_snapshot *s)
{
	for (int i = 0; i < 12; i++) {
		struct dp_snap_thread *t = dp_snapshot_thread(s, 200 + i);
		t->name = "worker";
		t->state = 'S';
		frame(s, t, "wait", 7);
		struct dp_snap_frame *f = frame(s, t, "work", 8);
		number(s, &f->variables, NULL, "same", 5)->place = DP_VAR_PARAMETER;
		number(s, &f->variables, NULL, "other", i)->place = DP_VAR_PARAMETER;
	}
	dp_snapshot_thread(s, 300)->state = 'R';
}

static void faulting_frame(struct dp_snapshot *s, struct dp_snap_thread *t)
{
	static const struct dp_snap_siginfo info = {
	        .number = 11, .code = 1, .has_address = true, .name = "SIGSEGV", .reason = "address not mapped to object"};
	struct dp_snap_frame *f = frame(s, t, "crash(struct item*, char const*)", 12);
	f->is_fault = true;
	f->siginfo = &info;
	f->instruction = "mov (%rdi),%rax";
	struct dp_snap_variable *p = variable(s, &f->variables, NULL, "item");
	p->kind = DP_VAR_REFERENCE, p->number = 0x6000, p->place = DP_VAR_PARAMETER, p->type = "struct item *";
	struct dp_snap_variable *to = variable(s, &p->children, p, "*");
	to->kind = DP_VAR_TUPLE, to->type = "struct item";
	number(s, &to->children, to, "id", -1);
	string(s, &to->children, to, "name", "a\nb");
	struct dp_snap_variable *next = variable(s, &to->children, to, "next");
	next->kind = DP_VAR_REFERENCE;
	dp_snapshot_note(s, &next->notes, DP_NOTE_CRITICAL, "freed")->module = "heap";
	string(s, &f->variables, NULL, "text", "\033[31mred")->place = DP_VAR_PARAMETER;
	struct dp_snap_variable *gone = number(s, &f->variables, NULL, "gone", 0);
	gone->state = DP_VAR_ABSENT, gone->why = "optimized out";
	struct dp_snap_variable *list = variable(s, &f->variables, NULL, "list");
	list->kind = DP_VAR_ARRAY, list->more = 97;
	for (int i = 0; i < 3; i++)
		number(s, &list->children, list, "", i * i)->index = i;
	dp_snapshot_note(s, &f->notes, DP_NOTE_WARNING, "look here");
}

static struct dp_snapshot *crash(void)
{
	struct dp_snapshot *s = dp_snapshot_create();
	static const char *const argv[] = {"/bin/prog", "a b", NULL};
	s->application = "prog", s->pid = 100, s->mode = "stop", s->pause_ns = 3210000, s->argv = argv;
	dp_snapshot_classify(s, "segv");
	dp_snapshot_classify(s, "null");
	dp_snapshot_set_int(s, "uptime", 17);
	struct dp_snap_thread *t = dp_snapshot_thread(s, 100);
	t->name = "main", t->state = 'R', t->is_fault = true, t->fault_reason = "read of 8 bytes at 0x0: a null pointer";
	faulting_frame(s, t);
	frame(s, t, "outer", 20)->is_inline = true;
	dp_snapshot_frame(s, t)->pc = 0x1234;
	t->more_frames = 9;
	pool(s);
	number(s, &s->globals, NULL, "counter", 42)->unit = "dir/file.c";
	return s;
}

Test(show, the_whole)
{
	struct dp_snapshot *s = crash();
	expect(s, &(struct dp_show_options){.frame = -1},
	       "prog (pid 100), 14 threads\n"
	       "  why          read of 8 bytes at 0x0: a null pointer\n"
	       "  where        crash(struct item*, char const*) at dir/file.c:12, frame #0 of thread 100\n"
	       "  ! warning: thread 100, frame #0: look here\n"
	       "  taken        mode stop, paused for 3.210 ms\n"
	       "  classifiers  segv, null\n"
	       "  command      /bin/prog \"a b\"\n"
	       "\n"
	       "Thread 100 \"main\", running: read of 8 bytes at 0x0: a null pointer\n"
	       "#0  0x00000040100c in crash (item=0x6000, text=0x5000 \"\\x1b[31mred\") at dir/file.c:12 [libfoo.so]\n"
	       "    => mov (%rdi),%rax\n"
	       "    SIGSEGV: address not mapped to object, at 0x0\n"
	       "    ! warning: look here\n"
	       "        item = 0x6000 ->\n"
	       "          id = -1\n"
	       "          name = 0x5000 \"a\\nb\"\n"
	       "          next = 0x0\n"
	       "            ! critical: freed (heap)\n"
	       "        gone = <optimized out>\n"
	       "        list = {0, 1, 4, ...}\n"
	       "#1  0x000000401014 in outer () at dir/file.c:20 [libfoo.so] (inlined)\n"
	       "#2  0x000000001234 in ??\n"
	       "... 9 more frames\n"
	       "\n"
	       "12 threads \"worker\" with this stack: 200 201 202 203 204 205 206 207 208 209 210 211\n"
	       "#0  0x000000401007 in wait () at dir/file.c:7 [libfoo.so]\n"
	       "#1  0x000000401008 in work (same=5, other=...) at dir/file.c:8 [libfoo.so]\n"
	       "    variables of one of them: --thread 200\n"
	       "\n"
	       "Thread 300, running\n"
	       "\n"
	       "Globals of dir/file.c:\n"
	       "    counter = 42\n");
	dp_snapshot_destroy(s);
}

Test(show, a_function_that_left_no_frame_is_said_to_be_a_tail_call)
{
	struct dp_snapshot *s = dp_snapshot_create();
	struct dp_snap_thread *t = dp_snapshot_thread(s, 100);
	frame(s, t, "left", 20)->is_tail = true;
	struct dp_snap_variable *wide = number(s, &t->frames->variables, NULL, "wide", -1);
	wide->type = "__int128", wide->size = 16, wide->text = "-170141183460469231731687303715884105728";
	expect(s, &(struct dp_show_options){.frame = 0, .thread = 100},
	       "#0  0x000000401014 in left () at dir/file.c:20 [libfoo.so] (tail call)\n"
	       "        wide = -170141183460469231731687303715884105728\n");
	dp_snapshot_destroy(s);
}

Test(show, threads_of_which_one_was_called_and_one_was_jumped_from_are_not_grouped)
{
	struct dp_snapshot *s = dp_snapshot_create();
	frame(s, dp_snapshot_thread(s, 100), "left", 20)->is_tail = true;
	frame(s, dp_snapshot_thread(s, 101), "left", 20);
	char *text = shown(s, &(struct dp_show_options){.frame = -1});
	cr_assert(strstr(text, "Thread 100") && strstr(text, "Thread 101"), "%s", text);
	free(text);
	dp_snapshot_destroy(s);
}

Test(show, one_thread_one_frame_and_how_much)
{
	struct dp_snapshot *s = crash();
	expect(s, &(struct dp_show_options){.frame = 1, .thread = 205},
	       "#1  0x000000401008 in work (same=5, other=5) at dir/file.c:8 [libfoo.so]\n");
	expect(s, &(struct dp_show_options){.frame = 1},
	       "#1  0x000000401014 in outer () at dir/file.c:20 [libfoo.so] (inlined)\n");
	expect(s, &(struct dp_show_options){.frame = -1, .thread = 205, .quiet = true},
	       "Thread 205 \"worker\", sleeping\n"
	       "#0  0x000000401007 in wait at dir/file.c:7 [libfoo.so]\n"
	       "#1  0x000000401008 in work at dir/file.c:8 [libfoo.so]\n");
	expect(s, &(struct dp_show_options){.frame = 1, .thread = 205, .verbose = 1},
	       "#1  0x000000401008 in work (same=5, other=5) at dir/file.c:8 [/usr/lib/libfoo.so]\n"
	       "        int same = 5\n"
	       "        int other = 5\n");
	expect(s, &(struct dp_show_options){.frame = 1, .thread = 205, .width = 60},
	       "#1  0x000000401008 in work (same=5, other=5)\n"
	       "    at dir/file.c:8 [libfoo.so]\n");
	expect(s, &(struct dp_show_options){.frame = 1, .thread = 205, .color = true},
	       "#1  0x000000401008 in \033[1;36mwork\033[0m (same=5, other=5) at dir/file.c:8 [libfoo.so]\n");
	char *text = shown(s, &(struct dp_show_options){.frame = -1, .ungrouped = true});
	cr_assert(strstr(text, "\nThread 205 \"worker\", sleeping\n"));
	free(text);
	dp_snapshot_destroy(s);
}

static void expect_var(const struct dp_snapshot *s, const char *path, const char *wanted)
{
	expect(s, &(struct dp_show_options){.frame = -1, .var = {path}, .nvars = 1}, wanted);
}

static void refused(const struct dp_snapshot *s, struct dp_show_options o, const char *words)
{
	struct dp_error *err = dp_show_snapshot(s, &o, stderr);
	cr_assert(err && err->tag == DP_TAG_NO_VARIABLE, "'%s' was shown", o.var[0]);
	cr_assert(strstr(err->message, words), "'%s': %s", o.var[0], err->message);
	dp_error_destroy(err);
}

/* struct derived : base { int own; int both; }, where base has `inherited` and another `both`. */
Test(show, members_of_base_classes_are_members_but_nearer_ones_win)
{
	struct dp_snapshot *s = dp_snapshot_create();
	struct dp_snap_variable *whole = number(s, &s->globals, NULL, "whole", 0);
	struct dp_snap_variable *base = number(s, &whole->children, whole, "ns::base", 0);
	whole->kind = base->kind = DP_VAR_TUPLE;
	whole->type = "derived", base->type = "ns::base";
	number(s, &base->children, base, "inherited", 7);
	number(s, &base->children, base, "both", 1);
	number(s, &whole->children, whole, "both", 2);
	expect_var(s, "whole.inherited", "whole.inherited = 7\n");
	expect_var(s, "whole.both", "whole.both = 2\n");
	refused(s, (struct dp_show_options){.frame = -1, .var = {"whole.other"}, .nvars = 1}, "no member");
	dp_snapshot_destroy(s);
}

Test(show, paths_lead_through_the_tree)
{
	struct dp_snapshot *s = crash();
	expect_var(s, "item->id", "item->id = -1\n");
	expect_var(s, "item.id", "item.id = -1\n");
	expect_var(s, "(*item).id", "(*item).id = -1\n");
	expect_var(s, "item[0].id", "item[0].id = -1\n");
	expect_var(s, " list [ 2]", " list [ 2] = 4\n");
	expect_var(s, "counter", "counter = 42\n");
	expect(s, &(struct dp_show_options){.frame = -1, .var = {"item.id", "counter"}, .nvars = 2},
	       "item.id = -1\ncounter = 42\n");
	expect_var(s, "file.c::counter", "file.c::counter = 42\n");
	refused(s, (struct dp_show_options){.frame = -1, .var = {"item->idd"}, .nvars = 1}, "did you mean id?");
	refused(s, (struct dp_show_options){.frame = -1, .var = {"itm"}, .nvars = 1}, "did you mean item?");
	refused(s, (struct dp_show_options){.frame = -1, .var = {"item->next->id"}, .nvars = 1}, "a null pointer");
	refused(s, (struct dp_show_options){.frame = -1, .var = {"list[3]"}, .nvars = 1}, "no such element");
	refused(s, (struct dp_show_options){.frame = -1, .var = {"list[99999999999999999999]"}, .nvars = 1}, "no such element");
	refused(s, (struct dp_show_options){.frame = -1, .var = {"*list"}, .nvars = 1}, "not a pointer");
	refused(s, (struct dp_show_options){.frame = -1, .var = {"list]"}, .nvars = 1}, "expected the end");
	refused(s, (struct dp_show_options){.frame = -1, .var = {"(list"}, .nvars = 1}, "missing )");
	refused(s, (struct dp_show_options){.frame = -1, .var = {"item->"}, .nvars = 1}, "member name is missing");
	refused(s, (struct dp_show_options){.frame = -1, .var = {""}, .nvars = 1}, "a variable name");
	refused(s, (struct dp_show_options){.frame = 2, .var = {"item"}, .nvars = 1}, "no variable 'item'");
	refused(s, (struct dp_show_options){.frame = 3}, "no frame #3");
	refused(s, (struct dp_show_options){.frame = -1, .thread = 7}, "no thread 7");
	char deep[4096];
	memset(deep, '(', sizeof(deep));
	deep[sizeof(deep) - 1] = '\0';
	refused(s, (struct dp_show_options){.frame = -1, .var = {deep}, .nvars = 1}, "too deeply nested");
	dp_snapshot_destroy(s);
}

Test(show, a_parameter_without_a_name_is_its_value)
{
	struct dp_snapshot *s = dp_snapshot_create();
	struct dp_snap_frame *f = frame(s, dp_snapshot_thread(s, 7), "pay", 8);
	number(s, &f->variables, NULL, "", 5)->place = DP_VAR_PARAMETER;
	number(s, &f->variables, NULL, "tip", 1)->place = DP_VAR_PARAMETER;
	char *text = shown(s, &(struct dp_show_options){.frame = -1});
	cr_assert(strstr(text, " pay (5, tip=1)"), "%s", text);
	free(text);
	dp_snapshot_destroy(s);
}

static void is_value(struct dp_snap_variable v, const char *wanted)
{
	struct dp_buf b = {0};
	dp_show_value(&b, &v);
	cr_assert_str_eq(dp_buf_str(&b), wanted);
	dp_buf_fini(&b);
}

Test(show, values)
{
	is_value((struct dp_snap_variable){.kind = DP_VAR_ULL, .number = UINT64_MAX}, "18446744073709551615");
	is_value((struct dp_snap_variable){.kind = DP_VAR_LL, .number = UINT64_MAX}, "-1");
	is_value((struct dp_snap_variable){.kind = DP_VAR_ULL, .is_bool = true, .number = 1}, "true");
	is_value((struct dp_snap_variable){.kind = DP_VAR_ULL, .is_bool = true, .number = 7}, "7");
	is_value((struct dp_snap_variable){.kind = DP_VAR_LL, .is_char = true, .size = 1, .number = 'a'}, "97 'a'");
	is_value((struct dp_snap_variable){.kind = DP_VAR_LL, .is_char = true, .size = 1, .number = 10}, "10 '\\n'");
	is_value((struct dp_snap_variable){.kind = DP_VAR_FLT, .real = 0.1f}, "0.1");
	is_value((struct dp_snap_variable){.kind = DP_VAR_DBL, .real = NAN}, "nan");
	is_value((struct dp_snap_variable){.kind = DP_VAR_CDBL, .real = 1, .imaginary = -2}, "1 - 2i");
	is_value((struct dp_snap_variable){.kind = DP_VAR_LDBL, .text = "0.1000000000000000000013"}, "0.1000000000000000000013");
	is_value((struct dp_snap_variable){.kind = DP_VAR_ENUM, .text = "RED | BLUE", .number = 5}, "RED | BLUE");
	is_value((struct dp_snap_variable){.kind = DP_VAR_ENUM, .number = 5}, "5");
	is_value((struct dp_snap_variable){.kind = DP_VAR_STRING, .is_string = true, .text = "a\0b\0\0", .text_size = 5},
	         "\"a\\x00b\"");
	is_value(
	        (struct dp_snap_variable){
	                .kind = DP_VAR_REFERENCE, .number = 16, .is_string = true, .is_cut = true, .text = "ab", .text_size = 2},
	        "0x10 \"ab\"...");
	is_value((struct dp_snap_variable){.kind = DP_VAR_REFERENCE, .number = 16, .text = "main"}, "0x10 <main>");
	is_value((struct dp_snap_variable){.kind = DP_VAR_LL, .state = DP_VAR_UNREADABLE, .why = "no such page"},
	         "<unreadable: no such page>");
	is_value((struct dp_snap_variable){.kind = DP_VAR_LL, .state = DP_VAR_ABSENT}, "<no value>");
	is_value((struct dp_snap_variable){.kind = DP_VAR_TUPLE, .summary = "{size 3}"}, "{size 3}");
}

/* Names come from the target: none of their bytes reaches the terminal unescaped. */
Test(show, no_byte_of_the_target_commands_the_terminal)
{
	static const char evil[] = "\033]0;evil\a\r\n\xe2\x80\xae";
	static const char *const argv[] = {evil, NULL};
	struct dp_snapshot *s = dp_snapshot_create();
	s->application = s->mode = s->exe = s->hostname = s->kernel = s->probe = s->condition = s->dynprobe = evil;
	s->argv = s->environ = argv;
	dp_snapshot_set_text(s, evil, evil);
	dp_snapshot_classify(s, evil);
	dp_snapshot_tag(s, evil);
	dp_snapshot_truncated(s, "%s", evil);
	dp_snapshot_note(s, &s->notes, DP_NOTE_WARNING, evil)->module = evil;
	struct dp_snap_thread *t = dp_snapshot_thread(s, 1);
	struct dp_snap_frame *f = frame(s, t, evil, 1);
	struct dp_snap_siginfo info = {.name = evil, .reason = evil};
	struct dp_snap_map map = {.path = evil};
	struct dp_snap_object object = {.path = evil, .build_id = evil, .name = evil};
	struct dp_snap_file file = {.target = evil};
	struct dp_snap_limit limit = {evil, evil, evil, evil};
	t->name = t->fault_reason = t->unwind_end = t->syscall_text = evil;
	f->object = f->path = f->instruction = f->original_symbol = evil;
	f->siginfo = &info;
	s->maps = &map, s->objects = &object, s->files = &file, s->limits = &limit;
	s->nmaps = s->nobjects = s->nfiles = s->nlimits = 1;
	for (int kind = DP_VAR_BOTTOM; kind <= DP_VAR_REFERENCE; kind++)
		for (int state = DP_VAR_OK; state <= DP_VAR_UNREADABLE; state++) {
			struct dp_snap_variable *v = string(s, &f->variables, NULL, evil, evil);
			v->kind = (enum dp_var_kind)kind, v->state = (enum dp_var_state)state;
			v->type = v->base_type = v->why = evil;
			v = string(s, &s->globals, NULL, evil, evil);
			v->kind = (enum dp_var_kind)kind, v->is_string = false, v->object = v->unit = v->summary = evil;
		}
	char *text = shown(s, &(struct dp_show_options){
	                              .frame = -1, .verbose = 2, .registers = true, .maps = true, .files = true, .limits = true});
	for (const char *c = text; *c; c++)
		cr_assert((unsigned char)*c >= ' ' || *c == '\n', "byte %02x behind: %.*s", *c, 40,
		          c - (c - text > 40 ? 40 : c - text));
	cr_assert(!strstr(text, "\xe2\x80\xae"));
	free(text);
	dp_snapshot_destroy(s);
}

/* A hundred lines of zeroes would hide the interesting values. Each line says at which element it begins. */
Test(show, long_arrays_do_not_fill_the_screen)
{
	const struct dp_show_options o = {.frame = -1, .width = 40, .var = {"a"}, .nvars = 1};
	struct dp_snapshot *s = dp_snapshot_create();
	struct dp_snap_variable *a = variable(s, &s->globals, NULL, "a");
	a->kind = DP_VAR_ARRAY;
	a->place = DP_VAR_GLOBAL;
	a->more = 900;
	for (int i = 0; i < 100; i++)
		number(s, &a->children, a, "", i < 60 || i == 99 ? 0 : 1000 + i)->index = i;
	char *text = shown(s, &o);
	cr_expect(!strncmp(text, "a =\n  [0] = 0 <repeats 60 times>, 1060,\n  [61] = 1061, 1062, ", 60), "%s", text);
	cr_expect(strstr(text, "1098, 0\n  ... 900 more\n"), "%s", text);
	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		cr_expect_leq(strcspn(line, "\n"), 40);
	free(text);
	/* An element with a note has its own line. */
	dp_snapshot_note(s, &a->children->notes, DP_NOTE_WARNING, "odd");
	text = shown(s, &o);
	cr_expect(strstr(text, "  [0] = 0\n    ! warning: odd\n  [1] = 0\n"), "%s", text);
	free(text);
	dp_snapshot_destroy(s);
}
