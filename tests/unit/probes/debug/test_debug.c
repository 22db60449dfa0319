/* SPDX-License-Identifier: MIT */
/* Debug information is found wherever compilers, packages and users put it, and never that of another file. */
#include "helper_elf.h"
#include "probes/debug/debug.h"
#include "probes/image/parsed.h"
#include "probes/point/select/more.h"

#include <criterion/criterion.h>
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define BASE 0x555555554000u

static const char source[] = "static inline __attribute__((always_inline)) int twice(int x) { __asm__ volatile(\"incl %0\" : "
                             "\"+r\"(x)); return x * 2; }\n"
                             "__attribute__((noinline)) int work(int a) { return twice(a) + twice(a + 7); }\n"
                             "int main(int argc, char **argv) { (void)argv; return work(argc); }\n";

static struct dp_error *open_of(struct dp_image *image, struct dp_debug **ret)
{
	return dp_module_debug(dp_image_module(image, 0), ret);
}

/* The information knows that twice() was inlined into work(). */
static void expect_good(struct dp_image *image)
{
	struct dp_debug *debug = NULL;
	struct dp_error *err = open_of(image, &debug);
	cr_assert_null(err, "%s", err ? err->message : "");
	Dwarf_Die die, scopes[8];
	Dwarf_CU *cursor = NULL;
	cr_assert(dp_debug_next_unit(debug, &cursor, &die));
	cr_assert_str_eq(dwarf_diename(&die), "prog.c");
	struct dp_site site;
	bool inlined = false;
	err = resolve(image, "work", &site);
	cr_assert_null(err);
	const uint64_t pc = dp_debug_pc(debug, site.addr);
	for (uint64_t at = pc; at < pc + site.function.size; at++) {
		const size_t n = dp_debug_scopes_at(debug, at, scopes, 8);
		cr_assert(n >= 1 && n <= 2, "%zu scopes at work+%zu", n, (size_t)(at - pc));
		cr_assert_str_eq(dwarf_diename(&scopes[n - 1]), "work");
		if (n == 2) {
			inlined = true;
			cr_assert_str_eq(dwarf_diename(&scopes[0]), "twice");
			cr_assert_eq(dwarf_tag(&scopes[0]), DW_TAG_inlined_subroutine);
		}
	}
	cr_assert(inlined);
	cr_assert_null(dp_debug_missing_dwo(debug));
	dp_image_destroy(image);
	dp_parsed_forget(); /* the next image searches anew */
}

static void expect_none(struct dp_image *image, const char *part)
{
	struct dp_debug *debug = NULL;
	for (int i = 0; i < 2; i++) { /* the result is cached */
		struct dp_error *err = open_of(image, &debug);
		cr_assert(err && err->tag == DP_TAG_NO_DEBUG_INFO);
		cr_assert(strstr(err->message, part), "'%s' is not in: %s", part, err->message);
		dp_error_destroy(err);
	}
	cr_assert_not(dp_module_debug_opened(dp_image_module(image, 0)));
	dp_image_destroy(image);
}

static void build(const char *compiler)
{
	write_file("prog.c", source);
	shell("%s -Wl,--build-id prog.c -o prog", compiler);
}

Test(debug, every_way_that_compilers_write_it)
{
	static const char *const ways[] = {
	        "gcc -g -O0",
	        "gcc -g -O2 -gdwarf-5",
	        "gcc -g -O2 -gdwarf-4",
	        "gcc -g -O2 -gdwarf-3 -gstrict-dwarf",
	        "gcc -g -O2 -gz",
	        "gcc -g -O2 -gsplit-dwarf",
	        "gcc -g -O2 -gsplit-dwarf -gdwarf-4",
	        "gcc -g -O2 -flto -fno-ipa-cp",
	        "clang -g -O2 -gdwarf-5",
	        "clang -g -O2 -gdwarf-4 -gz",
	        "clang -g -O2 -gsplit-dwarf",
	};
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if (!strncmp(ways[i], "clang", 5) && system("clang --version >/dev/null 2>&1"))
			continue;
		cr_log_info("%s", ways[i]);
		build(ways[i]);
		if (strstr(ways[i], "-flto")) { /* its units have other names */
			struct dp_debug *debug = NULL;
			struct dp_image *image = image_of("prog", BASE);
			cr_assert_null(open_of(image, &debug));
			dp_image_destroy(image);
		} else
			expect_good(image_of("prog", BASE));
	}
}

static const char parts[] =
        "__attribute__((cold, noinline)) void bad(int x) { __asm__ volatile(\"\" : : \"r\"(x)); }\n"
        "namespace first { __attribute__((noinline)) int same(int x) { __asm__(\"\"); return x + 1; }\n"
        "struct holder { __attribute__((noinline)) static int same(int x) { __asm__(\"\"); return x + 2; } }; }\n"
        "__attribute__((noinline)) int split(int x)\n"
        "{ if (__builtin_expect(x > 7, 0)) { bad(x); bad(x + 1); return 3 * x; } return first::same(x); }\n"
        "int last(int x) { return x; }\n"
        "int main(int argc, char **) { return split(argc) + first::holder::same(argc) + last(argc); }\n";

/* Each byte of [from, from + size) belongs to that function, asked from the last to the first. */
static void expect_function(struct dp_debug *debug, uint64_t from, uint64_t size, const char *name)
{
	for (uint64_t pc = from + size; pc-- > from;) {
		Dwarf_Die scopes[8];
		const size_t n = dp_debug_scopes_at(debug, pc, scopes, 8);
		cr_assert(n, "nothing at %#lx", pc);
		cr_assert_str_eq(dwarf_diename(&scopes[n - 1]), name);
	}
}

Test(debug, functions_in_two_parts_in_namespaces_and_in_classes)
{
	static const struct {
		const char *symbol, *name;
	} at[] = {{"_Z5spliti.cold", "split"},  {"main", "main"},     {"_ZN5first6holder4sameEi", "same"},
	          {"_ZN5first4sameEi", "same"}, {"_Z4lasti", "last"}, {"_Z5spliti", "split"}};
	write_file("prog.cc", parts);
	shell("g++ -g -O2 prog.cc -o prog");
	struct dp_image *image = image_of("prog", BASE);
	struct dp_debug *debug = NULL;
	cr_assert_null(open_of(image, &debug));
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
		struct dp_site site;
		cr_assert_null(resolve(image, at[i].symbol, &site), "%s", at[i].symbol);
		expect_function(debug, dp_debug_pc(debug, site.addr), site.function.size, at[i].name);
	}
	Dwarf_Die scopes[8];
	cr_assert_eq(dp_debug_scopes_at(debug, nm_value("prog", "_start"), scopes, 8), 0);
	dp_image_destroy(image);
}

/* Two units. Then .debug_aranges is wrong: it swaps the two units, is garbage, lacks one, or is missing. */
Test(debug, a_table_of_units_by_address_that_lies_or_lacks_some_is_not_believed)
{
	write_file("prog.c", source);
	write_file("other.c", "int other(int a) { return a * 3; }\n");
	shell("gcc -g -O0 -c prog.c && gcc -g -O0 -c other.c && gcc -Wl,--build-id prog.o other.o -o prog");
	expect_good(image_of("prog", BASE));
	shell("objcopy --dump-section .debug_aranges=table prog && test $(stat -c %%s table) = 96 && cp table lie");
	shell("dd if=table of=lie bs=1 skip=6 count=4 seek=54 conv=notrunc 2>&1");
	shell("dd if=table of=lie bs=1 skip=54 count=4 seek=6 conv=notrunc 2>&1");
	shell("! cmp -s table lie && objcopy --update-section .debug_aranges=lie prog");
	expect_good(image_of("prog", BASE));
	shell("tr '\\0' '\\377' < table > lie && objcopy --update-section .debug_aranges=lie prog");
	expect_good(image_of("prog", BASE));
	shell("objcopy --remove-section .debug_aranges prog");
	expect_good(image_of("prog", BASE));
	shell("objcopy --remove-section .debug_aranges prog.o && gcc -Wl,--build-id prog.o other.o -o prog");
	expect_good(image_of("prog", BASE));
}

Test(debug, a_missing_dwo_file_is_named)
{
	struct dp_debug *debug = NULL;
	Dwarf_CU *cursor = NULL;
	Dwarf_Die die;
	build("gcc -g -O2 -gsplit-dwarf");
	shell("rm -f *.dwo");
	struct dp_image *image = image_of("prog", BASE);
	cr_assert_null(open_of(image, &debug));
	cr_assert(dp_debug_next_unit(debug, &cursor, &die));
	cr_assert(dp_debug_missing_dwo(debug) && strstr(dp_debug_missing_dwo(debug), ".dwo"));
	dp_image_destroy(image);
}

Test(debug, a_link_leads_to_a_separate_file)
{
	build("gcc -g -O2");
	shell("objcopy --only-keep-debug prog prog.debug && strip -g prog && objcopy --add-gnu-debuglink=prog.debug prog");
	expect_good(image_of("prog", BASE));
	shell("mkdir .debug && mv prog.debug .debug/");
	expect_good(image_of("prog", BASE));
}

Test(debug, the_file_of_another_build_is_not_taken)
{
	build("gcc -g -O2");
	shell("objcopy --only-keep-debug prog prog.debug && strip -g prog && objcopy --add-gnu-debuglink=prog.debug prog");
	shell("gcc -g -O0 -Wl,--build-id prog.c -o other && objcopy --only-keep-debug other prog.debug");
	expect_none(image_of("prog", BASE), "no matching 'prog.debug'");
}

/* The image of scratch()/root/bin/prog, as a process in a container with this root sees it. */
static struct dp_image *image_below_root(void)
{
	char path[320], root[300], *text;
	struct dp_image *image;
	snprintf(root, sizeof(root), "%s/root", scratch());
	snprintf(path, sizeof(path), "%s/bin/prog", root);
	char *maps = maps_of(path, BASE), inside[8192] = "";
	for (char *line = maps; (text = strstr(line, path)); line = text + strlen(path)) {
		strncat(inside, line, (size_t)(text - line));
		strcat(inside, "/bin/prog");
		if (!strstr(text + strlen(path), path))
			strcat(inside, text + strlen(path));
	}
	free(maps);
	struct dp_error *err = dp_image_create(inside, root, 0, &image);
	cr_assert_null(err, "%s", err ? err->message : "");
	return image;
}

Test(debug, a_build_id_leads_to_a_file_below_the_targets_root)
{
	build("gcc -g -O2");
	shell("mkdir -p root/bin && id=$(readelf -n prog | sed -n 's/.*Build ID: //p') && rest=${id#??} && "
	      "dir=root/usr/lib/debug/.build-id/${id%%$rest} && mkdir -p $dir && objcopy --only-keep-debug prog $dir/$rest.debug "
	      "&& "
	      "strip -g prog -o root/bin/prog");
	expect_good(image_below_root());
	shell("rm -r root/usr");
	unsetenv("DEBUGINFOD_URLS");
	expect_none(image_below_root(), "DEBUGINFOD_URLS is not set");
}

Test(debug, debuginfod_is_asked_where_the_user_names_a_server)
{
	char url[320];
	if (system("ldconfig -p | grep -q libdebuginfod.so.1"))
		cr_skip_test("libdebuginfod is not installed");
	build("gcc -g -O2");
	shell("id=$(readelf -n prog | sed -n 's/.*Build ID: //p') && mkdir -p served/buildid/$id && "
	      "objcopy --only-keep-debug prog served/buildid/$id/debuginfo && strip -g prog");
	snprintf(url, sizeof(url), "file://%s/served", scratch());
	setenv("DEBUGINFOD_CACHE_PATH", scratch(), 1);
	unsetenv("DEBUGINFOD_URLS");
	expect_none(image_of("prog", BASE), "DEBUGINFOD_URLS is not set");
	setenv("DEBUGINFOD_URLS", url, 1);
	expect_good(image_of("prog", BASE));
	shell("rm -r served/buildid/*; rm -r [0-9a-f]*");
	expect_none(image_of("prog", BASE), "debuginfod has none");
}

Test(debug, what_dwz_moved_elsewhere_comes_with_it)
{
	if (system("dwz --version >/dev/null 2>&1"))
		cr_skip_test("dwz is not installed");
	build("gcc -g -O2 -gdwarf-4");
	shell("gcc -g -O2 -gdwarf-4 -DX=1 prog.c -o two && dwz -m common.debug -M %s/common.debug prog two", scratch());
	shell("readelf -S prog | grep -q gnu_debugaltlink");
	expect_good(image_of("prog", BASE));
	shell("gcc -g -O2 -gdwarf-4 prog.c -o common.debug");
	expect_none(image_of("prog", BASE), "common.debug");
}

Test(debug, nothing_is_said_with_the_build_id_and_the_remedy)
{
	build("gcc -O2");
	unsetenv("DEBUGINFOD_URLS");
	expect_none(image_of("prog", BASE), "/usr/lib/debug/.build-id/");
	shell("gcc -O2 -Wl,--build-id=none prog.c -o prog");
	expect_none(image_of("prog", BASE), "build it with -g");
}

/* Everything that reads lines, names and copies. */
static void walk(struct dp_image *image)
{
	static const char *const texts[] = {"prog.c:2", "twice@prog.c", "work:1", "main@prog.c"};
	struct dp_selection found;
	struct dp_spec spec;
	bool known;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		cr_assert_null(dp_spec_parse(texts[i], &spec));
		found = (struct dp_selection){0};
		dp_error_destroy(dp_image_select(image, &spec, NULL, 0, &found));
		dp_selection_fini(&found);
		dp_spec_fini(&spec);
	}
	cr_assert_null(dp_spec_parse("twice", &spec));
	found = (struct dp_selection){0};
	dp_error_destroy(dp_image_more(image, &spec, true, &known, &found));
	dp_selection_fini(&found);
	dp_spec_fini(&spec);
}

/* Every byte of the sections would take too long: many places, several values, and cut files. */
Test(debug, damaged_information_is_an_error_or_less_information, .timeout = 120)
{
	char path[300];
	build("gcc -g -O2 -gdwarf-5");
	snprintf(path, sizeof(path), "%s/prog", scratch());
	FILE *f = fopen(path, "r+b");
	cr_assert(f && !fseek(f, 0, SEEK_END));
	const long size = ftell(f);
	unsigned state = 1;
	for (int round = 0; round < 300; round++) {
		long at[8];
		int old[8];
		for (int i = 0; i < 8; i++) {
			state = state * 1103515245u + 12345u;
			at[i] = size / 4 + (long)(state >> 8) % (size - size / 4 - 2048);
			fseek(f, at[i], SEEK_SET);
			old[i] = fgetc(f);
			fseek(f, at[i], SEEK_SET);
			fputc((int)(state >> 3) & 255, f);
		}
		fflush(f);
		struct dp_image *image = image_of("prog", BASE);
		struct dp_debug *debug;
		struct dp_error *err = open_of(image, &debug);
		Dwarf_Die scopes[8];
		for (uint64_t pc = 0x1000; !err && pc < 0x1200; pc++)
			dp_debug_scopes_at(debug, pc, scopes, 8);
		dp_error_destroy(err);
		walk(image);
		dp_image_destroy(image);
		for (int i = 7; i >= 0; i--) {
			fseek(f, at[i], SEEK_SET);
			fputc(old[i], f);
		}
		fflush(f);
	}
	fclose(f);
	expect_good(image_of("prog", BASE));
}
