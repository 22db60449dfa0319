/* SPDX-License-Identifier: MIT */
/*
 * The sink's own thread in the target: loads the shared object, then runs its service loop (service.c). It is a thread of the
 * target's libc (liblttng-ust needs one), but until the object is loaded it uses of the libc only the functions that struct
 * dp_sink names, and no descriptor of the program: its descriptor table is its own from the start (sink.h says why). It never
 * ends, because registering an event uses LTTng's sockets, which only threads that share this table have.
 */
#include "agent/sink.h"

#include "agent/agent.h"
#include "agent/sink_forks.h"
#include "agent/syscall.h"

enum {
	SYS_WRITE = 1,
	SYS_OPEN = 2,
	SYS_CLOSE = 3,
	SYS_RT_SIGPROCMASK = 14,
	SYS_DUP2 = 33,
	SYS_GETTID = 186,
	SYS_UNSHARE = 272,
	SYS_MEMFD_CREATE = 319,
	SYS_CLOSE_RANGE = 436,
};

#define CLONE_FILES     0x400
#define CLOSE_UNSHARE   2
#define RTLD_NOW        2
#define RTLD_NOLOAD     4
#define O_RDWR          2
#define MFD_CLOEXEC     1
#define MFD_NOEXEC_SEAL 0x8
#define MFD_EXEC        0x10
#define EINTR           4
#define DESCRIPTORS     4096 /* closed one by one if there is no close_range */
#define MASK_ALL_BUT_GLIBCS                                                                                                      \
	(~UINT64_C(0x180000000)) /* as glibc's own threads do: 32 cancels, 33 makes setuid reach all threads                     \
	                          */

typedef void *(*dlopen_fn)(const char *path, int flags);
typedef void *(*dlsym_fn)(void *handle, const char *name);
typedef const char *(*dlerror_fn)(void);
typedef void *(*self_fn)(void);
typedef int (*detach_fn)(void *self);
typedef void (*sink_fn)(struct dp_sink *sink);

static int64_t syscall3(int64_t nr, uint64_t a, uint64_t b, uint64_t c)
{
	int64_t ret;
	__asm__ volatile("syscall" : "=a"(ret) : "a"(nr), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return ret;
}

static void block_signals(void)
{
	const uint64_t mask = MASK_ALL_BUT_GLIBCS;
	register uint64_t r10 __asm__("r10") = sizeof(mask);
	int64_t ret;
	__asm__ volatile("syscall"
	                 : "=a"(ret)
	                 : "a"((int64_t)SYS_RT_SIGPROCMASK), "D"((uint64_t)2), "S"(&mask), "d"((uint64_t)0), "r"(r10)
	                 : "rcx", "r11", "memory");
}

/* ---- text ----------------------------------------------------------------------------------------------------------------- */

static void copy_text(char *to, uint64_t size, const char *from)
{
	uint64_t i = 0;
	for (; from && from[i] && i + 1 < size; i++)
		to[i] = from[i];
	to[i] = 0;
}

static void fail(struct dp_sink *sink, const char *what)
{
	if (!sink->error[0])
		copy_text(sink->error, sizeof(sink->error), what);
	__atomic_store_n(&sink->state, DP_SINK_FAILED, __ATOMIC_RELEASE);
}

/* ---- descriptors ---------------------------------------------------------------------------------------------------------- */

static int64_t make_memfd(const char *name)
{
	static const uint32_t kind[] = {MFD_EXEC, 0, MFD_NOEXEC_SEAL}; /* as in injector/target/memfd.c */
	int64_t fd = -1;
	for (unsigned i = 0; fd < 0 && i < sizeof(kind) / sizeof(*kind); i++)
		fd = syscall3(SYS_MEMFD_CREATE, (uint64_t)(uintptr_t)name, MFD_CLOEXEC | kind[i], 0);
	return fd;
}

/* A descriptor table of our own, with 0, 1 and 2 on /dev/null. */
static int own_descriptors(void)
{
	static const char null[] = "/dev/null";
	if (syscall3(SYS_CLOSE_RANGE, 0, UINT32_MAX, CLOSE_UNSHARE) < 0) {
		if (syscall3(SYS_UNSHARE, CLONE_FILES, 0, 0) < 0)
			return 0;
		for (uint64_t fd = 0; fd < DESCRIPTORS; fd++)
			syscall3(SYS_CLOSE, fd, 0, 0);
	}
	int64_t fd = syscall3(SYS_OPEN, (uint64_t)(uintptr_t)null, O_RDWR, 0);
	if (fd < 0) /* a container may have no /dev/null */
		fd = make_memfd(null);
	for (uint64_t i = 0; i < 3 && fd >= 0; i++)
		if ((uint64_t)fd != i)
			syscall3(SYS_DUP2, (uint64_t)fd, i, 0);
	return fd >= 0;
}

static int64_t write_image(struct dp_sink *sink)
{
	static const char name[] = DP_SINK_SO; /* not DP_MEMFD_NAME, which would look like a leftover */
	const uint64_t at = (uint64_t)(uintptr_t)sink + sink->so_offset;
	const int64_t fd = make_memfd(name);
	for (uint64_t done = 0; fd >= 0 && done < sink->so_size;) {
		const int64_t n = syscall3(SYS_WRITE, (uint64_t)fd, at + done, sink->so_size - done);
		if (n == -EINTR)
			continue;
		if (n <= 0) {
			syscall3(SYS_CLOSE, (uint64_t)fd, 0, 0);
			return -1;
		}
		done += (uint64_t)n;
	}
	return fd;
}

/* ---- loading -------------------------------------------------------------------------------------------------------------- */

static char *put_text(char *to, const char *text)
{
	while (*text)
		*to++ = *text++;
	return to;
}

static char *put_number(char *to, uint64_t n)
{
	uint64_t power = 1;
	while (n / power >= 10)
		power *= 10;
	for (; power; power /= 10)
		*to++ = (char)('0' + n / power % 10);
	return to;
}

/*
 * The name stays in ld.so's list of loaded objects, and debuggers open that name. "thread-self" would mean a thread of the
 * debugger: it would open a descriptor of its own, and block for ever if that is a pipe. This thread id exists in no other
 * process.
 */
static void path_of(int64_t fd, char *to)
{
	to = put_number(put_text(to, "/proc/self/task/"), (uint64_t)syscall3(SYS_GETTID, 0, 0, 0));
	to = put_number(put_text(to, "/fd/"), (uint64_t)fd);
	*to = 0;
}

static void *open_image(struct dp_sink *sink, int64_t fd)
{
	char path[80];
	path_of(fd, path);
	void *handle = ((dlopen_fn)(uintptr_t)sink->dlopen)(path, RTLD_NOW);
	if (!handle) {
		const char *why = ((dlerror_fn)(uintptr_t)sink->dlerror)();
		fail(sink, why ? why : "dlopen failed");
	}
	return handle;
}

static void load(struct dp_sink *sink)
{
	static const char ust[] = "liblttng-ust.so.1", start_name[] = DP_SYM_SINK_START;
	if (((dlopen_fn)(uintptr_t)sink->dlopen)(ust, RTLD_NOW | RTLD_NOLOAD))
		__atomic_fetch_or(&sink->flags, DP_SINK_UST_PRESENT, __ATOMIC_RELAXED);
	else if (!own_descriptors())
		return fail(sink, "the sink's thread could not get a descriptor table of its own");
	const int64_t fd = write_image(sink);
	if (fd < 0)
		return fail(sink, "cannot create a memory file for the shared object");
	void *handle = open_image(sink, fd);
	if (handle) {
		__atomic_fetch_or(&sink->flags, DP_SINK_LOADED, __ATOMIC_RELAXED);
		sink_fn start = (sink_fn)(uintptr_t)((dlsym_fn)(uintptr_t)sink->dlsym)(handle, start_name);
		if (start)
			start(sink);
		else
			fail(sink, "the shared object lacks its entry point");
	}
	syscall3(SYS_CLOSE, (uint64_t)fd, 0, 0);
	if (__atomic_load_n(&sink->state, __ATOMIC_ACQUIRE) == DP_SINK_LOADING) {
		if (sink->enter && !sink->error[0])
			__atomic_store_n(&sink->state, DP_SINK_READY, __ATOMIC_RELEASE);
		else
			fail(sink, "the shared object failed without a reason");
	}
}

DP_EXPORT void *dp_sink_loader(struct dp_sink *sink);
void *dp_sink_loader(struct dp_sink *sink)
{
	uint32_t empty = DP_SINK_EMPTY;
	block_signals();
	((detach_fn)(uintptr_t)sink->pthread_detach)(((self_fn)(uintptr_t)sink->pthread_self)());
	if (!__atomic_compare_exchange_n(&sink->state, &empty, DP_SINK_LOADING, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return NULL; /* a tool that was killed had started one already */
	sink->loader_tid = (uint64_t)syscall3(SYS_GETTID, 0, 0, 0);
	sink->hold_forks = (uint64_t)(uintptr_t)dp_sink_hold_forks;
	sink->let_forks = (uint64_t)(uintptr_t)dp_sink_let_forks;
	dp_sink_forks_init(sink);
	load(sink);
	if (!(__atomic_load_n(&sink->flags, __ATOMIC_RELAXED) & DP_SINK_LOADED))
		dp_sink_forks_fini(sink); /* the tool unmaps this text */
	dp_sink_let_forks(sink);
	__atomic_fetch_or(&sink->flags, DP_SINK_THREAD_OVER, __ATOMIC_RELEASE);
	if (__atomic_load_n(&sink->state, __ATOMIC_ACQUIRE) == DP_SINK_READY)
		((sink_fn)(uintptr_t)sink->dwell)(sink); /* never returns */
	return NULL;
}
