/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes the target's memory. Reads use process_vm_readv (no descriptor, no stop), then /proc/PID/task/TID/mem for what
 * that cannot read (execute-only text). Text is written through /proc/PID/task/TID/mem, which copies the page in this process
 * only, or by PTRACE_POKEDATA where newer kernels refuse forced writes.
 *
 * Data is written at any time, also while no thread is held. process_vm_writev names a thread by id, and that thread may just
 * have ended and its id belong to another program. So dp_mem_open() opens the memory once: an open /proc/PID/task/TID/mem refers
 * to the memory that the process had then (proc(5)), until exec or exit; after that writes fail. Checking the process's start
 * time after the open shows that the id was still the process's.
 */
#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/tracee.h"

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
	dp_late_stop_reap();
	ssize_t got = process_vm_readv(p->alive, &here, 1, &there, 1, 0);
	size_t done = got > 0 ? (size_t)got : 0;
	if (done < n)
		done += read_forced(p, dp_addr_add(addr, (int64_t)done), (uint8_t *)buf + done, n - done);
	return done;
}

/* Moves descriptor 0 elsewhere, in case dynprobe was started without one: 0 means "none" here. */
static int not_zero(int fd)
{
	if (fd)
		return fd;
	fd = fcntl(0, F_DUPFD_CLOEXEC, 1);
	close(0);
	return fd;
}

/* Optional: without it, questions about maps are answered by the worst case. */
static int open_maps(const struct dp_process *p)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/maps", p->pid, p->alive);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? 0 : not_zero(fd);
}

struct dp_error *dp_mem_open(struct dp_process *p)
{
	int fd = open_mem(p->pid, p->alive, O_RDWR);
	const int sys = errno;
	fd = not_zero(fd);
	if (fd > 0 && dp_process_start_time(p->pid) == p->start_time) {
		p->mem = fd;
		p->maps = open_maps(p);
		return NULL;
	}
	if (fd >= 0)
		close(fd);
	errno = sys;
	return fd < 0 ? dp_error_sys(errno == ENOENT || errno == ESRCH ? DP_TAG_GONE : DP_TAG_SYS,
	                             "cannot open the memory of process %d (%s)", p->pid, p->comm)
	              : dp_error(DP_TAG_GONE, "process %d (%s) ended", p->pid, p->comm);
}

void dp_mem_close(struct dp_process *p)
{
	if (p->mem > 0)
		close(p->mem);
	if (p->maps > 0)
		close(p->maps);
	p->mem = p->maps = 0;
}

/* Returns 0 if that memory no longer exists. */
static ssize_t write_some(const struct dp_process *p, uint64_t at, const void *bytes, size_t n)
{
	const struct iovec here = {(void *)(uintptr_t)bytes, n}, there = {(void *)(uintptr_t)at, n};
	if (p->mem > 0)
		return pwrite(p->mem, bytes, n, (off_t)at);
	return process_vm_writev(p->alive, &here, 1, &there, 1, 0);
}

struct dp_error *dp_mem_write(const struct dp_process *p, dp_addr addr, const void *buf, size_t n)
{
	size_t done = 0;
	while (done < n) {
		const ssize_t put = write_some(p, addr.v + done, (const uint8_t *)buf + done, n - done);
		if (!put)
			errno = ESRCH;
		if (put <= 0)
			return dp_error_sys(errno == ESRCH ? DP_TAG_GONE : DP_TAG_SYS,
			                    "cannot write %zu bytes at %#llx in process %d", n, (unsigned long long)addr.v,
			                    p->pid);
		done += (size_t)put;
	}
	return NULL;
}

struct dp_error *dp_mem_write_parts(const struct dp_process *p, const struct dp_mem_part *part, size_t n)
{
	for (size_t i = 0; i < n; i++)
		DP_TRY(dp_mem_write(p, dp_addr_of(part[i].at), part[i].bytes, part[i].n));
	return NULL;
}

/* Writes word by word; the other bytes of a partial word are kept. */
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
	return dp_error_sys(errno == ESRCH ? DP_TAG_GONE : DP_TAG_SYS, "cannot write %zu bytes of text at %#llx in process %d", n,
	                    (unsigned long long)addr.v, p->pid);
}
