/* SPDX-License-Identifier: MIT */
/* Recorded traces, read back: events as they were written, whatever the headers; and any damage. */
#include "helper_output.h"
#include "output/ctf/sidecar.h"
#include "output/trace/layout.h"
#include "output/trace/merged.h"
#include "output/trace/names.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLASSES 40

static struct dp_fields fields;
static struct dp_event_class class[CLASSES];
static char names[CLASSES][8];
static char *dir;
static struct dp_writer *w;

static void set_up(void)
{
	fields = make_fields((const char *const[]){"reg:rdi", "string:s:0x1000", "int:bad:0x10", "backtrace:4", NULL});
	for (int i = 0; i < CLASSES; i++) {
		snprintf(names[i], sizeof(names[i]), "p%d", i);
		class[i] = (struct dp_event_class){.name = names[i], .spec = "main", .fields = &fields};
	}
	dir = make_dir();
	must(dp_ctf_writer_create(dir, class, CLASSES, &w));
}

static void tear_down(void)
{
	remove_tree(dir);
	dp_fields_fini(&fields);
}

TestSuite(trace, .init = set_up, .fini = tear_down);

static void put(uint64_t lane, unsigned probe, uint64_t ns, pid_t tid, const char *text)
{
	struct dp_buf payload = {0};
	put_u64(&payload, 1u << 2); /* the third field is unreadable */
	put_u64(&payload, ns ^ probe);
	put_text(&payload, text);
	put_u32(&payload, 0);
	put_u8(&payload, 1);
	put_u64(&payload, 0x4000 + probe);
	dp_writer_event(w, &(struct dp_event){.ns = ns,
	                                      .pid = 100,
	                                      .tid = tid,
	                                      .inner_tid = tid - 90,
	                                      .inner_pid = 1,
	                                      .lane = lane,
	                                      .comm = "worker",
	                                      .probe = probe,
	                                      .payload = payload.data,
	                                      .len = payload.len});
	dp_buf_fini(&payload);
}

struct reading {
	struct dp_merged *m;
	const struct dp_event_class *class;
	size_t nclasses;
};

static struct dp_error *try_open(struct reading *r)
{
	*r = (struct reading){0};
	must(dp_merged_create(&r->m));
	DP_TRY(dp_merged_add(r->m, dir));
	return dp_merged_classes(r->m, &r->class, &r->nclasses);
}

static struct reading open_trace(void)
{
	struct reading r;
	must(try_open(&r));
	cr_assert_eq(r.nclasses, CLASSES);
	return r;
}

static void show(const struct dp_field *field, const struct dp_field_value *v, void *data)
{
	struct dp_buf *b = data;
	if (v->unreadable)
		dp_buf_printf(b, " %s?", field->name);
	else if (field->type == DP_TYPE_STRING)
		dp_buf_printf(b, " %s='%s'", field->name, (const char *)v->bytes);
	else if (field->type == DP_TYPE_BACKTRACE)
		dp_buf_printf(b, " %s:%zu", field->name, v->n);
	else
		dp_buf_printf(b, " %s=%" PRIx64, field->name, v->u);
}

/* All events that can be read, a line each. */
static struct dp_buf text_of(struct reading *r)
{
	struct dp_buf b = {0};
	struct dp_event e;
	while (dp_merged_next(r->m, &e)) {
		const struct dp_event_class *c = &r->class[e.probe];
		cr_assert_lt(e.probe, r->nclasses);
		dp_buf_printf(&b, "%" PRIu64 " %s %s[%d/%d %d/%d]", e.ns, c->name, e.comm, e.pid, e.tid, e.inner_pid,
		              e.inner_tid);
		cr_assert(dp_fields_decode(c->fields, e.payload, e.len, show, &b));
		dp_buf_printf(&b, "\n");
	}
	return b;
}

static void expect(const char *wanted)
{
	struct reading r = open_trace();
	struct dp_buf b = text_of(&r);
	cr_expect_str_eq(dp_buf_str(&b), wanted);
	dp_buf_fini(&b);
	dp_merged_destroy(r.m);
}

Test(trace, events_with_short_and_long_headers)
{
	static const uint64_t gap[] = {
	        0, (1u << 27) - 1, 1u << 27, (1u << 27) + 1, 1, UINT64_C(1) << 33, (UINT64_C(3) << 27) + 5};
	static const unsigned id[] = {30, 31, 39, 0};
	uint64_t ns = (UINT64_C(1) << 40) + 12345;
	struct dp_buf wanted = {0};
	for (size_t i = 0; i < sizeof(gap) / sizeof(*gap); i++)
		for (size_t k = 0; k < sizeof(id) / sizeof(*id); k++) {
			ns += gap[i];
			put(7, id[k], ns, 101, "a text");
			dp_buf_printf(&wanted,
			              "%" PRIu64 " p%u worker[100/101 1/11] rdi=%" PRIx64 " s='a text' bad? backtrace:1\n", ns,
			              id[k], ns ^ id[k]);
		}
	must(dp_writer_close(w));
	expect(dp_buf_str(&wanted));
	dp_buf_fini(&wanted);
}

/* Lanes are merged; a lane passes from thread to thread. */
Test(trace, lanes_and_threads_in_the_order_of_time)
{
	struct dp_buf wanted = {0};
	for (uint64_t i = 0; i < 5000; i++) {
		const int tid = 101 + (int)(i / 700), length = (int)(i % 19);
		put(i % 7, (unsigned)(i % CLASSES), 1000 + i, tid, &"0123456789012345678"[length]);
		dp_buf_printf(&wanted, "%" PRIu64 " p%u worker[100/%d 1/%d] rdi=%" PRIx64 " s='%s' bad? backtrace:1\n", 1000 + i,
		              (unsigned)(i % CLASSES), tid, tid - 90, (1000 + i) ^ (i % CLASSES), &"0123456789012345678"[length]);
	}
	must(dp_writer_close(w));
	expect(dp_buf_str(&wanted));
	dp_buf_fini(&wanted);
}

Test(trace, limits_and_losses)
{
	struct dp_event e;
	uint64_t begin, end, n = 0;
	for (uint64_t i = 0; i < 5000; i++) {
		put(i % 3, 0, 1000 + i, 101, "text");
		if (i == 2500) {
			dp_writer_lost(w, 17);
			must(dp_writer_flush(w));
		}
	}
	dp_writer_lost(w, 40);
	must(dp_writer_close(w));
	struct reading r = open_trace();
	cr_assert(dp_merged_bounds(r.m, &begin, &end));
	cr_expect_eq(begin, 1000);
	cr_expect_eq(end, 5999);
	dp_merged_limit(r.m, 4321, 5432);
	while (dp_merged_next(r.m, &e))
		cr_expect_eq(e.ns, 4321 + n++);
	cr_expect_eq(n, 5432 - 4321 + 1);
	dp_merged_destroy(r.m);
	r = open_trace();
	while (dp_merged_next(r.m, &e)) {
	}
	cr_expect_eq(dp_merged_lost(r.m), 40);
	dp_merged_destroy(r.m);
}

/* ---- damage ---------------------------------------------------------------------------------------------------------------- */

struct file {
	char *path;
	uint8_t *bytes;
	size_t n;
};

static struct file file_of(const char *name)
{
	struct file f = {.bytes = malloc((size_t)1 << 20)};
	cr_assert_geq(asprintf(&f.path, "%s/%s", dir, name), 0);
	FILE *from = fopen(f.path, "re");
	cr_assert_not_null(from, "%s", f.path);
	f.n = fread(f.bytes, 1, (size_t)1 << 20, from);
	fclose(from);
	return f;
}

static void write_file(const struct file *f, size_t n)
{
	FILE *to = fopen(f->path, "we");
	cr_assert_not_null(to);
	cr_assert_eq(fwrite(f->bytes, 1, n, to), n);
	fclose(to);
}

static void file_fini(struct file *f)
{
	free(f->path);
	free(f->bytes);
}

static void count(const char *text, void *data)
{
	cr_expect_neq(*text, '\0');
	++*(unsigned *)data;
}

/* Reads what is left. Where a stream is cut, only events before the cut may be there, unchanged. */
static void read_damaged(const struct dp_buf *whole, bool prefix)
{
	struct reading r;
	unsigned damages = 0;
	struct dp_error *err = try_open(&r);
	if (!err) {
		struct dp_buf b = text_of(&r);
		dp_merged_damages(r.m, count, &damages);
		cr_expect(!prefix || (b.len <= whole->len && !memcmp(dp_buf_str(&b), whole->data, b.len)));
		cr_expect(!prefix || b.len == whole->len || damages);
		dp_buf_fini(&b);
	} else {
		cr_expect_eq(err->tag, DP_TAG_BAD_TRACE);
	}
	dp_error_destroy(err);
	dp_merged_destroy(r.m);
}

static struct dp_buf record_some(unsigned n)
{
	for (uint64_t i = 0; i < n; i++)
		put(0, (unsigned)(i % CLASSES), 1000 + i, 101 + (int)(i / 50), "text");
	must(dp_writer_close(w));
	struct reading r = open_trace();
	struct dp_buf whole = text_of(&r);
	dp_merged_destroy(r.m);
	return whole;
}

Test(trace, stream_cut_at_any_place_is_read_up_to_there)
{
	struct dp_buf whole = record_some(200);
	struct file f = file_of("events_1");
	for (size_t n = 1; n < f.n; n += n % 4096 < 130 ? 1 : 61) {
		write_file(&f, n);
		read_damaged(&whole, n % 4096);
	}
	file_fini(&f);
	dp_buf_fini(&whole);
}

/* Every byte with several values: no crash, no endless loop (ASan's build looks for reads outside). */
static void change_each(const char *name, size_t step)
{
	static const uint8_t changes[] = {0x01, 0x1f, 0x80, 0xff};
	struct dp_buf whole = record_some(120);
	struct file f = file_of(name);
	for (size_t i = 0; i < f.n; i += step)
		for (size_t k = 0; k < sizeof(changes); k++) {
			f.bytes[i] ^= changes[k];
			write_file(&f, f.n);
			read_damaged(&whole, false);
			f.bytes[i] ^= changes[k];
		}
	file_fini(&f);
	dp_buf_fini(&whole);
}

Test(trace, any_byte_of_a_stream_may_be_damaged)
{
	change_each("events_1", 3);
}

Test(trace, any_byte_of_the_classes_may_be_damaged)
{
	change_each("dynprobe/classes.json", 13);
}

Test(trace, any_byte_of_the_names_may_be_damaged)
{
	change_each("dynprobe/names", 1);
}

/* ---- descriptions ---------------------------------------------------------------------------------------------------------- */

#define HEAD "{\"dynprobe\":1,\"uuid\":\"00112233445566778899aabbccddeeff\",\"clock_offset_ns\":5,\"classes\":["

static bool parses(const char *text)
{
	struct dp_trace_layout l;
	struct dp_error *err = dp_trace_layout_parse(text, strlen(text), &l);
	if (err)
		cr_expect(err->tag == DP_TAG_BAD_TRACE || err->tag == DP_TAG_SYNTAX);
	else
		dp_trace_layout_fini(&l);
	dp_error_destroy(err);
	return !err;
}

#define FIELD(members) HEAD "{\"name\":\"p\",\"fields\":[{\"name\":\"f\"," members "}]}]}"

Test(trace, descriptions_that_no_recorder_makes_are_refused, .init = NULL, .fini = NULL)
{
	cr_expect(parses(HEAD "]}"));
	cr_expect(parses(FIELD("\"type\":0,\"size\":4")));
	static const char *const bad[] = {
	        "",
	        "[]",
	        "{}",
	        HEAD "]",
	        HEAD "{}]}",
	        HEAD "{\"name\":\"p\"}]}",
	        FIELD("\"type\":0"),
	        FIELD("\"type\":0,\"size\":3"),
	        FIELD("\"type\":0,\"size\":16"),
	        FIELD("\"type\":0,\"size\":-1"),
	        FIELD("\"type\":9,\"size\":4"),
	        FIELD("\"type\":-1,\"size\":4"),
	        FIELD("\"type\":2,\"size\":2"),
	        FIELD("\"type\":3,\"size\":4"),
	        FIELD("\"type\":4,\"size\":0"),
	        FIELD("\"type\":4,\"size\":60000"),
	        FIELD("\"type\":5,\"size\":65536"),
	        FIELD("\"type\":5,\"size\":8,\"display\":7"),
	        FIELD("\"type\":0,\"size\":4,\"display\":7"),
	        FIELD("\"type\":0,\"size\":4,\"display\":99"),
	        FIELD("\"type\":6,\"size\":256"),
	        FIELD("\"type\":6,\"size\":4,\"may_fail\":true"),
	        FIELD("\"type\":0,\"size\":4,\"names\":[1]"),
	        FIELD("\"type\":4,\"size\":4,\"names\":[]"),
	        HEAD "{\"name\":\"p\",\"format\":\"%d\",\"fields\":[]}]}",
	        HEAD "{\"name\":\"p\",\"format\":\"\\\"%d\\\", a\",\"fields\":[]}]}",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		cr_expect_not(parses(bad[i]), "%s", bad[i]);
}

Test(trace, names_by_process_and_time, .init = NULL, .fini = NULL)
{
	static const char text[] =
	        "{\"type\":\"process\",\"pid\":7,\"ns\":100,\"image\":1,\"exe\":\"/a\"}\n"
	        "{\"type\":\"frame\",\"image\":1,\"pc\":\"0x10\",\"symbol\":\"old\",\"function\":\"o\"}\n"
	        "{\"type\":\"process\",\"pid\":7,\"ns\":200,\"image\":2,\"exe\":\"/b\"}\n"
	        "{\"type\":\"frame\",\"image\":2,\"pc\":\"0x10\",\"symbol\":\"new\",\"readable\":\"New\",\"function\":\"n\","
	        "\"begins_thread\":true}\n"
	        "{\"type\":\"by_pointer\",\"image\":2,\"pc\":\"0x10\"}\n"
	        "{\"type\":\"of a later version\"}\n"
	        "{\"type\":\"end\"}\n";
	struct dp_trace_names *n;
	struct dp_trace_thread t;
	must(dp_trace_names_parse(text, sizeof(text) - 1, &n));
	static const struct {
		uint64_t ns, until;
		const char *exe, *readable;
	} wanted[] = {{50, 200, "/a", "old"}, {199, 200, "/a", "old"}, {200, UINT64_MAX, "/b", "New"}};
	for (size_t i = 0; i < 3; i++) {
		dp_trace_names_find(n, 7, 8, wanted[i].ns, &t);
		cr_expect_eq(t.until, wanted[i].until);
		cr_expect_str_eq(t.exe, wanted[i].exe);
		cr_assert_not_null(t.image);
		const struct dp_code_name *name = dp_image_code_name(t.image, 0x10, false);
		cr_assert_not_null(name);
		cr_expect_str_eq(name->readable, wanted[i].readable);
		cr_expect_null(dp_image_code_name(t.image, 0x11, false));
	}
	uint64_t frames[] = {0x10, 0x20, 0x30};
	dp_trace_names_mark(n, t.image, (uint8_t *)frames, 3);
	cr_expect_eq(frames[0], 0x10);
	cr_expect_eq(frames[1], UINT64_C(0x4000000000000020));
	cr_expect_eq(frames[2], 0x30);
	dp_trace_names_find(n, 8, 8, 150, &t);
	cr_expect_null(t.image);
	dp_trace_names_destroy(n);
}

/* What --pending records: an image for each session, and the older one is seen last. */
Test(trace, names_of_images_that_are_in_use_at_once, .init = NULL, .fini = NULL)
{
	static const char text[] = "{\"type\":\"process\",\"pid\":7,\"ns\":100,\"image\":2,\"exe\":\"/a\"}\n"
	                           "{\"type\":\"frame\",\"image\":2,\"pc\":\"0x10\",\"symbol\":\"late\",\"function\":\"l\"}\n"
	                           "{\"type\":\"process\",\"pid\":7,\"ns\":110,\"image\":1,\"exe\":\"/a\"}\n"
	                           "{\"type\":\"frame\",\"image\":1,\"pc\":\"0x10\",\"symbol\":\"old\",\"function\":\"o\"}\n"
	                           "{\"type\":\"frame\",\"image\":1,\"pc\":\"0x20\",\"symbol\":\"first\",\"function\":\"f\"}\n"
	                           "{\"type\":\"by_pointer\",\"image\":1,\"pc\":\"0x20\"}\n"
	                           "{\"type\":\"process\",\"pid\":7,\"ns\":120,\"image\":3,\"exe\":\"/a\"}\n"
	                           "{\"type\":\"end\"}\n";
	struct dp_trace_names *n;
	struct dp_trace_thread t, first;
	must(dp_trace_names_parse(text, sizeof(text) - 1, &n));
	dp_trace_names_find(n, 7, 7, 100, &first);
	for (uint64_t ns = 90; ns <= 130; ns += 10) {
		dp_trace_names_find(n, 7, 7, ns, &t);
		cr_assert_not_null(t.image);
		cr_expect_eq(t.image, first.image, "of image 3 nothing is named");
		cr_expect_str_eq(dp_image_code_name(t.image, 0x10, true)->symbol, "late");
		cr_expect_str_eq(dp_image_code_name(t.image, 0x20, true)->symbol, "first");
		uint64_t frames[] = {0x20, 0x10};
		dp_trace_names_mark(n, t.image, (uint8_t *)frames, 2);
		cr_expect_eq(frames[1], UINT64_C(0x4000000000000010));
	}
	dp_trace_names_destroy(n);
}

static uint64_t until(struct dp_trace_names *n, pid_t pid, uint64_t ns)
{
	struct dp_trace_thread t;
	dp_trace_names_find(n, pid, pid, ns, &t);
	return t.exe ? t.until : 0;
}

Test(trace, processes_are_found_among_others, .init = NULL, .fini = NULL)
{
	struct dp_buf text = {0};
	struct dp_trace_names *n;
	for (int pid = 9; pid > 0; pid -= 2)
		for (int k = 5; k > 0; k--)
			dp_buf_printf(&text, "{\"type\":\"process\",\"pid\":%d,\"ns\":%d,\"image\":%d,\"exe\":\"/a\"}\n", pid,
			              pid + 10 * k, k);
	must(dp_trace_names_parse(dp_buf_str(&text), text.len, &n));
	for (int pid = 0; pid < 12; pid++)
		for (unsigned k = 0; k < 7; k++) {
			const uint64_t at = (unsigned)pid + 10 * k, next = k == 0 ? at + 20 : k < 5 ? at + 10 : UINT64_MAX;
			cr_expect_eq(until(n, pid, at), pid & 1 && pid < 10 ? next : 0, "%d at %" PRIu64, pid, at);
			cr_expect_eq(until(n, pid, at + 9), pid & 1 && pid < 10 ? next : 0, "%d at %" PRIu64, pid, at + 9);
		}
	dp_trace_names_destroy(n);
	dp_buf_fini(&text);
}
