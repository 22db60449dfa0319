/* SPDX-License-Identifier: MIT */
/*
 * A stub changes the program's flags only where the program cannot notice. The program is a random sequence of instructions
 * that read flags, write some of them, or write them only sometimes. It runs with a stub before it and without, from the same
 * state.
 */
#include "test_stub_world.h"
#include "trampoline/arch/x86_64/decode/flags.h"

#define SITE UINT64_C(0x123456789abc)

struct code {
	const char *bytes;
	size_t n;
};
#define CODE(text)                                                                                                               \
	{                                                                                                                        \
		text, sizeof(text) - 1                                                                                           \
	}

static struct dp_segment segment = {.addr = SITE, .exec = true};
static const struct dp_text text = {.segment = &segment, .nsegments = 1};

static bool dead(const char *bytes, size_t n)
{
	segment.bytes = (const uint8_t *)bytes;
	segment.n = n;
	return dp_flags_dead(&text, SITE);
}
#define DEAD(s) cr_expect(dead(s, sizeof(s) - 1), #s)
#define LIVE(s) cr_expect(!dead(s, sizeof(s) - 1), #s)

Test(flags, written_on_every_way)
{
	DEAD("\x31\xc0");                             /* xor %eax,%eax */
	DEAD("\x55\x48\x89\xe5\x48\x83\xec\x10");     /* push %rbp; mov %rsp,%rbp; sub $16,%rsp */
	DEAD("\xf3\x0f\x1e\xfa\x48\x85\xff");         /* endbr64; test %rdi,%rdi */
	DEAD("\xe8\x02\x00\x00\x00\xc3\xc3\x39\xd8"); /* call 1f; ret; ret; 1: cmp %ebx,%eax */
	DEAD("\xeb\x01\xc3\x29\xd8");                 /* jmp over a ret; sub %ebx,%eax */
	DEAD("\xe3\x03\x29\xd8\xc3\x01\xd8");         /* jrcxz 1f; sub; ret; 1: add */
	DEAD("\x0f\xa3\xc8\x39\xd8");                 /* bt %ecx,%eax; cmp %ebx,%eax */
	DEAD("\xff\xc0\xd3\xe0\x0f\x2f\xc1");         /* inc %eax; shl %cl,%eax; comiss %xmm1,%xmm0 */
}

Test(flags, looked_at_or_not_known)
{
	LIVE("\x11\xd8");                     /* adc */
	LIVE("\xff\xc0\x19\xd8");             /* inc leaves CF; sbb */
	LIVE("\x72\x02\x31\xc0\x31\xc0");     /* jb */
	LIVE("\x0f\x92\xc0\x31\xc0");         /* setb */
	LIVE("\x0f\x4c\xc3\x31\xc0");         /* cmovl */
	LIVE("\x9c\x58\x31\xc0");             /* pushf; pop */
	LIVE("\x9f\x31\xc0");                 /* lahf */
	LIVE("\xd3\xe0\x74\x00\x31\xc0");     /* shl %cl; je: a shift by 0 writes nothing */
	LIVE("\xf3\xa6\x74\x00\x31\xc0");     /* repe cmpsb; je: none compared */
	LIVE("\x0f\xa3\xc8\x74\x00\x31\xc0"); /* bt leaves ZF */
	LIVE("\xe3\x02\x29\xd8\x11\xd8");     /* jrcxz 1f; sub; 1: adc */
	LIVE("\x0f\x05\x31\xc0");             /* syscall puts them into r11 */
	LIVE("\xc3\x31\xc0");                 /* ret: its caller is unknown */
	LIVE("\xff\xe0\x31\xc0");             /* jmp *%rax */
	LIVE("\xff\xd0\x31\xc0");             /* call *%rax */
	LIVE("\xe8\x00\x10\x00\x00\x31\xc0"); /* a call to unknown code */
	LIVE("\x0f\x0b\x31\xc0");             /* ud2 */
	LIVE("\xcc\x31\xc0");                 /* int3 */
	LIVE("\xeb\xfe");                     /* endless loop */
	LIVE("\xe1\x00\x31\xc0");             /* loope */
	LIVE("\x06");                         /* no instruction */
	LIVE("");
}

/* ---- executed ---- */

static const struct code pool[] = {
        CODE("\x11\xd8"),         /* adc %ebx,%eax */
        CODE("\x0f\x92\xc3"),     /* setb %bl */
        CODE("\x0f\x90\xc1"),     /* seto %cl */
        CODE("\x0f\x4c\xc3"),     /* cmovl %ebx,%eax */
        CODE("\x0f\x9a\xc2"),     /* setp %dl */
        CODE("\xff\xc0"),         /* inc %eax */
        CODE("\x31\xc9"),         /* xor %ecx,%ecx */
        CODE("\x39\xd8"),         /* cmp %ebx,%eax */
        CODE("\x48\x85\xf6"),     /* test %rsi,%rsi */
        CODE("\xd3\xe0"),         /* shl %cl,%eax */
        CODE("\xd1\xd8"),         /* rcr %eax */
        CODE("\x0f\xa3\xc8"),     /* bt %ecx,%eax */
        CODE("\x9f"),             /* lahf */
        CODE("\x9e"),             /* sahf */
        CODE("\xf5"),             /* cmc */
        CODE("\xf7\xd8"),         /* neg %eax */
        CODE("\x9c\x5b"),         /* pushf; pop %rbx */
        CODE("\x48\x89\xf8"),     /* mov %rdi,%rax */
        CODE("\x48\x8d\x04\x33"), /* lea (%rbx,%rsi),%rax */
        CODE("\x0f\xaf\xc3"),     /* imul %ebx,%eax */
        CODE("\x0f\xc1\xd8"),     /* xadd %ebx,%eax */
        CODE("\x72\x02\x31\xd2"), /* jb over xor %edx,%edx */
        CODE("\xe3\x02\x29\xd8"), /* jrcxz over sub %ebx,%eax */
};

static char program[64];
static size_t length;

static void make_program(void)
{
	length = 0;
	for (unsigned n = 1 + (unsigned)(machine_random() % 5); n > 0; n--) {
		const struct code *c = &pool[machine_random() % (sizeof(pool) / sizeof(*pool))];
		memcpy(program + length, c->bytes, c->n);
		length += c->n;
	}
	segment.bytes = (const uint8_t *)program;
	segment.n = length;
}

/* Puts the stub, if any, and then the program. */
static const void *put(size_t offset, const struct dp_request *req)
{
	struct dp_buf out;
	const uint64_t at = (uint64_t)world.code + offset;
	struct dp_stub stub = {.entry = at};
	dp_buf_init(&out);
	if (req)
		cr_assert_null(dp_stub_emit(&out, at, &world.rt, req, &stub));
	dp_buf_put(&out, program, length);
	machine_put_leave(&out);
	cr_assert(!out.failed);
	memcpy((void *)at, out.data, out.len);
	dp_buf_fini(&out);
	return (const void *)stub.entry;
}

static void compare(const void *with, const void *without)
{
	static uint8_t before[MACHINE_STACK], want_stack[MACHINE_STACK];
	struct machine in, want, got;
	machine_randomize(&in, world.stack);
	machine_fill(world.stack);
	memcpy(before, world.stack, sizeof(before));
	machine_run(&in, &want, without);
	memcpy(want_stack, world.stack, sizeof(want_stack));
	memcpy(world.stack, before, sizeof(before));
	world_clear();
	machine_run(&in, &got, with);
	const size_t zone = in.gpr[4] - (uint64_t)world.stack - 128;
	cr_assert_arr_eq(got.gpr, want.gpr, sizeof(want.gpr), "%zu bytes, %02x %02x %02x %02x %02x", length, program[0] & 0xff,
	                 program[1] & 0xff, program[2] & 0xff, program[3] & 0xff, program[4] & 0xff);
	cr_assert_eq(got.rflags, want.rflags);
	cr_assert_arr_eq(got.xmm, want.xmm, sizeof(want.xmm));
	cr_assert_arr_eq(world.stack + zone, want_stack + zone, MACHINE_STACK - zone, "red zone or stack");
}

/* Hits with a gate near and far, open and shut, with true and false conditions of all kinds. */
Test(flags, no_program_can_tell)
{
	static const char *const one[] = {"reg:rdi", NULL}, *const regs[] = {"regs", NULL};
	static const char *const when[] = {
	        "rdi == 5", "rdi != 5", "al < 100 || rsi > rdi", "rax * 3 != rsp", "dil == 7 && bh > 3", "0", "1"};
	static uint32_t gate[2] = {0, 1};
	unsigned kept = 0, freed = 0;
	for (unsigned i = 0; i < 3000; i++) {
		struct probe p;
		if (i % 100 == 0)
			world_create(i % 200 == 0);
		make_program();
		probe_init(&p, i % 5 ? one : regs, when[machine_random() % (sizeof(when) / sizeof(*when))]);
		p.req.text = &text;
		p.req.gate[0] = machine_random() % 3 ? 0 : (uint64_t)&gate[machine_random() % 2];
		freed += dp_flags_free(&world.rt, &p.req);
		kept += !dp_flags_free(&world.rt, &p.req);
		const void *with = put(4096, &p.req), *without = put(0, NULL);
		for (unsigned k = 0; k < 10; k++)
			compare(with, without);
		probe_fini(&p);
		if (i % 100 == 99)
			world_destroy();
	}
	cr_expect(kept > 500 && freed > 500, "%u kept, %u freed", kept, freed);
}

/* If anything shows the flags, in this hit or elsewhere in the run, they must be the program's. */
Test(flags, kept_for_those_who_ask)
{
	static const char *const one[] = {"reg:rdi", NULL}, *const flags[] = {"reg:rflags", NULL};
	struct probe p;
	memcpy(program, "\x31\xc0", length = 2);
	segment.bytes = (const uint8_t *)program;
	segment.n = length;
	world_create(false);
	probe_init(&p, one, "rdi != 5");
	p.req.text = &text;
	cr_expect(dp_flags_free(&world.rt, &p.req));
	world.rt.flags_shown = true;
	cr_expect_not(dp_flags_free(&world.rt, &p.req));
	world.rt.flags_shown = false;
	probe_fini(&p);
	probe_init(&p, one, "rflags & 1");
	p.req.text = &text;
	cr_expect_not(dp_flags_free(&world.rt, &p.req));
	probe_fini(&p);
	probe_init(&p, flags, "rdi != 5");
	p.req.text = &text;
	cr_expect_not(dp_flags_free(&world.rt, &p.req));
	probe_fini(&p);
	world_destroy();
}
