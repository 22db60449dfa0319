/* SPDX-License-Identifier: MIT */
#include "cli/options/help/topics.h"

#include <string.h>

const struct dp_topic dp_topics[] = {
        {"processes", "which processes: --pid, -c CMD, --container, --program, --follow",
         "pid cgroup container user program all command follow follow-exec pending allow-seccomp",
         "  dynprobe --pid nginx --function ngx_http_process_request\n"
         "  dynprobe --program convert --return resize --hist duration       # those to come, too; needs root\n"
         "  dynprobe --follow --function work -- make test\n"},
        {"probes", "which places: --function, --return, --probe, --usdt, --syscall",
         "function return probe usdt syscall exclude name tactic no-trap dry-run",
         "  --function 'libssl!SSL_*' -x SSL_free     patterns; of a library the version may be left out\n"
         "  --function 'helper@net/a.c'               a function of one source file\n"
         "  --probe server.c:120, --probe foo+0x6     a line; an instruction\n"
         "  --syscall openat                          entry with arguments, exit with the result\n"
         "  dynprobe list PID 'SSL_*'                 shows what there is\n"},
        {"values", "what is recorded, and when: -t, --when", "type when slower-than",
         "  -t args, -t locals, -t 'req->len', -t '*req', -t 'str(p)'        by the debug information\n"
         "  -t reg:rdi, -t int:name:0x4040, -t backtrace                     without it\n"
         "  --return f -t retval -t duration --slower-than 1ms\n"
         "  --when 'req->len > 4096 && name =~ \"GET*\"'\n"
         "dynprobe-language(7) has the whole language.\n"},
        {"counts", "totals instead of events: --count, --hist, --by, --calls, --profile",
         "count hist sum avg min max by slower-than rate interval top folded flame title calls self profile",
         "  --function malloc --sum arg0 --by backtrace\n"
         "  --return foo --hist duration -d 10\n"
         "  --calls handle_request -d 10              the tree of calls below it\n"
         "  --function 'PyUnicode_*' --count --top=10 --interval 1s\n"},
        {"end", "how long, and how much memory: -n, -d, --buffer-size",
         "hits duration buffer-size max-memory on-full overwrite max-pause", NULL},
        {"output", "where results go: -o, -f json, --record, -q",
         "output format color quiet verbose record record-size rotate no-record",
         "Results go to standard output (beside a command that dynprobe starts: to standard error), notes to standard error.\n"
         "A run that shows events without end is also recorded: dynprobe view shows it again, dynprobe traces lists them.\n"},
        {"lttng", "events of LTTng in the process: --session, --sink", "sink session set-url live filter",
         "  dynprobe --pid 4242 --function foo -t reg:rdi --session mine --filter 'rdi > 4096'\n"},
        {"snapshots", "the whole process when a probe hits: --snapshot",
         "snapshot max-snapshots snapshot-interval mode global tls load max-pause max-depth max-elems max-string "
         "max-vars-per-frame max-frames max-bytes application kv classifier module-load modules-path module lua-allow "
         "module-timeout environ",
         "  dynprobe --pid 4242 --return work --slower-than 5ms --snapshot --module-load deadlock\n"
         "  dynprobe snapshot 4242                                           # now, without a probe\n"},
};
const size_t dp_ntopics = sizeof(dp_topics) / sizeof(*dp_topics);

const struct dp_topic *dp_topic_find(const char *name)
{
	for (size_t i = 0; i < dp_ntopics; i++)
		if (!strcmp(dp_topics[i].name, name))
			return &dp_topics[i];
	return NULL;
}

bool dp_topic_has(const struct dp_topic *topic, const char *option)
{
	const size_t n = strlen(option);
	for (const char *at = topic->options; *at; at += strcspn(at, " "), at += *at == ' ')
		if (!strncmp(at, option, n) && (at[n] == ' ' || !at[n]))
			return true;
	return false;
}
