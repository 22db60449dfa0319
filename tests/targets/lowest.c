/* SPDX-License-Identifier: MIT */
/*
 * lowest: closes descriptor 0 and opens a file, again and again, and calls foo(). open(2) returns the lowest free number, so it
 * must be 0 each time. One thread.
 */
#include "target_foo.h"

#include <fcntl.h>

int main(void)
{
	long other = 0, wrong = 0;

	target_stop_on_term();
	target_ready();
	for (unsigned i = 0; !target_stop; i++) {
		close(0);
		wrong += foo(i, "lowest") != target_expected(i, "lowest");
		other += open("/dev/null", O_RDONLY) != 0;
	}
	printf("RESULT %s other %ld wrong %ld\n", other || wrong ? "BAD" : "OK", other, wrong);
	return other || wrong;
}
