/* SPDX-License-Identifier: MIT */
/* Go's table of functions in each of its forms, made by the assembler; and damaged ones. */
#include "helper_elf.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BASE 0x10000000

static const char code[] = ".text\n.globl _start\n_start: ret\n"
                           "first: nop; ret; int3; int3; int3\n.p2align 4, 0xcc\n"
                           "second: push %rbp; pop %rbp; ret\n.p2align 4, 0xcc\n"
                           "third: ret\nend:\n"
                           ".section .gopclntab,\"a\"\n.p2align 3\ntable:\n";
static const char names[] = "names: .asciz \"main.main\"; .asciz \"main.(*T).Do\"; .asciz \"runtime.x\"\n.p2align 3\n";

/* One after the other: pairs, records. `d` is the directive of a start, `base` what it is counted from. */
static void put_functions(FILE *to, const char *d, const char *base, const char *from, const char *name_base)
{
	static const char *const name[] = {"first", "second", "third"};
	static const unsigned at[] = {0, 10, 23};
	fprintf(to, "pairs:\n");
	for (unsigned i = 0; i < 3; i++)
		fprintf(to, "%s %s%s; %s r%u-%s\n", d, name[i], base, d, i, from);
	fprintf(to, "%s end%s; %s 0\n", d, base, d);
	for (unsigned i = 0; i < 3; i++)
		fprintf(to, "r%u: %s %s%s; .long %s+%u; .long 0\n", i, d, name[i], base, name_base, at[i]);
}

static void assemble(unsigned version)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);
	fprintf(to, "%s", code);
	if (version == 2) {
		fprintf(to, ".long 0xfffffffb; .byte 0,0,1,8; .quad 3\n");
		put_functions(to, ".quad", "", "table", "names-table");
		fprintf(to, "%s", names);
	} else if (version == 16) {
		fprintf(to, ".long 0xfffffffa; .byte 0,0,1,8; .quad 3, 0, names-table, 0, 0, 0, pairs-table\n%s", names);
		put_functions(to, ".quad", "", "pairs", "0");
	} else {
		fprintf(to, ".long %#x; .byte 0,0,1,8; .quad 3, 0, _start, names-table, 0, 0, 0, pairs-table\n%s",
		        version == 18 ? 0xfffffff0 : 0xfffffff1, names);
		put_functions(to, ".long", "-_start", "pairs", "0");
	}
	fclose(to);
	write_file("go.S", text);
	free(text);
	shell("gcc -nostdlib -static -no-pie go.S -o go && cp go full && strip -s go");
}

static void expect(struct dp_image *image, const char *name, const char *label, uint64_t size)
{
	struct dp_site site;
	struct dp_error *err = resolve(image, name, &site);
	cr_assert_null(err, "%s: %s", name, err ? err->message : "");
	cr_assert_eq(site.addr.v, nm_value("full", label), "%s", name);
	cr_assert_eq(site.function.size, size, "%s: %lu bytes", name, site.function.size);
}

static void expect_all(unsigned version)
{
	assemble(version);
	struct dp_image *image = image_of("go", 0);
	expect(image, "main.main", "first", 2);
	expect(image, "main.(*T).Do", "second", 3);
	expect(image, "runtime.x", "third", 1);
	char text[128];
	dp_image_describe(image, dp_addr_of(nm_value("full", "second") + 1), text, sizeof(text));
	cr_assert_str_eq(text, "main.(*T).Do+0x1/0x3 [go]");
	refused(image, "main.nothing", DP_TAG_NO_SYMBOL, "main.nothing");
	dp_image_destroy(image);
}

Test(gopclntab, go_1_2)
{
	expect_all(2);
}
Test(gopclntab, go_1_16)
{
	expect_all(16);
}
Test(gopclntab, go_1_18)
{
	expect_all(18);
}
Test(gopclntab, go_1_20)
{
	expect_all(20);
}

/* A goroutine may have been interrupted anywhere and its place be on no thread's stack: no instruction may vanish under a jump.
 */
Test(gopclntab, nothing_proves_windows_in_go)
{
	const uint64_t *pads;
	size_t n;
	assemble(20);
	struct dp_image *image = image_of("go", 0);
	cr_assert_not(dp_module_landing_pads(dp_image_module(image, 0), &pads, &n));
	dp_image_destroy(image);
}

/* Every byte of the table once, and all of its numbers at random. */
static void damage(unsigned version)
{
	char path[256], maps[256];
	static uint8_t good[1 << 16], bad[1 << 16];
	assemble(version);
	snprintf(path, sizeof(path), "%s/go", scratch());
	FILE *f = fopen(path, "r");
	const size_t n = fread(good, 1, sizeof(good), f);
	fclose(f);
	const uint32_t magic = version == 2 ? 0xfffffffb : version == 16 ? 0xfffffffa : version == 18 ? 0xfffffff0 : 0xfffffff1;
	const uint8_t *table = memmem(good, n, &magic, sizeof(magic));
	cr_assert(table);
	const size_t at = (size_t)(table - good), size = 240;
	const int fd = memfd_create("damaged", MFD_CLOEXEC);
	snprintf(maps, sizeof(maps), "401000-402000 r-xp 00001000 00:00 0 /proc/self/fd/%d\n", fd);
	srandom(version);
	for (size_t round = 0; round < 4 * size; round++) {
		memcpy(bad, good, n);
		if (round < size)
			bad[at + round] ^= (uint8_t)(random() % 2 ? 0xff : 0x80);
		for (long k = round < size ? 0 : random() % 6; k > 0; k--)
			memset(bad + at + 8 + 4 * (size_t)(random() % (size / 4 - 2)), random() % 2 ? 0xff : 0x7f, 4);
		cr_assert_eq(pwrite(fd, bad, n, 0), (ssize_t)n);
		struct dp_image *image = NULL;
		struct dp_error *err = dp_image_create(maps, "", 0, &image);
		cr_assert_null(err);
		exercise(image);
		dp_image_destroy(image);
	}
	close(fd);
}

Test(gopclntab, damaged_old)
{
	damage(2);
}
Test(gopclntab, damaged_16)
{
	damage(16);
}
Test(gopclntab, damaged_new)
{
	damage(20);
}
