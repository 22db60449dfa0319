/* SPDX-License-Identifier: MIT */
#include "cli/options/numbers.h"
#include "cli/options/options_table.h"
#include "trampoline/trampoline.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static struct dp_error *take_command(struct dp_parser *p, const char *arg)
{
	if (p->o.trace.command)
		return dp_error(DP_TAG_USAGE, "two commands: run one dynprobe for each");
	return dp_words_split(arg, &p->o.trace.command);
}

/* DTrace's -n: pid1234:MODULE:FUNCTION:NAME is the process as well, pid*:... every process. */
static struct dp_error *take_description(struct dp_parser *p, const char *arg)
{
	char number[24];
	const size_t n = strspn(arg + 3, "0123456789");
	if (n && n < sizeof(number) && arg[3 + n] == ':') {
		snprintf(number, sizeof(number), "%.*s", (int)n, arg + 3);
		DP_TRY(dp_option_pid(p, number));
		if (p->o.trace.npids > 1)
			return dp_error(
			        DP_TAG_USAGE,
			        "-n '%s' names a second process; give --pid several times and the probe without pid to --probe",
			        arg);
	}
	return dp_option_probe(p, arg);
}

static struct dp_error *take_hits(struct dp_parser *p, const char *arg)
{
	if (!strncmp(arg, "pid", 3) && (p->verb == DP_VERB_RUN || p->verb == DP_VERB_ATTACH))
		return take_description(p, arg);
	p->o.trace.own_events = true;
	return dp_number_parse("-n", arg, &p->o.trace.hits);
}

/* "0", "0s", "0ms": print the buffered events and exit. */
static bool is_zero(const char *arg)
{
	char *end;
	return strtod(arg, &end) == 0 && end != arg && strspn(end, "smhnu") == strlen(end);
}

static struct dp_error *take_duration(struct dp_parser *p, const char *arg)
{
	if (p->verb == DP_VERB_RECORD && is_zero(arg)) {
		p->o.once = true;
		return NULL;
	}
	return dp_duration_parse("-d", arg, &p->o.trace.duration_ns);
}

/* As for lttng create: microseconds without a unit, one second without an argument. */
static struct dp_error *take_live(struct dp_parser *p, const char *arg)
{
	uint64_t ns = 0;
	p->o.trace.live_us = 1000000;
	if (!arg)
		return NULL;
	if (strspn(arg, "0123456789") == strlen(arg))
		return dp_number_parse("--live", arg, &p->o.trace.live_us);
	DP_TRY(dp_duration_parse("--live", arg, &ns));
	p->o.trace.live_us = ns < 1000 ? 1 : ns / 1000;
	return NULL;
}

static struct dp_error *take_verbose(struct dp_parser *p, const char *arg)
{
	(void)arg;
	p->o.verbose++;
	return NULL;
}

static struct dp_error *take_tactic(struct dp_parser *p, const char *arg)
{
	char word[16];
	while (*arg) {
		const size_t n = strcspn(arg, ",");
		enum dp_tactic tactic;
		if (n >= sizeof(word))
			return dp_error(DP_TAG_USAGE, "unknown tactic '%s': use jump, pun, evict, window or trap", arg);
		memcpy(word, arg, n);
		word[n] = 0;
		if (!dp_tactic_find(word, &tactic))
			return dp_error(DP_TAG_USAGE, "unknown tactic '%s': use jump, pun, evict, window or trap", word);
		p->o.trace.tactics |= 1u << tactic;
		arg += n + (arg[n] == ',');
	}
	return p->o.trace.tactics ? NULL : dp_error(DP_TAG_USAGE, "--tactic needs one of jump, pun, evict, window, trap");
}

#define RECORD_LEAST  (UINT64_C(64) << 10)
#define BLOCK_MOST_NS UINT64_C(60000000000)

static struct dp_error *take_on_full(struct dp_parser *p, const char *arg)
{
	uint64_t *ns = &p->o.trace.block_ns;
	*ns = 0;
	if (!strcmp(arg, "drop"))
		return NULL;
	if (strncmp(arg, "block=", 6))
		return dp_error(DP_TAG_USAGE, "--on-full '%s': use drop, or block=TIME (block=100ms)", arg);
	DP_TRY(dp_duration_parse("--on-full block", arg + 6, ns));
	return *ns && *ns <= BLOCK_MOST_NS
	               ? NULL
	               : dp_error(DP_TAG_USAGE, "--on-full '%s': a hit waits for 60 s at most, and more than 0", arg);
}

/* The destination of an option; the comparison makes the compiler check its type. */
#define OF(field, type)                                                                                                          \
	.to = offsetof(struct dp_options, field) + 0 * sizeof((type *)0 == &((struct dp_options *)0)->field), .size = sizeof(type)
#define FLAG(field)            .take = dp_option_value, OF(field, bool), .value = true
#define TEXT(field)            .take = dp_option_text, OF(field, const char *)
#define NAME(field)            .take = dp_option_name, OF(field, const char *)
#define NUMBER(field, type)    .take = dp_option_number, OF(field, type)
#define COUNT(field, type)     NUMBER(field, type), .most = DP_NUMBER_MOST
#define SIZE(field, type)      .take = dp_option_size, OF(field, type)
#define DURATION(field)        .take = dp_option_duration, OF(field, uint64_t)
#define MILLISECONDS(field)    .take = dp_option_milliseconds, OF(field, uint64_t)
#define LIST(field)            .take = dp_option_list, OF(field, struct dp_word_list)
#define NAMES(field)           .take = dp_option_names, OF(field, struct dp_word_list)
#define TIDS(field)            .take = dp_option_tids, OF(field, struct dp_tid_list)
#define WORD(field, type, ...) .take = dp_option_word, OF(field, type), .word = {__VA_ARGS__}

/* Not a multiple of what programs and clocks do at round times. */
#define PROFILE_HZ 99

static struct dp_error *take_profile(struct dp_parser *p, const char *arg)
{
	p->o.off_cpu = arg && !strcmp(arg, "off-cpu");
	p->o.profile_hz = arg ? 0 : PROFILE_HZ; /* of several, the last one holds */
	if (!arg)
		return NULL;
	if (p->o.off_cpu)
		return NULL;
	if (*arg < '0' || *arg > '9')
		return dp_error(
		        DP_TAG_USAGE,
		        "--profile '%s': give samples a second, or off-cpu for where threads wait; before a command write "
		        "--profile -- COMMAND",
		        arg);
	return dp_option_number(p, arg);
}

static struct dp_error *take_record(struct dp_parser *p, const char *arg)
{
	p->o.record = arg ? arg : "";
	return arg && !*arg ? dp_error(DP_TAG_USAGE, "--record: the name of the directory is empty") : NULL;
}

#define V(verb) (1u << DP_VERB_##verb)
#define PROBES  (V(RUN) | V(ATTACH))
#define EVENTS  (V(RUN) | V(RECORD))
#define SHOTS   (V(SNAPSHOT) | V(RUN))
#define MODULES (SHOTS | V(PMODULE))
#define CHANGES (V(ADD_CONTEXT) | V(REMOVE) | V(DETACH))
#define COUNTS  (PROBES | V(VIEW))
#define SEVERAL (PROBES | V(STATUS) | V(ENABLE) | V(DISABLE) | V(ADD_CONTEXT) | V(RECORD) | V(REMOVE) | V(DETACH) | V(SNAPSHOT))
#define EVERY   ((1u << DP_VERB_COUNT) - 1)

const struct dp_option_row dp_option_rows[DP_OPTION_ROWS] = {
        {"pid", 'p', "PID", "the running process PID, a list (12,14), or a name for all that have it (nginx); repeatable",
         EVERY & ~V(SHOW) & ~V(REPORT) & ~V(PMODULE) & ~V(VIEW) & ~V(FLAME) & ~V(TRACES), .take = dp_option_pid},
        {"cgroup", 0, "PATH", "the processes of a control group and of those below it; repeatable", SEVERAL,
         .take = dp_option_cgroup},
        {"container", 0, "ID", "the processes of a container: its name, its ID or a unique beginning of it; repeatable", SEVERAL,
         .take = dp_option_container},
        {"user", 0, "NAME", "the processes of a user, by name or number; repeatable", SEVERAL, .take = dp_option_user},
        {"program", 0, "PATH|NAME",
         "all processes that run this program, and those that start it while dynprobe runs, with the probes armed before main; "
         "repeatable",
         V(RUN), NAMES(trace.programs)},
        {"all", 0, "SPEC",
         "a probe in every process of the machine that maps its module, now or later: MODULE!FUNCTION; also --probe "
         "'pid*:MODULE:FUNCTION:NAME'",
         V(RUN), .take = dp_option_all},
        {"command", 'c', "CMD", "start CMD, split into words as in a shell, with the probes armed before main; or: -- CMD ARGS",
         V(RUN), .take = take_command},
        {"function", 0, "SPEC",
         "a probe at the entry of a function: NAME, CLASS::METHOD, NAME@FILE, a pattern; MODULE! before it where needed", PROBES,
         .take = dp_option_probe, .value = DP_POINT_ENTRY},
        {"probe", 0, "SPEC", "a probe at FILE:LINE, ADDRESS, SYMBOL, SYMBOL+OFFSET, FUNCTION:LINE; FUNCTION:entry, :return or :*",
         PROBES, .take = dp_option_probe, .value = DP_POINT_PLACE},
        {"usdt", 0, "PROVIDER:NAME", "a probe at each marker of that name (patterns); shows its arguments if there is no -t",
         PROBES, .take = dp_option_usdt},
        {"syscall", 0, "NAME", "a probe at each place that makes the system call, and after it (patterns; * is all of them)",
         V(RUN), .take = dp_option_syscall},
        {"profile", 0, "[HZ|off-cpu]",
         "instead of probes: sample each thread's stack HZ (99) times a second of its CPU time, or see where threads wait "
         "(off-cpu), "
         "by time; --by backtrace, --folded, --flame",
         V(RUN), .take = take_profile, OF(profile_hz, unsigned), .word = {"off-cpu"}, .most = DP_PROFILE_HZ_MAX,
         .range = "takes 1 to 10000 samples a second"},
        {"return", 0, "SPEC", "a probe at every return and tail jump of a function", PROBES, .take = dp_option_probe,
         .value = DP_POINT_RETURN},
        {"calls", 0, "SPEC",
         "the tree of calls below a function, with calls, total and own time: probes the functions that it reaches by direct "
         "calls (-x leaves some out); --folded, --interval, -f json",
         V(RUN), .take = dp_option_calls, .value = DP_POINT_RETURN},
        {"self", 0, NULL, "with --return or --calls: a row for each function, by its own time, without that of probed callees",
         V(RUN), FLAG(trace.asked.self)},
        {"exclude", 'x', "GLOB", "functions to leave out of patterns such as 'SSL_*'", PROBES, LIST(trace.except)},
        {"name", 0, "NAME", "the event name of the next probe; a prefix if that is a pattern", PROBES,
         .take = dp_option_event_name},
        {"event", 'e', "NAME", "the probe to record more", V(ADD_CONTEXT), NAME(event)},
        {"type", 't', "CONTEXT",
         "what the probes before it record: args, locals, retval, duration, EXPR (req->len, str(p)), NAME=EXPR, regs, reg:NAME, "
         "TYPE:NAME:ADDR, backtrace[:DEPTH]",
         PROBES | V(ADD_CONTEXT), .take = dp_option_context},
        {"when", 0, "COND", "record only when COND holds, e.g. 'req->len > 4096 && name == \"GET\"', 'arg0 == 0'", PROBES,
         .take = dp_option_when},
        {"when", 0, "COND", "only events for which COND holds, with the names that were recorded: 'req->len > 4096 && pid == 12'",
         V(VIEW) | V(REPORT), TEXT(view.when)},
        {"count", 0, NULL, "count hits instead of recording events", COUNTS, .take = dp_option_aggregation,
         .value = DP_RANK_HITS},
        {"hist", 0, "EXPR",
         "a histogram of EXPR, by powers of two, of times by 1, 2, 5, 10 ..., or 'EXPR,LOW,HIGH,STEP' (also times: "
         "'duration,0,10ms,1ms'); with --return: duration",
         COUNTS, .take = dp_option_hist},
        {"sum", 0, "EXPR", "the sum of EXPR over all hits", COUNTS, .take = dp_option_aggregation, .value = DP_RANK_SUM},
        {"avg", 0, "EXPR", "the average", COUNTS, .take = dp_option_aggregation, .value = DP_RANK_AVERAGE},
        {"min", 0, "EXPR", "the minimum", COUNTS, .take = dp_option_aggregation, .value = DP_RANK_MIN},
        {"max", 0, "EXPR", "the maximum", COUNTS, .take = dp_option_aggregation, .value = DP_RANK_MAX},
        {"by", 0, "KEY[,KEY...]",
         "a row for each value of the expression KEY (of 'str(p)': each text), or for each caller, backtrace[:N], pid, comm "
         "(name) or exe; for each combination of several",
         COUNTS, .take = dp_option_by},
        {"rate", 0, NULL, "also hits per second, of the run and of each --interval", COUNTS, FLAG(trace.asked.rate)},
        {"slower-than", 0, "TIME", "only calls that took at least TIME (1ms); for --return", PROBES,
         DURATION(trace.asked.slower_ns)},
        {"interval", 0, "TIME", "also show the changes (of --calls the whole so far) every TIME", PROBES,
         DURATION(trace.asked.interval_ns)},
        {"changes", 0, NULL, "with --interval: each interval beside the one before, what changed most first", V(RUN),
         FLAG(trace.asked.changes)},
        {"top", 0, "[=N]", "only the N greatest rows (default 20)", COUNTS, NUMBER(trace.asked.top, size_t), .value = 20},
        {"folded", 0, NULL, "one line for each backtrace, for flame graphs; with --by backtrace", COUNTS,
         FLAG(trace.asked.folded)},
        {"flame", 0, "FILE",
         "a flame graph of the backtraces, FILE.svg or FILE.html, weighted by hits or by --sum; alone it means --count --by "
         "backtrace",
         V(RUN) | V(VIEW), NAME(flame)},
        {"title", 0, "TEXT", "the title of the flame graph", V(RUN) | V(VIEW) | V(FLAME), NAME(title)},
        {"unit", 0, "UNIT", "what the numbers count: samples (default), ns (shown as time), bytes, ...", V(FLAME), NAME(unit)},
        {"output", 'o', "FILE", "the flame graph, FILE.svg or FILE.html", V(FLAME), NAME(flame)},
        {"snapshot", 0, NULL,
         "take a snapshot of the whole process when a probe hits and its --when holds; how: dynprobe snapshot --help", V(RUN),
         FLAG(trace.snapshots.on)},
        {"max-snapshots", 0, "N", "at most N snapshots (default 1)", V(RUN), NUMBER(trace.snapshots.most, uint32_t),
         .most = UINT32_MAX, .range = "takes 1 to 4294967295"},
        {"snapshot-interval", 0, "TIME", "at least TIME between two snapshots (default 1s)", V(RUN),
         DURATION(trace.snapshots.interval_ns)},
        {"hits", 'n', "N", "stop after N recorded hits; or a probe in DTrace's form: pid1234:MODULE:FUNCTION:NAME", EVENTS,
         .take = take_hits},
        {"duration", 'd', "TIME", "stop after TIME (seconds, or 250ms, 2m, 1h)", EVENTS, .take = take_duration},
        {"once", 0, NULL, "only buffered events, like -d 0", V(RECORD), FLAG(once)},
        {"output", 'o', "FILE", "write the results to FILE, not to standard output (beside a command: to standard error)",
         EVENTS | V(STUBS), TEXT(output), .events = true},
        {"format", 'f', "FORMAT",
         "text, json (one object a line); for events perfetto (a file for ui.perfetto.dev) or ctf (the recording only); for "
         "aggregations openmetrics (metrics for Prometheus, in the file of -o)",
         EVENTS | V(ATTACH), WORD(format, enum dp_format, "text", "json", "ctf", "perfetto", "openmetrics"), .events = true},
        {"format", 'f', "FORMAT", "text, or json (one object a line)", V(STATUS) | V(LIST) | V(TRACES) | V(DOCTOR),
         WORD(format, enum dp_format, "text", "json")},
        {"format", 'f', "FORMAT", "text, or json (as --json)", V(SHOW), WORD(format, enum dp_format, "text", "json")},
        {"record", 0, "[DIR]",
         "record, also with -n or -o, into DIR (the next word, unless it begins with -) or ~/lttng-traces/dynprobe-NAME-DATE",
         EVENTS, .take = take_record, OF(record, const char *), .events = true},
        {"record-size", 0, "SIZE", "end when the recording has SIZE; with --rotate: remove the oldest traces instead", EVENTS,
         SIZE(record_size, size_t), .least = RECORD_LEAST, .range = "is at least 64K", .events = true},
        {"rotate", 0, "SIZE",
         "record into DIR/0001, DIR/0002 and so on, each a trace of its own; begin the next when one has SIZE", EVENTS,
         SIZE(rotate, size_t), .least = RECORD_LEAST, .range = "is at least 64K", .events = true},
        {"no-lines", 0, NULL, "show backtraces without source lines and inlined functions", EVENTS | V(VIEW), FLAG(no_lines)},
        {"no-record", 0, NULL, "record nothing", EVENTS, FLAG(no_record), .events = true},
        {"format", 'f', "FORMAT",
         "text, json (one object a line), folded (a line for each backtrace, for flame graphs) or perfetto (for ui.perfetto.dev)",
         V(VIEW), .take = dp_option_view_format},
        {"output", 'o', "FILE", "write to FILE instead of standard output", V(VIEW), TEXT(output)},
        {"last", 0, "TIME", "only the last TIME of the trace (seconds, or 250ms, 2m, 1h)", V(VIEW) | V(REPORT),
         DURATION(view.last_ns)},
        {"from", 0, "TIME", "only from TIME after the first event on", V(VIEW) | V(REPORT), DURATION(view.from_ns)},
        {"to", 0, "TIME", "only up to TIME after the first event", V(VIEW) | V(REPORT), DURATION(view.to_ns)},
        {"against", 0, "TIME|DIR",
         "what changed, in one table: since so much time before (--last 1m --against 1m: since the minute before), or since the "
         "trace DIR",
         V(VIEW), NAME(view.against)},
        {"sink", 0, "SINK",
         "where events go: ring (to dynprobe itself), lttng (events of LTTng-UST in the target), or current (to the current "
         "LTTng session if there is one)",
         PROBES, WORD(trace.sink, enum dp_sink_choice, "ring", "lttng", "current"), .value = DP_SINK_RING},
        {"session", 0, "NAME", "the LTTng session; created if it does not exist", PROBES, NAME(trace.session)},
        {"set-url", 0, "URL", "where a created session writes, as for lttng create: net://HOST, file://PATH", PROBES,
         NAME(trace.set_url)},
        {"live", 0, "[=USEC]", "a created session is a live one (default: flushed every 1000000 us)", PROBES, .take = take_live},
        {"filter", 0, "EXPR", "an LTTng filter for the events, e.g. 'rdi > 4096'", PROBES, NAME(trace.filter)},
        {"buffer-size", 0, "SIZE", "largest ring of a thread, e.g. 256K or 4M (default 1M)", PROBES,
         SIZE(trace.ring_size, size_t), .most = 1u << 30, .range = "is at most 1G for each thread"},
        {"max-memory", 0, "SIZE", "memory of all rings of a process (default: half of what is left, 64M at most)", PROBES,
         SIZE(trace.max_memory, size_t), .least = 256u << 10, .range = "is at least 256K"},
        {"on-full", 0, "WHAT",
         "what becomes of a hit whose thread's ring is full: drop (default), or block=TIME to let the thread wait for dynprobe, "
         "at "
         "most TIME",
         V(RUN), .take = take_on_full, .events = true},
        {"overwrite", 0, NULL,
         "a flight recorder: full rings give up their oldest events for new ones, and are read when the run ends", V(RUN),
         FLAG(trace.overwrite), .events = true},
        {"dump-ring", 0, NULL, "a flight recorder in core files: they include the rings, which dynprobe record --core CORE reads",
         V(ATTACH), FLAG(trace.dump_ring), .events = true},
        {"pending", 0, NULL, "wait for libraries that are loaded later; arm their probes before their constructors run", V(RUN),
         FLAG(trace.pending)},
        {"max-wait", 0, "TIME",
         "how long a process may wait for dynprobe where it loads a library (--pending) or starts (--program, --all, "
         "--follow-exec); "
         "later it goes on without probes (default 1s)",
         V(RUN), DURATION(trace.max_wait_ns), .most = DP_WAIT_MOST_NS, .range = "is at most 10m"},
        {"follow", 0, NULL,
         "fork children record too, and their children, and as root the programs that they execute; the run ends with the last "
         "of them",
         V(RUN), FLAG(trace.follow)},
        {"follow-exec", 0, "PATH|NAME", "with --follow: of the programs that they execute, probe only this one; repeatable",
         V(RUN), NAMES(trace.follow_exec)},
        {"dry-run", 0, NULL, "show the plan; do not touch the target", PROBES, FLAG(trace.dry_run)},
        {"tactic", 0, "LIST",
         "the allowed tactics: jump,pun,evict,window,trap (default: all, but a trap only at places that you name)",
         PROBES | V(LIST), .take = take_tactic},
        {"no-trap", 0, NULL, "refuse places where no jump fits, instead of setting a trap", PROBES | V(LIST),
         FLAG(trace.no_trap)},
        {"allow-seccomp", 0, NULL, "as root: also probe a process with a seccomp filter (see dynprobe explain DP-SECCOMP)",
         PROBES | CHANGES | V(SNAPSHOT), FLAG(trace.allow_seccomp)},
        {"output", 'o', "FILE", "write FILE instead of PROGRAM.PID.EPOCH.dps in the current directory", V(SNAPSHOT), TEXT(output),
         .events = true},
        {"mode", 0, "MODE",
         "stop (until everything is read), fork (reads a copy of the process) or quick (stacks first, the rest afterwards)",
         SHOTS, WORD(snapshot.take.still.mode, enum dp_stopped_mode, "stop", "fork", "quick")},
        {"core", 0, "CORE", "read a core file; its executable may follow the options", V(SNAPSHOT) | V(RECORD),
         NAME(snapshot.core)},
        {"global", 0, "NAME", "also capture this global or static variable; file.c::NAME, MODULE!NAME, patterns", SHOTS,
         NAMES(snapshot.globals)},
        {"tls", 0, NULL, "also capture thread-local variables", SHOTS, FLAG(snapshot.take.tls)},
        {"load", 0, "PATTERN", "only globals and thread-locals of modules with PATTERN in their path", SHOTS,
         LIST(snapshot.load)},
        {"max-pause", 0, "MS",
         "stop all threads for at most MS: a snapshot marks late reads, a probe that needs longer is refused (5)",
         SHOTS | PROBES | CHANGES, MILLISECONDS(snapshot.take.still.max_pause_ns)},
        {"max-depth", 0, "N", "pointers followed from a variable (2; 4 in a thread that faulted)", SHOTS,
         NUMBER(snapshot.take.limits.depth, unsigned), .most = 64},
        {"max-elems", 0, "N", "elements of an array (128)", SHOTS, COUNT(snapshot.take.limits.elements, unsigned)},
        {"max-string", 0, "N", "bytes of a string (256)", SHOTS, COUNT(snapshot.take.limits.string, unsigned)},
        {"max-vars-per-frame", 0, "N", "variables of a frame, with children (4096)", SHOTS,
         COUNT(snapshot.take.limits.variables, unsigned)},
        {"max-frames", 0, "N", "frames of a thread (512)", SHOTS, COUNT(snapshot.take.limits.frames, unsigned)},
        {"max-bytes", 0, "SIZE", "saved memory (64M)", SHOTS, SIZE(snapshot.take.limits.bytes, uint64_t), .least = 1u << 20,
         .most = 200u << 20, .range = "takes 1M to 200M"},
        {"application", 0, "NAME", "the program's name in the snapshot", SHOTS, NAME(snapshot.take.application)},
        {"kv", 0, "K:V[,K:V...]", "attributes (repeatable)", SHOTS, .take = dp_option_kv},
        {"classifier", 0, "WORD", "a classifier (repeatable)", SHOTS, NAMES(snapshot.classifiers)},
        {"thread", 0, "TID", "only this thread (repeatable)", V(SNAPSHOT), TIDS(snapshot.threads)},
        {"fault-thread", 0, "TID", "treat this thread as if it had faulted (repeatable)", V(SNAPSHOT), TIDS(snapshot.faults)},
        {"module-load", 0, "FILE",
         "run this pmodule, .lua or .so, or one of dynprobe's own: deadlock, heap, leaks, python, stl, threads (repeatable)",
         MODULES, NAMES(snapshot.modules)},
        {"modules-path", 0, "DIR", "run every pmodule of DIR", MODULES, NAMES(snapshot.module_dirs)},
        {"module", 0, "ID:K,V[,K,V...]", "options of a pmodule", MODULES, NAMES(snapshot.module_options)},
        {"lua-allow", 0, "LIST", "libraries that Lua pmodules may use, too: io,os,package,debug,load", MODULES,
         .take = dp_option_lua_allow, OF(snapshot.lua_allow, struct dp_word_list)},
        {"module-timeout", 0, "MS", "time limit of a pmodule while the process is stopped (50)", MODULES,
         MILLISECONDS(snapshot.take.module_timeout_ns)},
        {"environ", 0, NULL, "also save the environment, which may contain secrets", SHOTS, FLAG(snapshot.take.environ)},
        {"iterations", 0, "N", "take N snapshots", V(SNAPSHOT), COUNT(snapshot.iterations, uint64_t)},
        {"interval", 0, "TIME", "time between snapshots", V(SNAPSHOT), DURATION(snapshot.interval_ns)},
        {"quiet", 'q', NULL, "print only the path", MODULES, FLAG(quiet)},
        {"output", 'o', "FILE", "write FILE; - is standard output (default: the name of what is shown, with .html)", V(REPORT),
         TEXT(output), .events = true},
        {"json", 0, NULL, "JSON (share/snapshot.schema.json), like -f json", V(SHOW), .take = dp_option_value,
         OF(format, enum dp_format), .value = DP_FORMAT_JSON},
        {"thread", 0, "TID", "only this thread, with the variables of its frames", V(SHOW), NUMBER(show.thread, pid_t),
         .most = INT32_MAX},
        {"frame", 0, "N", "only this frame, of --thread or of the first (faulting) thread", V(SHOW), .take = dp_option_show_frame,
         OF(show.frame, int), .most = INT32_MAX},
        {"var", 0, "PATH", "only this variable: NAME, p->x, a.b[3], *p, file.c::NAME; of --thread and --frame, or a global",
         V(SHOW), .take = dp_option_show_var},
        {"registers", 0, NULL, "registers of threads and frames", V(SHOW), FLAG(show.registers)},
        {"maps", 0, NULL, "memory mappings", V(SHOW), FLAG(show.maps)},
        {"files", 0, NULL, "open files", V(SHOW), FLAG(show.files)},
        {"limits", 0, NULL, "resource limits", V(SHOW), FLAG(show.limits)},
        {"all", 0, NULL, "all of these, and each thread separately", V(SHOW), .take = dp_option_show_all},
        {"brief", 0, NULL, "the cause, the thread that matters most, one line for each of the others", V(SHOW), FLAG(show.brief)},
        {"no-pager", 0, NULL, "on a terminal: no pager (else $DYNPROBE_PAGER, $PAGER or less)", V(SHOW), FLAG(no_pager)},
        {"lang", 0, "LANG", "new: lua (default) or c", V(PMODULE), TEXT(language)},
        {"output", 'o', "FILE", "new: the file to write; run: save the snapshot with the modules' results in FILE", V(PMODULE),
         TEXT(output), .events = true},
        {"remove", 0, "NAME", "remove this trace, or those that match the pattern; a path if it has a slash (repeatable)",
         V(TRACES), NAMES(traces.remove)},
        {"older-than", 0, "TIME", "remove the traces that were written to last so long ago (7d, 12h)", V(TRACES),
         DURATION(traces.older_ns)},
        {"color", 0, "WHEN", "auto, always or never (NO_COLOR is honoured)", EVENTS | V(SHOW) | V(VIEW),
         WORD(color, enum dp_color, "auto", "always", "never")},
        {"quiet", 'q', NULL, "no live events, only the summary", EVENTS | V(ATTACH), FLAG(quiet)},
        {"quiet", 'q', NULL, "only headers and frames", V(SHOW), FLAG(quiet)},
        {"verbose", 'v', NULL, "print each step", EVERY, .take = take_verbose},
        {"help", 'h', NULL, "print this help", EVERY, FLAG(help)},
        {"version", 'V', NULL, "print the version", V(RUN), FLAG(version)},
};
