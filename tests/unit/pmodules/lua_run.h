/* SPDX-License-Identifier: MIT */
/*
 * A hand-made snapshot, and Lua modules that run on it from start to end. The functions are in the header, because tests of one
 * room share their helper_*.c, and the tests that read files need no host.
 */
#ifndef TEST_LUA_RUN_H
#define TEST_LUA_RUN_H

#include "fake_debug_ctx.h"
#include "pmodules/host/host.h"
#include "pmodules/load/load.h"

#ifndef LUA_RUN_BARE /* a fuzzer has its own checks */
#include <criterion/criterion.h>
#endif
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

struct lua_run {
	struct dp_host *host;
	struct dp_snapshot *snapshot;
	char log[1 << 16]; /* "error: text\n" ... */
	size_t used;
};

/* A crash of thread 101 in boom() of /bin/crash, thread 102 asleep, a global, a thread-local, maps, some memory. */
static inline struct dp_snapshot *lua_snapshot(void);
/* A host; `options` may be NULL. */
static inline void lua_run_init(struct lua_run *r, const struct dp_host_options *options);
static inline void lua_run_fini(struct lua_run *r);
/* Loads a module's text; the error's message is put into the log. */
static inline bool lua_load(struct lua_run *r, const char *text);
static inline bool lua_load_file(struct lua_run *r, const char *name); /* of the folder lua/ beside this file */
/* preattach, attach, threads, globals, postattach, end. */
static inline void lua_take(struct lua_run *r);
/* An attribute as a text; NULL if there is none. */
static inline const char *lua_attribute(const struct lua_run *r, const char *key, char buf[64]);
static inline size_t lua_notes(const struct dp_snap_note *list);
/* Runs the file's module, which must finish without an error and set the attribute "passed". */
static inline void lua_expect(const char *name);
/* The module is refused, or logs an error with these words in it. */
static inline void lua_expect_error(const char *text, const char *words);

/* ---- the snapshot ------------------------------------------------------------------------------------------------------- */

static struct dp_snap_variable *variable(struct dp_snapshot *s, struct dp_snap_variable **list, struct dp_snap_variable *owner,
                                         const char *name, const char *type)
{
	struct dp_snap_variable *v = dp_snapshot_variable(s, list, owner);
	v->name = name;
	v->type = type;
	v->base_type = type;
	v->index = -1;
	return v;
}

static void int_variable(struct dp_snapshot *s, struct dp_snap_variable **list, struct dp_snap_variable *owner, const char *name,
                         int64_t value)
{
	struct dp_snap_variable *v = variable(s, list, owner, name, "int");
	v->kind = DP_VAR_LL;
	v->number = (uint64_t)value;
	v->address = 0x7000;
	v->size = 4;
}

static void string_variable(struct dp_snapshot *s, struct dp_snap_variable **list)
{
	struct dp_snap_variable *v = variable(s, list, NULL, "message", "char *");
	v->base_type = "char";
	v->kind = DP_VAR_REFERENCE;
	v->number = 0x8010;
	v->is_string = true;
	v->text = "hello";
	v->text_size = 5;
}

static struct dp_snap_variable *place(struct dp_snap_frame *f)
{
	struct dp_snap_variable *v;
	DL_FOREACH(f->variables, v)
	{
		v->frame = f;
		v->thread = f->thread;
		for (struct dp_snap_variable *c = v->children; c; c = c->next) {
			c->frame = f;
			c->thread = f->thread;
		}
	}
	return f->variables;
}

/* boom(int depth, char *message): a struct, an unreadable int, numbers of all kinds. */
static void boom_variables(struct dp_snapshot *s, struct dp_snap_frame *f)
{
	int_variable(s, &f->variables, NULL, "depth", -3);
	f->variables->place = DP_VAR_PARAMETER;
	f->variables->index = 0;
	string_variable(s, &f->variables);
	f->variables->prev->place = DP_VAR_PARAMETER;
	f->variables->prev->index = 1;
	struct dp_snap_variable *c = variable(s, &f->variables, NULL, "c", "struct crash");
	c->kind = DP_VAR_TUPLE;
	c->base_type = "crash";
	c->address = 0x7100;
	int_variable(s, &c->children, c, "code", 7);
	int_variable(s, &c->children, c, "line", 42);
	struct dp_snap_variable *gone = variable(s, &f->variables, NULL, "gone", "long");
	gone->kind = DP_VAR_LL;
	gone->state = DP_VAR_ABSENT;
	gone->why = "optimized out";
	struct dp_snap_variable *z = variable(s, &f->variables, NULL, "z", "double complex");
	z->kind = DP_VAR_CDBL;
	z->real = 1.5;
	z->imaginary = -2.5;
	struct dp_snap_variable *big = variable(s, &f->variables, NULL, "big", "unsigned long");
	big->kind = DP_VAR_ULL;
	big->number = UINT64_C(0xfedcba9876543210);
	place(f);
}

static struct dp_snap_frame *frame(struct dp_snapshot *s, struct dp_snap_thread *t, const char *symbol, int line)
{
	struct dp_snap_frame *f = dp_snapshot_frame(s, t);
	f->symbol = symbol;
	f->object = "/bin/crash";
	f->path = "src/crash.c";
	f->line = line;
	f->line_resolved = true;
	f->pc = 0x401000u + (uint64_t)line;
	f->sp = 0x7fff0000;
	return f;
}

static void faulting_thread(struct dp_snapshot *s)
{
	static const struct dp_snap_siginfo si = {.number = SIGSEGV,
	                                          .code = 1,
	                                          .address = 0x10,
	                                          .has_address = true,
	                                          .name = "SIGSEGV",
	                                          .reason = "address not mapped to object"};
	static struct dp_frame_regs regs = {.value = {[0] = 0x11, [7] = 0x7fff0000, [16] = 0x40100a}, .known = 0x10081};
	struct dp_snap_thread *t = dp_snapshot_thread(s, 101);
	t->name = "main";
	t->state = 'R';
	t->is_fault = t->has_registers = true;
	t->registers = regs;
	struct dp_snap_frame *f = frame(s, t, "boom", 10);
	f->is_fault = true;
	f->siginfo = &si;
	f->registers = &regs;
	f->instruction = "mov (%rdi), %eax";
	boom_variables(s, f);
	frame(s, t, "middle", 20)->is_tail = true;
	frame(s, t, "main", 30);
	struct dp_snap_variable *tls = variable(s, &t->variables, NULL, "errno_copy", "int");
	tls->kind = DP_VAR_LL;
	tls->place = DP_VAR_TLS;
	tls->thread = t;
	tls->object = "/bin/crash";
	tls->unit = "src/crash.c";
}

static void second_thread(struct dp_snapshot *s)
{
	struct dp_snap_thread *t = dp_snapshot_thread(s, 102);
	struct dp_snap_kframe *k = dp_arena_alloc(&s->arena, sizeof(*k));
	t->name = "worker";
	t->state = 'S';
	k->symbol = "futex_wait";
	DL_APPEND(t->kframes, k);
	struct dp_snap_frame *f = frame(s, t, "wait_for_work", 40);
	int_variable(s, &f->variables, NULL, "spins", 12);
	place(f);
	frame(s, t, "main", 50);
}

static void maps_and_memory(struct dp_snapshot *s)
{
	static const uint8_t bytes[32] = {1, 2, 3, 4,    5,    6,   7,   0x88, 0,   0,   0, 0,
	                                  0, 0, 0, 0xf0, 0x3f, 'h', 'e', 'l',  'l', 'o', 0, 'x'};
	static struct dp_snap_memory memory[] = {{0x8000, sizeof(bytes), bytes}};
	static struct dp_snap_map maps[] = {
	        {.start = 0x400000, .end = 0x402000, .read = true, .exec = true, .inode = 9, .path = "/bin/crash"},
	        {.start = 0x8000, .end = 0x9000, .read = true, .write = true, .path = ""},
	        {.start = 0x7ff00000, .end = 0x7ff01000, .is_guard = true, .path = ""},
	};
	s->memory = memory;
	s->nmemory = 1;
	s->maps = maps;
	s->nmaps = 2;
}

static inline struct dp_snapshot *lua_snapshot(void)
{
	struct dp_snapshot *s = dp_snapshot_create();
	cr_assert(s);
	s->mode = "stop";
	s->pid = 101;
	s->application = "crash";
	s->process_state = 'S';
	faulting_thread(s);
	second_thread(s);
	struct dp_snap_variable *g = variable(s, &s->globals, NULL, "counter", "int");
	g->kind = DP_VAR_LL;
	g->number = 99;
	g->place = DP_VAR_GLOBAL;
	g->object = "/bin/crash";
	g->unit = "src/crash.c";
	maps_and_memory(s);
	return s;
}

/* ---- runs --------------------------------------------------------------------------------------------------------------- */

static void keep_log(enum dp_log_level level, const char *module, const char *text, void *data)
{
	static const char *const name[] = {"debug", "info", "warning", "error", "print"};
	struct lua_run *r = data;
	int n = snprintf(r->log + r->used, sizeof(r->log) - r->used, "%s: [%s] %s\n", name[level], module ? module : "", text);
	size_t left = sizeof(r->log) - r->used - 1;
	r->used += n < 0 ? 0 : (size_t)n < left ? (size_t)n : left;
}

static inline void lua_run_init(struct lua_run *r, const struct dp_host_options *options)
{
	struct dp_host_options o = options ? *options : (struct dp_host_options){0};
	memset(r, 0, sizeof(*r));
	o.log = keep_log;
	o.data = r;
	cr_assert_null(dp_host_create(&o, &r->host));
	r->snapshot = lua_snapshot();
}

static inline void lua_run_fini(struct lua_run *r)
{
	dp_host_destroy(r->host);
	dp_snapshot_destroy(r->snapshot);
}

static bool loaded(struct lua_run *r, struct dp_error *err)
{
	if (err)
		keep_log(DP_LOG_ERROR, "load", err->message, r);
	bool ok = err == NULL;
	dp_error_destroy(err);
	return ok;
}

static inline bool lua_load(struct lua_run *r, const char *text)
{
	char path[] = "/tmp/dynprobe-test-XXXXXX.lua";
	int fd = mkstemps(path, 4);
	cr_assert(fd >= 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	bool ok = loaded(r, dp_host_load(r->host, path));
	unlink(path);
	return ok;
}

static inline bool lua_load_file(struct lua_run *r, const char *name)
{
	char path[4096];
	const char *slash = strrchr(__FILE__, '/');
	snprintf(path, sizeof(path), "%.*s/lua/%s.lua", (int)(slash - __FILE__), __FILE__, name);
	return loaded(r, dp_host_load(r->host, path));
}

static inline void lua_take(struct lua_run *r)
{
	struct dp_snap_thread *t;
	dp_host_begin(r->host, r->snapshot);
	dp_host_preattach(r->host);
	dp_host_set_debug_ctx(r->host, (struct dp_debug_ctx *)(uintptr_t)1); /* fake_debug_ctx.h uses none */
	dp_host_attach(r->host);
	DL_FOREACH(r->snapshot->threads, t)
	dp_host_thread(r->host, t);
	dp_host_globals(r->host);
	dp_host_postattach(r->host);
	dp_host_end(r->host);
}

static inline const char *lua_attribute(const struct lua_run *r, const char *key, char buf[64])
{
	const struct dp_snap_pair *p;
	DL_FOREACH(r->snapshot->attributes, p)
	if (strcmp(p->key, key) == 0) {
		snprintf(buf, 64, "%lld", (long long)p->number);
		return p->is_int ? buf : p->text;
	}
	return NULL;
}

static inline size_t lua_notes(const struct dp_snap_note *list)
{
	size_t n = 0;
	for (; list; list = list->next)
		n++;
	return n;
}

static inline void lua_expect(const char *name)
{
	struct lua_run *r = malloc(sizeof(*r));
	char buf[64];
	lua_run_init(r, &(struct dp_host_options){.pmap = true, .budget_ns = UINT64_C(60000000000)});
	cr_assert(lua_load_file(r, name), "%s", r->log);
	lua_take(r);
	cr_assert(!strstr(r->log, "error: "), "%s", r->log);
	cr_assert(lua_attribute(r, "passed", buf), "the module did not finish:\n%s", r->log);
	lua_run_fini(r);
	free(r);
}

static inline void lua_expect_error(const char *text, const char *words)
{
	struct lua_run *r = malloc(sizeof(*r));
	lua_run_init(r, &(struct dp_host_options){.budget_ns = UINT64_C(60000000000)}); /* a slow machine is not an error */
	if (lua_load(r, text))
		lua_take(r);
	cr_assert(strstr(r->log, words), "'%s' expected in:\n%s", words, r->log);
	lua_run_fini(r);
	free(r);
}

#endif
