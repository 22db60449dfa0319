/* SPDX-License-Identifier: MIT */
/* A second unwinder to compare with: elfutils reads the CFI, and a small evaluator computes the DWARF expressions. */
#ifndef DP_TESTS_HELPER_CFI_ORACLE_H
#define DP_TESTS_HELPER_CFI_ORACLE_H

#include "agent/abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct oracle;

/* For `pid`, a fork of this process, so modules are mapped as they are here. */
struct oracle *oracle_create(pid_t pid);
struct oracle *oracle_destroy(struct oracle *o);
/* Returns the number of frames. `*whole`: the last one is the end of the stack; otherwise CFI does not know its caller. */
size_t oracle_walk(struct oracle *o, const struct dp_regs *regs, uint64_t *pcs, size_t limit, bool *whole);

#endif
