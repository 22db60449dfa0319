/* SPDX-License-Identifier: MIT */
/*
 * Goroutines start with stacks of 2 KiB, and only some 800 bytes are promised to a function that has not asked for more. Every Go
 * program carries the table that its runtime unwinds by.
 */
#include "probes/image/function/gopclntab.h"
#include "probes/image/module.h"
#include "probes/probes.h"

bool dp_module_small_stacks(struct dp_module *m)
{
	struct dp_span span;
	return m->elf && dp_gopclntab_find(m->elf, &span);
}
