/* SPDX-License-Identifier: MIT */
/*
 * Thread cancellation: SIGCANCEL's handler compares the pc with two labels. Between them the system call was not made yet, and
 * the handler ends the thread (glibc from 2.41, sysdeps/nptl/cancellation-pc-check.h; musl, src/thread/pthread_cancel.c).
 */
#include "probes/image/module.h"
#include "probes/hazard/hazard.h"

#include <string.h>

#define LONGEST 4096u

static bool is_called(const struct dp_symbol *s, const char *name)
{
	return s->code && s->len == strlen(name) && !memcmp(s->name, name, s->len);
}

/* The lowest label above `from`; 0 if there is none. */
static uint64_t label(const struct dp_symbols *symbols, const char *name, uint64_t from)
{
	uint64_t lowest = 0;
	for (size_t i = 0; i < symbols->n; i++) {
		const struct dp_symbol *s = &symbols->symbol[i];
		if (s->value > from && (!lowest || s->value < lowest) && is_called(s, name))
			lowest = s->value;
	}
	return lowest;
}

bool dp_module_cancellation(struct dp_module *m, size_t i, dp_addr *start, uint64_t *size)
{
	static const char *const names[][2] = {
	        {"__syscall_cancel_arch_start", "__syscall_cancel_arch_end"},
	        {"__cp_begin", "__cp_end"},
	};
	if (!m->elf || i >= sizeof(names) / sizeof(*names))
		return false;
	const struct dp_symbols *symbols = dp_module_own_symbols(m);
	const uint64_t from = label(symbols, names[i][0], 0), end = from ? label(symbols, names[i][1], from) : 0;
	*start = dp_module_addr(m, from);
	*size = end && end - from <= LONGEST ? end - from : 0;
	return true;
}
