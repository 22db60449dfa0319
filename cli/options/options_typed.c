/* SPDX-License-Identifier: MIT */
/* Options that only store their argument, at the place in struct dp_options that their row names. */
#include "base/buf.h"
#include "cli/options/numbers.h"
#include "cli/options/options_table.h"

#include <stdlib.h>
#include <string.h>

static void *destination(struct dp_parser *p)
{
	return (char *)&p->o + p->row->to;
}

static struct dp_error *store(struct dp_parser *p, uint64_t value)
{
	memcpy(destination(p), &value, p->row->size); /* x86-64 is little-endian */
	return NULL;
}

static struct dp_error *store_within(struct dp_parser *p, const char *arg, uint64_t value)
{
	const struct dp_option_row *row = p->row;
	if (value >= row->least && (!row->most || value <= row->most))
		return store(p, value);
	if (row->range)
		return dp_error(DP_TAG_USAGE, "%s %s", p->option, row->range);
	return dp_error(DP_TAG_USAGE, "%s '%s' is more than %llu", p->option, arg, (unsigned long long)row->most);
}

static struct dp_error *not_empty(const struct dp_parser *p, const char *arg)
{
	return *arg ? NULL : dp_error(DP_TAG_USAGE, "%s needs an argument that is not empty", p->option);
}

struct dp_error *dp_option_value(struct dp_parser *p, const char *arg)
{
	(void)arg;
	return store(p, p->row->value);
}

struct dp_error *dp_option_text(struct dp_parser *p, const char *arg)
{
	memcpy(destination(p), &arg, sizeof(arg));
	return NULL;
}

struct dp_error *dp_option_name(struct dp_parser *p, const char *arg)
{
	DP_TRY(not_empty(p, arg));
	return dp_option_text(p, arg);
}

struct dp_error *dp_option_word(struct dp_parser *p, const char *arg)
{
	const char *const *word = p->row->word;
	struct dp_buf known = {0};
	for (unsigned i = 0; word[i]; i++) {
		if (!strcmp(arg, word[i]))
			return dp_buf_fini(&known), store(p, p->row->value + i);
		dp_buf_printf(&known, "%s%s", !i ? "" : word[i + 1] ? ", " : " or ", word[i]);
	}
	struct dp_error *err = dp_error(DP_TAG_USAGE, "unknown %s '%s': use %s", p->row->name, arg, dp_buf_str(&known));
	dp_buf_fini(&known);
	return err;
}

struct dp_error *dp_option_number(struct dp_parser *p, const char *arg)
{
	uint64_t value;
	if (!arg)
		return store(p, p->row->value);
	DP_TRY(dp_number_parse(p->option, arg, &value));
	return store_within(p, arg, value);
}

struct dp_error *dp_option_size(struct dp_parser *p, const char *arg)
{
	size_t value;
	DP_TRY(dp_size_parse(p->option, arg, &value));
	return store_within(p, arg, value);
}

struct dp_error *dp_option_duration(struct dp_parser *p, const char *arg)
{
	uint64_t ns;
	DP_TRY(dp_duration_parse(p->option, arg, &ns));
	return store_within(p, arg, ns);
}

struct dp_error *dp_option_milliseconds(struct dp_parser *p, const char *arg)
{
	uint64_t ms;
	if (!*arg || arg[strspn(arg, "0123456789")])
		return dp_option_duration(p, arg);
	DP_TRY(dp_number_parse(p->option, arg, &ms));
	if (ms > DP_NUMBER_MOST)
		return dp_error(DP_TAG_USAGE, "%s '%s' is more than %llu", p->option, arg, (unsigned long long)DP_NUMBER_MOST);
	return store(p, ms * 1000000);
}

struct dp_error *dp_option_list(struct dp_parser *p, const char *arg)
{
	struct dp_word_list *list = destination(p);
	const char **grown = realloc(list->item, (list->n + 2) * sizeof(*grown));
	if (!grown)
		return dp_error_nomem();
	list->item = grown;
	grown[list->n++] = arg;
	grown[list->n] = NULL;
	return NULL;
}

struct dp_error *dp_option_names(struct dp_parser *p, const char *arg)
{
	DP_TRY(not_empty(p, arg));
	return dp_option_list(p, arg);
}

struct dp_error *dp_option_tids(struct dp_parser *p, const char *arg)
{
	struct dp_tid_list *list = destination(p);
	uint64_t tid;
	DP_TRY(dp_number_parse(p->option, arg, &tid));
	if (tid > INT32_MAX)
		return dp_error(DP_TAG_USAGE, "%s: invalid thread ID '%s'", p->option, arg);
	pid_t *grown = realloc(list->item, (list->n + 1) * sizeof(*grown));
	if (!grown)
		return dp_error_nomem();
	list->item = grown;
	grown[list->n++] = (pid_t)tid;
	return NULL;
}
