/* SPDX-License-Identifier: MIT */
/*
 * The target's memory. Reading asks process_vm_readv first (no descriptor, no stop) and /proc/PID/task/TID/mem for what that
 * cannot see (execute-only text). Writing text goes through /proc/PID/task/TID/mem, which copies the page in this process
 * only, or through PTRACE_POKEDATA where newer kernels refuse forced writes.
 */
#include "injector/freeze.h"
#include "injector/tracee.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

static int open_mem(pid_t pid, pid_t tid, int flags)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", pid, tid);
	return open(path, flags | O_CLOEXEC);
}

static size_t read_forced(const struct dp_process *p, dp_addr addr, uint8_t *buf, size_t n)
{
	size_t done = 0;
	dp_auto_close int fd = open_mem(p->pid, p->alive, O_RDONLY);
	while (fd >= 0 && done < n) {
		ssize_t got = pread(fd, buf + done, n - done, (off_t)(addr.v + done));
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}

size_t dp_mem_read(const struct dp_process *p, dp_addr addr, void *buf, size_t n)
{
	struct iovec here = {buf, n}, there = {(void *)(uintptr_t)addr.v, n};
	dp_stray_reap();
	ssize_t got = process_vm_readv(p->alive, &here, 1, &there, 1, 0);
	size_t done = got > 0 ? (size_t)got : 0;
	if (done < n)
		done += read_forced(p, dp_addr_add(addr, (int64_t)done), (uint8_t *)buf + done, n - done);
	return done;
}

struct dp_error *dp_mem_write(const struct dp_process *p, dp_addr addr, const void *buf, size_t n)
{
	size_t done = 0;
	while (done < n) {
		struct iovec here = {(void *)((uintptr_t)buf + done), n - done},
		             there = {(void *)(uintptr_t)(addr.v + done), n - done};
		ssize_t put = process_vm_writev(p->alive, &here, 1, &there, 1, 0);
		if (put <= 0)
			return dp_error_sys(errno == ESRCH ? DP_TAG_GONE : DP_TAG_SYS, "writing %zu bytes at %#llx in process %d",
			                    n, (unsigned long long)addr.v, p->pid);
		done += (size_t)put;
	}
	return NULL;
}

/* Word by word; a word that is not covered whole keeps its other bytes. */
static bool poke(pid_t tid, dp_addr addr, const uint8_t *buf, size_t n)
{
	for (size_t i = 0; i < n; i += sizeof(long)) {
		long word = 0;
		size_t part = n - i < sizeof(word) ? n - i : sizeof(word);
		if (part < sizeof(word)) {
			errno = 0;
			word = ptrace(PTRACE_PEEKDATA, tid, (void *)(uintptr_t)(addr.v + i), NULL);
			if (errno)
				return false;
		}
		memcpy(&word, buf + i, part);
		if (ptrace(PTRACE_POKEDATA, tid, (void *)(uintptr_t)(addr.v + i), (void *)word) != 0)
			return false;
	}
	return true;
}

struct dp_error *dp_mem_write_text(const struct dp_process *p, pid_t held_tid, dp_addr addr, const void *buf, size_t n,
                                   bool *by_poke)
{
	size_t done = 0;
	dp_auto_close int fd = open_mem(p->pid, held_tid, O_RDWR);
	while (fd >= 0 && done < n) {
		ssize_t put = pwrite(fd, (const uint8_t *)buf + done, n - done, (off_t)(addr.v + done));
		if (put <= 0)
			break;
		done += (size_t)put;
	}
	if (by_poke)
		*by_poke = done < n;
	if (done == n)
		return NULL;
	if (poke(held_tid, dp_addr_add(addr, (int64_t)done), (const uint8_t *)buf + done, n - done))
		return NULL;
	return dp_error_sys(errno == ESRCH ? DP_TAG_GONE : DP_TAG_SYS, "writing %zu bytes of text at %#llx in process %d", n,
	                    (unsigned long long)addr.v, p->pid);
}
