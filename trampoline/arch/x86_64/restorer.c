/* SPDX-License-Identifier: MIT */
/*
 * The signal restorer is two instructions long: a signal handler returns to it, and it calls rt_sigreturn. Nothing marks it but
 * its bytes. libgcc, libunwind and gdb compare them with those at a return address to know a signal frame, where there is no
 * unwind information or before they ask for it; the C libraries and Go's runtime keep to the form for their sake.
 */
#include "trampoline/trampoline.h"

#include <string.h>

static const struct {
	uint8_t n, bytes[9];
} forms[] = {
        {9, {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05}}, /* mov $15, %rax; syscall */
        {7, {0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05}},             /* mov $15, %eax; syscall */
};

static size_t find_in(const struct dp_segment *s, size_t form, struct dp_range *ret, size_t most)
{
	const uint8_t *at = s->bytes, *end = s->bytes + s->n;
	size_t n = 0;
	while (n < most && (at = memmem(at, (size_t)(end - at), forms[form].bytes, forms[form].n))) {
		ret[n++] = (struct dp_range){s->addr + (uint64_t)(at - s->bytes), forms[form].n};
		at += forms[form].n;
	}
	return n;
}

size_t dp_text_restorers(const struct dp_text *text, struct dp_range *ret, size_t most)
{
	size_t n = 0;
	for (size_t i = 0; i < text->nsegments; i++)
		for (size_t k = 0; text->segment[i].exec && k < sizeof(forms) / sizeof(*forms); k++)
			n += find_in(&text->segment[i], k, ret + n, most - n);
	return n;
}
