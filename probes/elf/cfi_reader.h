/* SPDX-License-Identifier: MIT */
/* A bounded reader for call frame information. Past the end, or at malformed data, it sets `bad` and returns zeros. */
#ifndef DP_PROBES_ELF_CFI_READER_H
#define DP_PROBES_ELF_CFI_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct dp_cfi_reader {
	const uint8_t *p, *end;
	uint64_t addr; /* of *p */
	bool bad;
};

static inline const uint8_t *dp_cfi_take(struct dp_cfi_reader *r, uint64_t n)
{
	const uint8_t *p = r->p;

	if ((uint64_t)(r->end - p) < n) {
		r->bad = true;
		r->p = r->end;
		return NULL;
	}
	r->p += n;
	r->addr += n;
	return p;
}

/* Reads n little-endian bytes; n is 1, 2, 4 or 8. */
static inline uint64_t dp_cfi_uint(struct dp_cfi_reader *r, unsigned n)
{
	const uint8_t *p = dp_cfi_take(r, n);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, n);
	return v;
}

static inline int64_t dp_cfi_sint(struct dp_cfi_reader *r, unsigned n)
{
	unsigned unused = 64 - 8 * n;

	return (int64_t)(dp_cfi_uint(r, n) << unused) >> unused;
}

static inline uint64_t dp_cfi_uleb(struct dp_cfi_reader *r)
{
	uint64_t v = 0, byte;
	unsigned shift = 0;

	do {
		byte = dp_cfi_uint(r, 1);
		if (shift < 64)
			v |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return v;
}

static inline int64_t dp_cfi_sleb(struct dp_cfi_reader *r)
{
	uint64_t v = 0, byte;
	unsigned shift = 0;

	do {
		byte = dp_cfi_uint(r, 1);
		if (shift < 64)
			v |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (shift < 64 && byte & 0x40)
		v |= UINT64_MAX << shift;
	return (int64_t)v;
}

/* Reads the format half of a pointer encoding (DW_EH_PE_*, low 4 bits). */
static inline uint64_t dp_cfi_format(struct dp_cfi_reader *r, uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case 0x01:
		return dp_cfi_uleb(r);
	case 0x02:
		return dp_cfi_uint(r, 2);
	case 0x03:
		return dp_cfi_uint(r, 4);
	case 0x00:
	case 0x04:
	case 0x0c:
		return dp_cfi_uint(r, 8);
	case 0x09:
		return (uint64_t)dp_cfi_sleb(r);
	case 0x0a:
		return (uint64_t)dp_cfi_sint(r, 2);
	case 0x0b:
		return (uint64_t)dp_cfi_sint(r, 4);
	default:
		r->bad = true;
		return 0;
	}
}

/* Reads a code pointer: absolute or pc-relative. Other bases do not occur in .eh_frame of x86-64. */
static inline uint64_t dp_cfi_pointer(struct dp_cfi_reader *r, uint8_t encoding)
{
	uint64_t base = r->addr, v = dp_cfi_format(r, encoding);

	if ((encoding & 0xf0) == 0x10)
		return base + v;
	if ((encoding & 0xf0) != 0)
		r->bad = true;
	return v;
}

#endif
