/* SPDX-License-Identifier: MIT */
/* The unwind rows of a stub for debuggers: wrong ones would mislead users who debug a process in trouble. */
#include "helper_text.h"

#include "trampoline/code/frames.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define AT   UINT64_C(0x555500000000)
#define SITE UINT64_C(0x555500001000)

enum { RAX = 0, RBX = 3, RSP = 4 };

static const uint8_t stub[] = {
        0x58, 0xc3,                            /* 0: data */
        0x59, 0xe9, 25,   0,    0,    0,       /* 2: slow: pop %rcx; jmp leave */
        0x48, 0x8d, 0x64, 0x24, 0x80,          /* 8: entry: lea -128(%rsp),%rsp */
        0x50,                                  /* 13: push %rax */
        0x51,                                  /* 14: push %rcx */
        0x74, 0xf1,                            /* 15: je slow */
        0x53,                                  /* 17: push %rbx */
        0x48, 0x89, 0xe3,                      /* 18: mov %rsp,%rbx */
        0x48, 0x83, 0xe4, 0xf0,                /* 21: and $-16,%rsp */
        0xe8, 0,    0,    0,    0,             /* 25: call */
        0x48, 0x8d, 0x23,                      /* 30: lea (%rbx),%rsp; then pop %rbx */
        0x5b,                                  /* 33: not followed by leave: */
        0x58,                                  /* 34: pop the pushed rcx into rax */
        0x90,                                  /* 35 */
        0x48, 0x8d, 0xa4, 0x24, 0x88, 0, 0, 0, /* 36: lea 136(%rsp),%rsp */
        0x55,                                  /* 44: the displaced push %rbp */
        0xe9, 0,    0,    0x10, 0,             /* 45: jmp back */
};

static const struct dp_pc_pair pairs[] = {{AT + 8, SITE, false}, {AT + 44, SITE, false}, {AT + 45, SITE + 1, false}};

static const struct dp_frame_row *row_at(const struct dp_frame_rows *rows, uint64_t pc)
{
	const struct dp_frame_row *found = NULL;
	for (size_t i = 0; i < rows->n && rows->row[i].pc <= pc; i++)
		found = &rows->row[i];
	return found;
}

static void expect(const struct dp_frame_rows *rows, unsigned at, unsigned base, int offset, uint64_t original)
{
	const struct dp_frame_row *row = row_at(rows, AT + at);
	cr_assert_not_null(row);
	cr_expect(row->known && row->base == base && row->offset == offset && row->original == original,
	          "at %u: r%u + %d for %#llx", at, row->base, row->offset, (unsigned long long)row->original);
}

Test(stub_frames, every_push_and_the_way_through_rbx)
{
	struct dp_frame_rows rows;
	cr_assert_null(dp_stub_frames(stub, sizeof(stub), AT, pairs, 3, &rows));
	expect(&rows, 8, RSP, 0, SITE);
	expect(&rows, 13, RSP, 128, SITE);
	expect(&rows, 15, RSP, 144, SITE);
	expect(&rows, 2, RSP, 144, SITE); /* by a branch back */
	expect(&rows, 3, RSP, 136, SITE);
	expect(&rows, 21, RSP, 152, SITE);
	expect(&rows, 25, RBX, 152, SITE); /* rsp has been aligned */
	expect(&rows, 33, RSP, 152, SITE);
	expect(&rows, 36, RSP, 136, SITE);
	expect(&rows, 44, RSP, 0, SITE);
	expect(&rows, 45, RSP, 0, SITE + 1);
	cr_expect_null(row_at(&rows, AT), "data");
	dp_frame_rows_fini(&rows);
}

Test(stub_frames, registers_are_where_they_were_pushed_first)
{
	struct dp_frame_rows rows;
	cr_assert_null(dp_stub_frames(stub, sizeof(stub), AT, pairs, 3, &rows));
	cr_expect_eq(row_at(&rows, AT + 13)->saved[RAX], 0);
	cr_expect_eq(row_at(&rows, AT + 14)->saved[RAX], -136);
	cr_expect_eq(row_at(&rows, AT + 18)->saved[RBX], -152);
	cr_expect_eq(row_at(&rows, AT + 34)->saved[RBX], 0, "popped");
	cr_expect_eq(row_at(&rows, AT + 36)->saved[RAX], -136, "it holds another register's word");
	cr_expect_eq(row_at(&rows, AT + 44)->saved[RAX], 0, "the program's state is restored");
	dp_frame_rows_fini(&rows);
}

/* The bytes come from the process, which may have written anything there. */
Test(stub_frames, any_bytes)
{
	uint64_t seed = 4711;
	for (int i = 0; i < 20000; i++) {
		uint8_t bytes[64];
		struct dp_frame_rows rows;
		struct dp_pc_pair pair[3];
		const size_t n = helper_random(&seed) % sizeof(bytes);
		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)helper_random(&seed);
		for (size_t k = 0; k < 3; k++)
			pair[k] = (struct dp_pc_pair){AT + helper_random(&seed) % 80, helper_random(&seed), false};
		cr_assert_null(dp_stub_frames(bytes, n, AT, pair, 3, &rows));
		cr_assert_leq(rows.n, n);
		dp_frame_rows_fini(&rows);
	}
}
