/* SPDX-License-Identifier: MIT */
/* What a seccomp filter would answer to a system call of which only a part is known. Private to the ptrace half of injector/. */
#ifndef DP_INJECTOR_TRACEE_PROC_FILTER_BPF_H
#define DP_INJECTOR_TRACEE_PROC_FILTER_BPF_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dp_bpf_call {
	bool any; /* any system call: `nr` is not known either */
	uint32_t nr;
	unsigned known; /* bit i: arg[i] is known */
	uint64_t arg[6];
};

/* The answer depends on what is not known, or the program is not one that seccomp takes. No action has this value. */
#define DP_BPF_UNSURE UINT32_C(0xffffffff)

/*
 * The most severe of all answers that the filter can give to such a call of an x86-64 program, with its data (SECCOMP_RET_*).
 * DP_BPF_UNSURE counts as the most severe one.
 */
uint32_t dp_bpf_worst(const struct sock_filter *filter, size_t n, const struct dp_bpf_call *call);
/* The more severe of two answers, in the kernel's order (seccomp(2)). */
uint32_t dp_bpf_worse(uint32_t a, uint32_t b);

#endif
