/* SPDX-License-Identifier: MIT */
/*
 * A process with the LTTng sink in it, which executes the lines of its standard input and answers each with one line. Commands:
 *   kinds     registers "kinds", with a field of every type
 *   one NAME  registers an event NAME with one field "value" (uint64_t); commands use the newest registered event
 *   wait      waits until a session enables the newest event
 *   hit N     N hits of the newest event, values counting from 0
 *   big N     N hits of 1 KiB (only after `bulk`, which registers such an event)
 *   closeall  closes every descriptor above 2
 *   fork      a fork child hits, and calls exit()
 *   vfork     a vfork child hits
 *   exit      returns from main
 */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct host_event probe;
static char kind;
static volatile int sigchlds, forks;

static void count_sigchld(int sig)
{
	(void)sig;
	sigchlds++;
}

static void count_fork(void)
{
	forks++;
}

static void registered(char is, uint64_t site)
{
	const struct dp_sink_event *e = host_serve();
	kind = is;
	if (!e->event) {
		printf("refused %s\n", e->error);
		return;
	}
	host_probe(&probe, e, site);
	printf("registered\n");
}

static void kinds(void)
{
	host_begin();
	host_add("kinds", true);
	host_field("i8", DP_SINK_INT, 1, false);
	host_field("i16", DP_SINK_INT, 2, false);
	host_field("i32", DP_SINK_INT, 4, false);
	host_field("i64", DP_SINK_INT, 8, false);
	host_field("u8", DP_SINK_UINT, 1, false);
	host_field("u16", DP_SINK_UINT, 2, true);
	host_field("u32", DP_SINK_UINT, 4, false);
	host_field("u64", DP_SINK_UINT, 8, true);
	host_field("f", DP_SINK_FLOAT, 4, false);
	host_field("d", DP_SINK_FLOAT, 8, false);
	host_field("s", DP_SINK_STRING, 64, false);
	host_field("b", DP_SINK_BYTES, 5, false);
	host_field("backtrace", DP_SINK_BACKTRACE, 0, false);
	host_field("last", DP_SINK_UINT, 4, false);
	registered('k', 0x1234);
}

#define PUT(type, value)                                                                                                         \
	do {                                                                                                                     \
		const type put_ = (type)(value);                                                                                 \
		memcpy(p, &put_, sizeof(put_));                                                                                  \
		p += sizeof(put_);                                                                                               \
	} while (0)

static size_t kinds_payload(uint8_t *to, unsigned n)
{
	uint8_t *p = to;
	PUT(uint64_t, n & 1 ? 0x10 : 0);
	PUT(int8_t, -(int)n);
	PUT(int16_t, -1000 - (int)n);
	PUT(int32_t, -100000 - (int)n);
	PUT(int64_t, INT64_C(-10000000000) - n);
	PUT(uint8_t, 200 + n);
	PUT(uint16_t, 60000 + n);
	PUT(uint32_t, 4000000000 + n);
	PUT(uint64_t, UINT64_C(0xfedcba9876543210) + n);
	PUT(float, 1.5f + (float)n);
	PUT(double, -2.25 - n);
	p += sprintf((char *)p, "text %u", n) + 1;
	for (unsigned i = 0; i < 5; i++)
		PUT(uint8_t, n + i);
	PUT(uint8_t, n % 4);
	for (unsigned i = 0; i < n % 4; i++)
		PUT(uint64_t, 0x400000 + i);
	PUT(uint32_t, 7 * n);
	return (size_t)(p - to);
}

static void one(const char *name)
{
	host_begin();
	host_add(name, false);
	host_field("value", DP_SINK_UINT, 8, false);
	registered('o', 0x5678);
}

static void bulk(void)
{
	host_begin();
	host_add("bulk", false);
	host_field("text", DP_SINK_STRING, 1024, false);
	registered('b', 0x9abc);
}

static bool hit_once(unsigned i)
{
	static uint8_t payload[2048];
	size_t size = sizeof(uint64_t);
	if (kind == 'k')
		size = kinds_payload(payload, i);
	else if (kind == 'b')
		memset(payload, 'a' + (int)(i % 26), (size = 1024) - 1);
	else
		memcpy(payload, &(uint64_t){i}, size);
	return i % 2 ? host_hit_capture(&probe, payload, size) : host_hit(&probe, payload, size);
}

static bool hit_value(uint64_t value)
{
	return host_hit(&probe, &value, sizeof(value));
}

static void hit(unsigned n)
{
	unsigned done = 0;
	for (unsigned i = 0; i < n; i++)
		done += hit_once(i);
	printf("hit %u\n", done);
}

static void wait_gate(void)
{
	for (int i = 0; i < 10000 && !*probe.gate; i++)
		usleep(1000);
	printf("wanted %u\n", *probe.gate);
}

static void pace(unsigned n)
{
	unsigned done = 0;
	for (unsigned i = 0; i < n; i++) {
		done += hit_once(i);
		if (i % 50 == 49)
			usleep(2000);
	}
	printf("hit %u\n", done);
}

static void park(void)
{
	host_begin();
	host_release(probe.desc.event);
	host_serve();
	printf("parked\n");
}

static void children(void)
{
	printf("children %d sigchld %d forks %d\n", waitpid(-1, NULL, WNOHANG) >= 0, sigchlds, forks);
}

static void close_all(void)
{
	int closed = 0;
	for (int fd = 3; fd < 4096; fd++)
		closed += close(fd) == 0;
	printf("closed %d\n", closed);
}

static void fork_child(void)
{
	fflush(stdout);
	const pid_t child = fork();
	if (child == 0) {
		host_agent.live = 0; /* the effect of MADV_WIPEONFORK */
		const bool ok = hit_once(999);
		exit(ok || probe.lost.forked != 1); /* runs the destructors */
	}
	int status = -1;
	waitpid(child, &status, 0);
	printf("child %d\n", status);
}

static void vfork_child(void)
{
	const pid_t child = vfork();
	if (child == 0) {
		hit_once(1000);
		_exit(0);
	}
	int status = -1;
	waitpid(child, &status, 0);
	printf("child %d\n", status);
}

/* ---- storm ------------------------------------------------------------------------------------------------------- */

static volatile bool storming;
static unsigned storm_hits[4];

static void storm_signal(int sig)
{
	const int saved = errno;
	(void)sig;
	hit_value(1);
	errno = saved;
}

static void *short_lived(void *unused)
{
	host_prime();
	for (int i = 0; i < 10; i++)
		hit_value(2);
	return unused;
}

static void *storm_thread(void *index)
{
	unsigned *hits = &storm_hits[(uintptr_t)index];
	host_prime();
	while (storming) {
		for (int i = 0; i < 10; i++)
			*hits += hit_value(3);
		pthread_t child;
		if (pthread_create(&child, NULL, short_lived, NULL) == 0)
			pthread_join(child, NULL);
		usleep(2000);
	}
	return NULL;
}

static bool is_called(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	return poll(&input, 1, 0) > 0;
}

/* Threads hit, other threads start and end, and a signal handler hits in between; until the next command comes. */
static void storm(unsigned milliseconds)
{
	pthread_t threads[4];
	const struct itimerval every_ms = {{0, 1000}, {0, 1000}}, never = {0};
	signal(SIGALRM, storm_signal);
	storming = true;
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, storm_thread, (void *)i);
	setitimer(ITIMER_REAL, &every_ms, NULL);
	for (unsigned i = 0; i < milliseconds && !is_called(); i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	storming = false;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	setitimer(ITIMER_REAL, &never, NULL);
	printf("hit %u\n", storm_hits[0] + storm_hits[1] + storm_hits[2] + storm_hits[3]);
}

static void say_lost(void)
{
	printf("lost nested %lu unprimed %lu no_stack %lu forked %lu\n", probe.lost.nested, probe.lost.unprimed,
	       probe.lost.no_stack, probe.lost.forked);
}

static void leave(void)
{
	exit(0);
}

static const struct {
	const char *name;
	void (*plain)(void);
	void (*counted)(unsigned n);
	void (*named)(const char *name);
} commands[] = {
        {"kinds", .plain = kinds},        {"bulk", .plain = bulk},         {"wait", .plain = wait_gate},
        {"closeall", .plain = close_all}, {"fork", .plain = fork_child},   {"vfork", .plain = vfork_child},
        {"park", .plain = park},          {"children", .plain = children}, {"lost", .plain = say_lost},
        {"exit", .plain = leave},         {"hit", .counted = hit},         {"pace", .counted = pace},
        {"storm", .counted = storm},      {"one", .named = one},
};

static bool obey(const char *word, const char *argument)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].name, word) != 0)
			continue;
		if (commands[i].plain)
			commands[i].plain();
		else if (commands[i].counted)
			commands[i].counted((unsigned)atoi(argument));
		else
			commands[i].named(argument);
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	char line[512], word[64], argument[256];
	signal(SIGCHLD, count_sigchld);
	pthread_atfork(count_fork, NULL, NULL);
	host_load(argc > 1 ? argv[1] : DP_TEST_SINK_SO);
	host_prime();
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("READY\n");
	while (fgets(line, sizeof(line), stdin)) {
		argument[0] = 0;
		if (sscanf(line, "%63s %255s", word, argument) < 1 || !obey(word, argument))
			printf("what? %s", line);
	}
	return 0;
}
