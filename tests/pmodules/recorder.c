/* SPDX-License-Identifier: MIT */
/* Registers every event, and notes their order on the snapshot: attribute "order". */
#include "pmodule.h"

#include <stdio.h>
#include <string.h>

static char order[4096];

static void came(const char *what, const char *name)
{
	const size_t n = strlen(order);
	snprintf(order + n, sizeof(order) - n, "%s%s%s%s", n ? " " : "", what, name ? ":" : "", name ? name : "");
}

static void preattach(ptrace_backtrace_t *bt)
{
	order[0] = '\0';
	came("preattach", pmodule_backtrace() == bt ? NULL : "other");
}

static void attach(ptrace_backtrace_t *bt)
{
	came("attach", pmodule_backtrace() == bt ? NULL : "other");
}

static void variable(ptrace_variable_t *v, bt_variable_t *bt)
{
	(void)bt;
	came("variable", pmodule_variable_name(v));
}

static void frame(ptrace_frame_t *f)
{
	came("frame", pmodule_frame_symbol(f));
}

static void thread(ptrace_thread_t *t)
{
	came("thread", pmodule_thread_name(t));
}

static void postattach(ptrace_backtrace_t *bt)
{
	came("postattach", NULL);
	pmodule_backtrace_add_kv_string(bt, "order", order);
}

static bool load(pmodule_t *m)
{
	if (pmodule_config_option(m, "defer") && !pmodule_defer(m))
		return false;
	return pmodule_preattach_event_add(m, preattach) && pmodule_attach_event_add(m, attach) &&
	       pmodule_variable_event_add(m, NULL, variable) && pmodule_frame_event_add(m, NULL, frame) &&
	       pmodule_thread_event_add(m, NULL, thread) && pmodule_postattach_event_add(m, postattach);
}

PMODULE_DEFINE("recorder", load, NULL, NULL);
