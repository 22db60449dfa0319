/* SPDX-License-Identifier: MIT */
/*
 * thread.c: one line for each thread: what it does, and in which function of the program itself. Shows: a thread callback,
 * walking its frames, registers, and pmodule_defer(): all of it after the release.
 */
#include <dynprobe/pmodule.h>

#include <string.h>

static bool is_library(ptrace_frame_t *f)
{
	const char *object = pmodule_frame_object_file(f);
	return !object || strstr(object, ".so");
}

static void thread(ptrace_thread_t *t)
{
	static const char *const states[] = {"unknown", "running", "sleeping", "waiting for a device",
	                                     "stopped", "traced",  "a zombie", "dead",
	                                     "idle",    "blocked", "queued"};
	ptrace_frame_t *f = NULL;
	uint64_t sp = 0;
	while ((f = pmodule_thread_next_frame(t, NULL, f)) && is_library(f))
		;
	const char *symbol = pmodule_frame_symbol(f);
	pmodule_thread_register(t, "rsp", &sp);
	pmodule_thread_annotate(t, PAT_COMMENT, "%s, in %s at line %d; %u frames, stack at %#llx",
	                        states[pmodule_thread_state(t)], symbol ? symbol : "nothing of the program",
	                        pmodule_frame_line(f), pmodule_thread_n_frames(t), (unsigned long long)sp);
}

static bool load(pmodule_t *m)
{
	return pmodule_defer(m) && pmodule_thread_event_add(m, NULL, thread);
}

PMODULE_DEFINE("example_thread", load, NULL, NULL);
