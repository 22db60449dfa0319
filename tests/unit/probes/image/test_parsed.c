/* SPDX-License-Identifier: MIT */
/* One reading of a file serves all processes that have it mapped, and never those that have another file. */
#include "helper_elf.h"
#include "probes/debug/debug.h"
#include "probes/image/module.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BASE  UINT64_C(0x555555554000)
#define OTHER UINT64_C(0x655555554000)

static struct dp_module *first(struct dp_image *image)
{
	return dp_image_module(image, 0);
}

/* A library in which foo() lies behind `before` bytes of code. */
static void build(const char *name, unsigned before)
{
	write_file("f.S", ".text\n.globl foo\n.fill BEFORE,1,0x90\n.type foo,@function\nfoo: ret\n.size foo,1\n"
	                  ".section .note.GNU-stack,\"\",@progbits\n");
	shell("gcc -shared -nostdlib -DBEFORE=%u f.S -o %s", before, name);
}

static void expect_offset(struct dp_image *image, uint64_t base, uint64_t offset)
{
	cr_assert_eq(address_of(image, "foo") - base, offset, "%#lx", (long)(address_of(image, "foo") - base));
}

Test(parsed, processes_share_what_their_file_contains_and_not_its_addresses)
{
	build("l.so", 16);
	struct dp_image *a = image_of("l.so", BASE), *b = image_of("l.so", OTHER);
	const uint64_t foo = nm_value("l.so", "foo");
	cr_assert_neq(first(a), first(b));
	cr_assert_eq(first(a)->parsed, first(b)->parsed);
	expect_offset(a, BASE, foo);
	expect_offset(b, OTHER, foo);
	dp_image_destroy(a);
	expect_offset(b, OTHER, foo);
	dp_image_destroy(b);
}

Test(parsed, debug_information_is_shared_and_its_addresses_are_not)
{
	struct dp_debug *x = NULL, *y = NULL;
	write_file("d.c", "int foo(void) { return 1; }\n");
	shell("gcc -g -shared d.c -o d.so");
	struct dp_image *a = image_of("d.so", BASE), *b = image_of("d.so", OTHER);
	cr_assert_null(dp_module_debug(first(a), &x));
	cr_assert_null(dp_module_debug(first(b), &y));
	cr_assert_eq(x->dwarf, y->dwarf);
	cr_assert_eq(y->bias - x->bias, (int64_t)(OTHER - BASE));
	dp_image_destroy(a);
	dp_image_destroy(b);
}

Test(parsed, a_file_that_was_replaced_under_its_path_is_another_one)
{
	build("l.so", 16);
	struct dp_image *old = image_of("l.so", BASE);
	const uint64_t before = nm_value("l.so", "foo");
	expect_offset(old, BASE, before);
	build("new.so", 64);
	shell("touch -r l.so new.so && mv new.so l.so");
	struct dp_image *fresh = image_of("l.so", BASE);
	cr_assert_neq(first(old)->parsed, first(fresh)->parsed);
	expect_offset(fresh, BASE, nm_value("l.so", "foo"));
	cr_assert_neq(nm_value("l.so", "foo"), before);
	expect_offset(old, BASE, before);
	dp_image_destroy(old);
	dp_image_destroy(fresh);
}

/* The inode is the same, the time of the last write and the size can be. */
Test(parsed, a_file_that_was_written_anew_is_another_one)
{
	build("l.so", 16);
	struct dp_image *old = image_of("l.so", BASE);
	expect_offset(old, BASE, nm_value("l.so", "foo"));
	dp_image_destroy(old);
	build("new.so", 17);
	shell("touch -r l.so stamp && test $(stat -c %%s l.so) = $(stat -c %%s new.so) && cat new.so > l.so && touch -r stamp "
	      "l.so");
	struct dp_image *fresh = image_of("l.so", BASE);
	expect_offset(fresh, BASE, nm_value("l.so", "foo"));
	dp_image_destroy(fresh);
}

/* As long as it is known, its inode's number is not given to another file. */
Test(parsed, a_deleted_file_is_not_taken_for_the_one_that_gets_its_place)
{
	build("l.so", 16);
	struct dp_image *old = image_of("l.so", BASE);
	const uint64_t before = nm_value("l.so", "foo");
	expect_offset(old, BASE, before);
	dp_image_destroy(old);
	for (unsigned i = 0; i < 8; i++) {
		shell("rm l.so");
		build("l.so", 32 + 16 * i);
		struct dp_image *fresh = image_of("l.so", BASE);
		expect_offset(fresh, BASE, nm_value("l.so", "foo"));
		dp_image_destroy(fresh);
	}
}

Test(parsed, a_stripped_copy_with_the_same_build_id_is_another_one)
{
	write_file("s.c", "static __attribute__((noinline, used)) int inner(int a) { return a + 1; }\nint foo(int a) { return "
	                  "inner(a); }\n");
	shell("gcc -O1 -shared -Wl,--build-id s.c -o whole.so && strip -s whole.so -o bare.so");
	struct dp_image *whole = image_of("whole.so", BASE), *bare = image_of("bare.so", BASE);
	struct dp_site site;
	cr_assert_str_eq(dp_module_build_id(first(whole)), dp_module_build_id(first(bare)));
	cr_assert_neq(first(whole)->parsed, first(bare)->parsed);
	address_of(whole, "inner");
	struct dp_error *err = resolve(bare, "inner", &site);
	cr_assert(err && err->tag == DP_TAG_NO_SYMBOL);
	dp_error_destroy(err);
	dp_image_destroy(whole);
	dp_image_destroy(bare);
}

/* The second path could have other debug files beside it, and messages name the path. */
Test(parsed, another_path_to_the_same_inode_is_read_for_itself)
{
	build("l.so", 16);
	shell("ln l.so m.so");
	struct dp_image *a = image_of("l.so", BASE), *b = image_of("m.so", BASE);
	cr_assert_neq(first(a)->parsed, first(b)->parsed);
	dp_image_destroy(a);
	dp_image_destroy(b);
}

Test(parsed, a_debug_file_that_comes_later_is_found_for_the_next_process)
{
	write_file("s.c", "static __attribute__((noinline, used)) int inner(int a) { return a + 1; }\nint foo(int a) { return "
	                  "inner(a); }\n");
	shell("gcc -O1 -shared -Wl,--build-id s.c -o l.so && objcopy --only-keep-debug l.so l.debug && strip -s l.so &&"
	      " objcopy --add-gnu-debuglink=l.debug l.so && mv l.debug elsewhere");
	struct dp_image *image = image_of("l.so", BASE);
	struct dp_site site;
	struct dp_error *err = resolve(image, "inner", &site);
	cr_assert(err && err->tag == DP_TAG_NO_SYMBOL);
	dp_error_destroy(err);
	shell("mv elsewhere l.debug");
	struct dp_image *later = image_of("l.so", BASE);
	cr_assert_eq(first(image)->parsed, first(later)->parsed);
	address_of(later, "inner");
	dp_image_destroy(image);
	dp_image_destroy(later);
}

Test(parsed, unused_files_are_kept_up_to_a_limit_and_used_ones_always)
{
	char name[32];
	struct dp_image *image[3 * DP_PARSED_MOST];
	dp_parsed_forget();
	const size_t before = dp_parsed_kept();
	build("l.so", 16);
	for (size_t i = 0; i < 3 * DP_PARSED_MOST; i++) {
		snprintf(name, sizeof(name), "l%zu.so", i);
		shell("cp l.so %s", name);
		image[i] = image_of(name, BASE);
	}
	cr_assert_eq(dp_parsed_kept() - before, 3 * DP_PARSED_MOST);
	for (size_t i = 0; i < 3 * DP_PARSED_MOST; i++)
		dp_image_destroy(image[i]);
	cr_assert_eq(dp_parsed_kept() - before, DP_PARSED_MOST);
	dp_parsed_forget();
	cr_assert_eq(dp_parsed_kept(), before);
}

Test(parsed, of_large_unused_files_the_last_few_are_kept)
{
	char name[32];
	dp_parsed_forget();
	build("l.so", 16);
	for (size_t i = 0; i < 2 * DP_PARSED_SURE; i++) {
		snprintf(name, sizeof(name), "l%zu.so", i);
		shell("cp l.so %s && truncate -s %llu %s", name, (unsigned long long)DP_PARSED_BYTES, name);
		dp_image_destroy(image_of(name, BASE));
	}
	cr_assert_eq(dp_parsed_kept(), DP_PARSED_SURE);
}
