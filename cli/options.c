/* SPDX-License-Identifier: MIT */
/* One table of options: it is what getopt_long() is fed with, what --help prints and what the shell completion knows. */
#include "cli/options.h"

#include "cli/numbers.h"
#include "cli/options_probe.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

struct parser {
	struct dp_options o;
	struct dp_probe_args probes;
};

struct option_row {
	const char *name;
	char letter;
	const char *metavar; /* NULL: no argument */
	const char *help;    /* NULL: not shown */
	struct dp_error *(*take)(struct parser *p, const char *arg);
};

static struct dp_error *take_pid(struct parser *p, const char *arg)
{
	uint64_t pid;
	DP_TRY(dp_number_parse("--pid", arg, &pid));
	pid_t *grown = realloc(p->o.pid, (p->o.npids + 1) * sizeof(*grown));
	if (!grown)
		return dp_error(DP_TAG_NOMEM, "out of memory for the pids");
	p->o.pid = grown;
	if (pid > INT32_MAX)
		return dp_error(DP_TAG_NO_PROCESS, "there is no process %s", arg);
	p->o.pid[p->o.npids++] = (pid_t)pid;
	return NULL;
}

static struct dp_error *take_command(struct parser *p, const char *arg)
{
	if (p->o.command)
		return dp_error(DP_TAG_USAGE, "two commands were given; run one dynprobe for each");
	return dp_words_split(arg, &p->o.command);
}

static struct dp_error *take_function(struct parser *p, const char *arg)
{
	return dp_args_probe(&p->probes, arg, true);
}

static struct dp_error *take_probe(struct parser *p, const char *arg)
{
	return dp_args_probe(&p->probes, arg, false);
}

static struct dp_error *take_name(struct parser *p, const char *arg)
{
	return dp_args_name(&p->probes, arg);
}

static struct dp_error *take_type(struct parser *p, const char *arg)
{
	return dp_args_context(&p->probes, arg);
}

static struct dp_error *take_when(struct parser *p, const char *arg)
{
	return dp_args_when(&p->probes, arg);
}

static struct dp_error *take_hits(struct parser *p, const char *arg)
{
	return dp_number_parse("-n", arg, &p->o.hits);
}

static struct dp_error *take_duration(struct parser *p, const char *arg)
{
	return dp_duration_parse("-d", arg, &p->o.duration_ns);
}

static struct dp_error *take_output(struct parser *p, const char *arg)
{
	p->o.output = arg;
	return NULL;
}

static struct dp_error *take_format(struct parser *p, const char *arg)
{
	static const char *const names[] = {[DP_FORMAT_TEXT] = "text", [DP_FORMAT_JSON] = "json", [DP_FORMAT_CTF] = "ctf"};
	for (int i = 0; i < 3; i++)
		if (!strcmp(arg, names[i])) {
			p->o.format = (enum dp_format)i;
			return NULL;
		}
	return dp_error(DP_TAG_USAGE, "-f '%s' is none of text, json, ctf", arg);
}

static struct dp_error *take_record(struct parser *p, const char *arg)
{
	p->o.record = arg;
	return NULL;
}

static struct dp_error *take_no_record(struct parser *p, const char *arg)
{
	(void)arg;
	p->o.no_record = true;
	return NULL;
}

static struct dp_error *take_buffer(struct parser *p, const char *arg)
{
	DP_TRY(dp_size_parse("--buffer-size", arg, &p->o.ring_size));
	const size_t asked = p->o.ring_size;
	if (asked > (size_t)1 << 30)
		return dp_error(DP_TAG_USAGE, "--buffer-size is at most 1G for each thread");
	for (p->o.ring_size = 16 << 10; p->o.ring_size < asked;)
		p->o.ring_size *= 2;
	return NULL;
}

static struct dp_error *take_color(struct parser *p, const char *arg)
{
	if (strcmp(arg, "auto") && strcmp(arg, "always") && strcmp(arg, "never"))
		return dp_error(DP_TAG_USAGE, "--color '%s' is none of auto, always, never", arg);
	p->o.color = arg;
	return NULL;
}

#define FLAG(field)                                                                                                              \
	static struct dp_error *take_##field(struct parser *p, const char *arg)                                                  \
	{                                                                                                                        \
		(void)arg;                                                                                                       \
		p->o.field = true;                                                                                               \
		return NULL;                                                                                                     \
	}
FLAG(allow_seccomp)
FLAG(dry_run)
FLAG(quiet)
FLAG(help)
FLAG(version)

static struct dp_error *take_verbose(struct parser *p, const char *arg)
{
	(void)arg;
	p->o.verbose++;
	return NULL;
}

static const struct option_row rows[] = {
        {"pid", 'p', "PID", "probe the running process PID (repeatable)", take_pid},
        {"command", 'c', "CMD", "start CMD (words as in a shell) with the probes armed before main; or: -- CMD ARGS",
         take_command},
        {"function", 0, "SPEC", "a probe at the entry of a function", take_function},
        {"probe", 0, "SPEC", "a probe at ADDRESS, SYMBOL or SYMBOL+OFFSET, with MODULE! before it where needed", take_probe},
        {"name", 0, "NAME", "the event name of the next probe", take_name},
        {"type", 't', "CONTEXT", "what the probes before it record: regs, reg:NAME, TYPE:NAME:ADDR, backtrace[:DEPTH]",
         take_type},
        {"when", 0, "COND", "record only when COND holds, e.g. 'arg0 == 0 && (rsi & 7) > 2'", take_when},
        {"hits", 'n', "N", "stop after N recorded hits", take_hits},
        {"duration", 'd', "TIME", "stop after TIME (seconds, or 250ms, 2m, 1h)", take_duration},
        {"output", 'o', "FILE", "write the live events to FILE (- for standard output) instead of standard error", take_output},
        {"format", 'f', "FORMAT", "of the live events: text, json (one object a line) or ctf (the recording only)", take_format},
        {"record", 0, "DIR", "record into DIR instead of ~/lttng-traces/dynprobe-NAME-DATE (lttng view -t DIR)", take_record},
        {"no-record", 0, NULL, "record nothing, only show", take_no_record},
        {"buffer-size", 0, "SIZE", "ring of each thread, e.g. 256K or 4M (default 1M)", take_buffer},
        {"dry-run", 0, NULL, "show what would be done; the target is not touched", take_dry_run},
        {"allow-seccomp", 0, NULL, "as root: also probe a process with a seccomp filter (see dynprobe explain DP-SECCOMP)",
         take_allow_seccomp},
        {"color", 0, "WHEN", "auto, always or never (NO_COLOR is honoured)", take_color},
        {"quiet", 'q', NULL, "no live events, only the summary", take_quiet},
        {"verbose", 'v', NULL, "say what is being done", take_verbose},
        {"help", 'h', NULL, "this text", take_help},
        {"version", 'V', NULL, "the version", take_version},
};
#define NROWS (sizeof(rows) / sizeof(*rows))

/* ':' first: getopt reports a missing argument as ':' and prints nothing; '+': the command's own options are not ours. */
static void getopt_tables(struct option *longs, char *shorts)
{
	*shorts++ = '+';
	*shorts++ = ':';
	for (size_t i = 0; i < NROWS; i++) {
		longs[i] = (struct option){rows[i].name, rows[i].metavar ? required_argument : no_argument, NULL, 256 + (int)i};
		if (!rows[i].letter)
			continue;
		*shorts++ = rows[i].letter;
		if (rows[i].metavar)
			*shorts++ = ':';
	}
	longs[NROWS] = (struct option){0};
	*shorts = 0;
}

static const struct option_row *row_of(int code)
{
	if (code >= 256 && (size_t)(code - 256) < NROWS)
		return &rows[code - 256];
	for (size_t i = 0; i < NROWS; i++)
		if (code < 256 && rows[i].letter && rows[i].letter == code)
			return &rows[i];
	return NULL;
}

static struct dp_error *walk(struct parser *p, int argc, char **argv)
{
	struct option longs[NROWS + 1];
	char shorts[2 * NROWS + 3];
	int code;
	getopt_tables(longs, shorts);
	opterr = 0;
	while ((code = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct option_row *row = row_of(code);
		if (code == ':')
			return dp_error(DP_TAG_USAGE, "%s needs an argument", argv[optind - 1]);
		if (!row)
			return dp_error(DP_TAG_USAGE, "unknown option %s; see dynprobe --help", argv[optind - 1]);
		DP_TRY(row->take(p, optarg));
	}
	return NULL;
}

/* What is behind the options is the command to start. */
static struct dp_error *take_rest(struct parser *p, char **rest)
{
	size_t n = 0;
	if (!*rest)
		return NULL;
	if (p->o.command)
		return dp_error(DP_TAG_USAGE, "a command was given with -c and another one behind the options: '%s'", *rest);
	while (rest[n])
		n++;
	p->o.command = calloc(n + 1, sizeof(*p->o.command));
	for (size_t i = 0; p->o.command && i < n; i++)
		p->o.command[i] = strdup(rest[i]);
	return p->o.command ? NULL : dp_error(DP_TAG_NOMEM, "out of memory for the command");
}

static struct dp_error *check(const struct dp_options *o)
{
	if (o->help || o->version)
		return NULL;
	if (!o->npids && !o->command)
		return dp_error(DP_TAG_USAGE, "which process? Give --pid PID, -c CMD or -- CMD ARGS; see dynprobe --help");
	if (o->npids && o->command)
		return dp_error(DP_TAG_USAGE, "--pid and a command to start exclude each other");
	if (!o->nprobes)
		return dp_error(DP_TAG_USAGE, "which places? Give --function SPEC or --probe SPEC; see dynprobe --help");
	if (o->no_record && (o->record || o->format == DP_FORMAT_CTF))
		return dp_error(DP_TAG_USAGE, "--no-record and recording (--record, -f ctf) exclude each other");
	return NULL;
}

static struct dp_error *parse(struct parser *p, int argc, char **argv)
{
	DP_TRY(walk(p, argc, argv));
	DP_TRY(take_rest(p, argv + optind));
	DP_TRY(dp_args_finish(&p->probes));
	p->o.probe = p->probes.probe;
	p->o.nprobes = p->probes.n;
	return check(&p->o);
}

struct dp_error *dp_options_parse(int argc, char **argv, struct dp_options *ret)
{
	struct parser p = {.o = {.color = "auto"}};
	struct dp_error *err = parse(&p, argc, argv);
	free(p.probes.early_context);
	p.probes.early_context = NULL;
	if (err) {
		p.o.probe = NULL;
		p.o.nprobes = 0;
		dp_options_fini(&p.o);
		dp_args_fini(&p.probes);
		return err;
	}
	*ret = p.o;
	return NULL;
}

void dp_options_fini(struct dp_options *o)
{
	for (size_t i = 0; i < o->nprobes; i++)
		dp_probe_fini(&o->probe[i]);
	free(o->probe);
	free(o->pid);
	dp_words_free(o->command);
	*o = (struct dp_options){0};
}

void dp_options_help(FILE *to)
{
	fputs("Usage: dynprobe --pid PID [OPTIONS]\n"
	      "       dynprobe [OPTIONS] -c CMD\n"
	      "       dynprobe [OPTIONS] -- CMD ARGS...\n"
	      "       dynprobe explain [TAG]\n"
	      "\n"
	      "Examples:\n"
	      "  dynprobe --pid 4242 --function foo -t reg:rdi -t backtrace\n"
	      "  dynprobe -c \"ls -l\" --function main\n"
	      "  dynprobe --pid 4242 --probe 'libc.so.6!malloc' --when 'arg0 > 4096' -n 100\n"
	      "\n"
	      "Options:\n",
	      to);
	for (size_t i = 0; i < NROWS; i++) {
		char left[64];
		snprintf(left, sizeof(left), "%c%c%c --%s%s%s", rows[i].letter ? '-' : ' ', rows[i].letter ? rows[i].letter : ' ',
		         rows[i].letter ? ',' : ' ', rows[i].name, rows[i].metavar ? " " : "",
		         rows[i].metavar ? rows[i].metavar : "");
		fprintf(to, "  %-26s %s\n", left, rows[i].help);
	}
	fputs("\nExit status: that of CMD; 0 for --pid; 124 some probes were refused; 125 dynprobe failed; 126/127 CMD cannot be "
	      "run/found.\n",
	      to);
}

void dp_options_completion(FILE *to)
{
	fputs("complete -W \"", to);
	for (size_t i = 0; i < NROWS; i++)
		fprintf(to, "--%s ", rows[i].name);
	fputs("explain\" dynprobe\n", to);
}
