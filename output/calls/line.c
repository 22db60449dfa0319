/* SPDX-License-Identifier: MIT */
#include "output/calls/line.h"

#include "base/duration.h"
#include "output/calls/data.h"
#include "output/calls/names.h"
#include "output/format/put.h"

#include <stdlib.h>
#include <string.h>

enum { ERRORS = 4095 };

/* ---- values ---------------------------------------------------------------------------------------------------------- */

static const struct dp_call_seen *either(const struct dp_call_line *l, unsigned i)
{
	if (l->entry && l->entry->has_word[i])
		return l->entry;
	return l->exit && l->exit->has_word[i] ? l->exit : NULL;
}

static bool failed(const struct dp_call_line *l)
{
	return l->exit && l->exit->has_result && l->exit->result < 0 && l->exit->result >= -ERRORS;
}

static unsigned index_of(const struct dp_call_arg *args, int n, const struct dp_call_word *name)
{
	unsigned i = 0;
	while (i < (unsigned)n && !(args[i].len == name->len && !memcmp(args[i].name, name->text, name->len)))
		i++;
	return i;
}

static bool word_of(const struct dp_call_line *l, const struct dp_call_arg *args, int n, const struct dp_call_word *name,
                    uint64_t *ret)
{
	const unsigned i = index_of(args, n, name);
	const struct dp_call_seen *from = i < (unsigned)n ? either(l, i) : NULL;
	if (from)
		*ret = from->word[i];
	return from;
}

/* Is there such an argument? Yes, if that is not known. */
static bool exists(const struct dp_call_line *l, const struct dp_call_arg *args, int n, const struct dp_call_arg *arg)
{
	const size_t len = arg->only.len ? strcspn(arg->only.text, "&:") : 0;
	const struct dp_call_word name = {arg->only.text, len};
	uint64_t v;
	if (!len || !word_of(l, args, n, &name, &v))
		return true;
	const uint64_t bits = strtoull(arg->only.text + len + 1, NULL, 0);
	return arg->only.text[len] == '&' ? v & bits : bits >> (v & 63) & 1;
}

/* What describes the argument in this call; false: it has none. */
static bool choose(const struct dp_call_line *l, const struct dp_call_arg *args, int n, struct dp_call_arg *arg)
{
	while (!exists(l, args, n, arg))
		if (!dp_call_otherwise(arg, arg))
			return false;
	return true;
}

/* ---- arguments ------------------------------------------------------------------------------------------------------- */

static void put_number(struct dp_buf *b, const struct dp_call_arg *arg, uint64_t v)
{
	const bool is_32 = arg->kind == DP_CALL_INT || arg->kind == DP_CALL_HEX32;
	const uint64_t seen = arg->kind == DP_CALL_INT ? (uint64_t)(int64_t)(int32_t)v : is_32 ? (uint32_t)v : v;
	if (arg->means.len && !arg->in && !arg->out && dp_put_call_meaning(b, &arg->means, seen))
		return;
	if (arg->kind == DP_CALL_INT || arg->kind == DP_CALL_LONG)
		dp_put_signed(b, (int64_t)seen);
	else if (arg->kind == DP_CALL_UNSIGNED)
		dp_put_dec(b, seen);
	else if (!seen)
		dp_put_str(b, arg->kind == DP_CALL_POINTER || arg->kind == DP_CALL_STRING ? "NULL" : "0");
	else
		dp_put_hex(b, seen);
}

static const struct dp_call_bytes *memory_of(const struct dp_call_line *l, unsigned i, const struct dp_call_arg *arg)
{
	const struct dp_call_bytes *before = l->entry && l->entry->data[i].bytes ? &l->entry->data[i] : NULL;
	const struct dp_call_bytes *after = l->exit && l->exit->data[i].bytes ? &l->exit->data[i] : NULL;
	if (arg->out && !failed(l))
		return after;
	return arg->in ? before ? before : after : NULL;
}

static const struct dp_call_bytes *first_of(const struct dp_call_line *l, unsigned i, const struct dp_call_arg *arg)
{
	const struct dp_call_seen *from = arg->in && l->entry && l->entry->first[i].bytes ? l->entry : l->exit;
	return dp_call_has_buffers(arg) && from && from->first[i].bytes ? &from->first[i] : NULL;
}

/* The length that the kernel has written behind that argument; 0: not known. */
static uint64_t written(const struct dp_call_line *l, unsigned i)
{
	uint32_t v = 0;
	if (l->exit && l->exit->data[i].bytes && l->exit->data[i].n >= sizeof(v))
		memcpy(&v, l->exit->data[i].bytes, sizeof(v));
	return v;
}

static uint64_t count_of(const struct dp_call_line *l, const struct dp_call_arg *args, int n, const struct dp_call_arg *arg)
{
	uint64_t v = 1;
	if (!arg->count.len)
		return 0;
	if (dp_call_word_is(&arg->count, "ret"))
		return l->exit && l->exit->result > 0 ? (uint64_t)l->exit->result : 0;
	if (arg->count.text[0] >= '0' && arg->count.text[0] <= '9')
		return (uint64_t)(arg->count.text[0] - '0');
	const unsigned i = index_of(args, n, &arg->count);
	if (i < (unsigned)n && args[i].out && args[i].kind == DP_CALL_POINTER)
		return written(l, i);
	return word_of(l, args, n, &arg->count, &v) ? v : 1;
}

static void put_text(struct dp_buf *b, const struct dp_call_seen *from, unsigned i)
{
	dp_put_visible(b, from->text[i].bytes, from->text[i].n, '"');
	if (from->cut[i])
		dp_put_str(b, "...");
}

static void put_arg(struct dp_buf *b, const struct dp_call_line *l, const struct dp_call_arg *args, int n, unsigned i)
{
	const struct dp_call_arg *arg = &args[i];
	const struct dp_call_seen *word = either(l, i);
	const struct dp_call_bytes *at = memory_of(l, i, arg);
	if (l->entry && l->entry->text[i].bytes) {
		put_text(b, l->entry, i);
		return;
	}
	if (l->exit && l->exit->text[i].bytes) {
		put_text(b, l->exit, i);
		return;
	}
	const struct dp_call_bytes *first = first_of(l, i, arg);
	const struct dp_call_memory m = {
	        .bytes = at ? at->bytes : NULL,
	        .n = at ? at->n : 0,
	        .count = count_of(l, args, n, arg),
	        .list = arg->count.len,
	        .first = first ? first->bytes : NULL,
	        .nfirst = first ? first->n : 0,
	        .used = arg->out && l->exit ? (uint64_t)l->exit->result : UINT64_MAX,
	};
	if (word && word->word[i] && at && dp_put_call_memory(b, &arg->means, &m))
		return;
	if (word)
		put_number(b, arg, word->word[i]);
	else
		dp_put_str(b, "?");
}

static void put_words(struct dp_buf *b, const struct dp_call_line *l)
{
	for (unsigned i = 0; i < DP_CALL_ARGS && either(l, i); i++) {
		dp_put_str(b, i ? ", " : "");
		dp_put_hex(b, either(l, i)->word[i]);
	}
}

void dp_put_call_args(struct dp_buf *b, const struct dp_call_line *line, unsigned from, unsigned to)
{
	struct dp_call_arg args[DP_CALL_ARGS];
	const int n = dp_call_args(line->nr, args);
	if (n == DP_CALL_ANY && !from)
		put_words(b, line);
	for (unsigned i = from; n > 0 && i < (unsigned)n && i < to; i++) {
		if (!choose(line, args, n, &args[i]))
			continue;
		dp_put_str(b, i > from ? ", " : "");
		put_arg(b, line, args, n, i);
	}
}

unsigned dp_call_first_late(int32_t nr)
{
	struct dp_call_arg args[DP_CALL_ARGS];
	const int n = dp_call_args(nr, args);
	for (int i = 0; i < n; i++)
		if (args[i].out)
			return (unsigned)i;
	return DP_CALL_ARGS;
}

void dp_put_call_name(struct dp_buf *b, const struct dp_call_line *line)
{
	char number[32];
	dp_put_str(b, line->nr == DP_CALL_ANY ? "syscall" : dp_call_format((uint64_t)line->nr, number, sizeof(number)));
}

/* ---- results --------------------------------------------------------------------------------------------------------- */

const char *dp_call_error(const struct dp_call_seen *exit)
{
	const struct dp_call_line line = {.exit = exit};
	return failed(&line) ? strerrorname_np((int)-exit->result) : NULL;
}

/* 0x8001 (flags O_WRONLY|O_LARGEFILE) */
static bool put_flags(struct dp_buf *b, const struct dp_call_arg *how, uint64_t v)
{
	if (how->kind != DP_CALL_HEX32 || !v || !dp_call_names_find(how->means.text, how->means.len))
		return false;
	dp_put_hex(b, v);
	dp_put_str(b, " (flags ");
	dp_put_call_meaning(b, &how->means, v);
	dp_put_str(b, ")");
	return true;
}

void dp_put_call_result(struct dp_buf *b, const struct dp_call_line *line)
{
	struct dp_call_arg how, args[DP_CALL_ARGS];
	const struct dp_call_seen *exit = line->exit;
	const int n = dp_call_args(line->nr, args);
	if (!exit || !exit->has_result) {
		dp_put_str(b, " = ?");
		return;
	}
	const char *error = dp_call_error(exit), *text = error ? strerrordesc_np((int)-exit->result) : NULL;
	dp_put_str(b, " = ");
	if (error)
		dp_buf_printf(b, "-1 %s (%s)", error, text ? text : "?");
	else if (failed(line) || !dp_call_result(line->nr, &how) || !choose(line, args, n, &how))
		dp_put_signed(b, exit->result);
	else if (!put_flags(b, &how, (uint64_t)exit->result))
		put_number(b, &how, (uint64_t)exit->result);
}

void dp_put_call_duration(struct dp_buf *b, const struct dp_call_line *line)
{
	char text[DP_DURATION_TEXT];
	if (line->has_duration)
		dp_buf_printf(b, " <%s>", dp_duration(line->duration_ns, text));
}
