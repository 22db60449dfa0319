/* SPDX-License-Identifier: MIT */
/*
 * Decides whether a thread is at a safe point, where it can call a C function for us.
 *
 * It is, unless it may hold a lock that the function needs. It may hold one only while a function that takes such a lock is
 * active: while an address in that function is on its stack as a return address, or as the pc that a signal interrupted.
 * safe_ranges.c says which functions those are.
 */
#include "injector/lttng/safe/safe.h"

#include "injector/lttng/safe/safe_ranges.h"
#include "injector/lttng/safe/safe_unwind.h"
#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/proc/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define STACK_LIMIT  (UINT64_C(8) << 20)
#define USER_CS      0x33
#define FLAGS_ALWAYS 0x2u
#define FLAGS_NEVER  (~UINT64_C(0x3f7fd7))
#define TCB_SELF     0x10u
#define TCB_TID      0x2d0u /* struct pthread of glibc */

struct dp_safe {
	struct dp_image *image;
	struct dp_ranges ranges;
	struct dp_unwinder *unwinder;
};

struct dp_safe *dp_safe_destroy(struct dp_safe *s)
{
	if (!s)
		return NULL;
	dp_unwinder_destroy(s->unwinder);
	dp_ranges_fini(&s->ranges);
	free(s);
	return NULL;
}

struct dp_error *dp_safe_create(struct dp_image *image, uint64_t own, uint64_t own_size, struct dp_safe **ret)
{
	struct dp_safe *s = calloc(1, sizeof(*s));
	if (!s)
		return dp_error_nomem();
	s->image = image;
	struct dp_error *err = dp_ranges_create(image, own, own_size, &s->ranges);
	if (err) {
		dp_safe_destroy(s);
		return err;
	}
	s->unwinder = dp_unwinder_create(&s->ranges); /* without it, stacks are judged word by word */
	*ret = s;
	return NULL;
}

/* ---- word by word ---------------------------------------------------------------------------------------------------------- */

struct scan {
	struct dp_safe *s;
	const struct dp_process *p;
	char *why;
	uint64_t other; /* the other stack that a signal frame on this one refers to, or 0 */
};

static bool is_frame_shape(const uint64_t *word)
{
	return (word[2] & 0xffff) == USER_CS && (word[1] & FLAGS_ALWAYS) && !(word[1] & FLAGS_NEVER);
}

static bool bad_word(struct scan *c, const uint64_t *word, size_t left)
{
	const struct dp_ranges *r = &c->s->ranges;
	if (*word < r->low || *word >= r->high)
		return false;
	const struct dp_ban *ban = dp_ranges_ban(r, *word);
	if (!ban)
		return false;
	const struct dp_code *code = dp_ranges_code(r, *word);
	if (code && !dp_code_after_call(code, *word) && !(left >= 3 && is_frame_shape(word)))
		return false;
	snprintf(c->why, 128, "an address in %s (%#llx) is on its stack", ban->what, (unsigned long long)*word);
	return true;
}

static size_t read_stack(const struct dp_process *p, uint64_t at, void *buf, size_t n)
{
	const struct iovec local = {buf, n}, remote = {(void *)(uintptr_t)at, n};
	const ssize_t got = process_vm_readv(p->alive, &local, 1, &remote, 1, 0);
	return got > 0 ? (size_t)got : 0;
}

/* End of the stack around `rsp`: the thread's control block if it is in the same mapping, or the end of the mapping. */
static uint64_t stack_end(const struct dp_safe *s, uint64_t rsp, uint64_t fs)
{
	const struct dp_map *m = dp_image_map_at(s->image, dp_addr_of(rsp));
	const uint64_t end = m ? m->end.v : rsp + STACK_LIMIT;
	return fs > rsp && fs < end ? fs : end;
}

/* True if no bad word is between `rsp` and `end`. */
static bool scan_from(struct scan *c, uint64_t rsp, uint64_t end)
{
	static uint64_t words[16384];
	/* Words below rsp are dead, except in red zones of signal frames, which contain no return address. */
	uint64_t at = (rsp + 7) & ~UINT64_C(7);
	if (end - at > STACK_LIMIT) {
		snprintf(c->why, 128, "its stack is too deep");
		return false;
	}
	while (at < end) {
		const size_t want = end - at < sizeof(words) ? end - at : sizeof(words);
		const size_t n = read_stack(c->p, at, words, want) / sizeof(*words);
		for (size_t i = 0; i < n; i++) {
			if (bad_word(c, &words[i], n - i))
				return false;
			if (i && n - i >= 3 && is_frame_shape(&words[i]) && (words[i - 1] < rsp || words[i - 1] >= end))
				c->other = words[i - 1];
		}
		if (n * sizeof(*words) < want)
			break;
		if (want < sizeof(words))
			break;
		at += sizeof(words) - 4 * sizeof(*words);
	}
	return true;
}

static bool scan_stacks(struct dp_safe *s, const struct dp_process *p, const struct dp_held *h, char why[128])
{
	struct scan c = {.s = s, .p = p, .why = why};
	if (!scan_from(&c, h->regs.rsp, stack_end(s, h->regs.rsp, h->regs.fs_base)))
		return false;
	for (int i = 0; i < 4 && c.other; i++) {
		const uint64_t rsp = c.other;
		c.other = 0;
		if (!scan_from(&c, rsp, stack_end(s, rsp, h->regs.fs_base)))
			return false;
	}
	return true;
}

/* ---- the whole check ---------------------------------------------------------------------------------------------------- */

bool dp_safe_own_block(const struct dp_process *p, const struct dp_held *h)
{
	const uint64_t fs = h->regs.fs_base;
	uint64_t head[3] = {0};
	int32_t tid = 0;
	return fs && dp_mem_read(p, dp_addr_of(fs), head, sizeof(head)) == sizeof(head) && head[0] == fs &&
	       head[TCB_SELF / sizeof(*head)] == fs &&
	       dp_mem_read(p, dp_addr_of(fs + TCB_TID), &tid, sizeof(tid)) == sizeof(tid) && tid == h->ns_tid;
}

bool dp_safe_here(struct dp_safe *s, const struct dp_process *p, const struct dp_held *h, char why[128])
{
	const struct dp_ban *ban = dp_ranges_ban(&s->ranges, h->regs.rip);
	if (ban) {
		snprintf(why, 128, "it is in %s", ban->what);
		return false;
	}
	if (!dp_ranges_code(&s->ranges, h->regs.rip)) {
		const struct dp_map *m = dp_image_map_at(s->image, dp_addr_of(h->regs.rip));
		if (!m || !m->exec) { /* a library that was loaded after the image was read */
			snprintf(why, 128, "it is in code that was loaded just now");
			return false;
		}
	}
	if (!dp_safe_own_block(p, h)) {
		snprintf(why, 128, "it has no thread control block of its own");
		return false;
	}
	switch (dp_unwinder_judge(s->unwinder, h, why)) {
	case DP_UNWOUND_SAFE:
		return true;
	case DP_UNWOUND_UNSAFE:
		return false;
	default:
		return scan_stacks(s, p, h, why);
	}
}
