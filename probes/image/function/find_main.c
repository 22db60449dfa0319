/* SPDX-License-Identifier: MIT */
/*
 * A stripped program has no symbol for main, but its start code passes main to the C library as the first argument:
 *
 *     glibc   _start:   lea main(%rip),%rdi | mov $main,%rdi | mov main@GOT(%rip),%rdi ; call __libc_start_main
 *     musl    _start:   mov %rsp,%rdi ; lea _DYNAMIC(%rip),%rsi ; and $-16,%rsp ; call _start_c
 *             _start_c: lea main(%rip),%rdi | mov $main,%edi | ... ; jmp or call __libc_start_main
 *
 * These few forms are matched as bytes. The loaded value must be in the program's text, and a call or jump must follow.
 */
#include "probes/elf/relocations.h"
#include "probes/image/module.h"

#include <string.h>

#define WINDOW 96 /* bytes of start code to search */

static int32_t rel32(const uint8_t *p)
{
	int32_t value;
	memcpy(&value, p, sizeof(value));
	return value;
}

/* True if the instruction at `at` loads rdi in one of the known forms; `value` is what it loads. */
static bool loads_rdi(const struct dp_elf *elf, const struct dp_span *code, size_t at, uint64_t *value)
{
	const uint8_t *p = code->bytes + at;
	uint64_t next = code->vaddr + at + 7;
	if (code->size - at < 7)
		return false;
	if (p[0] == 0x48 && p[1] == 0x8d && p[2] == 0x3d)
		*value = next + (uint64_t)(int64_t)rel32(p + 3);
	else if (p[0] == 0x48 && p[1] == 0xc7 && p[2] == 0xc7)
		*value = (uint64_t)(int64_t)rel32(p + 3);
	else if (p[0] == 0x48 && p[1] == 0x8b && p[2] == 0x3d)
		return dp_elf_pointer(elf, next + (uint64_t)(int64_t)rel32(p + 3), value);
	else if (p[0] == 0xbf)
		*value = (uint32_t)rel32(p + 1);
	else
		return false;
	return true;
}

/* A call or jmp, direct or through the GOT. */
static bool leaves(const struct dp_span *code, size_t at)
{
	const uint8_t *p = code->bytes + at;
	if (code->size - at < 5)
		return false;
	return p[0] == 0xe8 || p[0] == 0xe9 || (p[0] == 0xff && (p[1] == 0x15 || p[1] == 0x25));
}

static bool scan(const struct dp_elf *elf, uint64_t from, uint64_t *ret)
{
	struct dp_span code;
	if (!dp_elf_executable(elf, from) || !dp_elf_at(elf, from, &code))
		return false;
	size_t end = code.size < WINDOW ? code.size : WINDOW;
	for (size_t i = 0; i < end; i++) {
		uint64_t value;
		if (!loads_rdi(elf, &code, i, &value) || value == from || !dp_elf_executable(elf, value))
			continue;
		for (size_t j = i + 5; j < end; j++)
			if (leaves(&code, j)) {
				*ret = value;
				return true;
			}
	}
	return false;
}

/* musl's _start calls _start_c with the stack pointer. Finds where it calls to. */
static bool start_c(const struct dp_elf *elf, uint64_t from, uint64_t *ret)
{
	struct dp_span code;
	bool passes_stack = false;
	if (!dp_elf_executable(elf, from) || !dp_elf_at(elf, from, &code))
		return false;
	size_t end = code.size < WINDOW ? code.size : WINDOW;
	for (size_t i = 0; i + 5 <= end; i++) {
		const uint8_t *p = code.bytes + i;
		passes_stack |= p[0] == 0x48 && p[1] == 0x89 && p[2] == 0xe7;
		if (!passes_stack || p[0] != 0xe8)
			continue;
		*ret = code.vaddr + i + 5 + (uint64_t)(int64_t)rel32(p + 1);
		if (dp_elf_executable(elf, *ret))
			return true;
	}
	return false;
}

struct dp_error *dp_module_find_main(struct dp_module *m, uint64_t *vaddr)
{
	uint64_t next;
	if (!m->elf)
		return dp_module_failure(m);
	uint64_t entry = m->elf->ehdr.e_entry;
	if (!m->parsed->hidden_main_known)
		scan(m->elf, start_c(m->elf, entry, &next) ? next : entry, &m->parsed->hidden_main);
	m->parsed->hidden_main_known = true;
	if (m->parsed->hidden_main) {
		*vaddr = m->parsed->hidden_main;
		return NULL;
	}
	return dp_error(DP_TAG_NO_MAIN,
	                "'%s' has no symbol for main, and the code at its entry point 0x%llx does not pass main in a known way; "
	                "give main's address, or install the program's debug symbols",
	                m->path, (unsigned long long)entry);
}
