/* SPDX-License-Identifier: MIT */
/* The functions that a pattern matches, and the spelling that names one of them unambiguously. */
#include "helper_elf.h"
#include "probes/image/image_internal.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

/* The names in ascending order of addresses, separated by blanks; or the error's tag name. */
static const char *selected(struct dp_image *image, const char *text, const char *except)
{
	static char names[4096];
	struct dp_spec spec;
	struct dp_selection found;
	cr_assert_null(dp_spec_parse(text, &spec), "%s", text);
	struct dp_error *err = dp_image_select(image, &spec, &except, except != NULL, &found);
	*names = 0;
	if (err)
		snprintf(names, sizeof(names), "%s %s", dp_tag_name(err->tag), err->message);
	for (size_t i = 0; !err && i < found.n; i++) {
		const struct dp_selected *s = &found.item[i];
		cr_expect(!i || found.item[i - 1].function.start.v < s->function.start.v);
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s%s", i ? " " : "", s->function.name,
		         s->ifunc ? "(ifunc)" : "");
	}
	if (!err)
		dp_selection_fini(&found);
	dp_error_destroy(err);
	dp_spec_fini(&spec);
	return names;
}

#define FN(name, kind) ".globl " name "\n.type " name ", @" kind "\n" name ": nop\nret\n.size " name ", 2\n"

static struct dp_image *functions(void)
{
	static const char text[] = ".text\n" FN("alpha", "function") FN("alpine", "function") FN("beta", "function")
	        FN("alpha.cold", "function") FN("choice", "gnu_indirect_function") "alpaca: nop\n" FN(
	                "last", "function") ".globl alias\n.type alias, @function\n.set alias, beta\n.size alias, 2\n"
	                                    ".data\n.globl alpdata\n.type alpdata, @object\nalpdata: .quad 0\n.size alpdata, 8\n";
	write_file("f.s", text);
	shell("gcc -shared -nostdlib -o libf.so f.s");
	return image_of("libf.so", 0x10000000);
}

Test(select, patterns_take_functions_only_and_each_address_once)
{
	struct dp_image *image = functions();
	cr_expect_str_eq(selected(image, "alp*", NULL), "alpha alpine");
	cr_expect_str_eq(selected(image, "a*", NULL), "alpha alpine alias");
	cr_expect_str_eq(selected(image, "[ab]*t*", NULL), "beta");
	cr_expect_str_eq(selected(image, "*t", NULL), "last");
	cr_expect_str_eq(selected(image, "libf*!al?ha", NULL), "alpha");
	cr_expect_str_eq(selected(image, "lib?.so!beta", NULL), "beta");
	dp_image_destroy(image);
}

Test(select, an_ifunc_is_among_them_and_marked)
{
	struct dp_image *image = functions();
	cr_expect_str_eq(selected(image, "cho*", NULL), "choice(ifunc)");
	dp_image_destroy(image);
}

Test(select, exceptions_go_by_any_alias_and_by_module)
{
	struct dp_image *image = functions();
	cr_expect_str_eq(selected(image, "a*", "beta"), "alpha alpine");
	cr_expect_str_eq(selected(image, "a*", "libf.so!alp*"), "alias");
	cr_expect_str_eq(selected(image, "a*", "libother.so!alp*"), "alpha alpine alias");
	dp_image_destroy(image);
}

Test(select, NO_SYMBOL_where_nothing_matches_or_all_is_left_out)
{
	struct dp_image *image = functions();
	cr_expect(strstr(selected(image, "zz*", NULL), "DP-NO-SYMBOL 'zz*': no function in the target"));
	cr_expect(strstr(selected(image, "libf.so!zz*", NULL), "in libf.so"));
	cr_expect(strstr(selected(image, "alp*", "a*"), "DP-NO-SYMBOL 'alp*': all 2 matching functions"));
	cr_expect(strstr(selected(image, "alpdat?", NULL), "DP-NO-SYMBOL"));
	cr_expect(strstr(selected(image, "none*!alp*", NULL), "DP-NO-MODULE"));
	dp_image_destroy(image);
}

Test(select, a_name_that_is_written_out_is_resolved_as_ever)
{
	struct dp_image *image = functions();
	cr_expect_str_eq(selected(image, "beta:return", NULL), "beta");
	cr_expect_str_eq(selected(image, "alpha.cold:*", NULL), "alpha.cold");
	cr_expect(strstr(selected(image, "alphaa:return", NULL), "did you mean alpha"));
	cr_expect(strstr(selected(image, "choice:return", NULL), "is an IFUNC"));
	dp_image_destroy(image);
}

Test(select, special_characters_of_a_name_are_the_name)
{
	write_file("g.s", ".text\n"
	                  ".globl \"main.(*T).Serve\"\n.type \"main.(*T).Serve\", @function\n"
	                  "\"main.(*T).Serve\": ret\n.size \"main.(*T).Serve\", 1\n"
	                  ".globl \"main.(*U).(*T).Serve\"\n.type \"main.(*U).(*T).Serve\", @function\n"
	                  "\"main.(*U).(*T).Serve\": ret\n.size \"main.(*U).(*T).Serve\", 1\n"
	                  ".globl \"main.F[int]\"\n.type \"main.F[int]\", @function\n"
	                  "\"main.F[int]\": ret\n.size \"main.F[int]\", 1\n");
	shell("gcc -shared -nostdlib -o libg.so g.s");
	struct dp_image *image = image_of("libg.so", 0x10000000);
	cr_expect_str_eq(selected(image, "main.(*T).Serve:return", NULL), "main.(*T).Serve");
	cr_expect_str_eq(selected(image, "main.F[int]", NULL), "main.F[int]");
	cr_expect_str_eq(selected(image, "main.F*", NULL), "main.F[int]");
	cr_expect_str_eq(selected(image, "main.(*).Serve", NULL), "main.(*T).Serve main.(*U).(*T).Serve");
	dp_image_destroy(image);
}

Test(select, the_executable_is_a_out_as_well)
{
	write_file("m.c", "int unlikely_name(void) { return 1; }\nint main(void) { return 0; }\n");
	shell("gcc -O1 -o m m.c");
	struct dp_image *image = image_of("m", 0x10000000);
	cr_expect_str_eq(selected(image, "pid$target:a.out:unlikely*:entry", NULL), "unlikely_name");
	dp_image_destroy(image);
}

/* DP_TAG_COUNT: it was found. */
static enum dp_tag tag_of(struct dp_image *image, const char *text)
{
	struct dp_site site;
	struct dp_error *err = resolve(image, text, &site);
	const enum dp_tag tag = err ? err->tag : DP_TAG_COUNT;
	dp_error_destroy(err);
	return tag;
}

Test(select, the_executable_answers_to_what_the_process_calls_itself)
{
	prctl(PR_SET_NAME, "served");
	struct dp_image *image = image_of_self();
	cr_expect_eq(tag_of(image, "served!image_of_self"), DP_TAG_COUNT);
	cr_expect_eq(tag_of(image, "serve!image_of_self"), DP_TAG_NO_MODULE);
	dp_image_call(image, "/usr/bin/libc.so.6");
	cr_expect_eq(tag_of(image, "libc.so.6!image_of_self"), DP_TAG_NO_SYMBOL, "a library's name is the library's");
	dp_image_destroy(image);
	prctl(PR_SET_NAME, "libc.so.6");
	image = image_of_self();
	cr_expect_eq(tag_of(image, "served!image_of_self"), DP_TAG_NO_MODULE);
	cr_expect_eq(tag_of(image, "libc.so.6!image_of_self"), DP_TAG_NO_SYMBOL);
	dp_image_destroy(image);
}

/* ---- the spec of a selected place ---------------------------------------------------------------------------------- */

static struct dp_spec spec_of(struct dp_image *image, const struct dp_function *f, uint64_t offset)
{
	struct dp_spec spec;
	cr_assert_null(dp_image_spec_of(image, f, offset, &spec));
	return spec;
}

static uint64_t resolved(struct dp_image *image, const struct dp_spec *spec)
{
	struct dp_site site;
	struct dp_error *err = dp_image_resolve(image, spec, &site);
	cr_assert_null(err, "%s: %s", spec->text, err ? err->message : "");
	return site.addr.v;
}

/* The text names the same place again, and so does the spec without its place. */
static void reads_back(struct dp_image *image, const char *text, uint64_t offset, const char *expected)
{
	struct dp_site site;
	struct dp_error *err = resolve(image, text, &site);
	cr_assert_null(err, "%s: %s", text, err ? err->message : "");
	const uint64_t addr = site.function.start.v + offset;
	struct dp_spec spec = spec_of(image, &site.function, offset);
	cr_expect_str_eq(spec.text, expected);
	cr_expect_eq(address_of(image, spec.text), addr, "%s", spec.text);
	cr_expect(spec.at.module);
	cr_expect_eq(resolved(image, &spec), addr, "%s", spec.text);
	spec.at.module = 0;
	cr_expect_eq(resolved(image, &spec), addr, "%s", spec.text);
	dp_spec_fini(&spec);
}

Test(spell, a_function_by_its_name_and_an_instruction_by_its_offset)
{
	struct dp_image *image = functions();
	reads_back(image, "beta", 0, "libf.so!beta");
	reads_back(image, "beta", 1, "libf.so!beta+0x1");
	dp_image_destroy(image);
}

Test(spell, functions_of_one_name_by_their_addresses)
{
	char text[64], expected[64];
	write_file("s1.c", "static int twice(int x) { return x; }\nint (*p1)(int) = twice;\n");
	write_file("s2.c", "static int twice(int x) { return x + 1; }\nint (*p2)(int) = twice;\n");
	shell("gcc -O1 -fPIC -shared -o libs.so s1.c s2.c");
	struct dp_image *image = image_of("libs.so", 0x10000000);
	const uint64_t at = nm_value("libs.so", "twice");
	snprintf(text, sizeof(text), "libs.so!0x%lx", at);
	snprintf(expected, sizeof(expected), "libs.so!0x%lx", at + 1);
	reads_back(image, text, 1, expected);
	dp_image_destroy(image);
}

Test(spell, a_module_by_its_path_where_another_answers_to_its_name)
{
	char expected[256];
	shell("mkdir -p x y && echo 'int in_x(void) { return 1; }' > x.c && gcc -O1 -fPIC -shared -o x/lib.so x.c && "
	      "echo 'int in_y(void) { return 1; }' > y.c && gcc -O1 -fPIC -shared -o y/lib.so y.c");
	struct dp_image *image = image_of_two("x/lib.so", "y/lib.so");
	snprintf(expected, sizeof(expected), "%s/x/lib.so!in_x", scratch());
	reads_back(image, "in_x", 0, expected);
	dp_image_destroy(image);
}

Test(spell, a_name_that_would_be_read_otherwise_by_its_address)
{
	char expected[64];
	write_file("h.s", ".text\n.globl \"odd+1\"\n.type \"odd+1\", @function\n\"odd+1\": ret\n.size \"odd+1\", 1\n");
	shell("gcc -shared -nostdlib -o libh.so h.s");
	struct dp_image *image = image_of("libh.so", 0x10000000);
	const uint64_t at = nm_value("libh.so", "odd+1");
	struct dp_function f = {.start = {0x10000000 + at}, .size = 1, .name = "odd+1", .module = dp_image_module(image, 0)};
	snprintf(expected, sizeof(expected), "libh.so!0x%lx", at);
	struct dp_spec spec = spec_of(image, &f, 0);
	cr_expect_str_eq(spec.text, expected);
	cr_expect_eq(resolved(image, &spec), f.start.v);
	dp_spec_fini(&spec);
	dp_image_destroy(image);
}

Test(spell, a_place_is_where_it_was_selected_and_found_again_in_another_image)
{
	struct dp_site site;
	struct dp_image *image = functions();
	cr_assert_null(resolve(image, "beta", &site));
	struct dp_spec spec = spec_of(image, &site.function, 1), copy;
	cr_assert_null(dp_spec_copy(&spec, &copy));
	copy.symbol[0] = 'z'; /* not searched for in this image */
	cr_expect_eq(resolved(image, &spec), site.addr.v + 1);
	cr_expect_eq(resolved(image, &copy), site.addr.v + 1);
	dp_image_destroy(image);
	image = image_of("libf.so", 0x10000000);
	cr_expect_eq(resolved(image, &spec), site.addr.v + 1, "the same image, read again");
	dp_image_destroy(image);
	image = image_of("libf.so", 0x20000000);
	cr_expect_eq(resolved(image, &spec), site.addr.v + 0x10000001, "the module is elsewhere");
	struct dp_error *err = dp_image_resolve(image, &copy, &site);
	cr_assert(err);
	cr_expect_eq(err->tag, DP_TAG_NO_SYMBOL);
	dp_error_destroy(err);
	dp_image_destroy(image);
	dp_spec_fini(&copy);
	dp_spec_fini(&spec);
}

/* Searching for the place is refused. */
static void searched(struct dp_image *image, uint64_t at, const char *name, enum dp_tag tag)
{
	struct dp_site site;
	const struct dp_function f = {{at}, 2, name, dp_image_module(image, 0)};
	struct dp_spec spec = spec_of(image, &f, 0);
	struct dp_error *err = dp_image_resolve(image, &spec, &site);
	cr_assert(err);
	cr_expect_eq(err->tag, tag, "%s", err->message);
	dp_error_destroy(err);
	dp_spec_fini(&spec);
}

Test(spell, a_place_that_its_text_does_not_name_alone_is_searched_for)
{
	char *maps[2], *both, path[256];
	struct dp_image *image = functions();
	searched(image, 0x10000000 + nm_value("libf.so", "choice"), "choice", DP_TAG_NO_SYMBOL);
	dp_image_destroy(image);
	snprintf(path, sizeof(path), "%s/libf.so", scratch());
	for (unsigned i = 0; i < 2; i++)
		maps[i] = maps_of(path, 0x10000000 + 0x10000000ULL * i);
	cr_assert_geq(asprintf(&both, "%s%s", maps[0], maps[1]), 0);
	cr_assert_null(dp_image_create(both, "", 0, &image));
	cr_assert_eq(dp_image_nmodules(image), 2);
	searched(image, 0x10000000 + nm_value("libf.so", "beta"), "beta", DP_TAG_AMBIGUOUS);
	dp_image_destroy(image);
	free(maps[0]);
	free(maps[1]);
	free(both);
}
