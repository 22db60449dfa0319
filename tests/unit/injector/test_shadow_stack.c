/* SPDX-License-Identifier: MIT */
/*
 * A process with a shadow stack is refused, attached to or launched. Few machines have them: here a fake status file of /proc
 * names one.
 */
#include "helper_tracee.h"

#include "injector/injector.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static pid_t forged;     /* whose status files get one more line; -1: those of all processes but ours */
static const char *line; /* the additional line */

/* Replaces the C library's; dp_proc_slurp() calls it. */
int open(const char *path, int flags, ...)
{
	char text[8192], own[32];
	va_list args;
	va_start(args, flags);
	const int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, int) : 0,
	          fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	va_end(args);
	const size_t len = strlen(path);
	int pid = 0;
	if (fd < 0 || !forged || len < 7 || strcmp(path + len - 7, "/status") != 0 || sscanf(path, "/proc/%d/", &pid) != 1)
		return fd;
	snprintf(own, sizeof(own), "/proc/%d/", (int)getpid());
	if (forged < 0 ? !strncmp(path, own, strlen(own)) : pid != forged)
		return fd;
	const ssize_t n = read(fd, text, sizeof(text));
	close(fd);
	const int copy = (int)syscall(SYS_memfd_create, "status", MFD_CLOEXEC);
	cr_assert(n > 0 && write(copy, text, (size_t)n) == n && write(copy, line, strlen(line)) == (ssize_t)strlen(line));
	lseek(copy, 0, SEEK_SET);
	return copy;
}

static struct dp_error *attach(const char *features)
{
	const struct dp_target_options options = {0};
	struct dp_target *t = NULL;
	const pid_t pid = tr_spawn(tr_idle);
	forged = pid;
	line = features;
	struct dp_error *err = dp_target_open(pid, &options, &t);
	forged = 0;
	dp_target_close(t);
	tr_kill(pid);
	return err;
}

Test(shadow_stack, is_refused_at_attach)
{
	tr_tag(attach("x86_Thread_features:\tshstk wrss \n"), DP_TAG_SHADOW_STACK);
	tr_ok(attach("x86_Thread_features:\t\nx86_Thread_features_locked:\tshstk wrss \n"));
}

Test(shadow_stack, is_refused_at_launch)
{
	const struct dp_target_options options = {0};
	char *const argv[] = {"/bin/true", NULL};
	struct dp_target *t = NULL;
	forged = -1;
	line = "x86_Thread_features:\tshstk wrss\n";
	struct dp_error *err = dp_target_launch(argv, &options, &t);
	forged = 0;
	tr_tag(err, DP_TAG_SHADOW_STACK);
	dp_target_close(t);
}
