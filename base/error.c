/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include "base/buf.h"
#include "base/sanitize.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *name, *meaning, *remedy;
} tags[DP_TAG_COUNT] = {
#define DP_TAG(id, text, meaning, remedy) {text, meaning, remedy},
#include "base/tags.def"
#undef DP_TAG
};

/* Reporting out of memory must not allocate: this error is static, and dp_error_destroy() does not free it. */
static struct dp_error nomem = {.tag = DP_TAG_NOMEM, .message = (char *)"out of memory"};

struct dp_error *dp_error_nomem(void)
{
	return &nomem;
}

static struct dp_error *make(enum dp_tag tag, const char *fmt, va_list args)
{
	struct dp_error *err = calloc(1, sizeof(*err));
	if (!err || vasprintf(&err->message, fmt, args) < 0) {
		free(err);
		return &nomem;
	}
	err->tag = tag;
	dp_sanitize(err->message);
	return err;
}

struct dp_error *dp_error(enum dp_tag tag, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	struct dp_error *err = make(tag, fmt, args);
	va_end(args);
	return err;
}

struct dp_error *dp_error_sys(enum dp_tag tag, const char *fmt, ...)
{
	int sys = errno;
	va_list args;
	va_start(args, fmt);
	struct dp_error *err = make(tag, fmt, args);
	va_end(args);
	char *full = NULL;
	if (err == &nomem || asprintf(&full, "%s: %s", err->message, strerror(sys)) < 0)
		return err;
	free(err->message);
	err->message = full;
	err->sys = sys;
	return err;
}

struct dp_error *dp_error_wrap(struct dp_error *cause, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	struct dp_error *err = make(cause->tag, fmt, args);
	va_end(args);
	if (err == &nomem)
		return cause;
	err->cause = cause;
	err->sys = cause->sys;
	return err;
}

struct dp_error *dp_error_advise(struct dp_error *err, const char *remedy)
{
	if (err != &nomem)
		err->remedy = remedy;
	return err;
}

/* A cause of another tag is of another kind: the error above it knows more. */
static const char *own_remedy(const struct dp_error *err)
{
	const enum dp_tag tag = err->tag;
	while (err && !err->remedy)
		err = err->cause && err->cause->tag == tag ? err->cause : NULL;
	return err ? err->remedy : NULL;
}

const char *dp_error_remedy(const struct dp_error *err)
{
	const char *own = own_remedy(err);
	return own ? own : dp_tag_remedy(err->tag);
}

struct dp_error *dp_error_destroy(struct dp_error *err)
{
	while (err && err != &nomem) {
		struct dp_error *cause = err->cause;
		free(err->message);
		free(err);
		err = cause;
	}
	return NULL;
}

char *dp_error_text(const struct dp_error *err)
{
	struct dp_buf b = {0};
	for (const struct dp_error *e = err; e; e = e->cause)
		dp_buf_printf(&b, "%s%s", e == err ? "" : ": ", e->message);
	char *text = strdup(dp_buf_str(&b));
	dp_buf_fini(&b);
	return text;
}

/* The messages of these tags contain the remedy already. */
static bool says_it_all(enum dp_tag tag)
{
	return tag == DP_TAG_USAGE || tag == DP_TAG_SYNTAX || tag == DP_TAG_SYS || tag == DP_TAG_NO_SYMBOL || tag == DP_TAG_AMBIGUOUS;
}

void dp_error_print(const struct dp_error *err, FILE *to)
{
	if (!err)
		return;
	const enum dp_tag tag = err->tag;
	const char *own = own_remedy(err), *remedy = own ? own : says_it_all(tag) ? NULL : dp_tag_remedy(tag);
	fprintf(to, "dynprobe: error: %s [%s]\n", err->message, dp_tag_name(tag));
	for (err = err->cause; err; err = err->cause)
		fprintf(to, "  caused by: %s\n", err->message);
	if (remedy && *remedy)
		fprintf(to, "  what to do: %s\n", remedy);
}

const char *dp_tag_name(enum dp_tag tag)
{
	return tags[tag].name;
}

const char *dp_tag_meaning(enum dp_tag tag)
{
	return tags[tag].meaning;
}

const char *dp_tag_remedy(enum dp_tag tag)
{
	return tags[tag].remedy;
}

const char *dp_tag_theme(enum dp_tag tag)
{
	static const struct {
		int tag; /* -1: the theme of the tags that follow */
		const char *theme;
	} rows[] = {
#define DP_THEME(text) {-1, text},
#define DP_TAG(id, text, meaning, remedy) {DP_TAG_##id, NULL},
#include "base/tags.def"
#undef DP_TAG
	};
	const char *theme = "";
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows) && rows[i].tag != (int)tag; i++)
		theme = rows[i].theme ? rows[i].theme : theme;
	return theme;
}

bool dp_tag_find(const char *text, enum dp_tag *ret)
{
	for (int i = 0; i < DP_TAG_COUNT; i++)
		if (!strcasecmp(text, tags[i].name) || !strcasecmp(text, tags[i].name + strlen("DP-"))) {
			*ret = (enum dp_tag)i;
			return true;
		}
	return false;
}
