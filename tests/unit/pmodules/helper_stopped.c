/* SPDX-License-Identifier: MIT */
#include "helper_stopped.h"
#include "pmodules/fault/fault.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

static size_t read_child(uint64_t addr, void *buf, size_t n, bool *late, void *data)
{
	const struct stopped *s = data;
	struct iovec local = {buf, n}, remote = {(void *)(uintptr_t)addr, n};
	const ssize_t got = process_vm_readv(s->pid, &local, 1, &remote, 1, 0);
	*late = false;
	return got < 0 ? 0 : (size_t)got;
}

static void check(struct dp_error *err)
{
	cr_assert_null(err, "%s", err ? err->message : "");
}

static void be_child(void (*child)(void))
{
	const struct rlimit none = {0, 0};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &none);
	for (int i = 1; i < 32; i++)
		signal(i, SIG_DFL);
	if (!freopen("/dev/null", "w", stderr))
		_exit(1);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	child();
	_exit(1);
}

static char *maps_of(pid_t pid)
{
	char path[64];
	const size_t size = 1 << 20;
	char *text = calloc(1, size);
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *f = fopen(path, "re");
	cr_assert(f && text);
	fread(text, 1, size - 1, f);
	fclose(f);
	return text;
}

struct dp_snap_thread *stopped_run(struct stopped *s, void (*child)(void), const struct dp_extract_options *options)
{
	int status;
	*s = (struct stopped){.pid = fork()};
	if (!s->pid)
		be_child(child);
	cr_assert(waitpid(s->pid, &status, 0) == s->pid && WIFSTOPPED(status));
	s->thread = (struct dp_stopped_thread){.tid = s->pid, .state = 'R', .syscall = -1, .is_fault = true};
	cr_assert(!ptrace(PTRACE_GETREGS, s->pid, 0, &s->thread.regs));
	cr_assert(!ptrace(PTRACE_GETSIGINFO, s->pid, 0, &s->thread.siginfo));
	char *maps = maps_of(s->pid);
	check(dp_image_create(maps, "", s->pid, &s->image));
	free(maps);
	check(dp_debug_ctx_create(s->image, read_child, s, &s->world));
	check(dp_extract_create(s->world, options, &s->extract));
	s->snapshot = dp_snapshot_create();
	struct dp_snap_thread *t = dp_extract_thread(s->extract, &s->thread, s->snapshot);
	cr_assert(t);
	dp_fault_explain(s->world, &s->thread, t);
	return t;
}

void stopped_fini(struct stopped *s)
{
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	dp_extract_destroy(s->extract);
	dp_debug_ctx_destroy(s->world);
	dp_image_destroy(s->image);
	dp_snapshot_destroy(s->snapshot);
}

struct dp_snap_frame *stopped_frame(struct dp_snap_thread *t, const char *symbol)
{
	struct dp_snap_frame *f;
	DL_FOREACH(t->frames, f)
	if (f->symbol && !strcmp(f->symbol, symbol))
		return f;
	cr_assert_fail("no frame of %s", symbol);
	return NULL;
}

struct dp_snap_variable *stopped_variable(struct dp_snap_variable *list, const char *name)
{
	struct dp_snap_variable *v;
	DL_FOREACH(list, v)
	if (!strcmp(v->name, name))
		return v;
	cr_assert_fail("no variable %s", name);
	return NULL;
}

bool stopped_is_classified(const struct dp_snapshot *s, const char *word)
{
	const struct dp_snap_word *w;
	DL_FOREACH(s->classifiers, w)
	if (!strcmp(w->text, word))
		return true;
	return false;
}
