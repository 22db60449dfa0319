/* SPDX-License-Identifier: MIT */
/* A damaged file gives an error or nonsense, never a crash. The same seed gives the same files, so failures can be repeated. */
#include "helper_elf.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BASE 0x10000000

static const char source[] =
        "__attribute__((noinline)) static int ambiguous(int x) { return x * 3; }\n"
        "void g(void); struct s { ~s() { g(); } };\n"
        "extern \"C\" int twice(int x) { s a; g(); try { g(); } catch (int y) { x += y; } return ambiguous(x); }\n"
        "void g(void) { throw 3; }\nint main(int c, char **) { return twice(c); }\n";

static uint8_t *contents(const char *name, size_t *n)
{
	char path[256];
	struct stat st;
	snprintf(path, sizeof(path), "%s/%s", scratch(), name);
	FILE *f = fopen(path, "r");
	cr_assert(f && fstat(fileno(f), &st) == 0);
	uint8_t *bytes = malloc((size_t)st.st_size);
	*n = fread(bytes, 1, (size_t)st.st_size, f);
	fclose(f);
	return bytes;
}

/* Calls the whole API on these bytes, mapped as the undamaged file would be. */
static void try(int fd, const uint8_t *bytes, size_t n, const char *maps)
{
	struct dp_image *image = NULL;
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(pwrite(fd, bytes, n, 0), (ssize_t)n);
	struct dp_error *err = dp_image_create(maps, "", 0, &image);
	if (!err) {
		exercise(image);
		dp_image_destroy(image);
	}
	dp_error_destroy(err);
}

/* Maps of the file `name`, under the descriptor's name, without an inode. */
static char *maps_under(const char *name, int fd)
{
	char path[256], *text = NULL;
	size_t size;
	snprintf(path, sizeof(path), "%s/%s", scratch(), name);
	char *maps = maps_of(path, BASE);
	FILE *to = open_memstream(&text, &size);
	for (char *line = strtok(maps, "\n"); line; line = strtok(NULL, "\n"))
		fprintf(to, "%.*s 0 /proc/self/fd/%d\n", (int)(strstr(line, " 00:00 ") - line) + 6, line, fd);
	fclose(to);
	free(maps);
	return text;
}

static void damage(const char *name, unsigned seed, unsigned rounds, size_t head)
{
	size_t n;
	uint8_t *good = contents(name, &n), *bad = malloc(n);
	int fd = memfd_create("damaged", MFD_CLOEXEC);
	char *maps = maps_under(name, fd);
	srandom(seed);
	for (unsigned round = 0; round < rounds; round++) {
		memcpy(bad, good, n);
		size_t range = round % 2 && head < n ? head : n;
		for (long k = random() % 8; k >= 0; k--)
			bad[(size_t)random() % range] = random() % 3 ? (uint8_t)random() : (uint8_t)(random() % 2 ? 0xff : 0x80);
		try(fd, bad, n, maps);
	}
	free(maps);
	free(good);
	free(bad);
	close(fd);
}

static void build(const char *flags)
{
	write_file("d.cc", source);
	shell("g++ -O1 -fPIE -pie -Wl,--hash-style=gnu %s d.cc -o d", flags);
}

Test(damaged_elf, undamaged_file_is_understood)
{
	build("");
	struct dp_image *image = image_of("d", BASE);
	cr_assert_eq(address_of(image, "twice"), BASE + nm_value("d", "twice"));
	exercise(image);
	dp_image_destroy(image);
}

Test(damaged_elf, random_bytes_changed)
{
	build("");
	damage("d", 1, 600, 0x400);
}

Test(damaged_elf, random_bytes_changed_in_a_stripped_file)
{
	build("-s -Wl,-z,noseparate-code");
	damage("d", 2, 600, 0x400);
}

/* Changes section headers, .eh_frame and .gcc_except_table more often than chance would. */
Test(damaged_elf, random_bytes_changed_in_a_small_library)
{
	write_file("e.c", "int twice(int x) { return 2 * x; }\n");
	shell("gcc -O1 -fPIC -shared -nostdlib -Wl,-z,noseparate-code -Wl,-z,max-page-size=4096 e.c -o e.so && strip -g e.so");
	damage("e.so", 3, 600, 0x300);
}

Test(damaged_elf, cut_anywhere)
{
	build("-s -Wl,-z,noseparate-code");
	size_t n;
	uint8_t *good = contents("d", &n);
	int fd = memfd_create("damaged", MFD_CLOEXEC);
	char *maps = maps_under("d", fd);
	for (size_t len = 0; len < n; len += len < 0x400 ? 7 : 97)
		try(fd, good, len, maps);
	free(maps);
	free(good);
	close(fd);
}
