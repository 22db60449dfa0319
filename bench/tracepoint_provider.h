/* SPDX-License-Identifier: MIT */
/* The tracepoints of bench/tracepoint.c: a session records one of them. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "bench/tracepoint_provider.h"

#if !defined(DP_BENCH_TRACEPOINT_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define DP_BENCH_TRACEPOINT_PROVIDER_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT_CLASS(bench, one, LTTNG_UST_TP_ARGS(uint64_t, value),
                                 LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(uint64_t, value, value)))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(bench, one, bench, wanted, LTTNG_UST_TP_ARGS(uint64_t, value))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(bench, one, bench, idle, LTTNG_UST_TP_ARGS(uint64_t, value))

#endif

#include <lttng/tracepoint-event.h>
