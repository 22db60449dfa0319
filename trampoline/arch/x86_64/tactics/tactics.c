/* SPDX-License-Identifier: MIT */
#include "trampoline/arch/x86_64/tactics/tactics.h"

#include "trampoline/arch/x86_64/asm/encode.h"
#include "trampoline/space/sites.h"

#include <string.h>

void dp_chain_site(struct dp_chain *knot, uint64_t site, const uint8_t *byte, const uint8_t *state, uint8_t own)
{
	*knot = (struct dp_chain){.base = site, .max_prefixes = own < DP_JMP_NEAR ? DP_MAX_PREFIXES : 0};
	memcpy(knot->byte, byte, sizeof(knot->byte));
	for (size_t x = 0; x < DP_CHAIN_BYTES; x++) {
		knot->fixed[x] = true;
		knot->bad[x] = (state[x] & DP_BYTE_UNKNOWN) != 0;
	}
	if (own)
		dp_chain_add(knot, site, own, 0);
}

void dp_chain_add(struct dp_chain *knot, uint64_t head, uint8_t own, uint64_t entry)
{
	struct dp_hop *hop = &knot->hop[knot->nhops++];
	*hop = (struct dp_hop){.at = (uint8_t)(head - knot->base), .own = own, .entry = entry};
	for (size_t x = hop->at; x < (size_t)hop->at + own && x < DP_CHAIN_BYTES; x++)
		knot->fixed[x] = false;
}

bool dp_insn_may_move(const struct dp_insn *insn)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	switch (insn->flow) {
	case DP_FLOW_SYSCALL:
	case DP_FLOW_TRAP:
	case DP_FLOW_ODD:
	case DP_FLOW_XBEGIN:
		return false;
	case DP_FLOW_CALL_IND:
		if (insn->stack_reg)
			return false;
		break;
	default:
		break;
	}
	if (insn->len == sizeof(endbr64) && !memcmp(insn->bytes, endbr64, sizeof(endbr64)))
		return false;
	return !insn->addr32 || !insn->disp_at;
}
