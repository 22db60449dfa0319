/* SPDX-License-Identifier: MIT */
/*
 * stops: main -> first -> second -> third in a loop, with every kind of frame: pushed registers, a frame pointer and a changing
 * stack size, no frame. For debuggers that step through it: few instructions, no system calls. Until SIGTERM.
 */
#include "target.h"

#include <alloca.h>

TARGET_PROBED unsigned third(unsigned a)
{
	return a * 3 + 1;
}

static unsigned (*volatile through)(unsigned) = third;

TARGET_PROBED unsigned second(unsigned a)
{
	volatile unsigned char *room = alloca(16 + (a & 7));
	room[a & 7] = (unsigned char)a;
	return through(a) + third(a + room[a & 7] - (a & 0xff));
}

TARGET_PROBED unsigned first(unsigned a, unsigned b)
{
	const unsigned n = second(a);
	return n + second(b) + a;
}

int main(void)
{
	long bad = 0;

	target_stop_on_term();
	target_ready();
	for (unsigned i = 0; !target_stop; i++)
		bad += first(i, i + 1) != 2 * (i * 3 + 1) + 2 * ((i + 1) * 3 + 1) + i;
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
