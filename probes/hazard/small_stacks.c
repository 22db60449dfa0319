/* SPDX-License-Identifier: MIT */
/*
 * Goroutines start with stacks of 2 KiB, and a function that did not ask for more has only some 800 bytes. A module is Go code if
 * it has the table with which Go's runtime unwinds.
 */
#include "probes/elf/gopclntab.h"
#include "probes/image/module.h"
#include "probes/hazard/hazard.h"

#define G_BYTES 8u

bool dp_module_small_stacks(struct dp_module *m)
{
	struct dp_span span;
	return m->elf && dp_gopclntab_find(m->elf, &span);
}

/* The linker puts an executable's thread-local memory directly below the thread control block; Go's part of it is one word. */
bool dp_module_finds_goroutines(struct dp_module *m)
{
	const Elf64_Phdr *tls = m->elf ? dp_elf_phdr(m->elf, PT_TLS) : NULL;
	return m->elf && (!tls || tls->p_memsz == G_BYTES);
}
