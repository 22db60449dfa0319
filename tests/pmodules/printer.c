/* SPDX-License-Identifier: MIT */
/* Logs the whole snapshot through the iterators of pmodule.h, one line per object. Loaded last, it shows what other modules did.
 */
#include "pmodule.h"

#include <stdio.h>

static void variable(ptrace_variable_t *v)
{
	int64_t number = 0;
	double real = 0;
	const char *name = pmodule_variable_name(v), *symbol = pmodule_variable_symbol(v);
	char element[32];
	snprintf(element, sizeof(element), "[%d]", (int)(pmodule_variable_depth(v) ? 0 : -1));
	pmodule_variable_int(v, &number);
	pmodule_variable_real(v, &real, NULL);
	pmodule_log(PMODULE_LOG_WARNING, "%*s%s: %s = %lld %g %s%s", (int)(2 * pmodule_variable_depth(v)), "",
	            name ? name : element, pmodule_variable_type_name(v), (long long)number, real, symbol ? symbol : "-",
	            pmodule_variable_state(v) & PTRACE_VARIABLE_S_SKIP ? " (hidden)" : "");
}

static void postattach(ptrace_backtrace_t *bt)
{
	for (ptrace_thread_t *t = NULL; (t = pmodule_backtrace_next_thread(bt, NULL, t));)
		for (ptrace_frame_t *f = NULL; (f = pmodule_thread_next_frame(t, NULL, f));) {
			pmodule_log(PMODULE_LOG_WARNING, "frame %u %s", pmodule_frame_index(f), pmodule_frame_symbol(f));
			for (ptrace_variable_t *v = NULL; (v = pmodule_frame_next_variable(f, NULL, v));)
				variable(v);
		}
}

static bool load(pmodule_t *m)
{
	return pmodule_postattach_event_add(m, postattach);
}

PMODULE_DEFINE("printer", load, NULL, NULL);
