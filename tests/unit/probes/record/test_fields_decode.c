/* SPDX-License-Identifier: MIT */
/* The target can overwrite payloads: the decoder never reads outside of one. */
#include "agent/abi.h"
#include "base/buf.h"
#include "probes/probes.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(struct dp_fields *f, const char *context)
{
	cr_assert_null(dp_fields_add(f, context), "%s", context);
}

struct seen {
	struct dp_field_value value[64];
	size_t n;
};

static void keep(const struct dp_field *field, const struct dp_field_value *value, void *data)
{
	struct seen *s = data;
	(void)field;
	s->value[s->n++] = *value;
}

static void put(struct dp_buf *b, uint64_t v, size_t n)
{
	dp_buf_put(b, &v, n);
}

Test(fields_decode, integers_extend_by_their_sign)
{
	struct dp_fields f = {0};
	struct dp_buf b = {0};
	struct seen s = {0};
	float narrow = -2.5f;
	add(&f, "reg:al");
	add(&f, "reg:rax");
	add(&f, "int8:a:1");
	add(&f, "uint16:b:1");
	add(&f, "int:c:1");
	add(&f, "int64:d:1");
	add(&f, "float:e:1");
	put(&b, 1ull << 3, 8);
	put(&b, 0xff, 1);
	put(&b, 0x1122334455667788, 8);
	put(&b, 0x80, 1);
	put(&b, 0, 2);
	put(&b, 0xfffffffe, 4);
	put(&b, 0x8000000000000000, 8);
	dp_buf_put(&b, &narrow, 4);
	cr_assert(dp_fields_decode(&f, b.data, b.len, keep, &s));
	cr_assert_eq(s.n, 7);
	cr_assert_eq(s.value[0].u, 0xff);
	cr_assert_eq(s.value[1].u, 0x1122334455667788);
	cr_assert_eq((int64_t)s.value[2].u, -128);
	cr_assert(s.value[3].unreadable);
	cr_assert_eq((int64_t)s.value[4].u, -2);
	cr_assert_eq((int64_t)s.value[5].u, INT64_MIN);
	cr_assert_eq(s.value[6].f, -2.5);
	cr_assert_not(s.value[0].unreadable);
	cr_assert_eq(dp_fields_payload_length(&f, b.data, b.len), b.len);
	dp_fields_fini(&f);
	dp_buf_fini(&b);
}

Test(fields_decode, variable_lengths_and_trailing_padding)
{
	struct dp_fields f = {0};
	struct dp_buf b = {0};
	struct seen s = {0};
	add(&f, "string[6]:s:1");
	add(&f, "backtrace:3");
	add(&f, "bytes[2]:b:1");
	put(&b, 0, 8);
	dp_buf_put(&b, "hello", 6);
	put(&b, 2, 1);
	put(&b, 0x1000, 8);
	put(&b, 0x2000, 8);
	put(&b, 0xbbaa, 2);
	size_t used = b.len;
	put(&b, 0, 5);
	cr_assert(dp_fields_decode(&f, b.data, b.len, keep, &s));
	cr_assert_eq(s.value[0].n, 5);
	cr_assert_eq(s.value[1].n, 2);
	cr_assert_eq(s.value[2].bytes[1], 0xbb);
	cr_assert_eq(dp_fields_payload_length(&f, b.data, b.len), used);
	dp_fields_fini(&f);
	dp_buf_fini(&b);
}

Test(fields_decode, a_string_at_null_is_told_from_an_unreadable_one_and_from_a_text)
{
	struct dp_fields f = {0};
	struct dp_buf b = {0};
	struct seen s = {0};
	add(&f, "string:a:1");
	add(&f, "string:b:1");
	add(&f, "string[2]:c:1");
	add(&f, "string:d:1");
	put(&b, 1 << 1 | 1 << 2 | 1 << 3, 8);
	dp_buf_put(&b, "NULL", 5);
	dp_buf_put(&b, "NULL", 5);
	dp_buf_put(&b, "N", 2);
	dp_buf_put(&b, "", 1);
	cr_assert(dp_fields_decode(&f, b.data, b.len, keep, &s));
	static const bool unreadable[] = {false, true, true, true}, null[] = {false, true, true, false};
	for (size_t i = 0; i < 4; i++) {
		cr_expect_eq(s.value[i].unreadable, unreadable[i], "%zu", i);
		cr_expect_eq(s.value[i].is_null, null[i], "%zu", i);
	}
	dp_fields_fini(&f);
	dp_buf_fini(&b);
}

static void damaged(const struct dp_fields *f, const void *bytes, size_t n)
{
	uint8_t *exact = malloc(n + !n); /* so that a sanitizer sees a read past the end */
	struct seen s = {0};
	if (n)
		memcpy(exact, bytes, n);
	cr_assert_not(dp_fields_decode(f, exact, n, keep, &s));
	cr_assert_eq(dp_fields_payload_length(f, exact, n), SIZE_MAX);
	free(exact);
}

Test(fields_decode, damage_is_seen)
{
	struct dp_fields regs = {0}, string = {0}, trace = {0}, bytes = {0};
	uint8_t frames[1 + 16] = {3};
	add(&regs, "reg:rax");
	damaged(&regs, "1234567", 7);
	damaged(&regs, "", 0);
	add(&string, "string[4]:s:1");
	damaged(&string, "\0\0\0\0\0\0\0", 7);
	damaged(&string, "\0\0\0\0\0\0\0\0", 8);
	damaged(&string, "\0\0\0\0\0\0\0\0abc", 11);
	damaged(&string, "\0\0\0\0\0\0\0\0abcd\0", 13);
	add(&trace, "backtrace:2");
	damaged(&trace, frames, sizeof(frames));
	frames[0] = 2;
	damaged(&trace, frames, sizeof(frames) - 1);
	add(&bytes, "bytes[9]:b:1");
	damaged(&bytes,
	        "\0\0\0\0\0\0\0\0"
	        "12345678",
	        16);
	dp_fields_fini(&regs);
	dp_fields_fini(&string);
	dp_fields_fini(&trace);
	dp_fields_fini(&bytes);
}

Test(fields_decode, mask_bits_of_readable_fields_mean_nothing)
{
	struct dp_fields f = {0};
	struct dp_buf b = {0};
	struct seen s = {0};
	add(&f, "reg:al");
	add(&f, "int8:a:1");
	put(&b, UINT64_MAX, 8);
	put(&b, 0, 2);
	cr_assert(dp_fields_decode(&f, b.data, b.len, keep, &s));
	cr_assert_not(s.value[0].unreadable);
	cr_assert(s.value[1].unreadable);
	dp_fields_fini(&f);
	dp_buf_fini(&b);
}

Test(fields_decode, table_without_fields_has_no_payload)
{
	struct dp_fields f = {0};
	cr_assert_eq(dp_fields_payload_length(&f, NULL, 0), 0);
}

/* ---- random tables over random bytes ---- */

static void add_random(struct dp_fields *f, int i)
{
	static const char *const types[] = {"int8",  "int16",  "int",     "int64",  "uint8",     "uint64",
	                                    "float", "double", "pointer", "string", "string[3]", "bytes[5]"};
	char context[48];
	int kind = rand() % 16;
	if (kind < 12)
		snprintf(context, sizeof(context), "%s:f%d:1", types[kind], i);
	else
		snprintf(context, sizeof(context), "%s",
		         (const char *[]){"regs", "reg:ah", "backtrace:5", "reg:xmm1"}[kind - 12]);
	dp_error_destroy(dp_fields_add(f, context));
}

static void touch(const struct dp_field *field, const struct dp_field_value *v, void *data)
{
	uint64_t *sum = data;
	size_t n = v->n * (field->type == DP_TYPE_BACKTRACE ? 8 : 1) + (field->type == DP_TYPE_STRING);
	for (size_t i = 0; v->bytes && i < n; i++)
		*sum += v->bytes[i];
	*sum += v->u;
}

Test(fields_decode, random_payloads_stay_in_bounds)
{
	uint64_t sum = 0;
	unsigned good = 0;
	srand(11);
	for (int round = 0; round < 5000; round++) {
		struct dp_fields f = {0};
		for (int i = rand() % 6; i >= 0; i--)
			add_random(&f, i);
		size_t n = (size_t)rand() % (dp_fields_max_payload(&f) + 16), used;
		uint8_t *bytes = malloc(n + !n);
		for (size_t i = 0; i < n; i++)
			bytes[i] = rand() % 3 ? (uint8_t)(rand() % 7) : (uint8_t)rand();
		bool ok = dp_fields_decode(&f, bytes, n, touch, &sum);
		used = dp_fields_payload_length(&f, bytes, n);
		cr_assert_eq(ok, used != SIZE_MAX);
		cr_assert(!ok || used <= n);
		good += ok;
		free(bytes);
		dp_fields_fini(&f);
	}
	cr_assert_gt(good, 100);
}
