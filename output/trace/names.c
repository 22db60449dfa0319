/* SPDX-License-Identifier: MIT */
#include "output/trace/names.h"

#include "agent/abi.h"
#include "base/arena.h"
#include "base/text_hash.h"
#include "output/trace/modules.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

struct code { /* an address of an image */
	struct {
		uint64_t image, pc, exact; /* exact: 0 or 1, or BELOW_POINTER; then image is a pid */
	} key;
	struct dp_code_name name;
	UT_hash_handle hh;
};
enum { BELOW_POINTER = 2 }; /* the frame above such an address was found by its frame pointer */

struct process { /* from `ns` on */
	uint64_t pid, ns, image;
	const char *exe;
};

struct thread {
	struct {
		uint64_t pid, tid;
	} key;
	pid_t inner_pid, inner_tid;
	UT_hash_handle hh;
};

#define LATEST 512u /* a power of two */

struct latest { /* an address that was asked for, and its name */
	uint64_t pc;
	bool exact;
	const struct dp_code_name *name;
};

struct image {
	uint64_t serial, pid; /* pid: of the first process that had it */
	struct dp_trace_names *names;
	struct dp_trace_modules modules;
	struct dp_image *image; /* NULL: not made yet */
	struct latest *latest;  /* LATEST of them; NULL: there is no image, or no memory */
	bool named;             /* it has modules or addresses */
	UT_hash_handle hh;
};

struct dp_trace_names {
	struct dp_arena arena;
	struct code *code;
	struct thread *thread;
	struct image *image;
	struct process *process; /* by pid and time */
	size_t nprocesses, capacity;
	bool complete, marks;
};

/* ---- parsing --------------------------------------------------------------------------------------------------------------- */

static bool number(const json_t *line, const char *key, uint64_t *ret)
{
	const json_t *v = json_object_get(line, key);
	*ret = (uint64_t)json_integer_value(v);
	return json_is_integer(v) && json_integer_value(v) >= 0;
}

static bool hex(const json_t *line, const char *key, uint64_t *ret)
{
	const char *text = json_string_value(json_object_get(line, key));
	char *end = NULL;
	*ret = text ? strtoull(text, &end, 16) : 0;
	return text && *text && !*end;
}

static const char *text_of(struct dp_trace_names *n, const json_t *line, const char *key)
{
	const json_t *v = json_object_get(line, key);
	return json_is_string(v) ? dp_arena_copy(&n->arena, json_string_value(v), json_string_length(v)) : NULL;
}

static struct image *image_of(struct dp_trace_names *n, const json_t *line)
{
	uint64_t serial;
	struct image *i;
	if (!number(line, "image", &serial))
		return NULL;
	HASH_FIND(hh, n->image, &serial, sizeof(serial), i);
	if (i || !(i = dp_arena_alloc(&n->arena, sizeof(*i))))
		return i;
	i->serial = serial;
	i->names = n;
	HASH_ADD(hh, n->image, serial, sizeof(i->serial), i);
	return i;
}

static bool take_process(struct dp_trace_names *n, const json_t *line)
{
	struct process p = {0};
	if (!number(line, "pid", &p.pid) || !number(line, "ns", &p.ns) || !image_of(n, line))
		return false;
	number(line, "image", &p.image);
	struct image *i = image_of(n, line);
	i->pid = i->pid ? i->pid : p.pid;
	p.exe = text_of(n, line, "exe");
	if (n->nprocesses == n->capacity) {
		const size_t capacity = n->capacity ? 2 * n->capacity : 16;
		struct process *grown = reallocarray(n->process, capacity, sizeof(*grown));
		if (!grown)
			return false;
		n->process = grown;
		n->capacity = capacity;
	}
	n->process[n->nprocesses++] = p;
	return true;
}

static bool take_thread(struct dp_trace_names *n, const json_t *line)
{
	uint64_t pid, tid, inner_pid, inner_tid;
	struct thread *t = dp_arena_alloc(&n->arena, sizeof(*t));
	if (!t || !number(line, "pid", &pid) || !number(line, "tid", &tid) || !number(line, "inner_pid", &inner_pid) ||
	    !number(line, "inner_tid", &inner_tid))
		return false;
	t->key.pid = pid;
	t->key.tid = tid;
	t->inner_pid = (pid_t)inner_pid;
	t->inner_tid = (pid_t)inner_tid;
	HASH_ADD(hh, n->thread, key, sizeof(t->key), t);
	return true;
}

/* Which image an event is of is not always known: the frames above an address are marked in all images of the process. */
static struct code *add_code(struct dp_trace_names *n, const json_t *line, uint64_t exact)
{
	struct code *c = dp_arena_alloc(&n->arena, sizeof(*c));
	struct image *i = image_of(n, line);
	if (!c || !i || !hex(line, "pc", &c->key.pc))
		return NULL;
	i->named = true;
	c->key.image = exact == BELOW_POINTER ? i->pid : i->serial;
	c->key.exact = exact;
	HASH_ADD(hh, n->code, key, sizeof(c->key), c);
	return c;
}

static bool take_frame(struct dp_trace_names *n, const json_t *line)
{
	struct code *c = add_code(n, line, json_is_true(json_object_get(line, "exact")));
	if (!c)
		return false;
	c->name.symbol = text_of(n, line, "symbol");
	c->name.readable = text_of(n, line, "readable");
	c->name.function = text_of(n, line, "function");
	c->name.readable = c->name.readable ? c->name.readable : c->name.symbol;
	c->name.signal_return = json_is_true(json_object_get(line, "signal_return"));
	c->name.begins_thread = json_is_true(json_object_get(line, "begins_thread"));
	if (c->name.symbol && c->name.function)
		return true;
	HASH_DEL(n->code, c);
	return false;
}

static bool take_module(struct dp_trace_names *n, const json_t *line)
{
	struct image *i = image_of(n, line);
	if (!i || !dp_trace_modules_add(&i->modules, text_of(n, line, "path"), text_of(n, line, "build_id")))
		return false;
	return i->named = true;
}

static bool take_map(struct dp_trace_names *n, const json_t *line)
{
	struct image *i = image_of(n, line);
	uint64_t module, inode;
	return i && number(line, "module", &module) && number(line, "inode", &inode) &&
	       dp_trace_modules_map(&i->modules, module, text_of(n, line, "range"), inode);
}

static bool take_line(struct dp_trace_names *n, const json_t *line)
{
	const char *type = json_string_value(json_object_get(line, "type"));
	if (!type)
		return false;
	if (!strcmp(type, "end"))
		return n->complete = true;
	if (!strcmp(type, "process"))
		return take_process(n, line);
	if (!strcmp(type, "thread"))
		return take_thread(n, line);
	if (!strcmp(type, "frame"))
		return take_frame(n, line);
	if (!strcmp(type, "module"))
		return take_module(n, line);
	if (!strcmp(type, "map"))
		return take_map(n, line);
	if (strcmp(type, "by_pointer") != 0)
		return true; /* of a later version */
	n->marks = true;
	return add_code(n, line, BELOW_POINTER);
}

static int by_pid_and_time(const void *x, const void *y)
{
	const struct process *a = x, *b = y;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->ns > b->ns) - (a->ns < b->ns);
}

static bool is_named(const struct dp_trace_names *n, uint64_t serial)
{
	const struct image *i;
	HASH_FIND(hh, n->image, &serial, sizeof(serial), i);
	return i && i->named;
}

/* With --pending several images of a process are in use at once: it has the newest of them of which anything is named. */
static void settle(struct dp_trace_names *n)
{
	for (size_t k = 1; k < n->nprocesses; k++) {
		struct process *p = &n->process[k], *last = p - 1;
		if (p->pid == last->pid && is_named(n, last->image) && (p->image < last->image || !is_named(n, p->image)))
			p->image = last->image;
	}
}

struct dp_error *dp_trace_names_parse(const char *text, size_t len, struct dp_trace_names **ret)
{
	struct dp_trace_names *n = calloc(1, sizeof(*n));
	if (!n)
		return dp_error_nomem();
	for (const char *at = text, *end = text + len, *line; at < end; at = line + 1) {
		json_error_t why;
		line = memchr(at, '\n', (size_t)(end - at));
		json_t *json = line ? json_loadb(at, (size_t)(line - at), 0, &why) : NULL;
		const bool taken = json && !n->complete && take_line(n, json);
		json_decref(json);
		if (!taken) {
			n->complete = false;
			break;
		}
	}
	if (n->arena.failed) {
		dp_trace_names_destroy(n);
		return dp_error_nomem();
	}
	if (n->nprocesses)
		qsort(n->process, n->nprocesses, sizeof(*n->process), by_pid_and_time);
	settle(n);
	*ret = n;
	return NULL;
}

struct dp_trace_names *dp_trace_names_destroy(struct dp_trace_names *n)
{
	if (!n)
		return NULL;
	for (struct image *i = n->image; i; i = i->hh.next) {
		dp_image_destroy(i->image);
		free(i->latest);
		dp_trace_modules_fini(&i->modules);
	}
	HASH_CLEAR(hh, n->image);
	HASH_CLEAR(hh, n->code);
	HASH_CLEAR(hh, n->thread);
	dp_arena_fini(&n->arena);
	free(n->process);
	free(n);
	return NULL;
}

/* ---- looking up ------------------------------------------------------------------------------------------------------------ */

static const struct code *find_code(const struct dp_trace_names *n, uint64_t image, uint64_t pc, uint64_t exact)
{
	struct code *c, key;
	memset(&key, 0, sizeof(key));
	key.key.image = image;
	key.key.pc = pc;
	key.key.exact = exact;
	HASH_FIND(hh, n->code, &key.key, sizeof(key.key), c);
	return c;
}

/* An address that was seen only as the other kind is named by that: aggregations treat every caller as a return address. */
static const struct code *find_either(const struct image *i, uint64_t pc, bool exact)
{
	const struct code *c = find_code(i->names, i->serial, pc, exact);
	return c ? c : find_code(i->names, i->serial, pc, !exact);
}

/*
 * Threads are recorded one after the other, so an event from before a library was loaded may have been written after that: its
 * frames are then named in another image of the process.
 */
static const struct dp_code_name *search_name(const struct image *i, uint64_t pc, bool exact)
{
	const struct code *c = find_either(i, pc, exact);
	for (const struct image *k = i->names->image; k && !c && i->pid; k = k->hh.next)
		c = k != i && k->pid == i->pid ? find_either(k, pc, exact) : NULL;
	return c ? &c->name : NULL;
}

/* Few addresses make up most backtraces. */
static const struct dp_code_name *find_name(uint64_t pc, bool exact, void *data)
{
	struct image *i = data;
	if (!i->latest)
		return search_name(i, pc, exact);
	struct latest *l = &i->latest[(pc * UINT64_C(0x9e3779b97f4a7c15) >> 50 ^ exact) & (LATEST - 1)];
	if (!l->name || l->pc != pc || l->exact != exact)
		*l = (struct latest){pc, exact, search_name(i, pc, exact)};
	return l->name;
}

static struct dp_image *make_image(struct image *i)
{
	if (i->image)
		return i->image;
	const struct dp_code_names names = {find_name, i};
	struct dp_error *err = dp_trace_modules_image(&i->modules, &i->image);
	dp_error_destroy(err); /* without an image addresses stay numbers */
	if (!err) {
		i->latest = calloc(LATEST, sizeof(*i->latest));
		dp_image_set_names(i->image, &names);
	}
	return i->image;
}

/* The number of processes that are not after the key. */
static size_t count_until(const struct dp_trace_names *n, const struct process *key)
{
	size_t begin = 0, end = n->nprocesses;
	while (begin < end) {
		const size_t middle = begin + (end - begin) / 2;
		if (by_pid_and_time(&n->process[middle], key) <= 0)
			begin = middle + 1;
		else
			end = middle;
	}
	return begin;
}

/* The process that had the pid at that time; before its first event, that of the first one. */
static const struct process *process_at(const struct dp_trace_names *n, pid_t pid, uint64_t ns, uint64_t *until)
{
	const struct process key = {.pid = (uint64_t)pid, .ns = ns}, *p = n->process;
	size_t next = count_until(n, &key);
	if (!next || p[next - 1].pid != key.pid)
		next++;
	*until = next < n->nprocesses && p[next].pid == key.pid ? p[next].ns : UINT64_MAX;
	return next <= n->nprocesses && p[next - 1].pid == key.pid ? &p[next - 1] : NULL;
}

void dp_trace_names_find(struct dp_trace_names *n, pid_t pid, pid_t tid, uint64_t ns, struct dp_trace_thread *ret)
{
	const uint64_t serials = 0;
	struct image *i = NULL;
	struct thread *t, key;
	*ret = (struct dp_trace_thread){.until = UINT64_MAX};
	const struct process *p = process_at(n, pid, ns, &ret->until);
	if (p && p->image != serials)
		HASH_FIND(hh, n->image, &p->image, sizeof(p->image), i);
	if (i)
		ret->image = make_image(i);
	ret->exe = p ? p->exe : NULL;
	memset(&key, 0, sizeof(key));
	key.key.pid = (uint64_t)pid;
	key.key.tid = (uint64_t)tid;
	HASH_FIND(hh, n->thread, &key.key, sizeof(key.key), t);
	if (!t)
		return;
	ret->inner_pid = t->inner_pid;
	ret->inner_tid = t->inner_tid;
}

bool dp_trace_names_marks(const struct dp_trace_names *n)
{
	return n->marks;
}

void dp_trace_names_mark(const struct dp_trace_names *n, const struct dp_image *image, uint8_t *frames, size_t count)
{
	const struct image *of = NULL;
	for (const struct image *i = n->image; i && !of; i = i->hh.next)
		of = i->image == image ? i : NULL;
	for (size_t i = 0; of && i + 1 < count; i++) {
		uint64_t below, frame;
		memcpy(&below, frames + i * sizeof(below), sizeof(below));
		memcpy(&frame, frames + (i + 1) * sizeof(frame), sizeof(frame));
		below = dp_frame_pc(below);
		if (!frame || !find_code(n, of->pid, below, BELOW_POINTER))
			continue;
		frame |= DP_FRAME_BY_POINTER;
		memcpy(frames + (i + 1) * sizeof(frame), &frame, sizeof(frame));
	}
}
