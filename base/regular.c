/* SPDX-License-Identifier: MIT */
#include "base/regular.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens the path once, checks the file, and reopens it by descriptor: a rename in between has no effect. */
int dp_open_regular(const char *path)
{
	struct stat st;
	char again[64];
	dp_auto_close int at = open(path, O_PATH | O_CLOEXEC);
	if (at < 0 || fstat(at, &st))
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = ENXIO;
		return -1;
	}
	snprintf(again, sizeof(again), "/proc/self/fd/%d", at);
	return open(again, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}
