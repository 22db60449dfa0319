/* SPDX-License-Identifier: MIT */
#include "cli/options/numbers.h"
#include "cli/options/options_table.h"
#include "trampoline/trampoline.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN 8u /* pids in a message */

static struct dp_error *check_sink(struct dp_options *o)
{
	const char *of_lttng = o->trace.session   ? "--session"
	                       : o->trace.set_url ? "--set-url"
	                       : o->trace.live_us ? "--live"
	                       : o->trace.filter  ? "--filter"
	                                          : NULL;
	if (o->trace.sink == DP_SINK_CURRENT && (of_lttng || o->trace.own_events))
		o->trace.sink = DP_SINK_AUTO;
	if (of_lttng && o->trace.sink == DP_SINK_RING)
		return dp_error(DP_TAG_USAGE, "%s is for LTTng and excludes --sink ring", of_lttng);
	if (of_lttng)
		o->trace.sink = DP_SINK_LTTNG;
	if (o->trace.sink == DP_SINK_LTTNG && o->trace.own_events && !o->trace.dry_run)
		return dp_error(DP_TAG_USAGE,
		                "with %s events go to LTTng, not to dynprobe: -n, -o, -f, --record, --record-size, --rotate, "
		                "--no-record, --on-full, --overwrite and --dump-ring are for --sink ring; read the session with "
		                "lttng view",
		                of_lttng ? of_lttng : "--sink lttng");
	return NULL;
}

static struct dp_error *check_run(const struct dp_options *o)
{
	if (!o->trace.npids && !o->trace.command && !dp_trace_awaits(&o->trace))
		return dp_error(DP_TAG_USAGE, "which process? Give --pid (a pid, a list or a name), --cgroup PATH, --program "
		                              "NAME, --all SPEC, -c CMD or -- CMD ARGS; see "
		                              "dynprobe --help");
	if (o->trace.programs.n && o->trace.command)
		return dp_error(DP_TAG_USAGE,
		                "--program and a command exclude each other: for a program that the command executes, use "
		                "--follow --follow-exec %s in place of --program",
		                o->trace.programs.item[0]);
	if (o->trace.npids && o->trace.command)
		return dp_error(DP_TAG_USAGE, "running processes (--pid, --cgroup) and a command exclude each other");
	return dp_changes_check(o);
}

/* Later installations have their own rings, but a process can have only one LTTng sink and one handler of traps. */
static struct dp_error *check_pending(struct dp_options *o)
{
	const char *other = o->trace.sink == DP_SINK_LTTNG                                ? "events of LTTng"
	                    : o->trace.tactics >> DP_TACTIC_TRAP & 1 && !o->trace.no_trap ? "traps"
	                    : o->trace.dry_run                                            ? "--dry-run"
	                                                                                  : NULL;
	if (!o->trace.pending)
		return NULL;
	if (other)
		return dp_error(DP_TAG_USAGE, "--pending and %s exclude each other", other);
	o->trace.sink = DP_SINK_RING;
	return NULL;
}

/* --max-wait for all runs of a slow machine. */
static struct dp_error *take_default_wait(struct dp_options *o)
{
	const char *usual = getenv("DYNPROBE_MAX_WAIT");
	if (o->trace.max_wait_ns || !usual || !*usual)
		return NULL;
	DP_TRY(dp_duration_parse("DYNPROBE_MAX_WAIT", usual, &o->trace.max_wait_ns));
	return o->trace.max_wait_ns <= DP_WAIT_MOST_NS ? NULL : dp_error(DP_TAG_USAGE, "DYNPROBE_MAX_WAIT is at most 10m");
}

static struct dp_error *check_follow_exec(const struct dp_options *o)
{
	if (!o->trace.follow_exec.n)
		return NULL;
	if (o->trace.programs.n)
		return dp_error(DP_TAG_USAGE,
		                "--follow-exec and --program exclude each other: --program names the programs already");
	if (!o->trace.follow)
		return dp_error(DP_TAG_USAGE, "--follow-exec says which programs --follow probes: also give --follow");
	return NULL;
}

/* Decisions 0037 and 0045 say why. */
static struct dp_error *check_follow(struct dp_options *o)
{
	DP_TRY(check_follow_exec(o));
	if (!o->trace.follow)
		return NULL;
	if (o->trace.sink == DP_SINK_LTTNG)
		return dp_error(DP_TAG_USAGE,
		                "--follow and events of LTTng exclude each other: a fork child has none of LTTng's threads and "
		                "buffers, and would write to its parent's; --program probes the programs that children execute");
	o->trace.sink = DP_SINK_RING;
	return NULL;
}

/* Of what --program may be with, this has not been tried with all. */
static struct dp_error *check_all_output(struct dp_options *o)
{
	const char *other = o->trace.sink == DP_SINK_LTTNG           ? "events of LTTng"
	                    : o->trace.tactics >> DP_TACTIC_TRAP & 1 ? "traps"
	                    : o->trace.pending                       ? "--pending"
	                    : o->trace.snapshots.on                  ? "--snapshot"
	                                                             : NULL;
	if (!o->trace.all)
		return NULL;
	if (other)
		return dp_error(DP_TAG_USAGE, "--all (pid*) and %s exclude each other", other);
	o->trace.sink = DP_SINK_RING;
	o->trace.no_trap = true; /* a handler in programs that nobody has named */
	return NULL;
}

/* A path is that of one file; the mappings of a process have it without links. */
static struct dp_error *find_file(struct dp_spec *spec)
{
	char *real = realpath(spec->module, NULL);
	if (!real)
		return dp_error_sys(DP_TAG_NO_MODULE,
		                    "'%s': there is no file %s; a name without slashes is that of any such file", spec->text,
		                    spec->module);
	free(spec->module);
	spec->module = real;
	return NULL;
}

/* What only means something in one process. */
static struct dp_error *check_everywhere(struct dp_spec *spec)
{
	if (spec->call)
		return dp_error(DP_TAG_USAGE, "'%s': probes on system calls exclude --all (pid*)", spec->text);
	if (!spec->module && !spec->symbol && !spec->provider)
		return dp_error(DP_TAG_USAGE, "'%s': an address is one of a single process; name its module, MODULE!ADDRESS",
		                spec->text);
	return spec->module && strchr(spec->module, '/') && !strpbrk(spec->module, "*?[") ? find_file(spec) : NULL;
}

static struct dp_error *check_all(enum dp_verb verb, struct dp_options *o)
{
	const char *other = o->trace.npids        ? "--pid, --cgroup, --container and --user"
	                    : o->trace.programs.n ? "--program"
	                    : o->trace.command    ? "a command"
	                    : verb != DP_VERB_RUN ? "attach"
	                                          : NULL;
	if (!o->trace.all)
		return NULL;
	if (other)
		return dp_error(DP_TAG_USAGE, "--all (pid*) means every process: it and %s exclude each other", other);
	for (size_t i = 0; i < o->trace.nprobes; i++)
		DP_TRY(check_everywhere(&o->trace.probe[i].spec));
	o->trace.follow = true; /* a fork child maps what its parent maps */
	return NULL;
}

/* Each run searches for the places that make a call; a resident probe has no names for the arguments. */
static struct dp_error *check_calls(enum dp_verb verb, const struct dp_options *o)
{
	for (size_t i = 0; i < o->trace.nprobes; i++)
		if (o->trace.probe[i].spec.call && (verb == DP_VERB_ATTACH || o->trace.pending))
			return dp_error(DP_TAG_USAGE, "'%s': probes on system calls %s", o->trace.probe[i].spec.text,
			                o->trace.pending ? "are placed when the run begins: they exclude --pending"
			                                 : "cannot be resident: run them without attach");
	return NULL;
}

/* Decision 0049 says why. */
static struct dp_error *check_full(const struct dp_options *o)
{
	const char *other = o->trace.block_ns       ? "--on-full block"
	                    : o->trace.hits         ? "-n"
	                    : o->trace.all          ? "--all (pid*)"
	                    : o->trace.follow       ? "--follow"
	                    : o->trace.pending      ? "--pending"
	                    : o->trace.snapshots.on ? "--snapshot"
	                                            : NULL;
	if (o->trace.asked.what && (o->trace.overwrite || o->trace.block_ns))
		return dp_error(DP_TAG_USAGE, "a run with aggregations records no events: use neither --overwrite nor --on-full");
	if (!o->trace.overwrite || !other)
		return NULL;
	return dp_error(DP_TAG_USAGE, "--overwrite reads the rings when the run ends: it and %s exclude each other", other);
}

static struct dp_error *check_probes(enum dp_verb verb, struct dp_options *o)
{
	if (o->profile_hz || o->off_cpu)
		return dp_profile_check(o);
	DP_TRY(check_all(verb, o));
	DP_TRY(check_calls(verb, o));
	if (!o->trace.nprobes)
		return dp_error(
		        DP_TAG_USAGE,
		        "which places? Give --function, --return, --probe, --calls or --usdt SPEC, --syscall NAME, or --profile "
		        "HZ "
		        "for samples of all code; dynprobe --help probes explains them, dynprobe list PID shows what there is");
	DP_TRY(check_sink(o));
	DP_TRY(check_all_output(o));
	DP_TRY(check_pending(o));
	DP_TRY(take_default_wait(o));
	DP_TRY(check_follow(o));
	DP_TRY(dp_snapshots_check(verb, o));
	DP_TRY(check_full(o));
	return dp_aggs_check(verb, o);
}

static struct dp_error *check_add_context(const struct dp_options *o)
{
	if (!o->event)
		return dp_error(DP_TAG_USAGE, "which probe? Give -e NAME; dynprobe status --pid PID lists them");
	if (!o->ncontexts)
		return dp_error(DP_TAG_USAGE, "which context? Give -t CONTEXT; see dynprobe add-context --help");
	return NULL;
}

static struct dp_error *check_names(enum dp_verb verb, const struct dp_options *o)
{
	if (o->nnames)
		return NULL;
	return dp_error(DP_TAG_USAGE, "which probes? Give names, or '*' for all: dynprobe %s NAME... --pid PID",
	                dp_verb_word(verb));
}

/* A name or a control group may be those of several processes: the message says which. */
static struct dp_error *check_one(enum dp_verb verb, const struct dp_options *o)
{
	struct dp_buf pids = {0};
	if (o->trace.npids < 2)
		return NULL;
	for (size_t i = 0; i < o->trace.npids && i < SHOWN; i++)
		dp_buf_printf(&pids, "%s%d", i ? "," : "", o->trace.pid[i]);
	struct dp_error *err =
	        dp_error(DP_TAG_USAGE, "dynprobe %s takes one process at a time, and %zu are named: %s%s", dp_verb_word(verb),
	                 o->trace.npids, dp_buf_str(&pids), o->trace.npids > SHOWN ? ",..." : "");
	dp_buf_fini(&pids);
	return err;
}

static bool is_pid(const char *word)
{
	return *word && !word[strspn(word, "0123456789,")] && access(word, F_OK);
}

/* list PID, as for snapshot. */
static struct dp_error *take_pid(struct dp_options *o)
{
	if (!o->nnames || o->trace.npids || !is_pid(o->name[0]))
		return NULL;
	DP_TRY(dp_pids_add(&o->trace, o->name[0]));
	free(o->name[0]);
	memmove(o->name, o->name + 1, o->nnames-- * sizeof(*o->name));
	return NULL;
}

static struct dp_error *check_list(const struct dp_options *o)
{
	const size_t most = o->trace.npids ? 1 : 2;
	if (!o->trace.npids && !o->nnames)
		return dp_error(DP_TAG_USAGE, "which process or file? dynprobe list PID|FILE [GLOB]; see dynprobe list --help");
	if (o->nnames > most)
		return dp_error(DP_TAG_USAGE, "unexpected argument '%s': dynprobe list PID|FILE [GLOB]; quote patterns",
		                o->name[most]);
	return NULL;
}

static struct dp_error *check_stubs(const struct dp_options *o)
{
	if (!o->output)
		return dp_error(DP_TAG_USAGE, "no output file: give -o FILE");
	return NULL;
}

/* snapshot PID..., as --pid takes them; or --core, optionally with the executable. */
static struct dp_error *check_snapshot(struct dp_options *o)
{
	if (o->snapshot.core && o->nnames > 1)
		return dp_error(DP_TAG_USAGE, "unexpected argument '%s': dynprobe snapshot PID... | --core CORE [EXE]",
		                o->name[1]);
	if (o->snapshot.core && o->trace.npids)
		return dp_error(DP_TAG_USAGE, "processes (--pid, --cgroup) and --core exclude each other");
	if (o->snapshot.core && o->snapshot.iterations > 1)
		return dp_error(DP_TAG_USAGE, "a core file does not change: --iterations is for processes");
	for (size_t i = 0; !o->snapshot.core && i < o->nnames; i++)
		DP_TRY(dp_pids_add(&o->trace, o->name[i]));
	if (!o->snapshot.core && !o->trace.npids)
		return dp_error(DP_TAG_USAGE, "which process? Give a PID, or --core CORE; see dynprobe snapshot --help");
	return NULL;
}

/* record --core CORE [EXE] */
static struct dp_error *check_record(struct dp_options *o)
{
	if (o->snapshot.core && o->trace.npids)
		return dp_error(DP_TAG_USAGE, "processes (--pid, --cgroup) and --core exclude each other");
	if (o->nnames > 1)
		return dp_error(DP_TAG_USAGE, "unexpected argument '%s': dynprobe record --core CORE [EXE]", o->name[1]);
	return NULL;
}

/* doctor [PID...], as --pid takes them. */
static struct dp_error *check_doctor(struct dp_options *o)
{
	for (size_t i = 0; i < o->nnames; i++)
		DP_TRY(dp_pids_add(&o->trace, o->name[i]));
	return NULL;
}

static struct dp_error *check_verb(enum dp_verb verb, struct dp_options *o)
{
	switch (verb) {
	case DP_VERB_RUN:
	case DP_VERB_ATTACH:
		return check_probes(verb, o);
	case DP_VERB_ADD_CONTEXT:
		return check_add_context(o);
	case DP_VERB_ENABLE:
	case DP_VERB_DISABLE:
	case DP_VERB_REMOVE:
		return check_names(verb, o);
	case DP_VERB_LIST:
		DP_TRY(take_pid(o));
		DP_TRY(check_one(verb, o));
		return check_list(o);
	case DP_VERB_STUBS:
		DP_TRY(check_one(verb, o));
		return check_stubs(o);
	case DP_VERB_SNAPSHOT:
		return check_snapshot(o);
	case DP_VERB_DOCTOR:
		return check_doctor(o);
	case DP_VERB_REPORT:
		return dp_report_check(o);
	case DP_VERB_SHOW:
		return dp_show_check(o);
	case DP_VERB_VIEW:
		return dp_view_check(o);
	case DP_VERB_FLAME:
		return dp_flame_verb_check(o);
	case DP_VERB_RECORD:
		return check_record(o);
	case DP_VERB_STATUS:
	case DP_VERB_DETACH:
	case DP_VERB_PMODULE:
	case DP_VERB_TRACES:
	case DP_VERB_COUNT:
		break;
	}
	return NULL;
}

/* Verbs that work on files, or name the process in another way. */
static bool needs_no_process(enum dp_verb verb)
{
	return verb == DP_VERB_SNAPSHOT || verb == DP_VERB_SHOW || verb == DP_VERB_REPORT || verb == DP_VERB_PMODULE ||
	       verb == DP_VERB_VIEW || verb == DP_VERB_FLAME || verb == DP_VERB_TRACES || verb == DP_VERB_DOCTOR;
}

/* Who asked for so many events, or for a file of them, has what was asked for. A quiet run is for its recording. */
static bool is_shown_only(const struct dp_options *o)
{
	const bool to_record = o->record || o->record_size || o->rotate || o->format == DP_FORMAT_CTF || o->quiet;
	return (o->trace.hits || o->output) && !to_record;
}

struct dp_error *dp_options_check(enum dp_verb verb, struct dp_options *o)
{
	if (o->help || o->version)
		return NULL;
	if (verb == DP_VERB_RUN)
		DP_TRY(check_run(o));
	else if (!o->trace.npids && !o->snapshot.core && verb != DP_VERB_STATUS && verb != DP_VERB_LIST &&
	         !needs_no_process(verb))
		return dp_error(DP_TAG_USAGE,
		                "which process? Give --pid (a pid or a name); dynprobe status lists those with resident probes");
	if (o->no_record && (o->record || o->record_size || o->rotate || o->format == DP_FORMAT_CTF))
		return dp_error(DP_TAG_USAGE,
		                "--no-record and recording (--record, --record-size, --rotate, -f ctf) exclude each other");
	if (o->rotate && o->record_size && o->record_size / 2 < o->rotate)
		return dp_error(DP_TAG_USAGE, "--record-size must have room for two traces of --rotate: the oldest is removed "
		                              "when the next begins");
	const bool shows_events = verb == DP_VERB_RUN || verb == DP_VERB_RECORD || verb == DP_VERB_ATTACH;
	if (!shows_events && verb != DP_VERB_VIEW && o->format > DP_FORMAT_JSON)
		return dp_error(DP_TAG_USAGE, "dynprobe %s -f is text or json", dp_verb_word(verb));
	if (verb == DP_VERB_ATTACH && o->format != DP_FORMAT_TEXT && !o->trace.dry_run)
		return dp_error(DP_TAG_USAGE, "dynprobe attach shows no events: use -f only with --dry-run");
	if (o->format == DP_FORMAT_OPENMETRICS && (verb != DP_VERB_RUN || !o->trace.asked.what))
		return dp_error(DP_TAG_USAGE, "-f openmetrics has aggregations: use it with --count, --hist, --sum and the like");
	if (o->trace.dry_run && o->format > DP_FORMAT_JSON)
		return dp_error(DP_TAG_USAGE, "a plan is text or JSON: use -f text or -f json");
	DP_TRY(check_verb(verb, o));
	o->no_record |= is_shown_only(o);
	return NULL;
}
