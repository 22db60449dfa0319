/* SPDX-License-Identifier: MIT */
#include "helper_replace.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

__asm__(".pushsection .text\n"
        ".balign 4096\n"
        ".globl sw_text, sw_cross\n"
        "sw_text:\n"
        ".rept 11\n"
        "	movl $1, %eax\n"
        "	ret\n"
        "	.balign 4096, 0xcc\n"
        ".endr\n"
        "	movl $1, %eax\n"
        "	ret\n"
        "	.fill 4094 - 6, 1, 0xcc\n"
        "sw_cross:\n"
        "	movl $0x01010101, %eax\n"
        "	ret\n"
        "	.balign 4096, 0xcc\n"
        ".popsection\n");

const uint8_t sw_one[5] = {0xb8, 1, 1, 1, 1}, sw_other[5] = {0xb8, 2, 2, 2, 2};

uint64_t sw_at_cross(void)
{
	return (uint64_t)(uintptr_t)sw_cross;
}

static void *call(void *none)
{
	int (*volatile f)(void) = sw_cross;
	(void)none;
	for (;;) {
		const int got = f();
		if (got != 0x01010101 && got != 0x02020202)
			tr->failed++;
		tr->calls++;
	}
	return NULL;
}

void sw_crossing(void)
{
	for (int i = 1; i < 3; i++) {
		pthread_t t;
		pthread_create(&t, NULL, call, NULL);
	}
	tr->ready = 1;
	call(NULL);
}

static int (*const on_first_page)(void) = (int (*)(void))sw_text;

/* One thread. */
void sw_alone(void)
{
	int (*volatile f)(void) = on_first_page;
	tr->ready = 1;
	for (;;) {
		const int got = f();
		if (got != 1 && got != 0x02020202 && got != 0x01010101)
			tr->failed++;
		tr->calls++;
	}
}

struct dp_target *sw_open_group(pid_t pid, const struct dp_installation **in)
{
	struct dp_target *t = pr_open(pid, PR_GATES);
	cr_assert_eq(dp_target_nresidents(t), 1);
	*in = &dp_target_resident(t, 0)->in;
	return t;
}

struct dp_error *sw_write_one(struct dp_target *t, const struct dp_installation *in, uint64_t at, const uint8_t *bytes)
{
	struct dp_replace *s = NULL;
	struct dp_error *err = dp_replace_create(t, in, &s);
	if (!err && !dp_replace_write(s, &(struct dp_replace_edit){at, 5, 0, 5, bytes}))
		err = dp_error(DP_TAG_INTERNAL, "%s", dp_replace_why(s));
	if (!err)
		err = dp_replace_commit(s, NULL, NULL);
	if (!err && !dp_replace_stands(s, at))
		err = dp_error(DP_TAG_INTERNAL, "it does not stand");
	dp_replace_destroy(s);
	return err;
}

bool sw_holds(pid_t pid, uint64_t at, const uint8_t *bytes, size_t n)
{
	uint8_t now[16];
	const struct dp_process p = {.pid = pid, .alive = pid};
	return dp_mem_read(&p, dp_addr_of(at), now, n) == n && !memcmp(now, bytes, n);
}

bool sw_is_copy(struct dp_target *t, uint64_t at)
{
	uint8_t *copy = NULL;
	tr_ok(dp_replace_copies(t, dp_page_down(at), dp_page_down(at) + DP_PAGE, &copy));
	const bool is = copy[0];
	free(copy);
	return is;
}
