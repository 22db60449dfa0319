/* SPDX-License-Identifier: MIT */
#include "base/descriptors.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

static struct rlimit given;
static bool raised;

void dp_descriptors_occupy_standard(void)
{
	int fd;
	do
		fd = open("/", O_PATH | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

void dp_descriptors_raise(void)
{
	if (getrlimit(RLIMIT_NOFILE, &given) || given.rlim_cur == given.rlim_max)
		return;
	const struct rlimit most = {given.rlim_max, given.rlim_max};
	raised = !setrlimit(RLIMIT_NOFILE, &most);
}

void dp_descriptors_reset(void)
{
	if (raised)
		setrlimit(RLIMIT_NOFILE, &given);
}

size_t dp_descriptors_most(void)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_NOFILE, &limit) ? 0 : limit.rlim_cur;
}

/* The kernel gives out the lowest free one. Above it few are in use. -1: there is none */
static int lowest_free(void)
{
	const int fd = open("/", O_PATH | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd;
}

struct dp_error *dp_descriptors_check(void)
{
	const size_t most = dp_descriptors_most();
	const int fd = lowest_free();
	if (fd >= 0 && (size_t)fd < most / 2)
		return NULL;
	struct dp_error *err = dp_error(DP_TAG_LIMIT,
	                                "dynprobe may have %zu file descriptors (RLIMIT_NOFILE), and keeps half of them for "
	                                "the processes that it has opened",
	                                most);
	return dp_error_advise(err, "raise the hard limit (ulimit -Hn) and start dynprobe again, or name fewer processes");
}

struct dp_error *dp_descriptors_check_any(void)
{
	if (lowest_free() >= 0)
		return NULL;
	struct dp_error *err =
	        dp_error(DP_TAG_LIMIT, "dynprobe has no free file descriptor (RLIMIT_NOFILE is %zu)", dp_descriptors_most());
	return dp_error_advise(err, "raise the hard limit (ulimit -Hn) and start dynprobe again");
}
