/* SPDX-License-Identifier: MIT */
#include "injector/tracee/proc/tracer.h"

#include "injector/tracee/proc/proc.h"

#include <string.h>

pid_t dp_tracer_of(pid_t pid, pid_t tid)
{
	struct dp_buf status;
	dp_buf_init(&status);
	const bool known = dp_proc_slurp(&status, "/proc/%d/task/%d/status", pid, tid);
	const pid_t tracer = known ? (pid_t)dp_status_long(dp_buf_str(&status), "TracerPid", 0) : 0;
	dp_buf_fini(&status);
	return tracer;
}

/* What the user of the tracer types. The first row whose name begins like the tracer's command counts. */
static const char *known_advice(const char *comm)
{
	static const struct {
		const char *name, *advice;
	} row[] = {
	        {"gdbserver", "type 'detach' in the gdb that is connected to it"},
	        {"gdb", "type 'dynprobe attach' there, after 'source PREFIX/share/dynprobe/dynprobe-gdb.py', or 'detach'"},
	        {"lldb", "type 'process detach' in lldb"},
	        {"strace", "end it with Ctrl-C or SIGINT, and the process continues without it"},
	        {"ltrace", "end it with Ctrl-C or SIGINT, and the process continues without it"},
	        {"dynprobe", "wait until that dynprobe is done"},
	};
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
		if (!strncmp(comm, row[i].name, strlen(row[i].name)))
			return row[i].advice;
	return NULL;
}

bool dp_tracer_is_known(const char *comm)
{
	return known_advice(comm);
}

struct dp_error *dp_tracer_refuse(const struct dp_process *p, pid_t tid, pid_t tracer)
{
	char comm[64];
	if (!tracer)
		return dp_error(
		        DP_TAG_TRACED,
		        "the kernel does not let dynprobe stop thread %d of process %d (%s), although dynprobe may trace it: "
		        "another tracer holds it, probably one of another pid namespace (its TracerPid reads as 0 here); "
		        "look for gdb or strace outside of this container",
		        tid, p->pid, p->comm);
	dp_proc_comm(tracer, comm, sizeof(comm));
	const char *advice = known_advice(comm);
	return dp_error(DP_TAG_TRACED, "thread %d of process %d (%s) is traced by process %d (%s): %s", tid, p->pid, p->comm,
	                tracer, comm, advice ? advice : "let it detach from the process");
}
