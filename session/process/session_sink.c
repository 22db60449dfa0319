/* SPDX-License-Identifier: MIT */
/*
 * Probes that emit through LTTng. Before stubs can be made, the target needs the sink, and the events with their gates. A hook at
 * the start of each thread prepares later threads to emit (primes them).
 */
#include "session/process/session.h"

#include <stdlib.h>

/* liburcu waits for a grace period of the kernel, which takes long on a loaded machine. No thread of the program waits for it. */
#define LOAD_LIMIT_NS  UINT64_C(30000000000)
#define HELD_LIMIT_NS  UINT64_C(5000000000) /* --program: the whole process waits, in its exec */
#define PRIME_LIMIT_NS UINT64_C(500000000)

static struct dp_error *make_classes(struct dp_session *s)
{
	s->classes = calloc(s->trace->nprobes, sizeof(*s->classes));
	if (!s->classes)
		return dp_error_nomem();
	for (size_t i = 0; i < s->trace->nprobes; i++) {
		s->classes[i].name = s->trace->probe[i].name;
		s->classes[i].fields = s->place[i].bound_fields ? &s->place[i].fields : &s->trace->probe[i].fields;
	}
	return NULL;
}

/* Threads without LTTng state cannot emit. Their number is logged, and each of their hits is counted. */
static struct dp_error *prime(struct dp_session *s)
{
	DP_TRY(dp_target_sink_prime(s->target, PRIME_LIMIT_NS, &s->sink_stats));
	dp_trace_log(s->trace, DP_LOG_DEBUG, "%zu of %zu threads can emit", s->sink_stats.primed, s->sink_stats.threads);
	return NULL;
}

struct dp_error *dp_session_sink(struct dp_session *s)
{
	dp_target_no_rings(s->target);
	DP_TRY(make_classes(s));
	const uint64_t held_ns = s->trace->max_wait_ns > HELD_LIMIT_NS ? s->trace->max_wait_ns : HELD_LIMIT_NS;
	DP_TRY(dp_target_sink_load(s->target, s->trace->programs.n ? held_ns : LOAD_LIMIT_NS, &s->sink, &s->sink_stats));
	DP_TRY(dp_target_sink_register(s->target, s->classes, s->trace->nprobes));
	DP_TRY(prime(s));
	/* The sink's mappings occupy memory that was free before. */
	return dp_target_refresh(s->target);
}

void dp_session_sink_runtime(const struct dp_session *s, struct dp_runtime *rt)
{
	rt->enter = s->sink.enter;
	rt->emit = s->sink.emit;
	rt->emit_capture = s->sink.emit_capture;
}

void dp_session_sink_request(struct dp_session *s, size_t i, struct dp_request *request, struct dp_error **refused)
{
	request->event = s->classes[i].event;
	request->gate[1] = s->classes[i].gate;
	*refused = s->classes[i].refused;
	if (!*refused && !request->event) /* the reason was reported at the first planning */
		*refused = dp_error(DP_TAG_SINK, "LTTng did not take the event '%s'", s->classes[i].name);
	s->classes[i].refused = NULL;
}

/*
 * glibc calls this function first in a new thread, before any code of the program. With a libc that does not have it, later
 * threads stay unprimed: their hits are counted as unprimed.
 */
struct dp_error *dp_session_plan_hook(struct dp_session *s, struct dp_planner *planner, struct dp_code_view *view)
{
	struct dp_site site;
	const struct dp_text *text;
	DP_TRY(dp_session_find_function(s, view, "libc.so.6!__ctype_init", &site, &text));
	const struct dp_request request = {
	        .site = site.addr.v,
	        .probe = DP_NO_PROBE,
	        .text = text,
	        .hook = s->sink.prime_hook,
	};
	DP_TRY(dp_planner_add(planner, &request, &s->hook));
	s->hooked = true;
	return NULL;
}

/* Primes the threads that started between the first priming and the hook. */
struct dp_error *dp_session_prime_late(struct dp_session *s)
{
	DP_TRY(prime(s));
	if (s->sink_stats.unprimed)
		dp_trace_log(s->trace, DP_LOG_WARNING,
		             "%zu of %zu threads of %d did not reach a point where dynprobe can prepare them for LTTng: their "
		             "hits will "
		             "be counted as unprimed",
		             s->sink_stats.unprimed, s->sink_stats.threads, dp_target_pid(s->target));
	if (s->unhooked)
		dp_trace_log(s->trace, DP_LOG_WARNING, "threads that start later cannot be prepared for LTTng: %s [%s]",
		             s->unhooked->message, dp_tag_name(s->unhooked->tag));
	return NULL;
}

bool dp_session_wanted(const struct dp_session *s)
{
	for (size_t i = 0; s->classes && i < s->trace->nprobes; i++) {
		uint32_t gate = 0;
		const size_t size = s->place[i].placed ? sizeof(gate) : 0;
		if (size && dp_target_read(s->target, dp_addr_of(s->classes[i].gate), &gate, size) == size && gate != 1)
			return false;
	}
	return true;
}

void dp_session_expect(struct dp_session *s)
{
	if (s->classes)
		dp_target_sink_expect(s->target, s->classes, s->trace->nprobes);
}

static void park(struct dp_session *s, bool refused_only)
{
	dp_auto_free uint64_t *event = calloc(s->trace->nprobes + 1, sizeof(*event));
	size_t n = 0;
	for (size_t i = 0; event && s->classes && i < s->trace->nprobes; i++) {
		if (!s->classes[i].event || (refused_only && !s->place[i].refused))
			continue;
		event[n++] = s->classes[i].event;
		s->classes[i].event = 0;
	}
	if (n && !s->ended)
		dp_error_destroy(dp_target_sink_park(s->target, event, n));
}

void dp_session_park(struct dp_session *s)
{
	park(s, false);
}

void dp_session_park_refused(struct dp_session *s)
{
	park(s, true);
}

void dp_session_sink_fini(struct dp_session *s)
{
	for (size_t i = 0; s->classes && i < s->trace->nprobes; i++)
		dp_error_destroy(s->classes[i].refused);
	free(s->classes);
	s->classes = NULL;
}
