/* SPDX-License-Identifier: MIT */
/*
 * Goroutines start with stacks of 2 KiB, and a function that did not ask for more has only some 800 bytes. A module is Go code if
 * it has the table with which Go's runtime unwinds.
 */
#include "probes/elf/gopclntab.h"
#include "probes/image/module.h"
#include "probes/hazard/hazard.h"

bool dp_module_small_stacks(struct dp_module *m)
{
	struct dp_span span;
	return m->elf && dp_gopclntab_find(m->elf, &span);
}
