/* SPDX-License-Identifier: MIT */
#include "output/trace/foreign.h"

#if __has_include(<babeltrace2/babeltrace.h>)

#include "base/text_hash.h"
#include "output/trace/babeltrace.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SECOND  INT64_C(1000000000)
#define LIBRARY "libbabeltrace2.so.0"

struct class
{ /* an event class, by its address in the library */
	const bt_event_class *of;
	unsigned number;
	UT_hash_handle hh;
};

struct foreign {
	struct dp_trace_source base;
	const struct dp_babeltrace *bt;
	char *dir;
	bt_graph *graph;
	const bt_message **message; /* those that came last; owned */
	uint64_t n, at;
	bool ended, known; /* known: the classes and the clock are */
	struct dp_arena arena;
	struct class *classes;
	struct dp_event_class *class;
	struct dp_buf payload;
	char comm[32];
	uint64_t lost;
	char damage[160];
};

/* ---- the library ----------------------------------------------------------------------------------------------------------- */

struct dp_error *dp_babeltrace(const struct dp_babeltrace **ret)
{
	static struct dp_babeltrace bt;
	static bool loaded;
	void *library = loaded ? NULL : dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!loaded && !library)
		return dp_error(DP_TAG_NO_BABELTRACE, "cannot load libbabeltrace2: %s", dlerror());
#define LOAD(name)                                                                                                               \
	if (!loaded && !(bt.name = (__typeof__(bt.name))dlsym(library, "bt_" #name)))                                            \
		return dp_error(DP_TAG_NO_BABELTRACE, LIBRARY " has no function bt_" #name ": it is of another version");
	DP_BABELTRACE(LOAD)
#undef LOAD
	loaded = true;
	*ret = &bt;
	return NULL;
}

/* ---- messages -------------------------------------------------------------------------------------------------------------- */

static void put_messages(struct foreign *f)
{
	for (; f->at < f->n; f->at++)
		f->bt->message_put_ref(f->message[f->at]);
	f->at = f->n = 0;
}

/* The array is the iterator's; the messages are ours. */
static bt_graph_simple_sink_component_consume_func_status consume(bt_message_iterator *iterator, void *data)
{
	struct foreign *f = data;
	bt_message_array_const got;
	uint64_t n = 0;
	const bt_message_iterator_next_status status = f->bt->message_iterator_next(iterator, &got, &n);
	if (status == BT_MESSAGE_ITERATOR_NEXT_STATUS_END)
		return BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_END;
	if (status == BT_MESSAGE_ITERATOR_NEXT_STATUS_AGAIN)
		return BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_AGAIN;
	if (status != BT_MESSAGE_ITERATOR_NEXT_STATUS_OK)
		return BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_ERROR;
	f->message = got;
	f->n = n;
	f->at = 0;
	return BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_OK;
}

/* Gets more messages. False at the end. */
static bool run(struct foreign *f)
{
	put_messages(f);
	while (!f->ended && !f->n) {
		const bt_graph_run_once_status status = f->bt->graph_run_once(f->graph);
		if (status == BT_GRAPH_RUN_ONCE_STATUS_OK || status == BT_GRAPH_RUN_ONCE_STATUS_AGAIN)
			continue;
		f->ended = true;
		if (status != BT_GRAPH_RUN_ONCE_STATUS_END) {
			f->bt->current_thread_clear_error();
			snprintf(f->damage, sizeof(f->damage), "%.80s: libbabeltrace2 cannot read on: babeltrace2 says more",
			         f->dir);
		}
	}
	return f->n;
}

/* ---- the graph ------------------------------------------------------------------------------------------------------------- */

static bool connect(struct foreign *f, const bt_component_source *source, const bt_component_filter *muxer,
                    const bt_component_sink *sink)
{
	const struct dp_babeltrace *bt = f->bt;
	const uint64_t n = bt->component_source_get_output_port_count(source);
	for (uint64_t i = 0; i < n; i++)
		if (bt->graph_connect_ports(f->graph, bt->component_source_borrow_output_port_by_index_const(source, i),
		                            bt->component_filter_borrow_input_port_by_index_const(muxer, i), NULL))
			return false;
	return !bt->graph_connect_ports(f->graph, bt->component_filter_borrow_output_port_by_index_const(muxer, 0),
	                                bt->component_sink_borrow_input_port_by_index_const(sink, 0), NULL);
}

static bool add_components(struct foreign *f, const bt_plugin *ctf, const bt_plugin *utils, const bt_value *params)
{
	const struct dp_babeltrace *bt = f->bt;
	const bt_component_class_source *fs = bt->plugin_borrow_source_component_class_by_name_const(ctf, "fs");
	const bt_component_class_filter *mux = bt->plugin_borrow_filter_component_class_by_name_const(utils, "muxer");
	const bt_component_source *source;
	const bt_component_filter *muxer;
	const bt_component_sink *sink;
	return fs && mux && !bt->graph_add_source_component(f->graph, fs, "trace", params, BT_LOGGING_LEVEL_NONE, &source) &&
	       !bt->graph_add_filter_component(f->graph, mux, "muxer", NULL, BT_LOGGING_LEVEL_NONE, &muxer) &&
	       !bt->graph_add_simple_sink_component(f->graph, "view", NULL, consume, NULL, f, &sink) &&
	       connect(f, source, muxer, sink);
}

static bool make_graph(struct foreign *f)
{
	const struct dp_babeltrace *bt = f->bt;
	const bt_plugin *ctf = NULL, *utils = NULL;
	bt_value *params = bt->value_map_create(), *inputs = NULL;
	f->graph = bt->graph_create(0);
	const bool ok = params && f->graph && !bt->value_map_insert_empty_array_entry(params, "inputs", &inputs) &&
	                !bt->value_array_append_string_element(inputs, f->dir) &&
	                !bt->plugin_find("ctf", BT_TRUE, BT_FALSE, BT_TRUE, BT_TRUE, BT_FALSE, &ctf) &&
	                !bt->plugin_find("utils", BT_TRUE, BT_FALSE, BT_TRUE, BT_TRUE, BT_FALSE, &utils) &&
	                add_components(f, ctf, utils, params);
	bt->plugin_put_ref(ctf);
	bt->plugin_put_ref(utils);
	bt->value_put_ref(params);
	if (!ok)
		bt->current_thread_clear_error();
	return ok;
}

/* ---- classes and clock ----------------------------------------------------------------------------------------------------- */

static struct dp_error *add_class(struct foreign *f, const bt_event_class *of, const bt_stream_class *stream)
{
	struct class *c = dp_arena_alloc(&f->arena, sizeof(*c));
	struct dp_fields *fields = dp_arena_alloc(&f->arena, sizeof(*fields));
	struct dp_event_class *grown = reallocarray(f->class, f->base.n + 1, sizeof(*grown));
	if (!c || !fields || !grown)
		return dp_error_nomem();
	f->class = grown;
	DP_TRY(dp_foreign_fields(f->bt, of, stream, &f->arena, fields));
	const char *name = f->bt->event_class_get_name(of);
	grown[f->base.n] = (struct dp_event_class){.name = dp_arena_printf(&f->arena, "%s", name ? name : "?"), .fields = fields};
	*c = (struct class){.of = of, .number = (unsigned)f->base.n++};
	HASH_ADD(hh, f->classes, of, sizeof(const bt_event_class *), c);
	f->base.class = f->class;
	return f->arena.failed ? dp_error_nomem() : NULL;
}

static void read_clock(struct foreign *f, const bt_stream_class *stream)
{
	const bt_clock_class *clock = f->bt->stream_class_borrow_default_clock_class_const(stream);
	int64_t seconds;
	uint64_t cycles;
	if (!clock)
		return;
	f->bt->clock_class_get_offset(clock, &seconds, &cycles);
	f->base.clock_offset = seconds * SECOND + (int64_t)cycles;
	const uint8_t *u = f->bt->clock_class_get_uuid(clock);
	for (size_t i = 0, n = 0; u && i < 16; i++)
		n += (size_t)snprintf(f->base.boot + n, sizeof(f->base.boot) - n, "%s%02x",
		                      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
}

static struct dp_error *read_classes(struct foreign *f, const bt_stream *stream)
{
	const bt_trace_class *trace = f->bt->stream_class_borrow_trace_class_const(f->bt->stream_borrow_class_const(stream));
	f->known = true;
	read_clock(f, f->bt->stream_borrow_class_const(stream));
	for (uint64_t i = 0; i < f->bt->trace_class_get_stream_class_count(trace); i++) {
		const bt_stream_class *s = f->bt->trace_class_borrow_stream_class_by_index_const(trace, i);
		for (uint64_t k = 0; k < f->bt->stream_class_get_event_class_count(s); k++)
			DP_TRY(add_class(f, f->bt->stream_class_borrow_event_class_by_index_const(s, k), s));
	}
	return NULL;
}

/* Reads up to the first stream's beginning, which leads to all classes. */
static struct dp_error *begin(struct foreign *f)
{
	while (!f->known && (f->at < f->n || run(f)))
		for (; f->at < f->n && !f->known; f->bt->message_put_ref(f->message[f->at++])) {
			const bt_message *m = f->message[f->at];
			if (f->bt->message_get_type(m) == BT_MESSAGE_TYPE_STREAM_BEGINNING)
				DP_TRY(read_classes(f, f->bt->message_stream_beginning_borrow_stream_const(m)));
		}
	return NULL;
}

/* ---- events ---------------------------------------------------------------------------------------------------------------- */

static const bt_field *context(const struct dp_babeltrace *bt, const bt_field *of, const char *name)
{
	return of ? bt->field_structure_borrow_member_field_by_name_const(of, name) : NULL;
}

/* From the event's own context, or its packet's. */
static const bt_field *find(const struct foreign *f, const bt_event *e, const char *name, const char *other)
{
	const bt_field *common = f->bt->event_borrow_common_context_field_const(e);
	const bt_packet *packet = f->bt->event_borrow_packet_const(e);
	const bt_field *of_packet = packet ? f->bt->packet_borrow_context_field_const(packet) : NULL;
	const char *const names[] = {name, other};
	for (size_t i = 0; i < 2; i++) {
		const bt_field *c = context(f->bt, common, names[i]), *p = context(f->bt, of_packet, names[i]);
		if (c || p)
			return c ? c : p;
	}
	return NULL;
}

static pid_t number(const struct foreign *f, const bt_field *field)
{
	const bt_field_class_type type = field ? f->bt->field_get_class_type(field) : BT_FIELD_CLASS_TYPE_STRING;
	if (type == BT_FIELD_CLASS_TYPE_SIGNED_INTEGER)
		return (pid_t)f->bt->field_integer_signed_get_value(field);
	return type == BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER ? (pid_t)f->bt->field_integer_unsigned_get_value(field) : 0;
}

static void fill(struct foreign *f, const bt_message *m, const struct class *c, struct dp_event *ret)
{
	const bt_event *e = f->bt->message_event_borrow_event_const(m);
	const bt_field *name = find(f, e, "procname", "procname");
	int64_t ns = 0;
	if (f->bt->clock_snapshot_get_ns_from_origin(f->bt->message_event_borrow_default_clock_snapshot_const(m), &ns))
		f->bt->current_thread_clear_error();
	const bool text = name && f->bt->field_get_class_type(name) == BT_FIELD_CLASS_TYPE_STRING;
	snprintf(f->comm, sizeof(f->comm), "%s", text ? f->bt->field_string_get_value(name) : "");
	dp_foreign_payload(f->bt, e, &f->payload);
	*ret = (struct dp_event){.ns = (uint64_t)(ns - f->base.clock_offset),
	                         .pid = number(f, find(f, e, "vpid", "pid")),
	                         .tid = number(f, find(f, e, "vtid", "tid")),
	                         .comm = f->comm,
	                         .probe = c->number,
	                         .payload = f->payload.data,
	                         .len = f->payload.failed ? 0 : f->payload.len};
}

/* True if the message is an event. */
static bool take(struct foreign *f, const bt_message *m, struct dp_event *ret)
{
	uint64_t lost;
	struct class *c = NULL;
	if (f->bt->message_get_type(m) == BT_MESSAGE_TYPE_DISCARDED_EVENTS &&
	    f->bt->message_discarded_events_get_count(m, &lost) == BT_PROPERTY_AVAILABILITY_AVAILABLE)
		f->lost += lost;
	if (f->bt->message_get_type(m) != BT_MESSAGE_TYPE_EVENT)
		return false;
	const bt_event_class *of = f->bt->event_borrow_class_const(f->bt->message_event_borrow_event_const(m));
	HASH_FIND(hh, f->classes, &of, sizeof(const bt_event_class *), c);
	if (!c && !f->damage[0])
		snprintf(f->damage, sizeof(f->damage), "%.80s: events of a class that the metadata did not have at first",
		         f->dir);
	if (c)
		fill(f, m, c, ret);
	return c;
}

static bool foreign_next(struct dp_trace_source *s, struct dp_event *ret)
{
	struct foreign *f = (struct foreign *)s;
	while (f->at < f->n || run(f)) {
		const bt_message *m = f->message[f->at++];
		const bool taken = take(f, m, ret);
		f->bt->message_put_ref(m);
		if (taken)
			return true;
	}
	return false;
}

static bool foreign_bounds(struct dp_trace_source *s, uint64_t *begin, uint64_t *end)
{
	const struct foreign *f = (const struct foreign *)s;
	struct dp_trace_source *again = NULL;
	struct dp_event e;
	bool any = false;
	struct dp_error *err = dp_foreign_open(f->dir, &again);
	dp_error_destroy(err);
	if (err)
		return false;
	while (foreign_next(again, &e)) {
		*begin = any ? *begin : e.ns;
		*end = e.ns;
		any = true;
	}
	again->ops->destroy(again);
	return any;
}

static uint64_t foreign_lost(struct dp_trace_source *s)
{
	return ((const struct foreign *)s)->lost;
}

static void foreign_damages(struct dp_trace_source *s, void (*each)(const char *text, void *data), void *data)
{
	const struct foreign *f = (const struct foreign *)s;
	if (f->damage[0])
		each(f->damage, data);
}

static void foreign_destroy(struct dp_trace_source *s)
{
	struct foreign *f = (struct foreign *)s;
	put_messages(f);
	if (f->graph)
		f->bt->graph_put_ref(f->graph);
	HASH_CLEAR(hh, f->classes);
	dp_arena_fini(&f->arena);
	dp_buf_fini(&f->payload);
	free(f->class);
	free(f->dir);
	free(f);
}

struct dp_error *dp_foreign_open(const char *dir, struct dp_trace_source **ret)
{
	static const struct dp_trace_source_ops ops = {foreign_next, foreign_bounds,  NULL,
	                                               foreign_lost, foreign_damages, foreign_destroy};
	const struct dp_babeltrace *bt;
	DP_TRY(dp_babeltrace(&bt));
	struct foreign *f = calloc(1, sizeof(*f));
	if (!f)
		return dp_error_nomem();
	f->base.ops = &ops;
	f->bt = bt;
	f->dir = strdup(dir);
	dp_buf_init(&f->payload);
	struct dp_error *err =
	        !f->dir          ? dp_error_nomem()
	        : !make_graph(f) ? dp_error(DP_TAG_BAD_TRACE, "libbabeltrace2 cannot read %s: babeltrace2 %s says more", dir, dir)
	                         : begin(f);
	if (err)
		foreign_destroy(&f->base);
	else
		*ret = &f->base;
	return err;
}

#else

struct dp_error *dp_foreign_open(const char *dir, struct dp_trace_source **ret)
{
	(void)ret;
	return dp_error(DP_TAG_NO_BABELTRACE, "%s was not recorded by dynprobe: this dynprobe was built without libbabeltrace2",
	                dir);
}

#endif
