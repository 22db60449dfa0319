/* SPDX-License-Identifier: MIT */
/* A snapshot written to a file and read back is the same. */
#include "helper_snapshot.h"
#include "pmodules/file/file_internal.h"

#include <criterion/criterion.h>
#include <sys/stat.h>
#include <unistd.h>

static struct dp_snapshot *there_and_back(struct dp_snapshot *s)
{
	struct dp_buf b = {0};
	struct dp_snapshot *back = NULL;
	struct dp_error *err = dp_snapshot_write_bytes(s, &b);
	cr_assert(!err, "%s", err ? err->message : "");
	err = dp_snapshot_read_bytes(b.data, b.len, &back);
	cr_assert(!err, "%s", err ? err->message : "");
	dp_buf_fini(&b);
	return back;
}

Test(file, every_member_of_the_model_comes_back)
{
	struct dp_snapshot *s = helper_full(), *back = there_and_back(s);
	helper_same(s, back);
	dp_snapshot_destroy(s);
	dp_snapshot_destroy(back);
}

Test(file, a_snapshot_of_nothing_comes_back)
{
	struct dp_snapshot *s = dp_snapshot_create(), *back = there_and_back(s);
	helper_same(s, back);
	dp_snapshot_destroy(s);
	dp_snapshot_destroy(back);
}

Test(file, an_executable_keeps_the_name_by_which_it_was_started)
{
	struct dp_snap_object object[] = {{.path = "/bin/check", .build_id = "", .name = "server"},
	                                  {.path = "/bin/other", .build_id = "", .name = ""}};
	struct dp_snapshot *s = dp_snapshot_create(), *back;
	s->objects = object, s->nobjects = 2;
	back = there_and_back(s);
	cr_expect_str_eq(dp_snapshot_object_name(back, "/bin/check"), "server");
	cr_expect_str_eq(dp_snapshot_object_name(back, "/bin/other"), "other");
	cr_expect_str_eq(dp_snapshot_object_name(back, "[vdso]"), "[vdso]");
	dp_snapshot_destroy(s);
	dp_snapshot_destroy(back);
}

Test(file, no_texts_and_empty_texts_are_not_the_same)
{
	static const char *const none[] = {NULL};
	struct dp_snapshot *s = dp_snapshot_create(), *back;
	s->environ = none;
	s->probe = "";
	dp_snapshot_frame(s, dp_snapshot_thread(s, 1))->symbol = "";
	back = there_and_back(s);
	cr_assert(back->environ && !back->environ[0]);
	cr_assert(back->probe && !back->condition);
	cr_assert(back->threads->frames->symbol && !back->threads->frames->linkage);
	helper_same(s, back);
	dp_snapshot_destroy(s);
	dp_snapshot_destroy(back);
}

Test(file, makers_know_what_came_from_the_file)
{
	struct dp_snapshot *s = helper_full(), *back = there_and_back(s);
	dp_snapshot_classify(back, "segv");
	dp_snapshot_tag(back, "a tag");
	dp_snapshot_set_int(back, "answer", -42);
	helper_same(s, back);
	dp_snapshot_destroy(s);
	dp_snapshot_destroy(back);
}

static struct dp_snap_variable *nest(struct dp_snapshot *s, unsigned depth)
{
	struct dp_snap_variable *v = NULL, **list = &s->globals;
	for (unsigned i = 0; i < depth; i++) {
		v = dp_snapshot_variable(s, list, v);
		v->name = "*";
		list = &v->children;
	}
	return s->globals;
}

Test(file, trees_without_end_are_cut_and_counted)
{
	struct dp_snapshot *s = dp_snapshot_create(), *back;
	nest(s, DP_STORE_DEPTH + 50)->name = "first";
	back = there_and_back(s);
	unsigned depth = 0;
	const struct dp_snap_variable *v = back->globals, *last = NULL;
	for (; v; v = v->children, depth++)
		last = v;
	cr_assert_eq(depth, DP_STORE_DEPTH);
	cr_assert_eq(last->more, 1);
	dp_snapshot_destroy(s);
	dp_snapshot_destroy(back);
}

Test(file, a_file_is_whole_or_not_there_and_nobody_elses)
{
	char dir[] = "/tmp/dp-file-XXXXXX", path[64], wrong[64];
	struct stat st;
	struct dp_snapshot *s = helper_full(), *back = NULL;
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a.dps", dir);
	snprintf(wrong, sizeof(wrong), "%s/none/a.dps", dir);
	umask(0);
	cr_assert(!dp_snapshot_write(s, path));
	cr_assert(!dp_snapshot_write(s, path), "a second time, in place");
	cr_assert(!stat(path, &st) && (st.st_mode & 0777) == 0600);
	cr_assert(!dp_snapshot_read_file(path, &back));
	helper_same(s, back);
	struct dp_error *err = dp_snapshot_write(s, wrong);
	cr_assert(err && err->tag == DP_TAG_OUTPUT);
	dp_error_destroy(err);
	unlink(path);
	cr_assert(!rmdir(dir), "no temporary file is left");
	dp_snapshot_destroy(s);
	dp_snapshot_destroy(back);
}

Test(file, a_device_is_written_to_and_not_replaced)
{
	struct stat st;
	struct dp_snapshot *s = dp_snapshot_create();
	cr_assert(!dp_snapshot_write(s, "/dev/null"));
	cr_assert(!stat("/dev/null", &st) && S_ISCHR(st.st_mode));
	dp_snapshot_destroy(s);
}

/* ---- the documentation lists what is kept */

static char *read_document(void)
{
	static char text[1 << 16];
	char path[512];
	snprintf(path, sizeof(path), "%.*s/../../../../docs/snapshot-format.md", (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__);
	FILE *f = fopen(path, "r");
	cr_assert(f && fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	return text;
}

static void is_documented(const char *document, const struct dp_store_record *r)
{
	char line[128];
	snprintf(line, sizeof(line), "message %s {", r->name);
	const char *begin = strstr(document, line), *end = begin ? strstr(begin, "\n}") : NULL;
	cr_assert(end, "there is no %s", line);
	for (size_t i = 0; i < r->n; i++) {
		snprintf(line, sizeof(line), " %s = %u;", r->row[i].name, r->row[i].number);
		const char *found = strstr(begin, line);
		cr_assert(found && found < end, "%s has no%s", r->name, line);
		cr_assert(!i || r->row[i].number > r->row[i - 1].number, "numbers ascend, and none is repeated");
	}
}

Test(file, every_field_is_documented)
{
	static const struct dp_store_record *const records[] = {
	        &dp_store_snapshot, &dp_store_thread, &dp_store_frame,   &dp_store_variable, &dp_store_note,
	        &dp_store_pair,     &dp_store_kframe, &dp_store_siginfo, &dp_store_map,      &dp_store_object,
	        &dp_store_file,     &dp_store_limit,  &dp_store_memory,  &dp_store_source};
	for (size_t i = 0; i < sizeof(records) / sizeof(*records); i++)
		is_documented(read_document(), records[i]);
}

/* In a directory where others may write, under a predictable name. Opening a fifo for writing would also block dynprobe. */
Test(file, a_pipe_in_the_place_of_a_chosen_name_gets_nothing, .timeout = 20)
{
	char dir[] = "/tmp/dynprobe-file-XXXXXX", path[64];
	struct stat st;
	struct dp_snapshot *s = dp_snapshot_create();
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a.dps", dir);
	cr_assert(!mkfifo(path, 0666));
	cr_assert(!dp_snapshot_write_beside(s, path));
	cr_expect(!stat(path, &st) && S_ISREG(st.st_mode) && st.st_size > 0);
	unlink(path);
	rmdir(dir);
	dp_snapshot_destroy(s);
}

/* ---- the hand-written code for variables must agree with their table */

static void encode(const struct dp_snapshot *s, bool by_table, struct dp_buf *to)
{
	struct dp_file_encoder e = {.to = to, .strings = dp_file_strings_create(), .by_table = by_table};
	dp_file_encode(&e, s, 1, UINT8_MAX);
	dp_file_strings_destroy(e.strings);
	cr_assert(!to->failed);
}

/* Sets one member at a time, so that none hides another; helper_full() sets all. */
static void set_member(struct dp_snap_variable *v, const struct dp_store_row *row)
{
	static const uint64_t large = 0x0102030405060708;
	void *at = (char *)v + row->offset;
	switch ((enum dp_store_kind)row->keep) {
	case DP_STORE_LIST:
		break;
	case DP_STORE_TEXT:
	case DP_STORE_TEXT_OR_NULL:
	case DP_STORE_STRING:
		memcpy(at, &(const char *){"a text"}, sizeof(char *));
		break;
	case DP_STORE_BOOL:
		*(bool *)at = true;
		break;
	case DP_STORE_ENUM:
		*(uint32_t *)at = 1;
		break;
	default:
		memcpy(at, &large, row->size);
	}
}

Test(file, variables_are_written_as_their_table_says)
{
	struct dp_snapshot *s = helper_full();
	struct dp_buf straight = {0}, table = {0};
	for (size_t i = 0; i < dp_store_variable.n; i++)
		set_member(dp_snapshot_variable(s, &s->globals, NULL), &dp_store_variable.row[i]);
	for (uint64_t i = 0; i < 64; i++) /* each length of a number, and of a record */
		dp_snapshot_variable(s, &s->globals, NULL)->number = 1ull << i;
	encode(s, false, &straight);
	encode(s, true, &table);
	cr_assert_eq(straight.len, table.len);
	cr_assert(!memcmp(straight.data, table.data, table.len));
	dp_buf_fini(&straight);
	dp_buf_fini(&table);
	dp_snapshot_destroy(s);
}

/* More strings than any table starts with, of all lengths around the special cases. */
Test(file, texts_are_told_apart_however_many)
{
	enum { TEXTS = 20000 };
	struct dp_file_strings *t = dp_file_strings_create();
	char text[32] = "";
	for (unsigned round = 0; round < 2; round++)
		for (uint32_t i = 0; i < TEXTS; i++) {
			memset(text, 0, sizeof(text));
			memcpy(text, &i, sizeof(i)); /* with NULs in it and without */
			cr_assert_eq(dp_file_string(t, text, 3 + i % 9), i + 1, "%u", i);
		}
	dp_file_strings_destroy(t);
}

/* Pieces are compressed one after the other: nothing may be lost between two. */
Test(file, sections_of_many_pieces_come_back)
{
	struct dp_snapshot *s = dp_snapshot_create(), *back;
	for (int i = 1; i <= 3000; i++) {
		struct dp_snap_frame *f = dp_snapshot_frame(s, dp_snapshot_thread(s, i));
		for (unsigned k = 0; k < 20; k++) {
			struct dp_snap_variable *v = dp_snapshot_variable(s, &f->variables, NULL);
			v->frame = f;
			v->thread = f->thread;
			v->address = (uint64_t)i * 0x9e3779b97f4a7c15u + k;
		}
	}
	back = there_and_back(s);
	helper_same(s, back);
	dp_snapshot_destroy(s);
	dp_snapshot_destroy(back);
}
