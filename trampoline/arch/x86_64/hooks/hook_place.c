/* SPDX-License-Identifier: MIT */
/*
 * Determines which system call a `syscall` instruction makes, and where to put a hook on it.
 *
 * Compilers and libraries write mov $nr,%eax closely before the syscall, in code that nothing jumps into. Then the number is
 * known, and the jump replaces the mov (five bytes). If the number comes from elsewhere, the hook checks it at run time. A wrong
 * number must never count as known: so it does only if the straight code before the call sets it, or copies it from a register
 * that the whole function sets to nothing but known numbers.
 */
#include "trampoline/arch/x86_64/hooks/hook_syscall.h"

#include "base/cleanup.h"
#include "trampoline/arch/x86_64/decode/decode.h"
#include "trampoline/arch/x86_64/relocate/relocate.h"
#include "trampoline/code/text.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>

#define JUMP_LEN     5
#define PAGE         4096u
#define SEARCH       256
#define CALLER_SAVED 0x0fc7u /* rax rcx rdx rsi rdi r8..r11: not preserved by a call */

struct item { /* an instruction of the function */
	struct dp_insn insn;
	bool entered;    /* a branch of the function leads to it */
	uint16_t writes; /* general registers, a bit each */
	bool constant;   /* it sets the register that it writes to `value` */
	uint64_t value;
	int8_t copied; /* it copies this register to the one that it writes; -1: it does not */
	bool pop;
	uint32_t seen; /* registers for which a search has been here */
};

struct function {
	struct item *item;
	size_t n;
	bool closed; /* entered only at its start or by visible branches, left only by returns and those */
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
	} else if (two && in->mnemonic == ZYDIS_MNEMONIC_MOV && op[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
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

/* The instruction at `addr`; f->n if none begins there. */
static size_t item_at(const struct function *f, uint64_t addr)
{
	size_t low = 0, high = f->n;
	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (f->item[middle].insn.addr < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < f->n && f->item[low].insn.addr == addr ? low : f->n;
}

static bool is_branch(const struct dp_insn *insn)
{
	return insn->flow == DP_FLOW_JMP || insn->flow == DP_FLOW_JCC || insn->flow == DP_FLOW_JCXZ ||
	       insn->flow == DP_FLOW_XBEGIN;
}

/* A jump out of the function may lead to another part of it, and return from there; an indirect one leads anywhere. */
static void follow(struct function *f, const struct dp_insn *insn)
{
	if (insn->flow == DP_FLOW_JMP_IND)
		f->closed = false;
	if (!is_branch(insn))
		return;
	const size_t to = item_at(f, insn->target);
	if (to < f->n)
		f->item[to].entered = true;
	else
		f->closed = false;
}

/* Reads up to the function's end, or to the first bytes that do not decode. */
static struct dp_error *read_function(const struct dp_text *text, struct function *f)
{
	f->item = calloc(text->size + 1, sizeof(*f->item));
	if (!f->item)
		return dp_error_nomem();
	for (uint64_t at = text->function; at < text->function + text->size; at += f->item[f->n++].insn.len) {
		size_t n;
		const uint8_t *bytes = dp_text_at(text, at, &n);
		if (!bytes || !decode(bytes, n, at, &f->item[f->n]))
			break;
	}
	const struct dp_insn *last = f->n ? &f->item[f->n - 1].insn : NULL;
	f->closed = last && last->addr + last->len >= text->function + text->size;
	for (size_t i = 0; i < f->n; i++)
		follow(f, &f->item[i].insn);
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

/* ---- origin of a number ------------------------------------------------------------------------------------------------- */

struct search {
	struct function *f;
	struct { /* paths still to be followed back: from before `item`, for `reg` */
		size_t item;
		int reg;
	} todo[SEARCH];
	size_t n;
	bool lost;
	/* If set, checks that all numbers are the same, instead of whether one needs a hook. */
	bool same, any;
	uint64_t value;
};

static void go_back(struct search *s, size_t item, int reg)
{
	if (s->f->item[item].seen >> reg & 1)
		return;
	s->f->item[item].seen |= 1u << reg;
	if (s->n == SEARCH) {
		s->lost = true;
		return;
	}
	s->todo[s->n].item = item;
	s->todo[s->n++].reg = reg;
}

static void take_number(struct search *s, uint64_t nr)
{
	if (!s->same)
		s->lost |= is_hooked(nr);
	else
		s->lost |= s->any && s->value != nr;
	s->any = true;
	s->value = nr;
}

/* The instruction `from` runs before the point where `reg` is needed. */
static void ask(struct search *s, size_t from, int reg)
{
	const struct item *item = &s->f->item[from];
	const enum dp_flow flow = item->insn.flow;
	if ((flow == DP_FLOW_CALL || flow == DP_FLOW_CALL_IND) && (CALLER_SAVED >> reg & 1))
		s->lost = true;
	else if (flow == DP_FLOW_SYSCALL && !reg) /* its result */
		s->lost = true;
	else if (!(item->writes >> reg & 1))
		go_back(s, from, reg);
	else if (item->constant)
		take_number(s, (uint32_t)item->value);
	else if (item->copied >= 0)
		go_back(s, from, item->copied);
	else
		s->lost = true;
}

static void step(struct search *s, size_t item, int reg)
{
	const struct function *f = s->f;
	bool reached = false;
	if (item && dp_insn_continues(&f->item[item - 1].insn)) {
		ask(s, item - 1, reg);
		reached = true;
	}
	for (size_t i = 0; f->item[item].entered && i < f->n; i++)
		if (is_branch(&f->item[i].insn) && f->item[i].insn.target == f->item[item].insn.addr) {
			ask(s, i, reg);
			reached = true;
		}
	s->lost |= !item || !reached;
}

static void run_search(struct search *s, size_t call)
{
	go_back(s, call, 0);
	while (s->n && !s->lost) {
		s->n--;
		step(s, s->todo[s->n].item, s->todo[s->n].reg);
	}
}

/*
 * For functions with hidden paths: whether no instruction at all sets another number. (A pop restores the caller's value, on
 * exit.)
 */
static bool nothing_else(const struct function *f, int reg)
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

/* Whether every path to `call` sets a number that needs no hook. */
static bool only_others(struct function *f, size_t call)
{
	struct search s = {.f = f};
	if (!f->closed)
		return call && !f->item[call].entered && f->item[call - 1].writes & 1 && f->item[call - 1].copied > 0 &&
		       nothing_else(f, f->item[call - 1].copied);
	run_search(&s, call);
	return !s.lost;
}

/* Whether the call may need a hook. *any: only its number at run time can tell. */
static bool may_be_hooked(struct function *f, size_t start, size_t call, bool *any)
{
	*any = false;
	for (size_t i = call; i > start; i--) {
		const struct item *item = &f->item[i - 1];
		if (!(item->writes & 1))
			continue;
		if (item->constant)
			return is_hooked(item->value);
		break;
	}
	*any = true;
	return !only_others(f, call);
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

/* The mov of a register right before the call, which may run twice. 0 if there is none. */
static uint64_t copy_in_front(const struct function *f, size_t start, size_t call)
{
	const bool copies = call > start && f->item[call - 1].copied > 0 && f->item[call - 1].writes == 1;
	return copies ? f->item[call - 1].insn.addr : 0;
}

/* Whether its first bytes, all of them its own, can be written at once. */
static bool holds_jump(const struct dp_insn *insn)
{
	return insn->len >= JUMP_LEN && (insn->addr & (PAGE - 1)) + JUMP_LEN <= PAGE;
}

/* The nearest instruction before the call that is long enough for a jump; the call itself if there is none. */
static uint64_t site_of(const struct function *f, size_t start, size_t call)
{
	for (size_t i = call; i > start && relocatable(&f->item[i - 1]); i--)
		if (holds_jump(&f->item[i - 1].insn))
			return f->item[i - 1].insn.addr;
	return f->item[call].insn.addr;
}

/*
 * Outside of all functions hand-written code has its constants, which cannot be told from code for sure. The bytes count as a
 * call if an instruction shortly before could set the number: a mov to eax, from a register or of a small number.
 */
static bool looks_like_call(const struct dp_text *text, uint64_t addr)
{
	enum { LOOK = 16, NUMBERS = 1024 };
	size_t n;
	const uint8_t *at = dp_text_at(text, addr - LOOK, &n);
	for (size_t i = 0; at && i + 2 <= LOOK; i++) {
		const bool to_eax =
		        (at[i] == 0x89 && (at[i + 1] & 0xc7) == 0xc0) || (at[i] == 0x8b && (at[i + 1] & 0xf8) == 0xc0);
		const bool number = i + 5 <= LOOK && at[i] == 0xb8 && !at[i + 3] && !at[i + 4] && at[i + 2] < NUMBERS >> 8;
		if (to_eax || number)
			return true;
	}
	return !at;
}

static bool in_function(const struct dp_text *text, uint64_t addr)
{
	return text->function && addr >= text->function && addr - text->function < text->size;
}

/* The first instruction at or after `addr`. */
static size_t find_item(const struct function *f, uint64_t addr)
{
	size_t i = 0;
	while (i < f->n && f->item[i].insn.addr < addr)
		i++;
	return i;
}

static bool is_call(const struct function *f, size_t i, uint64_t addr)
{
	return i < f->n && f->item[i].insn.addr == addr && f->item[i].insn.flow == DP_FLOW_SYSCALL;
}

struct dp_error *dp_hook_place(const struct dp_text *text, uint64_t addr, struct dp_hook_place *ret)
{
	struct function f = {0};
	*ret = (struct dp_hook_place){.syscall = addr};
	if (!in_function(text, addr))
		return looks_like_call(text, addr) ? unsafe(addr, "no symbol or unwind table names its function") : NULL;
	DP_TRY(read_function(text, &f));
	dp_auto_free struct item *owned = f.item;
	const size_t call = find_item(&f, addr);
	if (call == f.n && (!f.n || f.item[f.n - 1].insn.addr + f.item[f.n - 1].insn.len <= addr))
		return unsafe(addr, "its function cannot be decoded up to the call");
	if (!is_call(&f, call, addr))
		return NULL; /* these bytes are part of another instruction */
	const size_t start = run_start(&f, call);
	if (!may_be_hooked(&f, start, call, &ret->any))
		return NULL;
	ret->site = site_of(&f, start, call);
	ret->other = ret->site == addr ? copy_in_front(&f, start, call) : 0;
	(void)owned;
	return NULL;
}

/* ---- probes on system calls ------------------------------------------------------------------------------------------- */

/* The number on every path to the call: set by the straight code before it, or found by a search that sees all paths. */
static bool known_number(struct function *f, size_t start, size_t call, uint64_t *ret)
{
	struct search s = {.f = f, .same = true};
	for (size_t i = call; i > start; i--) {
		const struct item *item = &f->item[i - 1];
		if (!(item->writes & 1))
			continue;
		*ret = (uint32_t)item->value;
		if (item->constant)
			return true;
		break;
	}
	if (!f->closed)
		return false;
	run_search(&s, call);
	*ret = s.value;
	return !s.lost && s.any;
}

struct dp_error *dp_syscall_place(const struct dp_text *text, uint64_t addr, struct dp_syscall_place *ret)
{
	struct function f = {0};
	*ret = (struct dp_syscall_place){.nr = -1, .outside = !in_function(text, addr)};
	if (ret->outside)
		return NULL;
	DP_TRY(read_function(text, &f));
	dp_auto_free struct item *owned = f.item;
	const size_t call = find_item(&f, addr);
	uint64_t nr;
	if (!is_call(&f, call, addr))
		return NULL;
	const size_t start = run_start(&f, call);
	const struct dp_insn *front = call > start ? &f.item[call - 1].insn : NULL;
	if (known_number(&f, start, call, &nr) && nr <= INT32_MAX)
		ret->nr = (int32_t)nr;
	/* mov $nr,%eax: all arguments are already set, and the call itself stays in place. */
	const bool fits = front && f.item[call - 1].constant && f.item[call - 1].writes == 1 && holds_jump(front);
	ret->entry = fits ? front->addr : addr;
	ret->exit = addr + f.item[call].insn.len;
	ret->joined = call + 1 < f.n && f.item[call + 1].entered;
	(void)owned;
	return NULL;
}
