/* SPDX-License-Identifier: MIT */
#include "agent/abi.h"
#include "probes/probes.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static void add(struct dp_fields *f, const char *context)
{
	struct dp_error *err = dp_fields_add(f, context);
	if (err)
		dp_error_print(err, stderr);
	cr_assert_null(err, "%s", context);
}

static struct dp_field only(const char *context)
{
	static struct dp_fields f;
	dp_fields_fini(&f);
	add(&f, context);
	cr_assert_eq(f.n, 1);
	return f.field[0];
}

Test(fields, regs_are_eighteen_hexadecimal_words_in_familiar_order)
{
	struct dp_fields f = {0};
	static const char *const order[] = {"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8",
	                                    "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip", "rflags"};
	static const uint8_t numbers[] = {0, 3, 1, 2, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15};
	add(&f, "regs");
	cr_assert_eq(f.n, 18);
	for (size_t i = 0; i < 18; i++) {
		cr_assert_str_eq(f.field[i].name, order[i]);
		cr_assert_eq(f.field[i].type, DP_TYPE_UINT);
		cr_assert_eq(f.field[i].size, 8);
		cr_assert(f.field[i].hex);
		if (i < 16) {
			cr_assert_eq(f.field[i].source, DP_SRC_REG);
			cr_assert_eq(f.field[i].reg, numbers[i]);
		}
	}
	cr_assert_eq(f.field[16].source, DP_SRC_RIP);
	cr_assert_eq(f.field[17].source, DP_SRC_RFLAGS);
	cr_assert_eq(dp_fields_max_payload(&f), 18 * 8);
	cr_assert_not(dp_fields_may_fault(&f));
	dp_fields_fini(&f);
}

Test(fields, every_register_and_part_has_a_name)
{
	static const char *const names[16][4] = {
	        {"rax", "eax", "ax", "al"},      {"rcx", "ecx", "cx", "cl"},      {"rdx", "edx", "dx", "dl"},
	        {"rbx", "ebx", "bx", "bl"},      {"rsp", "esp", "sp", "spl"},     {"rbp", "ebp", "bp", "bpl"},
	        {"rsi", "esi", "si", "sil"},     {"rdi", "edi", "di", "dil"},     {"r8", "r8d", "r8w", "r8b"},
	        {"r9", "r9d", "r9w", "r9b"},     {"r10", "r10d", "r10w", "r10b"}, {"r11", "r11d", "r11w", "r11b"},
	        {"r12", "r12d", "r12w", "r12b"}, {"r13", "r13d", "r13w", "r13b"}, {"r14", "r14d", "r14w", "r14b"},
	        {"r15", "r15d", "r15w", "r15b"},
	};
	for (uint8_t r = 0; r < 16; r++)
		for (unsigned w = 0; w < 4; w++) {
			char context[32];
			snprintf(context, sizeof(context), "reg:%s", names[r][w]);
			struct dp_field f = only(context);
			cr_assert(f.source == DP_SRC_REG && f.reg == r && f.shift == 0 && f.size == 8u >> w && f.hex);
		}
}

Test(fields, special_registers)
{
	struct dp_field f = only("reg:bh");
	cr_assert(f.reg == 3 && f.shift == 8 && f.size == 1);
	f = only("reg:eflags");
	cr_assert_str_eq(f.name, "rflags");
	f = only("reg:xmm15");
	cr_assert(f.source == DP_SRC_XMM && f.reg == 15 && f.type == DP_TYPE_BYTES && f.size == 16);
	f = only("reg:rip");
	cr_assert_eq(f.source, DP_SRC_RIP);
}

Test(fields, memory_types_and_number_bases)
{
	static const struct {
		const char *context;
		enum dp_type type;
		uint32_t size;
		uint64_t addr;
	} cases[] = {
	        {"int8:a:0x10", DP_TYPE_INT, 1, 16},
	        {"int16:a:020", DP_TYPE_INT, 2, 16},
	        {"int32:a:16", DP_TYPE_INT, 4, 16},
	        {"int64:a:0", DP_TYPE_INT, 8, 0},
	        {"uint8:a:1", DP_TYPE_UINT, 1, 1},
	        {"uint16:a:1", DP_TYPE_UINT, 2, 1},
	        {"uint32:a:1", DP_TYPE_UINT, 4, 1},
	        {"uint64:a:1", DP_TYPE_UINT, 8, 1},
	        {"int:a:1", DP_TYPE_INT, 4, 1},
	        {"uint:a:1", DP_TYPE_UINT, 4, 1},
	        {"char:a:1", DP_TYPE_INT, 1, 1},
	        {"float:a:1", DP_TYPE_FLOAT, 4, 1},
	        {"double:a:1", DP_TYPE_FLOAT, 8, 1},
	        {"pointer:a:1", DP_TYPE_POINTER, 8, 1},
	        {"string:a:1", DP_TYPE_STRING, 256, 1},
	        {"string[1024]:a:1", DP_TYPE_STRING, 1024, 1},
	        {"bytes[0x400]:a:1", DP_TYPE_BYTES, 1024, 1},
	        {"int:varname:0xffffffffffffffff", DP_TYPE_INT, 4, UINT64_MAX},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dp_field f = only(cases[i].context);
		cr_assert(f.type == cases[i].type && f.size == cases[i].size && f.addr.v == cases[i].addr, "%s",
		          cases[i].context);
		cr_assert_eq(f.source, f.type == DP_TYPE_STRING ? DP_SRC_STRING : DP_SRC_MEMORY);
	}
}

Test(fields, backtrace_depth)
{
	struct dp_field f = only("backtrace");
	cr_assert(f.size == 32 && f.type == DP_TYPE_BACKTRACE && f.source == DP_SRC_UNWIND);
	cr_assert_eq(only("backtrace:127").size, 127);
	cr_assert_eq(only("backtrace:1").size, 1);
}

Test(fields, same_field_twice_is_kept_once)
{
	struct dp_fields f = {0};
	add(&f, "reg:rdi");
	add(&f, "regs");
	add(&f, "reg:eflags");
	add(&f, "int:x:0x10");
	add(&f, "int32:x:16");
	add(&f, "backtrace");
	add(&f, "backtrace:32");
	cr_assert_eq(f.n, 20);
	cr_assert(dp_fields_unwind(&f));
	cr_assert(dp_fields_may_fault(&f));
	cr_assert_eq(dp_fields_max_payload(&f), 8 + 18 * 8 + 4 + 1 + 32 * 8);
	dp_fields_fini(&f);
}

/* ---- refusals ---- */

static void refuses(const char *context, size_t column, const char *part)
{
	struct dp_fields f = {0};
	struct dp_error *err = dp_fields_add(&f, context);
	cr_assert_not_null(err, "%s", context);
	cr_assert_eq(err->tag, DP_TAG_SYNTAX);
	cr_assert_eq(f.n, 0);
	const char *caret = strrchr(err->message, '\n');
	cr_assert_not_null(caret);
	cr_assert_not_null(strstr(err->message, part), "%s", err->message);
	cr_assert_eq(strlen(caret), strlen("\n    ^") + column, "%s", err->message);
	dp_error_destroy(err);
	dp_fields_fini(&f);
}

Test(fields, errors_point_at_the_place)
{
	refuses("", 0, "unknown context");
	refuses("args", 0, "backtrace[:DEPTH]");
	refuses("reg:raxx", 4, "did you mean rax");
	refuses("reg:", 4, "xmm0 ... xmm15");
	refuses("reg:xmm16", 4, "did you mean xmm1");
	refuses("reg:RAX", 4, "did you mean rax?");
	refuses("intt:a:1", 0, "int8 int16");
	refuses("int[4]:a:1", 3, "only string and bytes");
	refuses("bytes:a:1", 5, "bytes[N]");
	refuses("bytes[0]:a:1", 6, "1 to 1024");
	refuses("bytes[1025]:a:1", 6, "1 to 1024");
	refuses("bytes[]:a:1", 6, "1 to 1024");
	refuses("bytes[:a:1", 6, "1 to 1024");
	refuses("string[1025]:a:1", 7, "1 to 1024");
	refuses("string[3:a:1", 7, "in brackets");
	refuses("int:9a:1", 4, "needs a name");
	refuses("int::1", 4, "needs a name");
	refuses("int:a-b:1", 4, "needs a name");
	refuses("int:a", 5, "the address is missing");
	refuses("int:a:", 6, "an address is a number");
	refuses("int:a:0x", 6, "an address is a number");
	refuses("int:a:08", 6, "an address is a number");
	refuses("int:a:-1", 6, "an address is a number");
	refuses("int:a:0x10000000000000000", 6, "below 2^64");
	refuses("int:a:1 ", 6, "an address is a number");
	refuses("int:_unreadable:1", 4, "uses this name itself");
	refuses("backtrace:0", 10, "1 to 127");
	refuses("backtrace:128", 10, "1 to 127");
	refuses("backtrace:", 10, "1 to 127");
}

static void refuses_added(struct dp_fields *f, const char *context, const char *part)
{
	size_t n = f->n;
	struct dp_error *err = dp_fields_add(f, context);
	cr_assert_not_null(err);
	cr_assert_eq(err->tag, DP_TAG_SYNTAX);
	cr_assert_not_null(strstr(err->message, part), "%s", err->message);
	cr_assert_eq(f->n, n, "a failed call adds nothing");
	dp_error_destroy(err);
}

Test(fields, one_name_for_two_fields_is_refused)
{
	struct dp_fields f = {0};
	add(&f, "int:x:1");
	refuses_added(&f, "int:x:2", "'x'");
	refuses_added(&f, "uint:x:1", "'x'");
	add(&f, "int:rsp:1");
	refuses_added(&f, "regs", "'rsp'");
	add(&f, "backtrace");
	refuses_added(&f, "backtrace:5", "'backtrace'");
	dp_fields_fini(&f);
}

Test(fields, payload_is_bounded_by_the_record)
{
	struct dp_fields f = {0};
	add(&f, "bytes[1024]:a:1");
	add(&f, "bytes[1024]:b:1");
	add(&f, "bytes[1024]:c:1");
	add(&f, "bytes[1000]:d:1");
	cr_assert_eq(dp_fields_max_payload(&f), DP_RECORD_MAX - 16);
	refuses_added(&f, "int8:e:1", "too large");
	dp_fields_fini(&f);
}

Test(fields, mask_has_room_for_sixty_four_fields)
{
	struct dp_fields f = {0};
	char context[32];
	for (int i = 0; i < 64; i++) {
		snprintf(context, sizeof(context), "int8:f%d:1", i);
		add(&f, context);
	}
	refuses_added(&f, "reg:rax", "at most 64");
	dp_fields_fini(&f);
	for (int r = 8; r < 16; r++)
		for (const char *w = "-dwb"; *w; w++) {
			snprintf(context, sizeof(context), *w == '-' ? "reg:r%d" : "reg:r%d%c", r, *w);
			add(&f, context);
		}
	for (int r = 0; r < 16; r++) {
		snprintf(context, sizeof(context), "reg:xmm%d", r);
		add(&f, context);
	}
	for (const char *w = "rax eax ax al ah rcx ecx cx cl ch rdx edx dx dl dh"; w;
	     w = strchr(w, ' ') ? strchr(w, ' ') + 1 : NULL) {
		snprintf(context, sizeof(context), "reg:%.*s", (int)strcspn(w, " "), w);
		add(&f, context);
	}
	cr_assert_eq(f.n, 63);
	add(&f, "int:m:1");
	dp_fields_fini(&f);
}
