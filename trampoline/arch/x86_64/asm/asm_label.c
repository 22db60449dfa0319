/* SPDX-License-Identifier: MIT */
/*
 * Labels, and the instructions that refer to them. A displacement is relative to the end of its instruction, which here is always
 * the end of the displacement itself.
 */
#include "trampoline/arch/x86_64/asm/asm.h"

#include <string.h>

void dp_asm_init(struct dp_asm *a, struct dp_buf *out, uint64_t at)
{
	/* Labels and fixups are initialised one by one: clearing all of them would take longer than most stubs. */
	a->out = out;
	a->at = at;
	a->start = out->len;
	a->failed = false;
	a->nlabels = a->nfixups = a->nguards = 0;
}

static size_t offset(const struct dp_asm *a)
{
	return a->out->len - a->start;
}

uint64_t dp_asm_here(const struct dp_asm *a)
{
	return a->at + offset(a);
}

void dp_asm_data(struct dp_asm *a, const void *bytes, size_t n)
{
	dp_buf_put(a->out, bytes, n);
}

void dp_asm_align(struct dp_asm *a, unsigned to)
{
	const size_t n = (size_t)(-dp_asm_here(a) & (to - 1)); /* `to` is a power of two */
	uint8_t *room = n ? dp_buf_grow(a->out, n) : NULL;
	if (room)
		memset(room, 0xcc, n);
}

struct dp_label dp_asm_label(struct dp_asm *a)
{
	if (a->nlabels == DP_ASM_LABELS) {
		a->failed = true;
		return (struct dp_label){0};
	}
	a->label[a->nlabels] = -1;
	return (struct dp_label){a->nlabels++};
}

void dp_asm_bind(struct dp_asm *a, struct dp_label label)
{
	a->label[label.id] = (int64_t)offset(a);
}

void dp_asm_guard(struct dp_asm *a, struct dp_label to)
{
	if (a->nguards == DP_ASM_GUARDS) {
		a->failed = true;
		return;
	}
	a->guard[a->nguards].load = (uint32_t)offset(a);
	a->guard[a->nguards++].label = to.id;
}

/* Writes the distance to a bound label, or reserves space for it. */
static void refer(struct dp_asm *a, struct dp_label to, uint8_t bytes)
{
	int64_t distance = a->label[to.id] - (int64_t)(offset(a) + bytes);
	if (a->label[to.id] < 0) {
		distance = 0;
		if (a->nfixups == DP_ASM_FIXUPS) {
			a->failed = true;
			return;
		}
		a->fixup[a->nfixups].end = (uint32_t)(offset(a) + bytes);
		a->fixup[a->nfixups].label = to.id;
		a->fixup[a->nfixups++].bytes = bytes;
	}
	dp_asm_data(a, &distance, bytes);
}

bool dp_asm_finish(struct dp_asm *a)
{
	for (size_t i = 0; i < a->nfixups && !a->out->failed; i++) {
		int64_t to = a->label[a->fixup[i].label], distance = to - a->fixup[i].end;
		uint16_t bytes = a->fixup[i].bytes;
		if (to < 0 || distance != (bytes == 1 ? (int8_t)distance : (int32_t)distance))
			a->failed = true;
		memcpy(a->out->data + a->start + a->fixup[i].end - bytes, &distance, bytes);
	}
	a->nfixups = 0;
	for (size_t i = 0; i < a->nguards; i++)
		if (a->label[a->guard[i].label] < 0)
			a->failed = true;
	return !a->failed && !a->out->failed;
}

/* Whether the label is bound and within reach of a two-byte jump. */
static bool reaches_short(const struct dp_asm *a, struct dp_label to)
{
	int64_t distance = a->label[to.id] - (int64_t)(offset(a) + 2);
	return a->label[to.id] >= 0 && distance >= INT8_MIN;
}

/* jmp to */
void dp_asm_jmp(struct dp_asm *a, struct dp_label to)
{
	bool near = !reaches_short(a, to);
	dp_asm_data(a, near ? "\xe9" : "\xeb", 1);
	refer(a, to, near ? 4 : 1);
}

/* jcc to (short) */
void dp_asm_jcc_short(struct dp_asm *a, enum dp_cc cc, struct dp_label to)
{
	uint8_t opcode = (uint8_t)(0x70 + cc);
	dp_asm_data(a, &opcode, 1);
	refer(a, to, 1);
}

/* jcc to */
void dp_asm_jcc(struct dp_asm *a, enum dp_cc cc, struct dp_label to)
{
	if (reaches_short(a, to)) {
		dp_asm_jcc_short(a, cc, to);
		return;
	}
	dp_asm_data(a, (uint8_t[]){0x0f, (uint8_t)(0x80 + cc)}, 2);
	refer(a, to, 4);
}

/* lea from(%rip),%to */
void dp_asm_lea_label(struct dp_asm *a, struct dp_label from, unsigned to)
{
	dp_asm_data(a, (uint8_t[]){(uint8_t)(0x48 | (to >> 3) << 2), 0x8d, (uint8_t)(5 | (to & 7) << 3)}, 3);
	refer(a, from, 4);
}

/* op from(%rip),%to */
void dp_asm_alu_label(struct dp_asm *a, enum dp_alu op, struct dp_label from, unsigned to)
{
	dp_asm_data(a, (uint8_t[]){(uint8_t)(0x48 | (to >> 3) << 2), (uint8_t)(op << 3 | 3), (uint8_t)(5 | (to & 7) << 3)}, 3);
	refer(a, from, 4);
}

/* call target; or mov $target,%scratch; call *%scratch */
void dp_asm_call(struct dp_asm *a, uint64_t target, unsigned scratch)
{
	int64_t distance = (int64_t)(target - (dp_asm_here(a) + 5));
	if (distance == (int32_t)distance) {
		dp_asm_data(a, "\xe8", 1);
		dp_asm_data(a, &distance, 4);
		return;
	}
	dp_asm_mov_const(a, target, scratch);
	dp_asm_data(a, (uint8_t[]){0x41, 0xff, (uint8_t)(0xd0 + (scratch & 7))} + (scratch < 8), scratch < 8 ? 2 : 3);
}

/* cmpl $0,address(%rip); or push %scratch; mov $address,%scratch; cmpl $0,(%scratch); pop %scratch */
void dp_asm_cmp_zero(struct dp_asm *a, uint64_t address, unsigned scratch)
{
	int64_t distance = (int64_t)(address - (dp_asm_here(a) + 7));
	if (distance == (int32_t)distance) {
		dp_asm_data(a, "\x83\x3d", 2);
		dp_asm_data(a, &distance, 4);
		dp_asm_data(a, "\0", 1);
		return;
	}
	dp_asm_push(a, scratch);
	dp_asm_mov_const(a, address, scratch);
	dp_asm_alu_imm(a, DP_ALU_CMP, 4, 0, dp_rm_mem(scratch, 0));
	dp_asm_pop(a, scratch);
}
