/* SPDX-License-Identifier: MIT */
/* Batches of hits in a trace: the same events as one by one, and nothing of a payload is believed before it was copied. */
#include "helper_output.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8 };

static struct dp_hits_item item[MOST];
static struct dp_hits hits = {.tid = 101, .lane = 7, .item = item};

static void add(unsigned probe, uint64_t ns, const struct dp_buf *payload)
{
	item[hits.n++] = (struct dp_hits_item){
	        .ns = ns, .payload = payload->data, .probe = (uint16_t)probe, .len = (uint16_t)payload->len};
}

static void write_batch(struct dp_writer *w, const size_t *class)
{
	dp_writer_batch(w, &(struct dp_event_batch){.hits = &hits, .pid = 100, .comm = "worker", .class = class});
}

static void write_each(struct dp_writer *w)
{
	for (size_t i = 0; i < hits.n; i++)
		dp_writer_event(w, &(struct dp_event){.ns = item[i].ns,
		                                      .pid = 100,
		                                      .tid = hits.tid,
		                                      .lane = hits.lane,
		                                      .comm = "worker",
		                                      .probe = item[i].probe,
		                                      .payload = item[i].payload,
		                                      .len = item[i].len});
}

/* What babeltrace2 reads of a trace of all `hits`. */
static char *traced(const struct dp_event_class *classes, size_t n, const size_t *class, bool batch)
{
	char *dir = make_dir();
	struct dp_writer *w = NULL;
	int status;
	must(dp_ctf_writer_create(dir, classes, n, &w));
	if (batch)
		write_batch(w, class);
	else
		write_each(w);
	must(dp_writer_close(w));
	char *text = run(&status, "babeltrace2 --clock-cycles '%s'", dir);
	cr_assert_eq(status, 0, "%s", text);
	remove_tree(dir);
	return text;
}

Test(ctf_batch, has_the_same_events_as_one_by_one)
{
	struct dp_fields one = make_fields((const char *const[]){"reg:rdi", NULL}),
	                 some = make_fields((const char *const[]){"reg:rdi", "reg:al", "bytes[3]:b:1", NULL}),
	                 varying = make_fields((const char *const[]){"string:s:1", "backtrace:4", NULL}), none = {0};
	const struct dp_event_class classes[] = {{.name = "one", .spec = "main", .fields = &one},
	                                         {.name = "some", .spec = "main", .fields = &some},
	                                         {.name = "varying", .spec = "main", .fields = &varying},
	                                         {.name = "none", .spec = "main", .fields = &none}};
	struct dp_buf a = {0}, b = {0}, c = {0}, d = {0};
	put_u64(&a, 0x1122);
	put_u64(&b, 0); /* the mask, three fields, padding */
	put_u64(&b, 0x3344);
	put_u8(&b, 0x55);
	dp_buf_put(&b, "xyz....", 7);
	put_u64(&c, 0);
	put_text(&c, "text");
	put_u8(&c, 2);
	put_u64(&c, 0x401000);
	put_u64(&c, UINT64_C(1) << 62 | 0x402000); /* found by a frame pointer */
	put_u64(&c, UINT64_MAX);                   /* padding */
	for (unsigned i = 0; i < MOST; i++)
		add(i % 4, 1000 + i, (const struct dp_buf *[]){&a, &b, &c, &d}[i % 4]);
	char *each = traced(classes, 4, NULL, false), *batch = traced(classes, 4, NULL, true);
	cr_expect_str_eq(each, batch);
	cr_expect_not_null(strstr(batch, "s = \"text\", _backtrace_length = 2, backtrace = [ [0] = 0x401000, [1] = 0x402000 ]"),
	                   "%s", batch);
	for (unsigned i = 0; i < MOST; i++)
		cr_expect_not(item[i].damaged);
	free(each);
	free(batch);
}

Test(ctf_batch, damaged_payloads_are_marked_and_left_out)
{
	struct dp_fields one = make_fields((const char *const[]){"reg:rdi", NULL}),
	                 text = make_fields((const char *const[]){"string[4]:s:1", NULL});
	const struct dp_event_class classes[] = {{.name = "one", .spec = "main", .fields = &one},
	                                         {.name = "text", .spec = "main", .fields = &text}};
	struct dp_buf full = {0}, half = {0}, open = {0};
	put_u64(&full, 1);
	put_u32(&half, 1);
	put_u64(&open, 0);
	dp_buf_put(&open, "abcdefgh", 8);
	add(0, 1000, &full);
	add(0, 1001, &half);
	add(1, 1002, &open);
	add(2, 1003, &full); /* there is no such class */
	add(0, 1004, &full);
	char *shown = traced(classes, 2, NULL, true);
	cr_expect(strstr(shown, "[00000000000000001000]") && strstr(shown, "[00000000000000001004]"), "%s", shown);
	cr_expect_not(strstr(shown, "1001]") || strstr(shown, "1002]") || strstr(shown, "1003]"), "%s", shown);
	static const bool damaged[] = {false, true, true, false, false};
	for (size_t i = 0; i < 5; i++)
		cr_expect_eq(item[i].damaged, damaged[i], "event %zu", i);
	free(shown);
}

Test(ctf_batch, the_map_says_which_class_a_probe_has)
{
	struct dp_fields one = make_fields((const char *const[]){"reg:rdi", NULL}), none = {0};
	const struct dp_event_class classes[] = {{.name = "none", .spec = "main", .fields = &none},
	                                         {.name = "one", .spec = "main", .fields = &one}};
	const size_t map[] = {1, 0};
	struct dp_buf value = {0};
	put_u64(&value, 0x77);
	add(0, 1000, &value);
	add(1, 1001, &value);
	char *shown = traced(classes, 2, map, true);
	cr_expect_not_null(strstr(shown, "dynprobe:one: { vpid = 100, vtid = 101, procname = \"worker\" }, { rdi = 0x77 }"), "%s",
	                   shown);
	cr_expect_not_null(strstr(shown, "dynprobe:none"), "%s", shown);
	free(shown);
}

static uint8_t shared[64];
static volatile bool scribbling = true;

static void *scribble(void *data)
{
	for (unsigned i = 0; scribbling; i++)
		((volatile uint8_t *)shared)[8 + i % 40] = (uint8_t)(i % 7 ? 'x' : 0);
	return data;
}

/* The program writes into the payload while it is read: each event is whole, or marked. */
Test(ctf_batch, a_payload_that_changes_meanwhile_is_whole_or_marked)
{
	struct dp_fields text = make_fields((const char *const[]){"string[24]:s:1", "string[24]:t:1", NULL});
	const struct dp_event_class class = {.name = "text", .spec = "main", .fields = &text};
	const struct dp_buf payload = {.data = shared, .len = 48};
	char *dir = make_dir();
	struct dp_writer *w = NULL;
	pthread_t thread;
	int status;
	size_t whole = 0, tried = 0;
	must(dp_ctf_writer_create(dir, &class, 1, &w));
	pthread_create(&thread, NULL, scribble, NULL);
	for (; tried < 400000 && (whole < 1000 || tried - whole < 1000); tried += MOST) {
		hits.n = 0;
		for (unsigned i = 0; i < MOST; i++)
			add(0, 1000 + tried + i, &payload);
		write_batch(w, NULL);
		for (unsigned i = 0; i < MOST; i++)
			whole += !item[i].damaged;
	}
	scribbling = false;
	pthread_join(thread, NULL);
	must(dp_writer_close(w));
	char *shown = run(&status, "babeltrace2 '%s' | wc -l", dir);
	cr_expect_eq((size_t)atoi(shown), whole, "%s of %zu", shown, whole);
	free(shown);
	remove_tree(dir);
}
