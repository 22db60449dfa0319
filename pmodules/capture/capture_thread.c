/* SPDX-License-Identifier: MIT */
#include "pmodules/capture/capture_internal.h"
#include "pmodules/fault/fault.h"

#include "probes/point/syscalls.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

/* "futex(0x7f31c8000b60, 128, 0)": small numbers are decimal. */
static const char *call_text(struct dp_snapshot *s, const struct dp_stopped_thread *t)
{
	char name[32], text[256];
	struct dp_call_arg arg[DP_CALL_ARGS];
	const int known = dp_call_args((int32_t)t->syscall, arg);
	const int n = known < 0 || known > 6 ? 6 : known;
	int at = snprintf(text, sizeof(text), "%s(", dp_call_format((uint64_t)t->syscall, name, sizeof(name)));
	for (int i = 0; i < n; i++) {
		const int64_t value = (int64_t)t->args[i];
		const bool small = value > -4096 && value < 4096;
		at += snprintf(text + at, sizeof(text) - (size_t)at, small ? "%s%lld" : "%s%#llx", i ? ", " : "",
		               (long long)value);
	}
	snprintf(text + at, sizeof(text) - (size_t)at, ")");
	return dp_arena_copy(&s->arena, text, strlen(text));
}

/* Lines like "[<0>] futex_wait+0x64/0xa0". */
static void take_kstack(struct dp_snapshot *s, const char *text, struct dp_snap_thread *into)
{
	for (const char *line = text; line && *line;) {
		const char *end = strchr(line, '\n'), *from = strstr(line, "] ");
		const size_t n = end ? (size_t)(end - line) : strlen(line);
		from = from && from < line + n ? from + 2 : line;
		struct dp_snap_kframe *f = dp_arena_alloc(&s->arena, sizeof(*f));
		if (!f)
			return;
		f->symbol = dp_arena_copy(&s->arena, from, (size_t)(line + n - from));
		if (!f->symbol)
			return;
		DL_APPEND(into->kframes, f);
		line = end ? end + 1 : NULL;
	}
}

struct signal_name {
	int number;
	const char *classifier;
};
static const struct signal_name classified[] = {{SIGSEGV, "segv"},  {SIGBUS, "bus"},   {SIGILL, "ill"},  {SIGFPE, "fpe"},
                                                {SIGABRT, "abort"}, {SIGTRAP, "trap"}, {SIGSTOP, "stop"}};

/* Stored in the innermost frame, unless the extraction has set one. */
static void take_siginfo(struct dp_snapshot *s, const siginfo_t *from, struct dp_snap_frame *f)
{
	const char *abbreviation = sigabbrev_np(from->si_signo), *meaning = sigdescr_np(from->si_signo);
	struct dp_snap_siginfo *si = dp_arena_alloc(&s->arena, sizeof(*si));
	char name[32];
	if (!si)
		return;
	dp_fault_siginfo(from, si);
	if (abbreviation)
		snprintf(name, sizeof(name), "SIG%s", abbreviation);
	else
		snprintf(name, sizeof(name), "signal %d", from->si_signo);
	si->name = dp_snapshot_text(s, name);
	if (!*si->reason && meaning)
		si->reason = dp_snapshot_text(s, meaning);
	f->siginfo = si;
}

static void take_signal(struct dp_snapshot *s, const struct dp_stopped_thread *t, const struct dp_snap_thread *into)
{
	if (!t->siginfo.si_signo)
		return;
	if (into->frames && !into->frames->siginfo)
		take_siginfo(s, &t->siginfo, into->frames);
	for (size_t i = 0; t->is_fault && i < sizeof(classified) / sizeof(*classified); i++)
		if (classified[i].number == t->siginfo.si_signo)
			dp_snapshot_classify(s, classified[i].classifier);
}

void dp_snap_capture_thread_facts(struct dp_snapshot *s, const struct dp_stopped_thread *t, struct dp_snap_thread *into)
{
	into->syscall_text = t->syscall < 0 ? NULL : call_text(s, t);
	if (t->kstack && !into->kframes)
		take_kstack(s, t->kstack, into);
	take_signal(s, t, into);
}

void dp_snap_capture_missing(struct dp_snapshot *s, const struct dp_stopped *still, const pid_t *tid, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool found = false;
		for (size_t j = 0; j < dp_stopped_nthreads(still) && !found; j++)
			found = dp_stopped_thread(still, j)->tid == tid[i];
		if (!found)
			dp_snapshot_note(s, &s->notes, DP_NOTE_WARNING,
			                 dp_arena_printf(&s->arena, "the process has no thread %d", tid[i]));
	}
}
