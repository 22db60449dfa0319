/* SPDX-License-Identifier: MIT */
/*
 * frame.c: inserts a frame on the inner side of main: the current job, from the global `current_job` (a string). Shows: a frame
 * callback with a match object, an option (--module=example_frame:global,NAME), typed values, synthesized frames and variables.
 */
#include <dynprobe/pmodule.h>

#include <string.h>

static char global[128] = "current_job";

static void frame(ptrace_frame_t *f)
{
	char text[64];
	uint64_t address = 0;
	bt_variable_t *job = pmodule_bt_query(global, NULL, NULL);
	if (bt_variable_strncpy(text, job, sizeof(text)) < 0) {
		pmodule_log(PMODULE_LOG_INFO, "no job: %s", bt_error());
		return;
	}
	bt_variable_address(job, &address);
	ptrace_frame_t *above = pmodule_frame_create();
	pmodule_frame_set_symbol(above, text);
	pmodule_frame_set_path(above, "job");
	if (!pmodule_frame_add_frame(f, above, false)) /* on the inner side of main */
		return;
	ptrace_variable_t *v = pmodule_variable_create("char *", "job", address, -1, NULL);
	pmodule_variable_set_string(v, strdup(text)); /* takes ownership */
	pmodule_frame_add_variable(above, v, false);
}

static bool load(pmodule_t *m)
{
	const char *option = pmodule_config_option(m, "global");
	pmodule_match_t *match = pmodule_match_create();
	if (option)
		strncpy(global, option, sizeof(global) - 1);
	pmodule_match_add_frame_symbol(match, "main", PMODULE_MATCH_EXACT);
	const bool ok = pmodule_frame_event_add(m, match, frame);
	pmodule_match_destroy(match);
	return ok;
}

PMODULE_DEFINE("example_frame", load, NULL, NULL);
