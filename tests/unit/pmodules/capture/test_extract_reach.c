/* SPDX-License-Identifier: MIT */
/* Prefetch reads everything that an extraction will read: each object here is alone on its page. */
#include "helper_stopped.h"
#include "pmodules/capture/extract_internal.h"
#include "pmodules/source/pages.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

enum { FANS = 100, PAGES_MAX = 4096 };
struct leaf {
	int number;
};
struct node {
	struct node *next, *prev;
	const char *name;
	struct leaf *leaf[2];
	union {
		struct leaf *either;
		long other;
	};
	struct {
		int fill;
		struct leaf **twice;
	} inner;
	char large[8192];
	struct leaf *last; /* on the third page of the node */
};
struct fan {
	struct leaf *leaf[FANS];
};
static struct stopped s;
static volatile int sink;

#ifdef __clang__
#define UNOPTIMIZED __attribute__((noinline, optnone))
#else
#define UNOPTIMIZED __attribute__((noinline, optimize("O0")))
#endif

static void *alone(size_t size)
{
	/* Adjacent pages would be read together. */
	char *p = mmap(NULL, size + 3 * DP_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p + DP_PAGE_BYTES;
}

static struct leaf *leaf(void)
{
	struct leaf *l = alone(sizeof(*l));
	l->number = 1;
	return l;
}

static struct node *node(void)
{
	struct node *n = alone(sizeof(*n));
	n->name = strcpy(alone(16), "a name");
	n->leaf[0] = leaf();
	n->leaf[1] = leaf();
	n->either = leaf();
	n->inner.twice = alone(sizeof(n->inner.twice));
	*n->inner.twice = leaf();
	n->last = leaf();
	return n;
}

UNOPTIMIZED static int stand(struct node *list, struct fan *fan)
{
	struct leaf *own[3] = {leaf(), NULL, leaf()};
	raise(SIGTRAP);
	sink = own[0]->number;
	return list->leaf[0]->number + fan->leaf[0]->number;
}

static void child(void)
{
	struct node *a = node();
	struct fan *fan = alone(sizeof(*fan));
	a->next = node();
	a->prev = a->next;
	a->next->next = a->next->prev = a;
	for (unsigned i = 0; i < FANS; i++)
		fan->leaf[i] = leaf();
	sink = stand(a, fan);
}

/* ---- a debug context that records reads --------------------------------------------------------------------------------- */

static uint64_t page[PAGES_MAX];
static size_t npages, nmissing;
static bool rehearsed;

static void note(uint64_t addr)
{
	for (size_t i = 0; i < npages; i++)
		if (page[i] == dp_page_of(addr))
			return;
	nmissing += rehearsed;
	cr_assert_lt(npages, PAGES_MAX);
	page[npages++] = dp_page_of(addr);
}

static size_t read_noted(uint64_t addr, void *buf, size_t n, bool *late, void *data)
{
	const struct iovec local = {buf, n}, remote = {(void *)(uintptr_t)addr, n};
	const ssize_t got = process_vm_readv(s.pid, &local, 1, &remote, 1, 0);
	(void)data;
	*late = false;
	for (uint64_t at = dp_page_of(addr); got > 0 && at < addr + (uint64_t)got; at += DP_PAGE_BYTES)
		note(at);
	return got < 0 ? 0 : (size_t)got;
}

static void rehearse(const struct dp_extract_options *options, struct dp_debug_ctx **world, struct dp_extract **x)
{
	stopped_run(&s, child, NULL);
	npages = nmissing = 0;
	rehearsed = false;
	cr_assert_null(dp_debug_ctx_create(s.image, read_noted, NULL, world));
	cr_assert_null(dp_extract_create(*world, options, x));
	dp_extract_rehearse(*x, &s.thread);
	rehearsed = true;
}

static void end(struct dp_debug_ctx *world, struct dp_extract *x)
{
	dp_extract_destroy(x);
	dp_debug_ctx_destroy(world);
	stopped_fini(&s);
}

Test(reach, nothing_is_read_in_the_moment_that_the_rehearsal_has_not_read)
{
	struct dp_debug_ctx *world;
	struct dp_extract *x;
	rehearse(NULL, &world, &x);
	const size_t before = npages;
	struct dp_snapshot *again = dp_snapshot_create();
	struct dp_snap_thread *t = dp_extract_thread(x, &s.thread, again);
	cr_assert(stopped_variable(stopped_frame(t, "stand")->variables, "list")->children);
	cr_assert_eq(nmissing, 0, "%zu of %zu pages were not prefetched", nmissing, npages);
	/* Two nodes of three pages and the objects that they point to, the fan, its leaves, and its own pages. */
	cr_assert_geq(before, 2 * (3 + 7) + 1 + FANS + 2);
	dp_snapshot_destroy(again);
	end(world, x);
}

Test(reach, a_rehearsal_goes_no_further_than_a_snapshot_would)
{
	struct dp_debug_ctx *world;
	struct dp_extract *x;
	const struct dp_extract_options options = {.limits = {.variables = 32, .frames = 4}};
	rehearse(&options, &world, &x);
	cr_assert_lt(npages, FANS, "%zu pages", npages); /* without limits, the fan alone would be all leaves */
	end(world, x);
}

Test(reach, the_same_object_is_looked_at_once)
{
	struct dp_debug_ctx *world;
	struct dp_extract *x;
	/* Two nodes, each of which leads to the other in two ways: to this depth a repeated visit would never end. */
	const struct dp_extract_options options = {.limits = {.fault_depth = 1000, .nesting = 64, .variables = 1000000}};
	const uint64_t most = dp_limits_filled(&options.limits).bytes / sizeof(struct dp_snap_variable);
	rehearse(&options, &world, &x);
	cr_assert_lt(most - x->reach.left, most / 8, "%llu", (unsigned long long)(most - x->reach.left));
	end(world, x);
}
