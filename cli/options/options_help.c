/* SPDX-License-Identifier: MIT */
#include "cli/options/options_table.h"

#include <string.h>

struct verb_text {
	const char *word;  /* NULL: a run in the foreground */
	const char *usage; /* behind "dynprobe " */
	const char *line;  /* in the list of verbs */
	const char *about; /* between usage and options */
};

static const struct verb_text verbs[DP_VERB_COUNT] = {
        [DP_VERB_RUN] = {NULL, NULL, NULL, NULL},
        [DP_VERB_ATTACH] = {"attach", "attach --pid PID... PROBE OPTIONS...", "insert probes and exit",
                            "Inserts probes into a running process and exits. The probes stay. Options are those of a run in the "
                            "foreground.\n"
                            "Afterwards: dynprobe status, enable, disable, add-context, record, remove, detach.\n"
                            "\n"
                            "Example:\n"
                            "  dynprobe attach --pid 4242 --function foo -t reg:rdi --session mine\n"},
        [DP_VERB_STATUS] = {"status", "status [--pid PID]... [-f text|json]", "list resident probes and dropped events",
                            "Lists resident probes and dropped events. Without --pid: of every process that you may read.\n"},
        [DP_VERB_ENABLE] = {"enable", "enable NAME... --pid PID", "enable probes",
                            "Enables resident probes again. NAME may be a pattern such as 'm*'; quote it.\n"},
        [DP_VERB_DISABLE] = {"disable", "disable NAME... --pid PID", "disable probes in place",
                             "Disables resident probes: they stay in place and record nothing. NAME may be a pattern such as "
                             "'m*'; quote it.\n"},
        [DP_VERB_ADD_CONTEXT] = {"add-context", "add-context --pid PID... -e NAME -t CONTEXT...", "make a probe record more",
                                 "Makes a resident probe record more. No hit is missed.\n"},
        [DP_VERB_RECORD] = {"record", "record --pid PID... [OPTIONS]", "print the events of resident probes",
                            "Prints the buffered events of probes with the ring sink (the newest that fit), then streams new "
                            "ones until Ctrl-C.\n"},
        [DP_VERB_REMOVE] = {"remove", "remove NAME... --pid PID", "remove probes",
                            "Removes resident probes. NAME may be a pattern such as 'm*'; quote it.\n"},
        [DP_VERB_DETACH] = {"detach", "detach --pid PID...", "remove all probes", "Removes all resident probes of a process.\n"},
        [DP_VERB_LIST] =
                {"list", "list PID|FILE [GLOB] [-v] [-f text|json]", "list functions, and where probes fit in them",
                 "Lists functions: address, size, and the SPEC that --function takes. FILE is an executable or library, which "
                 "need not\n"
                 "run; its addresses are then those of the file. GLOB is [MODULE!]SYMBOL with *, ? and [abc]; quote it. With -v\n"
                 "also lists each instruction, and the tactic of a probe there (jump, pun, evict, window, trap) or why none "
                 "fits.\n"
                 "Stops and changes nothing. 'usdt:PROVIDER:NAME' (patterns) lists USDT markers.\n"
                 "\n"
                 "Examples:\n"
                 "  dynprobe list --pid 4242 'libc.so.6!mem*'\n"
                 "  dynprobe list --pid 4242 'usdt:*'\n"
                 "  dynprobe list -v /bin/ls main\n"},
        [DP_VERB_STUBS] = {"stubs", "stubs --pid PID -o FILE", "write an ELF file that describes the stubs to debuggers",
                           "Writes an ELF file with a name and unwind tables for each piece of code that dynprobe has in the\n"
                           "process: (gdb) add-symbol-file FILE. Only reads the process, which a debugger may have stopped.\n"
                           "share/dynprobe/dynprobe-gdb.py does this in gdb.\n"},
        [DP_VERB_PMODULE] =
                {"pmodule", "pmodule new NAME | list [FILE...] | check FILE... | run SNAPSHOT --module-load FILE [-o FILE]",
                 "write, check and run analysis modules for snapshots",
                 "Modules that run on snapshots (docs/pmodules.md, docs/pmodules-c.md). No process is needed.\n"
                 "  new NAME      writes a skeleton: NAME.lua, or with --lang c NAME.c\n"
                 "  list [FILE]   lists modules: id, path, events; without FILE and --modules-path DIR those that come with "
                 "dynprobe\n"
                 "  check FILE... loads each alone and reports its errors\n"
                 "  run SNAPSHOT  runs modules on a snapshot file, in place of those that ran before; -o saves the result\n"
                 "\n"
                 "Example:\n"
                 "  dynprobe pmodule run server.4242.1790000000.dps --module-load ./mine.so -o again.dps\n"},
        [DP_VERB_SNAPSHOT] =
                {"snapshot", "snapshot PID... | --core CORE [EXE] [OPTIONS]", "capture a process at one moment in a file",
                 "Saves the whole process at one moment in a file: threads, frames, variables, registers, mappings, open files.\n"
                 "Stops its threads for some milliseconds, measures and reports the pause, and puts nothing into the process.\n"
                 "Prints the file's name on standard output. Reading the file later needs nothing else.\n"
                 "\n"
                 "Examples:\n"
                 "  dynprobe snapshot 4242\n"
                 "  dynprobe snapshot --pid nginx             # one file for each of its processes\n"
                 "  dynprobe snapshot 4242 -o now.dps --mode fork --global 'config*' --module-load heap.lua\n"
                 "  dynprobe snapshot --core core.4242 ./server -o crash.dps\n"},
        [DP_VERB_SHOW] =
                {"show", "show FILE [OPTIONS]", "show a snapshot as text or JSON",
                 "Shows a snapshot: the faulting thread first, threads with the same stack as one, variables as trees. Needs\n"
                 "neither the process nor debug information.\n"
                 "\n"
                 "Examples:\n"
                 "  dynprobe show crash.dps\n"
                 "  dynprobe show crash.dps --thread 4242 --registers\n"
                 "  dynprobe show crash.dps --var 'req->headers[2].name'\n"
                 "  dynprobe show crash.dps --json | jq '.threads[].name'\n"},
        [DP_VERB_REPORT] = {"report", "report SNAPSHOT|TRACE|RUN.json [-o FILE.html]",
                            "write a snapshot, a trace or a run as one page for a browser",
                            "Writes a page that needs only a browser. Of a snapshot: threads, frames, variables as trees, "
                            "search, annotations,\n"
                            "registers, mappings, source. Of a recorded trace, or of the output of -f json: timeline by thread, "
                            "latency over "
                            "time,\n"
                            "histograms, tables, flame graph, search. ? lists the keys. The page contains what the program's "
                            "memory contained.\n"
                            "\n"
                            "Examples:\n"
                            "  dynprobe report ~/lttng-traces/dynprobe-server-20261121-140211 -o server.html\n"
                            "  dynprobe report run.json                  # writes run.html\n"
                            "  dynprobe report crash.dps                 # writes crash.html\n"
                            "  dynprobe report crash.dps -o /tmp/c.html\n"},
        [DP_VERB_VIEW] =
                {"view", "view [DIR...] [OPTIONS]", "print a recorded trace, or aggregate it",
                 "Prints the events of recorded traces as a run prints them, several traces merged by time; without DIR those of "
                 "the\n"
                 "trace that was recorded last. Needs neither the process nor its files. With --count, --hist and so on shows "
                 "what a\n"
                 "run with these options would have shown. Reads LTTng's traces, too (by libbabeltrace2).\n"
                 "\n"
                 "Examples:\n"
                 "  dynprobe view | less\n"
                 "  dynprobe view DIR --last 10s --when 'req->len > 4096'\n"
                 "  dynprobe view DIR --count --by 'req->method'\n"
                 "  dynprobe view DIR --flame flames.svg\n"},
        [DP_VERB_FLAME] =
                {"flame", "flame [FOLDED|-] -o FILE.svg|FILE.html", "draw a flame graph from folded stacks of any tool",
                 "Draws a flame graph from folded stacks ('main;f;g 12', as --folded writes them, and many other tools): one "
                 "file for\n"
                 "a browser, with zoom, search and keys (? lists them), which needs nothing else.\n"
                 "\n"
                 "Examples:\n"
                 "  dynprobe flame stacks.folded -o stacks.svg\n"
                 "  perf script | stackcollapse-perf.pl | dynprobe flame - -o cpu.html\n"},
};

const char *dp_verb_word(enum dp_verb verb)
{
	return verbs[verb].word;
}

bool dp_verb_find(const char *word, enum dp_verb *ret)
{
	for (int i = 0; i < DP_VERB_COUNT; i++)
		if (verbs[i].word && !strcmp(verbs[i].word, word)) {
			*ret = (enum dp_verb)i;
			return true;
		}
	return false;
}

/* A run's help has only the options that trigger snapshots; `dynprobe snapshot --help` has the others. */
static bool describes_a_snapshot(const struct dp_option_row *row)
{
	return row->verbs >> DP_VERB_SNAPSHOT & row->verbs >> DP_VERB_RUN & 1 && !dp_option_of(row, DP_VERB_ATTACH) &&
	       !dp_option_of(row, DP_VERB_RECORD);
}

static void help_options(enum dp_verb verb, FILE *to)
{
	fputs("\nOptions:\n", to);
	for (size_t i = 0; i < DP_OPTION_ROWS; i++) {
		const struct dp_option_row *row = &dp_option_rows[i];
		char left[64];
		if (!dp_option_of(row, verb) || (verb == DP_VERB_RUN && describes_a_snapshot(row)))
			continue;
		snprintf(left, sizeof(left), "%c%c%c --%s%s%s", row->letter ? '-' : ' ', row->letter ? row->letter : ' ',
		         row->letter ? ',' : ' ', row->name, row->metavar && *row->metavar != '[' ? " " : "",
		         row->metavar ? row->metavar : "");
		fprintf(to, "  %-26s %s\n", left, row->help);
	}
}

static void help_run(FILE *to)
{
	fputs("Usage: dynprobe --pid PID [OPTIONS]\n"
	      "       dynprobe [OPTIONS] -c CMD\n"
	      "       dynprobe [OPTIONS] -- CMD ARGS...\n"
	      "\n"
	      "Examples:\n"
	      "  dynprobe --pid 4242 --function foo -t reg:rdi -t backtrace\n"
	      "  dynprobe -c \"ls -l\" --function main\n"
	      "  dynprobe --pid 4242 --probe server.c:120 -t locals --when 'req->len > 4096' -n 100\n"
	      "  dynprobe --pid 4242 --return foo --hist duration -d 10             # counted in the process\n"
	      "  dynprobe --pid 4242 --function foo -t reg:rdi --session mine       # events of LTTng\n"
	      "\n"
	      "Resident probes (dynprobe VERB --help):\n",
	      to);
	for (int i = DP_VERB_RUN + 1; i <= DP_VERB_DETACH; i++)
		fprintf(to, "  dynprobe %-12s %s\n", verbs[i].word, verbs[i].line);
	fputs("\nSnapshots (also by --snapshot, below):\n", to);
	for (int i = 0; i < DP_VERB_COUNT; i++)
		if (i == DP_VERB_SNAPSHOT || i == DP_VERB_SHOW || i == DP_VERB_REPORT || i == DP_VERB_PMODULE)
			fprintf(to, "  dynprobe %-12s %s\n", verbs[i].word, verbs[i].line);
	fputs("\nRecorded traces:\n", to);
	fprintf(to, "  dynprobe %-12s %s\n", verbs[DP_VERB_VIEW].word, verbs[DP_VERB_VIEW].line);
	fprintf(to, "  dynprobe %-12s %s\n", verbs[DP_VERB_FLAME].word, verbs[DP_VERB_FLAME].line);
	fputs("\nInspection:\n", to);
	fprintf(to, "  dynprobe %-12s %s\n", verbs[DP_VERB_LIST].word, verbs[DP_VERB_LIST].line);
	fprintf(to, "  dynprobe %-12s %s\n", verbs[DP_VERB_STUBS].word, verbs[DP_VERB_STUBS].line);
	fprintf(to, "  dynprobe %-12s %s\n", "explain", "explain an error and what to do about it");
	fprintf(to, "  dynprobe %-12s %s\n", "completion", "print bash completion: source <(dynprobe completion)");
	fputs("\nLTTng's commands also work: enable-event NAME -u --pid PID --probe SPEC, disable-event, add-context -u, trace "
	      "-c CMD, list -u.\n",
	      to);
}

void dp_options_help(enum dp_verb verb, FILE *to)
{
	if (verb == DP_VERB_RUN)
		help_run(to);
	else
		fprintf(to, "Usage: dynprobe %s\n\n%s", verbs[verb].usage, verbs[verb].about);
	help_options(verb, to);
	if (verb == DP_VERB_RUN)
		fputs("\nExit status: that of CMD; 0 for --pid; 121 some probes or processes were refused; 125 dynprobe failed; "
		      "126/127 CMD cannot be run/found.\n",
		      to);
	else
		fputs("\nExit status: 0; 121 a part failed; 125 dynprobe failed and did nothing.\n", to);
}

static void complete_options(enum dp_verb verb, FILE *to)
{
	for (size_t i = 0; i < DP_OPTION_ROWS; i++)
		if (dp_option_of(&dp_option_rows[i], verb))
			fprintf(to, "--%s ", dp_option_rows[i].name);
}

/* After a verb its options; without one the verbs and the options of a run. */
void dp_options_completion(FILE *to)
{
	fputs("_dynprobe() {\n\tlocal words\n\tcase \"${COMP_WORDS[1]}\" in\n", to);
	for (int i = DP_VERB_RUN + 1; i < DP_VERB_COUNT; i++) {
		fprintf(to, "\t%s) words=\"", verbs[i].word);
		complete_options((enum dp_verb)i, to);
		fputs("\" ;;\n", to);
	}
	fputs("\texplain) words=\"--all", to);
	for (int i = 0; i < DP_TAG_COUNT; i++)
		fprintf(to, " %s", dp_tag_name((enum dp_tag)i));
	fputs("\" ;;\n\t*) words=\"", to);
	complete_options(DP_VERB_RUN, to);
	fputs("\" ;;\n\tesac\n\t[ \"$COMP_CWORD\" -gt 1 ] || words=\"$words", to);
	for (int i = DP_VERB_RUN + 1; i < DP_VERB_COUNT; i++)
		fprintf(to, " %s", verbs[i].word);
	fputs(" explain completion\"\n"
	      "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\")\n"
	      "}\n"
	      "complete -o default -F _dynprobe dynprobe\n",
	      to);
}
