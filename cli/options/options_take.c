/* SPDX-License-Identifier: MIT */
#include "cli/options/numbers.h"
#include "cli/options/options_table.h"

#include <stdlib.h>
#include <string.h>

static struct dp_error *take_pid(struct dp_parser *p, const char *arg)
{
	uint64_t pid;
	DP_TRY(dp_number_parse("--pid", arg, &pid));
	pid_t *grown = realloc(p->o.trace.pid, (p->o.trace.npids + 1) * sizeof(*grown));
	if (!grown)
		return dp_error(DP_TAG_NOMEM, "out of memory for the pids");
	p->o.trace.pid = grown;
	if (pid > INT32_MAX)
		return dp_error(DP_TAG_NO_PROCESS, "there is no process %s", arg);
	p->o.trace.pid[p->o.trace.npids++] = (pid_t)pid;
	return NULL;
}

static struct dp_error *take_command(struct dp_parser *p, const char *arg)
{
	if (p->o.trace.command)
		return dp_error(DP_TAG_USAGE, "two commands were given; run one dynprobe for each");
	return dp_words_split(arg, &p->o.trace.command);
}

static struct dp_error *take_function(struct dp_parser *p, const char *arg)
{
	return dp_args_probe(&p->probes, arg, DP_POINT_ENTRY);
}

static struct dp_error *take_return(struct dp_parser *p, const char *arg)
{
	return dp_args_probe(&p->probes, arg, DP_POINT_RETURN);
}

static struct dp_error *take_usdt(struct dp_parser *p, const char *arg)
{
	return dp_args_usdt(&p->probes, arg);
}

static struct dp_error *take_syscall(struct dp_parser *p, const char *arg)
{
	return dp_args_syscall(&p->probes, arg);
}

static struct dp_error *take_profile(struct dp_parser *p, const char *arg)
{
	uint64_t hz;
	DP_TRY(dp_number_parse("--profile", arg, &hz));
	if (!hz || hz > DP_PROFILE_HZ_MAX)
		return dp_error(DP_TAG_USAGE, "--profile takes 1 to %u samples a second", DP_PROFILE_HZ_MAX);
	p->o.profile_hz = (unsigned)hz;
	return NULL;
}

static struct dp_error *take_exclude(struct dp_parser *p, const char *arg)
{
	return dp_args_except(&p->probes, arg);
}

static struct dp_error *take_probe(struct dp_parser *p, const char *arg)
{
	return dp_args_probe(&p->probes, arg, DP_POINT_PLACE);
}

static struct dp_error *take_name(struct dp_parser *p, const char *arg)
{
	return dp_args_name(&p->probes, arg);
}

static struct dp_error *take_type(struct dp_parser *p, const char *arg)
{
	return dp_args_context(&p->probes, arg);
}

static struct dp_error *take_when(struct dp_parser *p, const char *arg)
{
	return dp_args_when(&p->probes, arg);
}

static bool has_pid(const struct dp_options *o, pid_t pid)
{
	for (size_t i = 0; i < o->trace.npids; i++)
		if (o->trace.pid[i] == pid)
			return true;
	return false;
}

/* DTrace's -n: pid1234:MODULE:FUNCTION:NAME is the process as well. */
static struct dp_error *take_description(struct dp_parser *p, const char *arg)
{
	char number[24];
	const size_t n = strspn(arg + 3, "0123456789");
	if (arg[3] == '*')
		return dp_error(DP_TAG_USAGE, "-n '%s': name the processes; pid*, which is every one, is not there yet", arg);
	if (n && n < sizeof(number) && arg[3 + n] == ':') {
		snprintf(number, sizeof(number), "%.*s", (int)n, arg + 3);
		if (!has_pid(&p->o, (pid_t)strtol(number, NULL, 10)))
			DP_TRY(take_pid(p, number));
		if (p->o.trace.npids > 1)
			return dp_error(DP_TAG_USAGE,
			                "-n '%s': descriptions of several processes in one run; --probe takes the rest of it for "
			                "every --pid",
			                arg);
	}
	return dp_args_probe(&p->probes, arg, DP_POINT_PLACE);
}

static struct dp_error *take_hits(struct dp_parser *p, const char *arg)
{
	if (!strncmp(arg, "pid", 3) && (p->verb == DP_VERB_RUN || p->verb == DP_VERB_ATTACH))
		return take_description(p, arg);
	p->o.trace.own_events = true;
	return dp_number_parse("-n", arg, &p->o.trace.hits);
}

/* "0", "0s", "0ms": record what is there and end. */
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

static struct dp_error *take_output(struct dp_parser *p, const char *arg)
{
	p->o.trace.own_events = true;
	p->o.output = arg;
	return NULL;
}

static struct dp_error *take_format(struct dp_parser *p, const char *arg)
{
	static const char *const names[] = {[DP_FORMAT_TEXT] = "text", [DP_FORMAT_JSON] = "json", [DP_FORMAT_CTF] = "ctf"};
	p->o.trace.own_events = true;
	for (int i = 0; i < 3; i++)
		if (!strcmp(arg, names[i])) {
			p->o.format = (enum dp_format)i;
			return NULL;
		}
	return dp_error(DP_TAG_USAGE, "unknown format '%s': use text, json or ctf", arg);
}

static struct dp_error *take_record(struct dp_parser *p, const char *arg)
{
	p->o.trace.own_events = true;
	p->o.record = arg;
	return NULL;
}

static struct dp_error *take_no_record(struct dp_parser *p, const char *arg)
{
	(void)arg;
	p->o.trace.own_events = p->o.no_record = true;
	return NULL;
}

static struct dp_error *take_buffer(struct dp_parser *p, const char *arg)
{
	DP_TRY(dp_size_parse("--buffer-size", arg, &p->o.trace.ring_size));
	const size_t asked = p->o.trace.ring_size;
	if (asked > (size_t)1 << 30)
		return dp_error(DP_TAG_USAGE, "--buffer-size is at most 1G for each thread");
	for (p->o.trace.ring_size = 16 << 10; p->o.trace.ring_size < asked;)
		p->o.trace.ring_size *= 2;
	return NULL;
}

static struct dp_error *take_memory(struct dp_parser *p, const char *arg)
{
	DP_TRY(dp_size_parse("--max-memory", arg, &p->o.trace.max_memory));
	if (p->o.trace.max_memory < 256u << 10)
		return dp_error(DP_TAG_USAGE, "--max-memory is at least 256K");
	return NULL;
}

static struct dp_error *take_sink(struct dp_parser *p, const char *arg)
{
	if (strcmp(arg, "ring") && strcmp(arg, "lttng") && strcmp(arg, "current"))
		return dp_error(DP_TAG_USAGE, "unknown sink '%s': use ring, lttng or current", arg);
	p->o.trace.sink = *arg == 'r' ? DP_SINK_RING : *arg == 'c' ? DP_SINK_CURRENT : DP_SINK_LTTNG;
	return NULL;
}

/* As lttng create has it: microseconds unless a unit says otherwise, a second if nothing is said. */
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

static struct dp_error *take_color(struct dp_parser *p, const char *arg)
{
	if (strcmp(arg, "auto") && strcmp(arg, "always") && strcmp(arg, "never"))
		return dp_error(DP_TAG_USAGE, "unknown colour setting '%s': use auto, always or never", arg);
	p->o.color = arg;
	return NULL;
}

#define TEXT(option, field, to)                                                                                                      \
	static struct dp_error *take_##field(struct dp_parser *p, const char *arg)                                               \
	{                                                                                                                        \
		if (!*arg)                                                                                                       \
			return dp_error(DP_TAG_USAGE, option " needs an argument that is not empty");                            \
		p->o.to = arg;                                                                                                   \
		return NULL;                                                                                                     \
	}
TEXT("--session", session, trace.session)
TEXT("--set-url", set_url, trace.set_url)
TEXT("--filter", filter, trace.filter)
TEXT("-e", event, event)

#define FLAG(field, to)                                                                                                              \
	static struct dp_error *take_##field(struct dp_parser *p, const char *arg)                                               \
	{                                                                                                                        \
		(void)arg;                                                                                                       \
		p->o.to = true;                                                                                                  \
		return NULL;                                                                                                     \
	}
FLAG(once, once)
FLAG(allow_seccomp, trace.allow_seccomp)
FLAG(no_trap, trace.no_trap)
FLAG(dry_run, trace.dry_run)
FLAG(pending, trace.pending)
FLAG(quiet, quiet)
FLAG(help, help)
FLAG(version, version)

static struct dp_error *take_verbose(struct dp_parser *p, const char *arg)
{
	(void)arg;
	p->o.verbose++;
	return NULL;
}

static struct dp_error *take_language(struct dp_parser *p, const char *arg)
{
	p->o.language = arg;
	return NULL;
}

#define V(verb) (1u << DP_VERB_##verb)
#define PROBES  (V(RUN) | V(ATTACH))
#define EVENTS  (V(RUN) | V(RECORD))
#define SHOTS   (V(SNAPSHOT) | V(RUN))
#define MODULES (SHOTS | V(PMODULE))
#define CHANGES (V(ADD_CONTEXT) | V(REMOVE) | V(DETACH))
#define EVERY   ((1u << DP_VERB_COUNT) - 1)

const struct dp_option_row dp_option_rows[DP_OPTION_ROWS] = {
        {"pid", 'p', "PID", "the running process PID (repeatable)", EVERY & ~V(SHOW) & ~V(REPORT) & ~V(PMODULE), take_pid},
        {"command", 'c', "CMD", "start CMD (words as in a shell) with the probes armed before main; or: -- CMD ARGS", V(RUN),
         take_command},
        {"function", 0, "SPEC",
         "a probe at the entry of a function: NAME, CLASS::METHOD, NAME@FILE, a pattern; MODULE! before it where needed", PROBES,
         take_function},
        {"probe", 0, "SPEC", "a probe at FILE:LINE, ADDRESS, SYMBOL, SYMBOL+OFFSET, FUNCTION:LINE; FUNCTION:entry, :return or :*",
         PROBES, take_probe},
        {"usdt", 0, "PROVIDER:NAME", "a probe at each marker of that name (patterns); shows its arguments if there is no -t",
         PROBES, take_usdt},
        {"syscall", 0, "NAME", "a probe at each place that makes the system call, and behind it (patterns; * is all of them)",
         V(RUN), take_syscall},
        {"profile", 0, "HZ",
         "no probes: samples of each thread's stack, HZ of them a second of CPU time; --by backtrace, --folded", V(RUN),
         take_profile},
        {"return", 0, "SPEC", "a probe at every return and tail jump of a function", PROBES, take_return},
        {"exclude", 'x', "GLOB", "a function that patterns such as 'SSL_*' are not to take", PROBES, take_exclude},
        {"name", 0, "NAME", "the event name of the next probe; a prefix where that names many", PROBES, take_name},
        {"event", 'e', "NAME", "the probe that is to record more", V(ADD_CONTEXT), take_event},
        {"type", 't', "CONTEXT",
         "what the probes before it record: args, locals, retval, duration, EXPR (req->len, str(p)), NAME=EXPR, regs, reg:NAME, "
         "TYPE:NAME:ADDR, backtrace[:DEPTH]",
         PROBES | V(ADD_CONTEXT), take_type},
        {"when", 0, "COND", "record only when COND holds, e.g. 'req->len > 4096 && name == \"GET\"', 'arg0 == 0'", PROBES,
         take_when},
        {"count", 0, NULL, "count hits instead of showing them", PROBES, dp_take_count},
        {"hist", 0, "EXPR", "a histogram of EXPR, by powers of two, or 'EXPR,LOW,HIGH,STEP'; with --return: duration", PROBES,
         dp_take_hist},
        {"sum", 0, "EXPR", "the sum of EXPR over all hits", PROBES, dp_take_sum},
        {"avg", 0, "EXPR", "its average", PROBES, dp_take_avg},
        {"min", 0, "EXPR", "its least value", PROBES, dp_take_min},
        {"max", 0, "EXPR", "its greatest value", PROBES, dp_take_max},
        {"by", 0, "KEY", "an answer for each value of the expression KEY, or for each backtrace", PROBES, dp_take_by},
        {"slower-than", 0, "TIME", "only calls that took at least TIME (1ms); for --return", PROBES, dp_take_slower},
        {"interval", 0, "TIME", "also show, every TIME, what has come since the last time", PROBES, dp_take_interval},
        {"top", 0, "[=N]", "only the N greatest rows (default 20)", PROBES, dp_take_top},
        {"folded", 0, NULL, "backtraces one a line, for flame graphs; with --by backtrace", PROBES, dp_take_folded},
        {"snapshot", 0, NULL,
         "take a snapshot of the whole process when a probe hits and its --when holds; how: dynprobe snapshot --help", V(RUN),
         dp_take_snapshot},
        {"max-snapshots", 0, "N", "so many of them at most (default 1)", V(RUN), dp_take_max_snapshots},
        {"snapshot-interval", 0, "TIME", "at least TIME between two (default 1s)", V(RUN), dp_take_snapshot_interval},
        {"hits", 'n', "N", "stop after N recorded hits; or a probe as DTrace describes it: pid1234:MODULE:FUNCTION:NAME", EVENTS,
         take_hits},
        {"duration", 'd', "TIME", "stop after TIME (seconds, or 250ms, 2m, 1h)", EVENTS, take_duration},
        {"once", 0, NULL, "only what is held now, like -d 0", V(RECORD), take_once},
        {"output", 'o', "FILE", "write the live events to FILE (- for standard output) instead of standard error",
         EVENTS | V(STUBS), take_output},
        {"format", 'f', "FORMAT", "text, json (one object a line) or, for events, ctf (the recording only)",
         EVENTS | V(STATUS) | V(LIST) | V(ATTACH) | V(SHOW), take_format},
        {"record", 0, "DIR", "record into DIR instead of ~/lttng-traces/dynprobe-NAME-DATE (lttng view -t DIR)", EVENTS,
         take_record},
        {"no-record", 0, NULL, "record nothing, only show", EVENTS, take_no_record},
        {"sink", 0, "SINK", "where events go: ring (to dynprobe itself), lttng (events of LTTng-UST in the target), or current (to the current LTTng session if there is one)", PROBES,
         take_sink},
        {"session", 0, "NAME", "the LTTng session; created if it does not exist", PROBES, take_session},
        {"set-url", 0, "URL", "where a created session writes to, as lttng create has it: net://HOST, file://PATH", PROBES,
         take_set_url},
        {"live", 0, "[=USEC]", "a created session is a live one (default: flushed every 1000000 us)", PROBES, take_live},
        {"filter", 0, "EXPR", "an LTTng filter for the events, e.g. 'rdi > 4096'", PROBES, take_filter},
        {"buffer-size", 0, "SIZE", "largest ring of a thread, e.g. 256K or 4M (default 1M)", PROBES, take_buffer},
        {"max-memory", 0, "SIZE", "of all rings of a process (default: half of what it has left, 64M at most)", PROBES,
         take_memory},
        {"pending", 0, NULL, "wait for libraries that are loaded later: their probes are armed before their constructors run",
         V(RUN), take_pending},
        {"dry-run", 0, NULL, "show what would be done; the target is not touched", PROBES, take_dry_run},
        {"tactic", 0, "LIST",
         "how a probe may stand: jump,pun,evict,window,trap (default: all; a trap only at places meant by name)",
         PROBES | V(LIST), dp_take_tactic},
        {"no-trap", 0, NULL, "refuse places where no jump fits, instead of setting a trap", PROBES | V(LIST), take_no_trap},
        {"allow-seccomp", 0, NULL, "as root: also in a process with a seccomp filter (see dynprobe explain DP-SECCOMP)",
         PROBES | CHANGES | V(SNAPSHOT), take_allow_seccomp},
        {"output", 'o', "FILE", "write FILE instead of PROGRAM.PID.EPOCH.dps in the current directory", V(SNAPSHOT), take_output},
        {"mode", 0, "MODE",
         "stop (threads wait until all is read), fork (of a copy of the process) or quick (stacks first, the rest afterwards)",
         SHOTS, dp_snap_mode},
        {"core", 0, "CORE", "of a core file; its executable may be named behind the options", V(SNAPSHOT), dp_snap_core},
        {"global", 0, "NAME", "also this global or static variable; file.c::NAME, MODULE!NAME, patterns", SHOTS, dp_snap_global},
        {"tls", 0, NULL, "also thread-local variables", SHOTS, dp_snap_tls},
        {"load", 0, "PATTERN", "globals and thread-locals of modules with PATTERN in their path only", SHOTS, dp_snap_load},
        {"max-pause", 0, "MS",
         "hold all threads no longer than MS: a snapshot marks what is still to be read, a probe that needs more is refused (5)",
         SHOTS | PROBES | CHANGES, dp_snap_max_pause},
        {"max-depth", 0, "N", "pointers followed from a variable (2; 4 in a thread that faulted)", SHOTS, dp_snap_max_depth},
        {"max-elems", 0, "N", "elements of an array (128)", SHOTS, dp_snap_max_elems},
        {"max-string", 0, "N", "bytes of a string (256)", SHOTS, dp_snap_max_string},
        {"max-vars-per-frame", 0, "N", "variables of a frame with all that they reach (4096)", SHOTS, dp_snap_max_variables},
        {"max-frames", 0, "N", "frames of a thread (512)", SHOTS, dp_snap_max_frames},
        {"max-bytes", 0, "SIZE", "memory that is kept (64M)", SHOTS, dp_snap_max_bytes},
        {"application", 0, "NAME", "what the program is called in the snapshot", SHOTS, dp_snap_application},
        {"kv", 0, "K:V[,K:V...]", "attributes (repeatable)", SHOTS, dp_snap_kv},
        {"classifier", 0, "WORD", "a classifier (repeatable)", SHOTS, dp_snap_classifier},
        {"thread", 0, "TID", "only this thread (repeatable)", V(SNAPSHOT), dp_snap_thread},
        {"fault-thread", 0, "TID", "look at this thread as if it had faulted (repeatable)", V(SNAPSHOT), dp_snap_fault_thread},
        {"module-load", 0, "FILE", "run this pmodule, .lua or .so (repeatable)", MODULES, dp_snap_module_load},
        {"modules-path", 0, "DIR", "run every pmodule of DIR", MODULES, dp_snap_modules_path},
        {"module", 0, "ID:K,V[,K,V...]", "options of a pmodule", MODULES, dp_snap_module},
        {"lua-allow", 0, "LIST", "what Lua pmodules may use besides: io,os,package,debug,load", MODULES, dp_snap_lua_allow},
        {"module-timeout", 0, "MS", "time that a pmodule has while the process waits (50)", MODULES, dp_snap_module_timeout},
        {"environ", 0, NULL, "also the environment, which may hold secrets", SHOTS, dp_snap_environ},
        {"iterations", 0, "N", "take N snapshots", V(SNAPSHOT), dp_snap_iterations},
        {"interval", 0, "TIME", "between them", V(SNAPSHOT), dp_snap_interval},
        {"quiet", 'q', NULL, "only the path", MODULES, take_quiet},
        {"output", 'o', "FILE", "the page; - for standard output (default: the snapshot's name with .html)", V(REPORT),
         take_output},
        {"json", 0, NULL, "JSON (share/snapshot.schema.json), like -f json", V(SHOW), dp_take_json},
        {"thread", 0, "TID", "only this thread, with the variables of its frames", V(SHOW), dp_take_show_thread},
        {"frame", 0, "N", "only this frame, of --thread or of the first thread, which is the faulting one", V(SHOW),
         dp_take_show_frame},
        {"var", 0, "PATH", "only this variable: NAME, p->x, a.b[3], *p, file.c::NAME; of --thread and --frame, or a global",
         V(SHOW), dp_take_show_var},
        {"registers", 0, NULL, "registers of threads and frames", V(SHOW), dp_take_show_registers},
        {"maps", 0, NULL, "what was mapped", V(SHOW), dp_take_show_maps},
        {"files", 0, NULL, "open files", V(SHOW), dp_take_show_files},
        {"limits", 0, NULL, "resource limits", V(SHOW), dp_take_show_limits},
        {"all", 0, NULL, "all of these, and every thread for itself", V(SHOW), dp_take_show_all},
        {"lang", 0, "LANG", "new: lua (default) or c", V(PMODULE), take_language},
        {"output", 'o', "FILE", "new: the file to write; run: keep the snapshot with what modules added in FILE", V(PMODULE),
         take_output},
        {"color", 0, "WHEN", "auto, always or never (NO_COLOR is honoured)", EVENTS | V(SHOW), take_color},
        {"quiet", 'q', NULL, "no live events, only the summary", EVENTS | V(ATTACH), take_quiet},
        {"quiet", 'q', NULL, "heads and frames only", V(SHOW), take_quiet},
        {"verbose", 'v', NULL, "say what is being done", EVERY, take_verbose},
        {"help", 'h', NULL, "this text", EVERY, take_help},
        {"version", 'V', NULL, "the version", V(RUN), take_version},
};
