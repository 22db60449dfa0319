/* SPDX-License-Identifier: MIT */
/*
 * bookings [steady]: a service for docs/cookbook-services.md. Four workers, each of which runs `invoice` for every hundredth booking,
 * and is replaced after the thousandth; steady ones do neither. On a busy machine that could take seconds, and nobody would be
 * replaced while a command of the page runs: a worker is replaced after one second at the latest, with an invoice for the rest.
 */
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static char invoice[4096];
static volatile long sold;
static int most = 1000; /* 0: no end */

__attribute__((noinline)) int book(int seats, const char *hall)
{
	const struct timespec pause = {0, seats == 7 ? 4000000 : 300000};
	nanosleep(&pause, NULL);
	sold += seats;
	return seats > 6 ? -1 : (int)strlen(hall);
}

static void send_invoice(int number)
{
	char text[16];
	char *argv[] = {invoice, text, NULL};
	pid_t pid;
	snprintf(text, sizeof(text), "%d", number);
	if (!posix_spawn(&pid, invoice, NULL, NULL, argv, environ))
		waitpid(pid, NULL, 0);
}

static long now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void work(void)
{
	const long end = now_ms() + 1000;
	bool last = false;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 1; !last; i++) {
		book(i % 7 + 1, i % 2 ? "north" : "south");
		last = most && (i == most || now_ms() >= end);
		if (last || (most && i % 100 == 0))
			send_invoice((i + 99) / 100 * 100);
	}
	_exit(0);
}

static void start(void)
{
	if (!fork())
		work();
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "steady"))
		most = 0;
	const ssize_t n = readlink("/proc/self/exe", invoice, sizeof(invoice) - sizeof("invoice"));
	invoice[n < 0 ? 0 : n] = 0;
	strcpy(strrchr(invoice, '/') + 1, "invoice");
	for (int i = 0; i < 4; i++)
		start();
	puts("READY");
	fflush(stdout);
	for (int status; wait(&status) > 0 && !status;)
		start();
	return 1;
}
