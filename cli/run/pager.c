/* SPDX-License-Identifier: MIT */
#include "cli/run/pager.h"

#include "base/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *command(void)
{
	const char *own = getenv("DYNPROBE_PAGER"), *usual = getenv("PAGER");
	return own ? own : usual ? usual : "less";
}

static bool is_in(const char *dir, size_t ndir, const char *name, size_t n)
{
	char path[PATH_MAX];
	const int made = snprintf(path, sizeof(path), "%.*s/%.*s", (int)ndir, dir, (int)n, name);
	return made > 0 && (size_t)made < sizeof(path) && !access(path, X_OK);
}

/* A shell runs the command, and what it cannot start would be lost with everything that was written to it. */
static bool can_start(const char *text)
{
	const size_t n = strcspn(text, " \t");
	const char *path = getenv("PATH");
	if (strcspn(text, "|&;<>()$`\\\"'*?[#~=%") < n) /* more than a name */
		return true;
	if (memchr(text, '/', n))
		return is_in(*text == '/' ? "" : ".", *text != '/', text, n);
	for (size_t len; path && *path; path += len + (path[len] == ':')) {
		len = strcspn(path, ":");
		if (is_in(path, len, text, n))
			return true;
	}
	return false;
}

/* less: quit if it fits on one screen, show colours, leave the screen as it is. The user's own settings go first. */
static void become(const char *text, int in)
{
	if (in != STDIN_FILENO && dup2(in, STDIN_FILENO) < 0)
		_exit(127);
	signal(SIGPIPE, SIG_DFL);
	dp_descriptors_reset();
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	execl("/bin/sh", "sh", "-c", text, (char *)NULL);
	_exit(127);
}

/* The pager handles Ctrl-C; dying of it would leave the pager without a terminal. */
static void start(struct dp_pager *p, const char *text, const int end[2])
{
	p->pid = fork();
	if (!p->pid)
		become(text, end[0]);
	if (p->pid < 0 || dup2(end[1], STDOUT_FILENO) < 0) {
		p->pid = 0;
		return;
	}
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
}

void dp_pager_begin(struct dp_pager *p)
{
	const char *text = command();
	int end[2];
	*p = (struct dp_pager){0};
	if (!isatty(STDOUT_FILENO) || !*text || !strcmp(text, "cat") || !can_start(text) || pipe2(end, O_CLOEXEC))
		return;
	fflush(stdout);
	start(p, text, end);
	close(end[0]);
	close(end[1]);
}

void dp_pager_end(struct dp_pager *p)
{
	const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (p->pid) {
		fflush(stdout);
		/* The last writing end: the pager sees the end. What it did not want goes nowhere. */
		if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0)
			close(STDOUT_FILENO);
		while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
			;
		p->pid = 0;
	}
	if (nowhere >= 0)
		close(nowhere);
}
