/* SPDX-License-Identifier: MIT */
/* What show folds, and what it puts first. */
#include "output/snapshot/show.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

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

static struct dp_snap_frame *library_frame(struct dp_snapshot *s, struct dp_snap_thread *t, const char *symbol)
{
	struct dp_snap_frame *f = frame(s, t, symbol, 1);
	f->object = "/lib/x86_64-linux-gnu/libc.so.6";
	f->path = NULL;
	number(s, &f->variables, NULL, "inner", 3);
	return f;
}

/* strcmp of libc, called by own code, called by three frames of libc. */
static struct dp_snapshot *deep(void)
{
	struct dp_snapshot *s = dp_snapshot_create();
	s->application = s->comm = "prog", s->pid = 100, s->mode = "core";
	for (int i = 0; i < 2; i++) {
		struct dp_snap_thread *idle = dp_snapshot_thread(s, 101 + i);
		idle->name = "prog";
		library_frame(s, idle, "nanosleep");
		frame(s, idle, "idle", 4);
	}
	struct dp_snap_thread *named = dp_snapshot_thread(s, 103), *noted = dp_snapshot_thread(s, 104);
	named->name = "log", noted->name = "prog";
	frame(s, named, "drain", 5);
	frame(s, noted, "lock", 6);
	dp_snapshot_note(s, &noted->notes, DP_NOTE_WARNING, "waits for ever");
	struct dp_snap_thread *t = dp_snapshot_thread(s, 100);
	t->is_fault = true, t->fault_reason = "a null pointer";
	DL_DELETE(s->threads, t);
	DL_PREPEND(s->threads, t);
	library_frame(s, t, "strcmp");
	struct dp_snap_frame *own = frame(s, t, "by_id", 9);
	struct dp_snap_variable *owner = NULL;
	for (int i = 0; i < 6; i++) {
		owner = variable(s, owner ? &owner->children : &own->variables, owner, i ? i % 2 ? "*" : "next" : "p");
		owner->kind = i % 2 ? DP_VAR_TUPLE : DP_VAR_REFERENCE;
		owner->number = 0x1000 + (unsigned)i;
	}
	library_frame(s, t, "sort_rest");
	library_frame(s, t, "sort_part");
	library_frame(s, t, "qsort");
	frame(s, t, "main", 20);
	return s;
}

Test(show, frames_of_libraries_and_deep_values_are_folded)
{
	static const struct dp_show_options plain = {.frame = -1}, loud = {.frame = -1, .verbose = 1};
	struct dp_snapshot *s = deep();
	char *text = shown(s, &plain);
	cr_expect_not_null(strstr(text, "  where        strcmp, called by by_id at dir/file.c:9, frame #1 of thread 100\n"), "%s",
	                   text);
	cr_expect_not_null(strstr(text, "#2-#4  sort_rest ... qsort, 3 frames [libc.so.6]\n#5  "), "%s", text);
	cr_expect_not_null(strstr(text, "        p = 0x1000 ->\n          next = 0x1002 -> {...}\n"), "%s", text);
	cr_expect_null(strstr(text, "inner"), "variables of libraries: %s", text);
	cr_expect_not_null(strstr(text, "(folded: -v"), "%s", text);
	free(text);
	text = shown(s, &loud);
	cr_expect(strstr(text, "in sort_part") && strstr(text, "inner") && strstr(text, "0x1004") && !strstr(text, "folded"),
	          "%s", text);
	free(text);
	dp_snapshot_destroy(s);
}

Test(show, what_matters_comes_first)
{
	static const struct dp_show_options brief = {.frame = -1, .brief = true};
	struct dp_snapshot *s = deep();
	char *text = shown(s, &brief);
	const char *wanted = "#5  0x000000401014 in main () at dir/file.c:20 [libfoo.so]\n"
	                     "Thread 104 \"prog\": lock\n"
	                     "    ! warning: waits for ever\n"
	                     "Thread 103 \"log\": drain\n"
	                     "2 threads \"prog\": nanosleep < idle\n";
	cr_expect_not_null(strstr(text, wanted), "%s", text);
	cr_expect_not_null(strstr(text, "  ! warning: thread 104: waits for ever\n"), "%s", text);
	free(text);
	dp_snapshot_destroy(s);
}

Test(show, a_struct_that_is_a_string)
{
	static const struct dp_show_options plain = {.frame = -1}, loud = {.frame = -1, .verbose = 1};
	struct dp_snapshot *s = dp_snapshot_create();
	struct dp_snap_thread *t = dp_snapshot_thread(s, 100);
	struct dp_snap_frame *f = frame(s, t, "serve", 3);
	struct dp_snap_variable *uri = variable(s, &f->variables, NULL, "uri");
	uri->kind = DP_VAR_TUPLE, uri->is_string = true, uri->text = "/index\n", uri->text_size = 7, uri->is_cut = true;
	number(s, &uri->children, uri, "len", 7);
	char *text = shown(s, &plain);
	cr_expect_not_null(strstr(text, "        uri = \"/index\\n\"...\n"), "%s", text);
	cr_expect_null(strstr(text, "len"), "%s", text);
	free(text);
	text = shown(s, &loud);
	cr_expect_not_null(strstr(text, "len = 7"), "%s", text);
	free(text);
	dp_snapshot_destroy(s);
}

Test(show, arguments_wrap_at_the_width)
{
	static const struct dp_show_options narrow = {.frame = -1, .width = 60};
	struct dp_snapshot *s = dp_snapshot_create();
	struct dp_snap_thread *t = dp_snapshot_thread(s, 100);
	struct dp_snap_frame *f = frame(s, t, "serve", 3);
	for (int i = 0; i < 8; i++)
		number(s, &f->variables, NULL, "argument", i)->place = DP_VAR_PARAMETER;
	char *text = shown(s, &narrow);
	for (const char *line = strstr(text, "#0"); line && *line; line += strcspn(line, "\n") + 1)
		cr_expect(strcspn(line, "\n") <= 60, "%s", text);
	cr_expect_not_null(strstr(text, ",\n    argument="), "%s", text);
	free(text);
	dp_snapshot_destroy(s);
}
