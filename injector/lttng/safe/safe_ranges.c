/* SPDX-License-Identifier: MIT */
/*
 * Code in which a thread may hold a lock that malloc, pthread_create, dlopen or liblttng-ust take: the dynamic loader, malloc
 * under any name, the parts of libc that create, fork, exit or list modules, LTTng itself, and our own code.
 *
 * libc's malloc is one object file, so its functions are adjacent, with nameless ones between them and before the first. The
 * range reaches from the end of the last other function below to the first one above. Any other library with a malloc is banned
 * as a whole; in the executable (a static jemalloc), functions with malloc's names are.
 */
#include "injector/lttng/safe/safe_ranges.h"

#include "injector/lttng/safe/sink_symbols.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static const char *const malloc_names[] = {
        "malloc",          "free",          "calloc",         "realloc",
        "memalign",        "aligned_alloc", "valloc",         "pvalloc",
        "malloc_trim",     "malloc_info",   "mallopt",        "mallinfo",
        "mallinfo2",       "malloc_stats",  "posix_memalign", "malloc_usable_size",
        "__libc_malloc",   "__libc_free",   "__libc_calloc",  "__libc_realloc",
        "__libc_memalign", "__libc_valloc", "__libc_pvalloc", "cfree",
        "reallocarray",
};

/* In libc, libpthread and libdl. */
static const char *const libc_names[] = {
        "pthread_create",
        "pthread_exit",
        "pthread_detach",
        "pthread_cancel",
        "pthread_getattr_np",
        "pthread_attr_*",
        "pthread_getattr_default_np",
        "pthread_setattr_default_np",
        "pthread_key_*",
        "pthread_atfork",
        "__register_atfork",
        "dl_iterate_phdr",
        "dlopen",
        "dlmopen",
        "dlclose",
        "dlsym",
        "dlvsym",
        "dlerror",
        "dladdr",
        "dladdr1",
        "dlinfo",
        "_dl_*",
        "__libc_dlopen_mode",
        "__libc_dlsym",
        "__libc_dlclose",
        "fork",
        "_Fork",
        "vfork",
        "__fork",
        "__libc_fork",
        "__vfork",
        "clone",
        "__clone",
        "clone3",
        "__clone3",
        "posix_spawn*",
        "exit",
        "on_exit",
        "quick_exit",
        "__cxa_*",
        "at_quick_exit",
        "atexit",
        "_exit",
        "__libc_freeres",
        "thrd_create",
        "thrd_exit",
        "setuid",
        "setgid",
        "seteuid",
        "setegid",
        "setreuid",
        "setregid",
        "setresuid",
        "setresgid",
        "setgroups",
        "initgroups",
};

static const char *const banned_modules[] = {
        "ld-linux*",        "ld-2.*",       "ld.so*",       "ld-musl*",     "liblttng-ust*", "liburcu*", "libdynprobe*",
        "memfd:*dynprobe*", "libjemalloc*", "libtcmalloc*", "libmimalloc*", "libasan*",      "libtsan*", "libunwind*",
};

static const char *const allocator_names[] = {"je_*",    "jemalloc*", "tc_*",   "tcmalloc*",    "mi_*",         "_mi_*",
                                              "arena_*", "rtree_*",   "scudo*", "_Z*tcmalloc*", "_ZN8tcmalloc*"};

static bool matches(const char *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!fnmatch(list[i], name, 0))
			return true;
	return false;
}

#define MATCHES(list, name) matches(list, sizeof(list) / sizeof(*(list)), name)

static bool is_libc(struct dp_module *m)
{
	static const char *const names[] = {"libc.so.6",         "libc-2.*.so", "libpthread.so.0",
	                                    "libpthread-2.*.so", "libdl.so.2",  "libdl-2.*.so"};
	return MATCHES(names, dp_module_name(m));
}

/* ---- lists --------------------------------------------------------------------------------------------------------------- */

static struct dp_error *add_ban(struct dp_ranges *r, uint64_t start, uint64_t end, const char *what)
{
	if (end <= start)
		return NULL;
	struct dp_ban *grown = realloc(r->ban, (r->nban + 1) * sizeof(*grown));
	if (!grown)
		return dp_error_nomem();
	r->ban = grown;
	r->ban[r->nban++] = (struct dp_ban){start, end, what};
	return NULL;
}

static struct dp_error *add_code(struct dp_ranges *r, struct dp_module *m)
{
	for (size_t i = 0; i < dp_module_nsegments(m); i++) {
		dp_addr start;
		const uint8_t *bytes;
		size_t n;
		bool exec;
		if (!dp_module_segment(m, i, &start, &bytes, &n, &exec) || !exec || !n)
			continue;
		struct dp_code *grown = realloc(r->code, (r->ncode + 1) * sizeof(*grown));
		if (!grown)
			return dp_error_nomem();
		r->code = grown;
		r->code[r->ncode++] = (struct dp_code){start.v, start.v + n, bytes, m, is_libc(m)};
	}
	return NULL;
}

static int by_code(const void *a, const void *b)
{
	const struct dp_code *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

static int by_ban(const void *a, const void *b)
{
	const struct dp_ban *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* ---- what is banned -------------------------------------------------------------------------------------------------------- */

static struct dp_error *ban_module(struct dp_ranges *r, struct dp_module *m)
{
	for (size_t i = 0; i < r->ncode; i++)
		if (r->code[i].module == m)
			DP_TRY(add_ban(r, r->code[i].start, r->code[i].end, dp_module_name(m)));
	return NULL;
}

static const struct dp_code *code_of(const struct dp_ranges *r, uint64_t addr)
{
	for (size_t i = 0; i < r->ncode; i++)
		if (addr >= r->code[i].start && addr < r->code[i].end)
			return &r->code[i];
	return NULL;
}

/* Bans each function named in `list`. */
static struct dp_error *ban_named(struct dp_ranges *r, const struct dp_exports *e, const char *const *list, size_t n)
{
	for (size_t i = 0; i < e->n; i++)
		if (e->sym[i].function && e->sym[i].size && matches(list, n, e->sym[i].name))
			DP_TRY(add_ban(r, e->sym[i].addr, e->sym[i].addr + e->sym[i].size, e->sym[i].name));
	return NULL;
}

/* Bans one object file's functions, from the lowest to the highest named one, and the nameless ones around them. */
static struct dp_error *ban_malloc(struct dp_ranges *r, const struct dp_exports *e)
{
	uint64_t low = UINT64_MAX, high = 0;
	for (size_t i = 0; i < e->n; i++) {
		const struct dp_export *s = &e->sym[i];
		if (!s->function || !s->size || !MATCHES(malloc_names, s->name) || !strcmp(s->name, "reallocarray"))
			continue;
		low = s->addr < low ? s->addr : low;
		high = s->addr + s->size > high ? s->addr + s->size : high;
	}
	const struct dp_code *c = high ? code_of(r, low) : NULL;
	if (!c)
		return NULL;
	uint64_t below = c->start, above = c->end;
	for (size_t i = 0; i < e->n; i++) {
		const struct dp_export *s = &e->sym[i];
		if (!s->function || s->addr < c->start || s->addr >= c->end)
			continue;
		if (s->addr < low && s->addr + s->size > below)
			below = s->addr + s->size;
		if (s->addr >= high && s->addr < above)
			above = s->addr;
	}
	return add_ban(r, below < low ? below : low, above, "malloc");
}

/* A program with a built-in malloc may also have other functions with allocator names, so all these names are banned. */
static struct dp_error *ban_in_executable(struct dp_ranges *r, const struct dp_exports *e)
{
	DP_TRY(ban_named(r, e, malloc_names, sizeof(malloc_names) / sizeof(*malloc_names)));
	return ban_named(r, e, allocator_names, sizeof(allocator_names) / sizeof(*allocator_names));
}

static struct dp_error *ban_in(struct dp_ranges *r, struct dp_module *m, bool executable)
{
	struct dp_exports e;
	if (MATCHES(banned_modules, dp_module_name(m)))
		return NULL; /* ban_maps() bans these */
	DP_TRY(dp_exports_read(m, &e));
	struct dp_error *err = NULL;
	if (is_libc(m)) {
		err = ban_malloc(r, &e);
		if (!err)
			err = ban_named(r, &e, libc_names, sizeof(libc_names) / sizeof(*libc_names));
	} else if (executable) {
		err = ban_in_executable(r, &e);
	} else if (dp_exports_find(&e, "malloc")) {
		err = ban_module(r, m);
	}
	dp_exports_fini(&e);
	return err;
}

/* Bans by the mapping's name, which also works for files that cannot be read from here (deleted ones, such as ours). */
static struct dp_error *ban_maps(struct dp_ranges *r, struct dp_image *image)
{
	for (size_t i = 0; i < dp_image_nmaps(image); i++) {
		const struct dp_map *m = dp_image_map(image, i);
		const char *slash = strrchr(m->path, '/');
		if (m->exec && slash && MATCHES(banned_modules, slash + 1))
			DP_TRY(add_ban(r, m->start.v, m->end.v, slash + 1));
	}
	return NULL;
}

/* Merges overlapping ranges. */
static void merge(struct dp_ranges *r)
{
	size_t n = 0;
	if (r->nban)
		qsort(r->ban, r->nban, sizeof(*r->ban), by_ban);
	for (size_t i = 0; i < r->nban; i++) {
		if (n && r->ban[i].start < r->ban[n - 1].end) {
			if (r->ban[i].end > r->ban[n - 1].end)
				r->ban[n - 1].end = r->ban[i].end;
		} else {
			r->ban[n++] = r->ban[i];
		}
	}
	r->nban = n;
}

static struct dp_error *fill_code(struct dp_ranges *r, struct dp_image *image)
{
	for (size_t i = 0; i < dp_image_nmodules(image); i++)
		DP_TRY(add_code(r, dp_image_module(image, i)));
	if (r->ncode)
		qsort(r->code, r->ncode, sizeof(*r->code), by_code);
	return NULL;
}

static struct dp_error *fill(struct dp_ranges *r, struct dp_image *image, uint64_t own, uint64_t own_size)
{
	DP_TRY(fill_code(r, image));
	for (size_t i = 0; i < dp_image_nmodules(image); i++)
		DP_TRY(ban_in(r, dp_image_module(image, i), i == 0));
	DP_TRY(ban_maps(r, image));
	DP_TRY(add_ban(r, own, own + own_size, "dynprobe"));
	merge(r);
	r->low = r->nban ? r->ban[0].start : 0;
	r->high = r->nban ? r->ban[r->nban - 1].end : 0;
	return NULL;
}

static struct dp_error *give(struct dp_ranges r, struct dp_error *err, struct dp_ranges *ret)
{
	if (err)
		dp_ranges_fini(&r);
	else
		*ret = r;
	return err;
}

struct dp_error *dp_ranges_of_code(struct dp_image *image, struct dp_ranges *ret)
{
	struct dp_ranges r = {0};
	struct dp_error *err = fill_code(&r, image);
	return give(r, err, ret);
}

struct dp_error *dp_ranges_create(struct dp_image *image, uint64_t own, uint64_t own_size, struct dp_ranges *ret)
{
	struct dp_ranges r = {0};
	struct dp_error *err = fill(&r, image, own, own_size);
	return give(r, err, ret);
}

void dp_ranges_fini(struct dp_ranges *r)
{
	free(r->code);
	free(r->ban);
	*r = (struct dp_ranges){0};
}

/* ---- queries --------------------------------------------------------------------------------------------------------------- */

const struct dp_code *dp_ranges_code(const struct dp_ranges *r, uint64_t addr)
{
	size_t low = 0, high = r->ncode;
	while (low < high) {
		const size_t mid = (low + high) / 2;
		if (addr < r->code[mid].start)
			high = mid;
		else if (addr >= r->code[mid].end)
			low = mid + 1;
		else
			return &r->code[mid];
	}
	return NULL;
}

const struct dp_ban *dp_ranges_ban(const struct dp_ranges *r, uint64_t addr)
{
	size_t low = 0, high = r->nban;
	while (low < high) {
		const size_t mid = (low + high) / 2;
		if (addr < r->ban[mid].start)
			high = mid;
		else if (addr >= r->ban[mid].end)
			low = mid + 1;
		else
			return &r->ban[mid];
	}
	return NULL;
}

/* Length of `ff /2` (call through a register or memory), counted from the opcode byte. */
static unsigned indirect_length(const uint8_t *p)
{
	const unsigned mod = p[1] >> 6, rm = p[1] & 7;
	if (mod == 3)
		return 2;
	if (mod == 0)
		return rm == 4 ? ((p[2] & 7) == 5 ? 7 : 3) : rm == 5 ? 6 : 2;
	return (mod == 1 ? 3 : 6) + (rm == 4);
}

bool dp_code_after_call(const struct dp_code *c, uint64_t addr)
{
	const uint64_t at = addr - c->start;
	const uint8_t *p = c->bytes + at;
	if (at >= 5 && p[-5] == 0xe8)
		return true;
	for (unsigned n = 2; n <= 7 && n <= at; n++)
		if (p[-(int)n] == 0xff && ((p[1 - (int)n] >> 3) & 7) == 2 && indirect_length(p - n) == n)
			return true;
	return false;
}
