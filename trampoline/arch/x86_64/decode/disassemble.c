/* SPDX-License-Identifier: MIT */
/* Uses Zydis, which knows more instructions than Capstone and determines the lengths anyway (decode.c). */
#include "trampoline/code/disassemble.h"

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stdio.h>

struct tools {
	bool ready;
	ZydisDecoder decoder;
	ZydisFormatter formatter;
};

static const struct tools *tools(void)
{
	static _Thread_local struct tools t;
	if (t.ready)
		return &t;
	ZydisDecoderInit(&t.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisFormatterInit(&t.formatter, ZYDIS_FORMATTER_STYLE_ATT);
	ZydisFormatterSetProperty(&t.formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
	ZydisFormatterSetProperty(&t.formatter, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_PADDING_DISABLED);
	ZydisFormatterSetProperty(&t.formatter, ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_PADDING_DISABLED);
	ZydisFormatterSetProperty(&t.formatter, ZYDIS_FORMATTER_PROP_IMM_PADDING, ZYDIS_PADDING_DISABLED);
	t.ready = true;
	return &t;
}

size_t dp_disassemble(const uint8_t *bytes, size_t n, uint64_t addr, char *text, size_t size)
{
	const struct tools *t = tools();
	ZydisDecodedInstruction in;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	snprintf(text, size, "(bad)");
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&t->decoder, bytes, n, &in, operands)))
		return 0;
	ZydisFormatterFormatInstruction(&t->formatter, &in, operands, in.operand_count_visible, text, size, addr, ZYAN_NULL);
	return in.length;
}
