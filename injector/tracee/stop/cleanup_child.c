/* SPDX-License-Identifier: MIT */
/* The child notices our end when our end of a socket pair closes. One byte in it tells the child to exit without acting. */
#include "injector/tracee/stop/cleanup_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_OF_ALL 3

struct dp_cleanup_child {
	pid_t pid;
	int link;
};

/* No descriptor of ours may stay open longer than we live: a reader of our output waits for its end. */
static void keep_only(int fd)
{
	const int null = open("/dev/null", O_RDWR);
	for (int i = 0; null >= 0 && i < FIRST_OF_ALL; i++)
		dup2(null, i);
	dup2(fd, FIRST_OF_ALL);
	syscall(SYS_close_range, FIRST_OF_ALL + 1, ~0U, 0);
}

__attribute__((noreturn)) static void wait_for_the_end(int fd, void (*act)(const void *data), const void *data)
{
	char word;
	ssize_t n;
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	setsid();
	keep_only(fd);
	do
		n = read(FIRST_OF_ALL, &word, 1);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		act(data);
	_exit(0);
}

struct dp_error *dp_cleanup_child_create(void (*act)(const void *data), const void *data, struct dp_cleanup_child **ret)
{
	int ends[2];
	struct dp_cleanup_child *h = calloc(1, sizeof(*h));
	if (!h || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		free(h);
		return dp_error_sys(DP_TAG_SYS, "cannot create the socket pair of the cleanup process");
	}
	h->pid = fork();
	if (!h->pid) {
		close(ends[1]);
		wait_for_the_end(ends[0], act, data);
	}
	close(ends[0]);
	h->link = ends[1];
	if (h->pid > 0) {
		*ret = h;
		return NULL;
	}
	close(ends[1]);
	free(h);
	return dp_error_sys(DP_TAG_SYS, "cannot fork the cleanup process");
}

struct dp_cleanup_child *dp_cleanup_child_dismiss(struct dp_cleanup_child *h)
{
	if (!h)
		return NULL;
	const ssize_t n = send(h->link, "", 1, MSG_NOSIGNAL); /* the child may have been killed */
	(void)n;
	close(h->link);
	while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(h);
	return NULL;
}
