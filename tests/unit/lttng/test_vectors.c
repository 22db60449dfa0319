/* SPDX-License-Identifier: MIT */
/* Vector state survives a hit whose callee uses all of it; state that was not in use is not in use afterwards. */
#include "fake.h"

#include <cpuid.h>
#include <criterion/criterion.h>
#include <string.h>

#define MASKS  0x20u
#define ZMM_HI 0x40u
#define ZMM16  0x80u
#define AVX    0x4u

struct state {
	uint8_t zmm[32][64];
	uint64_t k[8];
	uint32_t mxcsr, inuse;
} __attribute__((aligned(64)));

/* vectors.S: sets the components `which` from `from`, initializes the others, runs the hit, and stores all. */
void vectors_around(struct state *from, struct state *to, uint32_t which, void (*hit)(void));
void vectors_clobber(uint32_t which);
extern uint8_t vectors_xsave; /* 1: there is XRSTOR, 2: and XGETBV(1) */

static struct host_event probe;
static uint32_t available;

static void hit(void)
{
	const uint64_t value = 1;
	host_hit(&probe, &value, sizeof(value));
}

static void clobber(void)
{
	vectors_clobber(available);
}

static uint32_t components(void)
{
	uint32_t a, b, c, d;
	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return 0;
	vectors_xsave = __get_cpuid_count(0xd, 1, &a, &b, &c, &d) && (a & 4) ? 2 : 1;
	__asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	return a & (AVX | MASKS | ZMM_HI | ZMM16);
}

static void nothing(void)
{
}

/* An emulator may always report all components as in use. */
static bool has_inuse(void)
{
	static struct state before = {.mxcsr = 0x1f80}, after;
	if (vectors_xsave < 2)
		return false;
	vectors_around(&before, &after, 0, nothing);
	return !(after.inuse & available);
}

/* The contents of the registers when only these components are set. */
static void expect(struct state *s, uint32_t which)
{
	for (int i = 0; i < 32; i++) {
		const size_t keep = i >= 16 ? (which & ZMM16 ? 64 : 0) : which & ZMM_HI ? 64 : which & AVX ? 32 : 16;
		memset(s->zmm[i] + keep, 0, 64 - keep);
	}
	if (!(which & MASKS))
		memset(s->k, 0, sizeof(s->k));
}

static void check(uint32_t which, uint32_t mxcsr)
{
	static struct state before, after;
	for (size_t i = 0; i < sizeof(before.zmm); i++)
		((uint8_t *)before.zmm)[i] = (uint8_t)(i * 7 + 1);
	for (int i = 0; i < 8; i++)
		before.k[i] = UINT64_C(0x0102030405060708) * (uint64_t)(i + 1);
	before.mxcsr = mxcsr;
	vectors_around(&before, &after, which, hit);
	expect(&before, which);
	const int registers = available & ZMM16 ? 32 : 16;
	const size_t width = available & ZMM_HI ? 64 : available & AVX ? 32 : 16;
	for (int i = 0; i < registers; i++)
		cr_assert_eq(memcmp(before.zmm[i], after.zmm[i], width), 0, "register %d, components %x", i, which);
	if (available & MASKS)
		cr_assert_eq(memcmp(before.k, after.k, sizeof(before.k)), 0, "mask registers, components %x", which);
	cr_assert_eq(after.mxcsr, mxcsr);
	const uint32_t set = which & ZMM_HI ? which | AVX : which; /* writing a whole zmm register sets both */
	if (has_inuse())
		cr_assert_eq(after.inuse & available & ~set, 0, "components %x of %x are in use", after.inuse, which);
}

Test(vectors, survive_in_every_combination, .timeout = 30)
{
	available = components();
	fake_session(&probe);
	host_prime();
	fake.inside = clobber;
	for (uint32_t which = 0; which < 256; which++)
		if ((which & available) == which)
			check(which, 0x1f80);
	check(available, 0x5fbf); /* round down, flags set */
	check(available, 0x9f80); /* flush to zero */
	cr_assert(fake.committed > 2);
}

static void division(void)
{
	volatile double zero = 0, one = 1;
	one = one / zero;
}

static void direction_is_clear(void)
{
	unsigned long flags;
	__asm__ volatile("pushfq; popq %0" : "=r"(flags));
	cr_assert_eq(flags & 0x400, 0);
	division();
}

Test(vectors, the_callee_has_a_clear_direction_flag_and_no_unmasked_exceptions, .timeout = 30)
{
	const uint32_t unmasked = 0x1d80; /* division by zero traps */
	const uint64_t value = 1;
	uint32_t after;
	unsigned long flags;
	struct dp_sink *sink = fake_session(&probe);
	host_prime();
	fake.inside = direction_is_clear;
	struct dp_record *r = host_enter(sink->enter, &probe.desc);
	memcpy(r->payload, &value, 8);
	__asm__ volatile("ldmxcsr %0; std" ::"m"(unmasked));
	host_emit(sink->emit, &probe.desc, r, 8);
	__asm__ volatile("pushfq; popq %0; cld; stmxcsr %1" : "=r"(flags), "=m"(after));
	cr_assert_eq(flags & 0x400, 0x400);
	cr_assert_eq(after, unmasked);
	cr_assert_eq(fake.committed, 1);
}
