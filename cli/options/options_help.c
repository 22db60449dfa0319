/* SPDX-License-Identifier: MIT */
/* The verbs and what their --help says; help/ prints it. */
#include "cli/options/options_table.h"

#include <string.h>

static const struct dp_verb_text verbs[DP_VERB_COUNT] = {
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
        [DP_VERB_RECORD] = {"record", "record --pid PID... | --core CORE [EXE] [OPTIONS]", "print the events of resident probes",
                            "Prints the buffered events of probes with the ring sink (the newest that fit), then streams new "
                            "ones until Ctrl-C. Of a core file: those that were in the rings when the process crashed (attach "
                            "--dump-ring).\n"},
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
                {"show", "show FILE|CORE [EXE] [OPTIONS]", "show a snapshot or a core file as text or JSON",
                 "Shows a snapshot: the faulting thread first, threads with the same stack as one, variables as trees. Needs\n"
                 "neither the process nor debug information. Of a core file it takes one first: what a crashed program held.\n"
                 "\n"
                 "Examples:\n"
                 "  dynprobe show crash.dps\n"
                 "  dynprobe show core.4242 ./server\n"
                 "  dynprobe show crash.dps --thread 4242 --registers\n"
                 "  dynprobe show crash.dps --var 'req->headers[2].name'\n"
                 "  dynprobe show crash.dps --json | jq '.threads[].name'\n"},
        [DP_VERB_REPORT] =
                {"report", "report SNAPSHOT|CORE|TRACE|RUN.json [-o FILE.html]",
                 "write a snapshot, a trace or a run as one page for a browser",
                 "Writes a page that needs only a browser. Of a snapshot or a core file: threads, frames, variables as trees, "
                 "search, annotations,\n"
                 "registers, mappings, source. Of a recorded trace, or of the output of -f json: timeline by thread, "
                 "latency over "
                 "time,\n"
                 "histograms, tables, flame graph, search. Of aggregations, call trees and profiles in JSON: tables, "
                 "histograms,\n"
                 "flame graph. ? lists the keys. The page contains what the program's memory contained.\n"
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
        [DP_VERB_TRACES] = {"traces", "traces [NAME...] [-f text|json] | --remove NAME... | --older-than TIME",
                            "list or remove recorded traces",
                            "Lists the traces that runs have recorded into ~/lttng-traces, the newest first: program, begin, "
                            "length, events\n"
                            "(counted up to two million), size. NAME may be a pattern; quote it. Removes what --remove names, or "
                            "what is older "
                            "than\n"
                            "TIME, without a question, and names it. Directories that have other files, or are in use, stay.\n"
                            "\n"
                            "Examples:\n"
                            "  dynprobe traces\n"
                            "  dynprobe traces --remove 'dynprobe-ls-*'\n"
                            "  dynprobe traces --older-than 7d\n"},
        [DP_VERB_DOCTOR] = {"doctor", "doctor [PID...] [-f text|json]",
                            "what this machine, this user and a process allow, and the remedies",
                            "Checks the kernel, the user and each process as attach does, and says what each of them allows, and "
                            "what to do\n"
                            "about the rest. Stops and changes nothing. PID is a pid, a list (12,14) or a name.\n"
                            "\n"
                            "Examples:\n"
                            "  dynprobe doctor\n"
                            "  dynprobe doctor nginx\n"},
};

const struct dp_verb_text *dp_verb_text(enum dp_verb verb)
{
	return &verbs[verb];
}

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
