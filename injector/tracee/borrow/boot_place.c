/* SPDX-License-Identifier: MIT */
/*
 * Finds unused bytes in the target's executable memory.
 *
 * An executable segment seldom ends at a page's end, but the mapping does: the program never refers to the bytes in that page
 * after the segment's end. Only tails that are all zero, or were before a killed tool wrote there, are used. The vdso, whose
 * image is padded in the same way, is the last resort: a write to it gives this process its own copy of that page. Program
 * headers are read from the target's memory, so the files need not be reachable (another mount namespace, deleted).
 */
#include "injector/tracee/borrow/boot.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line { /* a line of /proc/PID/maps */
	uint64_t start, end, offset, inode;
	char perms[5], dev[16];
	const char *path;
};

static bool parse_line(const char *text, struct line *ret)
{
	int at = 0;
	if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %15s %" SCNu64 " %n", &ret->start, &ret->end, ret->perms,
	           &ret->offset, ret->dev, &ret->inode, &at) < 6)
		return false;
	ret->path = text + at;
	return true;
}

static const char *next_line(const char *text)
{
	text = strchr(text, '\n');
	return text && text[1] ? text + 1 : NULL;
}

/*
 * A quick check before parsing: most lines are threads' stacks, and all threads may be stopped meanwhile. The fields are
 * "start-end perms offset dev inode".
 */
static bool is_code(const char *text)
{
	const char *perms = strchr(text, ' ');
	return perms && perms[1] && perms[2] && perms[3] == 'x';
}

static bool is_first_of_a_file(const char *text)
{
	const char *perms = strchr(text, ' ');
	return perms && strnlen(perms, 24) == 24 && !strncmp(perms + 5, " 00000000 ", 10) &&
	       strncmp(perms + 15, "00:00 0 ", 8) != 0;
}

/* Finds where the file of `exec` is mapped from its first byte on: the nearest such mapping at or below it. */
static bool find_base(const char *maps, const struct line *exec, uint64_t *ret)
{
	struct line l;
	bool found = false;
	for (const char *at = maps; at; at = next_line(at)) {
		if (!is_first_of_a_file(at))
			continue;
		if (!parse_line(at, &l) || l.start > exec->start)
			break;
		if (l.offset != 0 || l.inode != exec->inode || strcmp(l.dev, exec->dev) != 0)
			continue;
		*ret = l.start;
		found = true;
	}
	return found;
}

/* The end of the executable segment in `exec`, from the program headers at `base`; 0 if unknown. */
static uint64_t segment_end(const struct dp_process *p, uint64_t base, const struct line *exec)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph[32];
	uint64_t bias = 0, end = 0;
	if (dp_mem_read(p, dp_addr_of(base), &eh, sizeof(eh)) != sizeof(eh) || memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 ||
	    eh.e_phentsize != sizeof(*ph) || eh.e_phnum > sizeof(ph) / sizeof(*ph))
		return 0;
	size_t n = eh.e_phnum * sizeof(*ph);
	if (dp_mem_read(p, dp_addr_of(base + eh.e_phoff), ph, n) != n)
		return 0;
	for (int i = eh.e_phnum - 1; i >= 0; i--)
		if (ph[i].p_type == PT_LOAD && ph[i].p_offset < 0x1000)
			bias = base - (ph[i].p_vaddr - ph[i].p_offset);
	for (int i = 0; i < eh.e_phnum; i++) {
		uint64_t stop = bias + ph[i].p_vaddr + (ph[i].p_memsz > ph[i].p_filesz ? ph[i].p_memsz : ph[i].p_filesz);
		if (ph[i].p_type == PT_LOAD && (ph[i].p_flags & PF_X) && stop > exec->start && stop <= exec->end)
			end = stop;
	}
	return end;
}

static bool is_vdso(const struct line *l)
{
	return !strncmp(l->path, "[vdso]", 6);
}

/*
 * Is the code at `place` in the range from which the thread's calls are made? Each of its calls ends after its second byte and
 * before its end. The range may wrap around the end of the address space.
 */
static bool calls_are_made(const struct dp_process *p, uint64_t place, size_t size)
{
	const uint64_t first = place + 2 - p->calls_start, last = place + size - p->calls_start;
	return !p->calls_size || (first < p->calls_size && last < p->calls_size && first < last);
}

static bool zero_tail(const struct dp_process *p, const char *maps, const struct line *exec, size_t size, dp_addr *ret)
{
	uint8_t bytes[DP_BOOT_SIZE];
	uint64_t base = exec->start, place = exec->end - DP_BOOT_ROUND(size);
	const bool vdso = is_vdso(exec);
	if (exec->start < p->avoid_end && exec->end > p->avoid_start)
		return false;
	if (!calls_are_made(p, place, size))
		return false;
	if (size > sizeof(bytes) || (!vdso && !find_base(maps, exec, &base)))
		return false;
	uint64_t end = segment_end(p, base, exec), tail = exec->end - sizeof(bytes);
	if (!end || end > tail || exec->end - end >= 0x1000)
		return false;
	if (dp_mem_read(p, dp_addr_of(tail), bytes, sizeof(bytes)) != sizeof(bytes))
		return false;
	dp_boot_wipe(bytes);
	for (size_t i = 0; i < sizeof(bytes); i++)
		if (bytes[i])
			return false;
	*ret = dp_addr_of(place);
	return true;
}

static bool is_candidate(const struct line *l)
{
	return (is_vdso(l) || (l->path[0] == '/' && l->inode != 0)) && l->perms[2] == 'x' && l->perms[3] == 'p' &&
	       l->perms[1] != 'w';
}

static int compare_sizes(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	const uint64_t m = x->end - x->start, n = y->end - y->start;
	if (is_vdso(x) != is_vdso(y))
		return is_vdso(x) ? 1 : -1;
	return m != n ? (m > n) - (m < n) : (x->start > y->start) - (x->start < y->start);
}

/*
 * Lists code mappings, smallest first, the vdso last. A mapping that was once written to goes into a core file as a whole, and a
 * crash with probes should not dump all of libc's text.
 */
static size_t list_code(const char *maps, struct line line[DP_BOOT_PLACES])
{
	size_t n = 0;
	for (const char *at = maps; at && n < DP_BOOT_PLACES; at = next_line(at)) {
		if (!is_code(at))
			continue;
		if (!parse_line(at, &line[n]))
			break;
		n += is_candidate(&line[n]);
	}
	qsort(line, n, sizeof(*line), compare_sizes);
	return n;
}

bool dp_boot_leftover_at(const struct dp_process *p, uint64_t pc)
{
	uint8_t tail[DP_BOOT_SIZE], wiped[DP_BOOT_SIZE];
	const uint64_t at = (pc | 0xfff) + 1 - DP_BOOT_SIZE; /* places end where mappings do */
	if (pc < at || dp_mem_read(p, dp_addr_of(at), tail, sizeof(tail)) != sizeof(tail))
		return false;
	memcpy(wiped, tail, sizeof(tail));
	dp_boot_wipe(wiped);
	return memcmp(wiped, tail, sizeof(tail)) != 0;
}

bool dp_boot_returns(const struct dp_process *p, dp_addr boot, uint64_t rsp)
{
	static uint64_t words[8192];
	dp_addr at = dp_addr_of(rsp & ~UINT64_C(7));
	size_t n;
	for (int part = 0; part < 4; part++) {
		n = dp_mem_read(p, at, words, sizeof(words)) / sizeof(*words);
		for (size_t i = 0; i < n; i++)
			if (words[i] - boot.v < DP_BOOT_SIZE)
				return true;
		if (n < sizeof(words) / sizeof(*words))
			break;
		at = dp_addr_add(at, sizeof(words));
	}
	return false;
}

bool dp_boot_find(const struct dp_process *p, const char *maps, size_t size, unsigned nth, dp_addr *ret)
{
	struct line line[DP_BOOT_PLACES];
	const size_t n = list_code(maps, line);
	unsigned skip = nth;
	for (size_t i = 0; i < n; i++)
		if (zero_tail(p, maps, &line[i], size, ret) && !skip--)
			return true;
	return false;
}

size_t dp_boot_places(const struct dp_process *p, const char *maps, size_t size, dp_addr ret[static DP_BOOT_PLACES])
{
	struct line line[DP_BOOT_PLACES];
	const size_t n = list_code(maps, line);
	size_t found = 0;
	for (size_t i = 0; i < n; i++)
		found += zero_tail(p, maps, &line[i], size, &ret[found]);
	return found;
}
