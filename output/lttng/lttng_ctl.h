/* SPDX-License-Identifier: MIT */
/*
 * liblttng-ctl, loaded by the first conversation. It brings libxml2, ICU and the C++ library with it, whose dynamic linking takes
 * longer than all other libraries together, and most runs talk to no session daemon.
 */
#ifndef DP_OUTPUT_LTTNG_LTTNG_CTL_H
#define DP_OUTPUT_LTTNG_LTTNG_CTL_H

#include "base/error.h"

#include <lttng/lttng.h>

#define DP_LTTNG_CTL_FUNCTIONS(X)                                                                                                \
	X(add_context)                                                                                                           \
	X(channel_create)                                                                                                        \
	X(channel_destroy)                                                                                                       \
	X(create_handle)                                                                                                         \
	X(create_session_ext)                                                                                                    \
	X(data_pending)                                                                                                          \
	X(destroy_handle)                                                                                                        \
	X(destroy_session_no_wait)                                                                                               \
	X(disable_event)                                                                                                         \
	X(enable_channel)                                                                                                        \
	X(enable_event_with_filter)                                                                                              \
	X(event_create)                                                                                                          \
	X(event_destroy)                                                                                                         \
	X(list_channels)                                                                                                         \
	X(list_domains)                                                                                                          \
	X(list_sessions)                                                                                                         \
	X(list_tracepoints)                                                                                                      \
	X(save_session)                                                                                                          \
	X(save_session_attr_create)                                                                                              \
	X(save_session_attr_set_output_url)                                                                                      \
	X(save_session_attr_set_session_name)                                                                                    \
	X(session_descriptor_destroy)                                                                                            \
	X(session_descriptor_live_network_create)                                                                                \
	X(session_descriptor_local_create)                                                                                       \
	X(session_descriptor_network_create)                                                                                     \
	X(start_tracing)                                                                                                         \
	X(stop_tracing_no_wait)                                                                                                  \
	X(strerror)

/* dp_lttng_ctl.NAME is lttng_NAME(); NULL before dp_lttng_ctl_load(). */
struct dp_lttng_ctl {
#define X(name) __typeof__(lttng_##name) *name;
	DP_LTTNG_CTL_FUNCTIONS(X)
#undef X
};
extern struct dp_lttng_ctl dp_lttng_ctl;

/* Loads the library if it is not loaded yet. DP_TAG_LTTNG: it is missing, or lacks a function. */
struct dp_error *dp_lttng_ctl_load(void) DP_MUST_CHECK;

#endif
