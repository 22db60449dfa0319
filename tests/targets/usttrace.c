/* SPDX-License-Identifier: MIT */
/* usttrace: an LTTng-UST program with a function to probe between its own events, to test that the two traces merge in time. */
#include "target.h"

#include <lttng/tracef.h>

TARGET_PROBED unsigned foo(unsigned a)
{
	return a * 3 + 1;
}

int main(void)
{
	target_stop_on_term();
	target_ready();
	for (unsigned i = 0; !target_stop; i++) {
		tracef("before %u", i);
		foo(i);
		tracef("after %u", i);
		target_sleep_us(2000);
	}
	puts("RESULT OK");
	return 0;
}
