/* SPDX-License-Identifier: MIT */
/* Renewing an image: mappings come and go while modules stay; the image follows, or says that it cannot. */
#include "probes/image/module.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char *own_maps(void)
{
	const size_t size = 1 << 20;
	char *text = calloc(1, size);
	FILE *f = fopen("/proc/self/maps", "re");
	cr_assert(text && f);
	fread(text, 1, size - 1, f);
	fclose(f);
	return text;
}

static struct dp_image *image_of(const char *maps)
{
	struct dp_image *image = NULL;
	struct dp_error *err = dp_image_create(maps, "", getpid(), &image);
	cr_assert_null(err, "%s", err ? err->message : "");
	return image;
}

Test(renew, new_memory_is_known_and_modules_are_the_same_ones)
{
	bool same = false;
	char *before = own_maps();
	struct dp_image *image = image_of(before);
	struct dp_module *executable = dp_image_module(image, 0);
	const size_t n = dp_image_nmodules(image);
	void *fresh = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *after = own_maps();
	cr_assert_null(dp_image_renew(image, after, &same));
	cr_assert(same);
	memset(before, 'x', strlen(before));
	const struct dp_map *map = dp_image_map_at(image, dp_addr_of((uint64_t)(uintptr_t)fresh));
	cr_assert(map && !map->read);
	cr_assert_eq(dp_image_nmodules(image), n);
	cr_assert_eq(dp_image_module_at(image, dp_addr_of((uint64_t)(uintptr_t)own_maps)), executable);
	dp_image_destroy(image);
	free(before);
	free(after);
}

Test(renew, a_module_that_is_gone_is_said_and_changes_nothing)
{
	bool same = true;
	char *maps = own_maps(), *without = own_maps(), *to = without;
	struct dp_image *image = image_of(maps);
	for (const char *line = maps; *line;) {
		const size_t n = strcspn(line, "\n") + 1;
		if (!memmem(line, n, "libc.so", 7)) {
			memcpy(to, line, n);
			to += n;
		}
		line += n;
	}
	*to = 0;
	cr_assert_lt(strlen(without), strlen(maps));
	cr_assert_null(dp_image_renew(image, without, &same));
	cr_assert_not(same);
	cr_assert(dp_image_module_at(image, dp_addr_of((uint64_t)(uintptr_t)own_maps)));
	cr_assert(dp_image_map_at(image, dp_addr_of((uint64_t)(uintptr_t)&printf)));
	dp_image_destroy(image);
	free(maps);
	free(without);
}

/* Any ELF file with code that this program does not use. */
static void *map_text(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	struct dp_image *file = NULL;
	cr_assert_null(dp_image_from_file(path, &file));
	const struct dp_module *m = dp_image_module(file, 0);
	uint64_t offset = 0, size = 0;
	for (size_t i = 0; i < m->elf->nphdr; i++)
		if (m->elf->phdr[i].p_type == PT_LOAD && m->elf->phdr[i].p_flags & PF_X) {
			offset = m->elf->phdr[i].p_offset & ~UINT64_C(4095);
			size = m->elf->phdr[i].p_filesz;
		}
	void *at = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, (off_t)offset);
	cr_assert_neq(at, MAP_FAILED);
	close(fd);
	dp_image_destroy(file);
	return at;
}

Test(later, code_that_was_mapped_since_is_found_behind_the_image)
{
	bool known = false;
	char *before = own_maps();
	struct dp_image *image = image_of(before);
	const uint64_t serial = dp_image_serial(image);
	struct dp_module *executable = dp_image_module(image, 0);
	cr_assert_null(dp_image_knows_code(image, before, &known));
	cr_assert(known);
	const dp_addr at = dp_addr_of((uint64_t)(uintptr_t)map_text("/bin/true"));
	char *after = own_maps();
	cr_assert_null(dp_image_knows_code(image, after, &known));
	cr_assert(!known);
	cr_assert_null(dp_image_module_at(image, at));
	struct dp_image *later = image_of(after);
	dp_image_add_later(image, later);
	cr_assert_eq(dp_image_latest(image), later);
	cr_assert_eq(dp_image_nlater(image), 1);
	cr_assert_neq(dp_image_serial(image), serial);
	cr_assert_null(dp_image_knows_code(image, after, &known));
	cr_assert(known);
	const struct dp_module *m = dp_image_module_at(image, at);
	cr_assert(m && !strcmp(dp_module_name(m), "true"));
	cr_assert_eq(dp_image_module_at(image, dp_addr_of((uint64_t)(uintptr_t)own_maps)), executable);
	dp_image_destroy(image);
	free(before);
	free(after);
}
