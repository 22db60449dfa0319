/* SPDX-License-Identifier: MIT */
/* Modules of a real process: the file's contents equal the memory's. */
#include "helper_elf.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *load(const char *name)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", scratch(), name);
	void *lib = dlopen(path, RTLD_NOW);
	cr_assert(lib, "%s", dlerror());
	return lib;
}

/* Compares all text of the module around `inside` with our own memory. */
static void compare_text(struct dp_image *image, const void *inside)
{
	dp_addr start, end, at = dp_addr_of((uintptr_t)inside);
	struct dp_module *m = dp_image_module_at(image, at);
	cr_assert(m && dp_module_text_bounds(m, at, &start, &end));
	size_t n = end.v - start.v + 100, asked = n;
	uint8_t *buf = malloc(n);
	struct dp_error *err = dp_module_text(m, start, buf, &n);
	cr_assert_null(err, "%s", err ? err->message : "");
	cr_assert_eq(n, asked - 100, "the length is cut at the segment's end");
	cr_assert_eq(memcmp(buf, (const void *)(uintptr_t)start.v, n), 0, "%s", dp_module_path(m));
	for (size_t off = 1; off < 12 && off < n; off++) {
		size_t few = n - off < 9 ? n - off : 9;
		cr_assert_null(dp_module_text(m, dp_addr_add(start, (int64_t)off), buf, &few));
		cr_assert_eq(memcmp(buf, (const void *)(uintptr_t)(start.v + off), few), 0);
	}
	free(buf);
}

Test(module, text_of_the_file_is_the_text_in_memory)
{
	struct dp_image *image = image_of_self();
	compare_text(image, (const void *)(uintptr_t)compare_text);
	compare_text(image, dlsym(RTLD_DEFAULT, "puts"));
	dp_image_destroy(image);
}

Test(module, text_relocations_are_applied)
{
	write_file("t.S", ".text\n.globl start_here, exported\nstart_here: nop\n movabs $here,%rax\n nop\nhere: movabs "
	                  "$exported,%rcx\n ret\n"
	                  "exported: movabs $exported+5,%rdx\n ret\n.section .note.GNU-stack,\"\",@progbits\n");
	shell("gcc -shared -nostdlib -Wl,-z,notext -Wl,-Bsymbolic t.S -o t.so 2>/dev/null");
	void *lib = load("t.so");
	uint8_t *code = dlsym(lib, "start_here");
	uint64_t pointer;
	memcpy(&pointer, code + 3, sizeof(pointer));
	cr_assert_eq(pointer, (uintptr_t)code + 12, "the loader relocates this text");
	struct dp_image *image = image_of_self();
	compare_text(image, code);
	dp_image_destroy(image);
}

Test(module, executable_is_first_and_names_are_file_names)
{
	char exe[512] = "";
	struct dp_image *image = image_of_self();
	struct dp_module *m = dp_image_module(image, 0);
	cr_assert_gt(readlink("/proc/self/exe", exe, sizeof(exe) - 1), 0);
	cr_assert_str_eq(dp_module_path(m), exe);
	cr_assert_str_eq(dp_module_name(m), strrchr(exe, '/') + 1);
	cr_assert_eq(dp_image_module_at(image, dp_addr_of((uintptr_t)compare_text)), m);
	cr_assert_null(dp_image_module(image, dp_image_nmodules(image)));
	dp_image_destroy(image);
}

Test(module, executable_is_first_although_mapped_above_its_libraries)
{
	write_file("m.c", "int main(void) { return 0; }\n");
	write_file("l.c", "int f(void) { return 1; }\n");
	shell("gcc -shared -fPIC -Wl,-soname,l.so l.c -o l.so && gcc -fPIE -pie m.c -o m");
	struct dp_image *image = image_of_two("l.so", "m");
	cr_assert_str_eq(dp_module_name(dp_image_module(image, 0)), "m");
	cr_assert_str_eq(dp_module_name(dp_image_module(image, 1)), "l.so");
	dp_image_destroy(image);
}

Test(module, two_namespaces_hold_two_modules_of_one_file)
{
	write_file("n.c", "int in_namespace(void) { return 7; }\n");
	shell("gcc -shared -fPIC n.c -o n.so");
	char path[256], spec[300];
	snprintf(path, sizeof(path), "%s/n.so", scratch());
	void *one = load("n.so"), *two = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
	cr_assert(two, "%s", dlerror());
	struct dp_image *image = image_of_self();
	struct dp_module *a = dp_image_module_at(image, dp_addr_of((uintptr_t)dlsym(one, "in_namespace")));
	struct dp_module *b = dp_image_module_at(image, dp_addr_of((uintptr_t)dlsym(two, "in_namespace")));
	cr_assert(a && b && a != b);
	cr_assert_neq(dp_module_bias(a), dp_module_bias(b));
	cr_assert_str_eq(dp_module_path(a), dp_module_path(b));
	snprintf(spec, sizeof(spec), "0x%lx", (unsigned long)(uintptr_t)dlsym(two, "in_namespace"));
	refused(image, "in_namespace", DP_TAG_AMBIGUOUS, spec);
	dp_image_destroy(image);
}

Test(module, a_piece_of_text_mapped_again_is_no_second_module)
{
	write_file("v.c", "int twice_mapped(void) { return 7; }\n");
	shell("gcc -shared -fPIC v.c -o v.so");
	struct dp_image *image = image_of("v.so", 0x20000000);
	const struct dp_map *text = NULL;
	for (size_t i = 0; i < dp_image_nmaps(image); i++)
		if (dp_image_map(image, i)->exec)
			text = dp_image_map(image, i);
	char *maps = maps_of(text->path, 0x20000000), *more;
	cr_assert_geq(
	        asprintf(&more, "10000000-10001000 r-xp %08lx 00:00 %lu %s\n%s", text->offset, text->inode, text->path, maps), 0);
	dp_image_destroy(image);
	cr_assert_null(dp_image_create(more, "", 0, &image));
	cr_assert_eq(dp_image_nmodules(image), 1);
	cr_assert_eq(address_of(image, "twice_mapped"), 0x20000000 + nm_value("v.so", "twice_mapped"));
	refused(image, "0x10000000", DP_TAG_NOT_CODE, "v.so");
	dp_image_destroy(image);
	free(maps);
	free(more);
}

Test(module, a_deleted_library_is_read_through_map_files)
{
	write_file("d.c", "int deleted_function(void) { return 7; }\n");
	shell("gcc -shared -fPIC d.c -o 'd e.so'");
	void *lib = load("d e.so");
	shell("rm 'd e.so'");
	if (geteuid() != 0)
		cr_skip_test("map_files needs root");
	struct dp_image *image = image_of_self();
	cr_assert_eq(address_of(image, "d e.so!deleted_function"), (uintptr_t)dlsym(lib, "deleted_function"));
	compare_text(image, dlsym(lib, "deleted_function"));
	dp_image_destroy(image);
}

Test(module, a_newline_in_a_path_is_understood)
{
	write_file("w.c", "int weird_function(void) { return 7; }\n");
	shell("gcc -shared -fPIC w.c -o w.so && mv w.so \"$(printf 'w\\nx.so')\"");
	void *lib = load("w\nx.so");
	struct dp_image *image = image_of_self();
	cr_assert_eq(address_of(image, "weird_function"), (uintptr_t)dlsym(lib, "weird_function"));
	dp_image_destroy(image);
}

Test(module, files_that_are_only_read_are_no_modules)
{
	struct dp_image *image;
	cr_assert_null(dp_image_create("10000000-10100000 r--p 00000000 00:00 0 /bin/ls\n"
	                               "20000000-20001000 r-xp 00000000 00:00 0 /etc/passwd\n"
	                               "30000000-30001000 rwxp 00000000 00:00 0 \n"
	                               "40000000-40001000 r-xs 00000000 00:01 9 /memfd:jit (deleted)\n",
	                               "", 0, &image));
	cr_assert_eq(dp_image_nmodules(image), 0);
	cr_assert_null(dp_image_module(image, 0));
	refused(image, "main", DP_TAG_NO_SYMBOL, "main");
	refused(image, "0x30000000", DP_TAG_NOT_CODE, "generated code");
	refused(image, "x!main", DP_TAG_NO_MODULE, "none");
	dp_image_destroy(image);
}

Test(module, BAD_ELF_a_foreign_elf_file_is_named)
{
	struct dp_image *image;
	char *maps;
	shell("printf '\\177ELF\\1\\1\\1' > foreign && head -c 5000 /dev/zero >> foreign");
	cr_assert_geq(asprintf(&maps, "10000000-10002000 r-xp 00000000 00:00 0 %s/foreign\n", scratch()), 0);
	cr_assert_null(dp_image_create(maps, "", 0, &image));
	cr_assert_eq(dp_image_nmodules(image), 1);
	refused(image, "0x10000010", DP_TAG_BAD_ELF, "x86-64");
	dp_image_destroy(image);
	free(maps);
}

Test(module, segments_are_where_they_are_mapped)
{
	struct dp_image *image = image_of_self();
	struct dp_module *m = dp_image_module_at(image, dp_addr_of((uintptr_t)dlsym(RTLD_DEFAULT, "puts")));
	unsigned executable = 0;
	cr_assert_geq(dp_module_nsegments(m), 2);
	for (size_t i = 0; i < dp_module_nsegments(m); i++) {
		dp_addr addr;
		const uint8_t *bytes;
		size_t n;
		bool exec;
		cr_assert(dp_module_segment(m, i, &addr, &bytes, &n, &exec));
		cr_assert_eq(dp_image_module_at(image, addr), m);
		if (!exec)
			continue;
		executable++;
		cr_assert_eq(memcmp(bytes, (const void *)(uintptr_t)addr.v, n), 0);
	}
	cr_assert_eq(executable, 1);
	dp_image_destroy(image);
}

Test(module, bss_belongs_to_its_module)
{
	static char bss[1 << 20];
	struct dp_image *image = image_of_self();
	bss[0] = 1;
	cr_assert_eq(dp_image_module_at(image, dp_addr_of((uintptr_t)bss + sizeof(bss) / 2)), dp_image_module(image, 0));
	dp_image_destroy(image);
}

Test(module, NOT_CODE_outside_of_text)
{
	uint8_t buf[4];
	size_t n = sizeof(buf);
	static int data = 1;
	dp_addr start, end, at = dp_addr_of((uintptr_t)&data);
	struct dp_image *image = image_of_self();
	struct dp_module *m = dp_image_module_at(image, at);
	struct dp_error *err = dp_module_text(m, at, buf, &n);
	cr_assert(err && err->tag == DP_TAG_NOT_CODE);
	dp_error_destroy(err);
	cr_assert(!dp_module_text_bounds(m, at, &start, &end));
	dp_image_destroy(image);
}

Test(module, build_id_is_the_notes)
{
	write_file("b.c", "int f(void) { return 7; }\n");
	shell("gcc -shared -fPIC -Wl,--build-id=0x0123456789abcdef b.c -o b.so && gcc -shared -fPIC -Wl,--build-id=none b.c -o "
	      "n.so");
	struct dp_image *image = image_of("b.so", 0x10000000);
	cr_assert_str_eq(dp_module_build_id(dp_image_module(image, 0)), "0123456789abcdef");
	dp_image_destroy(image);
	image = image_of("n.so", 0x10000000);
	cr_assert_str_eq(dp_module_build_id(dp_image_module(image, 0)), "");
	dp_image_destroy(image);
}
