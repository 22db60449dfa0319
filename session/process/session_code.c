/* SPDX-License-Identifier: MIT */
/*
 * Looks for new code (decision 0080). The size of the address space, one small file in /proc, says whether anything may have
 * been mapped; only then, and once a second, the maps are read. They are long in a process with many threads, so one whose size
 * changes all the time is looked at less and less often, until it has mapped code again.
 */
#include "session/process/session_code.h"

#include "base/cleanup.h"
#include "injector/tracee/tracee.h"
#include "probes/probes.h"
#include "session/code/code_view.h"
#include "session/process/pending.h"
#include "trampoline/trampoline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SOON_NS UINT64_C(20000000)
#define LATE_NS UINT64_C(1000000000)

static uint64_t size_of(pid_t pid)
{
	char path[32];
	uint64_t pages = 0;
	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	FILE *f = fopen(path, "re");
	if (f && fscanf(f, "%" SCNu64, &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages;
}

static bool is_due(struct dp_new_code *c, pid_t pid)
{
	const uint64_t now = dp_now_ns(), since = now - c->looked_ns;
	if (now < c->next_ns)
		return false;
	c->next_ns = now + SOON_NS;
	const uint64_t pages = size_of(pid);
	const bool changed = pages != c->pages;
	if (!pages || since < (changed ? c->wait_ns : LATE_NS)) /* one library may have taken another's place */
		return false;
	c->wait_ns = !changed || !c->wait_ns ? SOON_NS : 2 * c->wait_ns < LATE_NS ? 2 * c->wait_ns : LATE_NS;
	c->pages = pages;
	c->looked_ns = now;
	return true;
}

static struct dp_error *compile(struct dp_image *image, uint8_t **ret, size_t *size)
{
	dp_auto_free char *dir = dp_cache_dir();
	return dp_unwind_compile(image, dir, dp_stack_effect, ret, size);
}

/* Without room for tables the walks end in the new code as before, but it has names. */
static void take(struct dp_session *s, struct dp_image *image, void (*note)(const char *text, void *data), void *data)
{
	dp_auto_free uint8_t *tables = NULL;
	size_t size = 0;
	const uint64_t began = dp_now_ns();
	struct dp_error *err = compile(image, &tables, &size);
	const bool replaced = !err && dp_target_replace_tables(s->target, tables, size);
	dp_error_destroy(err);
	dp_image_add_later(dp_target_image(s->target), image);
	s->new_code.wait_ns = SOON_NS;
	dp_trace_log(s->trace, DP_LOG_DEBUG, "process %d has mapped more code: unwind tables of %zu KiB, compiled in %llu us",
	             dp_target_pid(s->target), size >> 10, (unsigned long long)(dp_now_ns() - began) / 1000);
	if (!replaced && !s->new_code.said) {
		char text[160];
		snprintf(text, sizeof(text),
		         "process %d loads libraries: there is no room for their unwind tables, backtraces may end in them",
		         dp_target_pid(s->target));
		note(text, data);
		s->new_code.said = true;
	}
}

static void look(struct dp_session *s, void (*note)(const char *text, void *data), void *data)
{
	struct dp_image *image = NULL;
	if (dp_image_nlater(dp_target_image(s->target)) >= DP_IMAGES_LATER_MAX || !is_due(&s->new_code, dp_target_pid(s->target)))
		return;
	dp_error_destroy(dp_target_look_for_code(s->target, &image));
	if (image)
		take(s, image, note, data);
}

void dp_session_code_round(struct dp_session *s, void (*note)(const char *text, void *data), void *data)
{
	struct dp_session *later;
	if (s->ended || s->end != DP_WATCH_OK ||
	    !dp_session_wants_unwind(s->trace)) /* only children are left, or it executes another program */
		return;
	look(s, note, data);
	for (size_t k = 0; (later = dp_pending_later(s, k)); k++)
		look(later, note, data);
}
