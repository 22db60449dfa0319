/* SPDX-License-Identifier: MIT */
/*
 * How relocation works. Most instructions do not depend on their address and are copied. The others are:
 *
 *   RIP-relative operand   same bytes, new disp32: it is relative to the instruction's end, so only the two addresses matter
 *   direct branch          near form (rel32), or through a quadword if the target is out of reach; a conditional one
 *                          then jumps over it with the inverted condition
 *   jcxz, loop             exist with rel8 only: they jump over a short jump to a full one. The prefixes and the opcode
 *                          are kept, so the counter is changed or tested exactly as before
 *   call                   pushes the ORIGINAL return address, then jumps. The callee returns into the original code, so
 *                          unwinders and code that reads its return address notice nothing, and no frame of ours stays on the
 *                          stack. An operand based on rsp sees rsp 8 lower than it would have: its displacement grows by 8
 *   syscall                the processor stores the following address in rcx, which is corrected
 *
 * Instructions that raise a signal by design are refused, since the handler may read the pc, which would be ours; unless the
 * agent's handler runs first and corrects it by the plan's pairs.
 */
#include "trampoline/arch/x86_64/relocate/relocate.h"

#include "trampoline/arch/x86_64/asm/encode.h"

#include <string.h>

static struct dp_error *refuse(const struct dp_insn *insn, const char *why)
{
	char text[DP_INSN_TEXT];
	return dp_error(DP_TAG_UNRELOCATABLE, "%s: %s", dp_insn_text(insn, text), why);
}

bool dp_relocated_continues(const struct dp_insn *insn)
{
	return dp_insn_continues(insn) && insn->flow != DP_FLOW_CALL && insn->flow != DP_FLOW_CALL_IND;
}

/* Replaces the disp32 of `bytes` (a form of `insn` that ends at `end`), so that it refers to the same address as before. */
static struct dp_error *fix_rip(const struct dp_insn *insn, uint64_t end, uint8_t *bytes)
{
	int32_t disp;
	if (!insn->disp_at)
		return NULL;
	if (insn->addr32)
		return refuse(insn, "its address is relative to eip and truncated to 32 bits");
	memcpy(&disp, insn->bytes + insn->disp_at, sizeof(disp));
	uint64_t target = insn->addr + insn->len + (uint64_t)(int64_t)disp;
	if (!dp_reaches(end, target))
		return refuse(insn, "its RIP-relative operand is out of reach of the stub");
	disp = (int32_t)(target - end);
	memcpy(bytes + insn->disp_at, &disp, sizeof(disp));
	return NULL;
}

static struct dp_error *copy(const struct dp_insn *insn, uint64_t to, struct dp_buf *out)
{
	uint8_t bytes[DP_INSN_MAX];
	memcpy(bytes, insn->bytes, sizeof(bytes));
	DP_TRY(fix_rip(insn, to + insn->len, bytes));
	dp_buf_put(out, bytes, insn->len);
	return NULL;
}

static void put_jcc(const struct dp_insn *insn, uint64_t to, struct dp_buf *out)
{
	/* 70+cc, or 0f 80+cc; the rel operand follows the byte with the condition */
	uint8_t condition = insn->bytes[insn->rel_at - 1] & 0xf;
	if (dp_reaches(to + 6, insn->target)) {
		dp_put_u8(out, 0x0f); /* jcc target */
		dp_put_u8(out, 0x80 | condition);
		dp_put_u32(out, (uint32_t)(insn->target - (to + 6)));
		return;
	}
	dp_put_u8(out, 0x70 | (condition ^ 1)); /* jncc over */
	dp_put_u8(out, DP_JMP_FAR);
	dp_put_jmp(out, to + 2, insn->target);
}

/*
 *       branch taken        taken: 2 bytes on (rel8 or rel32 operand)
 *       jmp over
 * taken: jmp target
 * over:
 */
static void put_detour(const struct dp_insn *insn, uint64_t to, struct dp_buf *out)
{
	const uint32_t skip = 2;
	uint64_t jump = to + insn->len + skip;
	dp_buf_put(out, insn->bytes, insn->rel_at);
	dp_buf_put(out, &skip, insn->rel_size);
	dp_put_u8(out, 0xeb);
	dp_put_u8(out, dp_jmp_size(jump, insn->target));
	dp_put_jmp(out, jump, insn->target);
}

static void put_call(const struct dp_insn *insn, uint64_t to, struct dp_buf *out)
{
	size_t before = out->len;
	dp_put_push(out, insn->addr + insn->len);
	dp_put_jmp(out, to + (out->len - before), insn->target);
}

/* Adds 8 to the displacement of [rsp + ...] in the `n` bytes at `bytes`. Returns the new length, or 0 if impossible. */
static size_t raise_displacement(uint8_t *bytes, size_t modrm_at, size_t n)
{
	size_t disp_at = modrm_at + 2; /* after ModRM and SIB */
	uint8_t mod = bytes[modrm_at] >> 6;
	int32_t disp = 0;
	if (mod == 1)
		disp = (int8_t)bytes[disp_at];
	else if (mod == 2)
		memcpy(&disp, bytes + disp_at, sizeof(disp));
	if (disp > INT32_MAX - 8 || (disp < 0 && disp > -16)) /* the latter reads what the push overwrites */
		return 0;
	disp += 8;
	bytes[modrm_at] = (uint8_t)((bytes[modrm_at] & 0x3f) | (mod == 0 ? 0x40 : 0x80));
	n = disp_at + (mod == 0 ? 1 : 4);
	memcpy(bytes + disp_at, &disp, n - disp_at);
	return n;
}

/*
 * A call reads its target before it pushes, and a fault there changes nothing: programs detect null pointers that way. So the
 * operand is read first, by a push to the place of the return address; it faults in the same way, and its result is overwritten.
 * (Not for operands relative to rip: those are in the module itself, unless the base of a segment is added.)
 */
static struct dp_error *put_operand_check(const struct dp_insn *insn, uint64_t to, struct dp_buf *out)
{
	static const uint8_t lea[] = {0x48, 0x8d, 0x64, 0x24, 0x08}; /* lea 8(%rsp),%rsp */
	uint8_t bytes[DP_INSN_MAX];
	memcpy(bytes, insn->bytes, sizeof(bytes));
	bytes[insn->modrm_at] = (uint8_t)((bytes[insn->modrm_at] & ~0x38) | 0x30); /* ff /2 (call) becomes ff /6 (push) */
	DP_TRY(fix_rip(insn, to + insn->len, bytes));
	dp_buf_put(out, bytes, insn->len);
	dp_buf_put(out, lea, sizeof(lea));
	return NULL;
}

/* Does a prefix add the base of fs or gs to the operand's address? */
static bool has_segment(const struct dp_insn *insn)
{
	for (unsigned i = 0; i < insn->opcode_at; i++)
		if (insn->bytes[i] == 0x64 || insn->bytes[i] == 0x65)
			return true;
	return false;
}

static struct dp_error *put_call_indirect(const struct dp_insn *insn, uint64_t to, struct dp_buf *out)
{
	uint8_t bytes[DP_INSN_MAX + 4];
	size_t before = out->len, n = insn->len;
	if (insn->stack_reg)
		return refuse(insn, "it calls the address in rsp");
	memcpy(bytes, insn->bytes, sizeof(insn->bytes));
	bytes[insn->modrm_at] = (uint8_t)((bytes[insn->modrm_at] & ~0x38) | 0x20); /* ff /2 (call) becomes ff /4 (jmp) */
	if (insn->stack_base)
		n = raise_displacement(bytes, insn->modrm_at, n);
	if (!n || n > DP_INSN_MAX)
		return refuse(insn, "its displacement from rsp cannot be adjusted for the pushed return address");
	if (bytes[insn->modrm_at] >> 6 != 3 && (!insn->disp_at || has_segment(insn)))
		DP_TRY(put_operand_check(insn, to, out));
	dp_put_push(out, insn->addr + insn->len);
	uint64_t end = to + (out->len - before) + n;
	DP_TRY(fix_rip(insn, end, bytes));
	dp_buf_put(out, bytes, n);
	return NULL;
}

static struct dp_error *put_syscall(const struct dp_insn *insn, uint64_t to, struct dp_buf *out)
{
	dp_buf_put(out, insn->bytes, insn->len);
	if (insn->bytes[insn->opcode_at] == 0x0f)
		dp_put_load_rcx(out, to + insn->len, insn->addr + insn->len);
	return NULL;
}

struct dp_error *dp_relocate(const struct dp_insn *insn, uint64_t to, struct dp_buf *out)
{
	switch (insn->flow) {
	case DP_FLOW_JMP:
		dp_put_jmp(out, to, insn->target);
		return NULL;
	case DP_FLOW_JCC:
		put_jcc(insn, to, out);
		return NULL;
	case DP_FLOW_JCXZ:
	case DP_FLOW_XBEGIN:
		put_detour(insn, to, out);
		return NULL;
	case DP_FLOW_CALL:
		put_call(insn, to, out);
		return NULL;
	case DP_FLOW_CALL_IND:
		return put_call_indirect(insn, to, out);
	case DP_FLOW_SYSCALL:
		return put_syscall(insn, to, out);
	case DP_FLOW_TRAP:
		if (insn->guarded)
			return copy(insn, to, out);
		return refuse(insn, "it raises a signal, and the handler may read the address");
	case DP_FLOW_ODD:
		return refuse(insn, "far and 16-bit transfers and sysenter cannot be moved");
	default:
		return copy(insn, to, out);
	}
}

void dp_plan_pair(struct dp_plan *plan, uint64_t stub, uint64_t original, bool fix_rcx)
{
	if (plan->npairs < DP_PLAN_PAIRS)
		plan->pair[plan->npairs++] = (struct dp_pc_pair){stub, original, fix_rcx};
}

struct dp_error *dp_relocate_run(const struct dp_insn *insn, size_t n, uint64_t base, struct dp_buf *out, struct dp_plan *plan)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t to = base + out->len;
		dp_plan_pair(plan, to, insn[i].addr, false);
		DP_TRY(dp_relocate(&insn[i], to, out));
		if (insn[i].flow == DP_FLOW_SYSCALL && out->len > to - base + insn[i].len)
			dp_plan_pair(plan, to + insn[i].len, insn[i].addr + insn[i].len, true);
	}
	const struct dp_insn *last = &insn[n - 1];
	if (!dp_relocated_continues(last) && !last->guarded)
		return NULL;
	uint64_t to = base + out->len, next = last->addr + last->len;
	dp_plan_pair(plan, to, next, false);
	dp_put_jmp(out, to, next);
	return NULL;
}
