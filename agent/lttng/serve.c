/* SPDX-License-Identifier: MIT */
/*
 * Serves the tool's requests to register or park events. Runs on the loader's thread, one request at a time.
 *
 * All new events of a request go into one description: LTTng's work grows with the number of descriptions, not of events. Nothing
 * is ever unregistered: liblttng-ust forgets all but one of an event's uses when it is enabled in several channels of a session,
 * and a session daemon with per-process buffers refuses an event that it has seen before. So a parked event is used again, and an
 * event equal to another live one is distinguished by its model's URI.
 */
#include "agent/lttng/event.h"
#include "agent/lttng/guest/redirect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROVIDER_MAJOR 3 /* of liblttng-ust 2.13 to 2.15, whatever headers this is built with; later ones accept it */
#define NAME_MAX_UST   255
#define SIGNATURE      "const void *, payload, size_t, size" /* the same for all: LTTng compares only this text */

static const int loglevel = 13;    /* LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_LINE: the default for a tracepoint */
static struct dp_lttng_event *all; /* never freed */
static uint32_t count;             /* callbacks used */

struct batch {
	struct dp_sink_event **asked; /* requests to answer */
	struct lttng_ust_tracepoint **tps;
	const struct lttng_ust_event_desc **descs;
	struct lttng_ust_probe_desc *probe;
	uint32_t n;
};

static void refuse(struct dp_sink_event *e, const char *why)
{
	e->event = 0;
	e->gate = 0;
	snprintf(e->error, sizeof(e->error), "%s", why);
}

static void answer(struct dp_sink_event *e, struct dp_lttng_event *event)
{
	e->event = (uint64_t)(uintptr_t)event;
	e->gate = (uint64_t)(uintptr_t)&event->tp.state;
	e->error[0] = 0;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static const char *check_name(const char *name, size_t room)
{
	const size_t n = strnlen(name, room);
	if (n == 0 || n == room)
		return "the event has no name";
	if (sizeof(DP_LTTNG_PROVIDER) + n > NAME_MAX_UST) /* the provider's NUL counts for the colon */
		return "the event's name is longer than LTTng allows";
	for (size_t i = 0; i < n; i++)
		if (strchr("\"\\*", name[i]) || (unsigned char)name[i] < ' ' || name[i] == 0x7f)
			return "the event's name has a character that LTTng's metadata does not allow";
	return NULL;
}

static const struct dp_sink_field *fields_of(const struct dp_sink *sink, const struct dp_sink_event *e)
{
	return (const struct dp_sink_field *)((const uint8_t *)sink + sink->fields_offset) + e->first_field;
}

static const char *check(const struct dp_sink *sink, const struct dp_sink_event *e)
{
	if (e->first_field > sink->max_fields || e->nfields > sink->max_fields - e->first_field)
		return "the event's fields are outside the field table";
	const char *why = check_name(e->name, sizeof(e->name));
	return why ? why : dp_lttng_check_fields(fields_of(sink, e), e->nfields, e->mask != 0);
}

/* ---- one event ---------------------------------------------------------------------------------------------------- */

static bool same_field(const struct dp_sink_field *a, const struct dp_sink_field *b)
{
	const bool sized = a->type != DP_SINK_STRING && a->type != DP_SINK_BACKTRACE;
	return strcmp(a->name, b->name) == 0 && a->type == b->type && !a->hex == !b->hex && (!sized || a->size == b->size);
}

static bool same(const struct dp_lttng_event *event, const struct dp_sink_event *e, const struct dp_sink_field *fields)
{
	if (strcmp(event->name, e->name) != 0 || event->mask != (e->mask != 0) || event->nfields != e->nfields)
		return false;
	for (uint32_t i = 0; i < e->nfields; i++)
		if (!same_field(&event->fields[i], &fields[i]))
			return false;
	return true;
}

/* A parked event like this one, or NULL; *ret_twins: how many live ones are like it. */
static struct dp_lttng_event *find(const struct dp_sink_event *e, const struct dp_sink_field *fields, uint32_t *ret_twins)
{
	struct dp_lttng_event *parked = NULL;
	*ret_twins = 0;
	for (struct dp_lttng_event *event = all; event; event = event->next) {
		if (!same(event, e, fields))
			continue;
		*ret_twins += event->live;
		if (!event->live)
			parked = event;
	}
	return parked;
}

static bool fill(struct dp_lttng_event *event, const struct dp_sink_event *e, const struct dp_sink_field *fields)
{
	struct dp_sink_field *copy = calloc(e->nfields + 1, sizeof(*copy));
	size_t n = 0;
	const struct lttng_ust_event_field **described = dp_lttng_describe(fields, e->nfields, e->mask != 0, &n);
	event->name = dp_lttng_strdup(e->name);
	event->class = (struct lttng_ust_tracepoint_class){
	        .struct_size = sizeof(event->class),
	        .fields = described,
	        .nr_fields = n,
	        .probe_callback = event->callback,
	        .signature = SIGNATURE,
	};
	if (!copy || !event->name || !described)
		return false;
	memcpy(copy, fields, e->nfields * sizeof(*copy));
	event->fields = copy;
	event->nfields = e->nfields;
	event->mask = e->mask != 0;
	return true;
}

static struct dp_lttng_event *create(const struct dp_sink_event *e, const struct dp_sink_field *fields, uint32_t twins)
{
	struct dp_lttng_event *event = calloc(1, sizeof(*event));
	char *uri = NULL;
	if (!event)
		return NULL;
	event->callback = (void (*)(void))(uintptr_t)&dp_lttng_callbacks[count];
	if (!fill(event, e, fields) || (twins && dp_lttng_asprintf(&uri, "dynprobe:gen/%u", twins) < 0))
		return NULL; /* what it owns is leaked: the target has no memory left anyway */
	event->uri = uri;
	event->loglevel = &loglevel;
	event->desc = (struct lttng_ust_event_desc){
	        .struct_size = sizeof(event->desc),
	        .event_name = event->name,
	        .tp_class = &event->class,
	        .loglevel = &event->loglevel,
	        .model_emf_uri = &event->uri,
	};
	event->tp = (struct lttng_ust_tracepoint){
	        .struct_size = sizeof(event->tp),
	        .provider_name = DP_LTTNG_PROVIDER,
	        .event_name = event->name,
	        .signature = SIGNATURE,
	};
	return event;
}

/* ---- a request ---------------------------------------------------------------------------------------------------- */

static void use(struct batch *batch, struct dp_sink_event *e, struct dp_lttng_event *event)
{
	event->live = true;
	event->next = all;
	all = event;
	count++;
	batch->asked[batch->n] = e;
	batch->tps[batch->n] = &event->tp;
	batch->descs[batch->n] = &event->desc;
	event->desc.probe_desc = batch->probe;
	event->class.probe_desc = batch->probe;
	batch->n++;
}

static void take(struct batch *batch, const struct dp_sink *sink, struct dp_sink_event *e)
{
	uint32_t twins;
	const char *why = check(sink, e);
	if (why)
		return refuse(e, why);
	struct dp_lttng_event *event = find(e, fields_of(sink, e), &twins);
	if (event) {
		event->live = true;
		return answer(e, event);
	}
	if (count == DP_LTTNG_EVENTS)
		return refuse(e,
		              "this process has registered the maximum number of different events; restart it to register more");
	event = create(e, fields_of(sink, e), twins);
	if (!event)
		return refuse(e, "no memory");
	use(batch, e, event);
	answer(e, event);
}

static void park(const struct dp_sink_event *e)
{
	for (struct dp_lttng_event *event = all; event; event = event->next)
		if ((uint64_t)(uintptr_t)event == e->event)
			event->live = false;
}

static bool make_batch(struct batch *batch, uint32_t n)
{
	batch->asked = calloc(n, sizeof(struct dp_sink_event *));
	batch->tps = calloc(n, sizeof(*batch->tps));
	batch->descs = calloc(n, sizeof(*batch->descs));
	batch->probe = calloc(1, sizeof(*batch->probe));
	return batch->asked && batch->tps && batch->descs && batch->probe;
}

/* LTTng keeps pointers to tps, descs and probe for ever. */
static void register_batch(struct batch *batch)
{
	*batch->probe = (struct lttng_ust_probe_desc){
	        .struct_size = sizeof(*batch->probe),
	        .provider_name = DP_LTTNG_PROVIDER,
	        .event_desc = batch->descs,
	        .nr_events = batch->n,
	        .major = PROVIDER_MAJOR,
	};
	const int failed = lttng_ust_tracepoint_module_register(batch->tps, (int)batch->n);
	if (!failed && lttng_ust_probe_register(batch->probe))
		return;
	for (uint32_t i = 0; i < batch->n; i++)
		refuse(batch->asked[i], "liblttng-ust refused the event"); /* it stays marked live, so it is never used again */
}

void dp_lttng_serve(struct dp_sink *sink)
{
	struct dp_sink_event *events = (struct dp_sink_event *)((uint8_t *)sink + sink->events_offset);
	struct batch batch = {0};
	const uint32_t n = sink->nevents;
	const bool memory = n && n <= sink->max_events && make_batch(&batch, n);
	for (uint32_t i = 0; i < n && i < sink->max_events; i++) { /* first, so that parked events can serve the same request
		                                                      again */
		if (events[i].release)
			park(&events[i]);
	}
	for (uint32_t i = 0; i < n && i < sink->max_events; i++) {
		if (events[i].release)
			continue;
		if (memory)
			take(&batch, sink, &events[i]);
		else
			refuse(&events[i], "no memory");
	}
	if (batch.n)
		register_batch(&batch);
	free(batch.asked);
	if (!batch.n) {
		free(batch.tps);
		free(batch.descs);
		free(batch.probe);
	}
	__atomic_store_n(&sink->request, DP_SINK_SERVED, __ATOMIC_RELEASE);
}
