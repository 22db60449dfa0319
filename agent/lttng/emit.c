/* SPDX-License-Identifier: MIT */
/*
 * Makes an event of a hit, like the code that <lttng/tracepoint-event.h> generates for a compiled-in tracepoint, but with fields
 * known only at run time. The payload is packed as in the trace (x86-64 has no alignment in LTTng's buffers), so it is written as
 * a whole.
 */
#include "agent/lttng/event.h"

#define _LGPL_SOURCE /* inlines the read side of RCU: a few lines each, which the header allows to any program */
#include <lttng/urcu/pointer.h>
#include <lttng/urcu/urcu-ust.h>
#include <lttng/ust-ringbuffer-context.h>

#ifdef LTTNG_UST_RING_BUFFER_NATURAL_ALIGN
#error "the payload is packed"
#endif

struct hit {
	const struct dp_lttng_event *event;
	const uint8_t *payload;
	uint64_t size;
	uint64_t *operands; /* room for them */
	bool prepared;
};

__attribute__((noinline, cold)) static const char *operands(struct hit *hit)
{
	if (!hit->prepared)
		dp_lttng_operands(hit->event, hit->payload, hit->operands);
	hit->prepared = true;
	return (const char *)hit->operands;
}

static void write_record(struct hit *hit, struct lttng_ust_event_recorder *recorder, struct lttng_ust_probe_ctx *ctx)
{
	struct lttng_ust_channel_buffer_ops *ops = recorder->chan->ops;
	struct lttng_ust_ring_buffer_ctx ring;
	lttng_ust_ring_buffer_ctx_init(&ring, recorder, hit->size, 1, ctx);
	if (ops->event_reserve(&ring) < 0)
		return; /* LTTng counts it as discarded */
	ops->event_write(&ring, hit->payload, hit->size, 1);
	ops->event_commit(&ring);
}

static void notify(struct hit *hit, struct lttng_ust_event_notifier *notifier, struct lttng_ust_probe_ctx *ctx)
{
	struct lttng_ust_notification_ctx n = {
	        .struct_size = sizeof(n),
	        .eval_capture = CMM_ACCESS_ONCE(notifier->eval_capture),
	};
	const char *data = n.eval_capture ? operands(hit) : (const char *)hit->operands;
	notifier->notification_send(notifier, data, ctx, &n);
}

static bool recording(const struct lttng_ust_event_recorder *recorder)
{
	const struct lttng_ust_channel_common *channel = recorder->chan->parent;
	return CMM_ACCESS_ONCE(channel->session->active) && CMM_ACCESS_ONCE(channel->enabled);
}

/* For one session's channel, or one trigger. Ignores types that a later liblttng-ust may add. */
static void deliver(struct hit *hit, struct lttng_ust_event_common *to, uint64_t site)
{
	struct lttng_ust_probe_ctx ctx = {.struct_size = sizeof(ctx), .ip = (void *)(uintptr_t)site};
	const bool record = to->type == LTTNG_UST_EVENT_TYPE_RECORDER;
	if (!record && to->type != LTTNG_UST_EVENT_TYPE_NOTIFIER)
		return;
	if (record && !recording(to->child))
		return;
	if (!CMM_ACCESS_ONCE(to->enabled))
		return;
	if (CMM_ACCESS_ONCE(to->eval_filter) && to->run_filter(to, operands(hit), &ctx, NULL) != LTTNG_UST_EVENT_FILTER_ACCEPT)
		return;
	if (record)
		write_record(hit, to->child, &ctx);
	else
		notify(hit, to->child, &ctx);
}

/* ---- reader of LTTng's lists: <lttng/urcu/static/urcu-ust.h>, without looking up the thread's variable each time */

static uint64_t nesting(const struct lttng_ust_urcu_reader *reader)
{
	return reader->ctr & LTTNG_UST_URCU_GP_CTR_NEST_MASK;
}

static void read_lock(struct lttng_ust_urcu_reader *reader)
{
	if (nesting(reader)) {
		CMM_STORE_SHARED(reader->ctr, reader->ctr + LTTNG_UST_URCU_GP_COUNT);
		return;
	}
	CMM_STORE_SHARED(reader->ctr, CMM_LOAD_SHARED(lttng_ust_urcu_gp.ctr));
	lttng_ust_urcu_smp_mb_slave();
}

static void read_unlock(struct lttng_ust_urcu_reader *reader)
{
	lttng_ust_urcu_smp_mb_slave();
	CMM_STORE_SHARED(reader->ctr, reader->ctr - LTTNG_UST_URCU_GP_COUNT);
	cmm_barrier();
}

/* The hit before was left by a longjmp while it was a reader. LTTng would wait for it for ever. */
static void end_abandoned(struct dp_block *block, struct lttng_ust_urcu_reader *reader)
{
	if (nesting(reader) >= block->abandoned)
		read_unlock(reader);
	block->abandoned = 0;
}

void dp_lttng_record(const struct dp_probe_desc *desc, const uint8_t *payload, uint64_t size, struct dp_block *block)
{
	struct lttng_ust_urcu_reader *reader = *block->reader;
	struct hit hit = {
	        .event = (const struct dp_lttng_event *)(uintptr_t)desc->event,
	        .payload = payload,
	        .size = size,
	        .operands = block->operands,
	};
	const int saved = *block->errno_at;
	if (!reader) { /* the thread ends and LTTng's state for it is gone */
		dp_lttng_lose(&((struct dp_lost *)(uintptr_t)desc->lost)->unprimed);
		return;
	}
	if (block->abandoned)
		end_abandoned(block, reader);
	block->reading = nesting(reader) + 1;
	cmm_barrier();
	read_lock(reader);
	const struct lttng_ust_tracepoint_probe *p = lttng_ust_rcu_dereference(hit.event->tp.probes);
	if (!p && hit.event->tp.state == (int)DP_SINK_EXPECTED)
		dp_lttng_lose(&((struct dp_lost *)(uintptr_t)desc->lost)->unwanted);
	for (; p && p->func; p++)
		if (p->func == hit.event->callback)
			deliver(&hit, p->data, desc->site);
	read_unlock(reader);
	block->reading = 0;
	*block->errno_at = saved;
}
