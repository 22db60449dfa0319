/* SPDX-License-Identifier: MIT */
/* Restartable sequences are found by their descriptors, wherever the module is; cancellable system calls by their labels. */
#include "helper_elf.h"

#include <criterion/criterion.h>

#define BASE 0x10000000

static const char source[] = ".text\n.globl _start, begin, finish, handler\n_start: ret\n"
                             "begin: nop; nop; movl $1, (%rdi)\nfinish: ret\n"
                             ".long 0x53053053\nhandler: ret\n"
                             ".section __rseq_cs, \"aw\"\n.balign 32\n.long 0, 0\n.quad begin, finish-begin, handler\n";

static void expect(const char *flags, uint64_t base)
{
	dp_addr start;
	uint64_t size;
	write_file("r.S", source);
	shell("gcc -nostdlib %s r.S -o r", flags);
	struct dp_image *image = image_of("r", base);
	struct dp_module *m = dp_image_module(image, 0);
	cr_assert(dp_module_rseq(m, 0, &start, &size));
	cr_expect_eq(start.v, base + nm_value("r", "begin"));
	cr_expect_eq(size, nm_value("r", "finish") - nm_value("r", "begin"));
	cr_assert(dp_module_rseq(m, 1, &start, &size));
	cr_expect_eq(start.v, base + nm_value("r", "handler") - 4, "with its signature");
	cr_expect_eq(size, 5);
	cr_expect_not(dp_module_rseq(m, 2, &start, &size));
	dp_image_destroy(image);
}

Test(rseq, at_a_fixed_address)
{
	expect("-static -no-pie", 0);
}
Test(rseq, in_a_pie_by_its_relocations)
{
	expect("-static-pie", BASE);
}

Test(rseq, most_modules_have_none)
{
	dp_addr start;
	uint64_t size;
	write_file("n.c", "int main(void) { return 0; }\n");
	shell("gcc n.c -o n");
	struct dp_image *image = image_of("n", BASE);
	cr_expect_not(dp_module_rseq(dp_image_module(image, 0), 0, &start, &size));
	dp_image_destroy(image);
}

/* Finds the range by the libraries' labels, of which the file may have the second pair: it ends at the second label. */
static void expect_labels(const char *from, const char *to, size_t i)
{
	char text[512];
	dp_addr start;
	uint64_t size;
	snprintf(text, sizeof(text),
	         ".text\n.globl _start, %s, %s\n.hidden %s, %s\n_start: ret\n%s: nop; nop; syscall\n%s: ret\n", from, to, from,
	         to, from, to);
	write_file("l.S", text);
	shell("gcc -nostdlib -static-pie l.S -o l");
	struct dp_image *image = image_of("l", BASE);
	struct dp_module *m = dp_image_module(image, 0);
	cr_assert(dp_module_cancellation(m, i, &start, &size));
	cr_expect_eq(start.v, BASE + nm_value("l", from));
	cr_expect_eq(size, 4);
	cr_assert(dp_module_cancellation(m, 1 - i, &start, &size));
	cr_expect_eq(size, 0, "the other library's labels do not exist");
	cr_expect_not(dp_module_cancellation(m, 2, &start, &size));
	dp_image_destroy(image);
}

Test(cancellation, labels_of_glibc)
{
	expect_labels("__syscall_cancel_arch_start", "__syscall_cancel_arch_end", 0);
}
Test(cancellation, labels_of_musl)
{
	expect_labels("__cp_begin", "__cp_end", 1);
}
