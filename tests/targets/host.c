/* SPDX-License-Identifier: MIT */
/*
 * A program that notices what LTTng as a guest does to it. Its main thread calls foo() every millisecond, and executes commands,
 * lines of standard input, each of which gets one line as an answer:
 *
 *   files DIR N       opens DIR/0 to DIR/N-1 and leaves a line in the buffer of each, which exit() writes
 *   forks N           N children call exit(); prints how many failed or hung
 *   close WAY         closes all descriptors above 2: loop, closefrom, range, dup2
 *   seen              prints unexpected SIGCHLD handlers, fork handlers and children
 *   setuid            becomes nobody in all threads (a second thread sleeps)
 *   libraries DIR N   loads DIR/tls0.so to tls(N-1).so, uses them, unloads every second one
 *   hit N             N calls of foo(), and of malloc() and free()
 *   exit              calls exit(0)
 */
#include "target.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_MS 5000

static volatile int sigchlds, atforks;

__attribute__((noinline)) int foo(int n)
{
	__asm__ volatile("" : "+r"(n) : : "memory");
	return n + 1;
}

static void on_child(int sig)
{
	(void)sig;
	sigchlds++;
}

static void before_fork(void)
{
	atforks++;
}

static void *sleeper(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void files(const char *dir, int n)
{
	char path[512];
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		FILE *f = fopen(path, "w");
		if (!f || fprintf(f, "line of %d\n", i) < 0)
			exit(3);
	}
	printf("files %d\n", n);
}

/* -1: it hung. */
static int end_of(pid_t child)
{
	int status;
	for (int ms = 0; ms < CHILD_MS; ms++) {
		if (waitpid(child, &status, WNOHANG) == child)
			return status;
		usleep(1000);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return -1;
}

static void forks(int n)
{
	int failed = 0, hung = 0;
	fflush(stdout);
	for (int i = 0; i < n; i++) {
		const pid_t child = fork();
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			foo(i);
			exit(0); /* with all destructors */
		}
		const int status = end_of(child);
		hung += status == -1;
		failed += status > 0;
		foo(i);
	}
	printf("forks %d failed %d hung %d\n", n, failed, hung);
}

static void close_all(const char *way)
{
	if (strcmp(way, "loop") == 0)
		for (int fd = 3; fd < 4096; fd++)
			close(fd);
	else if (strcmp(way, "closefrom") == 0)
		closefrom(3);
	else if (strcmp(way, "range") == 0)
		close_range(3, ~0u, 0);
	else
		for (int fd = 3; fd < 1024; fd++)
			dup2(0, fd);
	printf("closed\n");
}

static void seen(void)
{
	int status;
	const pid_t child = waitpid(-1, &status, WNOHANG | __WALL);
	printf("seen %d %d %d\n", sigchlds, atforks, child > 0);
}

static void libraries(const char *dir, int n)
{
	static void *handle[64];
	char path[512];
	for (int i = 0; i < n && i < 64; i++) {
		snprintf(path, sizeof(path), "%s/tls%d.so", dir, i);
		handle[i] = dlopen(path, RTLD_NOW);
		int *(*get)(void) = handle[i] ? (int *(*)(void))dlsym(handle[i], "get") : NULL;
		if (!get) {
			printf("no %s\n", path);
			return;
		}
		*get() = i;
	}
	for (int i = 0; i < n && i < 64; i += 2)
		dlclose(handle[i]);
	printf("libraries %d\n", n);
}

static void hit(int n)
{
	for (int i = 0; i < n; i++) {
		char *volatile p = malloc(32);
		free(p);
		foo(i);
	}
	printf("hit %d\n", n);
}

static void obey(const char *line)
{
	char word[400];
	int n;
	if (sscanf(line, "files %399s %d", word, &n) == 2)
		files(word, n);
	else if (sscanf(line, "forks %d", &n) == 1)
		forks(n);
	else if (sscanf(line, "close %399s", word) == 1)
		close_all(word);
	else if (strncmp(line, "seen", 4) == 0)
		seen();
	else if (strncmp(line, "setuid", 6) == 0)
		printf("setuid %d\n", setresuid(65534, 65534, 65534));
	else if (sscanf(line, "libraries %399s %d", word, &n) == 2)
		libraries(word, n);
	else if (sscanf(line, "hit %d", &n) == 1)
		hit(n);
	else
		exit(strncmp(line, "exit", 4) != 0);
}

int main(void)
{
	char line[512];
	pthread_t thread;
	struct pollfd in = {.fd = 0, .events = POLLIN};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, on_child);
	pthread_atfork(before_fork, NULL, NULL);
	pthread_create(&thread, NULL, sleeper, NULL);
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("READY\n");
	for (int i = 0;; i++) {
		if (poll(&in, 1, 1) <= 0) {
			foo(i);
			continue;
		}
		if (!fgets(line, sizeof(line), stdin))
			return 1;
		obey(line);
	}
}
