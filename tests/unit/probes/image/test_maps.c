/* SPDX-License-Identifier: MIT */
#include "helper_elf.h"
#include "probes/image/maps.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void parse(const char *text, struct dp_maps *maps)
{
	struct dp_error *err = dp_maps_parse(text, maps);
	cr_assert_null(err, "%s", err ? err->message : "");
}

static void check_refused(const char *text)
{
	struct dp_maps maps;
	struct dp_error *err = dp_maps_parse(text, &maps);
	cr_assert(err, "accepted: %s", text);
	dp_error_destroy(err);
}

Test(maps, every_part_of_a_line_is_read)
{
	struct dp_maps maps;
	parse("55d0c0de0000-55d0c0de2000 rw-s 0001f000 fe:1c 247134                     /usr/bin/my cat\n", &maps);
	const struct dp_map *m = maps.map;
	cr_assert_eq(maps.n, 1);
	cr_assert(m->start.v == 0x55d0c0de0000 && m->end.v == 0x55d0c0de2000 && m->offset == 0x1f000);
	cr_assert(m->read && m->write && !m->exec && m->shared);
	cr_assert(m->dev_major == 0xfe && m->dev_minor == 0x1c && m->inode == 247134);
	cr_assert_str_eq(m->path, "/usr/bin/my cat");
	dp_maps_fini(&maps);
}

Test(maps, nameless_and_special_mappings)
{
	struct dp_maps maps;
	parse("1000-2000 rw-p 00000000 00:00 0 \n"
	      "2000-3000 rw-p 00000000 00:00 0                          [heap]\n"
	      "3000-4000 r-xp 00000000 00:01 77                         /memfd:jit code (deleted)\n"
	      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]",
	      &maps);
	cr_assert_eq(maps.n, 4);
	cr_assert_str_eq(maps.map[0].path, "");
	cr_assert_str_eq(maps.map[1].path, "[heap]");
	cr_assert_str_eq(maps.map[2].path, "/memfd:jit code (deleted)");
	cr_assert_eq(dp_maps_at(&maps, dp_addr_of(0xffffffffff600010)), &maps.map[3]);
	cr_assert_eq(dp_maps_at(&maps, dp_addr_of(0x2fff)), &maps.map[1]);
	cr_assert_null(dp_maps_at(&maps, dp_addr_of(0x4000)));
	cr_assert_null(dp_maps_at(&maps, dp_addr_of(0xfff)));
	dp_maps_fini(&maps);
}

Test(maps, deleted_and_newline_are_cleaned_from_paths)
{
	bool changed;
	char *path = dp_map_clean_path("/tmp/a\\012b (deleted)", &changed);
	cr_assert_str_eq(path, "/tmp/a\nb");
	cr_assert(changed);
	free(path);
	path = dp_map_clean_path("/tmp/plain", &changed);
	cr_assert_str_eq(path, "/tmp/plain");
	cr_assert(!changed);
	free(path);
	path = dp_map_clean_path(" (deleted)", &changed);
	cr_assert_str_eq(path, " (deleted)");
	free(path);
}

Test(maps, garbage_is_refused)
{
	check_refused("hello\n");
	check_refused("\n");
	check_refused("2000-1000 r--p 00000000 00:00 0\n");
	check_refused("1000-1000 r--p 00000000 00:00 0\n");
	check_refused("1000-2000 r--p 00000000 00:00\n");
	check_refused("1000-2000 r--q 00000000 00:00 0\n");
	check_refused("1000-2000 r--pp 00000000 00:00 0\n");
	check_refused("11112222333344445-2000 r--p 00000000 00:00 0\n");
	check_refused("1000-2000 r--p 00000000 00:00 0x12 /a\n");
	check_refused("2000-3000 r--p 00000000 00:00 0\n1000-2000 r--p 00000000 00:00 0\n");
	check_refused("1000-3000 r--p 00000000 00:00 0\n2000-4000 r--p 00000000 00:00 0\n");
}

Test(maps, refusal_names_the_line)
{
	struct dp_maps maps;
	struct dp_error *err = dp_maps_parse("1000-2000 r--p 00000000 00:00 0\nwhat\n", &maps);
	cr_assert(err && strstr(err->message, "line 2") && strstr(err->message, "what"), "%s", err ? err->message : "");
	dp_error_destroy(err);
}

Test(maps, every_truncation_is_survived)
{
	static const char line[] = "1000-2000 rw-p 00000000 00:00 0 \n2000-3000 r-xp 00001000 fe:00 42     /usr/lib/x y\n";
	for (size_t n = 0; n < sizeof(line); n++) {
		struct dp_maps maps;
		char *cut = strndup(line, n);
		struct dp_error *err = dp_maps_parse(cut, &maps);
		if (!err)
			dp_maps_fini(&maps);
		dp_error_destroy(err);
		free(cut);
	}
}

Test(maps, own_maps_hold_own_code_and_stack)
{
	int local = 0;
	struct dp_image *image = image_of_self();
	for (size_t i = 1; i < dp_image_nmaps(image); i++)
		cr_assert_leq(dp_image_map(image, i - 1)->end.v, dp_image_map(image, i)->start.v);
	const struct dp_map *code = dp_image_map_at(image, dp_addr_of((uintptr_t)refused));
	const struct dp_map *stack = dp_image_map_at(image, dp_addr_of((uintptr_t)&local));
	cr_assert(code && code->exec && code->path[0] == '/');
	cr_assert(stack && stack->write && !stack->exec);
	cr_assert_null(dp_image_map(image, dp_image_nmaps(image)));
	dp_image_destroy(image);
}
