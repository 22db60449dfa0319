/* SPDX-License-Identifier: MIT */
/* perf's jitdump: records whole, cut anywhere, of other kinds, and damaged. */
#include "probes/generated/jitdump.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

static uint8_t file[1 << 16];
static size_t size;
static struct dp_jitdump dump;
static struct dp_perf_names *names;

static void put(uint64_t value, size_t n)
{
	memcpy(file + size, &value, n);
	size += n;
}

static void put_header(void)
{
	const uint32_t words[10] = {0x4a695444, 1, 40, EM_X86_64, 0, 77};
	memcpy(file, words, sizeof(words));
	size = sizeof(words);
}

static void put_record(uint32_t kind, uint32_t total)
{
	put(kind, 4);
	put(total, 4);
	put(12345, 8);
}

/* A function with `code` bytes, of which the file has them all. */
static void put_code(uint64_t addr, uint64_t code, const char *name)
{
	put_record(0, (uint32_t)(56 + strlen(name) + 1 + code));
	put(77, 4);
	put(78, 4);
	put(addr, 8);
	put(addr, 8);
	put(code, 8);
	put(3, 8);
	put(0, 0);
	memcpy(file + size, name, strlen(name) + 1);
	size += strlen(name) + 1;
	memset(file + size, 0xcc, code);
	size += code;
}

static void start(void)
{
	dump = (struct dp_jitdump){0};
	names = dp_perf_names_create();
	put_header();
}

static void end(void)
{
	dp_perf_names_destroy(names);
}

TestSuite(jitdump, .init = start, .fini = end, .timeout = 60);

static const char *name_at(uint64_t addr)
{
	struct dp_perf_name n;
	return dp_perf_names_at(names, addr, &n) ? n.name : "none";
}

Test(jitdump, functions_and_records_that_are_skipped)
{
	put_code(0x1000, 64, "first");
	put_record(2, 16 + 32); /* line numbers */
	size += 32;
	put_code(0x2000, 3000, "void second(int)");
	put_record(3, 16);
	put_code(0x1000, 32, "first, again");
	cr_assert_eq(dp_jitdump_add(&dump, names, file, size), size);
	cr_expect_str_eq(name_at(0x1000 + 31), "first, again");
	cr_expect_str_eq(name_at(0x1000 + 32), "none");
	cr_expect_str_eq(name_at(0x2000 + 2999), "void second(int)");
	cr_expect_str_eq(name_at(0x2000 + 3000), "none");
}

/* The file as it grows: at each cut all that is needed is used, or waits for the rest. */
Test(jitdump, cut_anywhere)
{
	put_code(0x1000, 2000, "first");
	put_record(2, 16 + 500);
	size += 500;
	put_code(0x2000, 10, "second");
	for (size_t cut = 0; cut <= size; cut++) {
		dp_perf_names_destroy(names);
		names = dp_perf_names_create();
		dump = (struct dp_jitdump){0};
		size_t used = dp_jitdump_add(&dump, names, file, cut);
		cr_assert_leq(used, cut);
		cr_assert_lt(cut - used, DP_JITDUMP_NEEDED, "%zu of %zu", used, cut);
		used += dp_jitdump_add(&dump, names, file + used, size - used);
		cr_assert_eq(used, size);
		cr_assert_eq(dp_perf_names_count(names), 2, "cut at %zu", cut);
		cr_assert_str_eq(name_at(0x2004), "second");
	}
}

static void expect_nothing_after(const char *what)
{
	put_code(0x2000, 10, "second");
	cr_expect_eq(dp_jitdump_add(&dump, names, file, size), size, "%s", what);
	cr_expect_str_eq(name_at(0x2000), "none", "%s", what);
	cr_expect_eq(dp_jitdump_add(&dump, names, file, size), size, "%s: it is not read again", what);
}

Test(jitdump, of_another_machine_byte_order_or_version)
{
	static const struct {
		size_t at;
		uint8_t value;
		const char *what;
	} change[] = {{0, 0x4a, "byte order"},
	              {4, 2, "version"},
	              {12, EM_AARCH64, "machine"},
	              {8, 39, "a short header"},
	              {10, 1, "a long header"}};
	for (size_t i = 0; i < sizeof(change) / sizeof(*change); i++) {
		dump = (struct dp_jitdump){0};
		put_header();
		file[change[i].at] = change[i].value;
		expect_nothing_after(change[i].what);
	}
}

Test(jitdump, a_record_that_is_shorter_than_its_head_ends_it)
{
	put_record(0, 15);
	expect_nothing_after("15 bytes");
}

Test(jitdump, names_without_an_end_without_bytes_or_with_line_breaks)
{
	put_code(0x1000, 10, "two\nlines\r");
	put_code(0x2000, 10, "");
	put_record(0, 56 + 8); /* no room for the name's 0 */
	size += 16;
	put(0x3000, 8);
	put(10, 8);
	put(0, 8);
	memcpy(file + size, "abcdefgh", 8);
	size += 8;
	put_record(0, 40); /* no room for a name */
	size += 24;
	put_code(0x4000, 10, "last");
	cr_assert_eq(dp_jitdump_add(&dump, names, file, size), size);
	cr_expect_str_eq(name_at(0x1000), "two lines ");
	cr_expect_str_eq(name_at(0x2000), "none");
	cr_expect_str_eq(name_at(0x3000), "abcdefgh");
	cr_expect_str_eq(name_at(0x4000), "last");
}

Test(jitdump, a_long_name_is_cut_and_its_record_skipped)
{
	static char name[5000];
	memset(name, 'x', sizeof(name) - 1);
	put_code(0x1000, 10, name);
	put_code(0x2000, 10, "second");
	cr_assert_eq(dp_jitdump_add(&dump, names, file, size), size);
	cr_expect_eq(strlen(name_at(0x1000)), DP_PERF_NAME_MAX);
	cr_expect_str_eq(name_at(0x2000), "second");
}

/* The size of a record is 32 bits: what is skipped may be far behind the end of the file. */
Test(jitdump, a_huge_record)
{
	put_record(2, UINT32_MAX);
	put_code(0x2000, 10, "second");
	cr_assert_eq(dp_jitdump_add(&dump, names, file, size), size);
	cr_expect_str_eq(name_at(0x2000), "none");
	cr_expect_eq(dump.skip, UINT32_MAX - (size - 40));
}
