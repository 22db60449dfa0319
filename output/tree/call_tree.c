/* SPDX-License-Identifier: MIT */
#include "output/tree/call_tree.h"

#include "base/text_hash.h"

#include <stdlib.h>
#include <string.h>

#define NODES_MOST 200000u
#define DEPTH_MOST 512u
#define DISTANT    (UINT64_C(8) << 20) /* further apart than this, two addresses are those of two stacks */

struct frame {
	size_t function;
	uint32_t node; /* 0: too deep for a node of its own */
	uint64_t sp, ns;
	uint64_t tailed; /* when it jumped to another function, which returns for it; 0: it has not */
};

struct thread {
	pid_t id[2]; /* process, thread */
	struct frame *frame;
	size_t n, capacity;
	UT_hash_handle hh;
};

struct dp_call_tree {
	const struct dp_call_function *function;
	size_t nfunctions;
	struct dp_call_node *node;
	size_t n, capacity;
	struct thread *thread;
	uint64_t *strays; /* of each function */
	struct dp_call_counts counts;
};

struct dp_error *dp_call_tree_create(const struct dp_call_function *function, size_t n, struct dp_call_tree **ret)
{
	struct dp_call_tree *t = calloc(1, sizeof(*t));
	if (t) {
		t->node = calloc(64, sizeof(*t->node));
		t->strays = calloc(n + 1, sizeof(*t->strays));
	}
	if (!t || !t->node || !t->strays) {
		dp_call_tree_destroy(t);
		return dp_error_nomem();
	}
	t->function = function;
	t->nfunctions = n;
	t->n = 1;
	t->capacity = 64;
	*ret = t;
	return NULL;
}

struct dp_call_tree *dp_call_tree_destroy(struct dp_call_tree *t)
{
	struct thread *th, *next;
	if (!t)
		return NULL;
	HASH_ITER(hh, t->thread, th, next)
	{
		HASH_DEL(t->thread, th);
		free(th->frame);
		free(th);
	}
	free(t->node);
	free(t->strays);
	free(t);
	return NULL;
}

/* The node of a call below `parent`; 0: there are too many. */
static uint32_t child_of(struct dp_call_tree *t, uint32_t parent, size_t function)
{
	for (uint32_t i = t->node[parent].child; i; i = t->node[i].next)
		if (t->node[i].function == function)
			return i;
	if (t->n == t->capacity && t->n < NODES_MOST) {
		struct dp_call_node *grown = reallocarray(t->node, 2 * t->capacity, sizeof(*grown));
		t->node = grown ? grown : t->node;
		t->capacity *= grown ? 2 : 1;
	}
	if (t->n == t->capacity) {
		t->counts.full = true;
		return 0;
	}
	t->node[t->n] = (struct dp_call_node){.function = function, .parent = parent, .next = t->node[parent].child};
	t->node[parent].child = (uint32_t)t->n;
	return (uint32_t)t->n++;
}

static struct thread *thread_of(struct dp_call_tree *t, const struct dp_call_step *s)
{
	const pid_t id[2] = {s->pid, s->tid};
	struct thread *th;
	HASH_FIND(hh, t->thread, id, sizeof(id), th);
	if (th)
		return th;
	th = calloc(1, sizeof(*th));
	if (!th)
		return NULL;
	memcpy(th->id, id, sizeof(id));
	HASH_ADD(hh, t->thread, id, sizeof(id), th);
	if (th->hh.tbl)
		return th;
	free(th);
	return NULL;
}

/* The nearest caller that has a node. */
static uint32_t node_above(const struct thread *th)
{
	for (size_t i = th->n; i-- > 0;)
		if (th->frame[i].node)
			return th->frame[i].node;
	return 0;
}

static void end_top(struct dp_call_tree *t, struct thread *th, uint64_t ns)
{
	const struct frame *f = &th->frame[--th->n];
	const uint64_t took = ns > f->ns ? ns - f->ns : 0;
	if (!f->node)
		return;
	t->node[f->node].total += took;
	t->node[t->node[f->node].parent].below += took;
}

/* After a tail jump the next step is the entry of the other function, unless that has no probe. */
static void settle(struct dp_call_tree *t, struct thread *th, const struct dp_call_step *s)
{
	while (th->n && th->frame[th->n - 1].tailed && !(s->enters && s->sp == th->frame[th->n - 1].sp))
		end_top(t, th, th->frame[th->n - 1].tailed);
}

/* Ends the calls that a longjmp or an exception has left, when the stack is at `sp` again. */
static void end_left(struct dp_call_tree *t, struct thread *th, uint64_t sp, uint64_t ns)
{
	while (th->n && !th->frame[th->n - 1].tailed && th->frame[th->n - 1].sp <= sp && sp - th->frame[th->n - 1].sp < DISTANT) {
		end_top(t, th, ns);
		t->counts.left++;
	}
}

static void enter(struct dp_call_tree *t, struct thread *th, const struct dp_call_step *s)
{
	end_left(t, th, s->sp, s->ns);
	if (!th->n && !t->function[s->function].root) {
		t->strays[s->function]++;
		return;
	}
	if (th->n == th->capacity) {
		const size_t capacity = th->capacity ? 2 * th->capacity : 32;
		struct frame *grown = reallocarray(th->frame, capacity, sizeof(*grown));
		if (!grown)
			return;
		th->frame = grown;
		th->capacity = capacity;
	}
	const uint32_t above = node_above(th), node = th->n < DEPTH_MOST ? child_of(t, above, s->function) : 0;
	t->counts.full |= !node;
	t->node[node].calls += node != 0;
	th->frame[th->n++] = (struct frame){s->function, node, s->sp, s->ns, 0};
}

static void leave(struct dp_call_tree *t, struct thread *th, const struct dp_call_step *s)
{
	size_t i = th->n;
	while (i && (th->frame[i - 1].sp != s->sp || th->frame[i - 1].function != s->function))
		i--;
	for (; i && th->n > i; t->counts.left++)
		end_top(t, th, s->ns);
	if (i && s->tails) {
		th->frame[i - 1].tailed = s->ns;
		return;
	}
	if (i)
		end_top(t, th, s->ns);
	while (i && th->n && th->frame[th->n - 1].tailed && th->frame[th->n - 1].sp == s->sp)
		end_top(t, th, s->ns);
}

void dp_call_tree_step(struct dp_call_tree *t, const struct dp_call_step *step)
{
	struct thread *th = step->function < t->nfunctions ? thread_of(t, step) : NULL;
	if (!th)
		return;
	settle(t, th, step);
	if (step->enters)
		enter(t, th, step);
	else
		leave(t, th, step);
}

void dp_call_tree_gap(struct dp_call_tree *t)
{
	for (struct thread *th = t->thread; th; th = th->hh.next) {
		t->counts.dropped += th->n;
		th->n = 0;
	}
}

void dp_call_tree_counts(const struct dp_call_tree *t, struct dp_call_counts *ret)
{
	*ret = t->counts;
	for (const struct thread *th = t->thread; th; th = th->hh.next)
		ret->open += th->n;
}

uint64_t dp_call_tree_strays(const struct dp_call_tree *t, size_t function)
{
	return function < t->nfunctions ? t->strays[function] : 0;
}

size_t dp_call_tree_nodes(const struct dp_call_tree *t, const struct dp_call_node **ret, const struct dp_call_function **function,
                          size_t *nfunctions)
{
	*ret = t->node;
	*function = t->function;
	*nfunctions = t->nfunctions;
	return t->n;
}
