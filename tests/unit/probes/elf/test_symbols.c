/* SPDX-License-Identifier: MIT */
/* Sources of symbols: the file, its debug file, its embedded one, .eh_frame, and the start code. */
#include "helper_elf.h"

#include <criterion/criterion.h>
#include <string.h>

static const char program[] = "#include <stdlib.h>\n"
                              "__attribute__((noinline)) static int secret(int x) { return x * 3 + atoi(\"4\"); }\n"
                              "__attribute__((noinline)) int twice(int x) { return 2 * x + secret(x); }\n"
                              "int main(int argc, char **argv) { (void)argv; return twice(argc) + secret(argc); }\n";

#define BASE 0x10000000

static void build(const char *flags)
{
	write_file("p.c", program);
	shell("%s p.c -o p", flags);
	shell("strip -o p.stripped p");
}

static void check_main(const char *compiler, uint64_t base)
{
	build(compiler);
	struct dp_image *image = image_of("p.stripped", base);
	cr_assert_eq(address_of(image, "main"), base + nm_value("p", "main"), "%s", compiler);
	cr_assert_eq(address_of(image, "main+1"), base + nm_value("p", "main") + 1, "%s", compiler);
	cr_assert_eq(address_of(image, "p.stripped!main"), base + nm_value("p", "main"));
	refused(image, "secret", DP_TAG_NO_SYMBOL, "no function 'secret'");
	dp_image_destroy(image);
}

Test(symbols, main_of_a_stripped_executable)
{
	check_main("gcc -O2 -pie -fPIE", BASE);
	check_main("gcc -O0 -no-pie", 0);
	check_main("gcc -O2 -static", 0);
	check_main("gcc -O2 -static-pie -fPIE", BASE);
	check_main("clang -O2 -fPIE -pie", BASE);
}

Test(symbols, main_of_a_stripped_musl_executable)
{
	if (system("which musl-gcc >/dev/null 2>&1") != 0)
		cr_skip_test("musl-tools is not installed");
	check_main("musl-gcc -O2 -no-pie", 0);
	check_main("musl-gcc -O2 -fPIE -pie", BASE);
	check_main("musl-gcc -O2 -static", 0);
}

Test(symbols, main_of_stripped_ls_starts_a_function)
{
	struct dp_image *image;
	struct dp_site site;
	char *maps = maps_of("/bin/ls", BASE), text[256];
	cr_assert_null(dp_image_create(maps, "", 0, &image));
	struct dp_error *err = resolve(image, "main+0x0", &site);
	cr_assert_null(err, "%s", err ? err->message : "");
	cr_assert_str_eq(site.function.name, "main");
	cr_assert_gt(site.function.size, 100);
	dp_image_describe(image, dp_addr_add(site.addr, 3), text, sizeof(text));
	cr_assert_eq(strncmp(text, "main+0x3/", 9), 0, "%s", text);
	dp_image_destroy(image);
	free(maps);
}

Test(symbols, NO_MAIN_when_start_code_is_strange)
{
	write_file("s.S",
	           ".globl _start\n_start: mov $60,%eax\n xor %edi,%edi\n syscall\n.section .note.GNU-stack,\"\",@progbits\n");
	shell("gcc -nostdlib -static -s s.S -o s");
	struct dp_image *image = image_of("s", 0);
	refused(image, "main", DP_TAG_NO_MAIN, "entry point");
	dp_image_destroy(image);
}

Test(symbols, from_symtab_static_functions_too)
{
	build("gcc -O2 -fPIE -pie");
	struct dp_image *image = image_of("p", BASE);
	struct dp_site site;
	cr_assert_eq(address_of(image, "secret"), BASE + nm_value("p", "secret"));
	cr_assert_null(resolve(image, "p!secret", &site));
	cr_assert_str_eq(site.function.name, "secret");
	cr_assert(site.function.size > 0 && site.function.start.v == site.addr.v);
	cr_assert_eq(site.module, dp_image_module(image, 0));
	dp_image_destroy(image);
}

static void check_secret(const char *file)
{
	struct dp_image *image = image_of(file, BASE);
	uint64_t expected = BASE + nm_value("p", "secret");
	struct dp_function f;
	cr_assert_eq(address_of(image, "secret"), expected);
	cr_assert(dp_image_function_at(image, dp_addr_of(expected + 1), &f));
	cr_assert_str_eq(f.name, "secret");
	dp_image_destroy(image);
}

Test(symbols, from_a_debuglink_beside_the_file_and_in_dot_debug)
{
	build("gcc -g -O2 -fPIE -pie -Wl,--build-id=none");
	shell("objcopy --only-keep-debug p p.dbg && objcopy --add-gnu-debuglink=p.dbg p.stripped p.linked");
	check_secret("p.linked");
	shell("mkdir .debug && mv p.dbg .debug/");
	check_secret("p.linked");
}

Test(symbols, a_debuglink_with_a_wrong_checksum_is_not_used)
{
	build("gcc -g -O2 -fPIE -pie -Wl,--build-id=none");
	shell("objcopy --only-keep-debug p p.dbg && objcopy --add-gnu-debuglink=p.dbg p.stripped p.linked && printf x >> p.dbg");
	struct dp_image *image = image_of("p.linked", BASE);
	refused(image, "secret", DP_TAG_NO_SYMBOL, "secret");
	dp_image_destroy(image);
}

/* Build-ids are looked up below the target's root. */
static void check_build_id(const char *debug_file_of, bool expected)
{
	struct dp_image *image;
	struct dp_site site;
	char path[256];
	build("gcc -g -O2 -fPIE -pie -Wl,--build-id=0xfeed0123456789abcdef");
	shell("gcc -g -O2 -fPIE -pie -Wl,--build-id=0xfeed9999 p.c -o other");
	shell("mkdir -p usr/lib/debug/.build-id/fe && objcopy --only-keep-debug %s "
	      "usr/lib/debug/.build-id/fe/ed0123456789abcdef.debug",
	      debug_file_of);
	snprintf(path, sizeof(path), "%s/p.stripped", scratch());
	char *maps = maps_of(path, BASE);
	cr_assert_null(dp_image_create(maps, scratch(), 0, &image));
	cr_assert_str_eq(dp_module_build_id(dp_image_module(image, 0)), "feed0123456789abcdef");
	struct dp_error *err = resolve(image, "secret", &site);
	cr_assert_eq(!err, expected, "%s", err ? err->message : "found");
	dp_error_destroy(err);
	dp_image_destroy(image);
	free(maps);
}

Test(symbols, from_a_debug_file_by_build_id)
{
	check_build_id("p", true);
}

Test(symbols, a_debug_file_of_another_build_is_not_used)
{
	check_build_id("other", false);
}

Test(symbols, from_gnu_debugdata)
{
	build("gcc -g -O2 -fPIE -pie -Wl,--build-id=none");
	shell("objcopy --only-keep-debug p p.dbg && strip -g p.dbg && xz -k p.dbg");
	shell("objcopy --add-section .gnu_debugdata=p.dbg.xz p.stripped p.mini");
	check_secret("p.mini");
	shell("head -c 200 p.dbg.xz > cut.xz && objcopy --add-section .gnu_debugdata=cut.xz p.stripped p.cut");
	struct dp_image *image = image_of("p.cut", BASE);
	refused(image, "secret", DP_TAG_NO_SYMBOL, "secret");
	dp_image_destroy(image);
}

Test(symbols, bounds_from_eh_frame_without_any_symbol)
{
	build("gcc -O2 -fPIE -pie -Wl,--build-id=none");
	for (int headers = 0; headers < 2; headers++) {
		if (!headers) /* e_shoff, e_shnum, e_shstrndx */
			shell("cp p.stripped q && printf '\\0\\0\\0\\0\\0\\0\\0\\0' | dd of=q bs=1 seek=40 conv=notrunc "
			      "status=none && "
			      "printf '\\0\\0\\0\\0' | dd of=q bs=1 seek=60 conv=notrunc status=none");
		struct dp_image *image = image_of(headers ? "p.stripped" : "q", BASE);
		uint64_t secret = BASE + nm_value("p", "secret");
		struct dp_function f;
		char text[128], expected[128];
		cr_assert(dp_image_function_at(image, dp_addr_of(secret + 2), &f));
		cr_assert(f.start.v == secret && f.size > 2);
		cr_assert_str_eq(f.name, "");
		dp_image_describe(image, dp_addr_of(secret + 2), text, sizeof(text));
		snprintf(expected, sizeof(expected), "func@0x%lx+0x2/0x%lx [%s]", secret - BASE, (unsigned long)f.size,
		         headers ? "p.stripped" : "q");
		cr_assert_str_eq(text, expected);
		dp_image_destroy(image);
	}
}

Test(symbols, describe_names_symbol_offset_size_and_module)
{
	build("gcc -O2 -fPIE -pie");
	struct dp_image *image = image_of("p", BASE);
	struct dp_function f;
	char text[128], expected[128];
	uint64_t twice = BASE + nm_value("p", "twice");
	cr_assert(dp_image_function_at(image, dp_addr_of(twice), &f));
	snprintf(expected, sizeof(expected), "twice+0x1/0x%lx [p]", f.size);
	cr_assert_eq(dp_image_describe(image, dp_addr_of(twice + 1), text, sizeof(text)), (int)strlen(expected));
	cr_assert_str_eq(text, expected);
	dp_image_describe(image, dp_addr_of(0x4242), text, sizeof(text));
	cr_assert_str_eq(text, "0x4242");
	dp_image_destroy(image);
}

Test(symbols, aliases_prefer_the_exported_plain_name)
{
	write_file("a.c", "__attribute__((noinline)) static int hidden(int x) { return x; }\n"
	                  "int __strong(int) __attribute__((alias(\"hidden\")));\n"
	                  "int plain(int) __attribute__((weak, alias(\"hidden\")));\n");
	shell("gcc -O1 -fPIC -shared a.c -o a.so");
	struct dp_image *image = image_of("a.so", BASE);
	struct dp_function f;
	uint64_t addr = address_of(image, "plain");
	cr_assert_eq(addr, address_of(image, "__strong"));
	cr_assert_eq(addr, address_of(image, "hidden"));
	cr_assert(dp_image_function_at(image, dp_addr_of(addr), &f));
	cr_assert_str_eq(f.name, "plain");
	dp_image_destroy(image);
}

Test(symbols, unsized_assembly_ends_where_its_fde_ends)
{
	write_file("l.S", ".text\n.globl label, bare\nlabel: .cfi_startproc\n nop\n nop\n nop\n ret\n .cfi_endproc\n"
	                  ".balign 16\nbare: nop\n ret\n.section .note.GNU-stack,\"\",@progbits\n");
	shell("gcc -shared -nostdlib l.S -o l.so");
	struct dp_image *image = image_of("l.so", BASE);
	struct dp_function f;
	cr_assert(dp_image_function_at(image, dp_addr_of(address_of(image, "label+2")), &f));
	cr_assert_str_eq(f.name, "label");
	cr_assert_eq(f.size, 4);
	cr_assert(dp_image_function_at(image, dp_addr_of(address_of(image, "bare+1")), &f));
	cr_assert_str_eq(f.name, "bare");
	cr_assert_eq(f.size, 0);
	dp_image_destroy(image);
}
