/* SPDX-License-Identifier: MIT */
/* A file without unwind tables is searched for them once. */
#include "helper_elf.h"
#include "probes/elf/elf_file.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static unsigned searches;

/* Instead of libdw's. */
Dwarf_CFI *dwarf_getcfi_elf(Elf *elf)
{
	(void)elf;
	searches++;
	return NULL;
}

Test(elf_cfi, a_missing_table_is_searched_for_once)
{
	struct dp_elf *elf = NULL;
	char path[256];
	write_file("bare.c", "int twice(int x) { return 2 * x; }\n");
	shell("gcc -O1 -shared -fPIC -nostdlib -fno-asynchronous-unwind-tables -o bare.so bare.c");
	snprintf(path, sizeof(path), "%s/bare.so", scratch());
	const int fd = open(path, O_RDONLY);
	struct dp_error *err = dp_elf_open(fd, path, &elf);
	cr_assert_null(err);
	for (int i = 0; i < 3; i++)
		cr_assert_null(dp_elf_cfi(elf));
	cr_assert_eq(searches, 1);
	dp_elf_destroy(elf);
	close(fd);
}
