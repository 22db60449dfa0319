/* SPDX-License-Identifier: MIT */
/* Locations that DWARF leaves to the ABI: registers, thread-local storage, the end of the stack. */
#include "probes/expr/scope/scope_internal.h"
#include "probes/image/module.h"

struct dp_expr *dp_location_register(struct dp_scope *s, uint64_t number, unsigned size)
{
	static const uint8_t general[16] = {0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15};
	if (number < 16)
		return dp_build_reg(&s->arena, general[number]);
	if (number == 16)
		return dp_build_const(&s->arena, s->at.site.addr.v);
	if (number >= 17 && number < 33)
		return dp_build(&s->arena,
		                (struct dp_expr){.kind = DP_EXPR_XMM, .reg = (uint8_t)(number - 17), .size = size == 4 ? 4 : 8});
	return NULL;
}

/* gcc's split units have the symbol's address instead of the offset in the segment. */
static bool offset_of(const struct dp_scope *s, const Elf64_Phdr *tls, const struct dp_expr *e, uint64_t *ret)
{
	uint64_t v;
	if (!s->debug || !dp_build_is_const(e, &v))
		return false;
	const uint64_t guesses[] = {v, v - tls->p_vaddr, v - (uint64_t)s->debug->bias - tls->p_vaddr};
	for (size_t i = 0; i < sizeof(guesses) / sizeof(*guesses); i++)
		if (guesses[i] < tls->p_memsz) {
			*ret = guesses[i];
			return true;
		}
	return false;
}

/* The executable's thread-local storage ends at the thread pointer (variant II of the TLS ABI). */
struct dp_expr *dp_location_thread_local(struct dp_scope *s, const struct dp_expr *e, const char **absent)
{
	const struct dp_module *mod = s->at.site.module;
	const Elf64_Phdr *tls = NULL;
	uint64_t offset;
	for (size_t i = 0; mod && mod->elf && i < mod->elf->nphdr; i++)
		if (mod->elf->phdr[i].p_type == PT_TLS)
			tls = &mod->elf->phdr[i];
	if (!tls || !offset_of(s, tls, e, &offset))
		return NULL;
	if (!mod->executable) {
		*absent = "a library's thread-local variable";
		return dp_thread_local_of_library(s, tls->p_memsz, offset);
	}
	const uint64_t align = tls->p_align ? tls->p_align : 1, size = (tls->p_memsz + align - 1) / align * align;
	return dp_build_add(&s->arena, dp_build(&s->arena, (struct dp_expr){.kind = DP_EXPR_THREAD}), offset - size);
}

/* Below the red zone are the stub's own stack and old signal frames. */
bool dp_location_is_dead(const struct dp_expr *addr)
{
	enum { RSP = 4, RED_ZONE = 128 };
	uint64_t offset;
	return addr->kind == DP_EXPR_BINARY && addr->op == DP_OP_ADD && addr->a->kind == DP_EXPR_REG && addr->a->reg == RSP &&
	       dp_build_is_const(addr->b, &offset) && (int64_t)offset < -RED_ZONE;
}
