/* SPDX-License-Identifier: MIT */
#include "cli/options/options_table.h"
#include "probes/expr/scope/scope.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * ':' first: getopt reports a missing argument as ':' and prints nothing. '+': the options of a command that is started are not
 * ours; names of probes may be anywhere.
 */
static void getopt_tables(enum dp_verb verb, struct option *longs, char *shorts)
{
	if (verb == DP_VERB_RUN)
		*shorts++ = '+';
	*shorts++ = ':';
	for (size_t i = 0; i < DP_OPTION_ROWS; i++) {
		const struct dp_option_row *row = &dp_option_rows[i];
		if (!dp_option_of(row, verb))
			continue;
		const int has = !row->metavar ? no_argument : *row->metavar == '[' ? optional_argument : required_argument;
		*longs++ = (struct option){row->name, has, NULL, 256 + (int)i};
		if (!row->letter)
			continue;
		*shorts++ = row->letter;
		if (row->metavar)
			*shorts++ = ':';
	}
	*longs = (struct option){0};
	*shorts = 0;
}

/* An option of one name may mean something else for each verb. */
static const struct dp_option_row *row_of(enum dp_verb verb, int code)
{
	if (code >= 256 && (size_t)(code - 256) < DP_OPTION_ROWS)
		return &dp_option_rows[code - 256];
	for (size_t i = 0; i < DP_OPTION_ROWS; i++)
		if (code < 256 && dp_option_rows[i].letter && dp_option_rows[i].letter == code &&
		    dp_option_of(&dp_option_rows[i], verb))
			return &dp_option_rows[i];
	return NULL;
}

static bool is_number(const char *word)
{
	return *word && !word[strspn(word, "0123456789")];
}

/*
 * getopt takes an optional argument only after '='. Users type a blank: a number is no command, so [=N] takes it. [WORD] takes
 * any word that does not begin with '-'.
 */
static bool is_argument(const struct dp_option_row *row, const char *word)
{
	if (!word || !row->metavar || *row->metavar != '[')
		return false;
	return row->metavar[1] == '=' ? is_number(word) : *word != '-';
}

static struct dp_error *walk(struct dp_parser *p, int argc, char **argv)
{
	struct option longs[DP_OPTION_ROWS + 1];
	char shorts[2 * DP_OPTION_ROWS + 3];
	int code;
	getopt_tables(p->verb, longs, shorts);
	opterr = 0;
	optind = 0;
	while ((code = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct dp_option_row *row = code == '?' ? NULL : row_of(p->verb, code);
		if (code == ':')
			return dp_error(DP_TAG_USAGE, "%s needs an argument", argv[optind - 1]);
		if (!row)
			return dp_option_unknown(p->verb, argv[optind - 1]);
		if (!optarg && is_argument(row, argv[optind]))
			optarg = argv[optind++];
		p->row = row;
		snprintf(p->option, sizeof(p->option), row->letter ? "-%.1s" : "--%s", row->letter ? &row->letter : row->name);
		DP_TRY(row->take(p, optarg));
		p->o.trace.own_events |= row->events;
	}
	return NULL;
}

/* After the options: the command to start, or the names of probes. */
static struct dp_error *take_rest(struct dp_parser *p, char **argv, int at)
{
	char **rest = argv + at;
	const bool dashes = at > 1 && !strcmp(argv[at - 1], "--");
	const bool names = p->verb == DP_VERB_ENABLE || p->verb == DP_VERB_DISABLE || p->verb == DP_VERB_REMOVE ||
	                   p->verb == DP_VERB_LIST || p->verb == DP_VERB_SNAPSHOT || p->verb == DP_VERB_SHOW ||
	                   p->verb == DP_VERB_REPORT || p->verb == DP_VERB_PMODULE || p->verb == DP_VERB_VIEW ||
	                   p->verb == DP_VERB_FLAME || p->verb == DP_VERB_TRACES || p->verb == DP_VERB_DOCTOR ||
	                   (p->verb == DP_VERB_RECORD && p->o.snapshot.core);
	size_t n = 0;
	if (!*rest)
		return NULL;
	if (p->o.help) {
		p->o.topic = *rest;
		return NULL;
	}
	if (p->verb == DP_VERB_RUN && at == 1)
		return dp_command_unknown(*rest);
	if (!names && (p->verb != DP_VERB_RUN || (p->o.trace.npids && !dashes && !p->o.trace.command)))
		return dp_word_unexpected(p->verb, *rest);
	if (p->o.trace.command)
		return dp_error(DP_TAG_USAGE, "two commands: one with -c, and '%s' after the options", *rest);
	while (rest[n])
		n++;
	char **words = calloc(n + 1, sizeof(*words));
	for (size_t i = 0; words && i < n; i++)
		words[i] = strdup(rest[i]);
	*(names ? &p->o.name : &p->o.trace.command) = words;
	p->o.nnames = names ? n : 0;
	return words ? NULL : dp_error_nomem();
}

/* The contexts of add-context are for a probe that only the target knows: check their form. */
static struct dp_error *take_contexts(struct dp_parser *p)
{
	struct dp_fields scratch = {0};
	struct dp_error *err = NULL;
	if (p->verb != DP_VERB_ADD_CONTEXT)
		return NULL;
	for (size_t i = 0; !err && i < p->probes.nearly; i++)
		err = dp_scope_is_fixed(p->probes.early_context[i]) ? dp_fields_add(&scratch, p->probes.early_context[i])
		                                                    : dp_context_check(p->probes.early_context[i]);
	dp_fields_fini(&scratch);
	p->o.ncontexts = p->probes.nearly;
	p->o.context = dp_take(p->probes.early_context, NULL);
	return err;
}

/* DTrace's pid123:... names the process, pid*:... every process. For several processes there is --pid. */
static struct dp_error *take_pids(struct dp_options *o)
{
	for (size_t i = 0; i < o->trace.nprobes; i++) {
		const uint64_t pid = o->trace.probe[i].spec.pid;
		o->trace.all |= o->trace.probe[i].spec.every;
		if (!pid)
			continue;
		if (!o->trace.npids && !o->trace.command && pid <= INT32_MAX && (o->trace.pid = calloc(1, sizeof(*o->trace.pid))))
			o->trace.pid[o->trace.npids++] = (pid_t)pid;
		if (o->trace.npids != 1 || (uint64_t)o->trace.pid[0] != pid)
			return dp_error(DP_TAG_USAGE, "'%s' names process %llu, but another process is probed",
			                o->trace.probe[i].spec.text, (unsigned long long)pid);
	}
	return NULL;
}

/* A ring's size is a power of two. */
static void round_ring(size_t *size)
{
	const size_t asked = *size;
	for (*size = asked ? 16 << 10 : 0; *size < asked;)
		*size *= 2;
}

static struct dp_error *parse(struct dp_parser *p, int argc, char **argv)
{
	DP_TRY(walk(p, argc, argv));
	DP_TRY(take_rest(p, argv, optind));
	DP_TRY(take_contexts(p));
	p->probes.snapshot = p->o.trace.snapshots.on;
	DP_TRY(dp_args_finish(&p->probes));
	if ((p->o.profile_hz || p->o.off_cpu) && (p->probes.nearly || p->probes.early_when))
		return dp_error(DP_TAG_USAGE, "--profile records only stacks: it and -t or --when exclude each other");
	p->o.trace.probe = dp_take(p->probes.probe, NULL);
	p->o.trace.typed = dp_take(p->probes.typed, NULL);
	p->o.trace.nprobes = dp_take(p->probes.n, 0);
	round_ring(&p->o.trace.ring_size);
	DP_TRY(take_pids(&p->o));
	dp_snapshot_args_finish(&p->o.snapshot);
	p->o.trace.snapshots.take = p->o.snapshot.take;
	return dp_options_check(p->verb, &p->o);
}

struct dp_error *dp_options_parse_verb(enum dp_verb verb, int argc, char **argv, struct dp_options *ret)
{
	struct dp_parser p = {.verb = verb, .o = {.show.frame = -1, .trace.attach = verb == DP_VERB_ATTACH}};
	struct dp_error *err = parse(&p, argc, argv);
	dp_args_fini(&p.probes);
	if (err)
		dp_options_fini(&p.o);
	else
		*ret = p.o;
	return err;
}

struct dp_error *dp_options_parse(int argc, char **argv, struct dp_options *ret)
{
	return dp_options_parse_verb(DP_VERB_RUN, argc, argv, ret);
}

void dp_options_fini(struct dp_options *o)
{
	for (size_t i = 0; i < o->trace.nprobes; i++) {
		dp_probe_fini(&o->trace.probe[i]);
		if (o->trace.typed)
			dp_typed_fini(&o->trace.typed[i]);
	}
	dp_asked_fini(&o->trace.asked);
	dp_snapshot_args_fini(&o->snapshot);
	free(o->trace.probe);
	free(o->trace.typed);
	free(o->trace.except.item);
	free(o->trace.programs.item);
	free(o->trace.follow_exec.item);
	free(o->traces.remove.item);
	free(o->trace.pid);
	free(o->trace.found);
	free(o->context);
	dp_words_free(o->trace.command);
	dp_words_free(o->name);
	*o = (struct dp_options){0};
}

bool dp_options_color(const struct dp_options *o, FILE *to)
{
	const char *no_color = getenv("NO_COLOR");
	if (o->color == DP_COLOR_ALWAYS)
		return true;
	return o->color == DP_COLOR_AUTO && isatty(fileno(to)) && !(no_color && *no_color);
}
