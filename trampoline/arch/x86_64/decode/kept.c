/* SPDX-License-Identifier: MIT */
/*
 * Protected code that can only be recognised by its bytes, and that must not be probed. All of it is hand-written assembly: the
 * bytes are the same in every build.
 *
 *   Signal restorers    Signal handlers return to them, and they call rt_sigreturn. libgcc, libunwind and gdb compare the bytes
 *                       at a return address with this form to recognise a signal frame; the C libraries and Go's runtime keep it.
 *   Cancellable calls   glibc from 2.41 on (__syscall_cancel_arch) and musl (__syscall_cp_asm). From the check of the flag to the
 *                       syscall, inclusive, SIGCANCEL's handler sees by the pc that the call has not happened yet, and ends the
 *                       thread. With the pc in a stub the thread would wait for ever. The range ends after the syscall.
 *   Ends of threads     musl's __unmapself unmaps its own stack and exits. Go's runtime.exitThread releases its stack to other
 *                       threads, and exits. A stub in between would push to an unmapped or foreign stack.
 */
#include "trampoline/trampoline.h"

#include <string.h>

#define RESTORER "signal handlers return to it, and unwinders recognise it by its bytes"
#define THREAD   "threads end there, without a stack"
#define CANCEL   "thread cancellation relies on its addresses"
#define MOST     35u
#define SYSCALL  2u /* length of the instruction with which every form ends */

static const struct form {
	const char *why;
	bool cancel;
	uint8_t from, n; /* protected are the bytes [from, n) */
	uint8_t bytes[MOST];
} forms[] = {
        /* mov $15,%rax; syscall */
        {RESTORER, false, 0, 9, {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05}},
        /* mov $15,%eax; syscall */
        {RESTORER, false, 0, 7, {0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05}},
        /* mov $11,%eax; then the protected part: syscall; xor %rdi,%rdi; mov $60,%eax; syscall */
        {THREAD, false, 5, 17, {0xb8, 0x0b, 0, 0, 0, 0x0f, 0x05, 0x48, 0x31, 0xff, 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05}},
        /* movl $0,(%rax); mov $0,%edi, or xor %edi,%edi; mov $60,%eax; syscall */
        {THREAD, false, 0, 18, {0xc7, 0x00, 0, 0, 0, 0, 0xbf, 0, 0, 0, 0, 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05}},
        {THREAD, false, 0, 15, {0xc7, 0x00, 0, 0, 0, 0, 0x31, 0xff, 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05}},
        /* mov %rdi,%r11; %rsi,%rax; %rdx,%rdi; %rcx,%rsi; %r8,%rdx; %r9,%r10; 8(%rsp),%r8; 16(%rsp),%r9; %r11,8(%rsp); syscall */
        {CANCEL, true, 0, 35, {0x49, 0x89, 0xfb, 0x48, 0x89, 0xf0, 0x48, 0x89, 0xd7, 0x48, 0x89, 0xce,
                               0x4c, 0x89, 0xc2, 0x4d, 0x89, 0xca, 0x4c, 0x8b, 0x44, 0x24, 0x08, 0x4c,
                               0x8b, 0x4c, 0x24, 0x10, 0x4c, 0x89, 0x5c, 0x24, 0x08, 0x0f, 0x05}},
};

/* Compares 64 bytes at a time: this reads all code of a module before its first probe. */
const uint8_t *dp_find_syscall(const uint8_t *at, const uint8_t *end)
{
	typedef uint8_t vector __attribute__((vector_size(16), aligned(1), may_alias));
	typedef uint64_t words __attribute__((vector_size(16)));
	const vector first = {0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f};
	const vector second = first - 0x0a;
	for (; end - at > 64; at += 64) {
		words found = {0, 0};
		for (unsigned k = 0; k < 64; k += 16)
			found |= (words)((*(const vector *)(at + k) == first) & (*(const vector *)(at + k + 1) == second));
		if (found[0] | found[1])
			break;
	}
	for (; end - at >= 2; at++)
		if (at[0] == 0x0f && at[1] == 0x05)
			return at;
	return NULL;
}

/*
 * The check of the flag before a cancellable call: mov (%rdi),%eax; then a test of it or of (%rdi), and a jump, which differ
 * between the libraries: 4 to 9 bytes. Returns its length; 0 if it is not there.
 */
static uint8_t look_in_front(const uint8_t *at, size_t room)
{
	for (uint8_t n = 11; n >= 6; n--)
		if (n <= room && at[-n] == 0x8b && at[-n + 1] == 0x07)
			return n;
	return 0;
}

static bool ends_at(const struct form *f, const struct dp_segment *s, size_t end)
{
	return end >= f->n && !memcmp(s->bytes + end - f->n, f->bytes, f->n);
}

static size_t find_in(const struct dp_segment *s, struct dp_protected *ret, size_t most)
{
	size_t n = 0;
	for (const uint8_t *at = s->bytes; (at = dp_find_syscall(at, s->bytes + s->n)); at++)
		for (size_t k = 0; k < sizeof(forms) / sizeof(*forms) && n < most; k++) {
			const struct form *f = &forms[k];
			const size_t end = (size_t)(at - s->bytes) + SYSCALL;
			if (!ends_at(f, s, end))
				continue;
			const uint8_t front = f->cancel ? look_in_front(at + SYSCALL - f->n, end - f->n) : 0;
			const uint8_t size = (uint8_t)(f->n - f->from + front);
			ret[n++] = (struct dp_protected){s->addr + end - size, size, f->why};
		}
	return n;
}

size_t dp_text_find_protected(const struct dp_text *text, struct dp_protected *ret, size_t most)
{
	size_t n = 0;
	for (size_t i = 0; i < text->nsegments; i++)
		if (text->segment[i].exec)
			n += find_in(&text->segment[i], ret + n, most - n);
	return n;
}

const struct dp_protected *dp_text_protected(const struct dp_text *text, uint64_t addr, size_t n)
{
	for (size_t i = 0; i < text->nkeep; i++)
		if (text->keep[i].size && addr < text->keep[i].start + text->keep[i].size && text->keep[i].start < addr + n)
			return &text->keep[i];
	return NULL;
}
