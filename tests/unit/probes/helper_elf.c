/* SPDX-License-Identifier: MIT */
#include "helper_elf.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];
static pid_t owner;

static void remove_scratch(void)
{
	char command[128];
	if (owner != getpid())
		return;
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	if (system(command) != 0)
		fprintf(stderr, "cannot remove %s\n", dir);
}

const char *scratch(void)
{
	if (owner == getpid())
		return dir;
	strcpy(dir, "/tmp/dynprobe-test-XXXXXX");
	cr_assert(mkdtemp(dir));
	owner = getpid();
	atexit(remove_scratch);
	return dir;
}

void shell(const char *fmt, ...)
{
	char *command, *full;
	va_list args;
	va_start(args, fmt);
	cr_assert_geq(vasprintf(&command, fmt, args), 0);
	va_end(args);
	cr_assert_geq(asprintf(&full, "cd '%s' && %s", scratch(), command), 0);
	cr_assert_eq(system(full), 0, "failed: %s", command);
	free(full);
	free(command);
}

void write_file(const char *name, const char *text)
{
	char *path;
	cr_assert_geq(asprintf(&path, "%s/%s", scratch(), name), 0);
	FILE *f = fopen(path, "w");
	cr_assert(f);
	cr_assert_geq(fputs(text, f), 0);
	cr_assert_eq(fclose(f), 0);
	free(path);
}

static void print_segment(FILE *to, const Elf64_Phdr *p, uint64_t base, const struct stat *st, const char *path)
{
	uint64_t start = base + (p->p_vaddr & ~4095ULL), end = (base + p->p_vaddr + p->p_filesz + 4095) & ~4095ULL;
	fprintf(to, "%lx-%lx %c%c%cp %08lx 00:00 %lu %s\n", start, end, p->p_flags & PF_R ? 'r' : '-',
	        p->p_flags & PF_W ? 'w' : '-', p->p_flags & PF_X ? 'x' : '-', p->p_offset & ~4095UL, st->st_ino, path);
}

char *maps_of(const char *path, uint64_t base)
{
	char *text = NULL;
	size_t size;
	struct stat st;
	Elf64_Ehdr e;
	Elf64_Phdr p;
	FILE *to = open_memstream(&text, &size), *f = fopen(path, "r");
	cr_assert(to && f && fstat(fileno(f), &st) == 0 && fread(&e, sizeof(e), 1, f) == 1, "%s", path);
	for (unsigned i = 0; i < e.e_phnum; i++) {
		cr_assert_eq(fseek(f, (long)(e.e_phoff + i * sizeof(p)), SEEK_SET), 0);
		cr_assert_eq(fread(&p, sizeof(p), 1, f), 1);
		if (p.p_type == PT_LOAD && p.p_filesz)
			print_segment(to, &p, base, &st, path);
	}
	fclose(f);
	fclose(to);
	return text;
}

static struct dp_image *create(char *maps)
{
	struct dp_image *image = NULL;
	struct dp_error *err = dp_image_create(maps, "", 0, &image);
	cr_assert_null(err, "%s", err ? err->message : "");
	free(maps);
	return image;
}

static char *scratch_maps(const char *name, uint64_t base)
{
	char *path;
	cr_assert_geq(asprintf(&path, "%s/%s", scratch(), name), 0);
	char *maps = maps_of(path, base);
	free(path);
	return maps;
}

struct dp_image *image_of(const char *name, uint64_t base)
{
	return create(scratch_maps(name, base));
}

struct dp_image *image_of_two(const char *a, const char *b)
{
	char *x = scratch_maps(a, 0x10000000), *y = scratch_maps(b, 0x20000000), *both;
	cr_assert_geq(asprintf(&both, "%s%s", x, y), 0);
	free(x);
	free(y);
	return create(both);
}

struct dp_image *image_of_self(void)
{
	static char text[1 << 20];
	struct dp_image *image = NULL;
	FILE *f = fopen("/proc/self/maps", "r");
	cr_assert(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	struct dp_error *err = dp_image_create(text, "", getpid(), &image);
	cr_assert_null(err, "%s", err ? err->message : "");
	return image;
}

uint64_t nm_value(const char *name, const char *symbol)
{
	char command[512], line[64] = "";
	snprintf(command, sizeof(command), "nm '%s/%s' | awk '$3 == \"%s\" {print $1}'", scratch(), name, symbol);
	FILE *f = popen(command, "r");
	cr_assert(f && fgets(line, sizeof(line), f), "nm does not know %s", symbol);
	pclose(f);
	return strtoull(line, NULL, 16);
}

struct dp_error *resolve(struct dp_image *image, const char *text, struct dp_site *ret)
{
	struct dp_spec spec;
	struct dp_error *err = dp_spec_parse(text, &spec);
	if (err)
		return err;
	err = dp_image_resolve(image, &spec, ret);
	dp_spec_fini(&spec);
	return err;
}

uint64_t address_of(struct dp_image *image, const char *text)
{
	struct dp_site site = {0};
	struct dp_error *err = resolve(image, text, &site);
	cr_assert_null(err, "%s: %s", text, err ? err->message : "");
	return site.addr.v;
}

void refused(struct dp_image *image, const char *text, enum dp_tag tag, const char *part)
{
	struct dp_site site = {0};
	struct dp_error *err = resolve(image, text, &site);
	cr_assert(err, "%s was not refused", text);
	cr_assert_eq(err->tag, tag, "%s: %s [%s]", text, err->message, dp_tag_name(err->tag));
	cr_assert(strstr(err->message, part), "'%s' is not in: %s", part, err->message);
	dp_error_destroy(err);
}

static void exercise_module(struct dp_image *image, struct dp_module *m)
{
	char text[512];
	uint8_t code[64];
	dp_addr addr, start, end;
	const uint8_t *bytes;
	const uint64_t *pads;
	size_t n;
	bool exec;
	dp_module_build_id(m);
	dp_module_eh_frame(m, &addr, &bytes, &n);
	dp_module_landing_pads(m, &pads, &n);
	for (size_t i = 0; i < dp_module_nsegments(m); i++) {
		if (!dp_module_segment(m, i, &addr, &bytes, &n, &exec))
			continue;
		for (uint64_t at = addr.v; at < addr.v + n; at += 1 + n / 16) {
			size_t len = sizeof(code);
			dp_error_destroy(dp_module_text(m, dp_addr_of(at), code, &len));
			dp_module_text_bounds(m, dp_addr_of(at), &start, &end);
			dp_image_describe(image, dp_addr_of(at), text, sizeof(text));
		}
	}
}

void exercise(struct dp_image *image)
{
	static const char *const specs[] = {"main", "twice", "nosuch", "ambiguous", "versioned", "chosen", "0x10001100"};
	struct dp_site site;
	for (size_t i = 0; i < dp_image_nmodules(image); i++)
		exercise_module(image, dp_image_module(image, i));
	for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++)
		dp_error_destroy(resolve(image, specs[i], &site));
}
