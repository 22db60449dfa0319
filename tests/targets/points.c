/* SPDX-License-Identifier: MIT */
/* points [ROUNDS [US]]: calls every function of points_asm.S with arguments 0 to 15 and checks what comes back. */
#include "target.h"

#include <stdlib.h>
#include <string.h>

typedef int point_fn(long);
point_fn do_nothing2, two_returns, tail_direct, tail_memory, tail_register, tail_conditional, by_table, with_cold, anywhere, skips_lock,
        endless, leaves_at_once;
void never_returns(long);

static long wrong(long i)
{
	long bad = 0;
	bad += do_nothing2(i) != i;
	bad += two_returns(i) != (i & 1 ? i - 16 : i + 16);
	bad += tail_direct(i) != i + 1;
	bad += tail_memory(i) != i + 2;
	bad += tail_register(i) != i + 3;
	bad += tail_conditional(i) != (i & 1 ? i + 32 : i);
	bad += by_table(i) != 40 + (i & 3);
	bad += with_cold(i) != (i & 7 ? i + 1 : i & 8 ? 50 : i + 1);
	bad += anywhere(i) != 70;
	bad += endless(i) != 80;
	bad += leaves_at_once(i) != i + 90;
	skips_lock(i);
	return bad;
}

int main(int argc, char **argv)
{
	long rounds = target_number(argc, argv, 1, 0), us = target_number(argc, argv, 2, 1000), bad = 0, done = 0;
	target_stop_on_term();
	if (argc > 3 && !strcmp(argv[3], "never"))
		never_returns(0);
	target_ready();
	for (; !target_stop && (rounds == 0 || done < rounds); done++) {
		for (long i = 0; i < 16; i++)
			bad += wrong(i);
		if (us)
			target_sleep_us(us);
	}
	printf("rounds %ld\nRESULT %s\n", done, bad ? "BAD" : "OK");
	return bad != 0;
}
