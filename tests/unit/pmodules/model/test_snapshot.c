/* SPDX-License-Identifier: MIT */
/* The constructors of the model: uniqueness, order, and what happens without memory. */
#include "pmodules/file/file.h"

#include <criterion/criterion.h>
#include <string.h>
#include <utlist.h>

Test(snapshot, a_text_is_kept_once)
{
	struct dp_snapshot *s = dp_snapshot_create();
	char text[] = "struct crash *";
	const char *first = dp_snapshot_text(s, text);
	cr_assert(first != text && first == dp_snapshot_text(s, "struct crash *"));
	cr_assert(dp_snapshot_text(s, "struct crash") != first);
	text[0] = 'S';
	cr_assert(dp_snapshot_text(s, text) != first);
	cr_assert_str_eq(first, "struct crash *");
	cr_assert_str_eq(dp_snapshot_text(s, NULL), "");
	const size_t before = s->arena.total;
	for (int i = 0; i < 1000000; i++)
		cr_assert(dp_snapshot_text(s, "struct crash *") == first);
	cr_assert_eq(s->arena.total, before);
	dp_snapshot_destroy(s);
}

Test(snapshot, sets_hold_a_word_once_each)
{
	struct dp_snapshot *s = dp_snapshot_create();
	struct dp_snap_word *w;
	unsigned n;
	dp_snapshot_classify(s, "segv");
	dp_snapshot_classify(s, "null");
	dp_snapshot_classify(s, "segv");
	dp_snapshot_tag(s, "segv");
	dp_snapshot_truncated(s, "%d frames", 3);
	dp_snapshot_truncated(s, "%d frames", 3);
	DL_COUNT(s->classifiers, w, n);
	cr_assert_eq(n, 3, "segv, null, truncated");
	DL_COUNT(s->tags, w, n);
	cr_assert_eq(n, 1);
	DL_COUNT(s->truncations, w, n);
	cr_assert_eq(n, 1);
	dp_snapshot_destroy(s);
}

Test(snapshot, the_last_value_of_an_attribute_wins)
{
	struct dp_snapshot *s = dp_snapshot_create();
	char value[] = "text";
	dp_snapshot_set_int(s, "a", 1);
	dp_snapshot_set_text(s, "b", "2");
	dp_snapshot_set_text(s, "a", value);
	dp_snapshot_set_int(s, "b", -2);
	value[0] = 'x';
	cr_assert(!s->attributes->is_int && !strcmp(s->attributes->text, "text"));
	cr_assert(s->attributes->next->is_int && s->attributes->next->number == -2);
	cr_assert(!s->attributes->next->next);
	dp_snapshot_destroy(s);
}

/* If each insertion walked a list, this would take minutes. */
Test(snapshot, a_hundred_thousand_attributes_and_tags_are_no_burden, .timeout = 20)
{
	struct dp_snapshot *s = dp_snapshot_create();
	char key[32];
	for (int i = 0; i < 200000; i++) {
		snprintf(key, sizeof(key), "key%d", i % 100000);
		dp_snapshot_set_int(s, key, i);
		dp_snapshot_tag(s, key);
	}
	cr_assert_eq(s->attributes->number, 100000);
	cr_assert_eq(s->attributes->prev->number, 199999);
	dp_snapshot_destroy(s);
}

Test(snapshot, frames_and_variables_know_where_they_belong)
{
	struct dp_snapshot *s = dp_snapshot_create();
	struct dp_snap_thread *t = dp_snapshot_thread(s, 7);
	dp_snapshot_frame(s, t);
	struct dp_snap_frame *f = dp_snapshot_frame(s, t);
	cr_assert(f->index == 1 && t->nframes == 2 && f->thread == t && t->snapshot == s && s->nthreads == 1);
	struct dp_snap_variable *v = dp_snapshot_variable(s, &f->variables, NULL);
	v->frame = f, v->thread = t;
	struct dp_snap_variable *member = dp_snapshot_variable(s, &v->children, v);
	cr_assert(member->owner == v && member->frame == f && member->thread == t && member->place == DP_VAR_CHILD);
	cr_assert_eq(member->index, -1);
	dp_snapshot_destroy(s);
}

Test(snapshot, memory_has_an_end_and_the_file_says_so)
{
	struct dp_snapshot *s = dp_snapshot_create(), *back = NULL;
	struct dp_buf b = {0};
	while (dp_snapshot_thread(s, 1) && dp_arena_alloc(&s->arena, 8 << 20))
		;
	while (dp_snapshot_variable(s, &s->globals, NULL))
		;
	cr_assert(s->arena.failed);
	dp_snapshot_classify(
	        s, "a word for which there is no room any more, and which is longer than what may be left of the last chunk "
	           "of memory, in which there may well be room for a short one: this one is long enough, by all means");
	cr_assert(!dp_snapshot_write_bytes(s, &b), "existing data is kept nevertheless");
	dp_snapshot_settle(s);
	cr_assert_str_eq(s->classifiers->prev->text, "truncated");
	cr_assert_str_eq(s->truncations->text, DP_SNAPSHOT_FULL);
	cr_assert(!s->truncations->next);
	cr_assert(!dp_snapshot_read_bytes(b.data, b.len, &back));
	cr_assert_str_eq(back->truncations->text, DP_SNAPSHOT_FULL);
	dp_buf_fini(&b);
	dp_snapshot_destroy(s);
	dp_snapshot_destroy(back);
}

Test(snapshot, memory_is_read_across_the_pieces_it_is_kept_in)
{
	struct dp_snapshot *s = dp_snapshot_create();
	struct dp_snap_memory m[] = {{0x1000, 4, (const uint8_t *)"abcd"},
	                             {0x1004, 2, (const uint8_t *)"ef"},
	                             {UINT64_MAX - 1, 2, (const uint8_t *)"yz"}};
	char to[16] = "";
	s->memory = m, s->nmemory = 3;
	cr_assert(dp_snapshot_read(s, 0x1002, to, 16) == 4 && !memcmp(to, "cdef", 4));
	cr_assert_eq(dp_snapshot_read(s, 0xfff, to, 16), 0);
	cr_assert_eq(dp_snapshot_read(s, 0x1006, to, 1), 0);
	cr_assert(dp_snapshot_read(s, UINT64_MAX, to, 16) == 1 && to[0] == 'z', "the end of all addresses");
	dp_snapshot_destroy(s);
}
