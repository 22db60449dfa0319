/* SPDX-License-Identifier: MIT */
#include "fake.h"

#include <lttng/tracepoint-types.h>
#include <lttng/ust-events.h>
#include <lttng/ust-ringbuffer-context.h>
#include <string.h>

struct fake fake;

static int reserve(struct lttng_ust_ring_buffer_ctx *ctx)
{
	fake.reserved++;
	fake.rsp = (uint64_t)(uintptr_t)__builtin_frame_address(0);
	fake.ip = ctx->probe_ctx->ip;
	if (fake.inside)
		fake.inside();
	return 0;
}

static void write_payload(struct lttng_ust_ring_buffer_ctx *ctx, const void *src, size_t len, size_t alignment)
{
	(void)ctx;
	(void)alignment;
	fake.size = len;
	memcpy(fake.payload, src, len);
}

static void commit(struct lttng_ust_ring_buffer_ctx *ctx)
{
	(void)ctx;
	fake.committed++;
}

static struct lttng_ust_channel_buffer_ops ops = {
        .struct_size = sizeof(ops), .event_reserve = reserve, .event_write = write_payload, .event_commit = commit};
static struct lttng_ust_session session = {.struct_size = sizeof(session), .active = 1};
static struct lttng_ust_channel_common channel = {.struct_size = sizeof(channel), .enabled = 1, .session = &session};
static struct lttng_ust_channel_buffer buffer = {.struct_size = sizeof(buffer), .parent = &channel, .ops = &ops};
static struct lttng_ust_event_recorder recorder = {.struct_size = sizeof(recorder), .chan = &buffer};
static struct lttng_ust_event_common event = {
        .struct_size = sizeof(event),
        .type = LTTNG_UST_EVENT_TYPE_RECORDER,
        .child = &recorder,
        .enabled = 1,
};

static void other(void)
{
}

struct dp_sink *fake_session(struct host_event *probe)
{
	/* Another session's callback, then ours. An event's memory begins with its tracepoint, then its callback. */
	static struct lttng_ust_tracepoint_probe list[3];
	struct dp_sink *sink = host_load(DP_TEST_SINK_SO);
	host_begin();
	host_add("e", false);
	host_field("value", DP_SINK_UINT, 8, false);
	host_probe(probe, host_serve(), 0x1234);
	struct lttng_ust_tracepoint *tp = (struct lttng_ust_tracepoint *)(uintptr_t)probe->desc.event;
	list[0] = (struct lttng_ust_tracepoint_probe){other, &event};
	list[1] = (struct lttng_ust_tracepoint_probe){*(void (**)(void))(tp + 1), &event};
	tp->probes = list;
	tp->state = 1;
	return sink;
}
