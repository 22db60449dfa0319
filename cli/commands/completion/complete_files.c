/* SPDX-License-Identifier: MIT */
/* Candidates that are files: recorded traces, snapshots, pmodules. Whatever fails offers nothing. */
#include "cli/commands/completion/completion.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "pmodules/pmodules.h"
#include "session/traces/traces.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void offer_recorded(struct dp_line *line, bool paths)
{
	struct dp_trace_list list = {0};
	dp_auto_free char *dir = dp_traces_dir();
	struct dp_error *err = dir ? dp_traces_list(dir, &list) : NULL;
	for (size_t i = 0; i < list.n; i++)
		dp_line_offer(line, paths ? list.item[i].path : list.item[i].name, list.item[i].program);
	dp_traces_fini(&list);
	dp_error_destroy(err);
}

void dp_complete_traces(struct dp_line *line)
{
	offer_recorded(line, false);
}

/* ---- the directory that the word names ------------------------------------------------------------------------------------- */

static bool is_directory(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static bool is_trace(const char *path)
{
	static const char *const held[] = {"metadata", "0001/metadata"};
	for (size_t i = 0; i < sizeof(held) / sizeof(*held); i++) {
		dp_auto_free char *file = NULL;
		if (asprintf(&file, "%s/%s", path, held[i]) < 0)
			file = NULL;
		if (file && !access(file, F_OK))
			return true;
	}
	return false;
}

static bool ends_in(const char *name, const char *ends)
{
	const char *dot = strrchr(name, '.');
	const char *at = dot ? strstr(ends, dot) : NULL;
	return at && strchr(" ", at[strlen(dot)]);
}

/* A directory that is no trace is on the way to something. */
static void offer_entry(struct dp_line *line, const char *path, const char *ends)
{
	const bool way = is_directory(path), trace = way && strchr(ends, '/') && is_trace(path);
	dp_auto_free char *text = NULL;
	if (!way && !ends_in(path, ends))
		return;
	if (asprintf(&text, "%s%s", path, way && !trace ? "/" : "") < 0)
		text = NULL;
	if (text)
		dp_line_offer(line, text, NULL);
}

/* `ends`: of the names, separated by spaces; '/': traces, which are directories. */
static void offer_files(struct dp_line *line, const char *ends)
{
	const char *last = dp_path_last(line->word);
	const int ndir = (int)(last - line->word);
	dp_auto_free char *dir = NULL;
	if (asprintf(&dir, "%.*s", ndir, line->word) < 0)
		dir = NULL;
	dp_auto_closedir DIR *d = dir ? opendir(*dir ? dir : ".") : NULL;
	for (struct dirent *e; d && (e = readdir(d));) {
		dp_auto_free char *path = NULL;
		if (strncmp(e->d_name, last, strlen(last)) != 0 || (*e->d_name == '.' && *last != '.'))
			continue;
		if (asprintf(&path, "%s%s", dir, e->d_name) < 0)
			path = NULL;
		if (path)
			offer_entry(line, path, ends);
	}
}

void dp_complete_snapshots(struct dp_line *line)
{
	offer_files(line, ".dps");
}

void dp_complete_recordings(struct dp_line *line, bool snapshots)
{
	offer_recorded(line, *line->word == '/');
	offer_files(line, snapshots ? ".dps .json /" : "/");
}

/* ---- pmodules -------------------------------------------------------------------------------------------------------------- */

/* Its file begins with "-- NAME: what it does". */
static bool about_module(const char *path, const char *name, char ret[256])
{
	dp_auto_fclose FILE *f = fopen(path, "re");
	const size_t n = strlen(name);
	for (int i = 0; f && i < 3 && fgets(ret, 256, f); i++) {
		ret[strcspn(ret, "\n")] = 0;
		if (!strncmp(ret, "-- ", 3) && !strncmp(ret + 3, name, n) && ret[3 + n] == ':') {
			memmove(ret, ret + 3 + n + 2, strlen(ret + 3 + n + 2) + 1);
			return true;
		}
	}
	return false;
}

static void offer_module(const char *path, const char *name, void *data)
{
	char about[256];
	dp_line_offer(data, name, about_module(path, name, about) ? about : NULL);
}

void dp_complete_modules(struct dp_line *line)
{
	dp_own_modules_each(offer_module, line);
	offer_files(line, ".lua .so");
}
