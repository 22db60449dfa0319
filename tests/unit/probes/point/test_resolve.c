/* SPDX-License-Identifier: MIT */
/* Resolving specs, and the messages for ambiguous and unknown ones. */
#include "helper_elf.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#define BASE 0x10000000

static void build_two_libraries(void)
{
	write_file("a.c", "int variable = 3;\nint common(int x) { return x; }\nint only_a(int x) { return x + 1; }\n");
	write_file("b.c", "int common(int x) { return x; }\nint only_b_here(int x) { return x - 1; }\n");
	shell("gcc -O1 -fPIC -shared a.c -o liba.so.1 && gcc -O1 -fPIC -shared b.c -o libb.so.2");
}

static struct dp_image *two_libraries(void)
{
	build_two_libraries();
	return image_of_two("liba.so.1", "libb.so.2");
}

Test(resolve, AMBIGUOUS_lists_module_and_symbol)
{
	struct dp_image *image = two_libraries();
	refused(image, "common", DP_TAG_AMBIGUOUS, "liba.so.1!common (at 0x1000");
	refused(image, "common+1", DP_TAG_AMBIGUOUS, "libb.so.2!common (at 0x2000");
	refused(image, "lib*!common", DP_TAG_AMBIGUOUS, "names 2 functions");
	cr_assert_eq(address_of(image, "libb*!common"), 0x20000000 + nm_value("libb.so.2", "common"));
	cr_assert_eq(address_of(image, "liba.so.1!common"), BASE + nm_value("liba.so.1", "common"));
	dp_image_destroy(image);
}

Test(resolve, module_by_full_path_and_glob_on_it)
{
	char spec[256];
	struct dp_image *image = two_libraries();
	snprintf(spec, sizeof(spec), "%s/liba.so.1!common", scratch());
	cr_assert_eq(address_of(image, spec), BASE + nm_value("liba.so.1", "common"));
	cr_assert_eq(address_of(image, "/tmp/*/liba*!common"), BASE + nm_value("liba.so.1", "common"));
	dp_image_destroy(image);
}

Test(resolve, AMBIGUOUS_in_one_module_gives_files_or_file_addresses_that_work)
{
	char spec[64];
	write_file("one.c", "__attribute__((noinline, used)) static int ambiguous(int x) { return x; }\n");
	write_file("two.c", "__attribute__((noinline, used)) static int ambiguous(int x) { return x + 1; }\n");
	shell("gcc -O1 -fPIC -shared one.c two.c -o c.so");
	struct dp_image *image = image_of("c.so", BASE);
	uint64_t vaddr = nm_value("c.so", "ambiguous");
	snprintf(spec, sizeof(spec), "c.so!0x%lx", vaddr);
	refused(image, "ambiguous", DP_TAG_AMBIGUOUS, "c.so!ambiguous@two.c");
	cr_assert_eq(address_of(image, spec), BASE + vaddr);
	dp_image_destroy(image);
	shell("objcopy --strip-symbol=one.c --strip-symbol=two.c c.so"); /* now nothing tells their files */
	image = image_of("c.so", BASE);
	refused(image, "ambiguous", DP_TAG_AMBIGUOUS, spec);
	dp_image_destroy(image);
}

Test(resolve, AMBIGUOUS_copies_of_one_library_are_told_apart_by_address)
{
	build_two_libraries();
	struct dp_image *image = image_of_two("liba.so.1", "liba.so.1");
	cr_assert_eq(dp_image_nmodules(image), 2);
	refused(image, "only_a", DP_TAG_AMBIGUOUS, "\n  0x2000");
	refused(image, "liba*!0x1000", DP_TAG_AMBIGUOUS, "matches");
	dp_image_destroy(image);
}

Test(resolve, NO_SYMBOL_offers_near_names)
{
	struct dp_image *image = two_libraries();
	refused(image, "only_b_heer", DP_TAG_NO_SYMBOL, "did you mean libb.so.2!only_b_here?");
	refused(image, "comon", DP_TAG_NO_SYMBOL, "did you mean common?");
	refused(image, "liba*!only_b_here", DP_TAG_NO_SYMBOL, "in liba*");
	struct dp_site site;
	struct dp_error *err = resolve(image, "zzzzzzzzzzzz", &site);
	cr_assert(err && !strstr(err->message, "did you mean"));
	dp_error_destroy(err);
	dp_image_destroy(image);
}

Test(resolve, NO_MODULE_lists_what_is_mapped)
{
	struct dp_image *image = two_libraries();
	refused(image, "libc!common", DP_TAG_NO_MODULE, "liba.so.1, libb.so.2");
	refused(image, "libc!0x1000", DP_TAG_NO_MODULE, "'libc'");
	dp_image_destroy(image);
}

Test(resolve, NOT_CODE_for_data_and_unmapped_places)
{
	struct dp_image *image = two_libraries();
	refused(image, "variable", DP_TAG_NOT_CODE, "data");
	refused(image, "0x10000000", DP_TAG_NOT_CODE, "not executable");
	refused(image, "0x30000000", DP_TAG_NOT_CODE, "nothing is mapped");
	refused(image, "liba.so.1!0x10", DP_TAG_NOT_CODE, "not executable");
	refused(image, "liba.so.1!0xfffffffffffffff0", DP_TAG_NOT_CODE, "0xffffff0");
	dp_image_destroy(image);
}

Test(resolve, offset_behind_the_function_names_its_size)
{
	struct dp_image *image = two_libraries();
	refused(image, "only_a+0x100", DP_TAG_NOT_CODE, "bytes long");
	refused(image, "only_a+0xffffffffffffffff", DP_TAG_NOT_CODE, "bytes long");
	dp_image_destroy(image);
}

Test(resolve, default_symbol_version_wins_and_old_ones_can_be_named)
{
	write_file("v.c", "int old(int x) { return x; }\nint new(int x) { return x + 1; }\n"
	                  "__asm__(\".symver old,versioned@V_1\");\n__asm__(\".symver new,versioned@@V_2\");\n");
	write_file("v.map", "V_1 { };\nV_2 { };\n");
	shell("gcc -O1 -fPIC -shared v.c -Wl,--version-script=v.map -o v.so && strip -o vs.so v.so");
	for (int stripped = 0; stripped < 2; stripped++) {
		struct dp_image *image = image_of(stripped ? "vs.so" : "v.so", BASE);
		uint64_t old = BASE + nm_value("v.so", "old"), new = BASE + nm_value("v.so", "new");
		cr_assert_eq(address_of(image, "versioned"), new);
		cr_assert_eq(address_of(image, "versioned@V_1"), old);
		cr_assert_eq(address_of(image, "versioned@@V_2"), new);
		refused(image, "versioned@V_3", DP_TAG_NO_SYMBOL, "versioned@V_3");
		dp_image_destroy(image);
	}
}

static const char ifunc[] =
        "static int chosen_sse2(int x) { return x; }\nstatic int chosen_avx2(int x) { return x + 1; }\n"
        "static void *resolver(void) { return __builtin_cpu_supports(\"avx2\") ? chosen_avx2 : chosen_sse2; }\n"
        "int chosen(int) __attribute__((ifunc(\"resolver\")));\n";

Test(resolve, NO_SYMBOL_ifunc_names_the_implementations)
{
	write_file("i.c", ifunc);
	shell("gcc -O1 -fPIC -shared i.c -o i.so && strip -o is.so i.so");
	struct dp_image *image = image_of("i.so", BASE);
	refused(image, "chosen", DP_TAG_NO_SYMBOL, "IFUNC");
	refused(image, "chosen", DP_TAG_NO_SYMBOL, "chosen_avx2");
	refused(image, "chosen", DP_TAG_NO_SYMBOL, "chosen_sse2");
	cr_assert_eq(address_of(image, "chosen_avx2"), BASE + nm_value("i.so", "chosen_avx2"));
	dp_image_destroy(image);
	image = image_of("is.so", BASE);
	refused(image, "chosen", DP_TAG_NO_SYMBOL, "address");
	dp_image_destroy(image);
}

Test(resolve, imported_functions_are_found_in_their_library_only)
{
	write_file("m.c", "#include <stdio.h>\nint main(void) { return puts(\"x\"); }\n");
	shell("gcc -no-pie -O1 m.c -o m");
	struct dp_image *image = image_of("m", 0);
	refused(image, "puts", DP_TAG_NO_SYMBOL, "puts");
	dp_image_destroy(image);
}

Test(resolve, main_is_the_executables_although_a_library_has_one)
{
	write_file("m.c", "int main(void) { return 0; }\n");
	write_file("l.c", "int main(void) { return 1; }\n");
	shell("gcc -shared -fPIC l.c -o l.so && gcc -fPIE -pie m.c -o m");
	struct dp_image *image = image_of_two("l.so", "m");
	cr_assert_str_eq(dp_module_name(dp_image_module(image, 0)), "m");
	cr_assert_eq(address_of(image, "main"), 0x20000000 + nm_value("m", "main"));
	cr_assert_eq(address_of(image, "l.so!main"), 0x10000000 + nm_value("l.so", "main"));
	dp_image_destroy(image);
}

Test(resolve, main_is_a_librarys_where_the_executable_has_none)
{
	write_file("l.c", "int main(void) { return 1; }\n");
	write_file("m.c", "int other(void) { return 1; }\n");
	shell("gcc -shared -fPIC l.c -o l.so && gcc -fPIE -pie m.c l.so -o m && strip -o ms m");
	struct dp_image *image = image_of_two("m", "l.so");
	cr_assert_eq(address_of(image, "main"), 0x20000000 + nm_value("l.so", "main"));
	dp_image_destroy(image);
	image = image_of_two("ms", "l.so");
	cr_assert_eq(address_of(image, "main"), 0x20000000 + nm_value("l.so", "main"));
	dp_image_destroy(image);
}

Test(resolve, VDSO_is_refused_by_name_and_by_address)
{
	char spec[64];
	struct dp_image *image = image_of_self();
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
	snprintf(spec, sizeof(spec), "0x%lx", vdso + 0x800);
	refused(image, spec, DP_TAG_VDSO, "vdso");
	struct dp_error *err = dp_image_set_vdso(image, (const void *)vdso, 4096);
	cr_assert_null(err, "%s", err ? err->message : "");
	refused(image, spec, DP_TAG_VDSO, "vdso");
	cr_assert_eq(dp_module_bias(dp_image_module_at(image, dp_addr_of(vdso + 0x800))), (int64_t)vdso);
	dp_image_destroy(image);
}

/* A second process, stopped in main or later, and its image as seen from outside. */
static struct dp_image *image_of_child(const char *const argv[], pid_t *pid)
{
	static char maps[1 << 20];
	char path[64];
	struct dp_image *image;
	int gate[2];
	cr_assert_eq(pipe(gate), 0);
	*pid = fork();
	if (*pid == 0) {
		dup2(gate[1], 1);
		execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(gate[1]);
	cr_assert_eq(read(gate[0], path, 1), 1, "%s did not become ready", argv[0]);
	close(gate[0]);
	snprintf(path, sizeof(path), "/proc/%d/maps", *pid);
	FILE *f = fopen(path, "r");
	cr_assert(f);
	maps[fread(maps, 1, sizeof(maps) - 1, f)] = '\0';
	fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/root", *pid);
	struct dp_error *err = dp_image_create(maps, path, *pid, &image);
	cr_assert_null(err, "%s", err ? err->message : "");
	return image;
}

Test(resolve, python_functions_in_a_running_interpreter)
{
	pid_t pid;
	const char *const argv[] = {"/usr/bin/python3", "-c", "import time; print('x', flush=True); time.sleep(100)", NULL};
	if (access(argv[0], X_OK) != 0)
		cr_skip_test("python3 is not installed");
	struct dp_image *image = image_of_child(argv, &pid);
	struct dp_site site;
	struct dp_error *err = resolve(image, "PyObject_Str", &site);
	cr_assert_null(err, "%s", err ? err->message : "");
	cr_assert_gt(site.function.size, 16);
	uint64_t puts_address = address_of(image, "libc.so.6!puts");
	cr_assert_eq(dp_image_module_at(image, dp_addr_of(puts_address)),
	             dp_image_module_at(image, dp_addr_of(address_of(image, "puts"))));
	refused(image, "PyObject_Srt", DP_TAG_NO_SYMBOL, "PyObject_Str");
	dp_image_destroy(image);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

Test(resolve, a_deleted_executable_is_read_through_proc)
{
	pid_t pid;
	char path[128];
	const char *argv[] = {path, NULL};
	write_file("m.c", "#include <unistd.h>\nint marker(void) { return 3; }\n"
	                  "int main(int c, char **v) { unlink(v[0]); write(1, \"x\", 1); sleep(100); return c; }\n");
	shell("gcc -O1 -w m.c -o 'm x' && cp 'm x' keep");
	snprintf(path, sizeof(path), "%s/m x", scratch());
	struct dp_image *image = image_of_child(argv, &pid);
	struct dp_module *m = dp_image_module(image, 0);
	cr_assert_str_eq(dp_module_name(m), "m x");
	cr_assert_eq(address_of(image, "marker"), (uint64_t)dp_module_bias(m) + nm_value("keep", "marker"));
	dp_image_destroy(image);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

Test(resolve, BAD_ELF_a_replaced_file_is_not_mistaken_for_the_mapped_one)
{
	char path[128];
	struct dp_image *image;
	build_two_libraries();
	snprintf(path, sizeof(path), "%s/liba.so.1", scratch());
	char *maps = maps_of(path, BASE);
	shell("cp liba.so.1 new && mv new liba.so.1");
	cr_assert_null(dp_image_create(maps, "", 0, &image));
	cr_assert_eq(dp_image_nmodules(image), 1);
	refused(image, "only_a", DP_TAG_NO_SYMBOL, "was replaced or deleted");
	refused(image, "0x10001000", DP_TAG_BAD_ELF, "was replaced or deleted");
	dp_image_destroy(image);
	free(maps);
}
