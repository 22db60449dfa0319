/* SPDX-License-Identifier: MIT */
#include "trial.h"

#include <string.h>
#include <sys/syscall.h>

#define STATUS_FLAGS UINT64_C(0x8d5) /* CF PF AF ZF SF OF */
#define GETPID_32    20
#define DIRECTION    UINT64_C(0x400)

static uint64_t pointer(uint64_t *seed)
{
	uint64_t at = MACHINE_SANDBOX + MACHINE_ROOM / 4 + random_next(seed) % (MACHINE_ROOM / 2);
	return random_next(seed) % 4 ? at & ~UINT64_C(63) : at;
}

static void put64(uint8_t *at, uint64_t v)
{
	memcpy(at, &v, sizeof(v));
}

/* Random bits that are useful as several kinds of numbers: small indices, ordinary floats, anything. */
static uint64_t element(uint64_t *seed)
{
	const uint64_t r = random_next(seed);
	switch (r % 4) {
	case 0:
		return (r >> 32 & 0x7f) | (r >> 8 & 0x7f) << 32;
	case 1:
		return 0x3ff0000000000000 | r >> 12;
	default:
		return r;
	}
}

static void random_x87(uint8_t *x, uint64_t *seed)
{
	const uint64_t r = random_next(seed);
	uint16_t control = (uint16_t)(0x037f | (r & 0xc00)), status = (uint16_t)(r >> 16 & 0x3800);
	if (r >> 40 & 1)
		control = (uint16_t)((control & ~0x300) | (r >> 44 & 0x300)); /* precision */
	if (!(r >> 48 & 15))
		control = (uint16_t)(control & ~(r >> 52 & 0x3f)); /* exceptions that are not masked */
	memcpy(x + X_FCW, &control, sizeof(control));
	memcpy(x + X_FSW, &status, sizeof(status));
	x[X_FTW] = (uint8_t)(r >> 32);
	for (int i = 0; i < 8; i++) {
		uint16_t exponent = (uint16_t)random_next(seed);
		exponent = exponent & 7 ? (uint16_t)(0x3fff + exponent % 64 - 32) : exponent;
		put64(x + X_ST + 16 * i, random_next(seed) | UINT64_C(1) << 63);
		memcpy(x + X_ST + 16 * i + 8, &exponent, sizeof(exponent));
	}
}

static void random_vectors(uint8_t *x, uint64_t *seed)
{
	const uint64_t components = machine_components(), r = random_next(seed);
	uint32_t mxcsr = (uint32_t)(0x1f80 | (r & 0x603f) | (r >> 20 & 0x8000) | (r >> 30 & 0x40));
	if (!(r >> 48 & 15))
		mxcsr &= ~(uint32_t)(r >> 40 & 0x1f80);
	memcpy(x + X_MXCSR, &mxcsr, sizeof(mxcsr));
	for (int i = 0; i < 256; i += 8)
		put64(x + X_XMM + i, element(seed));
	for (int i = 0; i < 256; i += 8)
		put64(x + X_YMM + i, element(seed));
	for (size_t i = 0, at = machine_at(PART_K); at && i < 64; i += 8)
		put64(x + at + i, random_next(seed));
	for (size_t i = 0, at = machine_at(PART_ZMM); at && i < 512; i += 8)
		put64(x + at + i, element(seed));
	for (size_t i = 0, at = machine_at(PART_HIGH); at && i < 1024; i += 8)
		put64(x + at + i, element(seed));
	put64(x + X_HEADER, components);
}

static int number(ZydisRegister r)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
	return r != ZYDIS_REGISTER_NONE && ZydisRegisterGetClass(whole) == ZYDIS_REGCLASS_GPR64 ? ZydisRegisterGetId(whole) : -1;
}

/* Makes the registers of a memory operand add up to an address in the sandbox. */
static void aim(const ZydisDecodedOperand *o, uint64_t *seed, struct machine_state *s)
{
	const int base = number(o->mem.base), index = number(o->mem.index);
	uint64_t want = pointer(seed) - (uint64_t)(o->mem.disp.has_displacement ? o->mem.disp.value : 0);
	if (o->mem.segment == ZYDIS_REGISTER_GS)
		want -= MACHINE_GS;
	if (base < 0 && index < 0)
		return;
	if (base == index) {
		s->gpr[base] = want / (1U + o->mem.scale);
	} else if (base < 0) {
		s->gpr[index] = want / (o->mem.scale ? o->mem.scale : 1);
	} else {
		if (index >= 0)
			s->gpr[index] = index == 4 ? s->gpr[index] : random_next(seed) % 16;
		s->gpr[base] = want - (index >= 0 ? s->gpr[index] * o->mem.scale : 0);
	}
}

uint64_t state_address(const ZydisDecodedOperand *o, const struct machine_state *s)
{
	const int base = number(o->mem.base), index = number(o->mem.index);
	uint64_t at = o->mem.disp.has_displacement ? (uint64_t)o->mem.disp.value : 0;
	at += (base < 0 ? 0 : s->gpr[base]) + (index < 0 ? 0 : s->gpr[index] * o->mem.scale);
	return o->mem.segment == ZYDIS_REGISTER_GS ? at + MACHINE_GS : at;
}

/* Kernels slow down locked accesses that cross a cache line (split locks), so avoid them. Returns false for such an access. */
static bool calm_lock(const struct trial *t, uint64_t *seed, struct machine_state *s)
{
	const ZydisDecodedOperand *memory = NULL;
	int bit = -1; /* the register that holds a bit's number (bt and its like), which changes the address */
	for (int i = 0; i < t->form.operand_count; i++) {
		const int r = t->operand[i].type == ZYDIS_OPERAND_TYPE_REGISTER ? number(t->operand[i].reg.value) : -1;
		if (t->operand[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			memory = &t->operand[i];
		else if (r >= 0 && t->form.opcode_map == ZYDIS_OPCODE_MAP_0F && t->form.meta.category == ZYDIS_CATEGORY_BITBYTE)
			bit = r;
	}
	if (bit >= 0)
		s->gpr[bit] = random_next(seed) % 32;
	const bool locked = t->form.attributes & ZYDIS_ATTRIB_HAS_LOCK || t->form.mnemonic == ZYDIS_MNEMONIC_XCHG;
	if (!locked || !memory || t->insn.disp_at)
		return true;
	aim(memory, seed, s);
	const uint64_t at = state_address(memory, s);
	const bool moved = bit >= 0 && (bit == number(memory->mem.base) || bit == number(memory->mem.index));
	return at % 64 <= 48 && !moved;
}

static void random_general(uint64_t *seed, struct machine_state *s)
{
	for (int i = 0; i < 16; i++) {
		const uint64_t kind = random_next(seed) % 16;
		s->gpr[i] = kind < 9 ? pointer(seed) : kind < 12 ? random_next(seed) % 64 : random_next(seed);
	}
	if (random_next(seed) % 8)
		s->gpr[1] = random_next(seed) % 20; /* counts are small */
	s->gpr[4] = random_next(seed) % 16 ? pointer(seed) & ~UINT64_C(7) : s->gpr[4];
	s->flags = (random_next(seed) & STATUS_FLAGS) | (random_next(seed) % 8 ? 0 : DIRECTION) | 0x202;
}

/* Makes every system call getpid(). */
static void calm_syscall(const struct trial *t, struct machine_state *s)
{
	if (t->form.mnemonic == ZYDIS_MNEMONIC_SYSCALL)
		s->gpr[0] = SYS_getpid;
	else if (t->form.mnemonic == ZYDIS_MNEMONIC_INT)
		s->gpr[0] = GETPID_32;
}

bool state_random(const struct trial *t, uint64_t *seed, struct machine_state *state)
{
	memset(state, 0, sizeof(*state));
	random_general(seed, state);
	random_x87(state->x, seed);
	random_vectors(state->x, seed);
	for (int i = 0; i < t->form.operand_count; i++)
		if (t->operand[i].type == ZYDIS_OPERAND_TYPE_MEMORY && random_next(seed) % 16)
			aim(&t->operand[i], seed, state);
	calm_syscall(t, state);
	return calm_lock(t, seed, state);
}
