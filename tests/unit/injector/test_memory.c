/* SPDX-License-Identifier: MIT */
#include "helper_tracee.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint8_t *pages;

static void holder(void)
{
	pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(pages, 0x5a, 2 * 4096);
	mprotect(pages + 4096, 4096, PROT_EXEC);
	munmap(pages + 2 * 4096, 4096);
	tr->value[0] = (long)pages;
	tr->ready = 1;
	for (;;)
		pause();
}

Test(memory, reads_from_the_front_up_to_the_hole)
{
	pid_t pid = tr_spawn(holder);
	struct dp_process p = tr_process(pid);
	static uint8_t buf[3 * 4096];
	dp_addr at = dp_addr_of((uint64_t)tr->value[0]);
	cr_assert_eq(dp_mem_read(&p, at, buf, sizeof(buf)), 2 * 4096); /* the second page is execute-only */
	for (size_t i = 0; i < 2 * 4096; i++)
		cr_assert_eq(buf[i], 0x5a);
	cr_assert_eq(dp_mem_read(&p, dp_addr_add(at, 2 * 4096), buf, 1), 0);
	tr_kill(pid);
}

Test(memory, text_is_written_where_the_target_cannot_write)
{
	pid_t pid = tr_spawn(holder);
	struct dp_process p = tr_process(pid);
	uint8_t want[13] = "thirteen byt", got[15];
	struct dp_freeze f;
	bool poke = true;
	dp_addr at = dp_addr_of((uint64_t)tr->value[0] + 4096 + 3);
	tr_tag(dp_mem_write(&p, at, want, sizeof(want)), DP_TAG_SYS);
	tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
	tr_ok(dp_mem_write_text(&p, pid, at, want, sizeof(want), &poke));
	cr_assert_not(poke);
	tr_tag(dp_mem_write_text(&p, pid, dp_addr_of((uint64_t)tr->value[0] + 2 * 4096), want, 4, NULL), DP_TAG_SYS);
	dp_thaw_all(&f);
	cr_assert_eq(dp_mem_read(&p, dp_addr_add(at, -1), got, sizeof(got)), sizeof(got));
	cr_assert_eq(memcmp(got + 1, want, sizeof(want)), 0);
	cr_assert(got[0] == 0x5a && got[14] == 0x5a, "neighbours changed");
	tr_kill(pid);
}

Test(memory, data_is_written_without_a_stop)
{
	pid_t pid = tr_spawn(holder);
	struct dp_process p = tr_process(pid);
	char got[6];
	tr_ok(dp_mem_write(&p, dp_addr_of((uint64_t)tr->value[0]), "hello", 6));
	cr_assert_eq(dp_mem_read(&p, dp_addr_of((uint64_t)tr->value[0]), got, 6), 6);
	cr_assert_str_eq(got, "hello");
	tr_kill(pid);
	tr_tag(dp_mem_write(&p, dp_addr_of((uint64_t)tr->value[0]), "hello", 6), DP_TAG_GONE);
}
