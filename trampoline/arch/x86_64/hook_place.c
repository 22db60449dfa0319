/* SPDX-License-Identifier: MIT */
/*
 * Which system call does a `syscall` instruction make, and where can a hook on it stand?
 *
 * Compilers and libraries write  mov $nr,%eax  close in front of the syscall, in code that nothing jumps into. Then the number is
 * known, and the mov (five bytes) takes the jump. Where the number comes from elsewhere, the hook asks for it as it runs. So
 * being wrong about a number's origin is what must not happen: it counts as known only where the straight code in front of the
 * call sets it, or copies it from a register that the whole function sets to nothing but known numbers.
 */
#include "trampoline/arch/x86_64/hook_syscall.h"

#include "base/cleanup.h"
#include "trampoline/arch/x86_64/decode.h"
#include "trampoline/arch/x86_64/relocate.h"
#include "trampoline/text.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>

#define JUMP_LEN  5
#define REGISTERS 16

struct item { /* an instruction of the function */
	struct dp_insn insn;
	bool entered;    /* a branch of the function leads to it */
	uint16_t writes; /* general registers, a bit each */
	bool constant;   /* it sets the one that it writes to `value` */
	uint64_t value;
	int8_t copied; /* it copies this register into rax; -1: it does not */
	bool pop;
};

struct function {
	struct item *item;
	size_t n;
};

static struct dp_error *unsafe(uint64_t addr, const char *what)
{
	return dp_error(DP_TAG_TRAP_UNSAFE, "the system call at 0x%llx cannot be watched for changes of signal handling: %s",
	                (unsigned long long)addr, what);
}

static int number_of(ZydisRegister reg)
{
	const ZydisRegister wide = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	return wide >= ZYDIS_REGISTER_RAX && wide <= ZYDIS_REGISTER_R15 ? (int)(wide - ZYDIS_REGISTER_RAX) : -1;
}

static void look(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op, struct item *item)
{
	for (unsigned i = 0; i < in->operand_count; i++)
		if (op[i].type == ZYDIS_OPERAND_TYPE_REGISTER && (op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)) {
			const int reg = number_of(op[i].reg.value);
			item->writes |= (uint16_t)(reg < 0 ? 0 : 1u << reg);
		}
	item->pop = in->mnemonic == ZYDIS_MNEMONIC_POP;
	const bool two = in->operand_count_visible == 2 && op[0].type == ZYDIS_OPERAND_TYPE_REGISTER && op[0].size >= 32;
	if (two && in->mnemonic == ZYDIS_MNEMONIC_MOV && op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		item->constant = true;
		item->value = op[1].imm.value.u;
	} else if (two && in->mnemonic == ZYDIS_MNEMONIC_XOR && op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	           op[0].reg.value == op[1].reg.value) {
		item->constant = true;
	} else if (two && in->mnemonic == ZYDIS_MNEMONIC_MOV && op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	           number_of(op[0].reg.value) == 0) {
		item->copied = (int8_t)number_of(op[1].reg.value);
	}
}

static bool decode(const uint8_t *bytes, size_t n, uint64_t addr, struct item *item)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction in;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	*item = (struct item){.copied = -1};
	if (!dp_decode_zydis(bytes, n, addr, &item->insn))
		return false;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, n, &in, op)))
		return false;
	look(&in, op, item);
	return true;
}

static void enter(struct function *f, uint64_t target)
{
	size_t low = 0, high = f->n;
	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (f->item[middle].insn.addr < target)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < f->n && f->item[low].insn.addr == target)
		f->item[low].entered = true;
}

/* Up to the function's end, or to the first bytes that are no instruction. */
static struct dp_error *read_function(const struct dp_text *text, struct function *f)
{
	f->item = calloc(text->size + 1, sizeof(*f->item));
	if (!f->item)
		return dp_error(DP_TAG_NOMEM, "out of memory for a function's instructions");
	for (uint64_t at = text->function; at < text->function + text->size; at += f->item[f->n++].insn.len) {
		size_t n;
		const uint8_t *bytes = dp_text_at(text, at, &n);
		if (!bytes || !decode(bytes, n, at, &f->item[f->n]))
			break;
	}
	for (size_t i = 0; i < f->n; i++) {
		const struct dp_insn *insn = &f->item[i].insn;
		if (insn->flow == DP_FLOW_JMP || insn->flow == DP_FLOW_JCC || insn->flow == DP_FLOW_JCXZ ||
		    insn->flow == DP_FLOW_XBEGIN)
			enter(f, insn->target);
	}
	return NULL;
}

/* The first instruction of the straight code that ends in `call`. */
static size_t run_start(const struct function *f, size_t call)
{
	size_t at = call;
	while (at && !f->item[at].entered && f->item[at - 1].insn.flow == DP_FLOW_NEXT)
		at--;
	return at;
}

static bool is_hooked(uint64_t nr)
{
	for (size_t i = 0; i < dp_nhooked_calls; i++)
		if ((uint32_t)nr == dp_hooked_calls[i])
			return true;
	return false;
}

/* Does the whole function give that register only numbers of other calls? (What a pop brings is the caller's, for the way out.)
 */
static bool only_others(const struct function *f, int reg)
{
	bool any = false;
	for (size_t i = 0; i < f->n; i++) {
		const struct item *item = &f->item[i];
		if (!(item->writes >> reg & 1) || item->pop)
			continue;
		if (!item->constant || is_hooked(item->value))
			return false;
		any = true;
	}
	return any;
}

/* May the call be one that needs a hook? *any: only its number can tell, as it runs. */
static bool may_be_hooked(const struct function *f, size_t start, size_t call, bool *any)
{
	*any = false;
	for (size_t i = call; i > start; i--) {
		const struct item *item = &f->item[i - 1];
		if (!(item->writes & 1))
			continue;
		if (item->constant)
			return is_hooked(item->value);
		if (item->copied > 0 && only_others(f, item->copied))
			return false;
		break;
	}
	*any = true;
	return true;
}

static bool relocatable(const struct item *item)
{
	struct dp_buf scratch;
	dp_buf_init(&scratch);
	struct dp_error *err = dp_relocate(&item->insn, item->insn.addr, &scratch);
	dp_buf_fini(&scratch);
	const bool good = !err;
	dp_error_destroy(err);
	return good;
}

/* The nearest instruction in front of the call that holds a jump; the call itself if there is none. */
static uint64_t site_of(const struct function *f, size_t start, size_t call)
{
	for (size_t i = call; i > start && relocatable(&f->item[i - 1]); i--)
		if (f->item[i - 1].insn.len >= JUMP_LEN)
			return f->item[i - 1].insn.addr;
	return f->item[call].insn.addr;
}

struct dp_error *dp_hook_place(const struct dp_text *text, uint64_t addr, struct dp_hook_place *ret)
{
	struct function f = {0};
	size_t call = 0;
	*ret = (struct dp_hook_place){.syscall = addr};
	if (!text->function || addr < text->function || addr - text->function >= text->size)
		return unsafe(addr, "it is in no function that symbols or unwind tables name");
	DP_TRY(read_function(text, &f));
	dp_auto_free struct item *owned = f.item;
	while (call < f.n && f.item[call].insn.addr < addr)
		call++;
	if (call == f.n && (!f.n || f.item[f.n - 1].insn.addr + f.item[f.n - 1].insn.len <= addr))
		return unsafe(addr, "its function cannot be decoded up to there");
	if (call == f.n || f.item[call].insn.addr != addr || f.item[call].insn.flow != DP_FLOW_SYSCALL)
		return NULL; /* these bytes are part of another instruction */
	const size_t start = run_start(&f, call);
	if (may_be_hooked(&f, start, call, &ret->any))
		ret->site = site_of(&f, start, call);
	(void)owned;
	return NULL;
}
