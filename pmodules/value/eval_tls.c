/* SPDX-License-Identifier: MIT */
/* The addresses of thread-locals. */
#include "agent/abi.h"
#include "pmodules/value/eval.h"
#include "probes/expr/scope/scope_internal.h"
#include "probes/image/image_internal.h"

static bool read_for(uint64_t addr, void *buf, size_t n, void *data)
{
	return dp_debug_ctx_get(data, addr, buf, n, NULL);
}

const char *dp_eval_tls(const struct dp_eval *e, uint64_t offset, uint64_t *ret)
{
	static const struct dp_regs none;
	const char *absent = "the address of its module's thread-local storage is not known";
	struct dp_debug_ctx *w = e->w;
	if (!w->fs_base || !e->module)
		return absent;
	struct dp_scope s = {.image = w->image, .debug = e->debug};
	s.at.site.module = e->module;
	s.at.site.addr = e->module->start;
	struct dp_expr *addr = dp_location_thread_local(&s, dp_build_const(&s.arena, offset), &absent);
	const struct dp_expr_env world = {.regs = &none, .thread = w->fs_base, .read = read_for, .data = w};
	const bool known = addr && dp_expr_eval_in(addr, &world, ret) && *ret > 4096 && *ret < UINT64_C(1) << 47;
	dp_arena_fini(&s.arena);
	return known ? NULL : absent;
}
