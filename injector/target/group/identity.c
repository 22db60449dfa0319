/* SPDX-License-Identifier: MIT */
/*
 * How a hit identifies its thread without a system call (decision 12).
 *
 * By the ABI, %fs:0 contains the address of the thread control block, and both glibc and musl keep the kernel's thread ID in it.
 * Its offset depends on library and version, so it is searched for: the offset at which the word equals the thread ID in every
 * visible thread. If a block does not look like that, or two threads share one (raw clone), each hit calls gettid() instead.
 */
#include "injector/target/group/group.h"
#include "injector/tracee/proc/proc.h"

#include "base/cleanup.h"
#include "probes/probes.h"

#include <stdlib.h>
#include <string.h>

#define TCB_BYTES 4096u
#define GLIBC_TID 0x2d0u /* struct pthread, glibc 2.3 to 2.41 */
#define MUSL_TID  0x30u
#define ROUNDS    16

struct block {
	pid_t tid;
	uint64_t fs;
	uint8_t bytes[TCB_BYTES];
	size_t n;
};

static bool word_is_tid(const struct block *b, uint32_t offset)
{
	int32_t word;
	if (offset + sizeof(word) > b->n)
		return false;
	memcpy(&word, b->bytes + offset, sizeof(word));
	return word == b->tid;
}

static bool read_block(const struct dp_target *t, pid_t tid, uint64_t fs, struct block *ret)
{
	uint64_t self;
	ret->tid = tid;
	ret->fs = fs;
	ret->n = fs ? dp_mem_read(&t->process, dp_addr_of(fs), ret->bytes, TCB_BYTES) : 0;
	if (ret->n < sizeof(self))
		return false;
	memcpy(&self, ret->bytes, sizeof(self));
	return self == fs;
}

/* Known offsets first: in a single-threaded program other words of the block may equal the tid by chance. */
static bool find_offset(const struct block *b, uint32_t *ret)
{
	static const uint32_t usual[] = {GLIBC_TID, MUSL_TID};
	for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
		if (word_is_tid(b, usual[i])) {
			*ret = usual[i];
			return true;
		}
	for (uint32_t at = sizeof(uint64_t); at < b->n; at += 4)
		if (word_is_tid(b, at)) {
			*ret = at;
			return true;
		}
	return false;
}

struct base { /* of fs */
	uint64_t fs;
	pid_t tid;
};

static int compare_bases(const void *a, const void *b)
{
	const struct base *x = a, *y = b;
	return (x->fs > y->fs) - (x->fs < y->fs);
}

static bool lives(const struct dp_target *t, pid_t tid)
{
	struct dp_task_stat stat;
	return dp_proc_stat(t->process.pid, tid, &stat) && stat.state != 'Z' && stat.state != 'X';
}

/* Do two living threads have the same fs base? Sorts the array. The block of a dead thread may have been reused. */
static bool has_equal(const struct dp_target *t, struct base *base, size_t n)
{
	bool equal = false;
	if (n)
		qsort(base, n, sizeof(*base), compare_bases);
	for (size_t i = 1; i < n && !equal; i++)
		equal = base[i].fs == base[i - 1].fs && lives(t, base[i].tid) && lives(t, base[i - 1].tid);
	return equal;
}

/* Also true if that is unknown. */
static bool same_block_twice(const struct dp_target *t, const struct dp_freeze *f, bool none_counts)
{
	dp_auto_free struct base *base = malloc((f->n + 1) * sizeof(*base));
	size_t n = 0;
	for (size_t i = 0; base && i < f->n; i++)
		if (none_counts || f->thread[i].regs.fs_base)
			base[n++] = (struct base){f->thread[i].regs.fs_base, f->thread[i].tid};
	return !base || has_equal(t, base, n);
}

static pid_t ns_tid(const struct dp_held *h)
{
	return h->ns_tid ? h->ns_tid : h->tid;
}

bool dp_identity_holds(const struct dp_target *t, const struct dp_freeze *f, enum dp_identity identity, uint32_t tid_offset)
{
	if (identity == DP_ID_TID)
		return true;
	for (size_t i = 0; i < f->n; i++) {
		uint64_t fs = f->thread[i].regs.fs_base, self = 0;
		int32_t tid = 0;
		if (dp_mem_read(&t->process, dp_addr_of(fs), &self, sizeof(self)) != sizeof(self) || self != fs)
			return false;
		if (dp_mem_read(&t->process, dp_addr_of(fs + tid_offset), &tid, sizeof(tid)) != sizeof(tid) ||
		    tid != ns_tid(&f->thread[i]))
			return false;
	}
	return !same_block_twice(t, f, true);
}

/* ld.so starts it, and makes a control block for its first thread; but its own runtime then uses another one (Go, as a PIE). */
static bool has_own_runtime(const struct dp_target *t)
{
	return dp_image_nmodules(t->image) && dp_module_needs_none(dp_image_module(t->image, 0));
}

static void choose(struct dp_target *t, const struct dp_freeze *f, enum dp_identity *identity, uint32_t *offset)
{
	struct block first;
	bool fits = f->n && !has_own_runtime(t) && read_block(t, ns_tid(&f->thread[0]), f->thread[0].regs.fs_base, &first) &&
	            find_offset(&first, offset) && dp_identity_holds(t, f, DP_ID_SELF, *offset);
	*identity = fits ? DP_ID_SELF : DP_ID_TID;
	t->bases_differ = !same_block_twice(t, f, false);
}

/* Not while threads are held: the reader of our output may be one of them. */
static void tell(const struct dp_target *t, enum dp_identity identity)
{
	dp_target_log(t, "hits identify their thread by %s", identity == DP_ID_SELF ? "its control block" : "gettid (slower)");
}

/* Takes the choice of an agent that is already installed in the process. */
static bool known(const struct dp_target *t, enum dp_identity *identity, uint32_t *tid_offset)
{
	for (size_t i = 0; i < t->nstanding; i++) {
		struct dp_agent agent;
		const struct dp_installation *in = &t->resident[i]->in;
		if (t->resident[i]->unmapped || !in->live ||
		    dp_mem_read(&t->process, dp_addr_of(in->private.addr), &agent, DP_AGENT_TABLE) != DP_AGENT_TABLE ||
		    agent.live != DP_LIVE || agent.identity > DP_ID_TID)
			continue;
		*identity = (enum dp_identity)agent.identity;
		*tid_offset = agent.tid_offset;
		return true;
	}
	return false;
}

struct one_by_one {
	const struct dp_target *t;
	struct base *base; /* of the threads seen so far: no two may share a block */
	size_t n, cap;
	uint32_t offset;
	bool any, fits, lost; /* lost: out of memory for one */
};

static bool remember(struct one_by_one *o, const struct dp_held *h)
{
	if (o->n == o->cap) {
		const size_t cap = o->cap ? 2 * o->cap : 32;
		struct base *grown = realloc(o->base, cap * sizeof(*grown));
		if (!grown)
			return false;
		o->base = grown;
		o->cap = cap;
	}
	o->base[o->n++] = (struct base){h->regs.fs_base, h->tid};
	return true;
}

static bool look(struct dp_freeze *one, void *data)
{
	struct one_by_one *o = data;
	struct block b;
	if (!o->any)
		o->fits =
		        read_block(o->t, ns_tid(&one->thread[0]), one->thread[0].regs.fs_base, &b) && find_offset(&b, &o->offset);
	o->any = true;
	o->fits = o->fits && dp_identity_holds(o->t, one, DP_ID_SELF, o->offset);
	o->lost |= one->thread[0].regs.fs_base && !remember(o, &one->thread[0]);
	return true;
}

static struct dp_error *find_one_by_one(struct dp_target *t, enum dp_identity *identity, uint32_t *tid_offset)
{
	struct one_by_one o = {.t = t};
	struct dp_for_each_stopped each = {0};
	struct dp_error *err = NULL;
	bool ignored;
	/* Threads that start meanwhile need no check, as those that start later: one of these made them. */
	for (int round = 0; !err && !each.met_all && round < ROUNDS; round++)
		err = dp_for_each_stopped_round(t, &each, look, &o, &ignored);
	const bool differ = each.met_all && o.any && !o.lost && !has_equal(t, o.base, o.n);
	*identity = differ && o.fits && !has_own_runtime(t) ? DP_ID_SELF : DP_ID_TID;
	t->bases_differ = differ;
	*tid_offset = *identity == DP_ID_SELF ? o.offset : 0;
	dp_for_each_stopped_fini(&each);
	free(o.base);
	return err;
}

struct dp_error *dp_identity_find(struct dp_target *t, enum dp_identity *identity, uint32_t *tid_offset)
{
	*tid_offset = 0;
	t->bases_differ = false;
	if (t->launch) {
		/* A static program stops before its thread control block exists. */
		*identity = DP_ID_TID;
		t->bases_differ = true;
		if (!dp_launch_is_static(t->launch))
			choose(t, dp_launch_freeze(t->launch), identity, tid_offset);
		return NULL;
	}
	if (known(t, identity, tid_offset))
		return NULL;
	if (!dp_not_live(t)) {
		struct dp_error *live_err = find_one_by_one(t, identity, tid_offset);
		tell(t, *identity);
		return live_err;
	}
	struct dp_freeze f = {0};
	struct dp_priority priority;
	dp_priority_raise(&priority);
	struct dp_error *err = dp_freeze_with_retry(t, &f);
	if (!err) {
		choose(t, &f, identity, tid_offset);
		dp_thaw_all(&f);
	}
	dp_priority_restore(&priority);
	tell(t, *identity);
	return err;
}
