/* SPDX-License-Identifier: MIT */
/*
 * liblttng-ctl sends a request and then waits in recvmsg(2) for the answer, without a timeout. A daemon that is stopped, or busy
 * with a relay that does not answer, would block the tool forever, with probes installed. A thread that hangs there cannot be
 * stopped, and keeps the library's global state. So each conversation runs in a child process: it is killed when its time is
 * over, and a crash of the library affects only the child.
 */
#include "output/lttng/lttng_talk.h"
#include "base/cleanup.h"
#include "output/lttng/lttng_ctl.h"
#include "output/lttng/lttng_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum { MESSAGE_MAX = 2048 };

struct answer {
	bool failed;
	enum dp_tag tag;
	int sys;
	char message[MESSAGE_MAX];
};

uint64_t dp_lttng_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void dp_lttng_sleep(uint64_t ns)
{
	const struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
	nanosleep(&t, NULL);
}

/* ---- the child ---- */

static int complaints = -1; /* in the child: where its standard error goes */

/* The library prints some errors (for example about an invalid filter) instead of returning them: they belong in our message. */
static void catch_complaints(void)
{
	complaints = memfd_create("dynprobe-lttng", MFD_CLOEXEC);
	if (complaints >= 0)
		dup2(complaints, STDERR_FILENO);
}

void dp_lttng_said(char *said, size_t size)
{
	fflush(stderr);
	ssize_t n = pread(complaints, said, size - 1, 0);
	said[n > 0 ? n : 0] = '\0';
	for (char *c = said; *c; c++)
		if (*c == '\n')
			*c = c[1] ? ';' : '\0';
}

static bool write_all(int fd, const void *data, size_t size)
{
	for (const char *p = data; size;) {
		ssize_t n = write(fd, p, size);
		if (n <= 0)
			return false;
		p += n;
		size -= (size_t)n;
	}
	return true;
}

static _Noreturn void child(dp_lttng_words *words, void *arg, size_t size, int fd)
{
	catch_complaints();
	struct dp_error *err = words(arg);
	struct answer answer = {.failed = err != NULL};
	if (err) {
		answer.tag = err->tag;
		answer.sys = err->sys;
		snprintf(answer.message, sizeof(answer.message), "%s", err->message);
	}
	bool ok = write_all(fd, &answer, sizeof(answer)) && write_all(fd, arg, size);
	_exit(!ok);
}

/*
 * Signals stay blocked in the child: Ctrl-C goes to the whole process group, and the handlers are the tool's. The child dies with
 * its parent.
 */
static pid_t start(dp_lttng_words *words, void *arg, size_t size, const int pipe[2])
{
	sigset_t all, before;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	const pid_t parent = getpid();
	pid_t pid = fork();
	if (pid == 0) {
		close(pipe[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		child(words, arg, size, pipe[1]);
	}
	const int saved = errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = saved;
	return pid;
}

/* ---- the parent ---- */

enum heard { HEARD_ALL, HEARD_END, HEARD_NOTHING };

static enum heard listen_to(int fd, void *data, size_t size, uint64_t until)
{
	for (char *p = data; size;) {
		const uint64_t now = dp_lttng_now();
		struct pollfd pfd = {.fd = fd, .events = POLLIN};
		if (now >= until)
			return HEARD_NOTHING;
		const int ms = (int)((until - now) / 1000000u % INT32_MAX) + 1;
		if (poll(&pfd, 1, ms) <= 0)
			continue; /* a signal for the tool, or a timeout */
		ssize_t n = read(fd, p, size);
		if (n <= 0)
			return HEARD_END;
		p += n;
		size -= (size_t)n;
	}
	return HEARD_ALL;
}

static int reap(pid_t pid, bool end)
{
	int status = 0;
	if (end)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static struct dp_error *died(int status)
{
	if (WIFSIGNALED(status))
		return dp_error(
		        DP_TAG_LTTNG,
		        "the process that talked to the session daemon died of %s in liblttng-ctl: the daemon may have another "
		        "version; compare lttng --version with lttng-sessiond --version",
		        strsignal(WTERMSIG(status)));
	return dp_error(DP_TAG_LTTNG, "the process that talked to the session daemon ended without an answer");
}

struct dp_error *dp_lttng_talk(dp_lttng_words *words, void *arg, size_t size, uint64_t timeout_ns)
{
	const uint64_t until = dp_lttng_now() + timeout_ns;
	int ends[2];
	dp_auto_free void *after = malloc(size + 1);
	if (!after)
		return dp_error_nomem();
	DP_TRY(dp_lttng_ctl_load()); /* here, so that later conversations have it */
	if (pipe2(ends, O_CLOEXEC))
		return dp_error_sys(DP_TAG_SYS, "pipe2");
	dp_auto_close int in = ends[0];
	const pid_t pid = start(words, arg, size, ends);
	const int saved = errno;
	close(ends[1]);
	errno = saved;
	if (pid < 0)
		return dp_error_sys(DP_TAG_SYS, "cannot fork to talk to the LTTng session daemon");
	struct answer answer;
	enum heard heard = listen_to(in, &answer, sizeof(answer), until);
	if (heard == HEARD_ALL && !answer.failed)
		heard = listen_to(in, after, size, until);
	const int status = reap(pid, heard != HEARD_END);
	if (heard == HEARD_NOTHING)
		return dp_lttng_silent(timeout_ns);
	if (heard == HEARD_END)
		return died(status);
	if (answer.failed) {
		struct dp_error *err = dp_error(answer.tag, "%s", answer.message);
		err->sys = answer.sys;
		return err;
	}
	memcpy(arg, after, size);
	return NULL;
}
