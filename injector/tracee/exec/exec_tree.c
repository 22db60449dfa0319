/* SPDX-License-Identifier: MIT */
#include "injector/tracee/exec/exec_tree.h"

#include "injector/tracee/proc/proc.h"

#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define ROOM      (8 << 20) /* for news that were not read yet */
#define ANCESTORS 64u

enum { PIDS = 256 };
struct pids { /* the last ones */
	pid_t pid[PIDS];
	unsigned n;
};

struct dp_exec_tree {
	int news; /* the connector's socket, or -1 */
	pthread_mutex_t lock;
	bool lossy; /* some news were lost */
	pid_t *pid;
	size_t n, capacity;
	struct pids asked, unasked; /* since their last exec; by it */
};

/* ---- the set --------------------------------------------------------------------------------------------------------------- */

static bool holds(const struct dp_exec_tree *t, pid_t pid)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->pid[i] == pid)
			return true;
	return false;
}

static void add(struct dp_exec_tree *t, pid_t pid)
{
	if (holds(t, pid))
		return;
	if (t->n == t->capacity) {
		const size_t capacity = t->capacity ? 2 * t->capacity : 64;
		pid_t *grown = realloc(t->pid, capacity * sizeof(*grown));
		if (!grown)
			return;
		t->pid = grown;
		t->capacity = capacity;
	}
	t->pid[t->n++] = pid;
}

static bool forget(struct pids *p, pid_t pid)
{
	for (unsigned i = 0; i < p->n; i++)
		if (p->pid[i] == pid) {
			memmove(p->pid + i, p->pid + i + 1, (--p->n - i) * sizeof(*p->pid));
			return true;
		}
	return false;
}

static void note(struct pids *p, pid_t pid)
{
	forget(p, pid);
	if (p->n == PIDS)
		forget(p, p->pid[0]);
	p->pid[p->n++] = pid;
}

static void drop(struct dp_exec_tree *t, pid_t pid)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->pid[i] == pid)
			t->pid[i--] = t->pid[--t->n];
	forget(&t->asked, pid);
	forget(&t->unasked, pid);
}

static bool runs(pid_t pid, pid_t *parent)
{
	struct dp_task_stat stat;
	if (!dp_proc_stat(pid, 0, &stat))
		return false;
	*parent = stat.ppid;
	return stat.state != 'Z' && stat.state != 'X';
}

static void drop_dead(struct dp_exec_tree *t)
{
	pid_t parent;
	for (size_t i = 0; i < t->n; i++)
		if (!runs(t->pid[i], &parent))
			t->pid[i--] = t->pid[--t->n];
}

static bool descends(const struct dp_exec_tree *t, pid_t pid)
{
	for (unsigned depth = 0; pid > 1 && depth < ANCESTORS; depth++)
		if (holds(t, pid))
			return true;
		else if (!runs(pid, &pid))
			return false;
	return false;
}

/* ---- news ------------------------------------------------------------------------------------------------------------------ */

static void take(struct dp_exec_tree *t, const struct proc_event *e)
{
	if (e->what == PROC_EVENT_FORK && holds(t, e->event_data.fork.parent_tgid))
		add(t, e->event_data.fork.child_tgid); /* itself, if it is a thread */
	else if (e->what == PROC_EVENT_EXIT && e->event_data.exit.process_pid == e->event_data.exit.process_tgid)
		drop(t, e->event_data.exit.process_tgid);
	else if (e->what == PROC_EVENT_EXEC && holds(t, e->event_data.exec.process_tgid) &&
	         !forget(&t->asked, e->event_data.exec.process_tgid) && !t->lossy)
		note(&t->unasked, e->event_data.exec.process_tgid);
}

static void read_news(struct dp_exec_tree *t)
{
	union {
		struct nlmsghdr head;
		char bytes[4096];
	} buf;
	for (ssize_t n; t->news >= 0 && ((n = recv(t->news, &buf, sizeof(buf), MSG_DONTWAIT)) > 0 || errno == ENOBUFS);) {
		t->lossy |= n <= 0;
		const struct nlmsghdr *h = &buf.head;
		for (size_t left = n > 0 ? (size_t)n : 0; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			const struct cn_msg *m = NLMSG_DATA(h);
			struct proc_event e;
			if (h->nlmsg_type != NLMSG_DONE || m->len < sizeof(e) - sizeof(e.event_data))
				continue;
			memset(&e, 0, sizeof(e));
			memcpy(&e, m->data, m->len < sizeof(e) ? m->len : sizeof(e));
			take(t, &e);
		}
	}
}

static bool subscribe(int fd)
{
	const struct sockaddr_nl own = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
	enum proc_cn_mcast_op op = PROC_CN_MCAST_LISTEN;
	struct cn_msg msg = {.id = {CN_IDX_PROC, CN_VAL_PROC}, .len = sizeof(op)};
	struct nlmsghdr head = {.nlmsg_len = NLMSG_LENGTH(sizeof(msg) + sizeof(op)), .nlmsg_type = NLMSG_DONE};
	const struct iovec parts[] = {{&head, NLMSG_HDRLEN}, {&msg, sizeof(msg)}, {&op, sizeof(op)}};
	const int room = ROOM;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	return !bind(fd, (const struct sockaddr *)&own, sizeof(own)) && writev(fd, parts, 3) == (ssize_t)head.nlmsg_len;
}

/* The kernel confirms a subscription; where it does not speak (another pid namespace), there is no news. */
static bool confirmed(int fd)
{
	const struct timeval most = {.tv_usec = 100000};
	char bytes[4096];
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	return recv(fd, bytes, sizeof(bytes), 0) > 0;
}

static int open_news(void)
{
	const int fd = socket(PF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_CONNECTOR);
	if (fd >= 0 && subscribe(fd) && confirmed(fd))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* ---- all together ---------------------------------------------------------------------------------------------------------- */

struct dp_exec_tree *dp_exec_tree_create(void)
{
	struct dp_exec_tree *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	pthread_mutex_init(&t->lock, NULL);
	t->news = open_news();
	return t;
}

struct dp_exec_tree *dp_exec_tree_destroy(struct dp_exec_tree *t)
{
	if (!t)
		return NULL;
	if (t->news >= 0)
		close(t->news);
	pthread_mutex_destroy(&t->lock);
	free(t->pid);
	free(t);
	return NULL;
}

void dp_exec_tree_add(struct dp_exec_tree *t, pid_t pid)
{
	pthread_mutex_lock(&t->lock);
	add(t, pid);
	pthread_mutex_unlock(&t->lock);
}

int dp_exec_tree_fd(const struct dp_exec_tree *t)
{
	return t->news;
}

bool dp_exec_tree_has(struct dp_exec_tree *t, pid_t pid)
{
	pthread_mutex_lock(&t->lock);
	read_news(t);
	const bool guess = t->news < 0 || t->lossy, found = guess ? descends(t, pid) : holds(t, pid);
	if (found)
		add(t, pid);
	pthread_mutex_unlock(&t->lock);
	return found;
}

void dp_exec_tree_note_asked(struct dp_exec_tree *t, pid_t pid)
{
	pthread_mutex_lock(&t->lock);
	read_news(t); /* of its earlier execs */
	if (t->news >= 0 && holds(t, pid))
		note(&t->asked, pid);
	pthread_mutex_unlock(&t->lock);
}

pid_t dp_exec_tree_take_unasked(struct dp_exec_tree *t)
{
	pthread_mutex_lock(&t->lock);
	read_news(t);
	const pid_t pid = t->unasked.n ? t->unasked.pid[0] : 0;
	forget(&t->unasked, pid);
	pthread_mutex_unlock(&t->lock);
	return pid;
}

bool dp_exec_tree_lives(struct dp_exec_tree *t)
{
	pthread_mutex_lock(&t->lock);
	read_news(t);
	if (t->news < 0 || t->lossy)
		drop_dead(t);
	const bool lives = t->n;
	pthread_mutex_unlock(&t->lock);
	return lives;
}
