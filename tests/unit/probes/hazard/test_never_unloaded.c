/* SPDX-License-Identifier: MIT */
/* Text that a program can unload must not be taken for text that it cannot: it is patched with all threads stopped. */
#include "helper_elf.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static bool lasting(struct dp_image *image, const void *code)
{
	return dp_image_never_unloaded(image, dp_addr_of((uint64_t)(uintptr_t)code));
}

static void *load(const char *name, const char *symbol)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s", scratch(), name);
	void *library = dlopen(path, RTLD_NOW);
	cr_assert(library, "%s", dlerror());
	void *code = dlsym(library, symbol);
	cr_assert(code);
	return code;
}

Test(never_unloaded, the_executable_and_what_it_is_linked_against)
{
	struct dp_image *image = image_of_self();
	cr_expect(lasting(image, (const void *)(uintptr_t)load));
	cr_expect(lasting(image, dlsym(RTLD_DEFAULT, "malloc")));
	cr_expect(lasting(image, dlsym(RTLD_DEFAULT, "__tls_get_addr")), "the loader, which libc needs");
	cr_expect_not(lasting(image, NULL));
	dp_image_destroy(image);
}

Test(never_unloaded, not_what_dlopen_brings_nor_what_that_needs)
{
	write_file("l1.c", "int deep(int x) { return x + 1; }\n");
	write_file("l2.c", "int deep(int x); int shallow(int x) { return deep(x); }\n");
	shell("gcc -fPIC -shared l1.c -o libdeep.so && gcc -fPIC -shared l2.c -o libshallow.so -L. -ldeep -Wl,-rpath,'$ORIGIN'");
	const void *shallow = load("libshallow.so", "shallow"), *deep = load("libdeep.so", "deep");
	struct dp_image *image = image_of_self();
	cr_expect_not(lasting(image, shallow));
	cr_expect_not(lasting(image, deep));
	dp_image_destroy(image);
}

/* As with dlmopen(), or with a plugin of the same name: it is unknown which of the two the program needs. */
Test(never_unloaded, neither_of_two_with_one_name)
{
	write_file("fake.c", "int fake(int x) { return x + 1; }\n");
	shell("mkdir -p other && gcc -fPIC -shared fake.c -o other/libfake.so -Wl,-soname,libcriterion.so.3");
	char path[512];
	snprintf(path, sizeof(path), "%s/other/libfake.so", scratch());
	void *library = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
	cr_assert(library, "%s", dlerror());
	struct dp_image *image = image_of_self();
	cr_expect_not(lasting(image, dlsym(library, "fake")));
	cr_expect_not(lasting(image, dlsym(RTLD_DEFAULT, "criterion_run_all_tests")));
	cr_expect(lasting(image, (const void *)(uintptr_t)load));
	dp_image_destroy(image);
}
