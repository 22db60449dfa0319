/* SPDX-License-Identifier: MIT */
/* view: the events of a trace as text, by babeltrace2, which reads what the recorder writes. */
#include "cli/commands/command.h"
#include "cli/options/rfc_words.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OURS "dynprobe-"

bool dp_rfc_is_view(const char *word)
{
	return !strcmp(word, "view");
}

/* The newest trace in the default directory, owned by the caller; or NULL. */
static char *last_trace(void)
{
	const char *home = getenv("LTTNG_HOME") ? getenv("LTTNG_HOME") : getenv("HOME");
	char *last = NULL, *dir = NULL, *path;
	struct timespec newest = {0};
	DIR *d = home && asprintf(&dir, "%s/lttng-traces", home) > 0 ? opendir(dir) : NULL;
	for (struct dirent *e; d && (e = readdir(d));) {
		struct stat st;
		if (strncmp(e->d_name, OURS, sizeof(OURS) - 1) != 0 || asprintf(&path, "%s/%s", dir, e->d_name) < 0)
			continue;
		const bool is_later =
		        !stat(path, &st) && (st.st_mtim.tv_sec > newest.tv_sec ||
		                             (st.st_mtim.tv_sec == newest.tv_sec && st.st_mtim.tv_nsec > newest.tv_nsec));
		if (is_later) {
			newest = st.st_mtim;
			free(last);
			last = path;
		} else {
			free(path);
		}
	}
	if (d)
		closedir(d);
	free(dir);
	return last;
}

int dp_command_view(char **words)
{
	dp_auto_free char *last = NULL;
	if (words[0] && (words[1] || words[0][0] == '-')) {
		fprintf(stderr, "dynprobe: error: view takes one trace: dynprobe view [DIR]; for options use babeltrace2 "
		                "[DP-USAGE]\n");
		return DP_EXIT_FAILURE;
	}
	if (!words[0] && !(last = last_trace())) {
		fprintf(stderr, "dynprobe: error: no trace in ~/lttng-traces: use dynprobe view DIR [DP-USAGE]\n");
		return DP_EXIT_FAILURE;
	}
	char *const argv[] = {"babeltrace2", words[0] ? words[0] : last, NULL};
	execvp(argv[0], argv);
	fprintf(stderr, "dynprobe: error: cannot start babeltrace2 on %s: %m; install the package babeltrace2 [DP-SYS]\n",
	        argv[1]);
	return DP_EXIT_FAILURE;
}
