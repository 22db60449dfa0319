/* SPDX-License-Identifier: MIT */
/* The cache of a debug file has the data that libdw unpacked; damaged, older, other users' and other files' entries are not used.
 */
#include "helper_elf.h"
#include "probes/debug/debug_cache.h"
#include "probes/debug/debug_internal.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char path[128], kept[PATH_MAX];

static int open_file(void)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert(fd >= 0);
	return fd;
}

static struct dp_debug_key key_of_file(void)
{
	struct dp_debug_key key;
	const int fd = open_file();
	cr_assert(dp_debug_cache_key(fd, &key));
	close(fd);
	return key;
}

/* Opens debug information as usual; was it read from the cache? */
static bool opens_kept(void)
{
	struct dp_debug_file f;
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	cr_assert(dp_debug_file_open_kept(open_file(), &f));
	cr_assert_eq(dwarf_get_units(f.dwarf, NULL, &cu, NULL, NULL, &die, NULL), 0);
	cr_assert_str_eq(dwarf_diename(&die), "prog.c");
	const bool was = f.bytes;
	dp_debug_file_close(&f);
	return was;
}

static void setup(void)
{
	char dir[96];
	write_file("prog.c", "struct point { int x, y; } p; int main(void) { return p.x; }\n");
	shell("head -c 2000000 /dev/zero > big && gcc -g -O2 -Wl,--build-id -o whole prog.c && "
	      "objcopy --add-section .debug_big=big whole large && objcopy --compress-debug-sections=zlib large packed");
	snprintf(path, sizeof(path), "%s/packed", scratch());
	snprintf(dir, sizeof(dir), "%s/a/b", scratch());
	dp_debug_cache_dir(dir);
	cr_assert_not(opens_kept(), "nothing was cached yet");
	snprintf(kept, sizeof(kept), "%s", key_of_file().path);
	cr_assert_eq(access(kept, R_OK), 0);
}

TestSuite(debug_cache, .init = setup);

Test(debug_cache, what_was_kept_is_what_was_unpacked)
{
	struct dp_debug_file packed;
	cr_assert(opens_kept());
	cr_assert(dp_debug_file_open(open_file(), &packed));
	const struct dp_debug_key key = key_of_file();
	struct dp_elf *elf = dp_debug_cache_load(&key);
	struct dp_debug_file unpacked;
	cr_assert(elf && dp_debug_memory_open(elf, &unpacked));
	static const char *const names[] = {".debug_info", ".debug_abbrev", ".debug_str", ".debug_line", ".symtab", ".shstrtab"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const struct dp_span a = dp_debug_section(packed.dwarf, names[i]), b = dp_debug_section(unpacked.dwarf, names[i]);
		cr_assert(a.size && a.size == b.size && !memcmp(a.bytes, b.bytes, a.size), "%s", names[i]);
	}
	dp_debug_file_close(&packed);
	dp_debug_file_close(&unpacked);
	dp_elf_destroy(elf);
}

Test(debug_cache, no_byte_may_be_another)
{
	struct stat st;
	cr_assert_eq(stat(kept, &st), 0);
	for (off_t at = 0; at < st.st_size; at += at < st.st_size - 128 ? st.st_size / 40 : 1) {
		const int fd = open(kept, O_RDWR | O_CLOEXEC);
		const struct dp_debug_key key = key_of_file();
		uint8_t byte, other;
		cr_assert_eq(pread(fd, &byte, 1, at), 1);
		other = (uint8_t)(byte ^ 0x10);
		cr_assert_eq(pwrite(fd, &other, 1, at), 1);
		cr_assert_null(dp_debug_cache_load(&key), "byte %lld", (long long)at);
		cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
		close(fd);
	}
	cr_assert(opens_kept());
}

Test(debug_cache, one_that_was_cut_off_is_made_anew)
{
	static const off_t sizes[] = {0, 10, 100, 4096, 20000};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		cr_assert_eq(truncate(kept, sizes[i]), 0);
		cr_assert_not(opens_kept(), "%lld bytes", (long long)sizes[i]);
		cr_assert(opens_kept());
	}
}

Test(debug_cache, a_file_that_was_replaced_or_changed_is_another)
{
	shell("cp packed other && mv other packed");
	cr_assert_not(opens_kept(), "another file of that build-id");
	cr_assert(opens_kept());
	shell("touch -d 2001-01-01 packed");
	cr_assert_not(opens_kept(), "its time changed: it may have been written to");
}

Test(debug_cache, what_others_can_write_or_lead_elsewhere_is_not_believed)
{
	const struct dp_debug_key key = key_of_file();
	cr_assert_eq(chmod(kept, 0620), 0);
	cr_assert_null(dp_debug_cache_load(&key));
	shell("chmod 600 %s && mv %s real && ln -s %s/real %s", kept, kept, scratch(), kept);
	cr_assert_null(dp_debug_cache_load(&key));
}

Test(debug_cache, where_nothing_can_be_kept_it_is_opened_all_the_same)
{
	char dir[128];
	snprintf(dir, sizeof(dir), "%s/packed/x", scratch()); /* below a regular file */
	dp_debug_cache_dir(dir);
	cr_assert_not(opens_kept());
	cr_assert_not(opens_kept());
	dp_debug_cache_dir(NULL);
	cr_assert_not(opens_kept());
}

Test(debug_cache, what_is_not_packed_is_not_kept)
{
	struct dp_debug_key key;
	snprintf(path, sizeof(path), "%s/whole", scratch());
	const int fd = open_file();
	cr_assert_not(dp_debug_cache_key(fd, &key));
	close(fd);
}
