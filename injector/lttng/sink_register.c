/* SPDX-License-Identifier: MIT */
/*
 * Requests to the sink's own thread: registering events in a batch, parking them. The request area is shared memory of the
 * target, written without stopping anything. The thread sleeps in a futex wait on another word. To wake it, the tool changes that
 * word and stops the thread briefly: the wait restarts and sees the new value. No thread of the program is involved.
 */
#include "injector/lttng/sink.h"

#include "base/duration.h"
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/stop/freeze.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <time.h>

#define SERVE_NS UINT64_C(10000000000)
#define STOP_NS  UINT64_C(100000000)
#define POLL_NS  100000L

struct request {
	struct dp_sink_event *event;
	size_t nevents;
	struct dp_sink_field *field;
	size_t nfields;
};

static void request_fini(struct request *r)
{
	free(r->event);
	free(r->field);
}
#define auto_request __attribute__((cleanup(request_fini)))

/* ---- the thread --------------------------------------------------------------------------------------------------------------
 */

static bool is_server(pid_t pid, pid_t tid)
{
	struct dp_buf comm;
	dp_buf_init(&comm);
	const bool is =
	        dp_proc_slurp(&comm, "/proc/%d/task/%d/comm", pid, tid) && !strcmp(dp_buf_str(&comm), DP_SINK_THREAD "\n");
	dp_buf_fini(&comm);
	return is;
}

static void nudge(const struct dp_sink_view *v, pid_t tid)
{
	bool gone;
	struct dp_held h = {.tid = tid, .ns_tid = tid, .pid = v->process.pid};
	struct dp_error *err = dp_held_seize(&v->process, tid, &gone);
	if (err || gone) {
		dp_error_destroy(err);
		return;
	}
	h.seized = true;
	h.held_at_ns = dp_now_ns();
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	const struct dp_stop stop = dp_stop_wait(tid, h.held_at_ns + STOP_NS);
	if (stop.kind != DP_STOP_NONE)
		dp_held_take(&h, stop);
	dp_held_release(&h);
}

static void wake(const struct dp_sink_view *v)
{
	struct dp_tids tids;
	if (!dp_proc_tids(v->process.pid, &tids))
		return;
	for (size_t i = 0; i < tids.n; i++)
		if (is_server(v->process.pid, tids.tid[i]))
			nudge(v, tids.tid[i]);
	free(tids.tid);
}

/* ---- requests -------------------------------------------------------------------------------------------------------------- */

static struct dp_error *put(const struct dp_sink_view *v, size_t offset, uint32_t value)
{
	return dp_mem_write(&v->process, dp_addr_of(v->data + offset), &value, sizeof(value));
}

static struct dp_error *await_served(struct dp_sink_view *v)
{
	const uint64_t deadline = dp_now_ns() + SERVE_NS;
	uint64_t again = 0;
	for (;;) {
		DP_TRY(dp_sink_head(v));
		if (v->head.request != DP_SINK_ASKED)
			return NULL;
		const uint64_t now = dp_now_ns();
		if (now >= deadline)
			break;
		if (now >= again) { /* it may have been about to sleep */
			wake(v);
			again = now + STOP_NS;
		}
		nanosleep(&(struct timespec){0, POLL_NS}, NULL);
	}
	DP_TRY(dp_sink_refuse_stopped(v));
	return dp_error(
	        DP_TAG_LTTNG,
	        "LTTng in process %d (%s) did not register the events within %d s: it asks the session daemon about each event "
	        "that a session wants, and the daemon hangs or is busy; the program keeps running",
	        v->process.pid, v->process.comm, (int)(SERVE_NS / 1000000000));
}

static struct dp_error *ask(struct dp_sink_view *v, struct request *r)
{
	const uint32_t work = DP_SINK_WORK;
	const uint64_t events = v->data + v->head.events_offset, fields = v->data + v->head.fields_offset;
	DP_TRY(await_served(v)); /* finishes a dead tool's request */
	DP_TRY(dp_mem_write(&v->process, dp_addr_of(events), r->event, r->nevents * sizeof(*r->event)));
	DP_TRY(dp_mem_write(&v->process, dp_addr_of(fields), r->field, r->nfields * sizeof(*r->field)));
	DP_TRY(put(v, offsetof(struct dp_sink, nevents), (uint32_t)r->nevents));
	DP_TRY(put(v, offsetof(struct dp_sink, nfields), (uint32_t)r->nfields));
	DP_TRY(put(v, offsetof(struct dp_sink, request), DP_SINK_ASKED));
	DP_TRY(dp_mem_write(&v->process, dp_addr_of(v->head.work), &work, sizeof(work)));
	DP_TRY(await_served(v));
	const size_t size = r->nevents * sizeof(*r->event);
	if (dp_mem_read(&v->process, dp_addr_of(events), r->event, size) != size)
		return dp_error(DP_TAG_GONE, "process %d (%s) ended", v->process.pid, v->process.comm);
	return put(v, offsetof(struct dp_sink, request), DP_SINK_IDLE);
}

static struct dp_error *request_create(size_t nevents, size_t nfields, struct request *r)
{
	r->event = calloc(nevents + 1, sizeof(*r->event));
	r->field = calloc(nfields + 1, sizeof(*r->field));
	return r->event && r->field ? NULL : dp_error_nomem();
}

/* ---- registering
 * ---------------------------------------------------------------------------------------------------------------- */

static void copy_name(char *to, size_t size, const char *from)
{
	strncpy(to, from, size - 1);
	to[size - 1] = 0;
}

static void encode_field(const struct dp_field *f, struct dp_sink_field *ret)
{
	static const uint8_t type[] = {
	        [DP_TYPE_INT] = DP_SINK_INT,
	        [DP_TYPE_UINT] = DP_SINK_UINT,
	        [DP_TYPE_FLOAT] = DP_SINK_FLOAT,
	        [DP_TYPE_POINTER] = DP_SINK_UINT,
	        [DP_TYPE_STRING] = DP_SINK_STRING,
	        [DP_TYPE_BYTES] = DP_SINK_BYTES,
	        [DP_TYPE_BACKTRACE] = DP_SINK_BACKTRACE,
	};
	copy_name(ret->name, sizeof(ret->name), f->name);
	ret->type = type[f->type];
	ret->hex = f->hex || f->type == DP_TYPE_POINTER;
	ret->size = f->type == DP_TYPE_POINTER ? sizeof(uint64_t) : f->size;
}

static void encode(const struct dp_sink_class *c, struct request *r)
{
	struct dp_sink_event *e = &r->event[r->nevents++];
	copy_name(e->name, sizeof(e->name), c->name);
	e->first_field = (uint32_t)r->nfields;
	e->nfields = (uint32_t)c->fields->n;
	e->mask = dp_fields_may_fault(c->fields);
	for (size_t i = 0; i < c->fields->n; i++)
		encode_field(&c->fields->field[i], &r->field[r->nfields++]);
}

static void decode(struct dp_sink_event *e, struct dp_sink_class *c)
{
	e->error[sizeof(e->error) - 1] = '\0'; /* the program may have overwritten it */
	dp_printable(e->error);
	c->event = e->event;
	c->gate = e->gate;
	c->refused = NULL;
	if (!e->event)
		c->refused = dp_error(DP_TAG_SINK, "LTTng refused the event dynprobe:%s: %s", c->name,
		                      e->error[0] ? e->error : "no reason given");
}

/* As many classes as fit in one request. */
static size_t batch(const struct dp_sink_view *v, const struct dp_sink_class *classes, size_t n, size_t *nfields)
{
	size_t taken = 0;
	*nfields = 0;
	while (taken < n && taken < v->head.max_events && *nfields + classes[taken].fields->n <= v->head.max_fields)
		*nfields += classes[taken++].fields->n;
	return taken;
}

static struct dp_error *register_batch(struct dp_sink_view *v, struct dp_sink_class *classes, size_t n, size_t nfields)
{
	auto_request struct request r = {0};
	DP_TRY(request_create(n, nfields, &r));
	for (size_t i = 0; i < n; i++)
		encode(&classes[i], &r);
	DP_TRY(ask(v, &r));
	for (size_t i = 0; i < n; i++)
		decode(&r.event[i], &classes[i]);
	return NULL;
}

struct dp_error *dp_target_sink_register(struct dp_target *t, struct dp_sink_class *classes, size_t n)
{
	dp_auto_view struct dp_sink_view v = {0};
	const uint64_t begin = dp_now_ns();
	DP_TRY(dp_sink_view_ready(t, &v));
	for (size_t done = 0; done < n;) {
		size_t nfields;
		const size_t part = batch(&v, classes + done, n - done, &nfields);
		if (!part)
			return dp_error(DP_TAG_SINK, "the event dynprobe:%s has too many fields", classes[done].name);
		DP_TRY(register_batch(&v, classes + done, part, nfields));
		done += part;
	}
	char took[DP_DURATION_TEXT];
	dp_target_log(t, "%zu events registered in %s", n, dp_duration(dp_now_ns() - begin, took));
	return NULL;
}

struct dp_error *dp_target_sink_park(struct dp_target *t, const uint64_t *events, size_t n)
{
	dp_auto_view struct dp_sink_view v = {0};
	DP_TRY(dp_sink_view_ready(t, &v));
	for (size_t done = 0; done < n;) {
		auto_request struct request r = {0};
		const size_t part = n - done < v.head.max_events ? n - done : v.head.max_events;
		if (!part)
			return dp_error(DP_TAG_SINK, "the data of the LTTng sink in the process is damaged");
		DP_TRY(request_create(part, 0, &r));
		for (size_t i = 0; i < part; i++)
			r.event[r.nevents++] = (struct dp_sink_event){.release = 1, .event = events[done + i]};
		DP_TRY(ask(&v, &r));
		done += part;
	}
	return NULL;
}
