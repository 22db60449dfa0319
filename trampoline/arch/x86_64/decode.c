/* SPDX-License-Identifier: MIT */
/*
 * Two decoders, one answer. Capstone 4.0.2 does not know 1350 AVX-512 instructions of glibc and misnames a few others, so
 * Zydis, which knows them, describes the instruction; Capstone's length is the check on it. Where they differ, one of them
 * is wrong, and a wrong length destroys the target: refused. An instruction that Zydis does not know is refused too, since
 * Capstone's tables are the older ones.
 */
#include "trampoline/arch/x86_64/decode.h"

#include <capstone/capstone.h>
#include <stdio.h>
#include <string.h>

/* One per thread, never closed: opening one costs more than many instructions. */
static csh capstone(void)
{
	static _Thread_local csh handle;
	if (!handle && cs_open(CS_ARCH_X86, CS_MODE_64, &handle) == CS_ERR_OK)
		cs_option(handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	return handle;
}

size_t dp_decode_capstone(const uint8_t *bytes, size_t n, uint64_t addr, char *text, size_t size)
{
	cs_insn insn = {.detail = NULL};
	const csh handle = capstone();
	if (!handle || !cs_disasm_iter(handle, &bytes, &n, &addr, &insn))
		return 0;
	if (text)
		snprintf(text, size, "%s%s%s", insn.mnemonic, *insn.op_str ? " " : "", insn.op_str);
	return insn.size;
}

static void hex(const uint8_t *bytes, size_t n, char *buf, size_t size)
{
	*buf = '\0';
	for (size_t i = 0, at = 0; i < n && at + 4 <= size; i++)
		at += (size_t)snprintf(buf + at, size - at, "%s%02x", i ? " " : "", bytes[i]);
}

struct dp_error *dp_decode(const uint8_t *bytes, size_t n, uint64_t addr, struct dp_insn *ret)
{
	char dump[3 * DP_INSN_MAX + 1];
	struct dp_insn insn;
	if (n > DP_INSN_MAX)
		n = DP_INSN_MAX;
	bool known = dp_decode_zydis(bytes, n, addr, &insn);
	size_t second = dp_decode_capstone(bytes, n, addr, NULL, 0);
	hex(bytes, n < 8 ? n : 8, dump, sizeof(dump));
	if (!known)
		return dp_error(DP_TAG_UNDECODABLE, "0x%llx: the bytes %s are no instruction that is known",
		                (unsigned long long)addr, dump);
	if (second && second != insn.len)
		return dp_error(DP_TAG_UNDECODABLE,
		                "0x%llx: the decoders disagree about the bytes %s: Zydis sees %u bytes, Capstone %zu",
		                (unsigned long long)addr, dump, insn.len, second);
	*ret = insn;
	return NULL;
}

const char *dp_insn_text(const struct dp_insn *insn, char buf[static DP_INSN_TEXT])
{
	int at = snprintf(buf, DP_INSN_TEXT, "0x%llx: ", (unsigned long long)insn->addr);
	size_t room = DP_INSN_TEXT - (size_t)at;
	if (!dp_decode_capstone(insn->bytes, insn->len, insn->addr, buf + at, room))
		hex(insn->bytes, insn->len, buf + at, room);
	return buf;
}

bool dp_insn_continues(const struct dp_insn *insn)
{
	switch (insn->flow) {
	case DP_FLOW_JMP:
	case DP_FLOW_JMP_IND:
	case DP_FLOW_RET:
	case DP_FLOW_TRAP:
	case DP_FLOW_ODD:
		return false;
	default:
		return true;
	}
}

bool dp_insn_is_padding(const struct dp_insn *insn)
{
	return insn->nop || insn->bytes[0] == 0xcc;
}
