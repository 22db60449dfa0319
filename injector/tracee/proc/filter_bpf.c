/* SPDX-License-Identifier: MIT */
/*
 * Runs a filter's program (classic BPF: an accumulator, an index register, sixteen words of memory, jumps forward only) over a
 * call of which dynprobe knows the number, the flags and the constants, but not the addresses.
 *
 * A word is known or not. A jump that depends on one that is not known is taken both ways, and the most severe answer counts. So
 * the result may be too strict, never too lenient. A program is a graph without loops, but its paths can be many: beyond a bound
 * the result is DP_BPF_UNSURE.
 */
#include "injector/tracee/proc/filter_bpf.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MOST 200000u

struct word {
	uint32_t value;
	bool known;
};
struct state {
	size_t pc;
	struct word a, x, mem[BPF_MEMWORDS];
};
struct machine {
	const struct sock_filter *filter;
	size_t n;
	const struct dp_bpf_call *call;
	struct state *pending; /* the other ways of jumps; at most one for each instruction of a path */
	size_t npending, steps;
};

static struct word known(uint64_t value)
{
	return (struct word){(uint32_t)value, true};
}

/* A word of struct seccomp_data: number, architecture, instruction pointer (not known), arguments. */
static struct word load(const struct dp_bpf_call *call, uint32_t offset)
{
	if (offset == offsetof(struct seccomp_data, nr))
		return call->any ? (struct word){0} : known(call->nr);
	if (offset == offsetof(struct seccomp_data, arch))
		return known(AUDIT_ARCH_X86_64);
	const size_t first = offsetof(struct seccomp_data, args), i = (offset - first) / 8;
	if (offset < first || i >= 6 || call->any || !(call->known >> i & 1u))
		return (struct word){0};
	return known(offset % 8 ? call->arg[i] >> 32 : call->arg[i]);
}

static uint32_t shifted(uint32_t a, uint32_t by, bool left)
{
	return by >= 32 ? 0 : left ? a << by : a >> by;
}

/* False: a division by zero, at which the program ends and answers 0. */
static bool compute(struct word *a, struct word by, uint16_t op)
{
	const bool divides = op == BPF_DIV || op == BPF_MOD;
	if (divides && by.known && !by.value)
		return false;
	if (op != BPF_NEG && !(a->known && by.known)) {
		a->known = false;
		return true;
	}
	switch (op) {
	case BPF_ADD:
		a->value += by.value;
		break;
	case BPF_SUB:
		a->value -= by.value;
		break;
	case BPF_MUL:
		a->value *= by.value;
		break;
	case BPF_DIV:
		a->value /= by.value;
		break;
	case BPF_MOD:
		a->value %= by.value;
		break;
	case BPF_AND:
		a->value &= by.value;
		break;
	case BPF_OR:
		a->value |= by.value;
		break;
	case BPF_XOR:
		a->value ^= by.value;
		break;
	case BPF_LSH:
		a->value = shifted(a->value, by.value, true);
		break;
	case BPF_RSH:
		a->value = shifted(a->value, by.value, false);
		break;
	case BPF_NEG:
		a->value = 0 - a->value;
		break;
	default:
		a->known = false;
	}
	return true;
}

static bool holds(uint32_t a, uint32_t b, uint16_t op)
{
	switch (op) {
	case BPF_JEQ:
		return a == b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	default:
		return (a & b) != 0;
	}
}

static void jump(struct machine *m, struct state *s, const struct sock_filter *at)
{
	const struct word by = BPF_SRC(at->code) == BPF_X ? s->x : known(at->k);
	const size_t yes = s->pc + at->jt, no = s->pc + at->jf;
	if (BPF_OP(at->code) == BPF_JA) {
		s->pc += at->k;
	} else if (s->a.known && by.known) {
		s->pc = holds(s->a.value, by.value, BPF_OP(at->code)) ? yes : no;
	} else {
		s->pc = no;
		m->pending[m->npending] = *s;
		m->pending[m->npending++].pc = yes;
		s->pc = no;
	}
}

static struct word loaded(const struct machine *m, const struct state *s, const struct sock_filter *at)
{
	switch (BPF_MODE(at->code)) {
	case BPF_IMM:
		return known(at->k);
	case BPF_ABS:
		return load(m->call, at->k);
	case BPF_LEN:
		return known(sizeof(struct seccomp_data));
	case BPF_MEM:
		return at->k < BPF_MEMWORDS ? s->mem[at->k] : (struct word){0};
	default:
		return (struct word){0};
	}
}

static uint32_t answer(const struct state *s, const struct sock_filter *at)
{
	const struct word w = BPF_RVAL(at->code) == BPF_A ? s->a : known(at->k);
	return w.known ? w.value : DP_BPF_UNSURE;
}

/* True if the instruction ends the program with an answer. */
static bool step(struct machine *m, struct state *s, uint32_t *ret)
{
	const struct sock_filter *at = &m->filter[s->pc++];
	const struct word by = BPF_SRC(at->code) == BPF_X ? s->x : known(at->k);
	switch (BPF_CLASS(at->code)) {
	case BPF_LD:
		s->a = loaded(m, s, at);
		break;
	case BPF_LDX:
		s->x = loaded(m, s, at);
		break;
	case BPF_ST:
		s->mem[at->k % BPF_MEMWORDS] = s->a;
		break;
	case BPF_STX:
		s->mem[at->k % BPF_MEMWORDS] = s->x;
		break;
	case BPF_ALU:
		*ret = 0;
		return !compute(&s->a, by, BPF_OP(at->code));
	case BPF_JMP:
		jump(m, s, at);
		break;
	case BPF_MISC:
		if (BPF_MISCOP(at->code) == BPF_TAX)
			s->x = s->a;
		else
			s->a = s->x;
		break;
	default: /* BPF_RET */
		*ret = answer(s, at);
		return true;
	}
	return false;
}

/* One way through the program. */
static uint32_t follow(struct machine *m, struct state *s)
{
	uint32_t got;
	while (s->pc < m->n && m->steps++ < STEPS_MOST && m->npending < m->n)
		if (step(m, s, &got))
			return got;
	return DP_BPF_UNSURE;
}

uint32_t dp_bpf_worse(uint32_t a, uint32_t b)
{
	if (a == DP_BPF_UNSURE || b == DP_BPF_UNSURE)
		return DP_BPF_UNSURE;
	return (int32_t)(a & SECCOMP_RET_ACTION_FULL) <= (int32_t)(b & SECCOMP_RET_ACTION_FULL) ? a : b;
}

uint32_t dp_bpf_worst(const struct sock_filter *filter, size_t n, const struct dp_bpf_call *call)
{
	struct machine m = {.filter = filter, .n = n, .call = call, .pending = calloc(n + 1, sizeof(*m.pending)), .npending = 1};
	uint32_t worst = SECCOMP_RET_ALLOW;
	if (!m.pending)
		return DP_BPF_UNSURE;
	m.pending[0].a = m.pending[0].x = known(0);
	while (m.npending && worst != DP_BPF_UNSURE) {
		struct state s = m.pending[--m.npending];
		worst = dp_bpf_worse(follow(&m, &s), worst);
	}
	free(m.pending);
	return worst;
}
