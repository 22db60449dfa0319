/* SPDX-License-Identifier: MIT */
/* Why a call that runs in the target has no result, and what its user can do: the kernel refuses for many reasons. */
#include "injector/tracee/tracee.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

static const char *advice_for(int sys)
{
	switch (sys) {
	case EMFILE:
		return "raise the process's limit of open files (prlimit --nofile), or close some of them; the target is as it "
		       "was before";
	case ENFILE:
		return "raise the machine's limit of open files (sysctl fs.file-max); the target is as it was before";
	case ENOMEM:
		return "free memory, or raise the limit of the control group (memory.max), of address space (prlimit --as) or of "
		       "mappings "
		       "(sysctl vm.max_map_count); the target is as it was before";
	case EAGAIN:
		return "raise the process's limit of locked memory (prlimit --memlock); the target is as it was before";
	case EACCES:
	case EPERM:
		return "a security policy (SELinux, AppArmor, PR_SET_MDWE, a seccomp filter) forbids the call: allow it for this "
		       "program";
	case ENOSYS:
		return "the kernel or the sandbox around the process lacks the call: run the program outside of the sandbox, or "
		       "on a newer "
		       "kernel; the target is as it was before";
	default:
		return "the reason is the kernel's, trying again rarely helps: dynprobe doctor PID looks at what the process "
		       "allows";
	}
}

struct dp_error *dp_remote_refused(int sys, const char *fmt, ...)
{
	va_list args;
	char *text = NULL;
	va_start(args, fmt);
	const int n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0)
		return dp_error_nomem();
	errno = sys;
	struct dp_error *err = dp_error_sys(DP_TAG_REMOTE, "%s", text);
	free(text);
	return dp_error_advise(err, advice_for(sys));
}

static const char again[] =
        "try again: a signal, or a busy machine, came between; if one comes each time, report this bug with the output of -v";

bool dp_remote_is_unfinished(const struct dp_error *err)
{
	return err && err->tag == DP_TAG_REMOTE && dp_error_remedy(err) == again;
}

struct dp_error *dp_remote_unfinished(const char *fmt, ...)
{
	va_list args;
	char *text = NULL;
	va_start(args, fmt);
	const int n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0)
		return dp_error_nomem();
	struct dp_error *err = dp_error(DP_TAG_REMOTE, "%s", text);
	free(text);
	return dp_error_advise(err, again);
}

struct dp_error *dp_remote_stuck(pid_t pid, const char *comm, pid_t tid)
{
	return dp_error_advise(
	        dp_error(DP_TAG_REMOTE, "a system call that thread %d of process %d (%s) ran for dynprobe did not return", tid,
	                 pid, comm),
	        "find out what that thread waits for (cat /proc/TID/wchan; state D in ps: a disk or a network file system "
	        "that does not answer), then try again");
}
