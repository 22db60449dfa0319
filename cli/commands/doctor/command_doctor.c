/* SPDX-License-Identifier: MIT */
/* doctor: what this machine, this user and processes allow. */
#include "cli/commands/command.h"
#include "output/format/put.h"
#include "session/doctor/doctor.h"

#include <string.h>

static const char *const words[] = {[DP_HEALTH_OK] = "ok", [DP_HEALTH_NOTE] = "note", [DP_HEALTH_NO] = "no"};

static void show_text(const struct dp_findings *f, const char *title, bool color)
{
	static const char *const colors[] = {
	        [DP_HEALTH_OK] = "\033[32m", [DP_HEALTH_NOTE] = "\033[33m", [DP_HEALTH_NO] = "\033[31m"};
	puts(title);
	for (size_t i = 0; i < f->n; i++) {
		const struct dp_finding *one = &f->item[i];
		printf("  %s%-4s%s  %-12s  %s%s%s%s\n", color ? colors[one->health] : "", words[one->health],
		       color ? "\033[0m" : "", one->subject, one->text, one->tag ? " [" : "", one->tag ? one->tag : "",
		       one->tag ? "]" : "");
		if (one->remedy)
			printf("%*s  %s\n", 20, "", one->remedy);
	}
}

static void show_json(const struct dp_findings *f, pid_t pid, const char *name)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct dp_finding *one = &f->item[i];
		struct dp_buf b = {0};
		dp_put_json_member(&b, "{\"type\":\"finding\",", "subject", one->subject);
		dp_put_json_member(&b, ",", "health", words[one->health]);
		dp_put_json_member(&b, ",", "text", one->text);
		if (one->remedy)
			dp_put_json_member(&b, ",", "remedy", one->remedy);
		if (one->tag)
			dp_put_json_member(&b, ",", "tag", one->tag);
		if (pid) {
			dp_buf_printf(&b, ",\"pid\":%d", pid);
			dp_put_json_member(&b, ",", "comm", name);
		}
		dp_put_str(&b, "}");
		puts(dp_buf_str(&b));
		dp_buf_fini(&b);
	}
}

static void show(const struct dp_options *o, const struct dp_findings *f, pid_t pid, const char *name)
{
	char title[128];
	snprintf(title, sizeof(title), pid ? "process %d (%s)" : "this machine and user", pid, name);
	if (o->format == DP_FORMAT_JSON)
		show_json(f, pid, name);
	else
		show_text(f, title, dp_options_color(o, stdout));
}

static bool examine(const struct dp_options *o, pid_t pid)
{
	struct dp_findings f = {0};
	char name[64] = "";
	bool fine = true;
	if (pid)
		fine = dp_doctor_process(pid, &f, name, sizeof(name));
	else
		dp_doctor_machine(&f);
	for (size_t i = 0; i < f.n && !pid; i++)
		fine &= strcmp(f.item[i].subject, "kernel") != 0 || f.item[i].health != DP_HEALTH_NO;
	show(o, &f, pid, name);
	dp_findings_fini(&f);
	return fine;
}

int dp_command_doctor(const struct dp_options *options)
{
	size_t refused = 0;
	if (!examine(options, 0))
		return DP_EXIT_FAILURE;
	for (size_t i = 0; i < options->trace.npids; i++)
		refused += !examine(options, options->trace.pid[i]);
	if (!refused)
		return 0;
	return refused < options->trace.npids ? DP_EXIT_PARTIAL : DP_EXIT_FAILURE;
}
