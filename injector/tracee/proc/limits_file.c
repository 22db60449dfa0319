/* SPDX-License-Identifier: MIT */
/*
 * dynprobe's own RLIMIT_FSIZE, which also applies to memory files: SIGXFSZ would kill the tool in the middle of an attach. It is
 * raised around each call only, because launched commands inherit it.
 */
#include "injector/tracee/proc/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/* Saves the limit in *old, for restore(). */
static uint64_t lift(struct rlimit *old)
{
	struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
	if (getrlimit(RLIMIT_FSIZE, old))
		*old = most;
	if (old->rlim_cur == RLIM_INFINITY || !setrlimit(RLIMIT_FSIZE, &most))
		return UINT64_MAX;
	most = (struct rlimit){old->rlim_max, old->rlim_max};
	return setrlimit(RLIMIT_FSIZE, &most) ? old->rlim_cur : old->rlim_max;
}

static void restore(const struct rlimit *old)
{
	const int sys = errno;
	if (old->rlim_cur != RLIM_INFINITY)
		setrlimit(RLIMIT_FSIZE, old);
	errno = sys;
}

uint64_t dp_file_most(void)
{
	struct rlimit old;
	const uint64_t most = lift(&old);
	restore(&old);
	return most;
}

static struct dp_error *too_small(uint64_t most, uint64_t size)
{
	return dp_error(DP_TAG_LIMIT,
	                "dynprobe may write files of at most %llu KiB (RLIMIT_FSIZE), but needs %llu KiB of memory shared with "
	                "the process: use a smaller --buffer-size, or run dynprobe with a higher limit (ulimit -f unlimited)",
	                (unsigned long long)(most >> 10), (unsigned long long)(size >> 10));
}

struct dp_error *dp_file_too_large(uint64_t size)
{
	return too_small(dp_file_most(), size);
}

struct dp_error *dp_file_size(int fd, uint64_t size)
{
	struct rlimit old;
	const uint64_t most = lift(&old);
	struct dp_error *err = NULL;
	if (size > most)
		err = too_small(most, size);
	else if (ftruncate(fd, (off_t)size))
		err = dp_error_sys(DP_TAG_SYS, "cannot resize the shared memory to %llu bytes", (unsigned long long)size);
	restore(&old);
	return err;
}

static bool put(int fd, const uint8_t *from, size_t n, uint64_t offset)
{
	for (size_t done = 0; done < n;) {
		const ssize_t part = pwrite(fd, from + done, n - done, (off_t)(offset + done));
		if (part <= 0)
			return false;
		done += (size_t)part;
	}
	return true;
}

struct dp_error *dp_file_write(int fd, const void *bytes, size_t n, uint64_t offset)
{
	struct rlimit old;
	const uint64_t most = lift(&old);
	struct dp_error *err = NULL;
	if (offset + n > most)
		err = too_small(most, offset + n);
	else if (!put(fd, bytes, n, offset))
		err = dp_error_sys(DP_TAG_SYS, "cannot write to the shared memory");
	restore(&old);
	return err;
}

struct dp_error *dp_file_allocate(int fd, uint64_t size)
{
	if (!fallocate(fd, 0, 0, (off_t)size))
		return NULL;
	return dp_error_sys(errno == ENOSPC || errno == ENOMEM ? DP_TAG_LIMIT : DP_TAG_SYS,
	                    "cannot allocate %llu KiB of memory for probes in advance (vm.overcommit_memory=2 or mlockall "
	                    "requires it): use a smaller --max-memory or --buffer-size",
	                    (unsigned long long)(size >> 10));
}
