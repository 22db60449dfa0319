/* SPDX-License-Identifier: MIT */
#include "helper_cfi_oracle.h"

#include <criterion/criterion.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define MODULES 64
#define FRAMES  65536 /* cached by pc; a power of two */
#define RA      16

struct oracle_module {
	uint64_t start, end, bias;
	int fd;
	Elf *elf;
	Dwarf_CFI *cfi;
};

struct oracle {
	pid_t pid;
	struct oracle_module module[MODULES];
	size_t n;
	struct {
		uint64_t pc;
		Dwarf_Frame *frame;
	} cache[FRAMES];
};

struct state { /* registers by DWARF number, RA included */
	uint64_t reg[17];
	bool known[17];
};

static void open_module(struct oracle_module *m, const char *name, uint64_t base)
{
	if (strstr(name, "vdso")) {
		m->elf = elf_memory((char *)base, m->end - base);
	} else {
		m->fd = open(*name ? name : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
		m->elf = elf_begin(m->fd, ELF_C_READ, NULL);
	}
	m->cfi = m->elf ? dwarf_getcfi_elf(m->elf) : NULL;
}

static int add_module(struct dl_phdr_info *info, size_t size, void *data)
{
	struct oracle *o = data;
	struct oracle_module *m = &o->module[o->n];
	uint64_t base = 0;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum && o->n < MODULES; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD)
			continue;
		if (!p->p_offset)
			base = info->dlpi_addr + p->p_vaddr;
		if (!(p->p_flags & PF_X))
			continue;
		*m = (struct oracle_module){
		        info->dlpi_addr + p->p_vaddr, info->dlpi_addr + p->p_vaddr + p->p_memsz, info->dlpi_addr, -1, NULL, NULL};
		open_module(m, info->dlpi_name, base);
		o->n++;
		break;
	}
	return 0;
}

struct oracle *oracle_create(pid_t pid)
{
	struct oracle *o = calloc(1, sizeof(*o));

	cr_assert(o);
	elf_version(EV_CURRENT);
	o->pid = pid;
	dl_iterate_phdr(add_module, o);
	return o;
}

struct oracle *oracle_destroy(struct oracle *o)
{
	for (size_t i = 0; i < FRAMES; i++)
		free(o->cache[i].frame);
	for (size_t i = 0; i < o->n; i++) {
		/* only an Elf with a Dwarf owns the CFI */
		if (o->module[i].cfi)
			dwarf_cfi_end(o->module[i].cfi);
		elf_end(o->module[i].elf);
		if (o->module[i].fd >= 0)
			close(o->module[i].fd);
	}
	free(o);
	return NULL;
}

static Dwarf_Frame *frame_at(struct oracle *o, uint64_t pc)
{
	size_t slot = (pc ^ pc >> 16) % FRAMES;
	Dwarf_Frame *frame = NULL;

	if (o->cache[slot].pc == pc)
		return o->cache[slot].frame;
	for (size_t i = 0; i < o->n && !frame; i++)
		if (pc >= o->module[i].start && pc < o->module[i].end && o->module[i].cfi)
			if (dwarf_cfi_addrframe(o->module[i].cfi, pc - o->module[i].bias, &frame))
				frame = NULL;
	free(o->cache[slot].frame);
	o->cache[slot].pc = pc;
	o->cache[slot].frame = frame;
	return frame;
}

static bool peek(const struct oracle *o, uint64_t addr, uint64_t *ret)
{
	struct iovec local = {ret, 8}, remote = {(void *)addr, 8};

	return process_vm_readv(o->pid, &local, 1, &remote, 1, 0) == 8;
}

/* ---- expressions ------------------------------------------------------------------------------------------------------ */

struct machine {
	const struct oracle *o;
	const struct state *s;
	uint64_t cfa, stack[16];
	size_t n;
	bool bad, value; /* the top of the stack is the value, not its address */
};

static void push(struct machine *m, uint64_t v)
{
	if (m->n == 16)
		m->bad = true;
	else
		m->stack[m->n++] = v;
}

static uint64_t pop(struct machine *m)
{
	if (m->n)
		return m->stack[--m->n];
	m->bad = true;
	return 0;
}

static uint64_t reg(struct machine *m, uint64_t number)
{
	if (number > RA || !m->s->known[number]) {
		m->bad = true;
		return 0;
	}
	return m->s->reg[number];
}

static void binary(struct machine *m, uint8_t atom)
{
	uint64_t b = pop(m), a = pop(m);

	switch (atom) {
	case DW_OP_plus:
		push(m, a + b);
		break;
	case DW_OP_minus:
		push(m, a - b);
		break;
	case DW_OP_mul:
		push(m, a * b);
		break;
	case DW_OP_and:
		push(m, a & b);
		break;
	case DW_OP_shl:
		push(m, b < 64 ? a << b : 0);
		break;
	case DW_OP_ge:
		push(m, (int64_t)a >= (int64_t)b);
		break;
	default:
		m->bad = true;
	}
}

static void one_op(struct machine *m, const Dwarf_Op *op)
{
	uint8_t atom = op->atom;
	uint64_t v;

	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
		push(m, reg(m, atom - DW_OP_breg0) + op->number);
	} else if (atom >= DW_OP_reg0 && atom <= DW_OP_reg31) {
		push(m, reg(m, atom - DW_OP_reg0));
		m->value = true;
	} else if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) {
		push(m, atom - DW_OP_lit0);
	} else if (atom == DW_OP_bregx) {
		push(m, reg(m, op->number) + op->number2);
	} else if (atom == DW_OP_call_frame_cfa) {
		push(m, m->cfa);
	} else if (atom == DW_OP_plus_uconst) {
		push(m, pop(m) + op->number);
	} else if (atom == DW_OP_stack_value) {
		m->value = true;
	} else if (atom == DW_OP_deref) {
		if (!peek(m->o, pop(m), &v))
			m->bad = true;
		push(m, v);
	} else {
		binary(m, atom);
	}
}

static bool evaluate(struct machine *m, const Dwarf_Op *ops, size_t n, uint64_t *ret)
{
	m->n = 0;
	m->bad = m->value = false;
	for (size_t i = 0; i < n && !m->bad; i++)
		one_op(m, &ops[i]);
	*ret = pop(m);
	return !m->bad;
}

/* ---- frames ----------------------------------------------------------------------------------------------------------- */

enum { STEP_OK, STEP_LOST, STEP_END };

/* The value of one register in the caller. */
static bool recover_one(struct machine *m, Dwarf_Frame *frame, int number, struct state *to, bool *undefined)
{
	Dwarf_Op mem[3], *ops;
	size_t n;

	*undefined = false;
	if (dwarf_frame_register(frame, number, mem, &ops, &n))
		return false;
	if (!n) {
		*undefined = ops == mem;
		to->known[number] = ops != mem && m->s->known[number];
		to->reg[number] = m->s->reg[number];
		return true;
	}
	if (!evaluate(m, ops, n, &to->reg[number]))
		return false;
	to->known[number] = m->value || peek(m->o, to->reg[number], &to->reg[number]);
	return to->known[number];
}

static int step(struct oracle *o, struct state *s, Dwarf_Frame *frame)
{
	struct machine m = {.o = o, .s = s};
	struct state to = {.known = {false}};
	bool undefined;
	Dwarf_Op *ops;
	size_t n;

	if (dwarf_frame_cfa(frame, &ops, &n) || !n || !evaluate(&m, ops, n, &m.cfa))
		return STEP_LOST;
	for (int i = 0; i < RA; i++)
		if (!recover_one(&m, frame, i, &to, &undefined))
			to.known[i] = false;
	if (!recover_one(&m, frame, RA, &to, &undefined))
		return STEP_LOST;
	if (undefined)
		return STEP_END;
	if (!to.known[7]) {
		to.reg[7] = m.cfa;
		to.known[7] = true;
	}
	*s = to;
	return to.reg[RA] ? STEP_OK : STEP_END;
}

static void load_state(struct state *s, const struct dp_regs *regs)
{
	static const uint8_t dwarf[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

	for (int i = 0; i < 16; i++)
		s->reg[dwarf[i]] = regs->gpr[i];
	s->reg[RA] = regs->rip;
	for (int i = 0; i <= RA; i++)
		s->known[i] = true;
}

size_t oracle_walk(struct oracle *o, const struct dp_regs *regs, uint64_t *pcs, size_t limit, bool *whole)
{
	bool exact = true, signal;
	struct state s;
	size_t n = 0;
	int how = STEP_OK;

	load_state(&s, regs);
	while (n < limit && how == STEP_OK) {
		Dwarf_Frame *frame = frame_at(o, s.reg[RA] - !exact);

		pcs[n++] = s.reg[RA];
		if (!frame) {
			how = STEP_LOST;
			break;
		}
		dwarf_frame_info(frame, NULL, NULL, &signal);
		how = step(o, &s, frame);
		exact = signal;
	}
	*whole = how == STEP_END;
	return n;
}
