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
        [DP_VERB_ATTACH] =
                {"attach", "attach --pid PID... PROBE OPTIONS...", "leave probes in a process and end",
                 "Puts probes into a running process and leaves them there. Options are those of a run in the foreground.\n"
                 "Afterwards: dynprobe status, enable, disable, add-context, record, remove, detach.\n"
                 "\n"
                 "Example:\n"
                 "  dynprobe attach --pid 4242 --function foo -t reg:rdi --session mine\n"},
        [DP_VERB_STATUS] = {"status", "status [--pid PID]... [-f text|json]", "what was left in processes",
                            "Lists the probes that were left in processes. Without --pid: in every process that may be asked.\n"},
        [DP_VERB_ENABLE] =
                {"enable", "enable NAME... --pid PID", "let probes record (again)",
                 "Lets probes that were left in a process record again. NAME may be a pattern such as 'm*'; quote it.\n"},
        [DP_VERB_DISABLE] =
                {"disable", "disable NAME... --pid PID", "let probes rest in place",
                 "Lets probes rest: they stay in place and record nothing. NAME may be a pattern such as 'm*'; quote it.\n"},
        [DP_VERB_ADD_CONTEXT] = {"add-context", "add-context --pid PID -e NAME -t CONTEXT...", "let a probe record more",
                                 "Lets a probe that was left in a process record more. No hit is missed meanwhile.\n"},
        [DP_VERB_RECORD] =
                {"record", "record --pid PID [OPTIONS]", "take the events that left probes recorded",
                 "Takes the events that probes with the ring sink hold (the newest that fit), then goes on live until Ctrl-C.\n"},
        [DP_VERB_REMOVE] = {"remove", "remove NAME... --pid PID", "take probes out",
                            "Takes probes out that were left in a process. NAME may be a pattern such as 'm*'; quote it.\n"},
        [DP_VERB_DETACH] = {"detach", "detach --pid PID...", "take all probes out",
                            "Takes everything out of a process that was left there.\n"},
        [DP_VERB_LIST] =
                {"list", "list [--pid PID | FILE] [GLOB] [-v] [-f text|json]", "functions, and where probes would fit in them",
                 "Lists functions: address, size, and the SPEC that --function takes. FILE is an executable or library that need "
                 "not\n"
                 "run; addresses are the file's then. GLOB is [MODULE!]SYMBOL with *, ? and [abc]; quote it. With -v also each\n"
                 "instruction, and how a probe would stand there (jump, pun, evict, window, trap) or why none can. Nothing is\n"
                 "touched or stopped. 'usdt:PROVIDER:NAME' (patterns) lists USDT markers.\n"
                 "\n"
                 "Examples:\n"
                 "  dynprobe list --pid 4242 'libc.so.6!mem*'\n"
                 "  dynprobe list --pid 4242 'usdt:*'\n"
                 "  dynprobe list -v /bin/ls main\n"},
        [DP_VERB_STUBS] = {"stubs", "stubs --pid PID -o FILE", "an ELF file that tells debuggers of the probes' code",
                           "Writes an ELF file with a name and unwind tables for every piece of code that dynprobe has in the\n"
                           "process: (gdb) add-symbol-file FILE. The process is only read, and may be stopped by the debugger.\n"
                           "share/dynprobe/dynprobe-gdb.py does it for gdb by itself.\n"},
        [DP_VERB_PMODULE] =
                {"pmodule", "pmodule new NAME | list [FILE...] | check FILE... | run SNAPSHOT --module-load FILE [-o FILE]",
                 "analysis modules for snapshots: write, check, run again",
                 "Modules that run on snapshots (docs/pmodules.md, docs/pmodules-c.md). Nothing of this looks at a process.\n"
                 "  new NAME      writes a skeleton: NAME.lua, or with --lang c NAME.c\n"
                 "  list [FILE]   what modules are: id, path, events; without FILE and --modules-path DIR those that come with dynprobe\n"
                 "  check FILE... loads each alone, says what is wrong with it\n"
                 "  run SNAPSHOT  runs modules on a saved snapshot, instead of those that ran before; -o keeps the result\n"
                 "\n"
                 "Example:\n"
                 "  dynprobe pmodule run server.4242.1790000000.dps --module-load ./mine.so -o again.dps\n"},
        [DP_VERB_SNAPSHOT] =
                {"snapshot", "snapshot PID | --core CORE [EXE] [OPTIONS]", "a process at one moment, kept in a file",
                 "Keeps the whole process as it is at one moment in a file: threads, frames, variables, registers, mappings, "
                 "open\n"
                 "files. Its threads wait meanwhile for some milliseconds, which are measured and said; nothing is put into the\n"
                 "process. The file's name goes to standard output; nothing else is needed to look at it later.\n"
                 "\n"
                 "Examples:\n"
                 "  dynprobe snapshot 4242\n"
                 "  dynprobe snapshot 4242 -o now.dps --mode fork --global 'config*' --module-load heap.lua\n"
                 "  dynprobe snapshot --core core.4242 ./server -o crash.dps\n"},
        [DP_VERB_SHOW] =
                {"show", "show FILE [OPTIONS]", "what a snapshot holds, as text or JSON",
                 "Shows a snapshot: the faulting thread first, threads of the same stack as one, variables as trees. No process\n"
                 "and no debug information are needed.\n"
                 "\n"
                 "Examples:\n"
                 "  dynprobe show crash.dps\n"
                 "  dynprobe show crash.dps --thread 4242 --registers\n"
                 "  dynprobe show crash.dps --var 'req->headers[2].name'\n"
                 "  dynprobe show crash.dps --json | jq '.threads[].name'\n"},
        [DP_VERB_REPORT] =
                {"report", "report FILE [-o FILE.html]", "a snapshot as one page for a browser",
                 "Writes a snapshot as a page that needs nothing but a browser: threads, frames, variables as trees, search,\n"
                 "annotations, registers, mappings, source. It holds the program's memory, as the snapshot does.\n"
                 "\n"
                 "Examples:\n"
                 "  dynprobe report crash.dps                 # writes crash.html\n"
                 "  dynprobe report crash.dps -o /tmp/c.html\n"},
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

/* Of a snapshot's many options a run's help names those that trigger one; `dynprobe snapshot --help` has the others. */
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
	      "Probes that outlive the command (dynprobe VERB --help):\n",
	      to);
	for (int i = DP_VERB_RUN + 1; i <= DP_VERB_DETACH; i++)
		fprintf(to, "  dynprobe %-12s %s\n", verbs[i].word, verbs[i].line);
	fputs("\nSnapshots: a process at one moment, in a file (also by --snapshot, below):\n", to);
	for (int i = 0; i < DP_VERB_COUNT; i++)
		if (i == DP_VERB_SNAPSHOT || i == DP_VERB_SHOW || i == DP_VERB_REPORT || i == DP_VERB_PMODULE)
			fprintf(to, "  dynprobe %-12s %s\n", verbs[i].word, verbs[i].line);
	fputs("\nLooking only:\n", to);
	fprintf(to, "  dynprobe %-12s %s\n", verbs[DP_VERB_LIST].word, verbs[DP_VERB_LIST].line);
	fprintf(to, "  dynprobe %-12s %s\n", verbs[DP_VERB_STUBS].word, verbs[DP_VERB_STUBS].line);
	fprintf(to, "  dynprobe %-12s %s\n", "view", "a recorded trace as text: view [DIR]; the last one, by babeltrace2");
	fprintf(to, "  dynprobe %-12s %s\n", "explain", "what a refusal means and what to do about it");
	fprintf(to, "  dynprobe %-12s %s\n", "completion",
	        "what bash needs to complete these words: source <(dynprobe completion)");
	fputs("\nLTTng's words do as well: enable-event NAME -u --pid PID --probe SPEC, disable-event, add-context -u, trace -c CMD, list -u.\n",
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
		fputs("\nExit status: that of CMD; 0 for --pid; 124 probes asked for by name were refused; 125 dynprobe failed; "
		      "126/127 CMD cannot be run/found.\n",
		      to);
	else
		fputs("\nExit status: 0; 124 a part could not be done; 125 dynprobe failed, nothing was done.\n", to);
}

static void complete_options(enum dp_verb verb, FILE *to)
{
	for (size_t i = 0; i < DP_OPTION_ROWS; i++)
		if (dp_option_of(&dp_option_rows[i], verb))
			fprintf(to, "--%s ", dp_option_rows[i].name);
}

/* The options of the verb that was typed; before one was typed, the verbs and the options of a run. */
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
