/* SPDX-License-Identifier: MIT */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER sinkbench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./bench_tp.h"

#if !defined(DP_BENCH_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define DP_BENCH_TP_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(sinkbench, compiled, LTTNG_UST_TP_ARGS(uint64_t, value),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, value, value)))

#endif

#include <lttng/tracepoint-event.h>
