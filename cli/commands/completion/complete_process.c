/* SPDX-License-Identifier: MIT */
/* Candidates from the machine, and from the process or program that the line names. Whatever fails offers nothing. */
#include "cli/commands/completion/completion.h"

#include "base/cleanup.h"
#include "injector/tracee/proc/inspect.h"
#include "injector/tracee/proc/named.h"
#include "injector/tracee/proc/proc.h"
#include "probes/elf/demangle.h"
#include "probes/point/usdt/usdt.h"
#include "probes/probes.h"

#include <ctype.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

/* ---- the machine ----------------------------------------------------------------------------------------------------------- */

/* The name is only shown, unless a name is what was begun. */
static bool offer_pid(pid_t pid, void *data)
{
	struct dp_line *line = data;
	char number[16], name[64];
	struct dp_task_stat stat;
	if (pid == getpid() || !dp_proc_stat(pid, 0, &stat) || stat.flags & DP_PF_KTHREAD || stat.state == 'Z')
		return true;
	dp_proc_comm(pid, name, sizeof(name));
	snprintf(number, sizeof(number), "%d", pid);
	dp_line_offer(line, number, name);
	if (isalpha((unsigned char)*line->word))
		dp_line_offer(line, name, number);
	return true;
}

void dp_complete_pids(struct dp_line *line)
{
	dp_proc_each(offer_pid, line);
}

void dp_complete_users(struct dp_line *line)
{
	setpwent();
	for (const struct passwd *user; (user = getpwent());)
		dp_line_offer(line, user->pw_name, NULL);
	endpwent();
}

/* ---- the program that is meant --------------------------------------------------------------------------------------------- */

struct search {
	const char *name;
	pid_t pid;
};

static bool is_it(pid_t pid, void *data)
{
	struct search *s = data;
	if (pid != getpid() && dp_proc_is_named(pid, s->name))
		s->pid = pid;
	return !s->pid;
}

/* Of a list the first. */
static pid_t pid_of(const char *typed)
{
	char first[64];
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(typed, ","), typed);
	struct search s = {.name = first};
	if (isdigit((unsigned char)*first))
		return (pid_t)atoi(first);
	dp_proc_each(is_it, &s);
	return s.pid;
}

static struct dp_error *image_of_process(pid_t pid, struct dp_image **ret)
{
	struct dp_process p;
	dp_auto_free char *maps = NULL;
	char root[32];
	DP_TRY(dp_process_inspect(pid, &p));
	DP_TRY(dp_process_maps(&p, &maps));
	snprintf(root, sizeof(root), "/proc/%d/root", p.alive);
	return dp_image_create(maps, root, p.alive, ret);
}

static struct dp_error *image_of_file(const char *command, struct dp_image **ret)
{
	char path[4096];
	const int n = (int)strcspn(command, " ");
	const char *rest = getenv("PATH");
	snprintf(path, sizeof(path), "%.*s", n, command);
	while (!strchr(command, '/') && rest && *rest) {
		const int len = (int)strcspn(rest, ":");
		snprintf(path, sizeof(path), "%.*s/%.*s", len, rest, n, command);
		if (!access(path, X_OK))
			break;
		rest += len + (rest[len] == ':');
	}
	return dp_image_from_file(path, ret);
}

struct dp_image *dp_complete_image(const struct dp_line *line)
{
	const char *pid = dp_line_value(line, "pid"), *command = dp_line_value(line, "command");
	const char *program = dp_line_value(line, "program"), *file = command ? command : program;
	struct dp_image *image = NULL;
	const bool is_list = line->verb == DP_VERB_LIST && line->n > 2 && !pid;
	if (is_list && strspn(line->words[1], "0123456789") == strlen(line->words[1]))
		pid = line->words[1];
	else if (is_list)
		file = line->words[1];
	struct dp_error *err = pid ? image_of_process(pid_of(pid), &image) : file ? image_of_file(file, &image) : NULL;
	dp_error_destroy(err);
	return image;
}

/* ---- functions and markers ------------------------------------------------------------------------------------------------- */

/* The names of C++ and Rust as they are read; a module that was typed is repeated. */
static void offer_function(struct dp_line *line, const char *name)
{
	const char *bang = strrchr(line->word, '!');
	dp_auto_free char *readable = dp_demangle(name, false), *text = NULL;
	const char *shown = readable ? readable : name;
	if (asprintf(&text, "%.*s%s", bang ? (int)(bang + 1 - line->word) : 0, line->word, shown) < 0)
		text = NULL;
	if (text)
		dp_line_offer(line, text, NULL);
}

/* Without a letter only the program's own: libraries have thousands. */
static struct dp_error *select_functions(struct dp_line *line, struct dp_image *image, struct dp_selection *ret)
{
	struct dp_spec spec = {0};
	dp_auto_free char *pattern = NULL;
	if (strpbrk(line->word, "*?[@+") || asprintf(&pattern, "%s%s*", *line->word ? "" : "a.out!", line->word) < 0) {
		pattern = NULL;
		return NULL;
	}
	DP_TRY(dp_spec_parse(pattern, &spec));
	struct dp_error *err = dp_image_select(image, &spec, NULL, 0, ret);
	dp_spec_fini(&spec);
	return err;
}

void dp_complete_functions(struct dp_line *line)
{
	struct dp_image *image = dp_complete_image(line);
	struct dp_selection found = {0};
	struct dp_error *err = image ? select_functions(line, image, &found) : NULL;
	for (size_t i = 0; !err && i < found.n; i++)
		if (!found.item[i].ifunc)
			offer_function(line, found.item[i].function.name);
	dp_error_destroy(err);
	dp_selection_fini(&found);
	dp_image_destroy(image);
}

static void offer_markers(struct dp_line *line, struct dp_module *m)
{
	const struct dp_usdt *marker;
	size_t n = 0;
	struct dp_error *err = dp_module_markers(m, &marker, &n);
	for (size_t i = 0; !err && i < n; i++) {
		char text[256];
		snprintf(text, sizeof(text), "%s:%s", marker[i].provider, marker[i].name);
		dp_line_offer(line, text, dp_module_name(m));
	}
	dp_error_destroy(err);
}

void dp_complete_markers(struct dp_line *line)
{
	struct dp_image *image = dp_complete_image(line);
	for (size_t i = 0; image && i < dp_image_nmodules(image); i++)
		offer_markers(line, dp_image_module(image, i));
	dp_image_destroy(image);
}
