/* SPDX-License-Identifier: MIT */
/*
 * The service loop of the sink's thread. It serves the tool's requests, and writes hits' data to LTTng's descriptors: a hit runs
 * on a thread of the program, where the same numbers mean the program's files.
 *
 *   - wake-ups of the consumer, one byte once per sub-buffer: a bit per descriptor, as more than one byte has no more effect;
 *   - notifications of triggers: a few slots. When all are taken the hit gets EAGAIN, and LTTng counts the notification as
 *     lost.
 *
 * (A hit that opened /proc/self/task/TID/fd/N would briefly use a number in the program's table, which a dup2 of the program
 * could replace; and it fails in a process that may not open a pipe of the session daemon's user.)
 *
 * The first half runs in hits: no lock, no libc. When a thread of LTTng calls close(), what is not written yet is discarded: the
 * number may soon be another file's. LTTng closes only after a grace period, so no hit can use the old one any more.
 */
#include "agent/lttng/guest/redirect.h"
#include "agent/lttng/hosted.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define WAKE_FDS  4096u /* descriptors of LTTng: a few dozen per session */
#define NOTES     32u
#define RETRY_MIN INT64_C(10000000) /* ns between attempts to write to a full pipe */
#define RETRY_MAX INT64_C(900000000)

enum note_state {
	NOTE_FREE,
	NOTE_TAKEN, /* a hit is writing it */
	NOTE_READY,
};

struct note {
	uint32_t state;
	int fd;
	uint32_t size;
	uint64_t ticket; /* order */
	uint8_t data[PIPE_BUF];
};

static uint64_t wanted[WAKE_FDS / 64]; /* a bit per descriptor */
static struct note notes[NOTES];
static uint64_t tickets;
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER; /* taken by resident threads only, never by a hit */
uint32_t dp_lttng_work;

/* ---- in hits ----------------------------------------------------------------------------------------------------- */

static long raw(long nr, long a, long b, long c, long d)
{
	long ret;
	register long r10 __asm__("r10") = d;
	__asm__ volatile("syscall" : "=a"(ret) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
	return ret;
}

static void alarm_service(void)
{
	if (__atomic_exchange_n(&dp_lttng_work, 1, __ATOMIC_SEQ_CST) != 1) /* 1: another hit has woken it, or is about to */
		raw(SYS_futex, (long)&dp_lttng_work, FUTEX_WAKE_PRIVATE, 1, 0);
}

static ssize_t again(void)
{
	errno = EAGAIN; /* on any other error LTTng would call abort() */
	return -1;
}

static struct note *take_note(void)
{
	for (uint32_t i = 0; i < NOTES; i++) {
		uint32_t expected = NOTE_FREE;
		if (__atomic_compare_exchange_n(&notes[i].state, &expected, NOTE_TAKEN, false, __ATOMIC_ACQUIRE,
		                                __ATOMIC_RELAXED))
			return &notes[i];
	}
	return NULL;
}

/* More than one byte: a message that must arrive whole. */
ssize_t dp_lttng_post(int fd, const struct iovec *parts, int n)
{
	size_t size = 0;
	for (int i = 0; i < n; i++)
		size += parts[i].iov_len;
	struct note *note = size <= PIPE_BUF ? take_note() : NULL;
	if (!note)
		return again();
	note->fd = fd;
	note->size = 0;
	for (int i = 0; i < n; i++) {
		memcpy(note->data + note->size, parts[i].iov_base, parts[i].iov_len);
		note->size += (uint32_t)parts[i].iov_len;
	}
	note->ticket = __atomic_fetch_add(&tickets, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&note->state, NOTE_READY, __ATOMIC_RELEASE);
	alarm_service();
	return (ssize_t)size;
}

ssize_t dp_lttng_post_wake(int fd)
{
	static const char byte;
	const struct iovec part = {.iov_base = (void *)(uintptr_t)&byte, .iov_len = 1};
	if ((unsigned)fd >= WAKE_FDS)
		return dp_lttng_post(fd, &part, 1);
	__atomic_fetch_or(&wanted[(unsigned)fd / 64], UINT64_C(1) << ((unsigned)fd % 64), __ATOMIC_SEQ_CST);
	alarm_service();
	return 1;
}

/* ---- in LTTng's threads ------------------------------------------------------------------------------------------ */

static void take_back(int fd)
{
	if ((unsigned)fd < WAKE_FDS)
		__atomic_fetch_and(&wanted[(unsigned)fd / 64], ~(UINT64_C(1) << ((unsigned)fd % 64)), __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < NOTES; i++)
		if (__atomic_load_n(&notes[i].state, __ATOMIC_ACQUIRE) == NOTE_READY && notes[i].fd == fd)
			__atomic_store_n(&notes[i].state, NOTE_FREE, __ATOMIC_RELEASE);
}

int dp_lttng_close(int fd)
{
	pthread_mutex_lock(&writing);
	take_back(fd);
	const int ret = close(fd);
	pthread_mutex_unlock(&writing);
	return ret;
}

/* ---- the sink's thread ------------------------------------------------------------------------------------------- */

static void write_wakes(void)
{
	for (unsigned i = 0; i < WAKE_FDS / 64; i++) {
		uint64_t bits =
		        __atomic_load_n(&wanted[i], __ATOMIC_RELAXED) ? __atomic_exchange_n(&wanted[i], 0, __ATOMIC_SEQ_CST) : 0;
		for (; bits; bits &= bits - 1)
			raw(SYS_write, (long)(i * 64) + __builtin_ctzl(bits), (long)"", 1,
			    0); /* if the pipe is full, the consumer is awake */
	}
}

static struct note *oldest(void)
{
	struct note *found = NULL;
	for (uint32_t i = 0; i < NOTES; i++)
		if (__atomic_load_n(&notes[i].state, __ATOMIC_ACQUIRE) == NOTE_READY &&
		    (!found || notes[i].ticket < found->ticket))
			found = &notes[i];
	return found;
}

/* Writes those that are ready, in order. True: a pipe is full, the rest must wait. */
static bool write_notes(void)
{
	for (struct note *note; (note = oldest()) != NULL;) {
		const long n = raw(SYS_write, note->fd, (long)note->data, note->size, 0);
		if (n == -EAGAIN)
			return true;
		__atomic_store_n(&note->state, NOTE_FREE, __ATOMIC_RELEASE);
	}
	return false;
}

static bool write_posted(void)
{
	pthread_mutex_lock(&writing);
	write_wakes();
	const bool full = write_notes();
	pthread_mutex_unlock(&writing);
	return full;
}

static void rest(bool full, int64_t *retry)
{
	*retry = !full ? 0 : *retry ? *retry * 2 : RETRY_MIN;
	if (*retry > RETRY_MAX)
		*retry = RETRY_MAX;
	const struct timespec span = {.tv_nsec = *retry};
	raw(SYS_futex, (long)&dp_lttng_work, FUTEX_WAIT_PRIVATE, 0, full ? (long)&span : 0);
}

void dp_lttng_dwell(struct dp_sink *sink)
{
	int64_t retry = 0;
	for (;;) {
		__atomic_store_n(&dp_lttng_work, 0, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&sink->request, __ATOMIC_SEQ_CST) == DP_SINK_ASKED)
			dp_lttng_serve(sink);
		rest(write_posted(), &retry);
	}
}
