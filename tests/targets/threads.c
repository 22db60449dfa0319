/* SPDX-License-Identifier: MIT */
/* threads [N]: N threads (default 64), some spinning through foo(), the others asleep in system calls; none may see EINTR. */
#include "target.h"

#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static _Atomic long bad, interrupted, prepared; /* prepared: threads that have allocated what they need */

TARGET_PROBED unsigned foo(unsigned a, const char *s)
{
	while (*s)
		a = a * 31 + (unsigned char)*s++;
	return a;
}

static void call_once(unsigned i)
{
	bad += foo(i, "thread") != target_expected(i, "thread");
}

static void note(long r)
{
	if (r < 0 && errno == EINTR && !target_stop)
		interrupted++;
}

static void *spinning(void *arg)
{
	prepared++;
	/* Bit 31 distinguishes a spinner's calls from a sleeper's, for conditions. */
	for (unsigned i = 0; !target_stop; i++)
		call_once(i | 0x80000000u);
	return arg;
}

static void *napping(void *arg)
{
	prepared++;
	for (unsigned i = 0; !target_stop; i++) {
		struct timespec ts = {0, 3000000};
		note(nanosleep(&ts, NULL));
		call_once(i);
	}
	return arg;
}

static void *in_futex(void *arg)
{
	uint32_t word = 0;
	prepared++;
	for (unsigned i = 0; !target_stop; i++) {
		struct timespec ts = {0, 7000000};
		note(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0));
		call_once(i);
	}
	return arg;
}

static void *in_epoll(void *arg)
{
	int ep = epoll_create1(0);
	struct epoll_event ev;
	prepared++;
	for (unsigned i = 0; !target_stop; i++) {
		note(epoll_wait(ep, &ev, 1, i & 1 ? 11 : 200));
		call_once(i);
	}
	return arg;
}

static void *in_read(void *arg)
{
	int p[2];
	char c;
	int made = pipe(p);
	prepared++;
	if (made == 0)
		note(read(p[0], &c, 1)); /* never written to: still asleep at the end */
	return arg;
}

static void *in_poll(void *arg)
{
	prepared++;
	for (unsigned i = 0; !target_stop; i++) {
		note(poll(NULL, 0, 5));
		call_once(i);
	}
	return arg;
}

static void *in_accept(void *arg)
{
	int s = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	bool listens = bind(s, (struct sockaddr *)&a, sizeof a) == 0 && listen(s, 1) == 0;
	prepared++;
	if (listens)
		note(accept(s, NULL, NULL));
	return arg;
}

int main(int argc, char **argv)
{
	static void *(*const kinds[])(void *) = {spinning, napping, in_futex, in_epoll, in_read, in_poll, in_accept, napping};
	long n = target_number(argc, argv, 1, 64);
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (long i = 0; i < n; i++) {
		pthread_t t;
		/* Two spinners are enough to keep two processors busy. */
		pthread_create(&t, NULL, kinds[i < 2 ? 0 : 1 + i % 7], NULL);
	}
	while (prepared < n)
		target_sleep_us(1000);
	target_sleep_us(50000); /* by then most are asleep */
	target_ready();
	int sig;
	sigwait(&set, &sig);
	target_stop = 1;
	target_sleep_us(20000);
	printf("RESULT %s interrupted %ld wrong %ld\n", bad || interrupted ? "BAD" : "OK", (long)interrupted, (long)bad);
	fflush(stdout);
	_exit(bad || interrupted);
}
