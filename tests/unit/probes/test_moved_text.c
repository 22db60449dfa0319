/* SPDX-License-Identifier: MIT */
/* Text that a program moved to memory without a file: its functions keep their names and offsets, and are marked as moved. */
#include "helper_elf.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define BASE UINT64_C(0x20000000)

/* A file whose text takes several pages, with a function on the first and one on the last. */
static void make(void)
{
	write_file(
	        "m.S",
	        ".text\n.globl low, high\n.type low,@function\n.type high,@function\nlow: ret\n.size low,1\n.skip 20000\nhigh: "
	        "ret\n.size high,1\n.section .note.GNU-stack,\"\",@progbits\n");
	shell("gcc -shared -nostdlib -Wl,-z,separate-code m.S -o m.so");
}

/*
 * The image of m.so in which the lines `with` replace its executable mapping. In them S, P and E stand for the start of the text,
 * the start of its second page, and its end; F for the rest of the file's own line after the permissions.
 */
static struct dp_image *image_with(const char *with)
{
	struct dp_image *image = image_of("m.so", BASE);
	const struct dp_map *text = NULL;
	for (size_t i = 0; i < dp_image_nmaps(image); i++)
		if (dp_image_map(image, i)->exec)
			text = dp_image_map(image, i);
	cr_assert(text && text->end.v - text->start.v > 0x4000);
	char *maps = maps_of(text->path, BASE), *line = strstr(maps, " r-xp"), *all = NULL;
	size_t size;
	while (line > maps && line[-1] != '\n')
		line--;
	FILE *f = open_memstream(&all, &size);
	fwrite(maps, 1, (size_t)(line - maps), f);
	for (; *with; with++)
		switch (*with) {
		case 'S':
			fprintf(f, "%llx", (unsigned long long)text->start.v);
			break;
		case 'P':
			fprintf(f, "%llx", (unsigned long long)text->start.v + 0x1000);
			break;
		case 'E':
			fprintf(f, "%llx", (unsigned long long)text->end.v);
			break;
		case 'F':
			fprintf(f, "%08llx 00:00 %llu %s", (unsigned long long)text->offset, (unsigned long long)text->inode,
			        text->path);
			break;
		default:
			fputc(*with, f);
		}
	fputs(strchr(line, '\n') + 1, f);
	fclose(f);
	dp_image_destroy(image);
	struct dp_error *err = dp_image_create(all, "", 0, &image);
	cr_assert_null(err, "%s\n%s", err ? err->message : "", all);
	free(all);
	free(maps);
	return image;
}

static bool is_moved(struct dp_image *image, const char *symbol)
{
	struct dp_site site;
	struct dp_error *err = resolve(image, symbol, &site);
	cr_assert_null(err, "%s: %s", symbol, err ? err->message : "");
	cr_assert_eq(site.addr.v, BASE + nm_value("m.so", symbol));
	return dp_module_moved(site.module, dp_image_map_at(image, site.addr), site.addr);
}

static void both(const char *with, bool low, bool high)
{
	struct dp_image *image = image_with(with);
	cr_expect_eq(dp_image_nmodules(image), 1, "%s", with);
	cr_expect_eq(is_moved(image, "low"), low, "%s", with);
	cr_expect_eq(is_moved(image, "high"), high, "%s", with);
	dp_image_destroy(image);
}

Test(moved_text, is_known_by_its_neighbours)
{
	make();
	both("S-E r-xp F\n", false, false);
	both("S-E r-xp 00000000 00:00 0 \n", true, true);
	both("S-P r-xp F\nP-E r-xp 00000000 00:00 0 \n", false, true);
	both("S-P r-xp 00000000 00:00 0 \nP-E rwxp 00000000 00:00 0 \n", true, true);
	both("S-E r-xp 00000000 00:00 0 [anon:text]\n", true, true);
	both("S-E r-xp 00000000 00:0f 77 /anon_hugepage (deleted)\n", true, true);
	both("S-E r-xs 00000000 00:01 78 /memfd:text (deleted)\n", true, true);
	both("S-E r-xs 00000000 00:01 79 /dev/zero (deleted)\n", true, true);
}

Test(moved_text, is_nothing_but_that)
{
	struct dp_image *image;
	make();
	/* No mapping is executable any more: the file is only data. */
	image = image_with("S-E r--p F\n");
	cr_expect_eq(dp_image_nmodules(image), 0);
	dp_image_destroy(image);
	/* Generated code directly before or after a library is not part of it. */
	char *maps = maps_of(dp_image_map(image = image_of("m.so", BASE), 0)->path, BASE), *more;
	const uint64_t end = dp_image_map(image, dp_image_nmaps(image) - 1)->end.v;
	cr_assert_geq(asprintf(&more, "%llx-%llx rwxp 00000000 00:00 0 \n%s%llx-%llx rwxp 00000000 00:00 0 \n",
	                       (unsigned long long)BASE - 0x1000, (unsigned long long)BASE, maps, (unsigned long long)end,
	                       (unsigned long long)end + 0x1000),
	              0);
	dp_image_destroy(image);
	cr_assert_null(dp_image_create(more, "", 0, &image));
	cr_expect_eq(dp_image_nmodules(image), 1);
	refused(image, "0x1ffff000", DP_TAG_NOT_CODE, "generated code");
	dp_image_destroy(image);
	free(more);
	free(maps);
}
