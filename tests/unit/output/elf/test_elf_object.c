/* SPDX-License-Identifier: MIT */
/* The ELF file for debuggers, as read by elfutils. */
#include "output/elf/elf_object.h"

#include <criterion/criterion.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <string.h>

#define CODE UINT64_C(0x7f0000010000)
#define SITE UINT64_C(0x555500001000)

enum { RAX = 0, RBX = 3, RSP = 4 };

static void make(struct dp_buf *file)
{
	struct dp_elf_object *o = NULL;
	struct dp_frame_row row[] = {
	        {.pc = CODE + 0x40, .original = SITE, .known = true, .base = RSP},
	        {.pc = CODE + 0x45, .original = SITE, .known = true, .base = RSP, .offset = 136, .saved = {[RAX] = -136}},
	        {.pc = CODE + 0x48,
	         .original = SITE,
	         .known = true,
	         .base = RBX,
	         .offset = 144,
	         .saved = {[RAX] = -136, [RBX] = -144}},
	        {.pc = CODE + 0x50, .original = SITE + 300, .known = true, .base = RSP},
	        {.pc = CODE + 0x55, .original = SITE + 300},
	};
	const struct dp_frame_rows rows = {row, sizeof(row) / sizeof(*row), CODE + 0x60};
	cr_assert_null(dp_object_create(&o));
	dp_object_code(o, CODE, 0x1000);
	dp_object_code(o, CODE + 0x100000, 0x2000);
	dp_object_symbol(o, CODE + 0x20, 0x40, "foo+0x10 [dynprobe]");
	dp_object_symbol(o, CODE + 0x100000, 5, "bar");
	dp_object_frames(o, &rows);
	dp_object_site(o, SITE, 5);
	dp_object_moved(o, SITE + 2, CODE + 0x48);
	cr_assert_null(dp_object_finish(o, file));
	dp_object_destroy(o);
}

static void check_row(Dwarf_CFI *cfi, uint64_t pc, int reg, int64_t offset, uint64_t caller)
{
	Dwarf_Frame *frame = NULL;
	Dwarf_Op *ops, memory[3];
	size_t n;
	cr_assert_eq(dwarf_cfi_addrframe(cfi, pc, &frame), 0, "%s", dwarf_errmsg(-1));
	cr_assert_eq(dwarf_frame_cfa(frame, &ops, &n), 0);
	cr_expect(n == 1 && ops[0].atom == DW_OP_bregx && (int)ops[0].number == reg && (int64_t)ops[0].number2 == offset,
	          "at %#llx: atom %#x, r%d %+lld", (unsigned long long)pc, ops[0].atom, (int)ops[0].number,
	          (long long)ops[0].number2);
	cr_assert_eq(dwarf_frame_register(frame, 16, memory, &ops, &n), 0);
	if (caller)
		cr_expect(n >= 2 && ops[n - 2].atom == DW_OP_const8u && ops[n - 2].number == caller &&
		          ops[n - 1].atom == DW_OP_stack_value); /* elfutils may prepend the CFA */
	else
		cr_expect(n == 0 && ops == memory, "there is no caller");
}

Test(elf_object, rows_as_elfutils_reads_them)
{
	struct dp_buf file = {0};
	make(&file);
	elf_version(EV_CURRENT);
	Elf *elf = elf_memory((char *)file.data, file.len);
	cr_assert_not_null(elf);
	Dwarf *dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	cr_assert_not_null(dwarf, "%s", dwarf_errmsg(-1));
	Dwarf_CFI *cfi = dwarf_getcfi(dwarf);
	cr_assert_not_null(cfi, "%s", dwarf_errmsg(-1));
	check_row(cfi, CODE + 0x40, 7, 0, SITE);
	check_row(cfi, CODE + 0x46, 7, 136, SITE);
	check_row(cfi, CODE + 0x4f, 3, 144, SITE);
	check_row(cfi, CODE + 0x54, 7, 0, SITE + 300);
	check_row(cfi, CODE + 0x5f, 7, 0, 0);
	dwarf_end(dwarf);
	elf_end(elf);
	dp_buf_fini(&file);
}

Test(elf_object, symbols_lie_in_the_sections_of_their_code)
{
	struct dp_buf file = {0};
	make(&file);
	const Elf64_Ehdr *head = (const void *)file.data;
	const Elf64_Shdr *sh = (const void *)(file.data + head->e_shoff);
	const Elf64_Shdr *tab = &sh[head->e_shnum - 3], *names = &sh[tab->sh_link];
	cr_assert(tab->sh_type == SHT_SYMTAB && tab->sh_size == 3 * sizeof(Elf64_Sym));
	const Elf64_Sym *sym = (const void *)(file.data + tab->sh_offset);
	cr_expect_str_eq((const char *)file.data + names->sh_offset + sym[1].st_name, "foo+0x10 [dynprobe]");
	for (int i = 1; i <= 2; i++) {
		const Elf64_Shdr *in = &sh[sym[i].st_shndx];
		cr_expect(in->sh_type == SHT_NOBITS && sym[i].st_value - in->sh_addr < in->sh_size);
	}
	cr_expect_eq(head->e_shoff + head->e_shnum * sizeof(*sh), file.len);
	dp_buf_fini(&file);
}

Test(elf_object, sites_for_scripts)
{
	const char want[] = "site 0x555500001000 0x5\nmoved 0x555500001002 0x7f0000010048\n";
	struct dp_buf file = {0};
	make(&file);
	cr_expect_not_null(memmem(file.data, file.len, want, strlen(want)));
	dp_buf_fini(&file);
}
