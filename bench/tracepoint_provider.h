/* SPDX-License-Identifier: MIT */
/* The tracepoints of bench/tracepoint.c: a session records the first two. */
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
LTTNG_UST_TRACEPOINT_EVENT(
        bench, many, LTTNG_UST_TP_ARGS(uint64_t, value),
        LTTNG_UST_TP_FIELDS(
                lttng_ust_field_integer_hex(uint64_t, f00, value) lttng_ust_field_integer_hex(uint64_t, f01, value)
                        lttng_ust_field_integer_hex(uint64_t, f02, value) lttng_ust_field_integer_hex(uint64_t, f03, value)
                                lttng_ust_field_integer_hex(uint64_t, f04, value) lttng_ust_field_integer_hex(
                                        uint64_t, f05, value) lttng_ust_field_integer_hex(uint64_t, f06, value)
                                        lttng_ust_field_integer_hex(uint64_t, f07, value) lttng_ust_field_integer_hex(
                                                uint64_t, f08, value) lttng_ust_field_integer_hex(uint64_t, f09, value)
                                                lttng_ust_field_integer_hex(uint64_t, f10, value) lttng_ust_field_integer_hex(
                                                        uint64_t, f11, value) lttng_ust_field_integer_hex(uint64_t, f12, value)
                                                        lttng_ust_field_integer_hex(uint64_t, f13, value)
                                                                lttng_ust_field_integer_hex(uint64_t, f14, value)
                                                                        lttng_ust_field_integer_hex(uint64_t, f15, value)
                                                                                lttng_ust_field_integer_hex(uint64_t, f16, value)
                                                                                        lttng_ust_field_integer_hex(uint64_t, f17,
                                                                                                                    value)))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(bench, one, bench, wanted, LTTNG_UST_TP_ARGS(uint64_t, value))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(bench, one, bench, idle, LTTNG_UST_TP_ARGS(uint64_t, value))

#endif

#include <lttng/tracepoint-event.h>
