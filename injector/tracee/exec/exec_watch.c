/* SPDX-License-Identifier: MIT */
/*
 * The thread of the watch, and the queue between it and the tool. See exec_files.h for the files.
 *
 * The thread never traces: ptrace belongs to the thread that seized. It lets go at once what the tool traces already: the tool
 * waits for a command of its own in exec, and would wait for itself. The descriptors of questions are in its table alone: the
 * tool answers by their numbers, and leaves it to the thread to close them.
 */
#include "injector/tracee/exec/exec_watch.h"

#include "injector/tracee/exec/exec_descriptors.h"
#include "injector/tracee/exec/exec_files.h"
#include "injector/tracee/exec/exec_guard.h"
#include "injector/tracee/exec/exec_named.h"
#include "injector/tracee/exec/exec_tree.h"
#include "injector/tracee/proc/auxv.h"
#include "injector/tracee/proc/checks.h"
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/stop/watchdog.h"
#include "injector/tracee/tracee.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CALL_NS UINT64_C(50000000)

enum { LATE = 64, KEPT = 5 };

struct waiting {
	struct dp_exec_start start;
	uint64_t until_ns;
};

struct dp_exec_watch {
	int group;   /* fanotify */
	int ready;   /* eventfd: there is something to take */
	int news[2]; /* pipe, to the thread: a descriptor to close, or -1: there is a new limit, or the thread is to end */
	struct dp_exec_files *files;
	struct dp_exec_watched what;
	struct dp_exec_guard *guard;
	pthread_t thread;
	bool runs;
	sem_t begun; /* the thread has its descriptors, or `why` says why not */
	int why;
	size_t open; /* of the thread: questions whose descriptors are open */
	atomic_bool holds;
	pthread_mutex_t lock; /* of what follows */
	bool over;            /* the thread is to end */
	struct waiting *queue;
	size_t n, capacity;
	struct waiting taken;            /* by the tool, not allowed yet: start.fd >= 0 */
	struct dp_exec_start late[LATE]; /* the last that were let go */
	unsigned nlate;
};

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void allow(const struct dp_exec_watch *w, int fd)
{
	const struct fanotify_response yes = {.fd = fd, .response = FAN_ALLOW};
	while (fd >= 0 && write(w->group, &yes, sizeof(yes)) < 0 && errno == EINTR)
		;
}

/* ---- the thread ------------------------------------------------------------------------------------------------------------ */

static void close_question(struct dp_exec_watch *w, int fd)
{
	if (fd < 0)
		return;
	close(fd);
	w->open--;
}

static void answer(struct dp_exec_watch *w, int *fd)
{
	allow(w, *fd);
	close_question(w, *fd);
	*fd = -1;
}

/* The process of a thread; 0: it cannot be seen from here, is traced by this tool or its child, or does not belong to the set. */
static pid_t wanted(const struct dp_exec_watch *w, pid_t tid)
{
	struct dp_buf status;
	pid_t pid = 0;
	dp_buf_init(&status);
	if (tid > 0 && dp_proc_slurp(&status, "/proc/%d/status", tid)) {
		const char *text = dp_buf_str(&status);
		const pid_t tracer = (pid_t)dp_status_long(text, "TracerPid", 0);
		const bool traced = tracer && dp_is_own_task(tracer);
		const bool child = !w->what.tree && dp_status_long(text, "PPid", 0) == getpid(); /* the tool may wait for it */
		pid = (pid_t)dp_status_long(text, "Tgid", 0);
		if (w->what.tree)
			dp_exec_tree_note_asked(w->what.tree, pid);
		pid = traced || child ? 0 : pid;
	}
	dp_buf_fini(&status);
	if (pid == getpid())
		return 0;
	return pid && w->what.tree && !dp_exec_tree_has(w->what.tree, pid) ? 0 : pid;
}

static bool is_any(const struct dp_exec_watch *w)
{
	return w->what.tree && !w->what.npaths && !w->what.nnames;
}

/* If the files to watch are known, no other asks. */
static bool is_asked_for(const struct dp_exec_watch *w, const struct dp_exec_start *start)
{
	if (!w->what.nnames)
		return true;
	for (size_t i = 0; i < w->what.npaths; i++)
		if (dp_exec_is_file(start, w->what.path[i]))
			return true;
	return dp_exec_is_named(start, w->what.name, w->what.nnames);
}

/* Whoever opens a module neither to execute nor to load it is not asked about. */
static bool may_start(const struct dp_exec_watch *w, struct dp_exec_start *start)
{
	struct dp_proc_call call;
	if (!start->pid || !w->what.modules)
		return start->pid;
	dp_exec_await_call(start, CALL_NS, &call);
	start->loads = call.nr == SYS_openat || call.nr == SYS_open;
	return start->loads ? dp_loader_has(start->pid, call.pc) : call.nr == SYS_execve || call.nr == SYS_execveat;
}

static void tell(int event)
{
	const uint64_t one = 1;
	if (write(event, &one, sizeof(one)) < 0)
		return; /* it is readable anyway */
}

/* False: out of memory. */
static bool append(struct dp_exec_watch *w, const struct dp_exec_start *start)
{
	pthread_mutex_lock(&w->lock);
	if (w->n == w->capacity) {
		const size_t capacity = w->capacity ? 2 * w->capacity : 16;
		struct waiting *grown = realloc(w->queue, capacity * sizeof(*grown));
		w->queue = grown ? grown : w->queue;
		w->capacity = grown ? capacity : w->capacity;
	}
	const bool fits = w->n < w->capacity;
	if (fits)
		w->queue[w->n++] = (struct waiting){*start, dp_now_ns() + dp_exec_watch_wait_ns(w)};
	pthread_mutex_unlock(&w->lock);
	return fits;
}

/* An exec asks again for its interpreter and its loader. One that has been let go is not held, nor counted, a second time. */
static bool was_let_go(struct dp_exec_watch *w, const struct dp_exec_start *start)
{
	bool was = false;
	pthread_mutex_lock(&w->lock);
	for (unsigned i = 0; !start->loads && i < LATE && i < w->nlate && !was; i++) {
		const struct dp_exec_start *late = &w->late[i];
		const bool again = late->file.dev == start->file.dev && late->file.ino == start->file.ino;
		was = late->tid == start->tid && !again && !dp_exec_is_over(late);
	}
	pthread_mutex_unlock(&w->lock);
	return was;
}

static void take_question(struct dp_exec_watch *w, const struct fanotify_event_metadata *event)
{
	struct dp_exec_start start = {.pid = wanted(w, event->pid), .tid = event->pid, .fd = event->fd, .any = is_any(w)};
	if (event->fd < 0)
		return;
	w->open++;
	const bool asked = may_start(w, &start) && atomic_load(&w->holds) && is_asked_for(w, &start);
	if (asked)
		dp_exec_note(&start);
	if (asked && !was_let_go(w, &start) && append(w, &start))
		tell(w->ready);
	else
		answer(w, &start.fd);
}

static void read_questions(struct dp_exec_watch *w)
{
	union {
		struct fanotify_event_metadata first;
		char bytes[4096];
	} buf;
	const struct fanotify_event_metadata *event = &buf.first;
	const size_t most = dp_exec_descriptors_left(w->open, KEPT) * sizeof(*event);
	ssize_t n = read(w->group, &buf, most < sizeof(buf) ? most : sizeof(buf));
	for (; n > 0 && FAN_EVENT_OK(event, n); event = FAN_EVENT_NEXT(event, n))
		take_question(w, event);
}

/* --follow: programs that nobody was asked about run already. The news are read in any case: else the next poll() would not wait.
 */
static void take_unasked(struct dp_exec_watch *w)
{
	for (pid_t pid; w->what.tree && (pid = dp_exec_tree_take_unasked(w->what.tree));)
		if (is_any(w) && atomic_load(&w->holds) &&
		    append(w, &(struct dp_exec_start){.pid = pid, .tid = pid, .fd = -1, .late = true}))
			tell(w->ready);
}

/* Lets it go if it has waited too long. */
static void expire(struct dp_exec_watch *w, struct waiting *one, uint64_t now, uint64_t *next)
{
	if (one->start.fd < 0)
		return;
	if (one->until_ns <= now) {
		answer(w, &one->start.fd);
		one->start.late = true;
		if (!one->start.loads)
			w->late[w->nlate++ % LATE] = one->start;
	} else if (one->until_ns < *next) {
		*next = one->until_ns;
	}
}

/* Returns how long to sleep, in ms; -1: the thread is to end. */
static int expire_all(struct dp_exec_watch *w)
{
	const uint64_t now = dp_now_ns();
	uint64_t next = now + DP_EXEC_ALIVE_MS * UINT64_C(1000000);
	pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < w->n; i++)
		expire(w, &w->queue[i], now, &next);
	expire(w, &w->taken, now, &next);
	const bool over = w->over;
	pthread_mutex_unlock(&w->lock);
	return over ? -1 : (int)((next - now) / 1000000) + 1;
}

static void read_news(struct dp_exec_watch *w)
{
	int fd[64];
	const ssize_t n = read(w->news[0], fd, sizeof(fd));
	for (ssize_t i = 0; i < n / (ssize_t)sizeof(*fd); i++)
		close_question(w, fd[i]);
}

static void watch(struct dp_exec_watch *w, const int kept[KEPT])
{
	enum { GROUP, NEWS, DIRECTORIES, TREE, POLLED };
	struct pollfd p[POLLED];
	for (unsigned i = 0; i < POLLED; i++)
		p[i] = (struct pollfd){.fd = kept[i], .events = POLLIN};
	for (int ms; (ms = expire_all(w)) >= 0;) {
		dp_exec_guard_alive(w->guard);
		p[GROUP].fd = dp_exec_descriptors_left(w->open, KEPT) ? w->group : -1;
		const int n = poll(p, POLLED, ms);
		if (!n)
			continue;
		if (n < 0) /* with a limit of less than POLLED descriptors; reading does not block */
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		if (n < 0 || p[NEWS].revents)
			read_news(w);
		if (n < 0 || p[GROUP].revents)
			read_questions(w);
		if (n < 0 || p[DIRECTORIES].revents)
			dp_exec_files_renew(w->files);
		take_unasked(w);
	}
}

static void *run(void *data)
{
	struct dp_exec_watch *w = data;
	const int kept[KEPT] = {w->group, w->news[0], dp_exec_files_fd(w->files),
	                        w->what.tree ? dp_exec_tree_fd(w->what.tree) : -1, w->ready};
	w->why = dp_exec_descriptors_own(kept, KEPT) ? 0 : errno;
	sem_post(&w->begun);
	if (w->why)
		return NULL;
	watch(w, kept);
	for (unsigned i = 0; i < KEPT; i++)
		close_fd(kept[i]); /* now: the end of the thread may take a while */
	return NULL;
}

/* ---- the tool's side ------------------------------------------------------------------------------------------------------- */

/* A pipe has room for some 16,000 of them. */
static void tell_thread(const struct dp_exec_watch *w, int fd)
{
	if (write(w->news[1], &fd, sizeof(fd)) < 0)
		return; /* then it is not closed before the end */
}

void dp_exec_watch_hold(struct dp_exec_watch *w)
{
	atomic_store(&w->holds, true);
}

void dp_exec_watch_add(const struct dp_exec_watch *w, const char *path)
{
	dp_exec_files_add(w->files, path);
}

uint64_t dp_exec_watch_wait_ns(const struct dp_exec_watch *w)
{
	return w->what.wait_ns ? w->what.wait_ns : DP_EXEC_WAIT_NS;
}

int dp_exec_watch_fd(const struct dp_exec_watch *w)
{
	return w->ready;
}

bool dp_exec_watch_take(struct dp_exec_watch *w, uint64_t ns, struct dp_exec_start *ret)
{
	uint64_t told;
	pthread_mutex_lock(&w->lock);
	const bool any = w->n;
	if (any) {
		w->taken = w->queue[0];
		w->taken.until_ns = dp_now_ns() + ns;
		*ret = w->taken.start;
		memmove(w->queue, w->queue + 1, --w->n * sizeof(*w->queue));
	}
	if (!w->n && read(w->ready, &told, sizeof(told)) < 0)
		told = 0; /* it was not readable */
	pthread_mutex_unlock(&w->lock);
	if (any)
		tell_thread(w, -1);
	return any;
}

void dp_exec_watch_allow(struct dp_exec_watch *w, struct dp_exec_start *start)
{
	pthread_mutex_lock(&w->lock);
	if (w->taken.start.fd >= 0) {
		allow(w, w->taken.start.fd);
		tell_thread(w, w->taken.start.fd);
	}
	start->fd = w->taken.start.fd = -1;
	start->late = w->taken.start.late;
	pthread_mutex_unlock(&w->lock);
}

static struct dp_error *open_group(struct dp_exec_watch *w)
{
	w->group = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_TID | FAN_UNLIMITED_QUEUE,
	                         O_RDONLY | O_CLOEXEC | O_LARGEFILE);
	if (w->group >= 0)
		return NULL;
	if (errno == EPERM)
		return dp_error(
		        DP_TAG_PERMISSION,
		        "waiting for processes to come needs CAP_SYS_ADMIN (fanotify): run dynprobe as root; without it, name "
		        "processes that run already, with --pid NAME");
	return dp_error_sys(errno == ENOSYS || errno == EINVAL ? DP_TAG_PERMISSION : DP_TAG_SYS,
	                    "this kernel does not let dynprobe wait for processes to come (fanotify with "
	                    "CONFIG_FANOTIFY_ACCESS_PERMISSIONS, Linux 5.0); name processes that run already, with --pid NAME");
}

static struct dp_error *start_thread(struct dp_exec_watch *w)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	w->runs = !pthread_create(&w->thread, NULL, run, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	while (w->runs && sem_wait(&w->begun))
		; /* interrupted */
	if (w->runs && !w->why)
		return NULL;
	errno = w->why;
	return dp_error_sys(DP_TAG_SYS, "cannot start the thread that waits for processes to come");
}

static struct dp_error *no_guard(void)
{
	struct dp_error *err =
	        dp_error(DP_TAG_LIMIT, "the kernel gives dynprobe no timer (RLIMIT_SIGPENDING); without one, programs "
	                               "could not start while dynprobe is stopped");
	return dp_error_advise(err, "raise the limit (ulimit -i)");
}

static struct dp_error *create_steps(struct dp_exec_watch *w, const struct dp_exec_watched *what)
{
	w->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->ready < 0 || pipe2(w->news, O_CLOEXEC | O_NONBLOCK))
		return dp_error_sys(DP_TAG_SYS, "cannot make the descriptors of the thread that waits for processes to come");
	DP_TRY(open_group(w));
	w->guard = dp_exec_guard_create();
	if (!w->guard && !dp_watchdog_is_off)
		return no_guard();
	w->what = *what;
	atomic_init(&w->holds, !what->tree && !what->all && !what->modules);
	DP_TRY(dp_exec_files_create(w->group, what->path, what->npaths, what->modules, &w->files));
	if (what->all || (what->tree && (what->nnames || !what->npaths)))
		DP_TRY(dp_exec_files_mark_all(w->files));
	return start_thread(w);
}

struct dp_error *dp_exec_watch_create(const struct dp_exec_watched *what, struct dp_exec_watch **ret)
{
	struct dp_exec_watch *w = calloc(1, sizeof(*w));
	if (!w)
		return dp_error_nomem();
	w->group = w->ready = w->news[0] = w->news[1] = w->taken.start.fd = -1;
	sem_init(&w->begun, 0, 0);
	pthread_mutex_init(&w->lock, NULL);
	struct dp_error *err = create_steps(w, what);
	if (err)
		dp_exec_watch_destroy(w);
	else
		*ret = w;
	return err;
}

static void end_thread(struct dp_exec_watch *w)
{
	if (!w->runs)
		return;
	pthread_mutex_lock(&w->lock);
	w->over = true;
	pthread_mutex_unlock(&w->lock);
	tell_thread(w, -1);
	pthread_join(w->thread, NULL);
}

struct dp_exec_watch *dp_exec_watch_destroy(struct dp_exec_watch *w)
{
	if (!w)
		return NULL;
	end_thread(w);
	dp_exec_guard_destroy(w->guard);
	for (size_t i = 0; i < w->n; i++)
		allow(w, w->queue[i].start.fd);
	allow(w, w->taken.start.fd);
	close_fd(w->group); /* lets those go that were not read yet */
	close_fd(w->ready);
	close_fd(w->news[0]);
	close_fd(w->news[1]);
	dp_exec_files_destroy(w->files);
	pthread_mutex_destroy(&w->lock);
	sem_destroy(&w->begun);
	free(w->queue);
	free(w);
	return NULL;
}
