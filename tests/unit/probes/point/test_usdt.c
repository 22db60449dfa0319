/* SPDX-License-Identifier: MIT */
/* Operands of markers have the assembler's meaning; an unknown one is never taken for another. */
#include "helper_elf.h"
#include "probes/point/usdt/usdt.h"

#include <criterion/criterion.h>
#include <string.h>

static bool find(const char *name, size_t len, uint64_t *addr, void *data)
{
	(void)data;
	*addr = 0x4000;
	return len == 3 && !memcmp(name, "var", 3);
}

static struct dp_usdt_arg arg[DP_USDT_MAX_ARGS];

static struct dp_usdt_arg one(const char *text)
{
	cr_assert_eq(dp_usdt_args_parse(text, find, NULL, arg), 1, "%s", text);
	return arg[0];
}

static void memory(const char *text, int base, int index, int scale, int64_t disp)
{
	const struct dp_usdt_arg a = one(text);
	cr_assert(a.size && a.kind == DP_USDT_MEMORY, "%s", text);
	cr_assert_eq(a.base, base < 0 ? (int)DP_USDT_NO_REG : base, "%s", text);
	cr_assert_eq(a.index, index < 0 ? (int)DP_USDT_NO_REG : index, "%s", text);
	cr_assert_eq(a.scale, scale, "%s", text);
	cr_assert_eq(a.disp, disp, "%s", text);
}

enum { RAX = 0, RBX = 3, RSP = 4, RBP = 5, R12 = 12 };

Test(usdt, registers_have_their_part_and_sign)
{
	struct dp_usdt_arg a = one("-4@%eax");
	cr_assert(a.kind == DP_USDT_REG && a.base == RAX && a.size == 4 && a.is_signed && !a.shift);
	a = one("1@%ah");
	cr_assert(a.kind == DP_USDT_REG && a.base == RAX && a.size == 1 && !a.is_signed && a.shift == 8);
	a = one("8@%r12");
	cr_assert(a.base == R12 && a.size == 8);
	a = one("-1@%r12b");
	cr_assert(a.base == R12 && a.size == 1 && a.is_signed);
	a = one("8@%bl"); /* limited by the register's size */
	cr_assert(a.base == RBX && a.size == 1);
	a = one("8f@%xmm13");
	cr_assert(a.xmm && a.is_float && a.base == 13 && a.size == 8);
}

Test(usdt, constants_of_every_base)
{
	cr_assert_eq(one("4@$5").disp, 5);
	cr_assert_eq(one("-4@$-5").disp, -5);
	cr_assert_eq(one("8@$0xffffffffffffffff").disp, -1);
	cr_assert_eq(one("8@$18446744073709551615").disp, -1);
	cr_assert_eq((int)one("-4@$-5").kind, DP_USDT_CONST);
}

Test(usdt, memory_of_every_form)
{
	memory("8@-16(%rbp)", RBP, -1, 1, -16);
	memory("8@(%rsp)", RSP, -1, 1, 0);
	memory("-8@(%rax,%rbx,4)", RAX, RBX, 4, 0);
	memory("-8@8(%rax,%rbx)", RAX, RBX, 1, 8);
	memory("8@16(,%rbx,8)", -1, RBX, 8, 16);
	memory("4@var(%rip)", -1, -1, 1, 0x4000);
	memory("4@var+8(%rip)", -1, -1, 1, 0x4008);
	memory("4@8+var(%rip)", -1, -1, 1, 0x4008);
	memory("4@-8+var(%rip)", -1, -1, 1, 0x3ff8);
	memory("4@var", -1, -1, 1, 0x4000);
	memory("4@var(%rax)", RAX, -1, 1, 0x4000);
}

Test(usdt, what_is_not_understood_has_no_size)
{
	static const char *const bad[] = {"4@none(%rip)",
	                                  "8@%fs:16",
	                                  "8@%fs:(%rax)",
	                                  "4@",
	                                  "4@%nothing",
	                                  "3@%eax",
	                                  "16@%xmm0",
	                                  "8@(%rax",
	                                  "8@(%eax)",
	                                  "8@(%rax,%rbx,3)",
	                                  "8@12",
	                                  "8@%xmm16",
	                                  "8@$",
	                                  "8@8(%rip)",
	                                  "8@var(%rip)x",
	                                  "@%rax",
	                                  "8@(%rax,%rbx,4,5)",
	                                  "9999999999999999999999999999999999999@%rax"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		cr_assert_eq(one(bad[i]).size, 0, "%s", bad[i]);
}

Test(usdt, lists_keep_their_places)
{
	cr_assert_eq(dp_usdt_args_parse("", find, NULL, arg), 0);
	cr_assert_eq(dp_usdt_args_parse(" -4@%eax  8@%fs:8 4@$7 ", find, NULL, arg), 3);
	cr_assert(arg[0].size == 4 && arg[1].size == 0 && arg[2].disp == 7);
	char many[400] = "";
	for (int i = 0; i < 60; i++)
		strcat(many, "4@$7 ");
	cr_assert_eq(dp_usdt_args_parse(many, find, NULL, arg), DP_USDT_MAX_ARGS);
}

/* ---- notes --------------------------------------------------------------------------------------------------------- */

static const char marked[] =
        "asm(\".section .stapsdt.base,\\\"aG\\\",@progbits,.stapsdt.base,comdat\\n_.stapsdt.base: .space 1\\n.previous\");\n"
        "#define MARK(pc, sem, names) \".pushsection .note.stapsdt,\\\"\\\",\\\"note\\\"\\n.balign 4\\n.4byte 8, 993f-992f, "
        "3\\n\" \\\n"
        "	\".asciz \\\"stapsdt\\\"\\n992: .8byte \" pc \"\\n.8byte _.stapsdt.base\\n.8byte \" sem \"\\n\" names \"\\n993: "
        ".balign 4\\n.popsection\\n\"\n"
        "unsigned short sem __attribute__((section(\".probes\")));\n"
        "int main(void) { asm volatile(\"990: nop\\n\" MARK(\"990b\", \"sem\", \".asciz \\\"p\\\", \\\"first\\\", "
        "\\\"-4@$3\\\"\")\n"
        "	\"991: nop\\n\" MARK(\"991b\", \"0\", \".asciz \\\"p\\\", \\\"second\\\", \\\"\\\"\")\n"
        "	MARK(\"991b\", \"0\", \".ascii \\\"cut short\\\"\")); return 0; }\n";

Test(usdt, notes_are_read_and_damaged_ones_passed_over)
{
	write_file("marked.c", marked);
	shell("gcc -no-pie -fno-pie marked.c -o marked");
	struct dp_image *image = image_of("marked", 0);
	struct dp_module *m = dp_image_module(image, 0);
	const struct dp_usdt *marker;
	size_t n;
	cr_assert_null(dp_module_markers(m, &marker, &n));
	cr_assert_eq(n, 2);
	cr_assert_str_eq(marker[0].name, "first");
	cr_assert_eq(marker[0].semaphore, nm_value("marked", "sem"));
	cr_assert_eq(marker[0].pc + 1, marker[1].pc);
	cr_assert_eq(marker[1].semaphore, 0);
	cr_assert_eq(dp_module_marker_at(m, dp_addr_of(marker[1].pc)), &marker[1]);
	cr_assert_null(dp_module_marker_at(m, dp_addr_of(marker[1].pc + 1)));
	dp_image_destroy(image);
}

static void finds(struct dp_image *image, const char *text, size_t wanted)
{
	struct dp_spec spec;
	struct dp_selection found = {0};
	cr_assert_null(dp_spec_parse_usdt(text, &spec), "%s", text);
	struct dp_error *err = dp_image_select(image, &spec, NULL, 0, &found);
	cr_assert_eq(found.n, wanted, "%s: %zu", text, found.n);
	cr_assert_eq(err ? err->tag : DP_TAG_COUNT, wanted ? DP_TAG_COUNT : DP_TAG_NO_SYMBOL);
	dp_error_destroy(err);
	dp_selection_fini(&found);
	dp_spec_fini(&spec);
}

Test(usdt, names_and_patterns)
{
	write_file("marked.c", marked);
	shell("gcc marked.c -o marked");
	struct dp_image *image = image_of("marked", 0x555555554000);
	finds(image, "p:first", 1);
	finds(image, "p:*", 2);
	finds(image, "*:s*", 1);
	finds(image, "usdt:p:first", 1);
	finds(image, "marked!p:first", 1);
	finds(image, "marked!usdt:p:first", 1);
	finds(image, "q:first", 0);
	dp_image_destroy(image);
}
