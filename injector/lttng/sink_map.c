/* SPDX-License-Identifier: MIT */
/*
 * Maps the sink's two regions in the target.
 *
 * Text and data are at a fixed distance (agent/call.h). One thread makes the mappings while the others run, if that is possible
 * (dp_not_live()). Then the tool fills them through its own descriptor of the memfd; the magic word comes last. A region without
 * it was left by a killed tool; nothing runs in it, and the next tool removes it.
 */
#include "base/duration.h"
#include "injector/lttng/sink.h"
#include "injector/target/group/leftover.h"
#include "injector/target/memfd.h"
#include "injector/tracee/proc/limits.h"

#include "injector/tracee/proc/proc.h"

#include "agent/call.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define FAR_LOW    UINT64_C(0x010000000000)
#define FAR_HIGH   UINT64_C(0x4f0000000000)
#define MAX_EVENTS 1024u
#define MAX_FIELDS 20480u
#define STACK      (UINT64_C(256) << 10)
#define SCRATCH    (UINT64_C(1) << 20)
#define MAP_TRIES  20
#define LATE_TRIES 3 /* each may take seconds */
#define BORROW_NS  UINT64_C(1000000000)
#define ROOM       64u /* offset of the script in the page below the stack; the name is before it */

extern const uint8_t dp_sink_so[], dp_sink_so_end[];

struct plan {
	struct dp_agent_image agent;
	struct dp_sink head;
	uint64_t guard; /* the page below the call stack */
	int fd;         /* the tool's own */
	int64_t there;  /* the target's, of the same file */
	bool locked;
	bool mapped_guard, mapped_text, mapped_data, mapped_stack;
};

_Static_assert(ROOM + DP_SCRIPT_ROOM <= DP_PAGE && sizeof(DP_MEMFD_NAME) <= ROOM, "both fit into the page");

/* ---- layout ------------------------------------------------------------------------------------------------------------------
 */

static bool is_free(const struct dp_sink_view *v, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < dp_image_nmaps(v->image); i++) {
		const struct dp_map *m = dp_image_map(v->image, i);
		if (m->start.v < end && start < m->end.v)
			return false;
	}
	return true;
}

static struct dp_error *choose_place(const struct dp_sink_view *v, uint64_t size, uint64_t *ret)
{
	for (int i = 0; i < 100; i++) {
		uint64_t r = dp_now_ns() * DP_HASH_MULT;
		if (getrandom(&r, sizeof(r), GRND_NONBLOCK) != (ssize_t)sizeof(r))
			r ^= r >> 29;
		const uint64_t at = dp_page_down(FAR_LOW + r % (FAR_HIGH - FAR_LOW - size));
		if (!is_free(v, at - DP_PAGE, at + size + DP_PAGE))
			continue;
		*ret = at;
		return NULL;
	}
	return dp_error(DP_TAG_NO_SPACE, "no free addresses for the LTTng sink in process %d", v->process.pid);
}

/* Offsets in the data region. Pages that are never written cost no memory. */
static void lay_out(struct dp_sink *s)
{
	uint64_t at = UINT64_C(1) << 20; /* before it: the head, and the frames of calls */
	s->so_offset = at;
	at = dp_page_up(at + s->so_size);
	s->max_events = MAX_EVENTS;
	s->max_fields = MAX_FIELDS;
	s->events_offset = at;
	at = dp_page_up(at + MAX_EVENTS * sizeof(struct dp_sink_event));
	s->fields_offset = at;
	at = dp_page_up(at + MAX_FIELDS * sizeof(struct dp_sink_field));
	s->scratch_offset = at;
	s->scratch_size = SCRATCH;
	s->stack_offset = at + SCRATCH + DP_PAGE;
	s->stack_size = STACK;
	s->size = s->stack_offset + STACK;
}

static struct dp_error *find_symbols(struct dp_sink_view *v, struct dp_sink *s)
{
	DP_TRY(dp_sink_symbol(v, "dlopen", &s->dlopen));
	DP_TRY(dp_sink_symbol(v, "dlsym", &s->dlsym));
	DP_TRY(dp_sink_symbol(v, "dlerror", &s->dlerror));
	DP_TRY(dp_sink_symbol(v, "pthread_self", &s->pthread_self));
	DP_TRY(dp_sink_symbol(v, "__register_atfork", &s->register_atfork));
	DP_TRY(dp_sink_symbol(v, "__cxa_finalize", &s->finalize));
	return dp_sink_symbol(v, "pthread_detach", &s->pthread_detach);
}

/* If the program has locked memory, it may have used mlockall(MCL_FUTURE), and a new mapping is populated at once. */
static bool locks_memory(const struct dp_sink_view *v)
{
	struct dp_buf status;
	dp_buf_init(&status);
	const bool locks = dp_proc_slurp(&status, "/proc/%d/task/%d/status", v->process.pid, v->process.alive) &&
	                   dp_status_long(dp_buf_str(&status), "VmLck", 0) > 0;
	dp_buf_fini(&status);
	return locks;
}

static struct dp_error *make_plan(struct dp_sink_view *v, struct plan *p)
{
	struct dp_sink *s = &p->head;
	const uint64_t so_size = (uint64_t)((uintptr_t)dp_sink_so_end - (uintptr_t)dp_sink_so);
	if (!so_size)
		return dp_error(DP_TAG_SINK, "this dynprobe was built without the LTTng sink (liblttng-ust was not found)");
	DP_TRY(dp_agent_image_load(&p->agent));
	*s = (struct dp_sink){.abi = DP_SINK_ABI, .so_size = so_size};
	DP_TRY(find_symbols(v, s));
	lay_out(s);
	s->text_size = dp_page_up(p->agent.size);
	if (s->text_size > DP_SINK_DATA / 2)
		return dp_error(DP_TAG_INTERNAL, "the agent is too large for the LTTng sink");
	DP_TRY(choose_place(v, DP_SINK_DATA + s->size, &s->text));
	s->call = s->text + p->agent.call;
	s->loader = s->text + p->agent.loader;
	s->owner_pid = (uint64_t)v->process.ns_pid;
	s->owner_start = v->process.start_time;
	v->data = s->text + DP_SINK_DATA;
	p->guard = v->data + s->stack_offset - DP_PAGE;
	p->locked = locks_memory(v);
	return NULL;
}

/* ---- in the target -----------------------------------------------------------------------------------------------------------
 */

static struct dp_error *map_at(struct dp_borrow *b, uint64_t at, uint64_t size, int prot, int flags, int64_t fd, uint64_t offset)
{
	int64_t got = 0;
	const uint64_t args[6] = {at, size, (uint64_t)prot, (uint64_t)flags | MAP_FIXED_NOREPLACE, (uint64_t)fd, offset};
	DP_TRY(dp_remote_call(b, "mmap", SYS_mmap, args, &got));
	if ((uint64_t)got == at)
		return NULL;
	dp_error_destroy(dp_remote_call(b, "munmap", SYS_munmap, (const uint64_t[6]){(uint64_t)got, size}, &got));
	return dp_error(DP_TAG_CHANGED, "the kernel did not map memory at the requested address in the target");
}

/* The name must be in the target's memory: in the guard page below the call stack. */
static struct dp_error *make_memfd(struct dp_sink_view *v, struct dp_borrow *b, struct plan *p, int64_t *fd)
{
	static const char name[] = DP_MEMFD_NAME;
	struct dp_opening o = {0};
	int64_t ignored;
	DP_TRY(map_at(b, p->guard, DP_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	p->mapped_guard = true;
	DP_TRY(dp_mem_write_text(&v->process, dp_borrow_tid(b), dp_addr_of(p->guard), name, sizeof(name), NULL));
	DP_TRY(dp_remote_memfd(b, p->guard + ROOM, p->guard, &o, fd));
	return dp_remote_call(b, "mprotect", SYS_mprotect, (const uint64_t[6]){p->guard, DP_PAGE, PROT_READ}, &ignored);
}

static struct dp_error *open_here(const struct dp_sink_view *v, pid_t tid, int64_t fd, struct plan *p)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", v->process.pid, tid, (int)fd);
	p->fd = open(path, O_RDWR | O_CLOEXEC);
	if (p->fd < 0)
		return dp_error_sys(DP_TAG_SYS, "opening the target's memfd through %s", path);
	return dp_file_size(p->fd, p->head.text_size + p->head.size);
}

static struct dp_error *map_data(const struct dp_sink_view *v, struct dp_borrow *b, int64_t fd, const struct plan *p)
{
	const uint64_t size = p->guard - v->data;
	const int prot = PROT_READ | PROT_WRITE;
	int64_t got;
	if (!p->locked)
		return map_at(b, v->data, size, prot, MAP_SHARED, fd, p->head.text_size);
	DP_TRY(map_at(b, v->data, size, PROT_NONE, MAP_SHARED, fd, p->head.text_size));
	DP_TRY(dp_remote_call(b, "munlock", SYS_munlock, (const uint64_t[6]){v->data, size}, &got));
	return dp_remote_call(b, "mprotect", SYS_mprotect, (const uint64_t[6]){v->data, size, (uint64_t)prot}, &got);
}

/* Maps the stack last: a half-made sink is found by its data. */
static struct dp_error *map_all(const struct dp_sink_view *v, struct dp_borrow *b, int64_t fd, struct plan *p)
{
	const struct dp_sink *s = &p->head;
	const uint64_t stack = p->guard + DP_PAGE;
	DP_TRY(map_at(b, s->text, s->text_size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0));
	p->mapped_text = true;
	DP_TRY(map_data(v, b, fd, p));
	p->mapped_data = true;
	DP_TRY(map_at(b, stack, s->stack_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, s->text_size + s->stack_offset));
	p->mapped_stack = true;
	return NULL;
}

static void unmap(struct dp_borrow *b, bool *mapped, uint64_t at, uint64_t size)
{
	int64_t ignored;
	if (!*mapped)
		return;
	struct dp_error *err = dp_remote_call(b, "munmap", SYS_munmap, (const uint64_t[6]){at, size}, &ignored);
	*mapped = err != NULL;
	dp_error_destroy(err);
}

static void close_there(struct dp_borrow *b, struct plan *p)
{
	int64_t ignored;
	struct dp_error *err =
	        p->there < 0 ? NULL : dp_remote_call(b, "close", SYS_close, (const uint64_t[6]){(uint64_t)p->there}, &ignored);
	if (!err)
		p->there = -1;
	dp_error_destroy(err);
}

static void unmap_all(const struct dp_sink_view *v, struct dp_borrow *b, struct plan *p)
{
	unmap(b, &p->mapped_stack, p->guard + DP_PAGE, p->head.stack_size);
	unmap(b, &p->mapped_data, v->data, p->guard - v->data);
	unmap(b, &p->mapped_text, p->head.text, p->head.text_size);
	unmap(b, &p->mapped_guard, p->guard, DP_PAGE);
}

/* A thread that restored itself in the middle has left what it had made. */
static void undo_earlier(const struct dp_sink_view *v, struct dp_borrow *b, struct plan *p)
{
	if (!dp_leftover_is_ours(v->t, p->there))
		p->there = -1;
	close_there(b, p);
	unmap_all(v, b, p);
	if (p->fd >= 0)
		close(dp_take(p->fd, -1));
}

static struct dp_error *map_on(struct dp_sink_view *v, struct dp_borrow *b, struct plan *p)
{
	undo_earlier(v, b, p);
	struct dp_error *err = make_memfd(v, b, p, &p->there);
	if (!err)
		err = open_here(v, dp_borrow_tid(b), p->there, p);
	if (!err)
		err = map_all(v, b, p->there, p);
	if (err)
		unmap_all(v, b, p);
	close_there(b, p);
	return err;
}

/* ---- one attempt, and several ---------------------------------------------------------------------------------------------- */

typedef struct dp_error *action(struct dp_sink_view *v, struct dp_borrow *b, struct plan *p);

static struct dp_error *and_end(struct dp_error *err, struct dp_borrow *b, uint64_t *held_ns)
{
	struct dp_error *end = dp_borrow_end(b, held_ns);
	if (!err)
		return end;
	dp_error_destroy(end);
	return err;
}

static struct dp_error *do_held(struct dp_sink_view *v, struct dp_freeze *f, action *act, struct plan *p)
{
	struct dp_borrow *b = NULL;
	DP_TRY(dp_borrow_held(v->t, f, &b));
	return and_end(act(v, b, p), b, NULL);
}

static struct dp_error *do_frozen(struct dp_sink_view *v, action *act, struct plan *p, uint64_t *held_ns)
{
	struct dp_freeze f = {0};
	struct dp_error *err = dp_freeze_with_retry(v->t, &f);
	if (!err) {
		err = do_held(v, &f, act, p);
		dp_thaw_all(&f);
	}
	*held_ns = f.end_ns - f.begin_ns;
	return err;
}

static struct dp_error *do_live(struct dp_sink_view *v, action *act, struct plan *p, uint64_t *held_ns)
{
	struct dp_borrow *b = NULL;
	DP_TRY(dp_borrow_one(v->t, BORROW_NS, &b));
	return and_end(act(v, b, p), b, held_ns);
}

static struct dp_error *do_once(struct dp_sink_view *v, action *act, struct plan *p)
{
	struct dp_priority priority;
	uint64_t held = 0;
	if (v->t->launch)
		return do_held(v, dp_launch_freeze(v->t->launch), act, p);
	const bool live = !dp_not_live(v->t);
	dp_priority_raise(&priority);
	struct dp_error *err = live ? do_live(v, act, p, &held) : do_frozen(v, act, p, &held);
	dp_priority_restore(&priority);
	if (held > v->pause_ns)
		v->pause_ns = held;
	char text[DP_DURATION_TEXT];
	dp_target_log(v->t, "the LTTng sink's mappings: %s held for %s", live ? "a thread" : "threads", dp_duration(held, text));
	return err;
}

/* On a busy machine a thread may have no processor for all the time that it is waited for. */
static bool passes(const struct dp_error *err, int tried)
{
	return err->tag == DP_TAG_NO_THREAD ? tried < MAP_TRIES : dp_remote_is_unfinished(err) && tried < LATE_TRIES;
}

static struct dp_error *do_patiently(struct dp_sink_view *v, action *act, struct plan *p)
{
	for (int tried = 0;; tried++) {
		struct dp_error *err = do_once(v, act, p);
		if (!err || !passes(err, tried))
			return err;
		dp_error_destroy(err); /* a moment later a thread is elsewhere */
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
}

/* Includes the stack and the page below it, which are in the data's range. */
static struct dp_error *unmap_on(struct dp_sink_view *v, struct dp_borrow *b, struct plan *p)
{
	bool text = true, data = true;
	(void)p;
	unmap(b, &text, v->head.text, v->head.text_size);
	unmap(b, &data, v->data, v->head.size);
	return NULL;
}

struct dp_error *dp_sink_unmap(struct dp_sink_view *v)
{
	DP_TRY(do_patiently(v, unmap_on, NULL));
	v->data = 0;
	return NULL;
}

static struct dp_error *fill(const struct plan *p)
{
	const struct dp_sink *s = &p->head;
	const uint64_t magic = DP_SINK_MAGIC;
	DP_TRY(dp_file_write(p->fd, p->agent.bytes, p->agent.size, 0));
	DP_TRY(dp_file_write(p->fd, dp_sink_so, s->so_size, s->text_size + s->so_offset));
	DP_TRY(dp_file_write(p->fd, s, sizeof(*s), s->text_size));
	return dp_file_write(p->fd, &magic, sizeof(magic), s->text_size + offsetof(struct dp_sink, magic));
}

struct dp_error *dp_sink_map(struct dp_sink_view *v)
{
	struct plan p = {.fd = -1, .there = -1};
	struct dp_error *err = make_plan(v, &p);
	if (!err)
		err = do_patiently(v, map_on, &p);
	if (!err)
		err = fill(&p);
	if (p.fd >= 0)
		close(p.fd);
	if (err) {
		v->data = 0;
		return err;
	}
	return dp_sink_head(v);
}
