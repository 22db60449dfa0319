/* SPDX-License-Identifier: MIT */
/* The byte search for a name finds every unit that has it, however the name is written, and skips most others. */
#include "helper_elf.h"
#include "probes/debug/debug_names.h"

#include <criterion/criterion.h>
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"ab", "abc", "abcd", "abcde", "rather_long_a_name", "a_name", "list", "list_of_them"};
enum { NAMES = sizeof(names) / sizeof(*names) };

/* File number i has the names i and i + 1, as a function and as a type. */
static void write_sources(void)
{
	for (size_t i = 0; i + 1 < NAMES; i++) {
		char file[32], text[1024];
		snprintf(file, sizeof(file), "f%zu.c", i);
		snprintf(text, sizeof(text),
		         "struct %s { int x%zu; };\nstatic inline __attribute__((always_inline)) int %s(int x) { __asm__ "
		         "volatile(\"incl %%0\" : "
		         "\"+r\"(x)); return x; }\nint use%zu(int a) { struct %s s = {a}; return %s(s.x%zu) + %s(a + 7); }\n",
		         names[i], i, names[i + 1], i, names[i], names[i + 1], i, names[i + 1]);
		write_file(file, text);
	}
	write_file("main.c", "int use0(int), use6(int);\nint main(int c, char **v) { (void)v; return use0(c) + use6(c); }\n");
}

static bool declares(Dwarf_Die *unit, const char *name)
{
	Dwarf_Die die;
	if (dwarf_child(unit, &die))
		return false;
	do {
		const char *own = dwarf_diename(&die);
		if (own && !strcmp(own, name))
			return true;
	} while (!dwarf_siblingof(&die, &die));
	return false;
}

/* Returns the number of units that were marked although they do not have the name. */
static size_t check(struct dp_debug *debug, const char *name, const char *way)
{
	struct dp_debug_units units;
	struct dp_debug_word word;
	size_t with = 0, needless = 0;
	cr_assert(dp_debug_units_load(debug, &units));
	cr_assert_str_eq(dp_debug_word_of(name, &word), name);
	dp_debug_units_mark_name(&units, name);
	for (size_t i = 0; i < units.n; i++) {
		const bool has = declares(&units.unit[i].die, name);
		cr_assert(!has || units.unit[i].marked, "%s: a unit with '%s' was not marked", way, name);
		with += has;
		needless += !has && units.unit[i].marked;
	}
	cr_assert(with, "%s: no unit has '%s'", way, name);
	dp_debug_units_fini(&units);
	return needless;
}

/* Returns the number of units that were marked as having lines of the file. */
static size_t check_file(struct dp_debug *debug, const char *file, const char *way)
{
	struct dp_debug_units units;
	size_t marked = 0;
	bool found = false;
	cr_assert(dp_debug_units_load(debug, &units));
	dp_debug_units_mark_file(&units, file);
	for (size_t i = 0; i < units.n; i++) {
		Dwarf_Files *files;
		size_t n = 0;
		bool has = false;
		marked += units.unit[i].marked;
		if (units.unit[i].alt || dwarf_getsrcfiles(&units.unit[i].die, &files, &n))
			continue;
		for (size_t k = 0; k < n; k++) {
			const char *path = dwarf_filesrc(files, k, NULL, NULL), *slash = path ? strrchr(path, '/') : NULL;
			has |= path && !strcmp(slash ? slash + 1 : path, file);
		}
		cr_assert(!has || units.unit[i].marked, "%s: a unit with lines of %s was not marked", way, file);
		found |= has;
	}
	cr_assert(found, "%s: no unit has %s", way, file);
	dp_debug_units_fini(&units);
	return marked;
}

static void check_way(const char *command, bool exact, bool dwz)
{
	write_sources();
	shell("%s -Wl,--build-id f?.c main.c -o prog", command);
	if (dwz)
		shell("cp prog two && dwz -m common.debug -M %s/common.debug prog two", scratch());
	struct dp_image *image = image_of("prog", 0x555555554000u);
	struct dp_debug *debug;
	struct dp_error *err = dp_module_debug(dp_image_module(image, 0), &debug);
	cr_assert_null(err, "%s", err ? err->message : "");
	for (size_t i = 0; i < NAMES; i++) {
		const size_t needless = check(debug, names[i], command);
		/* Short names may occur by chance. */
		if (exact && strlen(names[i]) > 2)
			cr_assert_leq(needless, 1, "%s: '%s': %zu more units were marked", command, names[i], needless);
	}
	const size_t marked = check_file(debug, "f3.c", command);
	cr_assert(!exact || marked <= 2, "%s: %zu units were marked for one file", command, marked);
	dp_image_destroy(image);
}

Test(debug_names, no_unit_that_has_the_name_is_left_out)
{
	check_way("gcc -g -O2", true, false);
	check_way("gcc -g -O2 -gdwarf-4", true, false);
	check_way("gcc -g -O2 -gz", true, false);
	check_way("gcc -g -O2 -gz=zlib-gnu -gdwarf-4", false, false);
	check_way("gcc -g -O2 -gsplit-dwarf", false, false);
	check_way("gcc -g -O2 -flto", false, false);
	check_way("clang -g -O2 -gdwarf-5", true, false);
	check_way("clang -g -O2 -gdwarf-4", true, false);
}

Test(debug_names, nor_where_dwz_has_moved_entries)
{
	if (system("dwz --version >/dev/null 2>&1"))
		cr_skip_test("dwz is not installed");
	check_way("gcc -g -O2 -gdwarf-4", false, true);
}

Test(debug_names, words_are_those_that_entries_have)
{
	struct dp_debug_word word;
	cr_assert_str_eq(dp_debug_word_of("ns::inner::list<int, a::b>", &word), "list");
	cr_assert_str_eq(dp_debug_word_of("x", &word), "x");
	cr_assert_null(dp_debug_word_of("unsigned int", &word));
	cr_assert_null(dp_debug_word_of("ns::", &word));
	cr_assert_null(dp_debug_word_of("", &word));
}
