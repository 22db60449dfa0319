/* SPDX-License-Identifier: MIT */
/* The access of a thread's instruction: reads its bytes, and operands in memory. */
#include "pmodules/fault/fault.h"

enum { INSN_MAX = 15 };

/* The program's original code: memory may have a probe's jump there. */
size_t dp_fault_code(struct dp_debug_ctx *w, uint64_t addr, uint8_t *bytes, size_t size)
{
	struct dp_module *m = dp_image_module_at(dp_debug_ctx_image(w), dp_addr_of(addr));
	size_t n = size;
	struct dp_error *err = m ? dp_module_text(m, dp_addr_of(addr), bytes, &n) : NULL;
	const bool of_file = m && !err && n;
	dp_error_destroy(err);
	return of_file ? n : dp_debug_ctx_read(w, addr, bytes, size, NULL);
}

static void follow(struct dp_debug_ctx *w, struct dp_access *a)
{
	uint64_t value = 0;
	if (a->divides && !a->value_known && a->is_known && a->size <= sizeof(value)) {
		a->value_known = dp_debug_ctx_get(w, a->address, &value, a->size, NULL);
		a->value = value;
	}
	if (a->branch != DP_BRANCH_MEMORY)
		return;
	a->branch = dp_debug_ctx_get(w, a->target, &value, sizeof(value), NULL) ? DP_BRANCH_VALUE : DP_BRANCH_NONE;
	a->target = value;
}

void dp_access_of(struct dp_debug_ctx *w, const struct user_regs_struct *regs, const struct dp_snap_siginfo *info,
                  struct dp_access *ret)
{
	uint8_t bytes[INSN_MAX];
	const size_t got = dp_fault_code(w, regs->rip, bytes, sizeof(bytes));
	*ret = (struct dp_access){0};
	if (!got)
		return;
	dp_access_decode(&(struct dp_access_ask){bytes, got, regs, info->has_address, info->address}, ret);
	follow(w, ret);
}
