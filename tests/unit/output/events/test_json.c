/* SPDX-License-Identifier: MIT */
/* Every line is accepted by a strict parser (Python's, with NaN forbidden), with the original values. */
#include "helper_output.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Runs `script` with `lines` = the parsed lines of `text`; the test fails if the script does. */
static void check(const char *text, const char *script)
{
	char *dir = make_dir(), *path = NULL;
	int status;
	cr_assert_geq(asprintf(&path, "%s/out.py", dir), 0);
	FILE *f = fopen(path, "we");
	fprintf(f,
	        "import json, sys\n"
	        "def bad(c): raise ValueError(c)\n"
	        "lines = [json.loads(l, parse_constant=bad) for l in open('%s/out.json', encoding='utf-8', errors='strict', "
	        "newline='\\n')]\n"
	        "%s\n",
	        dir, script);
	fclose(f);
	free(path);
	cr_assert_geq(asprintf(&path, "%s/out.json", dir), 0);
	f = fopen(path, "we");
	fputs(text, f);
	fclose(f);
	char *out = run(&status, "python3 %s/out.py", dir);
	cr_assert_eq(status, 0, "%s\n%s", text, out);
	free(out);
	free(path);
	remove_tree(dir);
}

struct out {
	char *text;
	size_t size;
	FILE *to;
	struct dp_writer *w;
};

static void open_out(struct out *o, const struct dp_event_class *classes, size_t n)
{
	*o = (struct out){0};
	o->to = open_memstream(&o->text, &o->size);
	must(dp_json_writer_create(o->to, classes, n, &o->w));
}

static void close_and_check(struct out *o, const char *script)
{
	must(dp_writer_close(o->w));
	fclose(o->to);
	check(o->text, script);
	free(o->text);
}

Test(json, header_describes_probes_and_fields)
{
	struct dp_fields fields =
	        make_fields((const char *const[]){"reg:eax", "int:i:1", "float:f:1", "double:d:1", "pointer:p:1", "string[9]:s:1",
	                                          "bytes[2]:b:1", "backtrace:7", NULL});
	struct dp_fields none = {0};
	struct dp_event_class classes[] = {{.name = "foo", .spec = "foo+0x\"1", .fields = &fields},
	                                   {.name = "bar", .spec = "bar", .fields = &none}};
	struct out o;
	open_out(&o, classes, 2);
	close_and_check(&o,
	                "h, = lines\n"
	                "assert h['type'] == 'header' and h['version'] == 1 and h['generator'] == 'dynprobe'\n"
	                "assert h['clock']['name'] == 'monotonic' and h['clock']['offset_ns'] > 10**18\n"
	                "assert [p['name'] for p in h['probes']] == ['foo', 'bar']\n"
	                "assert h['probes'][0]['spec'] == 'foo+0x\"1'\n"
	                "assert h['probes'][1]['fields'] == []\n"
	                "assert h['probes'][0]['fields'] == [\n"
	                " {'name': 'eax', 'type': 'uint32', 'hex': True}, {'name': 'i', 'type': 'int32'},\n"
	                " {'name': 'f', 'type': 'float'}, {'name': 'd', 'type': 'double'}, {'name': 'p', 'type': 'pointer'},\n"
	                " {'name': 's', 'type': 'string', 'size': 9}, {'name': 'b', 'type': 'bytes', 'size': 2},\n"
	                " {'name': 'backtrace', 'type': 'backtrace', 'size': 7}]\n");
	dp_fields_fini(&fields);
}

Test(json, event_holds_every_value_exactly)
{
	struct dp_fields fields = make_fields((const char *const[]){"reg:rax", "int64:i:1", "uint64:u:1", "double:d:1",
	                                                            "double:inf:1", "pointer:p:1", "string:s:1", "bytes[2]:b:1",
	                                                            "int:bad:1", "string:bad2:1", "backtrace", NULL});
	struct dp_event_class class = {.name = "foo", .spec = "foo", .fields = &fields};
	struct dp_buf b = {0};
	double d = 0.1, inf = (double)INFINITY;
	put_u64(&b, 1 << 8 | 1 << 9);
	put_u64(&b, UINT64_MAX);
	put_u64(&b, (uint64_t)INT64_MIN);
	put_u64(&b, UINT64_MAX);
	dp_buf_put(&b, &d, 8);
	dp_buf_put(&b, &inf, 8);
	put_u64(&b, 0x7f00);
	put_text(&b, "a\"\\\n\x01\xff\xc3\xbc");
	dp_buf_put(&b, "\xab\x01", 2);
	put_u32(&b, 0);
	put_text(&b, "");
	put_u8(&b, 2);
	put_u64(&b, 0x1010);
	put_u64(&b, 0x1010);
	struct out o;
	open_out(&o, &class, 1);
	struct dp_event e = make_event(1000, &b);
	e.comm = "we\"ird\xff";
	e.image = made_up_image;
	dp_writer_event(o.w, &e);
	dp_writer_note(o.w, "probe \"foo\" retired");
	close_and_check(
	        &o,
	        "h, e, n = lines\n"
	        "assert e['type'] == 'event' and e['mono'] == 1000 and e['ts'] == 1000 + h['clock']['offset_ns']\n"
	        "assert e['pid'] == 100 and e['tid'] == 101 and e['comm'] == 'we\"ird\\ufffd' and e['probe'] == 'foo'\n"
	        "assert e['fields'] == {'rax': '0xffffffffffffffff', 'i': -2**63, 'u': 2**64 - 1, 'd': 0.1, 'inf': 'inf',\n"
	        " 'p': '0x7f00', 's': 'a\"\\\\\\n\\x01\\ufffd\\u00fc', 'b': 'ab01', 'bad': None, 'bad2': None, 'backtrace': [\n"
	        " {'addr': '0x1010', 'symbol': 'callee+0x0/0x20 [prog]'}, {'addr': '0x1010', 'symbol': 'caller+0x10/0x10 "
	        "[prog]'}]}\n"
	        "assert list(e['fields'])[0] == 'rax'\n"
	        "assert e['unreadable'] == ['bad', 'bad2']\n"
	        "assert n == {'type': 'note', 'text': 'probe \"foo\" retired'}\n");
	dp_fields_fini(&fields);
	dp_buf_fini(&b);
}

Test(json, event_without_fields_or_image)
{
	struct dp_fields none = {0}, trace = make_fields((const char *const[]){"backtrace", NULL});
	struct dp_event_class classes[] = {{.name = "foo", .spec = "foo", .fields = &none}, {.name = "bar", .spec = "bar", .fields = &trace}};
	struct dp_buf empty = {0}, b = {0};
	put_u8(&b, 2);
	put_u64(&b, 0x1010);
	put_u64(&b, UINT64_C(1) << 62 | 0x2020); /* found by a frame pointer */
	struct out o;
	open_out(&o, classes, 2);
	struct dp_event e = make_event(1, &empty);
	dp_writer_event(o.w, &e);
	e = make_event(2, &b);
	e.probe = 1;
	dp_writer_event(o.w, &e);
	e.probe = 2; /* there is no such class */
	dp_writer_event(o.w, &e);
	close_and_check(&o, "assert len(lines) == 3\n"
	                    "assert lines[1]['fields'] == {} and 'unreadable' not in lines[1]\n"
	                    "assert lines[2]['fields'] == {'backtrace': [{'addr': '0x1010'},"
	                    " {'addr': '0x2020', 'by_frame_pointer': True}]}\n");
	dp_fields_fini(&trace);
	dp_buf_fini(&b);
}

Test(json, random_payloads_give_valid_lines)
{
	struct dp_fields fields = make_fields(
	        (const char *const[]){"string[16]:s:1", "backtrace:3", "bytes[4]:b:1", "float:f:1", "double:d:1", NULL});
	struct dp_event_class class = {.name = "p", .spec = "p", .fields = &fields};
	struct out o;
	open_out(&o, &class, 1);
	srand(6);
	for (int i = 0; i < 3000; i++) {
		uint8_t bytes[80];
		for (size_t j = 0; j < sizeof(bytes); j++)
			bytes[j] = rand() % 3 ? (uint8_t)(rand() % 4) : (uint8_t)rand();
		char comm[4] = {(char)rand(), (char)rand(), (char)rand(), 0};
		struct dp_event e = {
		        .ns = (uint64_t)rand(), .comm = comm, .payload = bytes, .len = (size_t)rand() % sizeof(bytes)};
		dp_writer_event(o.w, &e);
	}
	close_and_check(&o, "assert len(lines) > 100\n");
	dp_fields_fini(&fields);
}

Test(json, summary_is_one_valid_line)
{
	struct dp_summary_probe probes[] = {
	        {.name = "foo",
	         .spec = "foo",
	         .pid = 7,
	         .tactic = "jump",
	         .addr = 0x401000,
	         .recorded = 10,
	         .lost.full = 3,
	         .lost.other = 2},
	        {.name = "bar", .spec = "bar+0x3", .pid = 7, .tag = "DP-TOO-SHORT", .reason = "no \"room\""},
	        {.name = "baz",
	         .spec = "baz",
	         .pid = 7,
	         .tactic = "pun",
	         .tag = "DP-FOREIGN",
	         .reason = "patched",
	         .retired = true},
	};
	struct dp_summary s = {
	        .probe = probes, .n = 3, .pause_attach_ns = 312000, .ended_by = "interrupt", .left_bytes = 5, .left_why = "busy"};
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);
	dp_summary_json(&s, to);
	fclose(to);
	check(text, "s, = lines\n"
	            "assert s['type'] == 'summary' and (s['asked'], s['placed'], s['refused'], s['retired']) == (3, 2, 1, 1)\n"
	            "assert s['tactics'] == {'jump': 1, 'pun': 1} and s['refusals'] == {'DP-TOO-SHORT': 1}\n"
	            "assert s['hits'] == 15 and s['recorded'] == 10 and s['lost']['total'] == 5 and s['lost']['full'] == 3\n"
	            "assert s['record_dir'] is None and s['left_bytes'] == 5 and s['left_why'] == 'busy' and "
	            "s['pause_attach_ns'] == 312000\n"
	            "assert [p['state'] for p in s['probes']] == ['placed', 'refused', 'retired']\n"
	            "assert s['probes'][0]['addr'] == '0x401000' and s['probes'][1]['reason'] == 'no \"room\"'\n");
	free(text);
}

Test(json, system_calls_have_a_title_and_errors_by_name)
{
	struct dp_field field = {
	        .name = (char *)"retval", .type = DP_TYPE_INT, .size = 8, .source = DP_SRC_REG, .display = DP_DISPLAY_RESULT};
	struct dp_fields fields = {&field, 1};
	struct dp_event_class class = {.name = "syscall_x_exit_2", .spec = "x", .fields = &fields, .title = "syscall:x:exit"};
	struct out o;
	struct dp_buf b = {0};
	open_out(&o, &class, 1);
	put_u64(&b, (uint64_t)-13);
	struct dp_event e = make_event(1, &b);
	dp_writer_event(o.w, &e);
	b.len = 0;
	put_u64(&b, (uint64_t)-5000);
	e = make_event(2, &b);
	dp_writer_event(o.w, &e);
	close_and_check(&o, "h, a, b = lines\n"
	                    "assert h['probes'][0]['title'] == 'syscall:x:exit'\n"
	                    "assert h['probes'][0]['fields'] == [{'name': 'retval', 'type': 'int64', 'look': 'result'}]\n"
	                    "assert a['probe'] == 'syscall_x_exit_2' and a['title'] == 'syscall:x:exit'\n"
	                    "assert a['fields'] == {'retval': '-EACCES'}\n"
	                    "assert b['fields'] == {'retval': -5000}\n");
	dp_buf_fini(&b);
}

/* The digits of a second are made once: the next one must not get them. Times below a second have no leading zeros. */
Test(json, times_are_exact_across_seconds)
{
	struct dp_fields none = {0};
	struct dp_event_class class = {.name = "p", .spec = "p", .fields = &none};
	struct dp_buf empty = {0};
	const uint64_t ns[] = {0, 7, 999999999, 1000000000, 1000000001, 1999999999, 2000000000, 1000000001, 12345678901234567};
	struct out o;
	open_out(&o, &class, 1);
	for (size_t i = 0; i < sizeof(ns) / sizeof(*ns); i++) {
		struct dp_event e = make_event(ns[i], &empty);
		dp_writer_event(o.w, &e);
	}
	close_and_check(
	        &o, "offset = lines[0]['clock']['offset_ns']\n"
	            "mono = [0, 7, 999999999, 1000000000, 1000000001, 1999999999, 2000000000, 1000000001, 12345678901234567]\n"
	            "assert [e['mono'] for e in lines[1:]] == mono\n"
	            "assert [e['ts'] - offset for e in lines[1:]] == mono\n");
}
