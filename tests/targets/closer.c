/* SPDX-License-Identifier: MIT */
/* closer: on SIGUSR1 closes every descriptor above 2, then opens its own files with these numbers and checks that they stay. */
#include "target.h"

#include <fcntl.h>
#include <sys/stat.h>

static volatile sig_atomic_t close_now;

TARGET_PROBED unsigned foo(unsigned a)
{
	return a * 3 + 1;
}

static void on_usr1(int sig)
{
	(void)sig;
	close_now = 1;
}

static bool is_null(int fd)
{
	struct stat a, b;
	return fstat(fd, &a) == 0 && stat("/dev/null", &b) == 0 && a.st_rdev == b.st_rdev;
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_usr1, .sa_flags = SA_RESTART};
	long bad = 0;
	bool closed = false;

	sigaction(SIGUSR1, &action, NULL);
	target_stop_on_term();
	target_ready();
	for (unsigned i = 0; !target_stop; i++) {
		bad += foo(i) != i * 3 + 1;
		target_sleep_us(200);
		if (close_now && !closed) {
			close_range(3, ~0u, 0);
			int null = open("/dev/null", O_RDWR);
			for (int fd = 3; fd < 200; fd++)
				bad += fd != null && dup2(null, fd) != fd;
			closed = true;
			puts("CLOSED");
			fflush(stdout);
		}
	}
	for (int fd = 3; closed && fd < 200; fd++)
		bad += !is_null(fd);
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
