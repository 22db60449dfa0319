/* SPDX-License-Identifier: MIT */
#include "helper_output.h"
#include "probes/expr/syntax/printf_form.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS INT64_C(1000000000)

struct out {
	char *text;
	size_t size;
	FILE *to;
	struct dp_writer *w;
};

static void open_out(struct out *o, const struct dp_event_class *classes, size_t n, bool color)
{
	*o = (struct out){0};
	o->to = open_memstream(&o->text, &o->size);
	must(dp_text_writer_create(o->to, color, classes, n, &o->w));
}

static char *close_out(struct out *o)
{
	must(dp_writer_close(o->w));
	fclose(o->to);
	return o->text;
}

/* The line without its time. */
static const char *after_time(const char *line)
{
	cr_assert_eq(strspn(line, "0123456789:."), strlen("HH:MM:SS.nnnnnnnnn"), "%s", line);
	return line + strlen("HH:MM:SS.nnnnnnnnn");
}

Test(text, line_of_every_kind_of_value)
{
	struct dp_fields fields =
	        make_fields((const char *const[]){"reg:rax", "int:i:1", "uint8:u:1", "double:d:1", "pointer:p:1", "string:s:1",
	                                          "bytes[2]:b:1", "int64:bad:1", NULL});
	struct dp_event_class class = {.name = "main_0x10", .spec = "main+0x10", .fields = &fields};
	struct dp_buf b = {0};
	double d = 0.5;
	put_u64(&b, 1 << 7);
	put_u64(&b, 0x2a);
	put_u32(&b, (uint32_t)-7);
	put_u8(&b, 200);
	dp_buf_put(&b, &d, 8);
	put_u64(&b, 0x7f00);
	put_text(&b, "say \"hi\"\n\033[0m");
	dp_buf_put(&b, "\xab\x01", 2);
	put_u64(&b, 0);
	struct out o;
	open_out(&o, &class, 1, false);
	struct dp_event e = make_event(123456789, &b);
	dp_writer_event(o.w, &e);
	char *text = close_out(&o);
	cr_assert_str_eq(after_time(text),
	                 " worker[101] main_0x10: rax=0x2a i=-7 u=200 d=0.5 p=0x7f00 s=\"say \\\"hi\\\"\\n\\x1b[0m\" b=ab01 "
	                 "bad=<unreadable>\n");
	free(text);
	dp_fields_fini(&fields);
	dp_buf_fini(&b);
}

/* Control characters of the program's strings do not reach the terminal through a format either. */
Test(text, format_is_followed_with_each_value_in_its_own_width)
{
	struct dp_fields fields = make_fields((const char *const[]){"int:i:1", "uint8:u:1", "double:d:1", "pointer:p:1",
	                                                            "string:s:1", "int64:bad:1", "reg:rax", NULL});
	struct dp_printf_form form = {
	        .format = (char *)"%5d|%-4x|%08llx|%.2f|%p|%8.3s|%s|100%%|%d", .n = 8, .field = {0, 1, 0, 2, 3, 4, 4, 5}};
	struct dp_event_class class = {.name = "p", .spec = "p", .fields = &fields, .form = &form};
	struct dp_buf b = {0};
	double d = 0.5;
	put_u64(&b, 1 << 5);
	put_u32(&b, (uint32_t)-7);
	put_u8(&b, 200);
	dp_buf_put(&b, &d, 8);
	put_u64(&b, 0x7f00);
	put_text(&b, "hello\033[0m");
	put_u64(&b, 0);
	put_u64(&b, 0x2a);
	struct out o;
	open_out(&o, &class, 1, false);
	struct dp_event e = make_event(123456789, &b);
	dp_writer_event(o.w, &e);
	char *text = close_out(&o);
	cr_assert_str_eq(after_time(text),
	                 " worker[101] p:    -7|c8  |fffffff9|0.50|0x7f00|     hel|hello\\x1b[0m|100%|<unreadable> rax=0x2a\n");
	free(text);
	dp_fields_fini(&fields);
	dp_buf_fini(&b);
}

Test(text, time_is_the_local_wall_clock)
{
	struct dp_fields none = {0};
	struct dp_event_class class = {.name = "p", .spec = "p", .fields = &none};
	struct dp_buf empty = {0};
	setenv("TZ", "XYZ-3:30", 1);
	tzset();
	struct out o;
	open_out(&o, &class, 1, false);
	int64_t midnight = INT64_C(1700006400) * 1000000000; /* 2023-11-15 00:00:00 UTC */
	struct dp_event e = make_event((uint64_t)(midnight + 5000000042 - dp_clock_offset()), &empty);
	dp_writer_event(o.w, &e);
	char *text = close_out(&o);
	cr_assert_str_eq(text, "03:30:05.000000042 worker[101] p\n");
	free(text);
}

Test(text, process_is_named_once_there_are_several)
{
	struct dp_fields none = {0};
	struct dp_event_class class = {.name = "p", .spec = "p", .fields = &none};
	struct dp_buf empty = {0};
	struct out o;
	open_out(&o, &class, 1, false);
	struct dp_event e = make_event(1, &empty);
	dp_writer_event(o.w, &e);
	e.pid = 200;
	e.tid = 201;
	e.comm = "a\033b";
	dp_writer_event(o.w, &e);
	e.pid = 100;
	dp_writer_event(o.w, &e);
	char *text = close_out(&o);
	cr_assert_not_null(strstr(text, " worker[101] p\n"));
	cr_assert_not_null(strstr(text, " a\\x1bb[200/201] p\n"));
	cr_assert_not_null(strstr(text, " a\\x1bb[100/201] p\n"));
	free(text);
}

/* The name of an event's thread and class is made once, and kept where other threads and classes keep theirs. */
Test(text, threads_and_classes_that_take_turns_keep_their_names)
{
	enum { CLASSES = 300, EVENTS = 9 * CLASSES };
	static const char *const comms[] = {"worker", "renamed", "a name that is much longer than the kernel gives"};
	static char names[CLASSES][8];
	static struct dp_event_class classes[CLASSES];
	struct dp_fields none = {0};
	struct dp_buf empty = {0};
	struct out o;
	char want[80];
	for (unsigned i = 0; i < CLASSES; i++) {
		snprintf(names[i], sizeof(names[i]), "c%u", i);
		classes[i] = (struct dp_event_class){.name = names[i], .fields = &none};
	}
	open_out(&o, classes, CLASSES, false);
	for (int i = 0; i < EVENTS; i++) {
		struct dp_event e = make_event(1, &empty);
		e.probe = (unsigned)i % CLASSES;
		e.tid = 1000 + i / CLASSES / 3;
		e.comm = comms[i / CLASSES % 3];
		dp_writer_event(o.w, &e);
	}
	const char *at = close_out(&o);
	for (int i = 0; i < EVENTS; i++) {
		snprintf(want, sizeof(want), " %s[%d] c%d\n", comms[i / CLASSES % 3], 1000 + i / CLASSES / 3, i % CLASSES);
		cr_assert(!strncmp(after_time(at), want, strlen(want)), "%d: %.100s", i, at);
		at = strchr(at, '\n') + 1;
	}
	cr_assert_eq(*at, '\0');
	free(o.text);
}

Test(text, a_new_second_shows_in_the_time)
{
	struct dp_fields none = {0};
	struct dp_event_class class = {.name = "p", .spec = "p", .fields = &none};
	struct dp_buf empty = {0};
	const int64_t midnight = INT64_C(1700006400) * NS; /* 2023-11-15 00:00:00 UTC */
	const int64_t after[] = {-1, 0, NS - 1, NS, 0, 60 * NS + 7};
	setenv("TZ", "UTC", 1);
	tzset();
	struct out o;
	open_out(&o, &class, 1, false);
	for (size_t i = 0; i < sizeof(after) / sizeof(*after); i++) {
		struct dp_event e = make_event((uint64_t)(midnight + after[i] - dp_clock_offset()), &empty);
		dp_writer_event(o.w, &e);
	}
	char *text = close_out(&o);
	cr_assert_str_eq(text, "23:59:59.999999999 worker[101] p\n00:00:00.000000000 worker[101] p\n"
	                       "00:00:00.999999999 worker[101] p\n00:00:01.000000000 worker[101] p\n"
	                       "00:00:00.000000000 worker[101] p\n00:01:00.000000007 worker[101] p\n");
	free(text);
}

/* Events wait for each other, but a message passes none of them, nor the other way round. */
Test(text, messages_stand_between_the_events_that_they_came_between)
{
	struct dp_fields none = {0};
	struct dp_event_class class = {.name = "p", .spec = "p", .fields = &none};
	struct dp_buf empty = {0};
	struct out o;
	open_out(&o, &class, 1, false);
	struct dp_event e = make_event(1, &empty);
	dp_writer_event(o.w, &e);
	fflush(o.to);
	cr_assert_eq(o.size, 0, "events of a pass are written together");
	dp_writer_note(o.w, "in between");
	dp_writer_event(o.w, &e);
	fflush(o.to);
	cr_assert_str_eq(after_time(o.text), " worker[101] p\ndynprobe: in between\n");
	must(dp_writer_flush(o.w));
	cr_assert_str_eq(strstr(o.text, "between\n") + 8 + strlen("HH:MM:SS.nnnnnnnnn"), " worker[101] p\n");
	free(close_out(&o));
}

/* A library was loaded: what was known of the class does not hold any more. */
Test(text, fields_that_become_known_are_shown)
{
	struct dp_fields fields = {0};
	struct dp_event_class class = {.name = "p", .spec = "p", .fields = &fields};
	struct dp_buf b = {0};
	struct out o;
	open_out(&o, &class, 1, false);
	struct dp_event e = make_event(1, &b);
	dp_writer_event(o.w, &e);
	must(dp_fields_add(&fields, "reg:al"));
	dp_writer_class(o.w, 0);
	put_u8(&b, 7);
	e = make_event(1, &b);
	dp_writer_event(o.w, &e);
	char *text = close_out(&o);
	cr_assert_not_null(strstr(text, " worker[101] p\n"));
	cr_assert_not_null(strstr(text, " worker[101] p: al=0x7\n"));
	free(text);
	dp_fields_fini(&fields);
	dp_buf_fini(&b);
}

static char *backtrace_of(struct dp_image *image, const uint64_t *pcs, uint8_t n)
{
	struct dp_fields fields = make_fields((const char *const[]){"backtrace", "reg:al", NULL});
	struct dp_event_class class = {.name = "p", .spec = "p", .fields = &fields};
	struct dp_buf b = {0};
	put_u8(&b, n);
	for (uint8_t i = 0; i < n; i++)
		put_u64(&b, pcs[i]);
	put_u8(&b, 1);
	struct out o;
	open_out(&o, &class, 1, false);
	struct dp_event e = make_event(1, &b);
	e.image = image;
	dp_writer_event(o.w, &e);
	dp_fields_fini(&fields);
	dp_buf_fini(&b);
	return close_out(&o);
}

Test(text, backtrace_without_an_image_shows_addresses)
{
	char *text = backtrace_of(NULL, (const uint64_t[]){0x1010, 0x2020}, 2);
	cr_assert_str_eq(after_time(text), " worker[101] p: al=0x1\n    #0  0x1010\n    #1  0x2020\n");
	free(text);
}

/* A function may end with a call that never returns: the return address is then in the next function. */
Test(text, return_address_at_the_end_of_a_function_names_the_caller)
{
	char *text = backtrace_of(made_up_image, (const uint64_t[]){0x1010, 0x1010, 0x1004}, 3);
	cr_assert_str_eq(after_time(text),
	                 " worker[101] p: al=0x1\n    #0  callee+0x0/0x20 [prog]\n    #1  caller+0x10/0x10 [prog]\n"
	                 "    #2  caller+0x4/0x10 [prog]\n");
	free(text);
}

Test(text, frame_interrupted_by_a_signal_is_exact)
{
	char *text = backtrace_of(made_up_image, (const uint64_t[]){0x1004, 0x1030, 0x1010}, 3);
	cr_assert_not_null(strstr(text, "#1  __restore_rt+0x0/0x10 [prog]\n    #2  callee+0x0/0x20 [prog]\n"), "%s", text);
	free(text);
}

Test(text, generated_code_is_named_by_the_map_and_guessed_frames_are_marked)
{
	const uint64_t by_pointer = UINT64_C(1) << 62;
	char *text = backtrace_of(made_up_image, (const uint64_t[]){0x1010, 0x7010, by_pointer | 0x7003, by_pointer | 0x9000}, 4);
	cr_assert_str_eq(after_time(text),
	                 " worker[101] p: al=0x1\n    #0  callee+0x0/0x20 [prog]\n    #1  made;up+0x10/0x10 [perf-1.map]\n"
	                 "    #2  made;up+0x3/0x10 [perf-1.map] (by frame pointer)\n    #3  0x9000 (by frame pointer)\n");
	free(text);
	text = backtrace_of(NULL, (const uint64_t[]){0x1010, by_pointer | 0x2020}, 2);
	cr_assert_str_eq(after_time(text), " worker[101] p: al=0x1\n    #0  0x1010\n    #1  0x2020 (by frame pointer)\n");
	free(text);
}

Test(text, cut_strings_are_marked)
{
	struct dp_fields fields = make_fields((const char *const[]){"string[8]:s:1", NULL});
	struct dp_event_class class = {.name = "p", .spec = "p", .fields = &fields};
	struct dp_buf b = {0};
	put_u64(&b, 0);
	put_text(&b, "abcd...");
	struct out o;
	open_out(&o, &class, 1, false);
	struct dp_event e = make_event(1, &b);
	dp_writer_event(o.w, &e);
	char *text = close_out(&o);
	cr_assert_str_eq(after_time(text), " worker[101] p: s=\"abcd\"...\n");
	free(text);
	dp_fields_fini(&fields);
	dp_buf_fini(&b);
}

/* The text of str(p, 4), twice, with a number in between. */
static char *limited(const char *first, const char *second)
{
	struct dp_fields fields = make_fields((const char *const[]){"string[8]:s:1", "int:i:1", "string[8]:t:1", NULL});
	struct dp_event_class class = {.name = "p", .spec = "p", .fields = &fields};
	struct dp_buf b = {0};
	struct out o;
	for (size_t i = 0; i < 3; i += 2)
		fields.field[i].expr = calloc(1, sizeof(struct dp_expr));
	put_u64(&b, 0);
	put_text(&b, first);
	put_u32(&b, 7);
	put_text(&b, second);
	open_out(&o, &class, 1, false);
	struct dp_event e = make_event(1, &b);
	dp_writer_event(o.w, &e);
	char *text = close_out(&o);
	dp_fields_fini(&fields);
	dp_buf_fini(&b);
	return text;
}

static void limited_is(const char *first, const char *second, const char *want)
{
	char *text = limited(first, second);
	cr_expect_str_eq(after_time(text), want);
	free(text);
}

/* The room for the dots must not show characters beyond the limit. */
Test(text, a_string_has_no_more_characters_than_asked_for)
{
	limited_is("", "abc", " worker[101] p: s=\"\" i=7 t=\"abc\"\n");
	limited_is("abcd", "abcde", " worker[101] p: s=\"abcd\" i=7 t=\"abcd\"...\n");
	limited_is("abcdef", "abcdefg", " worker[101] p: s=\"abcd\"... i=7 t=\"abcd\"...\n");
	limited_is("abcd...", "abc..", " worker[101] p: s=\"abcd\"... i=7 t=\"abc.\"...\n");
	limited_is("abc...", "abc.", " worker[101] p: s=\"abc.\"... i=7 t=\"abc.\"\n");
}

Test(text, escape_codes_only_with_colour)
{
	struct dp_fields fields = make_fields((const char *const[]){"int:x:1", NULL});
	struct dp_event_class class = {.name = "p", .spec = "p", .fields = &fields};
	for (int color = 0; color < 2; color++) {
		struct dp_buf b = {0};
		put_u64(&b, 1);
		put_u32(&b, 0);
		struct out o;
		open_out(&o, &class, 1, color);
		struct dp_event e = make_event(1, &b);
		dp_writer_event(o.w, &e);
		dp_writer_note(o.w, "probe p retired");
		char *text = close_out(&o);
		cr_assert_eq(strchr(text, '\033') != NULL, color);
		cr_assert_not_null(strstr(text, "probe p retired\n"));
		free(text);
		dp_buf_fini(&b);
	}
	dp_fields_fini(&fields);
}

Test(text, full_device_is_an_error)
{
	struct dp_fields none = {0};
	struct dp_event_class class = {.name = "p", .spec = "p", .fields = &none};
	struct dp_buf empty = {0};
	struct dp_writer *w = NULL;
	FILE *full = fopen("/dev/full", "we");
	must(dp_text_writer_create(full, false, &class, 1, &w));
	struct dp_event e = make_event(1, &empty);
	dp_writer_event(w, &e);
	struct dp_error *err = dp_writer_flush(w);
	cr_assert_not_null(err);
	cr_assert_eq(err->tag, DP_TAG_OUTPUT);
	dp_error_destroy(err);
	err = dp_writer_close(w);
	cr_assert_not_null(err, "the first error is returned at the end");
	dp_error_destroy(err);
	fclose(full);
}

Test(text, random_payloads_never_crash)
{
	struct dp_fields fields =
	        make_fields((const char *const[]){"regs", "string[16]:s:1", "backtrace:3", "bytes[4]:b:1", "float:f:1", NULL});
	struct dp_event_class class = {.name = "p", .spec = "p", .fields = &fields};
	struct out o;
	open_out(&o, &class, 1, true);
	srand(5);
	for (int i = 0; i < 2000; i++) {
		uint8_t bytes[256];
		for (size_t j = 0; j < sizeof(bytes); j++)
			bytes[j] = rand() % 4 ? (uint8_t)(rand() % 4) : (uint8_t)rand();
		struct dp_event e = {
		        .ns = (uint64_t)rand(), .comm = "c", .payload = bytes, .len = (size_t)rand() % sizeof(bytes)};
		e.image = i & 1 ? made_up_image : NULL;
		dp_writer_event(o.w, &e);
	}
	char *text = close_out(&o);
	cr_assert_gt(o.size, 1000);
	free(text);
	dp_fields_fini(&fields);
}

static uint64_t as_word(int64_t v)
{
	return (uint64_t)v;
}

Test(text, system_calls_are_titled_and_errors_have_names)
{
	static const struct {
		int64_t value;
		enum dp_display display;
		const char *shown;
	} rows[] = {
	        {-2, DP_DISPLAY_RESULT, "v=-ENOENT"},
	        {-4096, DP_DISPLAY_RESULT, "v=-4096"},
	        {-4000, DP_DISPLAY_RESULT, "v=-4000"},
	        {0, DP_DISPLAY_RESULT, "v=0"},
	        {INT64_MIN, DP_DISPLAY_RESULT, "v=-9223372036854775808"},
	        {257, DP_DISPLAY_CALL, "v=openat"},
	        {777, DP_DISPLAY_CALL, "v=syscall_777"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct dp_field field = {
		        .name = (char *)"v", .type = DP_TYPE_INT, .size = 8, .source = DP_SRC_REG, .display = rows[i].display};
		struct dp_fields fields = {&field, 1};
		struct dp_event_class class = {.name = "syscall_x_exit_2", .spec = "x", .fields = &fields, .title = "syscall:x:exit"};
		struct dp_buf b = {0};
		struct out o;
		char line[96];
		put_u64(&b, as_word(rows[i].value));
		open_out(&o, &class, 1, false);
		struct dp_event e = make_event(1, &b);
		dp_writer_event(o.w, &e);
		char *text = close_out(&o);
		snprintf(line, sizeof(line), " worker[101] syscall:x:exit: %s\n", rows[i].shown);
		cr_expect(strstr(text, line), "%s", text);
		free(text);
		dp_buf_fini(&b);
	}
}
