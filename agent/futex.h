/* SPDX-License-Identifier: MIT */
/* Waits for the tool, on words shared with it. */
#ifndef DP_AGENT_FUTEX_H
#define DP_AGENT_FUTEX_H

#include "agent/syscall.h"

#include <stdbool.h>

#define DP_FUTEX_WAIT        0 /* relative time */
#define DP_FUTEX_WAKE        1
#define DP_FUTEX_WAIT_BITSET 9 /* absolute time, CLOCK_MONOTONIC. Not private: the tool waits on these words too */
#define DP_EINTR             4
#define DP_EAGAIN            11
#define DP_ETIMEDOUT         110

struct dp_timespec {
	int64_t sec, nsec;
};

static inline int64_t dp_futex(uint32_t *word, uint64_t op, uint64_t value, const struct dp_timespec *end)
{
	int64_t ret;
	register uint64_t r10 __asm__("r10") = (uint64_t)(uintptr_t)end;
	register uint64_t r8 __asm__("r8") = 0;
	register uint64_t r9 __asm__("r9") = UINT32_MAX;

	__asm__ volatile("syscall"
	                 : "=a"(ret)
	                 : "a"((int64_t)202), "D"(word), "S"(op), "d"(value), "r"(r10), "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
	return ret;
}

/* CLOCK_MONOTONIC. */
static inline struct dp_timespec dp_futex_now(void)
{
	struct dp_timespec now = {0, 0};

	dp_syscall4(228, 1, (uint64_t)(uintptr_t)&now, 0, 0);
	return now;
}

/* Waits until the word is not `value`, or until `end`; false if `end` has passed. */
static inline bool dp_futex_wait(uint32_t *word, uint32_t value, const struct dp_timespec *end)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value) {
		const int64_t ret = dp_futex(word, DP_FUTEX_WAIT_BITSET, value, end);

		if (ret < 0 && ret != -DP_EINTR && ret != -DP_EAGAIN)
			return false;
	}
	return true;
}

#endif
