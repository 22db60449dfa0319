/* SPDX-License-Identifier: MIT */
/*
 * For test_all.py, compiled three times. With -DLIBRARY: the library. Else a program that calls the library's stride(), and says
 * how often: "CALLED PID N"; with -DLOADS=PATH one that loads it first, at SIGUSR1.
 *
 * mapper N [wait] [fork] [threads]: calls it N times; then once more for each SIGUSR1 until SIGTERM (wait); lets a fork child do
 * the same (fork); has another thread (threads); maps the library's file first, as data (reads).
 */
#define STRING(x) #x
#define TEXT(x)   STRING(x)

#ifdef LIBRARY
#include <stdlib.h>

__attribute__((noipa, visibility("default"))) int stride(int a)
{
	return a * 3 + 1;
}

__attribute__((constructor)) static void begin(void)
{
	if (getenv("STRIDE_AT_ONCE"))
		stride(0);
}
#else
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t more, stop;

static void on_signal(int sig)
{
	if (sig == SIGTERM)
		stop = 1;
	else
		more++;
}

static void *idle(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static int has(int argc, char **argv, const char *word)
{
	for (int i = 2; i < argc; i++)
		if (!strcmp(argv[i], word))
			return 1;
	return 0;
}

static void ready(void)
{
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
}

#ifdef LOADS
static int reads(void)
{
	const int fd = open(TEXT(LOADS), O_RDONLY);
	return fd >= 0 && mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED && !close(fd);
}

typedef int fn(int);

static fn *find(void)
{
	ready();
	while (!more && !stop)
		usleep(1000);
	more = 0;
	void *library = dlopen(TEXT(LOADS), RTLD_NOW);
	return library ? (fn *)dlsym(library, "stride") : NULL;
}
#else
int stride(int a);

static int (*find(void))(int)
{
	return stride;
}
#endif

static int work(int argc, char **argv)
{
	const int n = atoi(argv[1]), waits = has(argc, argv, "wait");
	int calls = 0, (*call)(int) = find();
	if (!call)
		return 2;
	for (; calls < n; calls++)
		if (call(calls) != calls * 3 + 1)
			return 1;
	if (waits)
		ready();
	while (waits && !stop) {
		for (; calls < n + more; calls++)
			call(calls);
		usleep(1000);
	}
	printf("CALLED %d %d\n", (int)getpid(), calls + (getenv("STRIDE_AT_ONCE") != NULL));
	fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int status = 0;
	signal(SIGUSR1, on_signal);
	signal(SIGTERM, on_signal);
#ifdef LOADS
	if (has(argc, argv, "reads") && !reads())
		return 4;
#endif
	if (argc < 2 || (has(argc, argv, "threads") && pthread_create(&thread, NULL, idle, NULL)))
		return 3;
	if (has(argc, argv, "fork")) {
		const int own = work(argc, argv);
		const pid_t child = fork();
		if (child == 0)
			_exit(work(2, argv));
		return own || waitpid(child, &status, 0) != child || status;
	}
	return work(argc, argv);
}
#endif
