/* SPDX-License-Identifier: MIT */
/*
 * The state of a sleeping thread, read while nobody holds it. That this is one state, of one moment, needs two readings with the
 * same registers and the same number of context switches: docs/live-patching.md. The order of the files matters: the counts come
 * first before, and last after.
 */
#include "injector/asleep.h"

#include "injector/proc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#define LOWEST UINT64_C(4096)

/* False if somebody traces it, or the kernel does not count. */
static bool read_switches(pid_t pid, pid_t tid, uint64_t *ret)
{
	struct dp_buf status;
	dp_buf_init(&status);
	bool ok = dp_proc_slurp(&status, "/proc/%d/task/%d/status", pid, tid);
	const char *text = ok ? dp_buf_str(&status) : "";
	const long tracer = dp_status_long(text, "TracerPid", -1),
	           by_itself = dp_status_long(text, "voluntary_ctxt_switches", -1),
	           forced = dp_status_long(text, "nonvoluntary_ctxt_switches", -1);
	ok = tracer == 0 && by_itself >= 0 && forced >= 0;
	*ret = (uint64_t)by_itself + (uint64_t)forced;
	dp_buf_fini(&status);
	return ok;
}

/* One line; "running" for a thread that does not sleep. */
static bool read_text(pid_t pid, pid_t tid, char ret[static 256])
{
	struct dp_buf b;
	dp_buf_init(&b);
	const bool ok = dp_proc_slurp(&b, "/proc/%d/task/%d/syscall", pid, tid) && strlen(dp_buf_str(&b)) < 256;
	if (ok)
		strcpy(ret, dp_buf_str(&b));
	dp_buf_fini(&b);
	return ok;
}

static bool parse(struct dp_asleep *a)
{
	return sscanf(a->text, "%ld %*s %*s %*s %*s %*s %*s 0x%" SCNx64 " 0x%" SCNx64, &a->nr, &a->sp, &a->pc) == 3 &&
	       a->nr >= 0 && a->nr != SYS_rt_sigreturn && a->sp >= LOWEST && a->pc >= LOWEST;
}

bool dp_asleep_take(pid_t pid, pid_t tid, struct dp_asleep *ret)
{
	*ret = (struct dp_asleep){0};
	return read_switches(pid, tid, &ret->switches) && read_text(pid, tid, ret->text) && parse(ret);
}

bool dp_asleep_still(pid_t pid, pid_t tid, const struct dp_asleep *was)
{
	uint64_t switches;
	char text[256];
	return read_text(pid, tid, text) && !strcmp(text, was->text) && read_switches(pid, tid, &switches) &&
	       switches == was->switches;
}
