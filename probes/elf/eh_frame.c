/* SPDX-License-Identifier: MIT */
/*
 * .eh_frame is a list of entries: a length (4 bytes; 0 ends or separates lists), an id and a body. Id 0 is a CIE, which many
 * functions share; its augmentation string says, among other things, how pointers are encoded. Any other id is an FDE: the id is
 * the distance back to its CIE; the function's start and length follow and, if the augmentation has an L, the address of its
 * LSDA.
 */
#include "probes/elf/eh_frame.h"

#include <dwarf.h>
#include <string.h>

uint64_t dp_read_fixed(struct dp_reader *r, unsigned n)
{
	uint64_t value = 0;
	if (r->bad || (size_t)(r->end - r->p) < n) {
		r->bad = true;
		return 0;
	}
	for (unsigned i = 0; i < n; i++)
		value |= (uint64_t)r->p[i] << 8 * i;
	r->p += n;
	r->vaddr += n;
	return value;
}

void dp_read_skip(struct dp_reader *r, uint64_t n)
{
	if (r->bad || (uint64_t)(r->end - r->p) < n) {
		r->bad = true;
		return;
	}
	r->p += n;
	r->vaddr += n;
}

uint64_t dp_read_uleb(struct dp_reader *r)
{
	uint64_t value = 0, byte = 0x80;
	for (unsigned shift = 0; (byte & 0x80) && !r->bad; shift += 7) {
		byte = dp_read_fixed(r, 1);
		if (shift > 63)
			r->bad = true;
		else
			value |= (byte & 0x7f) << shift;
	}
	return r->bad ? 0 : value;
}

int64_t dp_read_sleb(struct dp_reader *r)
{
	uint64_t value = 0, byte = 0x80;
	unsigned shift = 0;
	for (; (byte & 0x80) && !r->bad; shift += 7) {
		byte = dp_read_fixed(r, 1);
		if (shift > 63)
			r->bad = true;
		else
			value |= (byte & 0x7f) << shift;
	}
	if (shift < 64 && (byte & 0x40))
		value |= UINT64_MAX << shift;
	return r->bad ? 0 : (int64_t)value;
}

uint64_t dp_read_pointer(struct dp_reader *r, uint8_t encoding)
{
	uint64_t at = r->vaddr, value = 0;
	if (encoding == DW_EH_PE_omit)
		return 0;
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		value = dp_read_fixed(r, 8);
		break;
	case DW_EH_PE_uleb128:
		value = dp_read_uleb(r);
		break;
	case DW_EH_PE_sleb128:
		value = (uint64_t)dp_read_sleb(r);
		break;
	case DW_EH_PE_udata2:
		value = dp_read_fixed(r, 2);
		break;
	case DW_EH_PE_sdata2:
		value = (uint64_t)(int16_t)dp_read_fixed(r, 2);
		break;
	case DW_EH_PE_udata4:
		value = dp_read_fixed(r, 4);
		break;
	case DW_EH_PE_sdata4:
		value = (uint64_t)(int32_t)dp_read_fixed(r, 4);
		break;
	default:
		r->bad = true;
	}
	if ((encoding & 0x70) == DW_EH_PE_pcrel && value)
		value += at;
	else if ((encoding & 0x70) != DW_EH_PE_absptr && (encoding & 0x70) != DW_EH_PE_pcrel)
		r->bad = true;
	return r->bad ? 0 : value;
}

struct cie {
	uint8_t pointers, lsda; /* DW_EH_PE_... */
	bool augmented, has_lsda;
};

/* The letters of the augmentation string name the fields of the augmentation data, in order. */
static void read_augmentation(struct dp_reader *r, const char *letters, struct cie *cie)
{
	dp_read_uleb(r); /* length of the data */
	cie->augmented = true;
	for (letters++; *letters && !r->bad; letters++) {
		if (*letters == 'L') {
			cie->lsda = (uint8_t)dp_read_fixed(r, 1);
			cie->has_lsda = cie->lsda != DW_EH_PE_omit;
		} else if (*letters == 'R') {
			cie->pointers = (uint8_t)dp_read_fixed(r, 1);
		} else if (*letters == 'P') {
			uint8_t encoding = (uint8_t)dp_read_fixed(r, 1);
			dp_read_pointer(r, encoding & 0x0f); /* skipped: only its size matters */
		} else if (*letters != 'S' && *letters != 'B') {
			r->bad = true;
		}
	}
}

static bool read_cie(struct dp_reader r, struct cie *cie)
{
	*cie = (struct cie){.pointers = DW_EH_PE_absptr, .lsda = DW_EH_PE_omit};
	uint64_t version = dp_read_fixed(&r, 1);
	const char *letters = (const char *)r.p;
	size_t len = strnlen(letters, (size_t)(r.end - r.p));
	dp_read_skip(&r, len + 1);
	if (r.bad || (version != 1 && version != 3) || (*letters && *letters != 'z'))
		return false;
	dp_read_uleb(&r); /* code alignment */
	dp_read_sleb(&r); /* data alignment */
	if (version == 1)
		dp_read_fixed(&r, 1); /* return address column */
	else
		dp_read_uleb(&r);
	if (*letters)
		read_augmentation(&r, letters, cie);
	return !r.bad;
}

/* Reads an entry's length and makes a reader for its body. */
static bool next_entry(struct dp_reader *r, struct dp_reader *body)
{
	uint64_t n = dp_read_fixed(r, 4);
	if (n == UINT32_MAX)
		n = dp_read_fixed(r, 8);
	*body = *r;
	dp_read_skip(r, n);
	body->end = r->p;
	return !r->bad;
}

/* `id` is the distance from its own offset `field` back to the CIE. */
static bool cie_of(const struct dp_span *s, size_t field, uint64_t id, struct cie *cie)
{
	struct dp_reader r, body;
	if (id > field)
		return false;
	size_t at = field - id;
	r = (struct dp_reader){s->bytes + at, s->bytes + s->size, s->vaddr + at, false};
	return next_entry(&r, &body) && dp_read_fixed(&body, 4) == 0 && read_cie(body, cie);
}

static bool read_fde(struct dp_reader body, const struct cie *cie, struct dp_fde *fde)
{
	*fde = (struct dp_fde){.start = dp_read_pointer(&body, cie->pointers)};
	fde->size = dp_read_pointer(&body, cie->pointers & 0x0f);
	if (cie->augmented) {
		uint64_t n = dp_read_uleb(&body);
		if (cie->has_lsda && n)
			fde->lsda = dp_read_pointer(&body, cie->lsda);
	}
	return !body.bad;
}

bool dp_eh_frame_walk(const struct dp_span *s, bool exact, dp_fde_each each, void *data)
{
	struct dp_reader r = {s->bytes, s->bytes + s->size, s->vaddr, false}, body;
	struct cie cie = {0};
	size_t known = SIZE_MAX; /* offset of the CIE in `cie` */
	bool good = true;
	while (r.end - r.p >= 4) {
		const uint8_t *start = r.p;
		if (!next_entry(&r, &body))
			return false;
		if (body.p == body.end && !exact)
			return good;
		if (body.p == body.end)
			continue;
		size_t field = (size_t)(body.p - s->bytes);
		uint64_t id = dp_read_fixed(&body, 4);
		struct dp_fde fde;
		if (id && (known != field - id || start == s->bytes)) {
			if (!cie_of(s, field, id, &cie)) {
				good = false;
				continue;
			}
			known = field - id;
		}
		if (id && !read_fde(body, &cie, &fde))
			good = false;
		else if (id && !each(&fde, data))
			return good;
	}
	return good;
}

/* .eh_frame_hdr starts with a version, three encodings and the pointer to .eh_frame. */
static bool through_header(const struct dp_elf *elf, struct dp_span *ret)
{
	struct dp_span s;
	const Elf64_Phdr *p = dp_elf_phdr(elf, PT_GNU_EH_FRAME);
	if (!p || !dp_elf_at(elf, p->p_vaddr, &s))
		return false;
	struct dp_reader r = {s.bytes, s.bytes + s.size, s.vaddr, false};
	uint64_t version = dp_read_fixed(&r, 1);
	uint8_t encoding = (uint8_t)dp_read_fixed(&r, 1);
	dp_read_skip(&r, 2);
	uint64_t at = dp_read_pointer(&r, encoding);
	return version == 1 && !r.bad && at && dp_elf_at(elf, at, ret);
}

bool dp_elf_eh_frame(const struct dp_elf *elf, struct dp_span *ret, bool *exact)
{
	GElf_Shdr shdr;
	*exact = dp_elf_section(elf, ".eh_frame", 0, &shdr, ret) && (shdr.sh_flags & SHF_ALLOC) && ret->size;
	return *exact || through_header(elf, ret);
}
