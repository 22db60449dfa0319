/* SPDX-License-Identifier: MIT */
/* pmodule.h: registration, log, memory, symbols. */
#include "pmodules/host/host_state.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 256u

/* ---- registration ------------------------------------------------------------------------------------------------------- */

static bool add(pmodule_t *m, enum dp_module_event event, const pmodule_match_t *match, void (*fn)(void))
{
	if (!m || !fn)
		return false;
	struct dp_error *err = dp_host_register(m, match, &(struct dp_callback){.event = event, .fn = fn});
	if (err)
		dp_host_log(m->host, DP_LOG_ERROR, m, "%s", err->message);
	dp_error_destroy(err);
	return !err;
}

bool pmodule_variable_event_add(pmodule_t *m, const pmodule_match_t *match, pmodule_variable_fn *fn)
{
	return add(m, DP_EVENT_VARIABLE, match, (void (*)(void))fn);
}

bool pmodule_frame_event_add(pmodule_t *m, const pmodule_match_t *match, pmodule_frame_fn *fn)
{
	return add(m, DP_EVENT_FRAME, match, (void (*)(void))fn);
}

bool pmodule_thread_event_add(pmodule_t *m, const pmodule_match_t *match, pmodule_thread_fn *fn)
{
	return add(m, DP_EVENT_THREAD, match, (void (*)(void))fn);
}

bool pmodule_preattach_event_add(pmodule_t *m, pmodule_backtrace_fn *fn)
{
	return add(m, DP_EVENT_PREATTACH, NULL, (void (*)(void))fn);
}

bool pmodule_attach_event_add(pmodule_t *m, pmodule_backtrace_fn *fn)
{
	return add(m, DP_EVENT_ATTACH, NULL, (void (*)(void))fn);
}

bool pmodule_postattach_event_add(pmodule_t *m, pmodule_backtrace_fn *fn)
{
	return add(m, DP_EVENT_POSTATTACH, NULL, (void (*)(void))fn);
}

bool pmodule_defer(pmodule_t *m)
{
	if (!m || !m->is_loading)
		return false;
	m->is_deferred = true;
	return true;
}

/* ---- log, options, backtrace -------------------------------------------------------------------------------------------- */

void pmodule_log(enum pmodule_log_level level, const char *fmt, ...)
{
	struct pmodule *m = dp_module_current();
	char *text = NULL;
	va_list args;
	if (!m || !fmt || (unsigned)level > PMODULE_LOG_ERROR)
		return;
	va_start(args, fmt);
	const int n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n >= 0)
		dp_host_log(m->host, (enum dp_log_level)level, m, "%s", text);
	if (n >= 0)
		free(text);
}

const char *pmodule_config_option(pmodule_t *m, const char *key)
{
	return dp_module_option(m, key);
}

ptrace_backtrace_t *pmodule_backtrace(void)
{
	return dp_out_backtrace(dp_api_snapshot());
}

bool pmodule_pmap_enabled(void)
{
	const struct dp_host *h = dp_host_current();
	return h && h->options.pmap;
}

bool pmodule_pmap_cached(void)
{
	const struct dp_host *h = dp_host_current();
	return h && h->options.pmap_cached;
}

uint64_t pmodule_time_left(void)
{
	const struct pmodule *m = dp_module_current();
	const uint64_t now = dp_host_now();
	return m && m->deadline_ns > now ? (m->deadline_ns - now) / 1000 : 0;
}

/* ---- memory ------------------------------------------------------------------------------------------------------------- */

static enum pmodule_read_source source_of(const struct dp_host *h, bool late)
{
	if (!strcmp(h->snapshot->mode, "core"))
		return PMODULE_READ_CORE;
	if (late)
		return PMODULE_READ_LATE;
	if (!strcmp(h->snapshot->mode, "fork"))
		return PMODULE_READ_COPY;
	return h->phase == DP_PHASE_HELD && !h->options.nobody_waits ? PMODULE_READ_HELD : PMODULE_READ_KEPT;
}

enum pmodule_read_source pmodule_read_source(void)
{
	const struct dp_host *h = dp_host_current();
	if (!h || !h->world || !h->snapshot)
		return h ? h->source : PMODULE_READ_NONE;
	const struct dp_debug_ctx_last last = dp_debug_ctx_last(h->world);
	if (last.reads == h->reads)
		return h->source;
	return last.any ? source_of(h, last.late) : PMODULE_READ_NONE;
}

size_t dp_api_read(uint64_t addr, void *buf, size_t n)
{
	struct dp_host *h = dp_host_current();
	size_t got = 0;
	bool late = false;
	if (!h || !h->snapshot || !buf || !n)
		return 0;
	if (h->world)
		got = dp_debug_ctx_read(h->world, addr, buf, n, &late);
	h->reads = h->world ? dp_debug_ctx_last(h->world).reads : 0;
	h->source = got ? source_of(h, late) : PMODULE_READ_NONE;
	if (got)
		return got;
	got = dp_snapshot_read(h->snapshot, addr, buf, n);
	h->source = got ? PMODULE_READ_KEPT : PMODULE_READ_NONE;
	return got;
}

size_t pmodule_address_read_raw(uint64_t addr, void *buf, size_t n)
{
	return dp_api_read(addr, buf, n);
}

/* Reads in small chunks: a short string at the end of readable memory needs no read beyond it. */
ssize_t pmodule_address_read_string(uint64_t addr, char *buf, size_t n)
{
	size_t done = 0;
	char none;
	if (!buf || !n || n > SSIZE_MAX)
		return -1;
	*buf = '\0';
	if (n == 1)
		return dp_api_read(addr, &none, 1) ? 0 : -1;
	while (done < n - 1) {
		const size_t wanted = n - 1 - done < CHUNK ? n - 1 - done : CHUNK;
		const size_t got = addr + done >= addr ? dp_api_read(addr + done, buf + done, wanted) : 0;
		const char *nul = memchr(buf + done, '\0', got);
		if (nul)
			return nul - buf;
		done += got;
		if (got < wanted)
			break;
	}
	buf[done] = '\0';
	return done ? (ssize_t)done : -1;
}

static bool read_number(uint64_t addr, size_t size, uint64_t *ret)
{
	if (!ret || (size != 1 && size != 2 && size != 4 && size != 8))
		return false;
	uint64_t value = 0;
	if (dp_api_read(addr, &value, size) != size)
		return false;
	*ret = value;
	return true;
}

bool pmodule_address_read_uint(uint64_t addr, size_t size, uint64_t *ret)
{
	return read_number(addr, size, ret);
}

bool pmodule_address_read_int(uint64_t addr, size_t size, int64_t *ret)
{
	uint64_t value;
	if (!ret || !read_number(addr, size, &value))
		return false;
	const unsigned unused = 64u - 8u * (unsigned)size;
	*ret = (int64_t)(value << unused) >> unused;
	return true;
}

bool pmodule_address_read_real(uint64_t addr, size_t size, double *ret)
{
	uint64_t value;
	float single;
	if (!ret || (size != 4 && size != 8) || !read_number(addr, size, &value))
		return false;
	if (size == 8) {
		memcpy(ret, &value, sizeof(*ret));
		return true;
	}
	memcpy(&single, &value, sizeof(single));
	*ret = (double)single;
	return true;
}

/* ---- symbols ------------------------------------------------------------------------------------------------------------ */

const char *pmodule_address_symbol(uint64_t addr)
{
	const struct dp_host *h = dp_host_current();
	return h && h->world ? dp_debug_ctx_symbol_at(h->world, addr) : NULL;
}

bool pmodule_symbol_address(const char *symbol, const char *object, uint64_t *ret)
{
	const struct dp_host *h = dp_host_current();
	return h && h->world && symbol && ret && dp_debug_ctx_symbol(h->world, symbol, object, ret);
}

size_t pmodule_symbol_read_raw(const char *symbol, const char *object, void *buf, size_t n)
{
	uint64_t addr;
	return pmodule_symbol_address(symbol, object, &addr) ? dp_api_read(addr, buf, n) : 0;
}

ssize_t pmodule_symbol_read_string(const char *symbol, const char *object, char *buf, size_t n)
{
	uint64_t addr;
	return pmodule_symbol_address(symbol, object, &addr) ? pmodule_address_read_string(addr, buf, n) : -1;
}
