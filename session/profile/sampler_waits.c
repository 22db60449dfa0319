/* SPDX-License-Identifier: MIT */
/* Waits of one process: stacks of threads that leave the processor, and when they come back. */
#include "session/profile/sampler_internal.h"

#include "injector/tracee/tracee.h"

#include <stdlib.h>
#include <string.h>

struct dp_error *dp_sampler_open_waits(struct dp_sampler *s)
{
	const struct dp_samples_asked switches = {.of = DP_SAMPLES_NONE, .on_exec = s->starts},
	                              stacks = {.of = DP_SAMPLES_OF_SWITCHES, .on_exec = s->starts};
	DP_TRY(dp_waits_create(&s->waits));
	DP_TRY(dp_samples_open(s->pid, &switches, &s->switches)); /* first: its rings are small, and must be there */
	return dp_samples_open(s->pid, &stacks, &s->samples);
}

static void on_stack(const struct dp_sample *sample, void *data)
{
	struct dp_sampler *s = data;
	uint64_t pc[DP_BACKTRACE_MAX];
	uint32_t image;
	const size_t n = dp_sampler_frames(s, sample, pc, &image);
	struct dp_wait_stack *stack = malloc(sizeof(*stack) + n * sizeof(*pc));
	if (!stack)
		return; /* a wait without a stack */
	stack->image = image;
	stack->n = (uint32_t)n;
	memcpy(stack->pc, pc, n * sizeof(*pc));
	dp_waits_add(s->waits,
	             &(struct dp_switch){.kind = DP_SWITCH_STACK, .tid = sample->tid, .ns = sample->ns, .stack = stack});
}

static void count(struct dp_sampler *s, const struct dp_wait *wait)
{
	const uint64_t ns = wait->to_ns - wait->from_ns;
	s->taken++;
	s->times.ns += ns;
	s->times.preempted += wait->preempted;
	s->times.preempted_ns += wait->preempted ? ns : 0;
	s->times.open += wait->open;
	s->times.bare += !wait->stack;
	s->times.bare_ns += wait->stack ? 0 : ns;
}

/* The image of a long wait may have been dropped meanwhile. */
static uint32_t image_of(const struct dp_sampler *s, const struct dp_wait_stack *stack)
{
	return stack && stack->image != DP_IMAGES_NONE && stack->image + DP_IMAGES_MAX >= s->images.n ? stack->image
	                                                                                              : DP_IMAGES_NONE;
}

static void show(struct dp_sampler *s, const struct dp_wait *wait)
{
	const size_t n = wait->stack ? wait->stack->n : 0;
	const uint64_t ns = wait->to_ns - wait->from_ns;
	uint8_t payload[1 + (DP_BACKTRACE_MAX + 1) * sizeof(ns)];
	payload[0] = (uint8_t)n;
	if (n)
		memcpy(payload + 1, wait->stack->pc, n * sizeof(ns));
	memcpy(payload + 1 + n * sizeof(ns), &ns, sizeof(ns));
	const struct dp_event event = {
	        .ns = wait->to_ns,
	        .pid = s->pid,
	        .tid = wait->tid,
	        .lane = (uint64_t)wait->tid,
	        .comm = dp_thread_name(&s->threads, s->pid, wait->tid, wait->to_ns, s->comm),
	        .process = s->comm,
	        .payload = payload,
	        .len = 1 + (n + 1) * sizeof(ns),
	        .image = dp_images_get(&s->images, image_of(s, wait->stack)),
	};
	s->event(&event, s->data);
}

static void on_wait(const struct dp_wait *wait, void *data)
{
	struct dp_sampler *s = data;
	if (dp_sampler_has_all(s))
		return;
	count(s, wait);
	if (!s->stacks)
		show(s, wait);
	else if (wait->stack)
		s->crowded += !dp_stacks_count(s->stacks, &(struct dp_stack_seen){.pc = wait->stack->pc,
		                                                                  .n = wait->stack->n,
		                                                                  .image = image_of(s, wait->stack),
		                                                                  .ns = wait->to_ns - wait->from_ns});
}

/*
 * What happened by `until_ns` is in the rings when they are read afterwards: a thread comes in only after its out was written,
 * and its out after its sample.
 */
static void read_until(struct dp_sampler *s)
{
	dp_samples_drain(s->samples, on_stack, s);
	dp_samples_switches(s->switches, s->waits);
}

void dp_sampler_drain_waits(struct dp_sampler *s)
{
	const uint64_t until_ns = dp_now_ns();
	read_until(s);
	dp_waits_settle(s->waits, until_ns, on_wait, s);
	dp_waits_stats(s->waits, &s->missed);
}

void dp_sampler_end_waits(struct dp_sampler *s)
{
	read_until(s);
	dp_waits_end(s->waits, s->end_ns, on_wait, s);
	dp_waits_stats(s->waits, &s->missed);
	s->unseen = dp_samples_unseen(s->switches, s->waits);
}
