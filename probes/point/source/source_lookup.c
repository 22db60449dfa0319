/* SPDX-License-Identifier: MIT */
#include "probes/point/source/source_lookup.h"

#include "base/cleanup.h"
#include "base/regular.h"
#include "probes/debug/debug.h"
#include "probes/elf/demangle.h"
#include "probes/image/module.h"
#include "probes/point/source/source.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { INLINED_MOST = 32 };

/* ---- the file -------------------------------------------------------------------------------------------------------------- */

static bool is_wanted(const struct dp_source_file *f, struct dp_module *m)
{
	return *f->build_id ? !strcmp(dp_module_build_id(m), f->build_id) : m->inode == f->inode;
}

/* A module that nobody else has: what is parsed for the process's modules is not for this thread. */
static struct dp_module *open_module(struct dp_source_file *f, const char *root)
{
	dp_auto_free char *path = NULL;
	struct dp_elf *elf = NULL;
	struct stat st;
	if (asprintf(&path, "%s%s", root, f->path) < 0) {
		path = NULL;
		return NULL;
	}
	dp_auto_close int fd = dp_open_regular(path);
	struct dp_error *err = fd < 0 || fstat(fd, &st) ? NULL : dp_elf_open(fd, path, &elf);
	dp_error_destroy(err);
	struct dp_parsed *parsed = elf ? dp_parsed_of(elf) : NULL;
	struct dp_module *m = parsed ? dp_module_create(f->path, root, parsed) : NULL;
	if (!m)
		return NULL;
	m->inode = st.st_ino;
	return is_wanted(f, m) ? m : dp_module_destroy(m);
}

static void open_file(struct dp_source_file *f)
{
	f->opened = true;
	f->module = open_module(f, f->root);
	if (!f->module && *f->root)
		f->module = open_module(f, "");
	if (f->module)
		dp_error_destroy(dp_module_debug(f->module, &f->debug));
}

void dp_source_file_fini(struct dp_source_file *file)
{
	dp_module_destroy(file->module);
	free(file->path);
	free(file->root);
	free(file->build_id);
}

/* ---- an address ------------------------------------------------------------------------------------------------------------ */

static char *readable(Dwarf_Die *die)
{
	const char *called = dp_inline_called(die), *name = dwarf_diename(die);
	char *text = called ? dp_demangle(called, false) : NULL;
	return text ? text : called || name ? strdup(called ? called : name) : NULL;
}

/* Frames from the innermost on: each inlined copy is at its line, and its caller's line is the one that calls it. */
static size_t inlined(struct dp_debug *debug, uint64_t pc, struct dp_source_frame frame[static INLINED_MOST + 1])
{
	Dwarf_Die scope[INLINED_MOST];
	const size_t n = dp_debug_scopes_at(debug, pc, scope, INLINED_MOST);
	size_t k = 0;
	while (k < n && dwarf_tag(&scope[k]) == DW_TAG_inlined_subroutine) {
		struct dp_source_frame *next = &frame[k + 1];
		if (!dp_inline_call_site(&scope[k], &next->file, &next->line))
			break;
		if (!(frame[k].function = readable(&scope[k])))
			break;
		next->function = NULL;
		k++;
	}
	return k + 1;
}

struct dp_source dp_source_lookup(struct dp_source_file *file, uint64_t vaddr)
{
	struct dp_source_frame frame[INLINED_MOST + 1] = {{0}};
	if (!file->opened)
		open_file(file);
	if (!file->debug)
		return (struct dp_source){0};
	const uint64_t pc = dp_debug_pc(file->debug, dp_addr_of(vaddr));
	if (!dp_debug_line_at(file->debug, pc, &frame[0].file, &frame[0].line))
		return (struct dp_source){0};
	struct dp_source source = {.n = inlined(file->debug, pc, frame)};
	struct dp_source_frame *copy = malloc(source.n * sizeof(*copy));
	if (copy)
		memcpy(copy, frame, source.n * sizeof(*copy));
	source.frame = copy ? copy : frame;
	if (copy)
		return source;
	for (size_t i = 0; i < source.n; i++)
		free((char *)(uintptr_t)frame[i].function);
	return (struct dp_source){0};
}

void dp_source_fini(struct dp_source *source)
{
	for (size_t i = 0; i < source->n; i++)
		free((char *)(uintptr_t)source->frame[i].function);
	free((struct dp_source_frame *)(uintptr_t)source->frame);
}
