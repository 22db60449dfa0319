/* SPDX-License-Identifier: MIT */
/*
 * --syscall NAME: probes at the instructions that make the call (entry), and directly after them (exit). If a site provably
 * makes one call only, its number decides now. Other sites get the number as a condition. After the call the number is lost (rax
 * has the result), so an exit belongs to the entry that the same thread passed with the same stack pointer. So does one that a
 * branch leads to, past the call. (The processor leaves the address after the call in rcx, but not with FRED.)
 */
#include "probes/point/syscalls.h"
#include "session/code/call_sites.h"
#include "session/expand/expand_internal.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERS_MAX 40u /* most calls of a pattern other than *: each adds a condition to the sites that make any call */

struct calls { /* one --syscall */
	struct dp_expander *x;
	size_t from;
	const struct dp_spec *spec;
	struct dp_call_sites sites;
	bool all, entries, exits;
	int32_t only;    /* the only matching number, or DP_CALL_ANY */
	size_t numbers;  /* matching calls */
	size_t named;    /* sites that make one matching call only */
	size_t kept;     /* sites that must not be probed */
	char *condition; /* for sites that make any call; NULL: all calls match */
};

static bool matches(const struct calls *c, int32_t nr)
{
	char number[32];
	const char *name = dp_call_format((uint64_t)nr, number, sizeof(number));
	return c->all || !fnmatch(c->spec->call, name, 0);
}

/* ---- one place ----------------------------------------------------------------------------------------------------- */

static struct dp_error *set_text(char **to, const char *fmt, const char *name, const char *phase)
{
	free(*to);
	if (asprintf(to, fmt, name, phase) < 0) {
		*to = NULL;
		return dp_error_nomem();
	}
	return NULL;
}

/* Contexts that belong to the line of a call, which is therefore recorded with them. */
static bool go_with_the_line(const struct dp_typed *typed)
{
	for (size_t i = 0; i < typed->ncontexts; i++)
		if (strcmp(typed->context[i], "duration") != 0 &&
		    strncmp(typed->context[i], "backtrace", strlen("backtrace")) != 0)
			return false;
	return !typed->form;
}

static bool has_word(const struct dp_typed *typed, const char *word)
{
	for (size_t i = 0; i < typed->ncontexts; i++)
		if (!strcmp(typed->context[i], word))
			return true;
	return false;
}

/* Puts a context before those that were typed. */
static struct dp_error *add_context(struct dp_typed *typed, const char *word)
{
	char **longer = reallocarray(typed->context, typed->ncontexts + 2, sizeof(*longer));
	if (!longer)
		return dp_error_nomem();
	typed->context = longer;
	memmove(longer + 1, longer, typed->ncontexts * sizeof(*longer));
	longer[0] = strdup(word);
	if (!longer[0]) {
		memmove(longer, longer + 1, typed->ncontexts * sizeof(*longer));
		return dp_error_nomem();
	}
	typed->ncontexts++;
	return NULL;
}

/*
 * Without -t: all that a line about the call is made of. LTTng's events have no such lines: the arguments, or the result. With
 * --slower-than there is no event of the entry, whose time says how long the call was.
 */
static struct dp_error *set_context(struct calls *c, struct dp_typed *typed, bool exit)
{
	const bool lttng = c->x->from->sink == DP_SINK_LTTNG, timed = exit && c->x->from->asked.slower_ns;
	if (c->x->from->asked.what || !go_with_the_line(typed) || (lttng && typed->ncontexts))
		return NULL;
	if (lttng)
		return add_context(typed, exit ? "retval" : "args");
	if (timed && !has_word(typed, "duration"))
		DP_TRY(add_context(typed, "duration"));
	return add_context(typed, DP_CONTEXT_CALL);
}

/* Which exits are the ends of calls only if their entries were seen? */
static bool is_paired(const struct calls *c, const struct dp_syscall_site *s)
{
	return s->nr == DP_CALL_ANY ? c->condition || s->joined : s->joined && !dp_call_returns_twice(s->nr);
}

static struct dp_error *add_probe(struct calls *c, const struct dp_syscall_site *s, bool exit)
{
	char number[32];
	dp_auto_free char *called = NULL;
	const bool any = s->nr == DP_CALL_ANY;
	const int32_t nr = any ? c->only : s->nr;
	const char *name = nr == DP_CALL_ANY ? "any" : dp_call_format((uint64_t)nr, number, sizeof(number));
	const char *phase = exit ? "exit" : "entry";
	DP_TRY(set_text(&called, "syscall_%s_%s", name, phase));
	const struct dp_expand_place at = {
	        .f = &s->function,
	        .offset = (exit ? s->exit : s->entry) - s->function.start.v,
	        .bound = true,
	        .called = called,
	        .when = any && !exit                        ? c->condition
	                : exit && dp_call_returns_twice(nr) ? "$rax != 0"
	                                                    : NULL,
	};
	struct dp_probe *p;
	DP_TRY(dp_expand_add(c->x, c->from, &at, &p));
	struct dp_typed *typed = &c->x->out.trace.typed[c->x->out.trace.nprobes - 1];
	typed->call = (struct dp_call_at){.is = true, .exit = exit, .nr = nr, .chosen = exit && is_paired(c, s)};
	typed->call.back = (uint8_t)(s->exit - s->entry);
	p->leaves = exit;
	if (exit && any && c->condition && !(typed->chosen = strdup(c->condition)))
		return dp_error_nomem();
	if (!c->x->from->probe[c->from].name)
		DP_TRY(set_text(&p->title, "syscall:%s:%s", nr == DP_CALL_ANY ? "*" : name, phase));
	return set_context(c, typed, exit);
}

/* At a site of any number, an exit finds the state that its entry left, which a call that returns twice would use twice. */
static bool has_exit(const struct calls *c, int32_t nr)
{
	if (nr != DP_CALL_ANY)
		return !dp_call_never_returns(nr);
	return !dp_call_never_returns(c->only) && !dp_call_returns_twice(c->only);
}

/* The probes of one number are neighbours, so that they make one row of an aggregation. */
static struct dp_error *add_number(struct calls *c, size_t first, size_t end)
{
	const struct dp_syscall_site *s = c->sites.item;
	for (size_t i = first; c->entries && i < end; i++)
		if (!s[i].kept) {
			DP_TRY(add_probe(c, &s[i], false));
			c->x->out.trace.typed[c->x->out.trace.nprobes - 1].half =
			        c->exits && has_exit(c, s[i].nr) && !s[i].no_exit;
		}
	for (size_t i = first; c->exits && i < end && has_exit(c, s[i].nr); i++)
		if (!s[i].kept && !s[i].no_exit)
			DP_TRY(add_probe(c, &s[i], true));
	for (size_t i = first; i < end; i++)
		c->kept += s[i].kept;
	return NULL;
}

static struct dp_error *add_all(struct calls *c)
{
	const struct dp_syscall_site *s = c->sites.item;
	for (size_t i = 0, end; i < c->sites.n; i = end) {
		for (end = i + 1; end < c->sites.n && s[end].nr == s[i].nr;)
			end++;
		if (s[i].nr != DP_CALL_ANY && !matches(c, s[i].nr))
			continue;
		c->named += s[i].nr != DP_CALL_ANY ? end - i : 0;
		DP_TRY(add_number(c, i, end));
	}
	return NULL;
}

/* ---- which calls and points ------------------------------------------------------------------------------------------- */

static bool mentions_end(const char *text)
{
	return text && (strstr(text, "retval") || strstr(text, "duration"));
}

/* Entry and exit, except where a value is known at one of them only. An aggregation uses one, so that each call counts once. */
static void choose_points(struct calls *c)
{
	const struct dp_trace_spec *trace = c->x->from;
	const struct dp_typed *typed = &trace->typed[c->from];
	bool end = trace->asked.slower_ns || dp_asked_mentions(&trace->asked, "retval") ||
	           dp_asked_mentions(&trace->asked, "duration") || mentions_end(typed->when);
	for (size_t i = 0; i < typed->ncontexts; i++)
		end |= mentions_end(typed->context[i]);
	c->entries = c->spec->point == DP_POINT_ENTRY || (c->spec->point == DP_POINT_PLACE && !end);
	c->exits = c->spec->point == DP_POINT_RETURN || (c->spec->point == DP_POINT_PLACE && (end || !trace->asked.what));
}

static struct dp_error *add_condition(struct calls *c, int32_t nr)
{
	char *longer = NULL;
	if (asprintf(&longer, "%s%s$eax == %d", c->condition ? c->condition : "", c->condition ? " || " : "", nr) < 0)
		return dp_error_nomem();
	free(c->condition);
	c->condition = longer;
	return NULL;
}

static struct dp_error *too_many(const struct calls *c)
{
	return dp_error(
	        DP_TAG_USAGE,
	        "'%s' matches %zu system calls, and the limit is %u: use a narrower pattern, or * with --when 'nr == ...'",
	        c->spec->text, c->numbers, NUMBERS_MAX);
}

static struct dp_error *find_numbers(struct calls *c)
{
	c->all = !strcmp(c->spec->call, "*");
	c->only = dp_call_find(c->spec->call);
	if (c->all)
		return NULL;
	for (int32_t nr = 0; nr < (int32_t)DP_CALL_END; nr++) {
		if (!dp_call_name((uint64_t)nr) && nr != c->only)
			continue;
		if (!matches(c, nr))
			continue;
		if (++c->numbers <= NUMBERS_MAX)
			DP_TRY(add_condition(c, nr));
		c->only = c->numbers == 1 ? nr : DP_CALL_ANY;
	}
	if (!c->numbers)
		return dp_error(DP_TAG_NO_SYMBOL,
		                "'%s': no such system call; dynprobe list -p PID 'syscall:*' shows those that the program makes",
		                c->spec->text);
	return c->numbers > NUMBERS_MAX ? too_many(c) : NULL;
}

/* ---- messages -------------------------------------------------------------------------------------------------- */

static bool has_generated_code(struct dp_image *image)
{
	for (size_t i = 0; i < dp_image_nmaps(image); i++) {
		const struct dp_map *map = dp_image_map(image, i);
		if (map->exec && (!map->path[0] || !strncmp(map->path, "[anon", 5)))
			return true;
	}
	return false;
}

/* What the C library's function of that name calls instead on x86-64, or NULL. */
static const char *called_instead(const char *name)
{
	static const char *const pair[][2] = {
	        {"open", "openat"},      {"creat", "openat"},        {"stat", "newfstatat"},
	        {"lstat", "newfstatat"}, {"fstat", "newfstatat"},    {"fork", "clone"},
	        {"select", "pselect6"},  {"signal", "rt_sigaction"}, {"nanosleep", "clock_nanosleep"}};
	for (size_t i = 0; name && i < sizeof(pair) / sizeof(*pair); i++)
		if (!strcmp(name, pair[i][0]))
			return pair[i][1];
	return NULL;
}

static void log_sites(const struct calls *c)
{
	const char *instead = called_instead(c->spec->call);
	const size_t any = c->sites.n && c->sites.item[c->sites.n - 1].nr == DP_CALL_ANY;
	if (!c->named && any)
		dp_trace_log(c->x->from, DP_LOG_INFO,
		             "%s: no site makes this call only; probing the sites that make any call%s%s%s%s", c->spec->text,
		             instead ? "; glibc's " : "", instead ? c->spec->call : "", instead ? "() makes the call " : "",
		             instead ? instead : "");
	if (c->sites.unknown)
		dp_trace_log(c->x->from, DP_LOG_INFO,
		             "%zu places that look like system calls are outside of all known functions: not probed",
		             c->sites.unknown);
	if (c->kept)
		dp_trace_log(c->x->from, DP_LOG_INFO,
		             "%zu places are in code that must not change (see dynprobe explain DP-RSEQ): not probed", c->kept);
	if (has_generated_code(c->x->image))
		dp_trace_log(c->x->from, DP_LOG_INFO, "the process has generated code; system calls in it are not probed");
}

static struct dp_error *nothing(const struct calls *c)
{
	if (c->kept)
		return dp_error(DP_TAG_RSEQ,
		                "'%s': all %zu places that may make this system call are in code that must not change: thread "
		                "cancellation compares its addresses, or threads end there without a stack",
		                c->spec->text, c->kept);
	return dp_error(DP_TAG_NO_SYMBOL, "'%s': no code in %s makes this system call", c->spec->text,
	                c->spec->module ? c->spec->module : "the process's files");
}

static struct dp_error *expand(struct calls *c)
{
	const size_t before = c->x->out.trace.nprobes;
	DP_TRY(find_numbers(c));
	DP_TRY(dp_call_sites_find(c->x->from, c->x->image, c->x->view, c->spec, &c->sites));
	choose_points(c);
	DP_TRY(add_all(c));
	if (c->x->out.trace.nprobes == before)
		return nothing(c);
	log_sites(c);
	return NULL;
}

struct dp_error *dp_expand_calls(struct dp_expander *x, size_t from)
{
	struct calls c = {.x = x, .from = from, .spec = &x->from->probe[from].spec};
	struct dp_error *err = expand(&c);
	dp_call_sites_fini(&c.sites);
	free(c.condition);
	return err;
}
