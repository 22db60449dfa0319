/* SPDX-License-Identifier: MIT */
/* Traces, as read by babeltrace2 and lttng view. */
#include "helper_output.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const all_contexts[] = {
        "reg:rax",     "reg:al",      "reg:rip",    "reg:rflags",        "reg:xmm3",     "int8:i8:1",    "int16:i16:1",
        "int32:i32:1", "int64:i64:1", "uint8:u8:1", "uint16:u16:1",      "uint32:u32:1", "uint64:u64:1", "float:f:1",
        "double:d:1",  "pointer:p:1", "string:s:1", "string[8]:event:1", "bytes[3]:b:1", "backtrace:4",  NULL,
};

static void put_signed_ints(struct dp_buf *b)
{
	int8_t i8 = -8;
	int16_t i16 = -16;
	int32_t i32 = -32;
	int64_t i64 = INT64_MIN;
	dp_buf_put(b, &i8, 1);
	dp_buf_put(b, &i16, 2);
	dp_buf_put(b, &i32, 4);
	dp_buf_put(b, &i64, 8);
}

static void put_unsigned_ints(struct dp_buf *b)
{
	uint16_t u16 = 65535;
	put_u8(b, 255);
	dp_buf_put(b, &u16, 2);
	put_u32(b, UINT32_MAX);
	put_u64(b, UINT64_MAX);
}

static struct dp_buf all_payload(void)
{
	struct dp_buf b = {0};
	float f = 1.5f;
	double d = -0.25;
	put_u64(&b, 1ull << 15);
	put_u64(&b, 0x1122334455667788);
	put_u8(&b, 0xab);
	put_u64(&b, 0x401000);
	put_u64(&b, 0x246);
	for (uint8_t i = 0; i < 16; i++)
		put_u8(&b, i);
	put_signed_ints(&b);
	put_unsigned_ints(&b);
	dp_buf_put(&b, &f, 4);
	dp_buf_put(&b, &d, 8);
	put_u64(&b, 0); /* unreadable: bit 15 */
	put_text(&b, "hello");
	put_text(&b, "ev");
	dp_buf_put(&b, "\x01\x02\xff", 3);
	put_u8(&b, 2);
	put_u64(&b, 0x401000);
	put_u64(&b, UINT64_C(1) << 62 | 0x402000); /* found by a frame pointer */
	return b;
}

static void has(const char *text, const char *part)
{
	cr_assert_not_null(strstr(text, part), "no '%s' in:\n%s", part, text);
}

static void lacks(const char *text, const char *part)
{
	cr_assert_null(strstr(text, part), "'%s' in:\n%s", part, text);
}

/* A trace of one class without fields, `n` events. */
static void write_plain(const char *dir, size_t n, uint64_t lost)
{
	struct dp_fields none = {0};
	struct dp_event_class class = {.name = "plain", .spec = "main", .fields = &none};
	struct dp_writer *w = NULL;
	struct dp_buf empty = {0};
	must(dp_ctf_writer_create(dir, &class, 1, &w));
	for (size_t i = 0; i < n; i++) {
		struct dp_event e = make_event(1000000000 + i, &empty);
		dp_writer_event(w, &e);
	}
	dp_writer_lost(w, lost);
	must(dp_writer_close(w));
}

Test(ctf, every_field_type_reads_back)
{
	struct dp_fields fields = make_fields(all_contexts);
	struct dp_event_class class = {.name = "everything", .spec = "main+\"0x10\"", .fields = &fields};
	struct dp_buf payload = all_payload();
	struct dp_event event = make_event(5000000001, &payload);
	char *dir = make_dir();
	struct dp_writer *w = NULL;
	int status;
	must(dp_ctf_writer_create(dir, &class, 1, &w));
	dp_writer_event(w, &event);
	must(dp_writer_close(w));
	char *text = run(&status, "babeltrace2 --clock-cycles '%s'", dir);
	cr_assert_eq(status, 0, "%s", text);
	has(text, "[00000000005000000001]");
	has(text, "dynprobe:everything: { vpid = 100, vtid = 101, procname = \"worker\" }, { _unreadable = 0x8000, rax = "
	          "0x1122334455667788, al = 0xAB, "
	          "rip = 0x401000, rflags = 0x246, xmm3 = [ [0] = 0x0, [1] = 0x1,");
	has(text, "i8 = -8, i16 = -16, i32 = -32, i64 = -9223372036854775808, u8 = 255, u16 = 65535, u32 = 4294967295, u64 = "
	          "18446744073709551615, "
	          "f = 1.5, d = -0.25, p = 0x0, s = \"hello\", event = \"ev\", b = [ [0] = 0x1, [1] = 0x2, [2] = 0xFF ], "
	          "_backtrace_length = 2, "
	          "backtrace = [ [0] = 0x401000, [1] = 0x402000 ] }");
	free(text);
	remove_tree(dir);
	dp_fields_fini(&fields);
	dp_buf_fini(&payload);
}

Test(ctf, without_events_is_a_valid_trace)
{
	char *dir = make_dir();
	int status;
	write_plain(dir, 0, 0);
	char *text = run(&status, "babeltrace2 '%s'", dir);
	cr_assert_eq(status, 0, "%s", text);
	cr_assert_str_eq(text, "");
	free(text);
	remove_tree(dir);
}

Test(ctf, many_packets_keep_every_event_and_file_modes)
{
	char *parent = make_dir(), *dir = NULL, *path = NULL;
	struct stat st;
	int status;
	cr_assert_geq(asprintf(&dir, "%s/a/b", parent), 0);
	write_plain(dir, 20000, 0);
	char *text = run(&status, "babeltrace2 '%s' | wc -l", dir);
	cr_assert_eq(atoi(text), 20000);
	free(text);
	cr_assert_eq(stat(dir, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0700);
	cr_assert_geq(asprintf(&path, "%s/events_1", dir), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
	cr_assert_gt(st.st_size, 20 * 4096);
	free(path);
	free(dir);
	remove_tree(parent);
}

/* A kill may cut a write at a page boundary: everything before it must be whole. */
Test(ctf, trace_cut_at_a_page_boundary_is_readable)
{
	struct dp_fields fields = make_fields(
	                         (const char *const[]){"string[1000]:s:1", "bytes[1024]:b1:1", "bytes[1024]:b2:1", NULL}),
	                 none = {0};
	struct dp_event_class classes[] = {{.name = "large", .spec = "main", .fields = &fields},
	                                   {.name = "small", .spec = "main", .fields = &none}};
	char *dir = make_dir(), text_field[1001] = "";
	uint8_t zeroes[2048] = {0};
	struct dp_writer *w = NULL;
	int status;
	srand(9);
	must(dp_ctf_writer_create(dir, classes, 2, &w));
	for (uint64_t i = 0; i < 300; i++) {
		struct dp_buf payload = {0};
		memset(text_field, 0, sizeof(text_field));
		memset(text_field, 'x', (size_t)rand() % 999);
		put_u64(&payload, 0);
		put_text(&payload, text_field);
		dp_buf_put(&payload, zeroes, sizeof(zeroes));
		struct dp_event e = make_event(1000 + i, &payload);
		e.probe = rand() % 3 ? 1 : 0;
		dp_writer_event(w, &e);
		if (!(rand() % 4))
			must(dp_writer_flush(w));
		dp_buf_fini(&payload);
	}
	must(dp_writer_close(w));
	char *text = run(&status, "babeltrace2 '%s' | wc -l", dir);
	cr_assert_eq(atoi(text), 300);
	free(text);
	text = run(&status,
	           "set -e; cd '%s'; for n in 1 2 9 40; do truncate -s $(($(stat -c %%s events_1) - 1 - $n * 4096)) events_1; "
	           "truncate -s $(($(stat -c %%s events_1) / 4096 * 4096)) events_1; babeltrace2 . > out; done; wc -l < out",
	           dir);
	cr_assert_eq(status, 0, "%s", text);
	cr_assert(atoi(text) > 50 && atoi(text) < 300, "%s", text);
	free(text);
	remove_tree(dir);
	dp_fields_fini(&fields);
}

Test(ctf, event_larger_than_a_page_is_kept)
{
	struct dp_fields fields = make_fields(
	        (const char *const[]){"bytes[1024]:a:1", "bytes[1024]:b:1", "bytes[1024]:c:1", "bytes[1000]:d:1", NULL});
	struct dp_event_class class = {.name = "large", .spec = "main", .fields = &fields};
	uint8_t zeroes[4080] = {0};
	char *dir = make_dir();
	struct dp_writer *w = NULL;
	int status;
	must(dp_ctf_writer_create(dir, &class, 1, &w));
	for (uint64_t i = 0; i < 5; i++) {
		struct dp_event e = {.ns = i, .payload = zeroes, .len = sizeof(zeroes)};
		dp_writer_event(w, &e);
	}
	must(dp_writer_close(w));
	char *text = run(&status, "babeltrace2 '%s' | wc -l", dir);
	cr_assert_eq(atoi(text), 5, "%s", text);
	free(text);
	remove_tree(dir);
	dp_fields_fini(&fields);
}

Test(ctf, discarded_events_are_reported)
{
	char *dir = make_dir();
	int status;
	write_plain(dir, 3, 45);
	char *text = run(&status, "babeltrace2 '%s'", dir);
	cr_assert_eq(status, 0, "%s", text);
	has(text, "45 events");
	free(text);
	remove_tree(dir);
}

Test(ctf, losses_without_events_are_reported)
{
	char *dir = make_dir();
	int status;
	write_plain(dir, 0, 45);
	char *text = run(&status, "babeltrace2 '%s'", dir);
	cr_assert_eq(status, 0, "%s", text);
	has(text, "45 events");
	free(text);
	remove_tree(dir);
}

Test(ctf, flushed_trace_is_readable_while_the_writer_lives)
{
	struct dp_fields none = {0};
	struct dp_event_class class = {.name = "plain", .spec = "main", .fields = &none};
	struct dp_buf empty = {0};
	char *dir = make_dir();
	struct dp_writer *w = NULL;
	int status;
	must(dp_ctf_writer_create(dir, &class, 1, &w));
	char *text = run(&status, "babeltrace2 '%s'", dir);
	cr_assert_eq(status, 0, "%s", text);
	free(text);
	struct dp_event e = make_event(1000, &empty);
	dp_writer_event(w, &e);
	must(dp_writer_flush(w));
	dp_writer_event(w, &e);
	text = run(&status, "babeltrace2 '%s' | wc -l", dir);
	cr_assert_eq(atoi(text), 1);
	free(text);
	must(dp_writer_close(w));
	remove_tree(dir);
}

Test(ctf, time_never_goes_back)
{
	struct dp_fields none = {0};
	struct dp_event_class class = {.name = "plain", .spec = "main", .fields = &none};
	struct dp_buf empty = {0};
	char *dir = make_dir();
	struct dp_writer *w = NULL;
	int status;
	static const uint64_t times[] = {5000, 4000, 6000, 1, 6001};
	must(dp_ctf_writer_create(dir, &class, 1, &w));
	for (size_t i = 0; i < 5; i++) {
		struct dp_event e = make_event(times[i], &empty);
		dp_writer_event(w, &e);
		if (i & 1)
			must(dp_writer_flush(w));
	}
	must(dp_writer_close(w));
	char *text = run(&status, "babeltrace2 --clock-cycles '%s' | cut -c1-22", dir);
	cr_assert_str_eq(text, "[00000000000000005000]\n[00000000000000005000]\n[00000000000000006000]\n[00000000000000006000]\n"
	                       "[00000000000000006001]\n");
	free(text);
	remove_tree(dir);
}

Test(ctf, second_trace_in_one_directory_is_refused)
{
	char *dir = make_dir();
	struct dp_fields none = {0};
	struct dp_event_class class = {.name = "plain", .spec = "main", .fields = &none};
	struct dp_writer *w = NULL;
	write_plain(dir, 1, 0);
	struct dp_error *err = dp_ctf_writer_create(dir, &class, 1, &w);
	cr_assert_not_null(err);
	cr_assert_eq(err->tag, DP_TAG_OUTPUT);
	cr_assert_null(w);
	dp_error_destroy(err);
	remove_tree(dir);
}

Test(ctf, damaged_payload_is_no_event)
{
	struct dp_fields fields = make_fields((const char *const[]){"string[4]:s:1", NULL});
	struct dp_event_class class = {.name = "plain", .spec = "main", .fields = &fields};
	struct dp_buf payload = {0};
	char *dir = make_dir();
	struct dp_writer *w = NULL;
	int status;
	put_u64(&payload, 0);
	dp_buf_put(&payload, "abcdef", 6);
	struct dp_event e = make_event(1000, &payload);
	must(dp_ctf_writer_create(dir, &class, 1, &w));
	dp_writer_event(w, &e);
	must(dp_writer_close(w));
	char *text = run(&status, "babeltrace2 '%s'", dir);
	cr_assert_eq(status, 0);
	cr_assert_str_eq(text, "");
	free(text);
	remove_tree(dir);
	dp_fields_fini(&fields);
	dp_buf_fini(&payload);
}

Test(ctf, procname_is_cut_and_padded)
{
	struct dp_fields none = {0};
	struct dp_event_class class = {.name = "plain", .spec = "main", .fields = &none};
	struct dp_buf empty = {0};
	char *dir = make_dir();
	struct dp_writer *w = NULL;
	int status;
	static const char *const names[] = {"much-longer-than-sixteen", "", NULL, "x"};
	must(dp_ctf_writer_create(dir, &class, 1, &w));
	for (size_t i = 0; i < 4; i++) {
		struct dp_event e = make_event(1000, &empty);
		e.comm = names[i];
		dp_writer_event(w, &e);
	}
	must(dp_writer_close(w));
	char *text = run(&status, "babeltrace2 '%s' | grep -o 'procname = .*\"'", dir);
	cr_assert_str_eq(text, "procname = \"much-longer-than\"\nprocname = \"\"\nprocname = \"\"\nprocname = \"x\"\n");
	free(text);
	remove_tree(dir);
}

Test(ctf, lttng_view_opens_it_and_two_traces_merge)
{
	char *parent = make_dir(), *one = NULL, *two = NULL;
	int status;
	cr_assert_geq(asprintf(&one, "%s/one", parent), 0);
	cr_assert_geq(asprintf(&two, "%s/two", parent), 0);
	write_plain(one, 5, 0);
	write_plain(two, 7, 0);
	char *text = run(&status, "lttng view -t '%s'", one);
	cr_assert_eq(status, 0, "%s", text);
	has(text, "dynprobe:plain: { vpid = 100, vtid = 101, procname = \"worker\" }");
	lacks(text, "rror");
	free(text);
	text = run(&status, "babeltrace2 '%s' '%s' | wc -l", one, two);
	cr_assert_eq(atoi(text), 12, "%s", text);
	free(text);
	free(one);
	free(two);
	remove_tree(parent);
}

/* The limit on the size of files stands in for a full disk. */
Test(ctf, full_disk_is_an_error_and_leaves_whole_packets)
{
	struct dp_fields none = {0};
	struct dp_event_class class = {.name = "plain", .spec = "main", .fields = &none};
	struct dp_buf empty = {0};
	struct rlimit limit = {10000, RLIM_INFINITY}, old;
	char *dir = make_dir();
	struct dp_writer *w = NULL;
	int status;
	must(dp_ctf_writer_create(dir, &class, 1, &w));
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	setrlimit(RLIMIT_FSIZE, &limit);
	struct dp_error *err = NULL;
	for (size_t i = 0; i < 1000 && !err; i++) {
		struct dp_event e = make_event(1000 + i, &empty);
		dp_writer_event(w, &e);
		err = i % 10 == 9 ? dp_writer_flush(w) : NULL;
	}
	setrlimit(RLIMIT_FSIZE, &old);
	cr_assert_not_null(err);
	cr_assert_eq(err->tag, DP_TAG_OUTPUT);
	dp_error_destroy(err);
	err = dp_writer_close(w);
	cr_assert_not_null(err);
	dp_error_destroy(err);
	char *text = run(&status, "babeltrace2 '%s' | wc -l", dir);
	cr_assert_geq(atoi(text), 100, "%s", text);
	cr_assert_eq(atoi(text) % 10, 0);
	free(text);
	remove_tree(dir);
}
