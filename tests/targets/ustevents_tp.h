/* SPDX-License-Identifier: MIT */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER dynprobe

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./ustevents_tp.h"

#if !defined(USTEVENTS_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define USTEVENTS_TP_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(dynprobe, foo, LTTNG_UST_TP_ARGS(unsigned, n),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned, n, n)))
LTTNG_UST_TRACEPOINT_EVENT(dynprobe, bar, LTTNG_UST_TP_ARGS(unsigned, n),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned, n, n)))

#endif

#include <lttng/tracepoint-event.h>
