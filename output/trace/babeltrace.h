/* SPDX-License-Identifier: MIT */
/* The functions of libbabeltrace2 that we use. The library is loaded when a trace needs it: most commands do not. */
#ifndef DP_OUTPUT_TRACE_BABELTRACE_H
#define DP_OUTPUT_TRACE_BABELTRACE_H

#include "base/error.h"

#include <babeltrace2/babeltrace.h>

#define DP_BABELTRACE(X)                                                                                                         \
	X(clock_class_get_offset)                                                                                                \
	X(clock_class_get_uuid)                                                                                                  \
	X(clock_snapshot_get_ns_from_origin)                                                                                     \
	X(component_filter_borrow_input_port_by_index_const)                                                                     \
	X(component_filter_borrow_output_port_by_index_const)                                                                    \
	X(component_sink_borrow_input_port_by_index_const)                                                                       \
	X(component_source_borrow_output_port_by_index_const)                                                                    \
	X(component_source_get_output_port_count)                                                                                \
	X(current_thread_clear_error)                                                                                            \
	X(event_borrow_class_const)                                                                                              \
	X(event_borrow_common_context_field_const)                                                                               \
	X(event_borrow_packet_const)                                                                                             \
	X(event_borrow_payload_field_const)                                                                                      \
	X(event_borrow_specific_context_field_const)                                                                             \
	X(event_borrow_stream_const)                                                                                             \
	X(event_class_borrow_payload_field_class_const)                                                                          \
	X(event_class_borrow_specific_context_field_class_const)                                                                 \
	X(event_class_get_name)                                                                                                  \
	X(field_array_borrow_element_field_by_index_const)                                                                       \
	X(field_array_get_length)                                                                                                \
	X(field_bool_get_value)                                                                                                  \
	X(field_class_get_type)                                                                                                  \
	X(field_class_integer_get_preferred_display_base)                                                                        \
	X(field_class_structure_borrow_member_by_index_const)                                                                    \
	X(field_class_structure_get_member_count)                                                                                \
	X(field_class_structure_member_borrow_field_class_const)                                                                 \
	X(field_class_structure_member_get_name)                                                                                 \
	X(field_borrow_class_const)                                                                                              \
	X(field_get_class_type)                                                                                                  \
	X(field_integer_signed_get_value)                                                                                        \
	X(field_integer_unsigned_get_value)                                                                                      \
	X(field_real_double_precision_get_value)                                                                                 \
	X(field_real_single_precision_get_value)                                                                                 \
	X(field_string_get_length)                                                                                               \
	X(field_string_get_value)                                                                                                \
	X(field_structure_borrow_member_field_by_index_const)                                                                    \
	X(field_structure_borrow_member_field_by_name_const)                                                                     \
	X(field_variant_borrow_selected_option_field_const)                                                                      \
	X(graph_add_filter_component)                                                                                            \
	X(graph_add_simple_sink_component)                                                                                       \
	X(graph_add_source_component)                                                                                            \
	X(graph_connect_ports)                                                                                                   \
	X(graph_create)                                                                                                          \
	X(graph_put_ref)                                                                                                         \
	X(graph_run_once)                                                                                                        \
	X(message_discarded_events_get_count)                                                                                    \
	X(message_event_borrow_default_clock_snapshot_const)                                                                     \
	X(message_event_borrow_event_const)                                                                                      \
	X(message_get_type)                                                                                                      \
	X(message_iterator_next)                                                                                                 \
	X(message_put_ref)                                                                                                       \
	X(message_stream_beginning_borrow_stream_const)                                                                          \
	X(packet_borrow_context_field_const)                                                                                     \
	X(plugin_borrow_filter_component_class_by_name_const)                                                                    \
	X(plugin_borrow_source_component_class_by_name_const)                                                                    \
	X(plugin_find)                                                                                                           \
	X(plugin_put_ref)                                                                                                        \
	X(stream_borrow_class_const)                                                                                             \
	X(stream_class_borrow_default_clock_class_const)                                                                         \
	X(stream_class_borrow_event_class_by_index_const)                                                                        \
	X(stream_class_borrow_event_common_context_field_class_const)                                                            \
	X(stream_class_borrow_trace_class_const)                                                                                 \
	X(stream_class_get_event_class_count)                                                                                    \
	X(trace_class_borrow_stream_class_by_index_const)                                                                        \
	X(trace_class_get_stream_class_count)                                                                                    \
	X(value_array_append_string_element)                                                                                     \
	X(value_map_create)                                                                                                      \
	X(value_map_insert_empty_array_entry)                                                                                    \
	X(value_put_ref)

struct dp_babeltrace {
#define DP_BABELTRACE_MEMBER(name) __typeof__(bt_##name) *name;
	DP_BABELTRACE(DP_BABELTRACE_MEMBER)
#undef DP_BABELTRACE_MEMBER
};

/* Loads the library once. DP_TAG_NO_BABELTRACE if that fails. */
struct dp_error *dp_babeltrace(const struct dp_babeltrace **ret) DP_MUST_CHECK;

/* ---- foreign_class.c: what an event class records, and events of it as payloads
 * ------------------------------------------------ */

#include "base/arena.h"
#include "base/buf.h"
#include "output/output.h"

/* The fields of an event class: its payload, then its contexts but those that name the thread. In the arena. */
struct dp_error *dp_foreign_fields(const struct dp_babeltrace *bt, const bt_event_class *of, const bt_stream_class *stream,
                                   struct dp_arena *arena, struct dp_fields *ret) DP_MUST_CHECK;
/* The payload of an event of these fields. */
void dp_foreign_payload(const struct dp_babeltrace *bt, const bt_event *event, struct dp_buf *ret);
/* Does the context only say which thread it was? */
bool dp_foreign_names_thread(const char *member);

#endif
