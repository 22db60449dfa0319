/* SPDX-License-Identifier: MIT */
/*
 * A small multithreaded server with its own clients, to be probed. Clients send numbered requests over socket pairs; a pool of
 * workers parses, computes and answers them. Each answer is checked. Runs until SIGTERM or SIGINT.
 *
 *   server [CLIENTS [REQUESTS_PER_SECOND]]
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WORKERS     4
#define CLIENTS_MAX 64

struct request {
	uint32_t id;
	uint32_t client;
	int64_t operand;
	char verb[16];
};

static _Atomic uint64_t answered, wrong;
static _Atomic int stopping;
static int doorbell; /* epoll: connections with a request to read */

const char server_motto[] = "answers given while you wait"; /* for string:NAME:ADDRESS */

/* noipa: the compiler must not inline or specialise the functions that the demo probes. In a larger program it would not. */
#if defined(__clang__)
#define OPAQUE __attribute__((noinline))
#else
#define OPAQUE __attribute__((noipa))
#endif

OPAQUE uint32_t checksum(const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	uint32_t sum = 2166136261u;
	for (size_t i = 0; i < n; i++)
		sum = (sum ^ p[i]) * 16777619u;
	return sum;
}

OPAQUE int parse(const struct request *request)
{
	static const char *const verbs[] = {"square", "negate", "checksum"};
	for (int i = 0; i < 3; i++)
		if (strcmp(request->verb, verbs[i]) == 0)
			return i;
	return -1;
}

OPAQUE int64_t compute(int verb, int64_t operand)
{
	switch (verb) {
	case 0:
		return operand * operand;
	case 1:
		return -operand;
	default:
		return checksum(&operand, sizeof operand);
	}
}

OPAQUE int64_t handle_request(const struct request *request)
{
	int verb = parse(request);
	return verb < 0 ? 0 : compute(verb, request->operand);
}

static void *worker(void *arg)
{
	struct epoll_event event;
	struct request request;

	while (!stopping) {
		if (epoll_wait(doorbell, &event, 1, 200) != 1)
			continue;
		if (read(event.data.fd, &request, sizeof request) != (ssize_t)sizeof request)
			continue;
		int64_t answer = handle_request(&request);
		if (write(event.data.fd, &answer, sizeof answer) != (ssize_t)sizeof answer)
			break;
		/* One-shot: from now on another worker may get this connection's next request. */
		struct epoll_event again = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = event.data.fd};
		epoll_ctl(doorbell, EPOLL_CTL_MOD, event.data.fd, &again);
	}
	return arg;
}

struct client {
	uint32_t number;
	int fd;
	long pause_ns;
};

static int64_t expected(const struct request *r)
{
	return r->verb[0] == 's'   ? r->operand * r->operand
	       : r->verb[0] == 'n' ? -r->operand
	                           : checksum(&r->operand, sizeof r->operand);
}

static void *client(void *arg)
{
	static const char *const verbs[] = {"square", "negate", "checksum"};
	const struct client *me = arg;
	struct timespec pause = {me->pause_ns / 1000000000, me->pause_ns % 1000000000};

	for (uint32_t id = 0; !stopping; id++) {
		struct request r = {.id = id, .client = me->number, .operand = id * 7 + me->number};
		int64_t answer;
		strcpy(r.verb, verbs[id % 3]);
		if (write(me->fd, &r, sizeof r) != (ssize_t)sizeof r ||
		    read(me->fd, &answer, sizeof answer) != (ssize_t)sizeof answer)
			break;
		answered++;
		wrong += answer != expected(&r);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void connect_client(struct client *c, uint32_t number, long pause_ns)
{
	int pair[2];
	pthread_t thread;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
		exit(1);
	*c = (struct client){number, pair[0], pause_ns};
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = pair[1]};
	epoll_ctl(doorbell, EPOLL_CTL_ADD, pair[1], &event);
	pthread_create(&thread, NULL, client, c);
}

int main(int argc, char **argv)
{
	static struct client clients[CLIENTS_MAX];
	int n = argc > 1 ? atoi(argv[1]) : 3, rate = argc > 2 ? atoi(argv[2]) : 10;
	pthread_t thread;
	sigset_t set;
	int sig;

	if (n < 1 || n > CLIENTS_MAX || rate < 1) {
		fprintf(stderr, "usage: server [CLIENTS (1-%d) [REQUESTS_PER_SECOND]]\n", CLIENTS_MAX);
		return 2;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	doorbell = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; i < WORKERS; i++)
		pthread_create(&thread, NULL, worker, NULL);
	for (int i = 0; i < n; i++)
		connect_client(&clients[i], (uint32_t)i, 1000000000L * n / rate);
	printf("READY %d: %s\n", (int)getpid(), server_motto);
	fflush(stdout);
	sigwait(&set, &sig);
	stopping = 1;
	printf("RESULT %s: %llu requests answered, %llu wrong\n", wrong ? "BAD" : "OK", (unsigned long long)answered,
	       (unsigned long long)wrong);
	return wrong != 0;
}
