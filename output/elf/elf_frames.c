/* SPDX-License-Identifier: MIT */
/*
 * A stub's frame has the program's rsp at the site as its CFA, so as usual the caller's rsp is the CFA. Its return address is not
 * in memory: each row gives it as a value (DW_CFA_val_expression). A row without known rules has none, and ends the unwinding.
 *
 * All frames are signal frames (augmentation "S"): the caller's pc is that of an instruction that is about to run, and it may be any
 * instruction; and gdb's step, next and until walk through signal frames by single steps until they are in the program again. From
 * other frames they would run to a breakpoint at the caller's pc, which a displaced jump or return never reaches.
 */
#include "output/elf/elf_frames.h"

#include <dwarf.h>
#include <string.h>

#define RETURN_COLUMN 16
#define DATA_ALIGN    (-8)
#define CIE_ID        UINT32_MAX

/* Registers in DWARF's order (System V AMD64 ABI, figure 3.36). */
static const uint8_t column[DP_FRAME_REGS] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

static void put_u8(struct dp_buf *b, unsigned v)
{
	const uint8_t byte = (uint8_t)v;
	dp_buf_put(b, &byte, 1);
}

static void put_u32(struct dp_buf *b, uint32_t v)
{
	dp_buf_put(b, &v, sizeof(v));
}

static void put_u64(struct dp_buf *b, uint64_t v)
{
	dp_buf_put(b, &v, sizeof(v));
}

static void put_uleb(struct dp_buf *b, uint64_t v)
{
	for (; v > 0x7f; v >>= 7)
		put_u8(b, (unsigned)(v & 0x7f) | 0x80);
	put_u8(b, (unsigned)v);
}

static void put_sleb(struct dp_buf *b, int64_t v)
{
	for (; v < -0x40 || v > 0x3f; v >>= 7)
		put_u8(b, (unsigned)(v & 0x7f) | 0x80);
	put_u8(b, (unsigned)(v & 0x7f));
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

static void put_cfa(struct dp_buf *b, const struct dp_frame_row *row)
{
	const bool below = row->offset < 0;
	put_u8(b, below ? DW_CFA_def_cfa_sf : DW_CFA_def_cfa);
	put_uleb(b, column[row->base]);
	if (below)
		put_sleb(b, row->offset / DATA_ALIGN);
	else
		put_uleb(b, (uint64_t)row->offset);
}

static void put_caller(struct dp_buf *b, const struct dp_frame_row *row)
{
	if (!row->known) {
		put_u8(b, DW_CFA_undefined);
		put_uleb(b, RETURN_COLUMN);
		return;
	}
	put_u8(b, DW_CFA_val_expression);
	put_uleb(b, RETURN_COLUMN);
	put_uleb(b, 1 + sizeof(uint64_t));
	put_u8(b, DW_OP_const8u);
	put_u64(b, row->original);
}

static void put_register(struct dp_buf *b, unsigned reg, int32_t saved)
{
	if (saved) {
		put_u8(b, DW_CFA_offset_extended_sf);
		put_uleb(b, column[reg]);
		put_sleb(b, saved / DATA_ALIGN);
	} else {
		put_u8(b, DW_CFA_same_value);
		put_uleb(b, column[reg]);
	}
}

/* Only what differs from the row before. */
static void put_row(struct dp_buf *b, const struct dp_frame_row *row, const struct dp_frame_row *before)
{
	const struct dp_frame_row none = {0};
	if (before) {
		put_u8(b, DW_CFA_advance_loc4);
		put_u32(b, (uint32_t)(row->pc - before->pc));
	}
	if (row->known && (!before || !before->known || before->base != row->base || before->offset != row->offset))
		put_cfa(b, row);
	if (!before || before->known != row->known || before->original != row->original)
		put_caller(b, row);
	before = before ? before : &none;
	for (unsigned reg = 0; reg < DP_FRAME_REGS; reg++)
		if (row->saved[reg] != before->saved[reg])
			put_register(b, reg, row->saved[reg]);
}

/* ---- entries ------------------------------------------------------------------------------------------------------------- */

/* Returns where the entry begins; end() writes its length. */
static size_t begin(struct dp_buf *b, uint32_t id)
{
	const size_t at = b->len;
	put_u32(b, 0);
	put_u32(b, id);
	return at;
}

static void end(struct dp_buf *b, size_t at)
{
	dp_buf_grow(b, -(b->len - at - 4) & 7); /* DW_CFA_nop is 0 */
	const uint32_t length = (uint32_t)(b->len - at - 4);
	if (!b->failed)
		memcpy(b->data + at, &length, sizeof(length));
}

/* One CIE for each stub: sharing them would save only a few bytes. */
static uint32_t put_cie(struct dp_buf *b)
{
	const size_t at = begin(b, CIE_ID);
	put_u8(b, 1); /* version */
	put_u8(b, 'S'); /* a signal frame: see above */
	put_u8(b, 0);
	put_uleb(b, 1);
	put_sleb(b, DATA_ALIGN);
	put_u8(b, RETURN_COLUMN);
	put_u8(b, DW_CFA_def_cfa);
	put_uleb(b, column[4]);
	put_uleb(b, 0);
	end(b, at);
	return (uint32_t)at;
}

void dp_frames_put(struct dp_buf *out, const struct dp_frame_rows *rows)
{
	if (!rows->n)
		return;
	const uint32_t cie = put_cie(out);
	const size_t at = begin(out, cie);
	put_u64(out, rows->row[0].pc);
	put_u64(out, rows->end - rows->row[0].pc);
	for (size_t i = 0; i < rows->n; i++)
		put_row(out, &rows->row[i], i ? &rows->row[i - 1] : NULL);
	end(out, at);
}

/* Puts an S into an empty augmentation, where the entry has a byte of padding (DW_CFA_nop) for it. */
static void make_signal_frame(uint8_t *cie, uint32_t length)
{
	uint8_t *augmentation = cie + 9, *last = cie + 4 + length - 1;
	if (*augmentation || *last)
		return;
	memmove(augmentation + 1, augmentation, (size_t)(last - augmentation));
	*augmentation = 'S';
}

void dp_frames_copy(struct dp_buf *out, const uint8_t *section, size_t n, uint64_t at)
{
	const size_t base = out->len;
	uint32_t length, id;
	dp_buf_put(out, section, n);
	if (out->failed)
		return;
	for (uint8_t *e = out->data + base, *stop = e + n; stop - e >= 24; e += 4 + length) {
		uint64_t start;
		memcpy(&length, e, sizeof(length));
		memcpy(&id, e + 4, sizeof(id));
		if (length > (size_t)(stop - e) - 4)
			return;
		if (id == CIE_ID) {
			make_signal_frame(e, length);
			continue;
		}
		memcpy(&start, e + 8, sizeof(start));
		start += at;
		id += (uint32_t)base;
		memcpy(e + 4, &id, sizeof(id));
		memcpy(e + 8, &start, sizeof(start));
	}
}
