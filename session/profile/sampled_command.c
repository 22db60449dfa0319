/* SPDX-License-Identifier: MIT */
#include "session/profile/sampler.h"

#include "base/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#define EXIT_NOT_RUN 127 /* the reason is written to the pipe `told` */

static void become(char **words, const int go[2], int told)
{
	char c;
	close(go[1]);                     /* so that read() ends if dynprobe dies */
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* until exec */
	if (read(go[0], &c, 1) != 1)
		_exit(EXIT_NOT_RUN);
	prctl(PR_SET_PDEATHSIG, 0);
	dp_descriptors_reset();
	execvp(words[0], words);
	const int why = errno;
	const ssize_t written = write(told, &why, sizeof(why));
	(void)written;
	_exit(EXIT_NOT_RUN);
}

struct dp_error *dp_sampled_command_start(struct dp_sampled_command *c, char **words)
{
	int go[2], say[2];
	if (pipe2(go, O_CLOEXEC) || pipe2(say, O_CLOEXEC))
		return dp_error_sys(DP_TAG_SYS, "a pipe for the command");
	c->pid = fork();
	if (c->pid < 0)
		return dp_error_sys(DP_TAG_SYS, "starting the command");
	if (!c->pid)
		become(words, go, say[1]);
	close(go[0]);
	close(say[1]);
	c->go = go[1];
	c->told = say[0];
	return NULL;
}

struct dp_error *dp_sampled_command_go(struct dp_sampled_command *c, const char *name)
{
	int why;
	if (write(c->go, "", 1) != 1)
		return dp_error_sys(DP_TAG_SYS, "starting the command");
	if (read(c->told, &why, sizeof(why)) != sizeof(why))
		return NULL;
	errno = why;
	return dp_error_sys(DP_TAG_EXEC, "'%s' cannot be started", name);
}

void dp_sampled_command_fini(struct dp_sampled_command *c)
{
	for (int *fd = &c->go; fd <= &c->told; fd++)
		if (*fd >= 0)
			close(*fd);
}
