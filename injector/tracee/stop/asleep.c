/* SPDX-License-Identifier: MIT */
/*
 * Reads the state of a sleeping thread without stopping it. The readings describe one moment only if a second reading has the
 * same registers and the same number of context switches: docs/live-patching.md. The order of the files matters: the counts are
 * read first before, and last after.
 */
#include "injector/tracee/stop/asleep.h"

#include "injector/tracee/proc/proc.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOWEST      UINT64_C(4096)
#define STATUS_ROOM 8192

/* The kernel returns each of these files whole in one read. */
static bool read_file(pid_t pid, pid_t tid, const char *name, char *ret, size_t room)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	dp_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, ret, room - 1);
	ret[n > 0 ? n : 0] = 0;
	return n > 0 && (size_t)n < room - 1;
}

/*
 * False if the kernel does not count switches, the thread is traced, or its sleep is of another kind. The last two hold as long
 * as the count stays the same.
 */
static bool read_switches(pid_t pid, pid_t tid, uint64_t *ret)
{
	char text[STATUS_ROOM];
	if (!read_file(pid, tid, "status", text, sizeof(text)))
		return false;
	const char *state = dp_status_find(text, "State");
	const long tracer = dp_status_long(text, "TracerPid", -1),
	           by_itself = dp_status_long(text, "voluntary_ctxt_switches", -1),
	           forced = dp_status_long(text, "nonvoluntary_ctxt_switches", -1);
	*ret = (uint64_t)by_itself + (uint64_t)forced;
	return state && *state == 'S' && tracer == 0 && by_itself >= 0 && forced >= 0;
}

static bool parse(struct dp_asleep *a)
{
	return sscanf(a->text, "%ld %*s %*s %*s %*s %*s %*s 0x%" SCNx64 " 0x%" SCNx64, &a->nr, &a->sp, &a->pc) == 3 &&
	       a->nr >= 0 && a->nr != SYS_rt_sigreturn && a->sp >= LOWEST && a->pc >= LOWEST;
}

bool dp_asleep_take(pid_t pid, pid_t tid, struct dp_asleep *ret)
{
	*ret = (struct dp_asleep){0};
	return read_switches(pid, tid, &ret->switches) && read_file(pid, tid, "syscall", ret->text, sizeof(ret->text)) &&
	       parse(ret);
}

bool dp_asleep_still(pid_t pid, pid_t tid, const struct dp_asleep *was)
{
	uint64_t switches;
	char text[256];
	return read_file(pid, tid, "syscall", text, sizeof(text)) && !strcmp(text, was->text) &&
	       read_switches(pid, tid, &switches) && switches == was->switches;
}
