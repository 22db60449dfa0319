/* SPDX-License-Identifier: MIT */
/*
 * Stubs that call foreign code (LTTng's, malloc at a thread's start) leave a return address on the stack while their thread is
 * elsewhere. Such an address is only a suspicion, because stale words of finished calls remain where nothing overwrites them. So
 * if one is found, the thread's frames decide; if they cannot be followed, it counts.
 *
 * Which stubs call foreign code? Those of requests with a hook (dp_plan.calls_out), and with a sink, all. A wrong "no" would
 * unmap a stub under a thread that returns into it. So "no" requires the two reasons for which an ordinary probe's stub leaves
 * nothing behind: a displaced call pushes the program's own return address, and a call goes to the agent, so the pc is in the
 * agent's text meanwhile. An evicted neighbour's stub is its displaced instructions and a jump back, and calls nothing; the entry
 * of a function whose calls are timed calls the agent. Like hooks, neither is a user's probe (DP_NO_PROBE); the difference is
 * recorded where the stub's code is generated. In the site table, "no hook" has a bit (DP_SITE_NO_HOOK): sites of a tool that did
 * not know the bit count as hooks.
 *
 * A faster check also works for threads whose frames cannot be followed (a JIT's): a thread records that it is in a hit, or being
 * primed, from after it enters the sink's code until just before it leaves it.
 *
 * On a small stack, a hit runs on a stack that the sink gives its thread (agent/lttng/hit.S). A word on that stack points back to
 * the block that contains it, which is page-aligned; this address counts as a suspicion too, but only with a sink: most stacks
 * have such words forever.
 */
#include "injector/patch/quiesce/quiesce_frames.h"

#include "agent/lttng/layout.h"
#include "agent/sink.h"
#include "injector/lttng/safe/safe_unwind.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define BLOCK_MOST (UINT64_C(1) << 18) /* size of a thread's block with its stack */

struct dp_quiesce_frames {
	char *maps;
	struct dp_image *image;
	struct dp_ranges ranges;
	struct dp_unwinder *unwinder;
	uint64_t sink_code, sink_code_end;
	uint64_t block; /* see struct dp_sink */
	uint64_t loader, loader_end;
};

struct dp_quiesce_frames *dp_frames_destroy(struct dp_quiesce_frames *f)
{
	if (!f)
		return NULL;
	dp_unwinder_destroy(f->unwinder);
	dp_ranges_fini(&f->ranges);
	dp_image_destroy(f->image);
	free(f->maps);
	free(f);
	return NULL;
}

/* Bans our code instead of code that takes locks, so that the unwinder searches the frames for it. */
static bool ban_stubs(struct dp_ranges *r, const struct dp_installation *in)
{
	struct dp_ban *ban = calloc(in->nregions + 1, sizeof(*ban));
	if (!ban)
		return false;
	free(r->ban);
	r->ban = ban;
	r->nban = 0;
	for (uint64_t from = 0;;) {
		const struct dp_region *next = NULL;
		for (size_t i = 0; i < in->nregions; i++) {
			const struct dp_region *at = &in->region[i];
			if (at->mapped && (at->prot & PROT_EXEC) && at->addr >= from && (!next || at->addr < next->addr))
				next = at;
		}
		if (!next)
			break;
		ban[r->nban++] = (struct dp_ban){next->addr, next->addr + next->size, "a probe"};
		from = next->addr + next->size;
	}
	r->low = r->nban ? ban[0].start : 0;
	r->high = r->nban ? ban[r->nban - 1].end : 0;
	return true;
}

static void find_sink(struct dp_target *t, const struct dp_installation *in, struct dp_quiesce_frames *f)
{
	struct dp_sink sink;
	if (!in->sink || dp_mem_read(&t->process, dp_addr_of(in->sink), &sink, sizeof(sink)) != sizeof(sink))
		return;
	f->block = sink.block;
	f->loader = sink.text;
	f->loader_end = sink.text + sink.text_size;
	const struct dp_map *m = dp_image_map_at(f->image, dp_addr_of(sink.enter));
	if (!m || !m->exec)
		return;
	f->sink_code = m->start.v;
	f->sink_code_end = m->end.v;
}

/* Uses a current image: the sink came after the target was opened. */
static struct dp_error *fill(struct dp_target *t, const struct dp_installation *in, struct dp_quiesce_frames *f)
{
	char root[32];
	snprintf(root, sizeof(root), "/proc/%d/root", t->process.alive);
	DP_TRY(dp_process_maps(&t->process, &f->maps));
	DP_TRY(dp_image_create(f->maps, root, t->process.alive, &f->image));
	DP_TRY(dp_ranges_of_code(f->image, &f->ranges));
	find_sink(t, in, f);
	if (ban_stubs(&f->ranges, in))
		f->unwinder = dp_unwinder_create(&f->ranges);
	if (f->unwinder)
		dp_unwinder_begins_at(f->unwinder, f->loader, f->loader_end);
	return NULL;
}

struct dp_quiesce_frames *dp_frames_create(struct dp_target *t, const struct dp_installation *in)
{
	struct dp_quiesce_frames *f = calloc(1, sizeof(*f));
	struct dp_error *err = f ? fill(t, in, f) : NULL;
	if (!err)
		return f;
	dp_target_log(t, "stacks will be judged word by word: %s", err->message);
	dp_error_destroy(err);
	return dp_frames_destroy(f);
}

void dp_frames_need(struct dp_target *t, struct dp_installation *in)
{
	if (!in->frames)
		in->frames = dp_frames_create(t, in);
}

bool dp_frames_suspect(const struct dp_installation *in, uint64_t word, uint64_t rsp)
{
	return dp_installation_holds(in, word) || (in->sink && word && word % DP_PAGE == 0 && rsp - word < BLOCK_MOST);
}

bool dp_frames_in_sink(const struct dp_quiesce_frames *f, uint64_t pc)
{
	return f && pc >= f->sink_code && pc < f->sink_code_end;
}

static bool read_word(const struct dp_process *p, uint64_t at, uint64_t *ret)
{
	return dp_mem_read(p, dp_addr_of(at), ret, sizeof(*ret)) == sizeof(*ret);
}

/* The program may have changed the thread pointer. A valid one points to a pointer to itself (psABI, TLS variant II). */
bool dp_frames_no_hit(const struct dp_quiesce_frames *f, const struct dp_process *p, const struct dp_held *h)
{
	const uint64_t tp = h->regs.fs_base;
	uint64_t self, block, busy, thread;
	if (!f || !f->block || dp_frames_in_sink(f, h->regs.rip) || !read_word(p, tp, &self) || self != tp ||
	    !read_word(p, tp + f->block, &block))
		return false;
	if (!block)
		return true;
	if (!read_word(p, block + DP_BLOCK_BUSY, &busy) || !read_word(p, block + DP_BLOCK_THREAD, &thread))
		return false;
	return busy == DP_SINK_GUEST ? !thread : !busy && thread == tp;
}

bool dp_frames_clear(const struct dp_quiesce_frames *f, const struct dp_held *h, char why[128])
{
	if (f && dp_unwinder_judge(f->unwinder, h, why) == DP_UNWOUND_SAFE)
		return true;
	snprintf(why, 128, "thread %d may return into a probe", h->tid);
	return false;
}

/* A frame that a handler will return by is one of the thread's call frames. */
bool dp_frames_left_over(const struct dp_quiesce_frames *f, const struct dp_held *h)
{
	char why[128];
	return f && dp_unwinder_judge(f->unwinder, h, why) == DP_UNWOUND_SAFE && !dp_unwinder_met_signal(f->unwinder);
}
