/* SPDX-License-Identifier: MIT */
/* Files of newer writers, of older ones, and hostile ones. */
#include "helper_snapshot.h"
#include "pmodules/file/file_internal.h"

#include <criterion/criterion.h>
#include <sys/resource.h>
#include <zstd.h>

/* ---- files made by hand */

struct part {
	uint32_t tag, flags;
	const void *bytes;
	size_t n;
	uint64_t raw; /* 0: the same as n */
};

static void seal(struct dp_buf *b)
{
	struct dp_file_header h;
	memcpy(&h, b->data, sizeof(h));
	h.crc = 0;
	h.crc = dp_file_crc(dp_file_crc(0, &h, sizeof(h)), b->data + sizeof(h), h.nsections * sizeof(struct dp_file_section));
	memcpy(b->data, &h, sizeof(h));
}

static struct dp_buf file_of(const struct part *part, uint32_t n)
{
	struct dp_buf b = {0};
	struct dp_file_header h = {.version = DP_FILE_VERSION, .minor = 7, .nsections = n};
	memcpy(h.magic, DP_FILE_MAGIC, sizeof(h.magic));
	dp_buf_put(&b, &h, sizeof(h));
	uint64_t at = sizeof(h) + n * sizeof(struct dp_file_section);
	for (uint32_t i = 0; i < n; i++) {
		struct dp_file_section s = {.tag = part[i].tag, .flags = part[i].flags, .offset = at, .size = part[i].n};
		s.raw = part[i].raw ? part[i].raw : part[i].n;
		s.crc = dp_file_crc(0, part[i].bytes, part[i].n);
		dp_buf_put(&b, &s, sizeof(s));
		at += part[i].n;
	}
	for (uint32_t i = 0; i < n; i++)
		dp_buf_put(&b, part[i].bytes, part[i].n);
	seal(&b);
	return b;
}

static struct dp_snapshot *read_all(struct dp_buf *b)
{
	struct dp_snapshot *s = NULL;
	struct dp_error *err = dp_snapshot_read_bytes(b->data, b->len, &s);
	cr_assert(!err, "%s", err ? err->message : "");
	dp_buf_fini(b);
	return s;
}

/* Refused with this tag and these words, and without leaks. */
static void refused(struct dp_buf *b, const char *words)
{
	struct dp_snapshot *s = NULL;
	struct dp_error *err = dp_snapshot_read_bytes(b->data, b->len, &s);
	cr_assert(err && !s, "the file was not refused");
	cr_assert_eq(err->tag, DP_TAG_BAD_SNAPSHOT);
	cr_assert(strstr(err->message, words), "'%s' is not in: %s", words, err->message);
	cr_assert(strstr(err->message, "byte ") || strstr(err->message, "section "), "the message names no place: %s",
	          err->message);
	dp_error_destroy(err);
	dp_buf_fini(b);
}

#define TAG(name) DP_SECTION((name)[0], (name)[1], (name)[2], (name)[3])
#define RAW(s)    (s), sizeof(s) - 1
#define ONE(t, s) (const struct part[]){{TAG(t), 0, RAW(s), 0}}, 1

/* ---- newer and older writers */

Test(file_hostile, what_newer_writers_add_is_passed_over)
{
	/*
	 * Unknown fields of every form, in the strings, the snapshot and a thread; and unknown sections, one with an unknown
	 * packing.
	 */
	static const char texts[] = "\x10\x05"
	                            "\x0a\x03"
	                            "abc"
	                            "\x12\x02"
	                            "xx"
	                            "\x0a\x00"
	                            "\x0a\x01"
	                            "z";
	static const char head[] = "\xf8\x3f\x01"
	                           "\x1a\x01"
	                           "q"
	                           "\x28\xf6\x01"
	                           "\xfd\x3f"
	                           "1234"
	                           "\xf9\x3f"
	                           "12345678"
	                           "\x30\x01";
	static const char threads[] = "\xc2\x02\x0e"
	                              "\x08\x54"
	                              "\xf8\x3f\x07"
	                              "\xfa\x3f\x02"
	                              "??"
	                              "\x10\x03"
	                              "\x20\x01";
	const struct part parts[] = {{TAG("NEW1"), 0, RAW("whatever"), 0},
	                             {TAG("NEW2"), 0x80, RAW("packed in a way of the future"), 1000},
	                             {TAG("THRD"), 0, threads, sizeof(threads) - 1, 0},
	                             {TAG("HEAD"), 0, head, sizeof(head) - 1, 0},
	                             {TAG("STRS"), 0, texts, sizeof(texts) - 1, 0}};
	struct dp_buf bad_head = file_of(parts, 5);
	refused(&bad_head, "field's wire type does not fit"); /* mode as bytes: a newer writer may not change a wire type */
	const char good[] = "\xf8\x3f\x01"
	                    "\x28\xf6\x01"
	                    "\xfd\x3f"
	                    "1234"
	                    "\xf9\x3f"
	                    "12345678"
	                    "\x30\x01";
	struct part again[5];
	memcpy(again, parts, sizeof(again));
	again[3].bytes = good;
	again[3].n = sizeof(good) - 1;
	struct dp_buf b = file_of(again, 5);
	struct dp_snapshot *s = read_all(&b);
	cr_assert_eq(s->pid, 123);
	cr_assert_str_eq(s->application, "abc");
	cr_assert(s->threads && s->nthreads == 1 && s->threads->tid == 42 && s->threads->is_fault);
	cr_assert_str_eq(s->threads->name, "z");
	/* Fields that an older writer did not know have their defaults. */
	cr_assert(s->threads->state == '?' && s->threads->syscall == -1 && !s->threads->fault_reason && s->process_state == '?');
	cr_assert(!strcmp(s->hostname, "") && s->argv && !s->argv[0] && !s->environ && !s->probe);
	dp_snapshot_destroy(s);
}

Test(file_hostile, what_newer_writers_cannot_do_without_is_refused)
{
	struct dp_buf b = file_of((const struct part[]){{TAG("NEED"), DP_FILE_NEEDED, RAW("x"), 0}}, 1);
	refused(&b, "a newer dynprobe wrote");
	b = file_of(NULL, 0);
	b.data[8] = 2;
	refused(&b, "version 2");
}

Test(file_hostile, unknown_values_of_enumerations_have_a_place)
{
	/* A global of kind 99 and state 99. */
	struct dp_buf b = file_of(ONE("GLOB", "\x92\x03\x04\x20\x63\x28\x63"));
	struct dp_snapshot *s = read_all(&b);
	cr_assert(s->globals->kind == DP_VAR_BOTTOM && s->globals->state == DP_VAR_ABSENT);
	dp_snapshot_destroy(s);
}

Test(file_hostile, version_1_is_read_for_ever)
{
	char path[512];
	struct dp_snapshot *s = NULL, *made = helper_version1();
	snprintf(path, sizeof(path), "%.*s/../golden-1.dps", (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__);
	struct dp_error *err = dp_snapshot_read_file(path, &s);
	cr_assert(!err, "%s", err ? err->message : "");
	helper_same(made, s);
	dp_snapshot_destroy(s);
	dp_snapshot_destroy(made);
}

/* ---- damage: DP-BAD-SNAPSHOT */

Test(file_hostile, every_cut_and_every_damaged_byte_is_noticed)
{
	struct dp_snapshot *s = helper_full(), *back = NULL;
	struct dp_buf b = {0};
	cr_assert(!dp_snapshot_write_bytes(s, &b));
	for (size_t n = 0; n < b.len; n++) {
		struct dp_error *err = dp_snapshot_read_bytes(b.data, n, &back);
		cr_assert(err && err->tag == DP_TAG_BAD_SNAPSHOT, "cut at %zu of %zu", n, b.len);
		dp_error_destroy(err);
	}
	for (size_t i = 0; i < b.len; i++) {
		const bool unused = i >= sizeof(struct dp_file_header) + 7 * sizeof(struct dp_file_section) &&
		                    i < sizeof(struct dp_file_header) + 8 * sizeof(struct dp_file_section);
		b.data[i] ^= 0x10;
		struct dp_error *err = dp_snapshot_read_bytes(b.data, b.len, &back);
		cr_assert(unused || (err && err->tag == DP_TAG_BAD_SNAPSHOT), "byte %zu of %zu", i, b.len);
		dp_error_destroy(err);
		b.data[i] ^= 0x10;
		if (!err)
			back = dp_snapshot_destroy(back);
	}
	dp_buf_fini(&b);
	dp_snapshot_destroy(s);
}

Test(file_hostile, lengths_are_held_against_what_is_left)
{
	struct dp_buf b = file_of(ONE("HEAD", "\x08"));
	refused(&b, "byte 0 (uncompressed): a number is not terminated");
	b = file_of(ONE("HEAD", "\x28\x02\xfa\x3f\x7f"));
	refused(&b, "byte 2 (uncompressed): a field exceeds");
	b = file_of(ONE("HEAD", "\xfa\x3f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
	refused(&b, "a field exceeds its record");
	b = file_of(ONE("HEAD", "\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
	refused(&b, "a number is not terminated");
	b = file_of(ONE("HEAD", "\xf9\x3f"
	                        "1234567"));
	refused(&b, "exceeds its record");
	b = file_of(ONE("HEAD", "\x2b\x01"));
	refused(&b, "unknown wire type");
	b = file_of(ONE("HEAD", "\x00\x01"));
	refused(&b, "has no number");
	b = file_of(ONE("HEAD", "\x18\x09"));
	refused(&b, "names text 9, and there are 0");
	b = file_of((const struct part[]){{TAG("STRS"), 0, RAW("\x0a\x00"), 0}, {TAG("STRS"), 0, RAW("\x0a\x00"), 0}}, 2);
	refused(&b, "two sections of texts");
}

Test(file_hostile, sections_lie_about_their_place_and_size)
{
	struct dp_buf b = file_of(ONE("HEAD", "\x28\x02"));
	struct dp_file_section *s = (struct dp_file_section *)(b.data + sizeof(struct dp_file_header));
	s->offset = UINT64_MAX;
	seal(&b);
	refused(&b, "not within the file");
	b = file_of(ONE("HEAD", "\x28\x02"));
	s = (struct dp_file_section *)(b.data + sizeof(struct dp_file_header));
	s->size = UINT64_MAX - s->offset + 1;
	seal(&b);
	refused(&b, "not within the file");
	b = file_of((const struct part[]){{TAG("HEAD"), DP_FILE_ZSTD, RAW("\x28\x02"), 300u << 20}}, 1);
	refused(&b, "size is impossible");
	b = file_of((const struct part[]){{TAG("HEAD"), 0, RAW("\x28\x02"), 3}}, 1);
	refused(&b, "size is impossible");
	b = file_of((const struct part[]){{TAG("HEAD"), DP_FILE_ZSTD, RAW("\x28\x02"), 50}}, 1);
	refused(&b, "is damaged");
	b = file_of(NULL, 0);
	memcpy(b.data + offsetof(struct dp_file_header, nsections), "\xff\xff\xff\xff", 4);
	refused(&b, "too many sections");
}

/* ---- bombs: bounded memory */

static size_t most_memory(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (size_t)u.ru_maxrss << 10;
}

static struct dp_buf packed(const char *name, const struct dp_buf *raw, unsigned times)
{
	struct part parts[16];
	struct dp_buf small = {0};
	const size_t bound = ZSTD_compressBound(raw->len);
	uint8_t *room = dp_buf_grow(&small, bound);
	small.len = ZSTD_compress(room, bound, raw->data, raw->len, 1);
	for (unsigned i = 0; i < times; i++)
		parts[i] = (struct part){TAG(name), DP_FILE_ZSTD, small.data, small.len, raw->len};
	struct dp_buf b = file_of(parts, times);
	dp_buf_fini(&small);
	return b;
}

Test(file_hostile, a_few_bytes_do_not_become_gigabytes)
{
	struct dp_buf raw = {0};
	for (unsigned i = 0; i < (8u << 20) + 1; i++) /* empty globals: 3 bytes each, about 300 in memory */
		dp_buf_put(&raw, "\x92\x03\x00", 3);
	struct dp_buf b = packed("GLOB", &raw, 1);
	cr_assert_lt(b.len, 10000);
	refused(&b, "256 MiB");
	memset(raw.data, 0, raw.len);
	b = packed("STRS", &raw, 16); /* the same zeros 16 times */
	refused(&b, "larger than the limit");
	raw.len = 0;
	for (unsigned i = 0; i < (8u << 20) + 1; i++)
		dp_buf_put(&raw, "\x0a\x00", 2);
	b = packed("STRS", &raw, 1);
	refused(&b, "too many texts");
	dp_buf_fini(&raw);
	cr_assert_lt(most_memory(), 1500u << 20);
}

Test(file_hostile, nesting_has_an_end)
{
	struct dp_buf raw = {0}, outer = {0};
	for (unsigned i = 0; i < 5000; i++) { /* each a child of the next */
		uint8_t head[8] = {0xf2, 0x01};
		size_t n = 2, len = raw.len;
		for (; len >= 0x80; len >>= 7)
			head[n++] = (uint8_t)(len | 0x80);
		head[n++] = (uint8_t)len;
		dp_buf_put(&outer, head, n);
		dp_buf_put(&outer, raw.data, raw.len);
		const struct dp_buf swap = raw;
		raw = outer;
		outer = swap;
		outer.len = 0;
	}
	uint8_t head[8] = {0x92, 0x03}; /* in a global */
	size_t n = 2, len = raw.len;
	for (; len >= 0x80; len >>= 7)
		head[n++] = (uint8_t)(len | 0x80);
	head[n++] = (uint8_t)len;
	dp_buf_put(&outer, head, n);
	dp_buf_put(&outer, raw.data, raw.len);
	struct dp_buf b = file_of((const struct part[]){{TAG("GLOB"), 0, outer.data, outer.len, 0}}, 1);
	refused(&b, "nested too deeply");
	dp_buf_fini(&raw);
	dp_buf_fini(&outer);
}

Test(file_hostile, a_million_arguments_take_no_hours)
{
	struct dp_buf raw = {0};
	for (unsigned i = 0; i < 1000000; i++)
		dp_buf_put(&raw, "\x40\x01", 2);
	struct dp_buf b =
	        file_of((const struct part[]){{TAG("STRS"), 0, RAW("\x0a\x01x"), 0}, {TAG("HEAD"), 0, raw.data, raw.len, 0}}, 2);
	struct dp_snapshot *s = read_all(&b);
	cr_assert(!strcmp(s->argv[999999], "x") && !s->argv[1000000]);
	dp_snapshot_destroy(s);
	dp_buf_fini(&raw);
}
