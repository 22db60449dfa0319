/* SPDX-License-Identifier: MIT */
/*
 * Reads the entries of .eh_frame (LSB core 5.0, 10.6; DWARF 5, 6.4.1): CIEs, which functions share, and FDEs, one per function.
 * One pass collects the FDEs of the wanted range, which are in the linker's order; then they are run by ascending address.
 */
#include "probes/unwind/unwind_cfi.h"
#include "probes/elf/cfi_reader.h"

#include <stdlib.h>

#define ENCODING_OMIT 0xff

struct fde {
	uint64_t start, end;
	size_t insns; /* offset of the instructions in the section */
	uint32_t n;   /* size of the instructions, bytes */
	uint32_t cie; /* index of the CIE */
};

struct scan {
	const struct dp_cfi_section *section;
	uint64_t start, end;
	struct dp_cfi_cie *cie;
	size_t ncies, cap_cies;
	struct fde *fde;
	size_t nfdes, cap_fdes;
	bool failed;
};

static bool make_room(void **array, size_t n, size_t *cap, size_t each)
{
	size_t more = *cap ? 2 * *cap : 64;
	void *p;

	if (n < *cap)
		return true;
	p = realloc(*array, more * each);
	if (!p)
		return false;
	*array = p;
	*cap = more;
	return true;
}

/* Reads the augmentation data, whose fields the letters after 'z' name. Stops at an unknown letter; the data's length is
 * known. */
static void read_augmentation(struct dp_cfi_reader *r, const char *letters, struct dp_cfi_cie *cie)
{
	for (; *letters && !r->bad; letters++) {
		uint8_t encoding;

		switch (*letters) {
		case 'R':
			cie->encoding = (uint8_t)dp_cfi_uint(r, 1);
			break;
		case 'L':
			dp_cfi_uint(r, 1);
			break;
		case 'P':
			encoding = (uint8_t)dp_cfi_uint(r, 1);
			if ((encoding & 0x70) == 0x50)
				r->bad = true; /* aligned: not used on x86-64 */
			else if (encoding != ENCODING_OMIT)
				dp_cfi_format(r, encoding);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B':
			break;
		default:
			return;
		}
	}
}

/* Reads a CIE up to its instructions. False if its form is not supported. */
static bool read_cie_head(struct dp_cfi_reader *r, struct dp_cfi_cie *cie)
{
	uint8_t version = (uint8_t)dp_cfi_uint(r, 1);
	const char *letters = (const char *)r->p;
	const uint8_t *nul = memchr(r->p, 0, (size_t)(r->end - r->p));
	struct dp_cfi_reader data;
	uint64_t n;

	if (!nul || (version != 1 && version != 3))
		return false;
	dp_cfi_take(r, (uint64_t)(nul + 1 - r->p));
	cie->code_align = dp_cfi_uleb(r);
	cie->data_align = dp_cfi_sleb(r);
	if ((version == 1 ? dp_cfi_uint(r, 1) : dp_cfi_uleb(r)) != 16)
		return false; /* the return address must be column 16 */
	if (!*letters)
		return !r->bad;
	if (*letters != 'z')
		return false;
	cie->augmented = true;
	n = dp_cfi_uleb(r);
	data = *r;
	if (!dp_cfi_take(r, n))
		return false;
	data.end = r->p;
	read_augmentation(&data, letters + 1, cie);
	return !data.bad;
}

static void read_cie(struct scan *s, struct dp_cfi_reader r, size_t offset)
{
	struct dp_cfi_cie cie = {.offset = offset};
	struct dp_cfi_run run;

	if (!make_room((void **)&s->cie, s->ncies, &s->cap_cies, sizeof(cie))) {
		s->failed = true;
		return;
	}
	if (read_cie_head(&r, &cie)) {
		run = (struct dp_cfi_run){
		        .cie = &cie, .insns = r.p, .n = (size_t)(r.end - r.p), .addr = r.addr, .end = UINT64_MAX};
		cie.usable = dp_cfi_run(&run);
		cie.initial = run.row;
	}
	s->cie[s->ncies++] = cie;
}

/* CIEs are stored in ascending order. An FDE's CIE was seen before it, and is mostly the last one. */
static struct dp_cfi_cie *find_cie(struct scan *s, size_t offset)
{
	size_t lo = 0, hi = s->ncies;

	if (hi && s->cie[hi - 1].offset == offset)
		return &s->cie[hi - 1];
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (s->cie[mid].offset < offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < s->ncies && s->cie[lo].offset == offset ? &s->cie[lo] : NULL;
}

static void read_fde(struct scan *s, struct dp_cfi_reader r, const struct dp_cfi_cie *cie)
{
	struct fde fde = {.cie = (uint32_t)(cie - s->cie)};
	uint64_t n;

	fde.start = dp_cfi_pointer(&r, cie->encoding);
	fde.end = fde.start + dp_cfi_format(&r, cie->encoding & 0x0f);
	if (cie->augmented) {
		n = dp_cfi_uleb(&r);
		dp_cfi_take(&r, n);
	}
	if (r.bad || fde.end <= fde.start || fde.start < s->start || fde.start >= s->end)
		return;
	if (fde.end > s->end)
		fde.end = s->end;
	if (!make_room((void **)&s->fde, s->nfdes, &s->cap_fdes, sizeof(fde))) {
		s->failed = true;
		return;
	}
	fde.insns = (size_t)(r.p - s->section->bytes);
	fde.n = (uint32_t)(r.end - r.p);
	s->fde[s->nfdes++] = fde;
}

/* Reads one entry, after its length. */
static void read_entry(struct scan *s, struct dp_cfi_reader r, size_t offset)
{
	size_t id_offset = (size_t)(r.p - s->section->bytes);
	uint64_t id = dp_cfi_uint(&r, 4);
	const struct dp_cfi_cie *cie;

	if (r.bad)
		return;
	if (id == 0) {
		read_cie(s, r, offset);
		return;
	}
	cie = id <= id_offset ? find_cie(s, id_offset - (size_t)id) : NULL;
	if (cie && cie->usable)
		read_fde(s, r, cie);
}

static void scan_section(struct scan *s)
{
	const struct dp_cfi_section *section = s->section;
	struct dp_cfi_reader r = {section->bytes, section->bytes + section->size, section->addr, false};

	while (r.p < r.end && !s->failed) {
		size_t offset = (size_t)(r.p - section->bytes);
		uint64_t n = dp_cfi_uint(&r, 4);
		struct dp_cfi_reader entry;

		if (n == UINT32_MAX)
			n = dp_cfi_uint(&r, 8);
		entry = r;
		if (!n || n > UINT32_MAX || !dp_cfi_take(&r, n))
			return;
		entry.end = r.p;
		read_entry(s, entry, offset);
	}
}

static int by_start(const void *a, const void *b)
{
	const struct fde *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static void sort(struct scan *s)
{
	for (size_t i = 1; i < s->nfdes; i++)
		if (s->fde[i].start < s->fde[i - 1].start) {
			qsort(s->fde, s->nfdes, sizeof(*s->fde), by_start);
			return;
		}
}

static void run_fde(const struct scan *s, const struct fde *fde, struct dp_unwind_rows *ret)
{
	const struct dp_cfi_cie *cie = &s->cie[fde->cie];
	struct dp_cfi_run run = {
	        .cie = cie,
	        .insns = s->section->bytes + fde->insns,
	        .n = fde->n,
	        .addr = s->section->addr + fde->insns,
	        .loc = fde->start,
	        .start = s->start,
	        .end = fde->end,
	        .row = cie->initial,
	        .ret = ret,
	};

	dp_cfi_run(&run);
	if (fde->end < s->end)
		dp_unwind_rows_add(ret, (uint32_t)(fde->end - s->start), 0);
}

bool dp_cfi_compile(const struct dp_cfi_section *section, uint64_t start, uint64_t end, struct dp_unwind_rows *ret)
{
	struct scan s = {.section = section, .start = start, .end = end};

	if (start < end && end - start <= UINT32_MAX) {
		scan_section(&s);
		sort(&s);
		for (size_t i = 0; i < s.nfdes && !s.failed; i++)
			run_fde(&s, &s.fde[i], ret);
	}
	free(s.cie);
	free(s.fde);
	return !s.failed && !ret->failed;
}
