/* SPDX-License-Identifier: MIT */
/* Lists of functions: each address once, all names present, no plain labels, and complete in stripped files. */
#include "helper_elf.h"

#include "base/error.h"
#include "probes/image/function/functions.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char source[] =
        "__attribute__((noinline)) static int inner(int x) { return x * 3 + 1; }\n"
        "int outer(int x) { return inner(x) - 2; }\n"
        "extern int other_name(int x) __attribute__((alias(\"outer\")));\n"
        "__asm__(\".globl big\\n.type big,@function\\nbig: nop\\nlabel: nop\\nret\\n.size big, . - big\\n\");\n"
        "int main(int argc, char **argv) { (void)argv; return outer(argc) == 2; }\n";

static const struct dp_named *find(const struct dp_named *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].f.name, name))
			return &list[i];
	return NULL;
}

static size_t functions(struct dp_image *image, struct dp_named **ret)
{
	size_t n = 0;
	struct dp_error *err = dp_module_functions(dp_image_module(image, 0), ret, &n);
	cr_assert_null(err, "%s", err ? err->message : "");
	for (size_t i = 1; i < n; i++) {
		cr_assert_leq((*ret)[i - 1].f.start.v, (*ret)[i].f.start.v);
		cr_assert_eq((*ret)[i].alias, (*ret)[i - 1].f.start.v == (*ret)[i].f.start.v, "%s", (*ret)[i].f.name);
	}
	return n;
}

static struct dp_image *file_image(const char *name)
{
	char path[512];
	struct dp_image *image = NULL;
	snprintf(path, sizeof(path), "%s/%s", scratch(), name);
	struct dp_error *err = dp_image_from_file(path, &image);
	cr_assert_null(err, "%s", err ? err->message : "");
	return image;
}

Test(functions, names_aliases_sizes_and_no_labels)
{
	write_file("a.c", source);
	shell("cc -O1 -fno-ipa-cp -o a a.c");
	struct dp_image *image = image_of("a", 0x10000000);
	struct dp_named *list = NULL;
	const size_t n = functions(image, &list);
	const struct dp_named *outer = find(list, n, "outer"), *other = find(list, n, "other_name"), *big = find(list, n, "big");
	cr_assert(outer && other && big && find(list, n, "inner") && find(list, n, "main"));
	cr_expect_eq(outer->f.start.v, 0x10000000 + nm_value("a", "outer"));
	cr_expect_eq(outer->f.start.v, other->f.start.v);
	cr_expect(outer->alias != other->alias);
	cr_expect_eq(big->f.size, 3);
	cr_expect_null(find(list, n, "label"));
	free(list);
	dp_image_destroy(image);
}

Test(functions, of_a_stripped_file_come_from_its_unwind_tables)
{
	write_file("s.c", source);
	shell("cc -O1 -o s s.c && cp s stripped && strip stripped");
	struct dp_image *image = image_of("stripped", 0x10000000);
	struct dp_named *list = NULL;
	const size_t n = functions(image, &list);
	const struct dp_named *found = find(list, n, "main");
	cr_assert(found);
	cr_expect_eq(found->f.start.v, 0x10000000 + nm_value("s", "main"));
	cr_expect_gt(found->f.size, 0);
	found = NULL;
	for (size_t i = 0; i < n; i++)
		if (list[i].f.start.v == 0x10000000 + nm_value("s", "outer"))
			found = &list[i];
	cr_assert(found);
	cr_expect_str_eq(found->f.name, "");
	cr_expect_gt(found->f.size, 0);
	free(list);
	dp_image_destroy(image);
}

Test(functions, globs_are_of_module_and_symbol)
{
	write_file("g.c", source);
	shell("cc -O1 -o prog g.c");
	struct dp_image *image = image_of("prog", 0x10000000);
	const struct dp_module *m = dp_image_module(image, 0);
	cr_expect(dp_module_glob(m, NULL) && dp_name_glob(NULL, "main"));
	cr_expect(dp_module_glob(m, "ma*") && dp_name_glob("ma*", "main"));
	cr_expect(dp_module_glob(m, "pr*!m?in") && dp_name_glob("pr*!m?in", "main"));
	cr_expect(dp_module_glob(m, "prog!") && dp_name_glob("prog!", "main"));
	cr_expect_not(dp_name_glob("prog!out*", "main"));
	cr_expect_not(dp_module_glob(m, "libc*!main"));
	cr_expect_not(dp_name_glob("mai", "main"));
	cr_expect(dp_name_glob("main.(*T).Run", "main.(*T).Run") && dp_name_glob("prog!f[a]", "f[a]"));
	dp_image_destroy(image);
}

Test(functions, a_file_that_nobody_runs_has_its_own_addresses)
{
	const struct {
		const char *options;
		uint64_t base;
	} kind[] = {{"-pie", DP_FILE_BASE_PROGRAM}, {"-no-pie", 0}, {"-static", 0}, {"-shared -fPIC", DP_FILE_BASE_LIBRARY}};
	write_file("f.c", source);
	for (size_t i = 0; i < 4; i++) {
		shell("cc -O1 %s -o f%zu f.c", kind[i].options, i);
		char name[8];
		snprintf(name, sizeof(name), "f%zu", i);
		struct dp_image *image = file_image(name);
		cr_assert_eq(dp_image_nmodules(image), 1, "%s", kind[i].options);
		cr_expect_eq((uint64_t)dp_module_bias(dp_image_module(image, 0)), kind[i].base, "%s", kind[i].options);
		cr_expect_eq(address_of(image, "outer"), kind[i].base + nm_value(name, "outer"), "%s", kind[i].options);
		dp_image_destroy(image);
	}
}

Test(functions, what_cannot_be_loaded_is_refused)
{
	struct dp_image *image = NULL;
	char path[512];
	write_file("o.c", source);
	write_file("text", "no ELF file at all, but long enough to have been one, if it only had begun as they do: 0123456789");
	shell("cc -c -o o.o o.c");
	for (const char *const *name = (const char *const[]){"o.o", "text", "missing", ".", NULL}; *name; name++) {
		snprintf(path, sizeof(path), "%s/%s", scratch(), *name);
		struct dp_error *err = dp_image_from_file(path, &image);
		cr_assert(err, "%s", *name);
		cr_expect_eq(err->tag, DP_TAG_BAD_ELF, "%s: %s", *name, err->message);
		dp_error_destroy(err);
	}
}
