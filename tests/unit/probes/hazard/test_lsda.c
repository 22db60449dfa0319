/* SPDX-License-Identifier: MIT */
/* Landing pads: a window must not cover one, so either every pad is known or the result is "unknown". */
#include "helper_elf.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define BASE 0x10000000

/* A function with two call sites and three pads (one shared), its LSDA written by hand. */
static const char assembly[] =
        ".text\n.globl thrower, pad1, pad2\n.type thrower,@function\n"
        "thrower:\n .cfi_startproc\n .cfi_personality 0x9b,personality\n .cfi_lsda 0x1b,lsda\n"
        "try1: nop\nend1: nop\ntry2: nop\nend2: nop\n ret\npad2: nop\n ret\npad1: nop\n ret\n .cfi_endproc\n"
        ".size thrower, .-thrower\n"
        "plain: .cfi_startproc\n ret\n .cfi_endproc\n"
        ".section .gcc_except_table,\"a\",@progbits\n"
        "lsda: .byte 0xff\n .byte 0xff\n .byte %s\n .uleb128 done-start\n"
        "start:\n"
        " .uleb128 try1-thrower\n .uleb128 end1-try1\n .uleb128 pad1-thrower\n .uleb128 0\n"
        " .uleb128 try2-thrower\n .uleb128 end2-try2\n .uleb128 pad2-thrower\n .uleb128 1\n"
        " .uleb128 end1-thrower\n .uleb128 1\n .uleb128 pad1-thrower\n .uleb128 0\n"
        " .uleb128 end2-thrower\n .uleb128 1\n .uleb128 0\n .uleb128 0\n"
        "done: .long 0\n"
        ".data\npersonality: .quad 0\n.section .note.GNU-stack,\"\",@progbits\n";

static struct dp_image *assemble(const char *encoding)
{
	char text[sizeof(assembly) + 16];
	snprintf(text, sizeof(text), assembly, encoding);
	write_file("l.S", text);
	shell("gcc -shared -nostdlib l.S -o l.so");
	return image_of("l.so", BASE);
}

Test(lsda, every_pad_once_and_ascending)
{
	struct dp_image *image = assemble("0x01");
	const uint64_t *pads;
	size_t n;
	cr_assert(dp_module_landing_pads(dp_image_module(image, 0), &pads, &n));
	cr_assert_eq(n, 2);
	cr_assert_eq(pads[0], BASE + nm_value("l.so", "pad2"));
	cr_assert_eq(pads[1], BASE + nm_value("l.so", "pad1"));
	dp_image_destroy(image);
}

Test(lsda, unknown_encoding_means_nothing_is_known)
{
	struct dp_image *image = assemble("0x77");
	const uint64_t *pads;
	size_t n;
	cr_assert(!dp_module_landing_pads(dp_image_module(image, 0), &pads, &n));
	cr_assert(!dp_module_landing_pads(dp_image_module(image, 0), &pads, &n), "the second answer must be the same");
	dp_image_destroy(image);
}

Test(lsda, module_without_tables_has_no_pads)
{
	write_file("n.c", "int f(int x) { return x; }\n");
	shell("gcc -O1 -fPIC -shared -nostdlib -fno-asynchronous-unwind-tables n.c -o n.so");
	struct dp_image *image = image_of("n.so", BASE);
	const uint64_t *pads;
	size_t n = 1;
	cr_assert(dp_module_landing_pads(dp_image_module(image, 0), &pads, &n));
	cr_assert_eq(n, 0);
	dp_image_destroy(image);
}

/* The oracle is the compiler's own listing: each call-site row of .gcc_except_table names its pad as a label. */
Test(lsda, pads_of_compiled_cpp_lie_in_their_functions)
{
	write_file("x.cc",
	           "#include <stdexcept>\n#include <string>\nvoid g(const std::string &);\n"
	           "int f(int x) { std::string a(\"aaa\"); try { g(a); std::string b(a); g(b); } catch (std::exception &) "
	           "{ return 1; } catch (int) { g(a); } return x; }\n");
	shell("g++ -O2 -fPIC -shared x.cc -o x.so");
	struct dp_image *image = image_of("x.so", BASE);
	const uint64_t *pads;
	size_t n;
	cr_assert(dp_module_landing_pads(dp_image_module(image, 0), &pads, &n));
	cr_assert_geq(n, 3);
	for (size_t i = 0; i < n; i++) {
		struct dp_function f;
		cr_assert(dp_image_function_at(image, dp_addr_of(pads[i]), &f));
		cr_assert(strstr(f.name, "_Z1fi"), "a pad in %s", f.name);
		cr_assert(!i || pads[i] > pads[i - 1]);
	}
	dp_image_destroy(image);
}

Test(lsda, eh_frame_is_given_at_its_address_in_the_target)
{
	struct dp_image *image = assemble("0x01");
	const uint8_t *bytes;
	dp_addr addr;
	size_t size;
	char line[64] = "";
	cr_assert(dp_module_eh_frame(dp_image_module(image, 0), &addr, &bytes, &size));
	char command[256];
	snprintf(command, sizeof(command),
	         "readelf -SW %s/l.so | awk '$2 == \".eh_frame\" || $3 == \".eh_frame\" {print $0}' | "
	         "sed 's/.*PROGBITS *//;s/.*X86_64_UNWIND *//' | cut -d' ' -f1,3",
	         scratch());
	FILE *f = popen(command, "r");
	unsigned long vaddr = 0, n = 0;
	cr_assert(f && fgets(line, sizeof(line), f) && sscanf(line, "%lx %lx", &vaddr, &n) == 2, "%s", line);
	pclose(f);
	cr_assert(addr.v == BASE + vaddr && size == n, "0x%lx+0x%zx, readelf: %s", addr.v, size, line);
	dp_image_destroy(image);
}
