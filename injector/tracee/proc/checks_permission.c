/* SPDX-License-Identifier: MIT */
/*
 * Explains why the kernel does not let us trace a process. The kernel checks in this order (ptrace(2), "Ptrace access mode
 * checking"): same uids or CAP_SYS_PTRACE; then dumpable; then the security modules: Yama's ptrace_scope, and capabilities beyond
 * ours.
 */
#include "injector/tracee/proc/capabilities.h"
#include "injector/tracee/proc/checks.h"
#include "injector/tracee/proc/proc.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool dp_is_own_task(pid_t tid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/task/%d", tid);
	return access(path, F_OK) == 0;
}

static long ptrace_scope(void)
{
	struct dp_buf b;
	dp_buf_init(&b);
	long scope = dp_proc_slurp(&b, "/proc/sys/kernel/yama/ptrace_scope") ? strtol(dp_buf_str(&b), NULL, 10) : 0;
	dp_buf_fini(&b);
	return scope;
}

static struct dp_error *explain_scope(const struct dp_process *p, long scope)
{
	const char *who = scope == 1   ? "parents only"
	                  : scope == 2 ? "processes with CAP_SYS_PTRACE only"
	                               : "no process until the next boot";
	const char *fix = scope == 1   ? "run dynprobe as root, start the program with dynprobe -c, or set the rule to 0 (sysctl "
	                                 "kernel.yama.ptrace_scope=0)"
	                  : scope == 2 ? "run dynprobe as root"
	                               : "reboot with another setting";
	return dp_error_advise(dp_error(DP_TAG_PERMISSION,
	                                "not allowed to trace process %d (%s): /proc/sys/kernel/yama/ptrace_scope is %ld (%s)",
	                                p->pid, p->comm, scope, who),
	                       fix);
}

/* Root in a container may lack it. */
static const char *as_root(bool or_user)
{
	return geteuid() == 0 ? "give dynprobe CAP_SYS_PTRACE (docker: --cap-add SYS_PTRACE; kubectl debug: --profile=general)"
	       : or_user      ? "run dynprobe as root, or as that user"
	                      : "run dynprobe as root";
}

static struct dp_error *advised(struct dp_error *err)
{
	return dp_error_advise(err, as_root(false));
}

/* All three uids and gids of the target must be ours. */
static bool same_ids(const char *status, const char *name, long mine)
{
	long id[3] = {-1, -1, -1};
	const char *at = dp_status_find(status, name);
	return at && sscanf(at, "%ld %ld %ld", &id[0], &id[1], &id[2]) == 3 && id[0] == mine && id[1] == mine && id[2] == mine;
}

static bool not_dumpable(const struct dp_process *p, long uid)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/maps", p->pid, p->alive);
	return stat(path, &st) == 0 && (long)st.st_uid != uid; /* the /proc files of such a process belong to root */
}

static struct dp_error *explain(const struct dp_process *p, const char *theirs, const char *mine)
{
	const long uid = dp_status_long(theirs, "Uid", -1), scope = ptrace_scope();
	const uint64_t lacking = dp_capabilities_of(theirs, "CapPrm") & ~dp_capabilities_of(mine, "CapPrm");
	char their_user[64], my_user[64], caps[256];
	if (!same_ids(theirs, "Uid", (long)geteuid()))
		return dp_error_advise(dp_error(DP_TAG_PERMISSION,
		                                "not allowed to trace process %d (%s): it belongs to %s, dynprobe runs as %s",
		                                p->pid, p->comm, dp_user_text(uid, their_user, sizeof(their_user)),
		                                dp_user_text((long)geteuid(), my_user, sizeof(my_user))),
		                       as_root(uid));
	if (!same_ids(theirs, "Gid", (long)getegid()))
		return advised(dp_error(DP_TAG_PERMISSION,
		                        "not allowed to trace process %d (%s): its group ids (gid %ld) are not dynprobe's",
		                        p->pid, p->comm, dp_status_long(theirs, "Gid", -1)));
	if (lacking)
		return advised(dp_error(DP_TAG_PERMISSION,
		                        "not allowed to trace process %d (%s): it holds capabilities that dynprobe lacks (%s)",
		                        p->pid, p->comm, dp_capabilities_text(lacking, caps, sizeof(caps))));
	if (not_dumpable(p, uid))
		return advised(
		        dp_error(DP_TAG_PERMISSION,
		                 "not allowed to trace process %d (%s): it is not dumpable (set-user-id, unreadable executable, "
		                 "or prctl(PR_SET_DUMPABLE))",
		                 p->pid, p->comm));
	if (scope)
		return explain_scope(p, scope);
	return advised(
	        dp_error(DP_TAG_PERMISSION,
	                 "not allowed to trace process %d (%s): it needs the capability CAP_SYS_PTRACE in its user namespace, or "
	                 "a security module forbids it",
	                 p->pid, p->comm));
}

static struct dp_error *refuse(const struct dp_process *p)
{
	struct dp_buf theirs, mine;
	dp_buf_init(&theirs);
	dp_buf_init(&mine);
	bool known =
	        dp_proc_slurp(&theirs, "/proc/%d/task/%d/status", p->pid, p->alive) && dp_proc_slurp(&mine, "/proc/self/status");
	struct dp_error *err =
	        known ? explain(p, dp_buf_str(&theirs), dp_buf_str(&mine)) : dp_error(DP_TAG_GONE, "process %d ended", p->pid);
	dp_buf_fini(&theirs);
	dp_buf_fini(&mine);
	return err;
}

struct dp_error *dp_check_permission(const struct dp_process *p)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", p->pid, p->alive);
	dp_auto_close int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		return NULL;
	if (errno == EACCES || errno == EPERM)
		return refuse(p);
	const int sys = errno;
	if (sys == ESRCH && dp_process_has_no_memory(p))
		return dp_error(DP_TAG_ZOMBIE, "process %d (%s) has just ended", p->pid, p->comm);
	errno = sys;
	return dp_error_sys(DP_TAG_NO_PROCESS, "cannot open the memory of process %d", p->pid);
}
