/* SPDX-License-Identifier: MIT */
#include "trial.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE       4096u
#define INT3       0xcc
#define SEEN_FLAGS UINT64_C(0x244dd5) /* all but the trap and resume flags, and the flags that a program cannot set */

struct placed {
	uint64_t addr;
	size_t n;
};

static uint8_t image[MACHINE_ROOM], start_memory[MACHINE_ROOM], after[MACHINE_ROOM];

/* ---- preparing ---------------------------------------------------------------------------------------------------------- */

/* fs belongs to this process. Relocation copies both prefixes in the same way, so the test uses gs for both. */
static void avoid_fs(uint8_t *bytes, size_t prefixes)
{
	for (size_t i = 0; i < prefixes; i++)
		if (bytes[i] == 0x64)
			bytes[i] = 0x65;
}

/* Makes operands relative to rip point into the sandbox. */
static void aim_rip(struct dp_insn *insn, uint8_t *bytes, uint64_t *seed)
{
	if (!insn->disp_at)
		return;
	uint64_t want = MACHINE_SANDBOX + MACHINE_ROOM / 4 + (random_next(seed) % (MACHINE_ROOM / 2) & ~UINT64_C(63));
	uint32_t disp = (uint32_t)(want - (insn->addr + insn->len));
	memcpy(bytes + insn->disp_at, &disp, sizeof(disp));
}

/* A branch into its own bytes has no result to compare with. A call into itself has. */
static bool into_itself(const struct dp_insn *insn)
{
	bool branch = insn->rel_size && insn->flow != DP_FLOW_NEXT;
	return branch && insn->target - insn->addr < insn->len;
}

static bool choose_place(struct trial *t, uint8_t *bytes, size_t n, uint64_t *seed)
{
	const uint64_t at = MACHINE_CODE + 0x200 + random_next(seed) % 0xb00;
	if (!zydis_decode(bytes, n, &t->form, t->operand))
		return false;
	avoid_fs(bytes, t->form.raw.prefix_count);
	if (!dp_decode_zydis(bytes, n, at, &t->insn))
		return false;
	aim_rip(&t->insn, bytes, seed);
	struct dp_error *err = dp_decode(bytes, n, at, &t->insn);
	bool known = !err && zydis_decode(bytes, n, &t->form, t->operand);
	dp_error_destroy(err);
	return known;
}

static enum outcome refused(struct dp_error *err, char why[static 160])
{
	const char *last = err->message;
	for (const char *next = last; (next = strstr(next, ": ")); last = next)
		next += 2;
	snprintf(why, 160, "%s", last);
	dp_error_destroy(err);
	return OUTCOME_REFUSED;
}

/* The pages are full of int3, except the code that was put last. */
static void put_code(struct placed *last, uint64_t addr, const uint8_t *bytes, size_t n)
{
	if (!last->addr)
		memset((void *)(addr & ~(uint64_t)(PAGE - 1)), INT3, PAGE);
	else
		memset((void *)last->addr, INT3, last->n);
	memcpy((void *)addr, bytes, n);
	*last = (struct placed){addr, n};
}

static void put_both(const struct trial *t)
{
	static struct placed code, near, far;
	put_code(&code, t->insn.addr, t->insn.bytes, t->insn.len);
	put_code(t->to < MACHINE_FAR ? &near : &far, t->to, t->moved.data, t->moved.len);
}

enum outcome trial_prepare(struct trial *t, const uint8_t *bytes, size_t n, uint64_t *seed, char why[static 160])
{
	uint8_t own[DP_INSN_MAX] = {0};
	memset(t, 0, sizeof(*t));
	dp_buf_init(&t->moved);
	memcpy(own, bytes, n);
	if (!choose_place(t, own, n, seed))
		return OUTCOME_UNKNOWN;
	const char *reason = unfit(&t->form, t->operand);
	if (!reason && into_itself(&t->insn))
		reason = "branches into itself";
	if (reason) {
		snprintf(why, 160, "%s", reason);
		return OUTCOME_UNFIT;
	}
	bool far = !t->insn.disp_at && random_next(seed) % 2;
	t->to = (far ? MACHINE_FAR : MACHINE_NEAR) + 0x100 + random_next(seed) % 0xc00;
	struct dp_error *err = dp_relocate_run(&t->insn, 1, t->to, &t->moved, &t->plan);
	if (err)
		return refused(err, why);
	put_both(t);
	return OUTCOME_SAME;
}

void trial_fini(struct trial *t)
{
	dp_buf_fini(&t->moved);
}

void trial_memory(uint64_t *seed)
{
	for (size_t i = 0; i < MACHINE_ROOM; i += 8) {
		const uint64_t r = random_next(seed);
		const uint64_t v = r % 2 ? MACHINE_SANDBOX + MACHINE_ROOM / 4 + (r >> 8) % (MACHINE_ROOM / 2) : r;
		memcpy(image + i, &v, sizeof(v));
	}
}

/* ---- comparing ---------------------------------------------------------------------------------------------------------- */

/* Translates an address in the moved code to the original's. Other addresses are unchanged. */
static uint64_t original(const struct trial *t, uint64_t rip)
{
	for (int i = 0; i < t->plan.npairs; i++)
		if (t->plan.pair[i].stub == rip)
			return t->plan.pair[i].original;
	return rip;
}

static bool names_pc(int signal)
{
	return signal == SIGILL || signal == SIGFPE;
}

/*
 * The differences that a moved indirect call may have, as docs/guarantees.md says:
 *   - If its target is not a canonical address, it faults after the push of the return address: the stack pointer is
 *     lower by 8 and the pc is in the stub. Such a call ends the program anyway.
 *   - If its operand is the memory that the return address is pushed to, it reads the return address.
 */
static bool known_difference(const struct trial *t, const struct machine_state *start, const struct machine_state *a,
                             const struct machine_state *b)
{
	if (t->insn.flow != DP_FLOW_CALL_IND)
		return false;
	for (int i = 0; i < t->form.operand_count_visible; i++)
		if (t->operand[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    state_address(&t->operand[i], start) - (start->gpr[4] - 15) < 15)
			return true;
	return a->rip == t->insn.addr && a->signal == SIGSEGV && b->signal == SIGSEGV && !a->fault &&
	       b->rip - t->to < t->moved.len && b->gpr[4] == a->gpr[4] - 8;
}

/* Whether rsp holds no address of 48 or 57 bits, so that it may end the program when the kernel returns to it. */
static bool rsp_is_no_address(const struct machine_state *s)
{
	const int64_t rsp = (int64_t)s->gpr[4];
	return rsp != (rsp << 7) >> 7 || rsp != (rsp << 16) >> 16;
}

/*
 * A hypervisor that returns to programs by itself (PVM) ends one whose rsp holds no address behind a system call, and wherever an
 * interrupt happens to arrive. On a processor, both runs go on. So such an end says nothing.
 */
static bool ended_by_interrupt(const struct machine_state *s)
{
	bool protection = s->signal == SIGSEGV && s->trap == 13 && !s->error && !s->fault, opcode = s->signal == SIGILL && s->trap == 6;
	return (protection || opcode) && rsp_is_no_address(s);
}

static bool note(char what[static 160], const char *name, uint64_t a, uint64_t b)
{
	snprintf(what, 160, "%s: 0x%llx, moved 0x%llx", name, (unsigned long long)a, (unsigned long long)b);
	return true;
}

static bool end_differs(const struct trial *t, const struct machine_state *a, const struct machine_state *b,
                        char what[static 160])
{
	const uint64_t rip = original(t, b->rip);
	const uint64_t fault = names_pc(b->signal) ? original(t, b->fault) : b->fault;
	if (a->rip != rip)
		return note(what, "rip", a->rip, b->rip);
	if (a->signal != b->signal || a->code != b->code)
		return note(what, "signal", (uint64_t)a->signal, (uint64_t)b->signal);
	if (a->fault != fault)
		return note(what, "the fault's address", a->fault, b->fault);
	if (a->trap != b->trap || a->error != b->error)
		return note(what, "the exception's error code", a->error, b->error);
	return false;
}

static bool general_differs(const struct machine_state *a, const struct machine_state *b, char what[static 160])
{
	static const char *const name[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
	                                     "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
	for (int i = 0; i < 16; i++)
		if (a->gpr[i] != b->gpr[i])
			return note(what, name[i], a->gpr[i], b->gpr[i]);
	return ((a->flags ^ b->flags) & SEEN_FLAGS) && note(what, "flags", a->flags, b->flags);
}

/* Some hypervisors keep 32 bits of the address of the last x87 instruction when they switch processors (PVM). */
static bool same_x87_ip(const struct trial *t, uint64_t a, uint64_t b)
{
	if (a == original(t, b))
		return true;
	for (int i = 0; i < t->plan.npairs; i++)
		if ((uint32_t)t->plan.pair[i].stub == b && (uint32_t)t->plan.pair[i].original == (uint32_t)a)
			return true;
	return (a == (uint32_t)a || b == (uint32_t)b) && (uint32_t)a == (uint32_t)b;
}

/* Compares the whole frame, except the address of the last x87 instruction, which differs. */
static bool vector_differs(const struct trial *t, const struct machine_state *a, const struct machine_state *b,
                           char what[static 160])
{
	uint64_t ip[2];
	memcpy(&ip[0], a->x + X_FIP, 8);
	memcpy(&ip[1], b->x + X_FIP, 8);
	if (!same_x87_ip(t, ip[0], ip[1]))
		return note(what, "the x87 instruction pointer", ip[0], ip[1]);
	if (!memcmp(a->x, b->x, MACHINE_XSAVE))
		return false;
	for (size_t i = 0; i < MACHINE_XSAVE; i++) {
		bool pointer = i >= X_FIP && i < X_FDP, header = i >= X_HEADER && i < X_YMM;
		if (!pointer && !header && a->x[i] != b->x[i])
			return note(what, "the vector and x87 state from byte", i, i);
	}
	return false;
}

static bool memory_differs(char what[static 160])
{
	const uint8_t *now = (const uint8_t *)MACHINE_SANDBOX;
	if (!memcmp(now, after, MACHINE_ROOM))
		return false;
	for (size_t i = 0; i < MACHINE_ROOM; i++)
		if (now[i] != after[i])
			return note(what, "memory", after[i], now[i]);
	return false;
}

/* ---- running ------------------------------------------------------------------------------------------------------------ */

/* popf and iret must not load flags that single-step or check alignment in the harness; an iret needs valid segments. */
static void tame_stack(const struct trial *t, const struct machine_state *s)
{
	const uint64_t at = s->gpr[4] - MACHINE_SANDBOX, bad = UINT64_C(0x44100);
	const ZydisMnemonic m = t->form.mnemonic;
	const bool iret = m == ZYDIS_MNEMONIC_IRET || m == ZYDIS_MNEMONIC_IRETD || m == ZYDIS_MNEMONIC_IRETQ;
	uint64_t word[5];
	if ((m != ZYDIS_MNEMONIC_POPF && m != ZYDIS_MNEMONIC_POPFQ && !iret) || at > MACHINE_ROOM - sizeof(word))
		return;
	memcpy(word, start_memory + at, sizeof(word));
	for (int i = 0; i < 5; i++)
		word[i] &= ~bad;
	if (m == ZYDIS_MNEMONIC_IRETQ) {
		word[1] = 0x33;
		word[4] = 0x2b;
	}
	memcpy(start_memory + at, word, sizeof(word));
}

static bool differs(const struct trial *t, const struct machine_state *a, const struct machine_state *b, char what[static 160])
{
	return end_differs(t, a, b, what) || general_differs(a, b, what) || vector_differs(t, a, b, what) || memory_differs(what);
}

enum outcome trial_run(const struct trial *t, uint64_t *seed, bool *faulted, char what[static 160])
{
	static struct machine_state start, a, b;
	uint8_t *sandbox = (uint8_t *)MACHINE_SANDBOX;
	*faulted = true;
	if (!state_random(t, seed, &start))
		return OUTCOME_SAME;
	memcpy(start_memory, image, sizeof(image));
	tame_stack(t, &start);
	memcpy(sandbox, start_memory, MACHINE_ROOM);
	start.rip = t->insn.addr;
	machine_run(&start, &a);
	bool endless = machine_timed_out();
	memcpy(after, sandbox, MACHINE_ROOM);
	memcpy(sandbox, start_memory, MACHINE_ROOM);
	start.rip = t->to;
	machine_run(&start, &b);
	*faulted = a.rip == t->insn.addr;
	if (machine_timed_out() || endless)
		return endless ? OUTCOME_ENDLESS : OUTCOME_DIFFERENT;
	if (!differs(t, &a, &b, what))
		return OUTCOME_SAME;
	bool known = known_difference(t, &start, &a, &b) || ended_by_interrupt(&a) || ended_by_interrupt(&b);
	return known ? OUTCOME_KNOWN : OUTCOME_DIFFERENT;
}
